package gateway

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
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
	ShownPath = catalog.ShownPath
	// PartsPath begins the paths of the parts that the user has chosen. The name of a part follows.
	PartsPath = catalog.PartsPath
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

// IsNamed reports whether the user of some agent has named a page's origin, so that the page is to
// be shown.
func (g *Gateway) IsNamed(info PageInfo) bool {
	defer g.lock()()
	o := g.catalog.OwnerOf(&info)
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
	o := g.catalog.OwnerOf(&info)
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
	g.shows.tabs[info.Tab] = bounded(info)
}

// CountTabs takes the number of a browser's tabs that offer nothing, from its extension, until end
// is called: count, with the keys by CDP of those that are known by CDP, too. name asks which these
// tabs are. It may answer nothing.
func (g *Gateway) CountTabs(name func(context.Context) []PageInfo) (
	count func(int, []string), end func()) {
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
	if !p.Permits(g.catalog.OwnerOf(&info)) {
		return false
	}
	for page := range g.catalog.PagesIn(key) {
		if len(page.Offers)+len(pageOf(page).published) > 0 && p.Permits(page.Owner()) {
			return false
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
	return "Open tabs that offer you nothing: " + strconv.Itoa(n) +
		". Only your user can let you read what " +
		"the pages of a site show: by the extension's popup, or by pagewire serve --shown ORIGIN."
}
