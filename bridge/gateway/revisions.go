//go:build !js

package gateway

import (
	"encoding/json"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// revisions count the changes of what agents read by tools, so that wait_for_page_update misses none between a read and
// the next wait, and reminders know what is old. They subscribe at the engine as an agent does, on a port of their own.
//
// A revision is the time of the change in microseconds since 1970, or one more than the last: so it grows across
// restarts of the gateway too, and one number stands for all resources. In milliseconds, the number of a gateway before
// could be one of this gateway's, too, and was answered with "unchanged". It stays below 2^53, beyond which JavaScript
// rounds.
type revisions struct {
	clock   int64
	tracked map[string]*tracked
	waiters map[*call]func()
	port    bridge.PortID
	// given has the revisions that were told to those who have no memory.
	given *seen.Record
}

type tracked struct {
	revision int64
	used     time.Time
	asked    bool // it is subscribed to, or about to be
	ready    bool
	then     []func(why string)
	holders  int // agents that have been given it
	// hash is that of what it read as at this revision, if known.
	hash  [32]byte
	known bool
}

const (
	// trackFor is how long a resource is followed after a tool asked for it last, while no agent is known to have it.
	trackFor = 15 * time.Minute
	// followFor is how long it is followed beyond a change, if nobody asks for it: that what agents have is old is
	// known then, and a page that changes all day need not say so all day.
	followFor = time.Minute
)

func (v *revisions) init() {
	v.clock = time.Now().UnixMicro()
	v.tracked = map[string]*tracked{}
	v.waiters = map[*call]func(){}
	v.given = seen.New(seen.Limits{})
}

// issues notes the revisions that an agent is told. Any other number says nothing of what it has: not one of a gateway
// that was here before, nor of another machine's, nor one that a model has made up.
func (v *revisions) issues(a *Agent) *seen.Record {
	if a != nil && a.memory != nil {
		return a.memory.Record
	}
	return v.given
}

func (v *revisions) advance() int64 {
	v.clock = max(v.clock+1, time.Now().UnixMicro())
	return v.clock
}

// revision is that of a tracked resource's last change.
func (v *revisions) revision(uri string) int64 {
	if t := v.tracked[uri]; t != nil {
		return t.revision
	}
	return 0
}

// found takes what a URI read as when its revision was that before it was asked for, and returns the revision of that:
// a new one where it had read differently.
func (v *revisions) found(uri string, revision int64, hash [32]byte) int64 {
	t := v.tracked[uri]
	if t == nil || t.revision != revision {
		return revision
	}
	if t.known && t.hash != hash {
		v.change(t)
	}
	t.hash, t.known = hash, true
	return t.revision
}

// change counts one.
func (v *revisions) change(t *tracked) {
	t.revision, t.known = v.advance(), false
	for _, look := range v.waiters {
		look()
	}
}

func (v *revisions) leave(c *call) { delete(v.waiters, c) }

// followed is how many subscriptions there are.
func (v *revisions) followed() (n int) {
	for _, t := range v.tracked {
		n += truth(t.ready)
	}
	return n
}

// hold counts an agent that has been given a URI.
func (v *revisions) hold(uri string) {
	if t := v.tracked[uri]; t != nil {
		t.holders++
	}
}

// letGo is the end of hold. With the last agent the page is left alone.
func (g *Gateway) letGo(uri string) {
	v := &g.tools.revisions
	t := v.tracked[uri]
	if t == nil {
		return
	}
	if t.holders--; t.holders > 0 || len(t.then) > 0 {
		return
	}
	delete(v.tracked, uri)
	if t.ready {
		g.unsubscribe(uri)
	}
}

// track sees to it that changes of all the uris are counted, then calls then, with the lock held and with what went
// wrong by URI.
func (g *Gateway) track(uris []string, then func(failed map[string]string)) {
	v := &g.tools.revisions
	failed := map[string]string{}
	if err := g.openRevisions(); err != nil {
		for _, uri := range uris {
			failed[uri] = err.Error()
		}
		then(failed)
		return
	}
	now := time.Now()
	g.untrack(now)
	pending := 1
	arrived := func() {
		if pending--; pending == 0 {
			then(failed)
		}
	}
	for _, uri := range uris {
		t := v.tracked[uri]
		if t == nil {
			t = &tracked{}
			v.tracked[uri] = t
		}
		if t.used = now; t.ready {
			continue
		}
		pending++
		t.then = append(t.then, func(why string) {
			if why != "" {
				failed[uri] = why
			}
			arrived()
		})
		if !t.asked {
			// Whatever an agent saw before is older than that.
			t.revision, t.known, t.asked = v.advance(), false, true
			g.ask(uri, "resources/subscribe", map[string]string{"uri": uri})
		}
	}
	arrived()
}

// openRevisions begins the session of the revisions, once.
func (g *Gateway) openRevisions() error {
	v := &g.tools.revisions
	if v.port != 0 {
		return nil
	}
	g.lastPort++
	if err := g.engine.Open(g.now(), g.lastPort); err != nil {
		return err
	}
	v.port = g.lastPort
	g.ask(0, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "pagewire tools", "version": "0"}})
	return nil
}

// untrack ends what nobody has asked for any more.
func (g *Gateway) untrack(now time.Time) {
	v := &g.tools.revisions
	for uri, t := range v.tracked {
		if t.holders > 0 || t.asked && !t.ready || now.Sub(t.used) <= trackFor {
			continue
		}
		delete(v.tracked, uri)
		if t.ready {
			g.unsubscribe(uri)
		}
	}
}

func (g *Gateway) unsubscribe(uri string) {
	g.ask("", "resources/unsubscribe", map[string]string{"uri": uri})
}

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
		g.updated(m.Params.URI)
	case m.Method == "" && json.Unmarshal(m.ID, &uri) == nil:
		why := ""
		if m.Error != nil {
			why = m.Error.Message
		}
		g.answered(uri, why)
	}
}

// updated counts a change that a page has told.
func (g *Gateway) updated(uri string) {
	v := &g.tools.revisions
	t := v.tracked[uri]
	if t == nil {
		return
	}
	v.change(t)
	if t.ready && time.Since(t.used) > followFor {
		t.asked, t.ready = false, false
		g.unsubscribe(uri)
	}
}

// answered takes the engine's answer to a subscription: changes are counted from then on, or why they are not.
func (g *Gateway) answered(uri, why string) {
	v := &g.tools.revisions
	t := v.tracked[uri]
	if t == nil || !t.asked || t.ready {
		return
	}
	if t.ready = why == ""; !t.ready {
		t.asked = false
		if t.holders == 0 {
			delete(v.tracked, uri)
		}
	}
	then := t.then
	t.then = nil
	for _, f := range then {
		f(why)
	}
}
