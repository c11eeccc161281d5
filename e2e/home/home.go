// Package home is a native home of the engine for tests: resources are functions or values in memory, ports are
// connections that carry one JSON message per line. It lets clients that others wrote talk to the engine without a
// page.
//
// It is what there has to be around bridge/home, in its smallest form: it runs reads beside the engine and aborts them
// when it says so, and tells the engine when a port takes no more. It never looks into a message, and never remembers
// what an agent asked for: that is the engine's business.
package home

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/home"
)

// backlog is how many messages may wait for a connection that is not read before its port counts as not writable.
const backlog = 64

// A Reader says what a resource reads as. ctx ends when nobody waits for the answer any more.
type Reader func(ctx context.Context, r bridge.Request) (string, error)

// A Home serves resources from memory. Create it with New.
type Home struct {
	mu      *home.Home // held around every call of the engine, and so in every call by it
	engine  *bridge.Engine
	values  map[string]string // by URI, of what Set set
	readers map[string]Reader // by URI or template, of what Add added
	reads   map[bridge.CallID]context.CancelFunc
	ports   map[bridge.PortID]*port
	last    bridge.PortID
	down    bool // Shutdown has been called
}

// A port is what waits to be written to one connection. All of it is guarded by Home.mu.
type port struct {
	queue  [][]byte
	more   *sync.Cond // queue or closed has changed
	closed bool       // nothing will be added to queue
	full   bool       // the engine has been told that the port is not writable
}

// New returns a home with an engine of those options, which must admit what is set later.
func New(o bridge.Options) *Home {
	return start(o, func(h *Home) bridge.Host { return h })
}

func start(o bridge.Options, host func(*Home) bridge.Host) *Home {
	h := &Home{
		values:  map[string]string{},
		readers: map[string]Reader{},
		reads:   map[bridge.CallID]context.CancelFunc{},
		ports:   map[bridge.PortID]*port{},
	}
	h.engine = bridge.New(o, host(h))
	h.mu = home.New(h.engine, nil)
	return h
}

// A Consent decides whether a URI may be subscribed to: an error refuses. It is called from within the engine, so it
// must not use the home but for the touch that it is given, which is Touch.
type Consent func(uri string, touch func(uri string)) error

// NewAsking is New for a home that is asked before an agent subscribes.
func NewAsking(o bridge.Options, consent Consent) *Home {
	return start(o, func(h *Home) bridge.Host { return asking{h, consent} })
}

// call runs f, which calls the engine.
func (h *Home) call(f func(now bridge.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.mu.Now())
}

// Set gives a resource its value: it is registered with its first one, and touched with every other.
func (h *Home) Set(uri, text string) {
	h.call(func(now bridge.Time) {
		_, known := h.values[uri]
		h.values[uri] = text
		if known {
			h.engine.Touch(now, uri)
		} else {
			h.register(now, uri)
		}
	})
}

// Add registers a resource, or a template, that is read by calling read on a goroutine of its own.
func (h *Home) Add(uri string, read Reader) {
	h.call(func(now bridge.Time) {
		h.readers[uri] = read
		h.register(now, uri)
	})
}

func (h *Home) register(now bridge.Time, uri string) {
	if err := h.engine.Register(now, bridge.Resource{URI: uri, Name: uri, MIMEType: "text/plain",
		Size: -1}); err != nil {
		panic(err)
	}
}

// Touch says that a resource, or all that a template stands for, has changed.
func (h *Home) Touch(uri string) {
	h.call(func(now bridge.Time) { h.engine.Touch(now, uri) })
}

// Remove unregisters a resource.
func (h *Home) Remove(uri string) {
	h.call(func(now bridge.Time) {
		delete(h.values, uri)
		delete(h.readers, uri)
		h.engine.Unregister(now, uri)
	})
}

// Stats returns the engine's counters.
func (h *Home) Stats() (s bridge.Stats) {
	h.call(func(bridge.Time) { s = h.engine.Stats() })
	return s
}

// Serve carries one port over a connection, one JSON message per line. It returns when everything has been written
// and w is closed: after r has ended, after Shutdown, or once w takes no more. Whatever still reads r then ends as
// soon as r lets it.
func (h *Home) Serve(r io.ReadCloser, w io.WriteCloser) error {
	p := &port{more: sync.NewCond(h.mu)}
	var id bridge.PortID
	var err error
	h.call(func(now bridge.Time) {
		h.last++
		id = h.last
		h.ports[id] = p
		if err = h.engine.Open(now, id); err != nil || h.down {
			h.close(now, id)
		}
	})
	go h.receive(id, r)
	defer r.Close()
	defer w.Close()
	for {
		line, ok := h.take(id, p)
		if !ok {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			h.call(func(now bridge.Time) { h.close(now, id) })
			return err
		}
	}
}

// receive hands the lines of r to the engine, and closes the port when they end.
func (h *Home) receive(id bridge.PortID, r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		// The error is that the port has been closed meanwhile: then nobody needs the rest.
		h.call(func(now bridge.Time) { _ = h.engine.Receive(now, id, lines.Bytes()) })
	}
	h.call(func(now bridge.Time) { h.close(now, id) })
}

// take waits for a message of a port's queue. ok is false when there will be none.
func (h *Home) take(id bridge.PortID, p *port) (line []byte, ok bool) {
	h.mu.Lock()
	for len(p.queue) == 0 && !p.closed {
		p.more.Wait()
	}
	if len(p.queue) == 0 {
		h.mu.Unlock()
		return nil, false
	}
	line, p.queue = p.queue[0], p.queue[1:]
	drained := p.full && len(p.queue) == 0
	h.mu.Unlock()
	if drained {
		h.call(func(now bridge.Time) {
			p.full = false
			h.engine.Writable(now, id, true)
		})
	}
	return line, true
}

func (h *Home) close(now bridge.Time, id bridge.PortID) {
	h.engine.Close(now, id)
	h.drop(id)
}

// drop lets a port's connection end as soon as what waits for it has been written.
func (h *Home) drop(id bridge.PortID) {
	if p := h.ports[id]; p != nil {
		p.closed = true
		p.more.Signal()
		delete(h.ports, id)
	}
}

// Shutdown ends every session as a server does that goes away. No other begins after it.
func (h *Home) Shutdown() {
	h.call(func(now bridge.Time) {
		h.down = true
		h.engine.Shutdown(now)
		for id := range h.ports {
			h.drop(id)
		}
	})
}

// Send is for the engine.
func (h *Home) Send(to bridge.PortID, m bridge.Message) {
	p := h.ports[to]
	p.queue = append(p.queue, m.AppendTo(nil))
	p.more.Signal()
	if len(p.queue) >= backlog && !p.full {
		p.full = true
		h.engine.Writable(h.mu.Now(), to, false)
	}
}

// Read is for the engine. A value is at hand, so the answer comes within the call; a reader's comes later.
func (h *Home) Read(call bridge.CallID, r bridge.Request) {
	if text, ok := h.values[r.Key]; ok {
		h.engine.Complete(h.mu.Now(), call, contents(r.URI, text))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.reads[call] = cancel
	read := h.readers[r.Key]
	go func() {
		text, err := read(ctx, r)
		result := contents(r.URI, text)
		if err != nil {
			result = bridge.Result{Failure: bridge.ReadFailed, Detail: err.Error()}
		}
		h.call(func(now bridge.Time) { h.engine.Complete(now, call, result) })
	}()
}

func contents(uri, text string) bridge.Result {
	list, err := json.Marshal([]map[string]string{{"uri": uri, "mimeType": "text/plain", "text": text}})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return bridge.Result{Contents: list}
}

// End is for the engine: whoever still reads for the call may stop.
func (h *Home) End(call bridge.CallID) {
	if cancel := h.reads[call]; cancel != nil {
		cancel()
		delete(h.reads, call)
	}
}

// Watched is for the engine. Nothing here costs more while somebody watches.
func (h *Home) Watched(string, bool) {}

// asking is a Home that the engine asks before an agent subscribes.
type asking struct {
	*Home
	consent Consent
}

// Subscribe is for the engine.
func (a asking) Subscribe(call bridge.CallID, _ bridge.PortID, uri string) {
	var result bridge.Result
	if err := a.consent(uri, func(uri string) { a.engine.Touch(a.mu.Now(), uri) }); err != nil {
		result = bridge.Result{Failure: "refused", Detail: err.Error()}
	}
	a.engine.Complete(a.mu.Now(), call, result)
}

// Unsubscribe is for the engine: no store is kept, so there is nothing to do but to answer where an answer is awaited.
func (a asking) Unsubscribe(call bridge.CallID, _ bridge.PortID, _ string) {
	if call != 0 {
		a.engine.Complete(a.mu.Now(), call, bridge.Result{})
	}
}
