package gateway

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// TransportCommand is the transport of the command line. It is no agent, has no memory and gets no reminders.
const TransportCommand = "command"

// remembers reports whether the agents of a transport are the same ones at their next call.
func remembers(transport string) bool {
	return transport != TransportRequest && transport != TransportCommand
}

// forget ends an agent's memory.
func (g *Gateway) forget(a *Agent) {
	if a.memory == nil {
		return
	}
	a.memory.End()
	a.memory = nil
	g.remembering--
}

// trackRead notes that agents read a URI by resources/read, before the page is asked: they have seen it then, too.
func (g *Gateway) trackRead(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.tools.revisions.Track([]string{uri}, func(map[string]string) {})
	c.revision = g.tools.revisions.Revision(uri)
}

// recordGiven notes that an agent is sent contents.
func (g *Gateway) recordGiven(a *Agent, m bridge.Message) {
	c := g.calls[m.Call]
	if a.memory == nil || c == nil || c.uri == "" || m.Contents == nil {
		return
	}
	if c.seen == nil { // the first of the agents that share the read
		c.seen = live.DecodeContents(c.uri, m.Contents)
		c.seen.Epoch, c.seen.Count = c.epoch, c.count
		c.seen.Revision = g.tools.revisions.Found(c.uri, c.revision, c.seen.Hash)
	}
	if c.seen.Why != "" {
		return
	}
	a.memory.Given(c.seen, "")
}
