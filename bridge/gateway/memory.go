//go:build !js

package gateway

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// TransportCommand is that of the command line, which is no agent: it has no memory, and nothing is said to it that it
// did not ask for.
const TransportCommand = "command"

// remembers reports whether what comes by a transport is an agent that is the same one at its next call.
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

// reading notes, before the page is asked, that agents read a URI by the protocol's own way: they are given it, too.
func (g *Gateway) reading(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.tools.revisions.Track([]string{uri}, func(map[string]string) {})
	c.revision = g.tools.revisions.Revision(uri)
}

// gave notes that an agent is sent an answer with contents.
func (g *Gateway) gave(a *Agent, m bridge.Message) {
	c := g.calls[m.Call]
	if a.memory == nil || c == nil || c.uri == "" || m.Contents == nil {
		return
	}
	if c.seen == nil { // others may have asked with it
		c.seen = live.DecodeContents(c.uri, m.Contents)
		c.seen.Epoch, c.seen.Count = c.epoch, c.count
		c.seen.Revision = g.tools.revisions.Found(c.uri, c.revision, c.seen.Hash)
	}
	if c.seen.Why != "" {
		return
	}
	a.memory.Given(c.seen, "")
}
