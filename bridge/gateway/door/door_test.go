package door

import (
	"maps"
	"slices"
	"testing"

	"github.com/pagewire/pagewire/bridge"
)

const (
	app  = "https://app.example"
	bank = "https://bank.example"
	here = "http://127.0.0.1:3000"
)

// A page is its owner.
type page struct{ owner *bridge.Owner }

func (p page) Owner() bridge.Owner { return *p.owner }

// open returns a door to pages, by their URIs.
func open(served Scope, pages map[string]*bridge.Owner) *Door[page] {
	return New(served, func(uri string) (page, bool) {
		o, ok := pages[uri]
		return page{o}, ok
	})
}

func TestScope(t *testing.T) {
	origins := []string{app, bank, here, "https://a.bank.example"}
	for name, c := range map[string]struct {
		scope Scope
		want  []string
	}{
		"all":                     {Scope{}, origins},
		"denied":                  {Scope{Deny: []string{bank, here}}, []string{app, "https://a.bank.example"}},
		"denied below":            {Scope{Deny: []string{"https://*.bank.example"}}, []string{app, bank, here}},
		"allowed":                 {Scope{Allow: []string{app}}, []string{app, here}},
		"allowed and denied":      {Scope{Allow: []string{app, bank}, Deny: []string{bank, "loopback"}}, []string{app}},
		"only":                    {Scope{Only: []string{bank}}, []string{bank}},
		"only what is here":       {Scope{Only: []string{"loopback"}}, []string{here}},
		"only, of what is denied": {Scope{Only: []string{bank}, Deny: []string{bank}}, nil},
		"only, and allowed":       {Scope{Only: []string{bank, app}, Allow: []string{app}}, []string{app}},
		"only, and all this":      {Scope{Only: []string{here}, Allow: []string{app}}, []string{here}},
	} {
		var got []string
		for _, origin := range append([]string{"null", ""}, origins...) {
			if Admits(c.scope, bridge.Owner{Origin: origin}) {
				got = append(got, origin)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it admits %q, want %q", name, got, c.want)
		}
		p := open(Scope{}, nil).Pass(c.scope)
		for _, origin := range origins {
			for _, rest := range []string{"", "/", "/doc", "/.pagewire/tab/2/doc", "/{id}", "?a=http://" + bank} {
				want := slices.Contains(c.want, origin)
				if p.Sees(origin+rest) != want || p.MayWish(origin+rest) != want ||
					p.Permits(bridge.Owner{Origin: origin}) != want {
					t.Errorf("%s: it sees %s: %t", name, origin+rest, p.Sees(origin+rest))
				}
			}
		}
		for _, uri := range []string{"test://static/text", "urn:a:b", app + ".evil.example/", app + ":1/", app + "@x/", ""} {
			if p.Sees(uri) && len(c.scope.Allow)+len(c.scope.Only) > 0 || p.Sees("urn:a:b") && p.Restricts(false, false) {
				t.Errorf("%s: it sees %q", name, uri)
			}
		}
	}
}

// A profile is the page's. No text in a URI stands for one, wherever it is.
func TestNoTextIsAProfile(t *testing.T) {
	var pages = map[string]*bridge.Owner{}
	work, private := &bridge.Owner{Origin: app, Profile: "Work"}, &bridge.Owner{Origin: app, Profile: "Private"}
	p := open(Scope{}, pages).Pass(Scope{Only: []string{ProfilePrefix + "Work"}})
	for _, text := range []string{"", "/.pagewire/profile=Work", "/list?q=a&sort=/.pagewire/profile=Work", "#/.pagewire/profile=Work",
		"/a/.pagewire/profile=Work/b", "/{/.pagewire/profile=Work}", "/%2e%70agewire/profile=Work", "?profile=Work",
		"/.pagewire/profile=Private/.pagewire/profile=Work"} {
		uri := app + text
		if p.Sees(uri) || p.Resolve(uri) != nil {
			t.Errorf("%s exists, without a page", uri)
		}
		pages[uri] = private
		if p.Sees(uri) || p.Resolve(uri) != nil || !p.MayWish(uri) {
			t.Errorf("%s of a page of Private exists", uri)
		}
		if pages[uri] = work; !p.Sees(uri) || p.Resolve(uri) == nil {
			t.Errorf("%s of a page of Work does not exist", uri)
		}
	}
	if Admits(Scope{Only: []string{ProfilePrefix + "Work"}}, *private) ||
		!Admits(Scope{Only: []string{ProfilePrefix + "Work"}}, *work) {
		t.Error("a scope without a door has other profiles")
	}
}

// A route holds as long as its page is in the scope, and a joint pass permits what all others permit.
func TestRoutes(t *testing.T) {
	owner := &bridge.Owner{Origin: app, Profile: "Work"}
	d := open(Scope{Deny: []string{bank}}, map[string]*bridge.Owner{app + "/doc": owner})
	p, all := d.Pass(Scope{Only: []string{ProfilePrefix + "Work"}, Front: true}), d.Pass(Scope{Debugging: true})
	passes := map[*Pass[page]]bool{p: true, all: true}
	joint := d.Joint(maps.Keys(passes))
	r, called := p.Resolve(app+"/doc"), p.To(page{owner}, false)
	if r.Page().owner != owner || !r.Holds() || !called.Holds() || !joint.Sees(app+"/doc") || p.To(page{owner}, true) != nil ||
		all.To(page{owner}, true) == nil {
		t.Error("a page of Work is not permitted, or its tool for developers is")
	}
	if looks := d.Pass(Scope{NoPageTools: true, Debugging: true}); looks.To(page{owner}, false) != nil || looks.To(page{owner}, true) != nil ||
		looks.HidesTools() == "" || looks.Resolve(app+"/doc") == nil || looks.Restricts(false, false) || all.HidesTools() != "" {
		t.Error("a scope without pages' tools has some, or lacks more")
	}
	owner.Profile = "Private"
	if r.Holds() || called.Holds() || joint.Sees(app+"/doc") || joint.Permits(*owner) || !all.Permits(*owner) {
		t.Error("a page that is of Private now is permitted")
	}
	if p.Resolve(app+"/doc") != nil || p.To(page{owner}, false) != nil {
		t.Error("there is a route to a page that is of Private now")
	}
	delete(passes, p)
	if !joint.Sees(app+"/doc") || !joint.Permits(*owner) || !joint.MayWish(app+"/doc") {
		t.Error("the joint pass still has one that is gone")
	}
	clear(passes)
	for _, uri := range []string{app + "/doc", FrontURI, bank + "/doc"} {
		if joint.Sees(uri) || joint.MayWish(uri) || joint.Permits(*owner) || joint.Resolve(uri) != nil {
			t.Errorf("of no agents, all see %s", uri)
		}
	}
	if all.Permits(bridge.Owner{Origin: bank}) || all.MayWish(bank+"/x") || d.Serves(bank) || !all.MayWish("test://x") {
		t.Error("a page that is not served is permitted")
	}
	if p.Resolve(FrontURI) != nil || !p.Sees(FrontURI) || all.Sees(FrontURI) || p.MayWish(FrontURI) {
		t.Error("the tab in front is for others")
	}
	if all.Restricts(false, false) || !all.Restricts(true, false) || !all.Restricts(false, true) || !p.Restricts(false, false) || all.String() == p.String() {
		t.Error("the passes are alike")
	}
}

// What a page shows is for agents whose user has named its origin: not for one that may see all
// pages, nor for one that may not see that origin. The origins that Pagewire's browser was to open
// count in that browser.
func TestWhatPagesShow(t *testing.T) {
	shown := bridge.Owner{Origin: app, Shown: true}
	launched, other := shown, bridge.Owner{Origin: bank, Shown: true, Launched: true}
	launched.Launched = true
	for name, c := range map[string]struct {
		scope             Scope
		anywhere, opened  bool // whether it has shown, and launched
		ofBank, isDistant bool // whether it has other, and names anything
	}{
		"all pages":               {},
		"front, and debugging":    {scope: Scope{Front: true, Debugging: true}},
		"allowed, and not named":  {scope: Scope{Allow: []string{app}}},
		"only, and not named":     {scope: Scope{Only: []string{app}}},
		"named":                   {scope: Scope{Shown: []string{app}}, anywhere: true, opened: true, isDistant: true},
		"all of a domain":         {scope: Scope{Shown: []string{"https://*.example"}}, anywhere: true, opened: true, ofBank: true, isDistant: true},
		"opened":                  {scope: Scope{Opened: []string{app}}, opened: true, isDistant: true},
		"another is named":        {scope: Scope{Shown: []string{bank}}, ofBank: true, isDistant: true},
		"named, and denied":       {scope: Scope{Shown: []string{app}, Deny: []string{app}}, isDistant: true},
		"named, and another only": {scope: Scope{Shown: []string{app}, Only: []string{bank}}, isDistant: true},
		"named, of a profile":     {scope: Scope{Shown: []string{app}, Only: []string{ProfilePrefix + "Work"}}, isDistant: true},
		"the user's commands":     {scope: Scope{Transport: TransportCommand}, anywhere: true, opened: true, ofBank: true},
	} {
		pages := map[string]*bridge.Owner{}
		p := open(Scope{}, pages).Pass(c.scope)
		for i, o := range []bridge.Owner{shown, launched, other} {
			want := []bool{c.anywhere, c.opened, c.ofBank}[i]
			names := want && c.scope.Transport != TransportCommand
			if p.Permits(o) != want || p.Names(o) != names {
				t.Errorf("%s: %+v is permitted: %t, and named: %t", name, o, p.Permits(o), p.Names(o))
			}
			for _, path := range []string{"/.pagewire/shown", "/.pagewire/shown/tab/2?from=3", "/.pagewire/parts/a"} {
				uri := o.Origin + path
				pages[uri] = &o
				if p.Sees(uri) != want || (p.Resolve(uri) != nil) != want {
					t.Errorf("%s: it sees %s of %+v: %t", name, uri, o, p.Sees(uri))
				}
				delete(pages, uri)
			}
			// While no page has it, an agent may wait for it if its user could show it.
			if uri := o.Origin + "/.pagewire/shown"; p.MayWish(uri) != p.Sees(uri) && len(p.scope.profiles) == 0 ||
				p.Sees(uri) && c.scope.Transport != TransportCommand && len(c.scope.Shown)+len(c.scope.Opened) == 0 {
				t.Errorf("%s: it waits for %s: %t", name, uri, p.MayWish(uri))
			}
		}
		if p.NamesAny() != c.isDistant || !p.Restricts(false, true) != (c.scope.Transport == TransportCommand) {
			t.Errorf("%s: it names any: %t", name, p.NamesAny())
		}
	}
}

// What the user has granted in the browser's extension is for all agents that may see its origin,
// in its profile. Before it is there nobody may wait for it but those whose user has named it.
func TestWhatTheExtensionGrants(t *testing.T) {
	granted := bridge.Owner{Origin: app, Profile: "Work", Shown: true, Granted: true}
	const uri = app + "/.pagewire/shown"
	for name, c := range map[string]struct {
		scope  Scope
		served Scope
		want   bool
	}{
		"all pages":            {want: true},
		"another is named":     {scope: Scope{Shown: []string{bank}}, want: true},
		"only":                 {scope: Scope{Only: []string{app}}, want: true},
		"of its profile":       {scope: Scope{Only: []string{ProfilePrefix + "Work"}}, want: true},
		"of another profile":   {scope: Scope{Only: []string{ProfilePrefix + "Private"}}},
		"denied":               {scope: Scope{Deny: []string{app}}},
		"another is allowed":   {scope: Scope{Allow: []string{bank}}},
		"another only":         {scope: Scope{Only: []string{bank}}},
		"not served to anyone": {served: Scope{Deny: []string{app}}},
	} {
		pages := map[string]*bridge.Owner{uri: &granted}
		p := open(c.served, pages).Pass(c.scope)
		if p.Permits(granted) != c.want || p.Sees(uri) != c.want || (p.Resolve(uri) != nil) != c.want {
			t.Errorf("%s: it is permitted: %t, and seen: %t", name, p.Permits(granted), p.Sees(uri))
		}
		delete(pages, uri)
		if p.MayWish(uri) || p.Sees(uri) {
			t.Errorf("%s: what may never be granted is waited for", name)
		}
	}
}
