package gateway

import (
	"maps"
	"reflect"
	"slices"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// One document is one page, however many ways it connects: by its own WebSocket, by the extension,
// by CDP. The first link of a document becomes its Page. Each further one joins that Page as a way
// of it.
//
// Two links belong to one document if they have the same epoch, a random text that the page layer makes for each
// document, and the same origin. The epoch is the page's word, so it counts only with what the transports vouch for:
//   - Two different profiles are two documents. A link without a profile (CDP, WebSocket) may belong to any: it joins if
//     one document alone has its epoch. The page then has the profile that one of its ways vouches for, for life, so
//     that an agent of that profile sees the page, and one of another profile does not. If the user later gives a
//     second name to it, it has no profile: no agent that is limited to profiles sees it.
//   - A document has one way of each transport. A second one is another document that repeats the epoch, and stays a
//     page of its own, unless it comes from the same place: then the document has connected anew, and the first is dead.
//
// One way is in use (Page.link). The others are reserves: their frames are taken, so that they can
// stand in at once, and nothing of them reaches agents. A better way is used as soon as its offers
// are here.

// rank is greater for a better transport. CDP tells at once that a document ends and which one
// follows in its tab, knows the windows and the focus of all tabs, and answers soonest (0.3 ms).
// The extension knows as much of allowed sites alone, over its worker and its host. A page itself
// only claims to have the focus, and does not know its window. A way without the document's offers
// comes last.
func (l *linked) rank() int {
	return 10*truth(l.ready) + slices.Index([]string{"extension", "cdp"}, l.info.Transport)
}

// documentOf returns the page of the document to which a link belongs, or nil if that is new.
func (g *Gateway) documentOf(l *linked) (found *Page) {
	p := l.p
	for d := range g.attached {
		same := p.epoch != "" && d.epoch == p.epoch && d.Origin == p.Origin
		if d == p || d.Life().Left() || d.Shown || !same || d.Differs(&p.Page) {
			continue
		}
		w := d.wayBy(l.info.Transport)
		elsewhere := w != nil && (w.info.Tab != l.info.Tab || w.info.Frame != l.info.Frame)
		if found != nil || elsewhere {
			g.log.Warn("a page repeats the id of another document", "url", p.URL)
			return nil
		}
		found = d
	}
	return found
}

// wayBy is the page's way by a transport, or nil.
func (p *Page) wayBy(transport string) *linked {
	if i := slices.IndexFunc(p.ways,
		func(w *linked) bool { return w.info.Transport == transport }); i >= 0 {
		return p.ways[i]
	}
	return nil
}

// join makes a link a way of a document's page.
func (l *linked) join(p *Page) {
	g, dead := p.g, p.wayBy(l.info.Transport)
	g.catalog.Detach(&l.of.Page)
	l.p, l.offers = p, map[string]bridge.Resource{}
	p.ways = append(p.ways, l)
	g.log.Info("a document has another way", "url", p.URL, "transport", l.info.Transport)
	for q := range g.pages {
		if q.runner != nil && q.Tab == l.info.Tab && q.Frame == l.info.Frame {
			g.expire(q) // the same document, before it had our page layer
		}
	}
	g.catalog.Join(&p.Page, &l.info)
	g.resumeReads() // one may wait for a page of this profile
	if g.front.page == l.of {
		g.setFront(p.PageInfo, p)
	}
	if dead != nil {
		p.part(dead)
	}
}

// leave ends the way of a transport's page. If it is the document's last one, the document's page
// departs.
func (p *Page) leave(reason string, graces int) {
	switch l, d := p.own, p.own.p; {
	case !slices.Contains(d.ways, l): // it has left
	case len(d.ways) == 1 || d.Life().Left():
		d.depart(reason, graces)
	default:
		p.g.log.Info("a document has lost a way", "url", p.URL, "transport", l.info.Transport)
		d.part(l)
	}
}

// end ends all ways of the page.
func (p *Page) end() {
	for _, w := range p.ways {
		close(w.of.done)
		w.close()
	}
}

// part takes a way from a page that has others. The best of these is used from now on: reads under
// way are asked again there (Page.read), and tool calls are not, since they may have had their
// effect.
func (p *Page) part(l *linked) {
	p.ways = slices.DeleteFunc(p.ways, func(w *linked) bool { return w == l })
	close(l.of.done)
	if p.link == l {
		p.use(slices.MaxFunc(p.ways, func(a, b *linked) int { return a.rank() - b.rank() }))
	}
	l.close()
	l.count()
}

// use changes to another way. Calls at a way that stays go on there.
func (p *Page) use(l *linked) {
	before := p.link
	stays := slices.Contains(p.ways, before)
	if p.link = l; stays {
		before.offers, before.tools = map[string]bridge.Resource{}, nil
		for uri, o := range p.Offers {
			before.offers[uri] = o.Resource
		}
	}
	for uri := range p.follows.Watched {
		// The page answers with its revision, so that no change in between is missed.
		l.watched(uri, true)
		if stays {
			before.watched(uri, false)
		}
	}
	p.Transport = l.info.Transport
	before.count()
	l.count()
	if l.ready {
		p.adopt(l)
	}
}

// settled runs when a way has offered what its document has: its first frame after the hello has
// been taken.
func (l *linked) settled() {
	l.ready = true
	if p := l.p; p.link == l {
		p.adopt(l)
	} else if l.rank() > p.link.rank() {
		p.use(l)
	}
}

// adopt makes the page offer what its way in use has offered. Usually that is what it offers
// already.
func (p *Page) adopt(l *linked) {
	offers, tools := l.offers, l.tools
	if l.offers, l.tools = nil, nil; offers == nil {
		return
	}
	for uri := range p.Offers {
		if _, still := offers[uri]; !still {
			p.g.catalog.Withdraw(&p.Page, uri)
		}
	}
	// If there is no room, the page's console has that already, from the way before.
	for _, uri := range slices.Sorted(maps.Keys(offers)) {
		_ = p.register(offers[uri])
	}
	if tools != nil {
		_ = p.setTools(*tools)
	}
}

// register offers a resource that came over the way in use.
func (p *Page) register(r bridge.Resource) error {
	if o := p.Offers[r.URI]; o != nil && reflect.DeepEqual(o.Resource, r) {
		return nil
	}
	if err := p.g.room(p.Origin); err != nil {
		return err
	}
	p.arrive()
	p.g.catalog.Offer(&p.Page, r)
	p.g.resumeReads()
	return nil
}

// read asks the page for contents. If the way in use ends before the answer, the next one is asked:
// reads have no effects.
func (p *Page) read(key, uri, params string, done func(reply)) (end func()) {
	l := p.link
	now := func() {}
	if taburi.Reserved(uri) && !p.owns(uri) { // a template of the page matches it
		done(reply{failure: bridge.NotFound})
		return now
	}
	now = l.read(key, uri, params, func(r reply) {
		if r.gone && p.link != l && !p.Life().Left() {
			now = p.read(key, uri, params, done)
			return
		}
		done(r)
	})
	return func() { now() }
}
