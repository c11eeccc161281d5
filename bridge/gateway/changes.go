package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// A page's report of a change goes from here to all who follow the URI: by the engine to agents'
// subscriptions and listens, and by package follow to everybody else.

// changed receives a page's report that its resource reads differently now.
func (g *Gateway) changed(p *Page, own string) {
	if p.Life() == catalog.Silent || p.Life() == catalog.Gone {
		return
	}
	g.counts.updates++
	for _, uri := range p.uris(own) { // which may be templates, or lead to another document
		if q, ok := g.find(uri); ok && q == p {
			g.touch(uri)
		}
	}
}

// uris are the agents' URIs that may lead to a page's own URI.
func (p *Page) uris(own string) [2]string {
	return [2]string{own, taburi.Of(own, p.Segment())}
}

// touch announces a change to all who follow a URI, or one of those for which it answers.
func (g *Gateway) touch(uri string) {
	g.books.Reported(uri)
	if e := g.catalog.Entry(uri); e != nil && answersForMore(uri, &e.Resource) {
		page := pageOf(e.Page)
		for own := range page.follows.Watched {
			for _, under := range page.uris(own) {
				if under != uri && g.leads(under, uri) {
					g.books.Implied(under)
				}
			}
		}
	}
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
	c := &call{id: id}
	g.calls[id] = c
	c.cancel = g.books.Ask(uri, func() { g.engine.Complete(g.now(), id, bridge.Result{}) })
}

// Unsubscribe needs no answer of the page. Agents that go on may all be ones that do not see the
// page.
func (h *host) Unsubscribe(id bridge.CallID, _ bridge.PortID, uri string) {
	if h.books.Check(uri); id != 0 {
		h.engine.Complete((*Gateway)(h).now(), id, bridge.Result{})
	}
}

func (h *host) Watched(uri string, on bool) { h.books.Subscribed(uri, on) }

// leads reports whether a key of the engine answers for an agents' URI.
func (g *Gateway) leads(uri, key string) bool {
	found, ok := g.engine.Find(uri)
	return ok && found == key
}

// source is the Gateway as its books see it. Its methods run with the lock held.
type source Gateway

func (s *source) Lead(uri string) (p *follow.Page, own, key string) {
	key, _ = s.engine.Find(uri)
	e := s.catalog.Entry(key)
	if e == nil { // there is none, or it is the front
		return nil, "", key
	}
	page := pageOf(e.Page)
	own = e.Own(uri)
	if page.Life().Left() || taburi.Reserved(own) && !page.owns(own) {
		return nil, "", key // in the second case its template matches: no change counts
	}
	return page.follows, own, key
}

func (s *source) Sees(uri string) bool { return s.engine.IsWatched(uri) }

func (s *source) Refuses(uri string, counted int) (why string) {
	if _, err := s.engine.Resolve(uri); err != nil {
		return err.Error()
	}
	if counted >= events.MaxAllURIs && s.books.MakeRoom() == 0 && s.events.MakeRoom() == 0 {
		return "Subscription limit reached"
	}
	return ""
}

func (s *source) Pace(uri string) (coalesce.Pace, bool) { return s.engine.Pace(uri) }

func (s *source) Moved(uri string) { s.engine.Touch((*Gateway)(s).now(), uri) }

func (s *source) Now() time.Time { return s.opt.wallClock() }

func (s *source) Time() coalesce.Time { return (*Gateway)(s).now() }

// Changed makes the calls that wait for a change look again.
func (s *source) Changed() { s.tools.own.Changed() }

// eventState is events.Options.State.
func (g *Gateway) eventState(uri string) (s events.State) {
	r := g.catalog.EntryOf(uri)
	if r == nil || r.Page.Life().Left() {
		return s
	}
	p := pageOf(r.Page)
	count, ok := p.follows.Count(r.Own(uri), r.Own(r.Resource.URI))
	if !ok {
		return s
	}
	if p.document == "" {
		p.document = events.Document(p.Origin, cmp.Or(p.epoch, fmt.Sprint(p.Tab, " ", p.Order)))
	}
	return events.State{Document: p.document, Count: count, At: g.opt.wallClock()}
}

// ticker is the Gateway as its driver sees it, and the lock of the calls' goroutines.
type ticker Gateway

func (t *ticker) Lock() { (*Gateway)(t).enter() }

func (t *ticker) Unlock() { t.mu.Unlock() }

// Tick and Deadline are the engine's and the books'.
func (t *ticker) Tick(now bridge.Time) {
	t.books.Tick()
	t.engine.Tick(now)
}

func (t *ticker) Deadline() (at bridge.Time, ok bool) {
	at, ok = t.engine.Deadline()
	if due, waits := t.books.Deadline(); waits && (!ok || due < at) {
		return due, true
	}
	return at, ok
}

// followKey follows the watched URIs of a key at the page that answers for it now. If another page
// answered before (moved), it announces a change. With Options.Found, an agent may have read the
// resource through another gateway before this page reported changes: if the page has had a change,
// it is announced again.
func (g *Gateway) followKey(key string, e *catalog.Entry, moved bool) {
	if e.Page.Life().Left() {
		return
	}
	g.reportFound(key, &e.Resource)
	for _, uri := range g.watchedOf(key, &e.Resource) {
		g.books.Led(uri, moved, g.opt.Found != nil)
	}
}

// answersForMore reports whether a key of the engine answers for other URIs too.
func answersForMore(key string, r *bridge.Resource) bool {
	return strings.Contains(key, "{") || r.Schema != nil
}

// watchedOf returns the URIs of interests for which a key of the engine answers.
func (g *Gateway) watchedOf(key string, r *bridge.Resource) (uris []string) {
	if !answersForMore(key, r) {
		if g.books.Follows(key) {
			uris = append(uris, key)
		}
		return uris
	}
	for uri := range g.books.All {
		if g.leads(uri, key) {
			uris = append(uris, uri)
		}
	}
	return uris
}
