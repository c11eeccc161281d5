//go:build !js

package gateway

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/link"
)

// An inpage serves the agents in a page that has no core of its own, as one has into which the page layer was injected.
// It is made with the first of them: an engine beside the gateway's, fed by the same link, guarded by the same lock,
// and called when its time has come by the link's timer.
type inpage struct {
	l      *linked
	engine *bridge.Engine
	calls  map[bridge.CallID]asked
}

// asked is what the page was asked for a call of the engine.
type asked struct {
	id  uint32
	end func()
}

func newInpage(l *linked) *inpage {
	i := &inpage{l: l, calls: map[bridge.CallID]asked{}}
	g := l.p.g
	i.engine = bridge.New(bridge.Options{
		Version: g.opt.Version, Rule: bridge.Rule{Origin: l.p.Origin}, Tools: true, ExposeErrors: true,
	}, i)
	for _, o := range l.p.offers {
		i.engine.Register(g.now(), o.resource)
	}
	i.engine.SetTools(g.now(), l.tools)
	return i
}

var _ bridge.ToolHost = (*inpage)(nil)

// Send leaves contents to the page, which holds them.
func (i *inpage) Send(to bridge.PortID, m bridge.Message) {
	i.l.peer.Send(to, m.Head, m.Tail, i.calls[m.Call].id)
}

func (i *inpage) Read(id bridge.CallID, r bridge.Request) {
	call, end := i.l.peer.Read(r.Key, r.URI, r.Params, func(a link.Answer) { i.complete(id, a) })
	i.calls[id] = asked{call, end}
}

func (i *inpage) CallTool(id bridge.CallID, t bridge.ToolCall) {
	g := i.l.p.g
	call, end := i.l.peer.CallTool(t.Name, t.Arguments, nil, func(a link.Answer) { i.complete(id, a) },
		func(members []byte) { i.engine.Progress(g.now(), id, members) })
	i.calls[id] = asked{call, end}
}

func (i *inpage) complete(id bridge.CallID, a link.Answer) {
	i.engine.Complete(i.l.p.g.now(), id, bridge.Result{Size: len(a.Contents), Failure: a.Failure, Detail: a.Detail})
}

func (i *inpage) End(id bridge.CallID) {
	if a, ok := i.calls[id]; ok {
		delete(i.calls, id)
		a.end()
	}
}

func (i *inpage) Watched(uri string, on bool) {
	if on {
		i.l.watch(uri, func(bool) {})
	} else {
		i.l.unwatch(uri)
	}
}

// The ports, as the page opens them.

func (c *pageCore) Open(port bridge.PortID) {
	if !c.p.Serves {
		c.peer.Closed(port, "no agents in the page are served here")
		return
	}
	if c.agents == nil {
		c.agents = newInpage((*linked)(c))
	}
	if err := c.agents.engine.Open(c.p.g.now(), port); err != nil {
		c.peer.Closed(port, err.Error())
	}
}

func (c *pageCore) Receive(port bridge.PortID, message []byte) {
	if c.agents != nil {
		c.agents.engine.Receive(c.p.g.now(), port, message) // a port that is not open has been closed, or refused
	}
}

func (c *pageCore) Writable(port bridge.PortID, on bool) {
	if c.agents != nil {
		c.agents.engine.Writable(c.p.g.now(), port, on)
	}
}

func (c *pageCore) Close(port bridge.PortID) {
	if c.agents != nil {
		c.agents.engine.Close(c.p.g.now(), port)
	}
}
