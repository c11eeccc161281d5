//go:build !js

package gateway

import (
	"encoding/json"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live/follow"
)

// follower is the Gateway as its agents' revisions see it: they subscribe at the engine as an agent does, on a port of
// their own. Its methods run with the lock held.
type follower Gateway

var _ follow.Source = (*follower)(nil)

// Open begins the session of the revisions, once.
func (f *follower) Open() error {
	g := (*Gateway)(f)
	if g.tools.port != 0 {
		return nil
	}
	g.lastPort++
	if err := g.engine.Open(g.now(), g.lastPort); err != nil {
		return err
	}
	g.tools.port = g.lastPort
	g.ask(0, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "pagewire tools", "version": "0"}})
	return nil
}

// Subscribe is answered to hear, as is each change.
func (f *follower) Subscribe(uri string) {
	(*Gateway)(f).ask(uri, "resources/subscribe", map[string]string{"uri": uri})
}

func (f *follower) Unsubscribe(uri string) {
	(*Gateway)(f).ask("", "resources/unsubscribe", map[string]string{"uri": uri})
}

// Changed has those look who wait.
func (f *follower) Changed() { f.tools.own.Changed() }

// Unchanged compares with what the page has told of a URI since it is watched, the answer to that included.
func (f *follower) Unchanged(uri, epoch string, count int64) bool {
	p, own := (*Gateway)(f).lookup(uri)
	if p == nil || epoch == "" || p.epoch != epoch {
		return false
	}
	l, ok := p.src.(*linked)
	return ok && l.watches[own] != nil && l.watches[own].active && l.watches[own].revision <= count
}

func (f *follower) Now() time.Time { return f.opt.wallClock() }

// ask sends a request of ours to the engine.
func (g *Gateway) ask(id any, method string, params any) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err == nil {
		err = g.engine.Receive(g.now(), g.tools.port, text)
	}
	if err != nil {
		g.log.Error("the tools lost their session", "error", err)
	}
}

// hear takes what the engine sends to the revisions' port.
func (g *Gateway) hear(message []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ URI string }
		Error  *struct{ Message string }
	}
	if json.Unmarshal(message, &m) != nil {
		return
	}
	var uri string
	switch {
	case m.Method == "notifications/resources/updated":
		g.tools.revisions.Updated(m.Params.URI)
	case m.Method == "" && json.Unmarshal(m.ID, &uri) == nil:
		why := ""
		if m.Error != nil {
			why = m.Error.Message
		}
		g.tools.revisions.Answered(uri, why)
	}
}
