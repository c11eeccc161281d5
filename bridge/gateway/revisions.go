//go:build !js

package gateway

import (
	"encoding/json"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// revisions count the changes of what agents read by tools, so that wait_for_page_update misses none between a read and the next
// wait. They subscribe at the engine as an agent does, on a port of their own.
//
// A revision is the time of the change in milliseconds since 1970, or one more than the last: so it grows across restarts of
// the gateway too, and one number stands for all resources.
type revisions struct {
	clock   int64
	tracked map[string]*tracked
	waiters map[*call]func()
	port    bridge.PortID
}

type tracked struct {
	revision int64
	used     time.Time
	ready    bool
	then     []func(why string)
}

// trackFor is how long a resource is followed after a tool asked for it last.
const trackFor = 15 * time.Minute

func (v *revisions) init() {
	v.clock = time.Now().UnixMilli()
	v.tracked = map[string]*tracked{}
	v.waiters = map[*call]func(){}
}

func (v *revisions) advance() int64 {
	v.clock = max(v.clock+1, time.Now().UnixMilli())
	return v.clock
}

// revision is that of a tracked resource's last change.
func (v *revisions) revision(uri string) int64 {
	if t := v.tracked[uri]; t != nil {
		return t.revision
	}
	return 0
}

func (v *revisions) leave(c *call) { delete(v.waiters, c) }

// track sees to it that changes of all the uris are counted, then calls then, with the lock held and with what went wrong by URI.
func (g *Gateway) track(uris []string, then func(failed map[string]string)) {
	v := &g.tools.revisions
	if v.port == 0 {
		g.lastPort++
		v.port = g.lastPort
		if err := g.engine.Open(g.now(), v.port); err != nil {
			v.port = 0
			failed := map[string]string{}
			for _, uri := range uris {
				failed[uri] = err.Error()
			}
			then(failed)
			return
		}
		g.ask(0, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "pagewire tools", "version": "0"}})
	}
	now := time.Now()
	for uri, t := range v.tracked {
		if t.ready && now.Sub(t.used) > trackFor {
			delete(v.tracked, uri)
			g.ask("", "resources/unsubscribe", map[string]string{"uri": uri})
		}
	}
	pending := 1
	failed := map[string]string{}
	arrived := func() {
		if pending--; pending == 0 {
			then(failed)
		}
	}
	for _, uri := range uris {
		t := v.tracked[uri]
		if t != nil && t.ready {
			t.used = now
			continue
		}
		pending++
		fresh := t == nil
		if fresh {
			// Whatever an agent saw before is older than that.
			t = &tracked{revision: v.advance(), used: now}
			v.tracked[uri] = t
		}
		t.then = append(t.then, func(why string) {
			if why != "" {
				failed[uri] = why
			}
			arrived()
		})
		if fresh {
			g.ask(uri, "resources/subscribe", map[string]string{"uri": uri})
		}
	}
	arrived()
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
	v := &g.tools.revisions
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ URI string }
		Error  *struct{ Message string }
	}
	if json.Unmarshal(message, &m) != nil {
		return
	}
	if m.Method == "notifications/resources/updated" {
		if t := v.tracked[m.Params.URI]; t != nil {
			t.revision = v.advance()
			for _, look := range v.waiters {
				look()
			}
		}
		return
	}
	var uri string
	if m.Method != "" || json.Unmarshal(m.ID, &uri) != nil {
		return
	}
	t := v.tracked[uri]
	if t == nil || t.ready {
		return
	}
	why := ""
	if m.Error != nil {
		why = m.Error.Message
		delete(v.tracked, uri)
	}
	t.ready = m.Error == nil
	then := t.then
	t.then = nil
	for _, f := range then {
		f(why)
	}
}
