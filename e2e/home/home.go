// Package home is a native home of the engine for tests: resources are values in memory, ports are connections that
// carry one JSON message per line. It lets clients that others wrote talk to the engine without a page.
//
// It is what a home has to be, in its smallest form: it serialises its calls, keeps the clock, and runs the timer.
package home

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// A Home serves resources from memory. Create it with New.
type Home struct {
	mu     sync.Mutex // held around every call of the engine, and so in every call by it
	engine *bridge.Engine
	start  time.Time
	timer  *time.Timer
	values map[string]string // by URI
	ports  map[bridge.PortID]chan []byte
	last   bridge.PortID
}

// New returns a home with an engine of those options, which must admit what is set later.
func New(o bridge.Options) *Home {
	h := &Home{start: time.Now(), values: map[string]string{}, ports: map[bridge.PortID]chan []byte{}}
	h.engine = bridge.New(o, h)
	h.timer = time.AfterFunc(time.Hour, func() { h.call(func(now bridge.Time) { h.engine.Tick(now) }) })
	return h
}

// call runs f, which calls the engine, and sets the timer by what the engine then waits for.
func (h *Home) call(f func(now bridge.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := bridge.Time(time.Since(h.start).Milliseconds())
	f(now)
	if at, ok := h.engine.Deadline(); ok {
		h.timer.Reset(time.Duration(max(at-now, 0)) * time.Millisecond)
	} else {
		h.timer.Stop()
	}
}

// Set gives a resource its value: it is registered with its first one, and touched with every other.
func (h *Home) Set(uri, text string) {
	h.call(func(now bridge.Time) {
		_, known := h.values[uri]
		h.values[uri] = text
		if known {
			h.engine.Touch(now, uri)
		} else if err := h.engine.Register(now, bridge.Resource{URI: uri, Name: uri, MIMEType: "text/plain", Size: -1}); err != nil {
			panic(err)
		}
	})
}

// Remove unregisters a resource.
func (h *Home) Remove(uri string) {
	h.call(func(now bridge.Time) {
		delete(h.values, uri)
		h.engine.Unregister(now, uri)
	})
}

// Stats returns the engine's counters.
func (h *Home) Stats() (s bridge.Stats) {
	h.call(func(bridge.Time) { s = h.engine.Stats() })
	return s
}

// Serve carries one port over a connection, one JSON message per line, until r ends. It then closes w.
func (h *Home) Serve(r io.Reader, w io.WriteCloser) error {
	out := make(chan []byte, 1<<16)
	var id bridge.PortID
	h.call(func(now bridge.Time) {
		h.last++
		id = h.last
		h.ports[id] = out
		if err := h.engine.Open(now, id); err != nil {
			panic(err)
		}
	})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer w.Close()
		for line := range out {
			if _, err := w.Write(append(line, '\n')); err != nil {
				return
			}
		}
	})
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		h.call(func(now bridge.Time) { _ = h.engine.Receive(now, id, lines.Bytes()) })
	}
	h.call(func(now bridge.Time) {
		h.engine.Close(now, id)
		delete(h.ports, id)
		close(out)
	})
	writer.Wait()
	return lines.Err()
}

// Shutdown ends every session as a server does that goes away.
func (h *Home) Shutdown() { h.call(func(now bridge.Time) { h.engine.Shutdown(now) }) }

// Send is for the engine.
func (h *Home) Send(to bridge.PortID, m bridge.Message) { h.ports[to] <- m.AppendTo(nil) }

// Read is for the engine: the value is at hand, so the answer comes within the call.
func (h *Home) Read(call bridge.CallID, r bridge.Request) {
	contents, err := json.Marshal([]map[string]string{{"uri": r.URI, "mimeType": "text/plain", "text": h.values[r.Key]}})
	if err != nil {
		panic(err)
	}
	h.engine.Complete(bridge.Time(time.Since(h.start).Milliseconds()), call, bridge.Result{Contents: contents})
}

// End is for the engine: nothing is held for a call.
func (h *Home) End(bridge.CallID) {}

// Watched is for the engine.
func (h *Home) Watched(string, bool) {}
