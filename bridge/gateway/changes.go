//go:build !js

package gateway

import (
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
)

// What agents watch is subscribed to at its page, once however many they are.

// An interest is a URI that agents watch, or ask to.
type interest struct {
	watched bool
	asking  int // agents whose subscription waits for the page's consent
	updates int // that pages told since somebody is interested
}

// A watch is a URI that is watched at its page.
type watch struct {
	active   bool     // the page has answered, and tells of changes from then on; or it has gone
	then     []func() // what waits for that; with the lock held
	revision int64    // the last that the page told
}

// settle does what waits for a watch.
func (w *watch) settle() {
	then := w.then
	w.active, w.then = true, nil
	for _, f := range then {
		f()
	}
}

// changed is a page's word that a resource of its own reads differently now.
func (g *Gateway) changed(p *Page, own string) {
	if p.gone || p.tab == nil {
		return
	}
	g.counts.updates++
	r := g.catalog.routes[own] // of a template too, which is no URI that the engine finds
	if key, ok := g.engine.Find(own); ok {
		r = g.catalog.routes[key]
	}
	if r != nil && r.page == p {
		g.touch(own)
	}
	g.touch(taburi.Of(own, p.segment()))
}

// touch passes a change on to those who watch an agents' URI.
func (g *Gateway) touch(uri string) {
	if in := g.interest[uri]; in != nil {
		in.updates++
	}
	g.engine.Touch(g.now(), uri)
}

// Touch tells who watches an agents' URI that it may read differently now.
func (g *Gateway) Touch(uri string) {
	g.mu.Lock()
	defer g.unlock()
	g.touch(uri)
}

// maxMissed bounds the URIs that were asked for in vain and are remembered.
const maxMissed = 256

// miss notes a URI that an agent has asked for in vain.
func (g *Gateway) miss(uri string) {
	if g.opt.Found == nil || slices.Contains(g.missed, uri) {
		return
	}
	if len(g.missed) == maxMissed {
		g.missed = slices.Delete(g.missed, 0, 1)
	}
	g.missed = append(g.missed, uri)
}

// find tells of what was asked for in vain and that a key of the engine answers for now.
func (g *Gateway) find(key string, r *bridge.Resource) {
	wide := answersForMore(key, r)
	g.missed = slices.DeleteFunc(g.missed, func(uri string) bool {
		found := uri == key
		if wide {
			k, ok := g.engine.Find(uri)
			found = ok && k == key
		}
		if found {
			g.opt.Found(uri)
		}
		return found
	})
}

// Subscribe asks the page first: an agent that has its answer misses no change.
func (h *host) Subscribe(id bridge.CallID, _ bridge.PortID, uri string) {
	g := (*Gateway)(h)
	c := &call{id: id}
	g.calls[id] = c
	in := g.interest[uri]
	if in == nil {
		in = &interest{}
		g.interest[uri] = in
	}
	in.asking++
	c.cancel = func() { // with End
		in.asking--
		g.release(uri)
	}
	g.whenFollowed(uri, func() { g.engine.Complete(g.now(), id, bridge.Result{}) })
}

// whenFollowed calls then when the page that answers for an agents' URI tells of its changes, or there is none.
func (g *Gateway) whenFollowed(uri string, then func()) {
	if p, own := g.lookup(uri); p != nil && !p.absent {
		g.follow(p, own, then)
	} else {
		then()
	}
}

// Unsubscribe needs no page's consent.
func (h *host) Unsubscribe(id bridge.CallID, _ bridge.PortID, _ string) {
	if id != 0 {
		h.engine.Complete((*Gateway)(h).now(), id, bridge.Result{})
	}
}

func (h *host) Watched(uri string, on bool) {
	g := (*Gateway)(h)
	in := g.interest[uri]
	if in == nil {
		in = &interest{}
		g.interest[uri] = in
	}
	in.watched = on
	if on {
		g.whenFollowed(uri, func() {})
	}
	g.release(uri)
}

// release ends what nobody is interested in any more, when the engine has said all that it has to say: End of a
// question comes before the Watched that follows from its answer.
func (g *Gateway) release(uri string) { g.released = append(g.released, uri) }

// sweep tells agents of what has moved, and does what release left.
func (g *Gateway) sweep() {
	for uri := range g.moved {
		g.engine.Touch(g.now(), uri)
	}
	clear(g.moved)
	for len(g.released) > 0 {
		uri := g.released[0]
		g.released = g.released[1:]
		in := g.interest[uri]
		if in == nil || in.watched || in.asking > 0 {
			continue
		}
		delete(g.interest, uri)
		if p, own := g.lookup(uri); p != nil {
			g.unfollow(p, own)
		}
	}
	g.released = nil
}

// lookup finds the page that answers for an agent's URI, and what it calls it.
func (g *Gateway) lookup(uri string) (p *Page, own string) {
	key, ok := g.engine.Find(uri)
	if !ok {
		return nil, ""
	}
	r := g.catalog.routes[key]
	if r == nil {
		return nil, ""
	}
	return r.page, r.own(uri)
}

// follow watches a URI at its page; then is called, with the lock held, when the page tells of changes, or has gone.
func (g *Gateway) follow(p *Page, own string, then func()) {
	w := p.watches[own]
	switch {
	case w == nil: // it is answered by a touch: pageCore.Touch
		p.watches[own] = &watch{then: []func(){then}}
		p.link.watched(own, true)
	case w.active:
		then()
	default:
		w.then = append(w.then, then)
	}
}

// unfollow ends a subscription at a page, unless somebody watches the resource by another of its names.
func (g *Gateway) unfollow(p *Page, own string) {
	if p.watches[own] == nil || p.absent {
		return
	}
	for _, uri := range []string{own, taburi.Of(own, p.segment())} {
		if g.interest[uri] != nil {
			if q, o := g.lookup(uri); q == p && o == own {
				return
			}
		}
	}
	w := p.watches[own]
	delete(p.watches, own)
	p.link.watched(own, false)
	w.settle()
}

// settle brings the subscriptions at the pages in line with what is watched, after the catalog has changed.
func (g *Gateway) settle() {
	needed := map[*Page]map[string]bool{}
	for uri := range g.interest {
		p, own := g.lookup(uri)
		if p == nil || p.absent {
			continue
		}
		if needed[p] == nil {
			needed[p] = map[string]bool{}
		}
		needed[p][own] = true
		g.follow(p, own, func() {})
	}
	for p := range g.catalog.pages {
		if p.absent {
			continue
		}
		for own := range p.watches {
			if !needed[p][own] {
				g.unfollow(p, own)
			}
		}
	}
}

// led sees to it that the page which now answers for a key tells of changes of what is watched of it, and, where that
// was another page before, that those who watch are told. Those who have been told already, since the resource has
// come, may have read it elsewhere before the page tells of changes: they are told again, if there was one.
func (g *Gateway) led(key string, r *route, moved bool) {
	if r.page.absent {
		return
	}
	g.find(key, &r.shown)
	g.recall(key, &r.shown)
	for _, uri := range g.watchedOf(key, &r.shown) {
		own := r.own(uri)
		g.follow(r.page, own, func() {
			w := r.page.watches[own] // none any more, if the page has gone instead
			if moved || g.opt.Found != nil && w != nil && w.revision > 0 {
				g.moved[uri] = true
			}
		})
	}
}

// recall has changes counted of what agents were given by an earlier gateway, now that a key of the engine answers for
// it.
func (g *Gateway) recall(key string, r *bridge.Resource) {
	revisions := g.tools.revisions
	var found []string
	if !answersForMore(key, r) {
		if revisions.Recalls(key) {
			found = append(found, key)
		}
	} else {
		for uri := range revisions.Recalled {
			if k, ok := g.engine.Find(uri); ok && k == key {
				found = append(found, uri)
			}
		}
	}
	if len(found) > 0 {
		revisions.Track(found, func(map[string]string) {})
	}
}

// answersForMore reports whether a key of the engine answers for more URIs than itself.
func answersForMore(key string, r *bridge.Resource) bool {
	return strings.Contains(key, "{") || r.Schema != nil
}

// watchedOf are the URIs of interest that a key of the engine answers for.
func (g *Gateway) watchedOf(key string, r *bridge.Resource) (uris []string) {
	if !answersForMore(key, r) {
		if g.interest[key] != nil {
			uris = append(uris, key)
		}
		return uris
	}
	for uri := range g.interest {
		if k, ok := g.engine.Find(uri); ok && k == key {
			uris = append(uris, uri)
		}
	}
	return uris
}
