package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// Almost no page offers resources. So the user, too, can offer a page: agents whose user has named
// its origin get what it shows, and parts of it. A transport attaches a source of that beside the
// page's own, with PageInfo.Shown. Such a source is a Page like any other, but for its URIs, which
// no other Page may have, and for the door, which hides it from agents whose user has not named its
// origin. Its titles are the gateway's words.

const (
	// ShownPath is the path of what a page shows, at its origin.
	ShownPath = bridge.GatewayPath + "shown"
	// PartsPath begins the paths of the parts that the user has chosen. The name of a part follows.
	PartsPath = bridge.GatewayPath + "parts/"
)

// shows is what the gateway knows about pages that the user shows. The gateway's lock guards it.
type shows struct {
	offered bool // there has been one: agents are restricted
	always  *pass
	tabs    map[string]PageInfo // that browsers report, by key; at most maxTabs
	changed map[*func()]bool    // called when other origins may be named
	counted map[*counted]bool   // that extensions report
}

// A counted has the number of tabs of a browser that offer nothing, as its extension tells.
type counted struct {
	n       int
	targets []string // keys by CDP of some of them
	name    func(context.Context) []PageInfo
}

// IsShown reports whether a URI is one of what the user offers, and not of what a page does.
func IsShown(uri string) bool { return taburi.Shown(uri) }

// ownsShown reports whether a URI is one of a source of what a page shows. It may have a query.
func (p *Page) ownsShown(uri string) bool {
	rest, ok := strings.CutPrefix(uri, p.Origin+bridge.GatewayPath)
	path, _, _ := strings.Cut(rest, "?")
	name, part := strings.CutPrefix(path, "parts/")
	return ok && (path == "shown" || part && name != "" && !strings.ContainsAny(name, "/{#"))
}

// showing prepares for a page that is about to be attached.
func (g *Gateway) showing(p *Page) {
	if !p.Shown || g.shows.offered {
		return
	}
	g.shows.offered = true
	for _, a := range g.agents {
		g.restrict(a)
	}
}

func (g *Gateway) ownerOf(info PageInfo) bridge.Owner { return (&Page{PageInfo: info, g: g}).Owner() }

// IsNamed reports whether the user of some agent has named a page's origin, so that the page is to
// be shown.
func (g *Gateway) IsNamed(info PageInfo) bool {
	defer g.lock()()
	o := g.ownerOf(info)
	for _, a := range g.agents {
		if a.transport != TransportRequest && a.pass.Names(o) {
			return true
		}
	}
	return g.shows.always.Names(o)
}

// Parts returns the rules for the parts of a page that IsNamed, by name. If several agents have a
// rule of one name, the agent that came first decides.
func (g *Gateway) Parts(info PageInfo) map[string]parts.Rule {
	defer g.lock()()
	o := g.ownerOf(info)
	found := map[string]parts.Rule{}
	add := func(p *pass, rules parts.Rules) {
		if len(rules) > 0 && p.Names(o) {
			maps.Copy(found, rules.Of(info.Origin, info.URL))
		}
	}
	add(g.shows.always, g.opt.Parts)
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(g.agents))) {
		if a := g.agents[id]; a.transport != TransportRequest {
			add(a.pass, a.parts)
		}
	}
	return found
}

// SetParts puts rules in place of those that a file had, and reports whether anybody has that file.
func (g *Gateway) SetParts(file string, rules parts.Rules) (used bool) {
	defer g.lock()()
	if file == "" {
		return false
	}
	if file == g.opt.PartsFile {
		g.opt.Parts, used = rules, true
	}
	for _, a := range g.agents {
		if file == a.partsFile {
			a.parts, used = rules, true
		}
	}
	if used && !g.closed {
		g.renamed()
	}
	return used
}

// WhenNamed calls f, in a goroutine of its own, whenever IsNamed and Parts may have other answers,
// until end is called.
func (g *Gateway) WhenNamed(f func()) (end func()) {
	defer g.lock()()
	g.shows.changed[&f] = true
	return sync.OnceFunc(g.locked(func() { delete(g.shows.changed, &f) }))
}

// named is called when an agent has come or gone. One that lasts for one request names no origins:
// Options do.
func (g *Gateway) named(a *Agent) {
	if a.pass.NamesAny() && !g.closed && a.transport != TransportRequest {
		g.renamed()
	}
}

// renamed calls the functions of WhenNamed. Requests wait meanwhile, as for a look.
func (g *Gateway) renamed() {
	for f := range g.shows.changed {
		seen := g.looking()
		go func() { // it may take locks that are taken before ours
			(*f)()
			seen()
		}()
	}
}

// kinds name a page in the log, by PageInfo.Shown.
var kinds = map[bool]string{false: "page", true: "what a page shows is"}

// titled is the title of an offer, without its page. A page's may not say that the user offers it.
func (o *offer) titled() string {
	uri, title := o.resource.URI, cmp.Or(o.resource.Title, o.resource.Name)
	switch part, isPart := strings.CutPrefix(uri, o.page.Origin+PartsPath); {
	case o.page.Shown && isPart:
		return "A part of the page (offered by the user): " + part
	case o.page.Shown:
		return "What the page shows (offered by the user)"
	case saysOffered(title + o.page.where):
		return notOffered
	}
	return title
}

// notOffered is in place of what saysOffered.
const notOffered = "a resource of the page"

// saysOffered reports whether a page's words say that the user offers something.
func saysOffered(words string) bool {
	return strings.Contains(strings.Map(onlyLetters, words), "offeredbytheuser")
}

func onlyLetters(r rune) rune {
	if unicode.IsLetter(r) {
		return unicode.ToLower(r)
	}
	return -1
}

// standsBack reports whether the page offers resources of its own, so that what it shows is not
// listed.
func (o *offer) standsBack() bool {
	p := o.page
	if !p.Shown || o.base != p.Origin+ShownPath {
		return false
	}
	for q := range p.tab.pages {
		if !q.Shown && q.Frame == p.Frame && q.Origin == p.Origin && len(q.offers) > 0 {
			return true
		}
	}
	return false
}

// relist marks what a page shows as out of date, since that stands back once the page offers
// something of its own.
func (c *catalog) relist(p *Page) {
	if p.Shown || len(p.offers) > 1 {
		return
	}
	for q := range p.tab.pages {
		if q.Shown {
			for _, o := range q.offers {
				c.markAll(o)
			}
		}
	}
}

// onlyShows reports whether a tab has only sources of what its documents show, which may have come
// before its page did in another way.
func (t *tab) onlyShows() bool {
	if t == nil {
		return false
	}
	for p := range t.pages {
		if !p.Shown {
			return false
		}
	}
	return true
}

// gather brings what a document shows into the tab of its page, when it is known that both are in
// one: a page may have connected by itself first.
func (g *Gateway) gather(key string, t *tab) {
	c, from := &g.catalog, g.catalog.tabs[key]
	if from == t || !from.onlyShows() {
		return
	}
	maps.DeleteFunc(c.tabs, func(_ string, other *tab) bool { return other == from })
	for p := range from.pages {
		p.tab, t.pages[p] = t, true
		for _, o := range p.offers {
			c.release(o)
			o.segment = p.segment()
			for _, key := range o.keys() {
				c.claim(key, o)
			}
		}
		g.redescribe(p)
	}
	if from.focused == c.focuses && c.focus(t) {
		g.reown(t)
	}
}

// unite brings what the extension shows of a tab, and what CDP knows of that, into one tab.
func (g *Gateway) unite(p *Page) {
	c, key := &g.catalog, p.Target
	if key == "" || p.life != Here {
		return
	}
	if other := c.tabs[key]; other != nil {
		for q := range other.pages {
			if differ(p.profile(), q.profile()) {
				return // it is not a tab of that browser
			}
		}
		g.gather(p.Tab, other)
		g.gather(key, p.tab)
	}
	c.alias(p.tab, p.Tab)
	c.alias(p.tab, key)
	g.focusNow(p)
}

// maxTabs bounds shows.tabs.
const maxTabs = 1000

// TabShows reports the document of an open tab, whether or not it offers something, and whenever
// its title or URL changes. With "" as info.Origin it has none, or is not known any more.
func (g *Gateway) TabShows(info PageInfo) {
	defer g.lock()()
	if delete(g.shows.tabs, info.Tab); info.Origin == "" || len(g.shows.tabs) >= maxTabs {
		return
	}
	info.URL = withoutQuery(info.URL)
	g.shows.tabs[info.Tab] = info.bounded()
}

// CountTabs takes the number of a browser's tabs that offer nothing, from its extension, until end
// is called: count, with the keys by CDP of those that are known by CDP, too. name asks which these
// tabs are. It may answer nothing.
func (g *Gateway) CountTabs(name func(context.Context) []PageInfo) (count func(int, []string), end func()) {
	defer g.lock()()
	c := &counted{name: name}
	g.shows.counted[c] = true
	count = func(n int, targets []string) {
		defer g.lock()()
		c.n, c.targets = n, targets
	}
	return count, sync.OnceFunc(g.locked(func() { delete(g.shows.counted, c) }))
}

// BareTabs are the open tabs that offer nothing to any agent, in order. They are for the user's
// eyes alone. Extensions are asked until ctx ends.
func (g *Gateway) BareTabs(ctx context.Context) (tabs []PageInfo) {
	unlock := g.lock()
	counted := slices.Collect(maps.Keys(g.shows.counted))
	unlock()
	named := make(chan []PageInfo)
	for _, c := range counted { // all at once: one may not answer
		go func() { named <- c.name(ctx) }()
	}
	for range counted {
		tabs = append(tabs, <-named...)
	}
	defer g.lock()()
	tabs = slices.DeleteFunc(tabs, func(info PageInfo) bool {
		_, known := g.shows.tabs[info.Target]
		return known
	})
	for key, info := range g.shows.tabs {
		if g.isBare(key, info, g.all) {
			tabs = append(tabs, info)
		}
	}
	slices.SortFunc(tabs, func(a, b PageInfo) int { return strings.Compare(a.URL, b.URL) })
	return tabs
}

// isBare reports whether a tab offers nothing to an agent. A tab outside its scope does not count.
func (g *Gateway) isBare(key string, info PageInfo, p *pass) bool {
	if !p.Permits(g.ownerOf(info)) {
		return false
	}
	if t := g.catalog.tabs[key]; t != nil {
		for page := range t.pages {
			if len(page.offers)+len(page.published) > 0 && p.Permits(page.Owner()) {
				return false
			}
		}
	}
	return true
}

// noticeOfTabs is a sentence about the open tabs that offer an agent nothing, or "". It says how
// many they are, and never which. An extension tells no sites, so an agent of some sites is told
// only of tabs that are known by CDP.
func (g *Gateway) noticeOfTabs(a *Agent) string {
	n := 0
	for key, info := range g.shows.tabs {
		n += truth(g.isBare(key, info, a.pass))
	}
	for c := range g.shows.counted {
		if a.pass.Restricts(false, false) || !g.door.ServesAll() {
			break
		}
		n += c.n
		for _, key := range c.targets {
			_, known := g.shows.tabs[key]
			n -= truth(known)
		}
	}
	if n <= 0 {
		return ""
	}
	return "Open tabs that offer you nothing: " + strconv.Itoa(n) + ". Only your user can let you read what " +
		"the pages of a site show: by the extension's popup, or by pagewire serve --shown ORIGIN."
}
