package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const (
	shownURI   = app + ShownPath
	shownTitle = "What the page shows (offered by the user) - "
)

// byUser is a source of what a document in a tab shows.
func byUser(tab string) PageInfo {
	info := tabInfo(tab)
	info.Shown = true
	return info
}

// names are the options of an agent whose user has named the app.
var names = AgentOptions{Shown: []string{app}}

func showPage(t *testing.T, g *Gateway, tab, text string) *testPage {
	t.Helper()
	p := &testPage{t: t, page: testkit.NewPage(t, nil)}
	p.page.Describe(shownURI, map[string]any{"uriSchema": map[string]any{"type": "object", "properties": map[string]any{
		"from": map[string]any{"type": "integer"}}}})
	p.attach(g, byUser(tab))
	p.offer(shownURI, text)
	return p
}

// An agent whose user has named a page's origin lists what the page shows, reads it, waits for it,
// and is told of the lines that changed. The user's own commands do so too.
func TestShownPage(t *testing.T) {
	g := newGateway(t, Options{})
	lines := "title: CI\n" + strings.Repeat("| a job | Succeeded |\n", 30)
	p := showPage(t, g, "a", lines+"| browser | In progress |\n")
	for _, o := range []AgentOptions{names, {Transport: TransportCommand}} {
		a, _ := openAgentWith(t, g, o)
		if got := a.titles(); len(got) != 1 || !strings.HasPrefix(got[0], shownURI+" "+shownTitle) {
			t.Errorf("listed %q", got)
		}
		a.CheckText(shownURI, lines+"| browser | In progress |\n")
	}
	a, _ := openAgentWith(t, g, names)
	texts := a.must(calls.Read, map[string]any{"uri": shownURI})
	waits := make(chan []string)
	go func() {
		texts, _ := a.tool(calls.Wait, map[string]any{"uris": []string{shownURI}, "since": fields(t, texts).Revision})
		waits <- texts
	}()
	testkit.Eventually(t, "the page is followed", func() bool { return p.page.Watches(shownURI) })
	p.set(shownURI, lines+"| browser | Failed |\n")
	got := strings.Join(testkit.Receive(t, "the agent is told", waits), "\n")
	if !strings.Contains(got, "-| browser | In progress |") || !strings.Contains(got, "+| browser | Failed |") ||
		strings.Count(got, "a job") > 6 {
		t.Errorf("told %q", got)
	}
}

// For an agent whose user has not named the origin there is nothing, in no way, also where it was
// there first.
func TestShownPageOfAnother(t *testing.T) {
	g := newGateway(t, Options{})
	early := openAgent(t, g)
	waits := openEventAgent(t, g, AgentOptions{})
	follows, _ := waits.stream(events.Updated, `{}`, "")
	const tabbed = shownURI + "/tab/1"
	if err := early.Subscribe(t.Context(), &mcp.SubscribeParams{URI: shownURI}); err == nil {
		t.Error("an agent waits for what its user has not named")
	}
	named, _ := openAgentWith(t, g, names)
	p := showPage(t, g, "a", "secret")
	named.CheckText(shownURI, "secret")
	named.CheckText(tabbed, "secret")
	asked := p.page.Asked()
	for name, o := range map[string]AgentOptions{"the first": {}, "one without flags": {}, "one that allows the origin": {Allow: []string{app}},
		"one of another origin": {Shown: []string{"https://other.test"}}, "one of a launched browser": {Opened: []string{app}},
		"one that denies the origin": {Shown: []string{app}, Deny: []string{app}}} {
		a := early
		if name != "the first" {
			a, _ = openAgentWith(t, g, o)
		}
		if got := a.titles(); len(got) > 0 {
			t.Errorf("%s lists %q", name, got)
		}
		for _, uri := range []string{shownURI, tabbed, shownURI + "?from=0", app + "/.pagewire/tab/1/.pagewire/shown"} {
			if text, err := a.Read(uri); err == nil {
				t.Errorf("%s reads %s: %q", name, uri, text)
			}
			for tool, args := range map[string]map[string]any{calls.Read: {"uri": uri},
				calls.Wait: {"uris": []string{uri}, "timeout_ms": 1}} {
				if texts, failed := a.tool(tool, args); !failed || strings.Contains(strings.Join(texts, ""), "secret") {
					t.Errorf("%s, %s of %s: %q", name, tool, uri, texts)
				}
			}
			if err := a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err == nil {
				t.Errorf("%s subscribes to %s", name, uri)
			}
		}
		if texts, _ := a.tool(calls.List, nil); strings.Contains(texts[0], ".pagewire") {
			t.Errorf("%s lists %s", name, texts[0])
		}
	}
	if n := p.page.Asked() - asked; n > 0 {
		t.Errorf("the page was asked %d times for others", n)
	}
	own := openPage(t, g, tabInfo("b"), map[string]string{app + "/own": "1"})
	testkit.Eventually(t, "the page is followed", func() bool { return own.page.Watches(app + "/own") })
	p.set(shownURI, "another secret")
	own.set(app+"/own", "2")
	waits.event(follows, app+"/own") // and nothing before
}

// No page gets a URI of what the user offers, nor can it answer for one, whatever it registers.
func TestPageThatSpeaksForTheUser(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, names)
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "1", app + "/{a}/{b}": "page ", app + "/{a}": "page "})
	p.page.Describe(app+"/title", map[string]any{"title": "What the page shows (Offered\u200b by\u00a0the  user)"})
	p.offer(app+"/title", "of the page")
	for _, uri := range []string{shownURI, shownURI + "/tab/1", app + PartsPath + "a", app + "/.pagewire/{a}", app + "/.pagewire/shown{?from}",
		"/.pagewire/shown", "https://evil.test/.pagewire/shown", app + "/%2Epagewire/shown", app + "/%2Epagewire/shown?x=%zz", app + "/%2epage%77ire/%",
		app + "/.pagewire%2Fshown"} {
		p.offer(uri, "of the page")
	}
	p.page.Contents(func(uri string) string { // contents under the name of another
		return `[{"uri":"` + shownURI + `","text":"of the page"}]`
	})
	if text, err := a.Read(app + "/doc"); err == nil && strings.Contains(text, "of the page") {
		t.Errorf("a page gives contents of %s: %q", shownURI, text)
	}
	p.page.Contents(nil)
	if got := a.URIs(); !slices.Equal(got, []string{app + "/doc", app + "/title"}) {
		t.Errorf("listed %q", got)
	}
	for _, title := range a.titles() {
		if catalog.SaysOffered(title) {
			t.Errorf("a page's title is %q", title)
		}
	}
	for _, uri := range []string{shownURI, shownURI + "/tab/1", app + "/.pagewire/tab/1/.pagewire/shown", app + "/.pagewire/parts/a",
		app + "/.pagewire/shown?from=1"} {
		if text, err := a.Read(uri); err == nil {
			t.Errorf("a page answers for %s: %q", uri, text)
		}
	}
	if n := len(p.page.Reports()); n < 11 {
		t.Errorf("the page is told of %d refusals: %q", n, p.page.Reports())
	}
	// Its document is not joined with the source, whatever it says of itself.
	shown := &testPage{t: t, page: testkit.NewPage(t, nil)}
	shown.page.Epoch("0123456789abcdef0123456789abcdef")
	shown.attach(g, byUser("a"))
	shown.offer(shownURI, "of the user")
	thief := &testPage{t: t, page: testkit.NewPage(t, map[string]string{app + "/stolen": "2"})}
	thief.page.Epoch("0123456789abcdef0123456789abcdef")
	info := tabInfo("a")
	info.Transport = "websocket"
	thief.attach(g, info)
	a.CheckText(shownURI, "of the user")
	thief.page.Set(shownURI, "of the thief")
	a.CheckText(shownURI, "of the user")
	a.CheckText(app+"/stolen", "2")
	for _, p := range g.Snapshot().Pages {
		if p.Shown && p.Resources != 1 {
			t.Errorf("the source has %d resources", p.Resources)
		}
	}
}

// A source of what a page shows has no other URIs, no tools, and nothing of another origin.
func TestSourceHasNothingElse(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, AgentOptions{Shown: []string{app, "https://other.test"}})
	p := showPage(t, g, "a", "1")
	part := app + PartsPath + "price"
	p.offer(part, "2")
	for _, uri := range []string{app + "/doc", app + "/.pagewire/other", app + "/.pagewire/tab/1/doc", app + PartsPath, app + PartsPath + "a/b",
		"https://other.test/.pagewire/shown", app + "/.pagewire/shown/x", app + "/.pagewire/{a}"} {
		p.offer(uri, "3")
	}
	p.page.SetTool("press", testkit.Tool{})
	if got := a.URIs(); !slices.Equal(got, []string{part, shownURI}) {
		t.Errorf("listed %q", got)
	}
	if got := a.ToolNames(); slices.Contains(got, "press") {
		t.Errorf("tools %q", got)
	}
	a.CheckText(part, "2")
	if n := len(p.page.Reports()); n != 8 {
		t.Errorf("refused: %q", p.page.Reports())
	}
}

// Where the page offers something of its own, what it shows can be read, and is not listed. The
// user's parts are.
func TestShownPageStandsBack(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, names)
	p := showPage(t, g, "a", "outline")
	part := app + PartsPath + "price"
	p.offer(part, "2")
	a.Shows(part, shownURI)
	own := openPage(t, g, tabInfo("a"), nil)
	own.page.SetTool("press", testkit.Tool{})
	a.Shows(part, shownURI) // a tool is no state
	own.offer(app+"/doc", "1")
	a.Shows(app+"/doc", part)
	a.CheckText(shownURI, "outline")
	own.page.Withdraw(app + "/doc")
	a.Shows(part, shownURI)
	own.offer(app+"/doc", "1")
	a.Shows(app+"/doc", part)
	own.Close("it has gone")
	a.Shows(part, shownURI)
	// The page of another tab does not count.
	openPage(t, g, tabInfo("b"), map[string]string{app + "/doc": "1"})
	a.Shows(app+"/doc", part, shownURI)
}

// Two tabs of one site show different things. The one that was not used last has its tab behind its
// path.
func TestShownPagesOfTwoTabs(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, names)
	showPage(t, g, "a", "of a")
	showPage(t, g, "b", "of b")
	g.Focus("b")
	a.Shows(shownURI, shownURI+"/tab/1")
	a.CheckText(shownURI, "of b")
	a.CheckText(shownURI+"/tab/1", "of a")
	a.CheckText(shownURI+"/tab/2", "of b")
	if text, err := a.Read(app + "/.pagewire/tab/1/.pagewire/shown"); err == nil {
		t.Errorf("our path is written twice: %q", text)
	}
}

// A subscription outlives navigations within the origin, and the plain URI its tab: it follows the
// URI.
func TestShownPageIsLeft(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, names)
	p := showPage(t, g, "a", "one")
	a.Watch(shownURI)
	p.crash()
	reads := make(chan string)
	go func() { reads <- a.Text(shownURI) }() // it waits for the next document
	testkit.Eventually(t, "the read waits", func() bool {
		defer g.lock()()
		return len(g.parked) == 1
	})
	q := showPage(t, g, "a", "two")
	if got := testkit.Receive(t, "the next document is read", reads); got != "two" {
		t.Errorf("read %q", got)
	}
	a.Told(shownURI)
	q.set(shownURI, "three")
	a.Told(shownURI)
	// A navigation in mid-read.
	q.page.Hold = make(chan struct{})
	q.page.OnRead = func(string) { go q.crash() }
	go func() { reads <- a.Text(shownURI) }()
	testkit.Eventually(t, "the document was left", func() bool { return g.Snapshot().Pages[0].Absent })
	showPage(t, g, "a", "four")
	if got := testkit.Receive(t, "the next document is read", reads); got != "four" {
		t.Errorf("read %q", got)
	}
	// Another origin has nothing to do with it.
	g.CloseTab("a")
	if _, err := a.Read(shownURI); err == nil {
		t.Error("a closed tab is read")
	}
}

// Transports ask which pages to show, and are told when that changes: with the first agent that
// names one, and with the last.
func TestNamedPages(t *testing.T) {
	g := newGateway(t, Options{Shown: []string{"https://always.test"}, Deny: []string{"https://denied.test"}})
	told := make(chan bool, 100)
	end := g.WhenNamed(func() { told <- true })
	info, launched := byUser("a"), byUser("a")
	launched.Launched = true
	is := func(when string, plain, inOurs bool) {
		t.Helper()
		if g.IsNamed(info) != plain || g.IsNamed(launched) != inOurs {
			t.Errorf("%s: %t, and in a launched browser %t", when, g.IsNamed(info), g.IsNamed(launched))
		}
	}
	is("without an agent", false, false)
	openAgent(t, g)
	openAgentWith(t, g, AgentOptions{Transport: TransportCommand})
	openAgentWith(t, g, AgentOptions{Transport: TransportRequest, Shown: []string{app}})
	is("of agents that name nothing, or only for a request", false, false)
	_, opens := openAgentWith(t, g, AgentOptions{Opened: []string{app}})
	testkit.Receive(t, "the transport is told", told)
	is("of one that opens it", false, true)
	_, shows := openAgentWith(t, g, names)
	testkit.Receive(t, "the transport is told", told)
	is("of one that names it", true, true)
	shows.Close()
	testkit.Receive(t, "the transport is told", told)
	is("of one that has gone", false, true)
	end()
	opens.Close()
	is("of all", false, false)
	for origin, want := range map[string]bool{"https://always.test": true, "https://denied.test": false, "null": false, "": false} {
		info.Origin = origin
		if g.IsNamed(info) != want {
			t.Errorf("%s is named: %t", origin, !want)
		}
	}
	select {
	case <-told:
		t.Error("it is told after its end")
	default:
	}
}

// A hundred tabs of one site: each has its own URI, and one agent's many lists cost as with pages'
// own resources.
func TestShownPagesOfManyTabs(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, names)
	for i := range 100 {
		showPage(t, g, fmt.Sprint("t", i), fmt.Sprint("of ", i))
	}
	g.Focus("t42")
	testkit.Eventually(t, "all are listed", func() bool { return len(a.URIs()) == 100 })
	a.CheckText(shownURI, "of 42")
	a.CheckText(shownURI+"/tab/8", "of 7")
}

// list_page_resources ends with the number of tabs that offer the agent nothing, and with what its
// user can do. Their titles and addresses are for the user alone.
func TestTabsThatOfferNothing(t *testing.T) {
	g := newGateway(t, Options{})
	a, named := openAgent(t, g), names
	b, _ := openAgentWith(t, g, named)
	only, _ := openAgentWith(t, g, AgentOptions{Only: []string{"https://other.test"}})
	tab := func(key, origin string) PageInfo {
		return PageInfo{Tab: key, Origin: origin, URL: origin + "/secret?key=1#frag", Title: "secret " + key,
			Transport: "test"}
	}
	listed := func(a *testAgent, want string) {
		t.Helper()
		texts, _ := a.tool(calls.List, nil)
		all := strings.Join(texts, "\n")
		if strings.Contains(all, "secret") || strings.Contains(all, "pagewire ls") || !strings.Contains(all, want) ||
			want == "" && strings.Contains(all, "you nothing") {
			t.Errorf("it lists %s, want %q", all, want)
		}
	}
	listed(a, "")
	g.TabShows(tab("a", app))
	listed(a, "Open tabs that offer you nothing: 1. Only your user can let you read what the pages of a site show: "+
		"by the extension's popup, or by pagewire serve --shown ORIGIN.")
	g.TabShows(tab("b", app))
	g.TabShows(tab("c", "https://other.test"))
	g.TabShows(tab("d", "")) // about:blank
	listed(a, "Open tabs that offer you nothing: 3.")
	listed(only, "Open tabs that offer you nothing: 1.")
	show := showPage(t, g, "a", "outline")
	listed(a, "Open tabs that offer you nothing: 3.")
	listed(b, "Open tabs that offer you nothing: 2.")
	openPage(t, g, tabInfo("b"), map[string]string{app + "/doc": "1"})
	listed(a, "Open tabs that offer you nothing: 2.")
	listed(b, "Open tabs that offer you nothing: 1.")
	if bare := g.BareTabs(t.Context()); len(bare) != 1 || bare[0].Title != "secret c" ||
		bare[0].URL != "https://other.test/secret" {
		t.Errorf("the user is told of %+v", bare)
	}
	show.Close("its user has gone")
	if bare := g.BareTabs(t.Context()); len(bare) != 2 {
		t.Errorf("the user is told of %+v", bare)
	}
	g.TabShows(tab("c", "")) // it has gone to a page without an origin
	g.CloseTab("a")
	listed(a, "")
	listed(only, "")
	g.TabShows(tab("c", app))
	g.TabShows(PageInfo{Tab: "c"})
	listed(a, "")
	for i := range 2 * maxTabs {
		g.TabShows(tab(fmt.Sprint("t", i), app))
	}
	listed(a, "Open tabs that offer you nothing: 999.") // one of 1,000 has a page that offers something
}

// Events, webhooks and hooks work as for pages' own resources: the URI is followed before there is a page, and the
// stream goes on at the next document.
func TestEventsOfShownPage(t *testing.T) {
	g := newGateway(t, Options{})
	a, hidden := openEventAgent(t, g, names), openEventAgent(t, g, AgentOptions{})
	one, _ := a.stream(events.Updated, `{"uri":"`+shownURI+`"}`, "")
	all, _ := a.stream(events.Updated, `{"origin":"`+app+`"}`, "")
	others, _ := hidden.stream(events.Updated, `{"origin":"`+app+`"}`, "")
	refused := hidden.ask("events/poll", fmt.Sprintf(`"name":%q,"arguments":{"uri":%q}`, events.Updated, shownURI))
	if refused.Error == nil {
		t.Error("an agent follows what its user has not named")
	}
	p := showPage(t, g, "a", "one")
	a.event(one, shownURI)
	testkit.Eventually(t, "the page is followed", func() bool { return p.page.Watches(shownURI) })
	p.set(shownURI, "two")
	a.event(one, shownURI)
	a.event(all, shownURI)
	p.crash()
	q := showPage(t, g, "a", "three")
	a.event(one, shownURI)
	a.event(all, shownURI)
	q.set(shownURI, "four")
	a.event(one, shownURI)
	a.event(all, shownURI)
	own := openPage(t, g, tabInfo("b"), map[string]string{app + "/own": "1"})
	testkit.Eventually(t, "the page is followed", func() bool { return own.page.Watches(app + "/own") })
	own.set(app+"/own", "2")
	hidden.event(others, app+"/own") // and nothing before
}

// What a document shows is in the tab of its page, in whatever order its ways come, before or after
// the page offers something.
func TestShownPageOfADocumentWithTwoWays(t *testing.T) {
	for _, order := range [][]string{{"shown", "websocket", "cdp"}, {"websocket", "shown", "cdp"}, {"websocket", "cdp", "shown"},
		{"shown", "cdp", "websocket"}, {"cdp", "shown", "websocket"}, {"cdp", "websocket", "shown"}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(order, late), func(t *testing.T) {
				g := newGateway(t, Options{})
				a, _ := openAgentWith(t, g, names)
				var ways []*testPage
				for _, way := range order {
					if way == "shown" {
						g.Focus(wayInfos[0].Tab)
						showPage(t, g, wayInfos[0].Tab, "outline")
						continue
					}
					info := wayInfos[0]
					if way == "websocket" {
						info = wayInfos[2]
					}
					state := map[string]string{app + "/doc": "1"}
					if late {
						state = nil
					}
					ways = append(ways, openWay(t, g, info, "0123456789abcdef0123456789abcdef", state))
				}
				if late {
					a.Shows(shownURI)
					for _, p := range ways {
						p.offer(app+"/doc", "1")
					}
				}
				a.Shows(app + "/doc")
				a.CheckText(shownURI, "outline")
				for _, p := range g.Snapshot().Pages {
					if p.Number != g.Snapshot().Pages[0].Number {
						t.Errorf("pages are %+v", g.Snapshot().Pages)
					}
				}
				if text, err := a.Read(fmt.Sprint(shownURI, "/tab/", g.Snapshot().Pages[0].Number)); text != "outline" {
					t.Errorf("read %q, %v", text, err)
				}
			})
		}
	}
}

// The address of what a page shows lacks its query and its fragment, which may have what lets their
// reader in.
func TestShownPageHasNoQuery(t *testing.T) {
	for query, info := range map[string]PageInfo{"?token=secret": {Granted: true, Transport: "extension"},
		"#token=secret": {Transport: "cdp"}, "": {Launched: true}} {
		g := newGateway(t, Options{})
		info.Tab, info.Shown, info.Origin, info.URL = "a", true, app, app+"/run"+query
		openPage(t, g, info, map[string]string{shownURI: "text"})
		a, _ := openAgentWith(t, g, names)
		if got := strings.Join(a.titles(), ""); !strings.Contains(got, app+"/run (") || strings.Contains(got, "secret") {
			t.Errorf("listed %s", got)
		}
		if got := g.Snapshot().Pages[0].URL; got != app+"/run" {
			t.Errorf("the address is %s", got)
		}
	}
}

// Neither a page's words nor those of its resources, nor both together, say that the user offers
// something.
func TestPageThatSaysWhoOffersIt(t *testing.T) {
	for title, about := range map[string]map[string]any{
		"x (offered by the user)": {"title": "What the page shows"},
		"the user) - x":           {"title": "What the page shows (offered by"},
		"x":                       {"name": "What the page shows (offered by the user)"},
	} {
		g := newGateway(t, Options{})
		a, _ := openAgentWith(t, g, names)
		info := tabInfo("a")
		info.Title = title
		p := &testPage{t: t, page: testkit.NewPage(t, nil)}
		p.page.Describe(app+"/doc", about)
		p.attach(g, info)
		p.offer(app+"/doc", "1")
		a.Shows(app + "/doc")
		for found, err := range a.Resources(t.Context(), nil) {
			if err != nil || catalog.SaysOffered(found.Title) || catalog.SaysOffered(found.Name) {
				t.Errorf("a page's title is %q, and its name %q: %v", found.Title, found.Name, err)
			}
		}
	}
}

// The next document of a launched browser's tab answers, whichever of its ways comes first.
func TestReloadByAnotherWay(t *testing.T) {
	g := newGateway(t, Options{})
	a, _ := openAgentWith(t, g, AgentOptions{})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "1"}).crash()
	reads := make(chan string)
	go func() { reads <- a.Text(app + "/doc") }()
	testkit.Eventually(t, "the read waits", func() bool {
		defer g.lock()()
		return len(g.parked) == 1
	})
	info := tabInfo("a")
	info.Launched = true
	openPage(t, g, info, map[string]string{app + "/doc": "2"})
	if got := testkit.Receive(t, "the next document is read", reads); got != "2" {
		t.Errorf("read %q", got)
	}
}

// Parts are those of agents whose user has named the page's origin. Of two rules with one name that of the agent that
// came first counts, and the gateway's own comes last.
func TestPartsOfAgents(t *testing.T) {
	rules := func(names ...string) parts.Rules {
		found := map[string]parts.Rule{}
		for _, name := range names[1:] {
			found[name] = parts.Rule{As: names[0], Find: []parts.Anchor{{CSS: "p"}}}
		}
		return parts.Rules{app: found, "https://else.example": {"else": {}}}
	}
	g := newGateway(t, Options{Shown: []string{app}, Parts: rules("text", "a", "b", "c")})
	check := func(want string) {
		t.Helper()
		got := g.Parts(byUser("x"))
		text := ""
		for _, name := range slices.Sorted(maps.Keys(got)) {
			text += name + " " + got[name].As + " "
		}
		if strings.TrimSpace(text) != want {
			t.Errorf("the parts are %q, want %q", text, want)
		}
	}
	connect := func(o AgentOptions, parts parts.Rules) *Agent {
		o.Parts = parts
		return testkit.Must(g.ConnectWith(o))(t)
	}
	check("a text b text c text")
	first := connect(names, rules("table", "a", "d"))
	connect(names, rules("form", "a", "b"))
	connect(AgentOptions{}, rules("form", "c", "e"))                                                // it has not named the origin
	connect(AgentOptions{Shown: names.Shown, Transport: TransportRequest}, rules("form", "c", "e")) // Options name for it
	check("a table b form c text d table")
	first.Close()
	check("a form b form c text")
	// A file that has other rules now has them for each who has the file, and for nobody else.
	told := make(chan bool, 10)
	defer g.WhenNamed(func() { told <- true })()
	g.opt.PartsFile = "/own"
	second := AgentOptions{Shown: names.Shown, Transport: names.Transport, PartsFile: "/theirs"}
	connect(second, rules("text", "f"))
	testkit.Receive(t, "one has come", told)
	for file, want := range map[string]bool{"/theirs": true, "/own": true, "/else": false, "": false} {
		if used := g.SetParts(file, rules("table", "from"+strings.ReplaceAll(file, "/", "-"))); used != want {
			t.Errorf("%q is used: %v", file, used)
		} else if used {
			testkit.Receive(t, "it is told", told)
		}
	}
	check("a form b form from-own table from-theirs table")
}

// What the user has granted in the browser's extension is there for agents without a flag, as long
// as it is granted. Then an agent that waits for it is told that it has gone, and the subscription
// counts again with the next grant.
func TestGrantedPage(t *testing.T) {
	g := newGateway(t, Options{})
	info := byUser("a")
	info.URL += "?token=SECRET#id_token=SECRET"
	info.Granted = true
	grant := func(text string) *testPage {
		p := &testPage{t: t, page: testkit.NewPage(t, nil)}
		p.page.Describe(shownURI, nil)
		p.attach(g, info)
		p.offer(shownURI, text)
		return p
	}
	a := openAgent(t, g)
	denies, _ := openAgentWith(t, g, AgentOptions{Deny: []string{app}})
	p := grant("one")
	if got := a.titles(); len(got) != 1 || !strings.HasPrefix(got[0], shownURI+" "+shownTitle) {
		t.Errorf("listed %q", got)
	}
	a.CheckText(shownURI, "one")
	if got := g.Snapshot().Pages[0].URL; got != byUser("a").URL {
		t.Errorf("its URL is %s", got)
	}
	a.Watch(shownURI)
	if text, err := denies.Read(shownURI); err == nil || len(denies.titles()) > 0 {
		t.Errorf("an agent whose user denies the origin reads %q", text)
	}
	texts := a.must(calls.Read, map[string]any{"uri": shownURI})
	waits := make(chan []string)
	go func() {
		texts, _ := a.tool(calls.Wait, map[string]any{"uris": []string{shownURI}, "since": fields(t, texts).Revision})
		waits <- texts
	}()
	testkit.Eventually(t, "the agent waits", func() bool {
		defer g.lock()()
		return len(g.calls) == 1
	})
	testkit.OK(t, p.Receive([]byte(`[["bye",true]]`)))
	if got := strings.Join(testkit.Receive(t, "the wait ends", waits), " "); got != shownURI+": "+calls.Gone {
		t.Errorf("told %q", got)
	}
	if text, err := a.Read(shownURI); err == nil || len(a.titles()) > 0 {
		t.Errorf("read %q of what is granted no more", text)
	}
	p = grant("two")
	a.CheckText(shownURI, "two")
	p.set(shownURI, "three")
	a.Told(shownURI)
}

// A tab that is reached by CDP and by the extension is one, however late that is known, and what it
// shows is one resource. The extension's source answers, since all agents see it. Each answers when
// the other has gone, to those who may see it.
func TestTabThatIsReachedTwice(t *testing.T) {
	for _, order := range [][]string{{"cdp", "extension"}, {"extension", "cdp"}, {"cdp", "extension", "note"},
		{"extension", "cdp", "note"}, {"extension", "note", "cdp"}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			g := newGateway(t, Options{})
			plain := openAgent(t, g)
			named, _ := openAgentWith(t, g, names)
			by := map[string]*testPage{}
			for _, way := range order {
				if way == "note" {
					by["extension"].page.Post(`[["note",{"target":"cdp:T"}]]`)
					continue
				}
				info := wayInfos[0]
				if way == "extension" {
					info = wayInfos[1]
					info.Granted = true
					if !slices.Contains(order, "note") {
						info.Target = wayInfos[0].Tab
					}
				}
				info.Shown = true
				by[way] = openPage(t, g, info, map[string]string{shownURI: "by " + way})
			}
			g.TabShows(wayInfos[0])
			one := func(a *testAgent, want string) {
				t.Helper()
				if got := a.URIs(); !slices.Equal(got, []string{shownURI}) {
					t.Errorf("listed %q", got)
				}
				tab := g.Snapshot().Pages[0].Number
				for _, uri := range []string{shownURI, fmt.Sprint(shownURI, "/tab/", tab)} {
					if got, err := a.Read(uri); got != want {
						t.Errorf("%s has %q, %v, want %q", uri, got, err, want)
					}
				}
			}
			for _, a := range []*testAgent{plain, named} {
				one(a, "by extension")
				if texts, _ := a.tool(calls.List, nil); strings.Contains(strings.Join(texts, ""), "you nothing") {
					t.Errorf("a tab that is shown offers nothing: %q", texts)
				}
			}
			named.Watch(shownURI)
			by["cdp"].Lost("it navigates")
			by["cdp"] = showPage(t, g, wayInfos[0].Tab, "the next by cdp")
			one(named, "by extension")
			by["extension"].set(shownURI, "changed")
			named.Told(shownURI)
			testkit.OK(t, by["extension"].Receive([]byte(`[["bye",true]]`)))
			one(named, "the next by cdp")
			if text, err := plain.Read(shownURI); err == nil || len(plain.URIs()) > 0 {
				t.Errorf("read %q of what is granted no more", text)
			}
			by["cdp"].set(shownURI, "followed")
			named.Told(shownURI)
		})
	}
}

// An extension of another profile does not take a tab over.
func TestTabOfAnotherProfile(t *testing.T) {
	g := newGateway(t, Options{})
	defer g.NameProfile("browser", "Home")()
	home, _ := openAgentWith(t, g, AgentOptions{Shown: []string{app}, Only: []string{door.ProfilePrefix + "Home"}})
	work, _ := openAgentWith(t, g, AgentOptions{Only: []string{door.ProfilePrefix + "Work"}})
	for i, text := range []string{"of Home", "of Work"} {
		info := wayInfos[i]
		info.Shown, info.Granted = true, i == 1
		if i == 0 {
			info.Source = "browser"
		} else {
			info.Target = wayInfos[0].Tab
		}
		openPage(t, g, info, map[string]string{shownURI: text})
	}
	if got := pagesOf(g); !slices.Equal(got, []string{"tab 1 by cdp", "tab 2 by extension"}) {
		t.Errorf("pages are %q", got)
	}
	home.CheckText(shownURI+"/tab/1", "of Home")
	work.CheckText(shownURI+"/tab/2", "of Work")
	if text, err := home.Read(shownURI + "/tab/2"); err == nil {
		t.Errorf("an agent of one profile reads %q of another", text)
	}
}

// A page's own word about its tab does not count.
func TestPageThatNamesAnotherTab(t *testing.T) {
	g := newGateway(t, Options{})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "1"})
	p := openPage(t, g, tabInfo("b"), map[string]string{app + "/own": "1"})
	p.page.Post(`[["note",{"target":"a"}]]`)
	if got := pagesOf(g); !slices.Equal(got, []string{"tab 1 by test", "tab 2 by test"}) {
		t.Errorf("pages are %q", got)
	}
}

// Tabs that an extension counts are among those that offer an agent nothing, but for those that are
// known by CDP too. An agent of some sites is not told.
// Which tabs they are the extension says to the user alone, when the user asks.
func TestTabsThatAnExtensionCounts(t *testing.T) {
	g := newGateway(t, Options{})
	a := openAgent(t, g)
	denies, _ := openAgentWith(t, g, AgentOptions{Deny: []string{app}})
	listed := func(a *testAgent, want string) {
		t.Helper()
		texts, _ := a.tool(calls.List, nil)
		if all := strings.Join(texts, "\n"); strings.Contains(all, "secret") || !strings.Contains(all, want) ||
			want == "" && strings.Contains(all, "you nothing") {
			t.Errorf("it lists %s, want %q", all, want)
		}
	}
	asked := 0
	named := func(context.Context) []PageInfo {
		asked++
		return []PageInfo{{Origin: app, URL: app + "/secret", Title: "secret"},
			{Origin: app, URL: app + "/secret", Title: "twice", Target: "cdp:T"}}
	}
	count, end := g.CountTabs(named)
	listed(a, "")
	count(2, []string{"cdp:T"})
	listed(a, "Open tabs that offer you nothing: 2. Only your user")
	listed(denies, "")
	info := wayInfos[0]
	info.Title = "secret by CDP"
	g.TabShows(info)
	listed(a, "Open tabs that offer you nothing: 2.")
	listed(denies, "")
	if asked > 0 {
		t.Error("the extension was asked for an agent")
	}
	bare := g.BareTabs(t.Context())
	if len(bare) != 2 || bare[0].Title+bare[1].Title != "secret by CDPsecret" {
		t.Errorf("the user is told of %+v", bare)
	}
	g.CloseTab("cdp:T")
	listed(a, "Open tabs that offer you nothing: 2.")
	count(0, nil)
	listed(a, "")
	count(1, nil)
	end()
	end()
	listed(a, "")
	if bare := g.BareTabs(t.Context()); len(bare) > 0 {
		t.Errorf("the user is told of %+v", bare)
	}
	served := newGateway(t, Options{Deny: []string{"https://else.example"}})
	count, _ = served.CountTabs(named)
	count(1, nil)
	listed(openAgent(t, served), "")
}

// Extensions are asked at the same time, so that one without an answer takes no time from the others.
func TestTabsOfSeveralExtensions(t *testing.T) {
	g := newGateway(t, Options{})
	within, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	var all sync.WaitGroup
	all.Add(3)
	for i := range 3 {
		_, end := g.CountTabs(func(ctx context.Context) []PageInfo {
			all.Done()
			met := make(chan struct{})
			go func() {
				all.Wait()
				close(met)
			}()
			select {
			case <-met:
				return []PageInfo{{Origin: app, URL: fmt.Sprint(app, "/", i)}}
			case <-ctx.Done():
				return nil
			}
		})
		defer end()
	}
	if bare := g.BareTabs(within); len(bare) != 3 || bare[0].URL != app+"/0" || bare[2].URL != app+"/2" {
		t.Errorf("the user is told of %+v", bare)
	}
}

// Whoever waits for something else, too, or may be shown it again, waits on when it has gone.
func TestWaitsThatGoOn(t *testing.T) {
	g := newGateway(t, Options{})
	info := byUser("a")
	info.Granted = true
	p := openPage(t, g, info, map[string]string{shownURI: "one"})
	doc := openPage(t, g, tabInfo("b"), map[string]string{app + "/doc": "1"})
	named, _ := openAgentWith(t, g, names)
	agents, waits := []*testAgent{openAgent(t, g), named}, make(chan []string)
	for i, a := range agents {
		uris := [][]string{{shownURI, app + "/doc"}, {shownURI}}[i]
		for _, uri := range uris {
			a.must(calls.Read, map[string]any{"uri": uri})
		}
		go func() {
			texts, _ := a.tool(calls.Wait, map[string]any{"uris": uris})
			waits <- texts
		}()
	}
	testkit.Eventually(t, "both wait", func() bool {
		defer g.lock()()
		return len(g.calls) == len(agents)
	})
	p.Close("it is revoked")
	doc.set(app+"/doc", "2")
	if got := testkit.Receive(t, "one is told", waits); !strings.Contains(got[0], `"changed":["`+app+`/doc"]`) {
		t.Errorf("told %q", got)
	}
	showPage(t, g, "a", "two")
	if got := testkit.Receive(t, "the other is told", waits); !strings.Contains(got[0], `"changed":["`+shownURI+`"]`) {
		t.Errorf("told %q", got)
	}
}

// A reader runs only for who may see the page: not for an agent of another browser, nor for one whose
// subscription outlives a grant.
func TestReaderRunsForNobodyElse(t *testing.T) {
	for _, first := range []PageInfo{{Launched: true}, {Granted: true}} {
		g := newGateway(t, Options{})
		waits, _ := openAgentWith(t, g, AgentOptions{Opened: []string{app}})
		info := byUser("a")
		info.Launched, info.Granted = first.Launched, first.Granted
		p := openPage(t, g, info, map[string]string{shownURI: "of a"})
		waits.Watch(shownURI)
		if !p.page.Watches(shownURI) {
			t.Error("the first page is not followed")
		}
		named, _ := openAgentWith(t, g, names)
		q := showPage(t, g, "b", "of b")
		p.Close("its tab was closed")
		named.Shows(shownURI)
		q.page.Touch(shownURI)
		if text, err := waits.Read(shownURI); err == nil {
			t.Errorf("another page is read: %q", text)
		}
		if q.page.Watches(shownURI) {
			t.Error("it is followed")
		}
		named.Watch(shownURI)
		if !q.page.Watches(shownURI) {
			t.Error("it is not followed for who may see it")
		}
	}
}

// A stream of all events runs no readers: nobody has asked for these pages. One that names their
// origin does.
func TestEventsOfAllPages(t *testing.T) {
	g := newGateway(t, Options{})
	a := openEventAgent(t, g, names)
	p := showPage(t, g, "a", "one")
	var streams []string
	for _, all := range []string{`{}`, `{"uriPrefix":"https:"}`, `{"uriPrefix":"https://"}`} {
		stream, _ := a.stream(events.Updated, all, "")
		streams = append(streams, stream)
	}
	q := showPage(t, g, "b", "one") // it comes later
	doc := openPage(t, g, tabInfo("c"), map[string]string{app + "/doc": "1"})
	testkit.Eventually(t, "the page is followed", func() bool { return doc.page.Watches(app + "/doc") })
	if p.page.Watches(shownURI) || q.page.Watches(shownURI) {
		t.Error("a reader runs")
	}
	doc.set(app+"/doc", "2")
	for _, stream := range streams {
		a.event(stream, app+"/doc")
	}
	for _, one := range []string{`{"origin":"` + app + `"}`, `{"uriPrefix":"` + app + ShownPath + `"}`} {
		stream, _ := a.stream(events.Updated, one, "")
		testkit.Eventually(t, "the page is followed", func() bool { return q.page.Watches(shownURI) })
		q.set(shownURI, "two, by "+one)
		a.event(stream, shownURI)
	}
}

// The name of a profile decides which pages are shown, too.
func TestShownPagesOfProfiles(t *testing.T) {
	g := newGateway(t, Options{})
	info := byUser("a")
	info.Source = "a browser"
	told := make(chan bool, 100)
	defer g.WhenNamed(func() { told <- true })()
	a, _ := openAgentWith(t, g, AgentOptions{Shown: []string{app}, Only: []string{"profile=Work"}})
	testkit.Receive(t, "the agent has come", told)
	for name, want := range map[string]bool{"Private": false, "Work": true} {
		release := g.NameProfile("a browser", name)
		testkit.Receive(t, "the profile has a name", told)
		if g.IsNamed(info) != want {
			t.Errorf("a page of the profile %s is shown: %t", name, !want)
		}
		release()
		testkit.Receive(t, "the profile has none", told)
	}
	// A tab of another profile takes over the URI.
	release := g.NameProfile("a browser", "Work")
	work := openPage(t, g, info, map[string]string{shownURI: "of Work"})
	a.CheckText(shownURI, "of Work")
	a.Watch(shownURI)
	texts := a.must(calls.Read, map[string]any{"uri": shownURI})
	waits := make(chan []string)
	go func() {
		texts, _ := a.tool(calls.Wait, map[string]any{"uris": []string{shownURI}, "since": fields(t, texts).Revision})
		waits <- texts
	}()
	testkit.Eventually(t, "the agent waits", func() bool {
		defer g.lock()()
		return len(g.calls) == 1
	})
	other := showPage(t, g, "b", "of another")
	other.page.OnRead = func(uri string) { t.Errorf("the other profile's page is read: %s", uri) }
	g.Focus("b")
	if text, err := a.Read(shownURI); err == nil {
		t.Errorf("read %q", text)
	}
	other.set(shownURI, "of another, too")
	a.CheckText(shownURI+"/tab/1", "of Work")
	g.Focus("a")
	work.set(shownURI, "of Work again")
	if got := strings.Join(testkit.Receive(t, "the wait ends", waits), " "); !strings.Contains(got, "of Work again") {
		t.Errorf("told %q", got)
	}
	a.CheckText(shownURI, "of Work again")
	a.Told(shownURI)
	release()
	if text, err := a.Read(shownURI); err == nil || len(a.titles()) > 0 {
		t.Errorf("read %q of a profile without a name", text)
	}
}

// A page's templates answer for nothing of what the user offers, however a URI is written, and nobody
// whose user has not named the page waits for that.
func TestTemplatesBesideShownPages(t *testing.T) {
	for _, template := range []string{"/{a}/{b}", "/{+a}", "/{a}{+b}", "/{a}", "/.{a}/shown", "/.page{+a}", "/.pagewir{a}/{b}", "/{?a,b}", "{/a*}",
		"/%2Epagewire/{a}", "/.pagewire%2F{a}", "//{a}/{+b}", "/./{+a}", "/x/..{+a}"} {
		g := newGateway(t, Options{})
		named, _ := openAgentWith(t, g, names)
		other := openAgent(t, g)
		openPage(t, g, tabInfo("a"), map[string]string{app + template: "of the page"})
		for _, shows := range []bool{false, true} {
			for _, path := range []string{"/.pagewire/shown", "/.pagewire/shown?from=1", "/.pagewire/shown/tab/1", "/.pagewire/parts/a",
				"/.pagewire/shown/..", "/.pagewire/%73hown", "/%2epagewire/shown", "/.pagewire%2fshown", "/.PAGEWIRE/shown", "//.pagewire/shown",
				"/./.pagewire/shown", "/x/../.pagewire/shown", "/.pagewire/shown#a", "/.pagewire/shown%3Ffrom=1", "/.pagewire/shown/{a}",
				"/.pagewire/shown\u200b", "/.pagewire/./shown"} {
				uri := app + path
				text, err := other.Read(uri)
				if err == nil && strings.Contains(text, "of the user") {
					t.Errorf("%s: %s reads as %q for others", template, uri, text)
				}
				if err := other.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err == nil && IsShown(uri) {
					t.Errorf("%s: others subscribe to %s", template, uri)
				}
				if text, err := named.Read(uri); err == nil && IsShown(uri) && strings.Contains(text, "of the page") {
					t.Errorf("%s: the page answers for %s", template, uri)
				}
			}
			if !shows {
				showPage(t, g, "b", "of the user")
			}
		}
	}
}

// A hook of a program that has read nothing of what pages show makes no reader run. Once the agent has
// read it, or the user has chosen its site, the hook tells of its changes.
func TestPromptBesideShownPages(t *testing.T) {
	g := newGateway(t, Options{})
	a, end := openAgentWith(t, g, names)
	p := showPage(t, g, "a", "one")
	for range 2 {
		if text := changes(t, end, calls.Ask{Session: talk}); strings.Contains(text, ".pagewire") {
			t.Errorf("told %q", text)
		}
		end.Unknown(nil)
	}
	if p.page.Asked() > 0 || p.page.Watches(shownURI) {
		t.Error("a reader runs")
	}
	a.must(calls.Read, map[string]any{"uri": shownURI})
	p.change(g, shownURI, "two")
	if text := changes(t, end, calls.Ask{Session: talk}); !strings.Contains(text, shownURI) {
		t.Errorf("told %q", text)
	}
	q := showPage(t, g, "b", "three")
	g.Focus("b")
	chosen := calls.Ask{Session: talk, Inline: []string{app}}
	changes(t, end, chosen)
	q.change(g, shownURI, "four")
	if text := changes(t, end, chosen); !strings.Contains(text, "four") {
		t.Errorf("told %q", text)
	}
}
