//go:build !js

package gateway

import (
	"net"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// host is the Gateway as the engine sees it. Its methods run with the lock held.
type host Gateway

var (
	_ bridge.SubscriptionHost = (*host)(nil)
	_ bridge.ToolHost         = (*host)(nil)
)

// A call is a question of the engine that a page, or a tool of ours, is to answer.
type call struct {
	id     bridge.CallID
	page   *Page     // whose tool it calls, and that may say how far that has come
	cancel func()    // tells whoever works on it that nobody waits any more; nil before anybody does
	began  time.Time // of a read, for its latency; zero for what is none
}

func (h *host) Send(to bridge.PortID, m bridge.Message) {
	text := m.AppendTo(make([]byte, 0, len(m.Head)+len(m.Contents)+len(m.Tail)))
	if a := h.agents[to]; a != nil {
		a.send(text)
	} else if to == h.tools.port {
		(*Gateway)(h).hear(text)
	}
}

func (h *host) Read(id bridge.CallID, r bridge.Request) {
	g := (*Gateway)(h)
	c := &call{id: id}
	g.calls[id] = c
	route := g.catalog.routes[r.Key]
	if route == nil {
		g.engine.Complete(g.now(), id, bridge.Result{Failure: bridge.ReadFailed, Detail: "the page has gone"})
		return
	}
	g.counts.reads++
	c.began = time.Now()
	g.readAt(c, route.page, route.own(r.URI), r.URI)
}

// readAt asks a page, or waits for its successor while it is being reloaded. own is what the page calls the agent's uri.
func (g *Gateway) readAt(c *call, p *Page, own, uri string) {
	if p.absent {
		p.parked = append(p.parked, parked{c, uri})
		return
	}
	c.cancel = p.session.request("resources/read", map[string]string{"uri": own}, func(r reply) { g.answerRead(c, p, uri, r) })
}

// answerRead completes a read with what the page said. One that the page was asked and has not answered before it went is
// asked of its successor: nothing can have come of it. It takes the lock.
func (g *Gateway) answerRead(c *call, p *Page, uri string, r reply) {
	g.mu.Lock()
	defer g.unlock()
	if r.failure != errGone || g.calls[c.id] != c {
		g.complete(c, r, r.contents)
	} else if q, own := g.lookup(uri); q != nil && q != p {
		g.readAt(c, q, own, uri)
	} else if !p.gone {
		p.parked = append(p.parked, parked{c, uri})
	} else {
		g.complete(c, r, nil)
	}
}

func (h *host) CallTool(id bridge.CallID, t bridge.ToolCall) {
	g := (*Gateway)(h)
	c := &call{id: id}
	g.calls[id] = c
	g.counts.toolCalls++
	g.callTool(c, t)
}

// answer completes a call with what a page said. It takes the lock.
func (g *Gateway) answer(c *call, r reply, contents []byte) {
	g.mu.Lock()
	defer g.unlock()
	g.complete(c, r, contents)
}

func (g *Gateway) complete(c *call, r reply, contents []byte) {
	result := bridge.Result{Contents: contents}
	if r.failure != nil {
		result = bridge.Result{Failure: bridge.ReadFailed, Detail: r.failure.Message}
		if r.failure.Data.Reason != "" {
			result.Failure = bridge.Failure(r.failure.Data.Reason)
		}
	}
	g.engine.Complete(g.now(), c.id, result)
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

func loopbackHost(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
