package gateway

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
)

// routes is the Gateway as its catalog sees it. It passes each change of routes on: to the engine,
// to those who follow resources, to the subscribers of events, to the tab in front and to the list
// of tools. None of these calls another one because of a change. Its methods run with the lock
// held.
type routes Gateway

var _ catalog.Listener = (*routes)(nil)

func (r *routes) Find(uri string) (key string, ok bool) { return r.engine.Find(uri) }

func (r *routes) Added(e *catalog.Entry) error {
	g, key := (*Gateway)(r), e.Resource.URI
	if err := g.engine.Register(g.now(), e.Resource); err != nil {
		g.log.Warn("a resource could not be offered", "uri", key, "error", err)
		return err
	}
	g.followKey(key, e, false)
	g.offered(key, &e.Resource)
	g.front.noteRoute(e)
	return nil
}

// offered tells the followers of a new resource, whose page may have come back. Subscriptions that
// want it follow it.
func (g *Gateway) offered(key string, r *bridge.Resource) {
	if g.events.Len() == 0 {
		return
	}
	for _, uri := range g.watchedOf(key, r) {
		g.books.Tell(uri)
	}
	g.events.Wished(key, r)
}

func (r *routes) Changed(before, now *catalog.Entry) {
	g, key := (*Gateway)(r), now.Resource.URI
	g.front.noteRoute(before)
	g.front.noteRoute(now)
	g.engine.Replace(g.now(), now.Resource, before.Owner)
	if before.Resource.MinInterval != now.Resource.MinInterval {
		for _, uri := range g.watchedOf(key, &now.Resource) {
			g.books.Paced(uri)
		}
	}
	if before.Resource.Unlisted {
		g.offered(key, &now.Resource)
	}
	if before.Page == now.Page && before.Owner == now.Owner {
		return
	}
	g.engine.Seal(key) // a read under way is of the page before, which later readers may not see
	g.events.Wished(key, &now.Resource)
	if before.Page != now.Page || g.gains(before.Owner, now.Owner) {
		g.followKey(key, now, true)
	}
}

func (r *routes) Removed(e *catalog.Entry) {
	g := (*Gateway)(r)
	g.front.noteRoute(e)
	g.engine.Unregister(g.now(), e.Resource.URI)
	g.events.Gone()
}

func (r *routes) Withdrawn(o *catalog.Offer) {
	p, offered := pageOf(o.Page), &o.Resource
	p.follows.Forget(offered.URI)
	if answersForMore(offered.URI, offered) {
		r.books.CheckPage(p.follows)
		return
	}
	for _, uri := range p.uris(offered.URI) {
		r.books.Check(uri)
	}
}

func (r *routes) OwnerChanged(*catalog.Page) { (*Gateway)(r).revoke() }

func (r *routes) PagesChanged() {
	g := (*Gateway)(r)
	g.retool()
	g.books.CheckAll()
}

// gains reports whether an agent sees what is one owner's, and not what is another's.
func (g *Gateway) gains(before, now bridge.Owner) bool {
	for _, a := range g.agents {
		if a.pass.Permits(now) && !a.pass.Permits(before) {
			return true
		}
	}
	return false
}

// pageOf is the page that a page of the catalog stands for.
func pageOf(p *catalog.Page) *Page { return p.Attached.(*Page) }

// pages are those that have offered something.
func (g *Gateway) pages(yield func(*Page) bool) {
	g.catalog.Pages(func(p *catalog.Page) bool { return yield(pageOf(p)) })
}

// attached are also those that have offered nothing yet.
func (g *Gateway) attached(yield func(*Page) bool) {
	g.catalog.Attached()(func(p *catalog.Page) bool { return yield(pageOf(p)) })
}

// find is the page that has a URI or a template now, for the door.
func (g *Gateway) find(uri string) (*Page, bool) {
	if p := g.catalog.PageOf(uri); p != nil {
		return pageOf(p), true
	}
	return nil, false
}
