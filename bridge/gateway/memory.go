//go:build !js

package gateway

import (
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A memory is what is kept of an agent from one of its calls to the next.
type memory struct {
	*seen.Record
	// tag begins what we say of our own accord: a page cannot know it, and so not say it.
	tag string
	// refused counts the calls of a tool that were refused in a row, since what the agent has seen was old.
	refused map[string]int
	// told has, by URI, the revision up to which it was told by hooks (prompt.go).
	told map[string]int64
}

func newMemory(limits seen.Limits) *memory {
	return &memory{Record: seen.New(limits), tag: "[pagewire-" + strings.ToLower(rand.Text()[:6]) + "]",
		refused: map[string]int{}, told: map[string]int64{}}
}

// Transports of those that are no agents: none has a memory, and nothing is said to them that they did not ask for.
const (
	// TransportGateway is that of another gateway, whose agents have their memories there.
	TransportGateway = "gateway"
	// TransportCommand is that of the command line, and TransportInspector that of the inspector.
	TransportCommand, TransportInspector = "command", "inspector"
)

// remembers reports whether what comes by a transport is an agent that is the same one at its next call.
func remembers(transport string) bool {
	return transport != TransportRequest && transport != TransportGateway && transport != TransportCommand &&
		transport != TransportInspector
}

// give notes that an agent is given a part of a URI, or with "" all of it. a may be nil, or have no memory.
func (g *Gateway) give(a *Agent, l *live.Look, part string) {
	if a == nil || a.memory == nil || g.tools.tracked[l.URI] == nil {
		return
	}
	_, had := a.memory.Last(l.URI)
	if forgotten := a.memory.Give(l.URI, l.Version(part)); forgotten != "" {
		g.letGo(forgotten)
	}
	if !had {
		g.tools.hold(l.URI)
	}
}

// forget ends an agent's memory.
func (g *Gateway) forget(a *Agent) {
	if a.memory == nil {
		return
	}
	for uri := range a.memory.URIs {
		g.letGo(uri)
	}
	for uri := range a.memory.told {
		g.letGo(uri)
	}
	a.memory = nil
	g.remembering--
}

// reading notes, before the page is asked, that agents read a URI by the protocol's own way: they are given it, too.
func (g *Gateway) reading(c *call, uri string) {
	c.uri = uri
	if g.remembering == 0 {
		return
	}
	g.track([]string{uri}, func(map[string]string) {})
	c.revision = g.tools.revision(uri)
}

// gave notes that an agent is sent an answer with contents.
func (g *Gateway) gave(a *Agent, m bridge.Message) {
	c := g.calls[m.Call]
	if a.memory == nil && a.given == nil || c == nil || c.uri == "" || m.Contents == nil {
		return
	}
	if c.seen == nil { // others may have asked with it
		c.seen = live.DecodeContents(c.uri, m.Contents)
		c.seen.Epoch, c.seen.Count = c.epoch, c.count
		c.seen.Revision = g.tools.found(c.uri, c.revision, c.seen.Hash)
	}
	if c.seen.Why != "" {
		return
	}
	if a.given != nil {
		v := c.seen.Version("")
		v.Gone = true
		a.given.Give(c.uri, v)
		return
	}
	g.give(a, c.seen, "")
}

// originOf is a URI's.
func originOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
