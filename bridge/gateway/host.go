package gateway

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// host is the Gateway as the engine sees it. Its methods run with the lock held.
type host Gateway

var (
	_ bridge.SubscriptionHost = (*host)(nil)
	_ bridge.ToolHost         = (*host)(nil)
	_ bridge.EventHost        = (*host)(nil)
)

// A call is an engine's question that a page or one of our tools is to answer.
type call struct {
	id     bridge.CallID
	route  *route    // to the page that is asked, or awaited; nil for our own tools, until they look
	cancel func()    // stops the work on it when the call has ended; nil before the work has begun
	began  time.Time // of a read, for its latency; otherwise zero

	// For reads by agents with a memory: the URI, its revision when the page was asked, the
	// document's epoch, the page's own revision from the answer, the contents, and what an agent
	// has seen.
	uri      string
	revision int64
	epoch    string
	count    int64
	parts    []gate.Part
	seen     *live.Look

	events *events.Following // of a stream of events
	agent  *Agent            // of a tool call or a request for events, unless it has gone
}

// owner is whose the call's answer is: a port that does not see it gets none.
func (c *call) owner() (o bridge.Owner) {
	if c.route != nil {
		o = c.route.Page().Owner()
	}
	return o
}

func (h *host) Send(to bridge.PortID, m bridge.Message) {
	if a := h.agents[to]; a != nil {
		if m.Call != 0 {
			(*Gateway)(h).recordGiven(a, m)
		}
		a.send(m.AppendTo(make([]byte, 0, len(m.Head)+len(m.Contents)+len(m.Tail))))
	}
}

func (h *host) Read(id bridge.CallID, r bridge.Request) {
	g := (*Gateway)(h)
	c := &call{id: id}
	g.calls[id] = c
	if a := g.agents[r.Port]; a != nil { // only reads of the front have a port
		g.counts.reads++
		g.engine.Complete(g.now(), id, bridge.Result{Contents: g.frontFor(a)})
		return
	}
	e := g.catalog.Entry(r.Key)
	if e == nil {
		g.addMissed(r.URI)
		gone := bridge.Result{Failure: bridge.ReadFailed, Detail: "the page has gone"}
		if _, known := g.engine.Find(r.URI); !known {
			gone.Failure = bridge.NotFound
		}
		g.engine.Complete(g.now(), id, gone)
		return
	}
	g.counts.reads++
	c.began = time.Now()
	g.trackRead(c, r.URI)
	g.readAt(c, e, r)
}

// trackRead is called before a page is asked for a resources/read, because contents from it count
// as seen too.
func (g *Gateway) trackRead(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.books.Track([]string{uri}, func(string, string) {})
	c.revision = g.books.Revision(uri)
}

// recordGiven records contents that are sent to an agent.
func (g *Gateway) recordGiven(a *Agent, m bridge.Message) {
	c := g.calls[m.Call]
	if a.memory == nil || c == nil || c.uri == "" || m.Contents == nil {
		return
	}
	if c.seen == nil { // the first of the agents that share the read
		c.seen = live.NewLook(c.uri, m.Contents, c.parts)
		c.seen.Epoch, c.seen.Count = c.epoch, c.count
		c.seen.Revision = g.books.Found(c.uri, c.revision, c.seen.Hash)
	}
	if c.seen.Why == "" {
		a.memory.Given(c.seen, "")
	}
}

// parked is a read that waits for the successor of its page.
type parked struct {
	call  *call
	asked bridge.Request
}

// park keeps a read for the successor of a page that is being reloaded.
func (g *Gateway) park(p *Page, c *call, asked bridge.Request) {
	g.parked[p] = append(g.parked[p], parked{c, asked})
}

// resumeReads sends the parked reads whose page has come.
func (g *Gateway) resumeReads() {
	for p, waiting := range maps.Clone(g.parked) {
		delete(g.parked, p)
		for _, w := range waiting {
			if g.calls[w.call.id] == nil {
				continue // the read has ended
			}
			e := g.successor(p, w.asked.URI)
			if e == nil {
				g.park(p, w.call, w.asked)
				continue
			}
			w.asked.Key = e.Resource.URI
			g.readAt(w.call, e, w.asked)
		}
	}
}

// endReads fails the parked reads of a page that is gone.
func (g *Gateway) endReads(p *Page) {
	waiting := g.parked[p]
	delete(g.parked, p)
	for _, w := range waiting {
		g.addMissed(w.asked.URI)
		g.complete(w.call, lost)
	}
}

// readAt asks a page. If the page is being reloaded, the read waits for the page's successor.
func (g *Gateway) readAt(c *call, e *catalog.Entry, asked bridge.Request) {
	p := pageOf(e.Page)
	c.route = g.all.To(p, false) // revoke needs the owner of a parked read too
	if p.Life().Left() {
		g.park(p, c, asked)
		return
	}
	c.cancel = read(c.route, e, asked, func(answer reply) { g.answerRead(c, p, asked, answer) })
}

// read asks the page of a route for the contents of an entry that leads to it.
func read(r *route, e *catalog.Entry, asked bridge.Request, done func(reply)) (end func()) {
	return r.Page().read(e.Own(asked.Key), e.Own(asked.URI), asked.Params, done)
}

// answerRead completes a read with the page's answer. If the page left before answering, its
// successor is asked: reads have no effects.
func (g *Gateway) answerRead(c *call, p *Page, asked bridge.Request, answer reply) {
	if answer.gone && g.calls[c.id] == c {
		if e := g.successor(p, asked.URI); e != nil && e.Page != &p.Page {
			asked.Key = e.Resource.URI
			g.readAt(c, e, asked)
			return
		}
		if p.Life() != catalog.Gone {
			g.park(p, c, asked)
			return
		}
	}
	if answer.gone {
		g.addMissed(asked.URI)
	}
	c.epoch, c.count, c.parts = p.epoch, answer.revision, answer.parts
	g.complete(c, answer)
}

// successor is the entry at which a page's read may go on, or nil. Agents that see the page may not
// see one of another profile.
func (g *Gateway) successor(p *Page, uri string) *catalog.Entry {
	if e := g.catalog.EntryOf(uri); e != nil && e.Page.Owner() == p.Owner() {
		return e
	}
	return nil
}

func (h *host) CallTool(id bridge.CallID, t bridge.ToolCall) {
	g := (*Gateway)(h)
	c := g.newToolCall(&call{id: id, agent: g.agents[t.Port]})
	g.calls[id] = c.call
	g.counts.toolCalls++
	if c.agent != nil {
		t.Arguments = slices.Clone(t.Arguments)
		c.start(func(ctx context.Context) { g.callTool(ctx, c, t) })
	}
}

// Events answers a request of an agent.
func (h *host) Events(id bridge.CallID, r bridge.EventRequest) {
	g := (*Gateway)(h)
	a := g.agents[r.Port]
	c := &call{id: id, agent: a}
	g.calls[id] = c
	if a == nil {
		return
	}
	g.events.Run(events.Call{Pass: a.pass, Party: a.client.name, Webhooks: a.webhooks,
		Wake:   func() { g.engine.Wake(g.now(), id) },
		Memory: func() *follow.Memory { return a.memory },
		Accept: func(end func(), stream *events.Following) { c.cancel, c.events = end, stream },
		Answer: func(result []byte, refused *bridge.EventError) {
			g.engine.Complete(g.now(), id, bridge.Result{Contents: result, Refused: refused})
		}}, r)
}

func (h *host) NextEvent(id bridge.CallID) (n bridge.EventNote, ok bool) {
	if c := h.calls[id]; c != nil && c.events != nil {
		return c.events.Take()
	}
	return n, false
}

func (h *host) EventCursor(id bridge.CallID) string {
	if c := h.calls[id]; c != nil && c.events != nil {
		return c.events.At()
	}
	return ""
}

func (g *Gateway) complete(c *call, r reply) {
	g.engine.Complete(g.now(), c.id, bridge.Result{Contents: r.contents, Sound: true, Meta: r.meta,
		Failure: r.failure, Detail: r.detail, Owner: c.owner()})
}

// revoke ends the reads, calls and waits of pages that are no longer permitted, after the profile
// of a page has changed or what it shows has gone.
func (g *Gateway) revoke() {
	for id, c := range maps.Clone(g.calls) {
		g.engine.Withhold(g.now(), id, c.owner())
	}
	g.tools.own.Revoked(taburi.Shown)
}

func (h *host) End(id bridge.CallID) {
	if c := h.calls[id]; c != nil {
		delete(h.calls, id)
		if !c.began.IsZero() {
			h.counts.latency.observe(time.Since(c.began))
		}
		if c.cancel != nil {
			c.cancel()
		}
	}
}
