package gateway

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

// BrowserOf is the everyday name of the browser that sends a User-Agent; "" if unknown.
func BrowserOf(userAgent string) string {
	for _, of := range [...][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"HeadlessChrome/", "headless Chrome"},
		{"Chrome/", "Chrome"}, {"Firefox/", "Firefox"}, {"Safari/", "Safari"}} {
		if strings.Contains(userAgent, of[0]) {
			return of[1]
		}
	}
	return ""
}

// NameProfile names the profile of a browser until release is called. source is PageInfo.Source of its pages. Of
// several names the last one counts.
func (g *Gateway) NameProfile(source, name string) (release func()) {
	given := &name
	set := func(more ...*string) {
		defer g.lock()()
		others := slices.DeleteFunc(g.profiles[source], func(other *string) bool { return other == given })
		if g.profiles[source] = append(others, more...); len(g.profiles[source]) == 0 {
			delete(g.profiles, source)
		}
		for p := range g.catalog.pages {
			if p.Source == source {
				g.reprofiled(p)
			}
		}
		g.retool()
		g.renamed()
	}
	set(given)
	return func() { set() }
}

// profile is the name that the user has given to the page's profile, or "".
func (p *Page) profile() string {
	if names := p.g.profiles[p.Source]; len(names) > 0 {
		if given := *names[len(names)-1]; !differ(given, p.Profile) {
			return given
		}
		return "" // two ways of the document vouch for different ones
	}
	return p.Profile
}

// Owner is whose the page is, for the door.
func (p *Page) Owner() bridge.Owner {
	return bridge.Owner{
		Origin: p.Origin, Profile: p.profile(), Shown: p.Shown,
		Launched: p.Shown && p.Launched, Granted: p.Shown && p.Granted,
	}
}

// find is the page that has a URI or a template now, for the door.
func (g *Gateway) find(uri string) (*Page, bool) {
	if e := cmp.Or(g.catalog.entries[uri], g.entryOf(uri)); e != nil {
		return e.page, true
	}
	return nil, false
}

// reprofiled brings all in line with a page whose profile may have another name now.
func (g *Gateway) reprofiled(p *Page) {
	if p.life != Silent {
		g.redescribe(p)
	}
	g.revoke()
}

// windowOf is the number of a page's window: that of the window's other pages, or the smallest free one; 0 if unknown.
func (c *catalog) windowOf(p *Page) int {
	if p.Window == "" {
		return 0
	}
	taken := map[int]bool{}
	for other := range c.pages {
		if other != p && other.Window == p.Window {
			return other.window
		}
		taken[other.window] = true
	}
	for n := 1; ; n++ {
		if !taken[n] {
			return n
		}
	}
}

// whereabouts is a text for people: the page's tab and, if known, its window, browser and profile.
func (p *Page) whereabouts() string {
	where := "tab " + strconv.Itoa(p.tab.number)
	if p.window > 0 {
		where += " in window " + strconv.Itoa(p.window)
	}
	if p.Browser != "" {
		where += " of " + p.Browser
	}
	if profile := p.profile(); profile != "" {
		where += ", profile " + profile
	}
	return where
}
