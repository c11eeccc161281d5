package gateway

import (
	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// forget ends an agent's memory.
func (g *Gateway) forget(a *Agent) {
	if a.memory == nil {
		return
	}
	a.memory.End()
	a.memory = nil
	g.remembering--
}

// trackRead is called before a page is asked for a resources/read, because contents from it count
// as seen too.
func (g *Gateway) trackRead(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.books.Track([]string{uri}, func(map[string]string) {})
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
