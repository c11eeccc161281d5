package gateway

import (
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// However many agents watch a URI, its page has one subscription.

// An interest is a URI that agents watch or ask to watch.
type interest struct {
	watched bool
	asking  int // agents whose subscription waits for the page's consent
	updates int // changes that pages reported since the interest began
}

// A watch is a subscription at a page.
type watch struct {
	active   bool     // the page has answered and reports changes from then on, or it has gone
	then     []func() // called then, with the lock held
	revision int64    // the last one that the page reported
}

// settle makes the watch active, and calls the functions that wait for that.
func (w *watch) settle() {
	then := w.then
	w.active, w.then = true, nil
	for _, f := range then {
		f()
	}
}

// changed receives a page's report that its resource reads differently now.
func (g *Gateway) changed(p *Page, own string) {
	if p.Life() == catalog.Silent || p.Life() == catalog.Gone {
		return
	}
	g.counts.updates++
	for _, uri := range []string{own, taburi.Of(own, p.Segment())} { // which may be templates, or lead to another document
		if q, ok := g.find(uri); ok && q == p {
			g.touch(uri)
		}
	}
}

// touch announces a change to the agents that watch a URI.
func (g *Gateway) touch(uri string) {
	if in := g.interest[uri]; in != nil {
		in.updates++
	}
	g.eventTouched(uri)
	g.engine.Touch(g.now(), uri)
}

// Touch announces that a URI, as agents know it, may read differently now.
func (g *Gateway) Touch(uri string) {
	defer g.lock()()
	g.touch(uri)
}

// maxMissed bounds the remembered URIs that agents asked for in vain.
const maxMissed = 256

// addMissed notes a URI that an agent has asked for in vain.
func (g *Gateway) addMissed(uri string) {
	if g.opt.Found == nil || slices.Contains(g.missed, uri) {
		return
	}
	if len(g.missed) == maxMissed {
		g.missed = slices.Delete(g.missed, 0, 1)
	}
	g.missed = append(g.missed, uri)
}

// reportFound reports the missed URIs for which a key of the engine now answers.
func (g *Gateway) reportFound(key string, r *bridge.Resource) {
	wide := answersForMore(key, r)
	g.missed = slices.DeleteFunc(g.missed, func(uri string) bool {
		found := uri == key || wide && g.leads(uri, key)
		if found {
			g.opt.Found(uri)
		}
		return found
	})
}

// Subscribe answers after the page has: from then on the agent misses no change.
func (h *host) Subscribe(id bridge.CallID, _ bridge.PortID, uri string) {
	g := (*Gateway)(h)
	in := g.interestIn(uri)
	in.asking++
	g.calls[id] = &call{id: id, cancel: func() { // End calls it
		in.asking--
		g.release(uri)
	}}
	g.whenFollowed(uri, func() { g.engine.Complete(g.now(), id, bridge.Result{}) })
}

func (g *Gateway) interestIn(uri string) *interest {
	if g.interest[uri] == nil {
		g.interest[uri] = &interest{}
	}
	return g.interest[uri]
}

// whenFollowed calls then once the page of an agents' URI reports the URI's changes. Without a page it calls then at
// once.
func (g *Gateway) whenFollowed(uri string, then func()) {
	if p, own := g.lookup(uri); p != nil && !p.Life().Left() && g.reaches(uri, p) {
		g.follow(p, own, then)
	} else {
		then()
	}
}

// reaches reports whether an interest in a URI makes a page follow it. What a page shows is followed only
// for who sees it: a reader runs.
func (g *Gateway) reaches(uri string, p *Page) bool {
	in := g.interest[uri]
	return !p.Shown || in != nil && in.asking > 0 || g.engine.IsWatched(uri)
}

// Unsubscribe needs no answer of the page.
func (h *host) Unsubscribe(id bridge.CallID, _ bridge.PortID, _ string) {
	if id != 0 {
		h.engine.Complete((*Gateway)(h).now(), id, bridge.Result{})
	}
}

func (h *host) Watched(uri string, on bool) {
	g := (*Gateway)(h)
	if g.interestIn(uri).watched = on; on {
		g.whenFollowed(uri, func() {})
	}
	g.release(uri)
}

// release makes sweep end the interest in a URI if it has no watchers. It does not end here, because the engine calls
// End for a subscription before the Watched that follows from it.
func (g *Gateway) release(uri string) { g.released = append(g.released, uri) }

// sweep announces the URIs that lead to another page now. It ends released interests, and the watches of resources that
// a page has withdrawn and not offered again. The interests in such resources stay.
func (g *Gateway) sweep() {
	for uri := range g.moved {
		g.engine.Touch(g.now(), uri)
	}
	clear(g.moved)
	wide := map[*Page]bool{}
	for _, o := range g.withdrawn {
		p, r := pageOf(o.Page()), o.Resource()
		if answersForMore(r.URI, &r) {
			wide[p] = true
		} else {
			g.unfollow(p, r.URI)
		}
	}
	g.withdrawn = nil
	for p := range wide {
		for own := range p.watches {
			g.unfollow(p, own)
		}
	}
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

// leads reports whether a key of the engine answers for an agents' URI.
func (g *Gateway) leads(uri, key string) bool {
	found, ok := g.engine.Find(uri)
	return ok && found == key
}

// follow watches a URI at its page. It calls then, with the lock held, when the page reports changes or has gone.
func (g *Gateway) follow(p *Page, own string, then func()) {
	w := p.watches[own]
	switch {
	case taburi.Reserved(own) && !p.owns(own): // a template of the page matches it: no change of it counts
		then()
	case w == nil: // the page answers by a touch: pageCore.Touch
		p.watches[own] = &watch{then: []func(){then}}
		p.link.watched(own, true)
	case w.active:
		then()
	default:
		w.then = append(w.then, then)
	}
}

// unfollow ends a subscription at a page, unless agents watch the resource under another URI.
func (g *Gateway) unfollow(p *Page, own string) {
	if p.watches[own] == nil || p.Life().Left() {
		return
	}
	for _, uri := range []string{own, taburi.Of(own, p.Segment())} {
		if g.interest[uri] != nil && g.reaches(uri, p) {
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

// settle adapts the subscriptions at the pages to the interests, after the catalog has changed.
func (g *Gateway) settle() {
	needed := map[*Page]map[string]bool{}
	for uri := range g.interest {
		p, own := g.lookup(uri)
		if p == nil || p.Life().Left() || !g.reaches(uri, p) {
			continue
		}
		if needed[p] == nil {
			needed[p] = map[string]bool{}
		}
		needed[p][own] = true
		g.follow(p, own, func() {})
	}
	for p := range g.pages {
		for own := range p.watches {
			if !needed[p][own] {
				g.unfollow(p, own)
			}
		}
	}
}

// followKey follows the watched URIs of a key at the page that answers for it now. If another page answered before
// (moved), it announces a change. With Options.Found, an agent may have read the resource through another gateway
// before this page reported changes: if the page has had a change, it is announced again.
func (g *Gateway) followKey(key string, r *catalog.Entry, moved bool) {
	if r.Page.Life().Left() {
		return
	}
	p := pageOf(r.Page)
	g.reportFound(key, &r.Resource)
	for _, uri := range g.watchedOf(key, &r.Resource) {
		if !g.reaches(uri, p) {
			continue
		}
		own := r.Own(uri)
		g.follow(p, own, func() {
			w := p.watches[own] // nil if the page has gone instead
			if moved || g.opt.Found != nil && w != nil && w.revision > 0 {
				g.moved[uri] = true
			}
		})
	}
}

// answersForMore reports whether a key of the engine answers for other URIs too.
func answersForMore(key string, r *bridge.Resource) bool {
	return strings.Contains(key, "{") || r.Schema != nil
}

// watchedOf returns the URIs of interests for which a key of the engine answers.
func (g *Gateway) watchedOf(key string, r *bridge.Resource) (uris []string) {
	if !answersForMore(key, r) {
		if g.interest[key] != nil {
			uris = append(uris, key)
		}
		return uris
	}
	for uri := range g.interest {
		if g.leads(uri, key) {
			uris = append(uris, uri)
		}
	}
	return uris
}
