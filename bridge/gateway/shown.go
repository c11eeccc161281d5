package gateway

import (
	"cmp"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge"
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
	changed map[*func()]bool // called when other origins may be named
}

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
	o := g.newPage(info).Owner()
	for _, a := range g.agents {
		if a.pass.Names(o) {
			return true
		}
	}
	return g.shows.always.Names(o)
}

// WhenNamed calls f, in a goroutine of its own, whenever IsNamed may have other answers, until end
// is called.
func (g *Gateway) WhenNamed(f func()) (end func()) {
	defer g.lock()()
	if g.shows.changed == nil {
		g.shows.changed = map[*func()]bool{}
	}
	g.shows.changed[&f] = true
	return sync.OnceFunc(g.locked(func() { delete(g.shows.changed, &f) }))
}

// named calls the functions of WhenNamed, since an agent that names origins has come or gone.
func (g *Gateway) named(a *Agent) {
	if !a.pass.NamesAny() || g.closed {
		return
	}
	for f := range g.shows.changed {
		seen := g.looking()
		go func() { // it may take locks that are taken before ours
			(*f)()
			seen()
		}()
	}
}

// titled is the title of an offer, without its page. A page's may not say that the user offers it.
func (o *offer) titled() string {
	uri, title := o.resource.URI, cmp.Or(o.resource.Title, o.resource.Name)
	switch part, isPart := strings.CutPrefix(uri, o.page.Origin+PartsPath); {
	case o.page.Shown && isPart:
		return "A part of the page (offered by the user): " + part
	case o.page.Shown:
		return "What the page shows (offered by the user)"
	case strings.Contains(strings.ToLower(title), "offered by the user"):
		return "a resource of the page"
	}
	return title
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
