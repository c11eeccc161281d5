//go:build !js

package cdp

import (
	"io"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// A home is what an engine needs that serves one document: a lock, a clock, and the gateway at one of its ports. It is
// the native twin of package wasm.
type home struct {
	conn *conn
	link *link
	// flush sends what the engine has asked for, with the lock held. It may be nil.
	flush func()

	mu     sync.Mutex
	engine *bridge.Engine
	start  time.Time
	timer  *time.Timer
	armed  bridge.Time // when timer fires; 0 if it does not
	over   bool
	// flushes is set while whoever holds the lock will flush the link.
	flushes bool
}

// gatewayPort is the gateway's session. The page layer numbers its own from 1.
const gatewayPort bridge.PortID = 1 << 31

// init makes the engine. gone is called when the gateway has closed its session.
func (h *home) init(d *document, host bridge.Host, gone func()) {
	h.link = d.b.link
	h.start = time.Now()
	h.timer = time.AfterFunc(time.Hour, h.tick)
	h.timer.Stop()
	h.conn = newConn(h.take, gone)
	h.engine = bridge.New(bridge.Options{Rule: bridge.Rule{Origin: d.origin}, Tools: true}, host)
	h.engine.Open(h.now(), gatewayPort)
}

func (h *home) now() bridge.Time { return bridge.Time(time.Since(h.start).Milliseconds()) }

// unlock ends what mu guards, and sees to it that what the engine wants happens.
func (h *home) unlock() {
	if h.flush != nil {
		h.flush()
	}
	if at, ok := h.engine.Deadline(); ok && !h.over && (h.armed == 0 || at < h.armed) {
		h.armed = max(at, 1)
		h.timer.Reset(time.Until(h.start.Add(time.Duration(at) * time.Millisecond)))
	}
	h.flushes = false
	h.mu.Unlock()
}

func (h *home) tick() {
	h.mu.Lock()
	defer h.unlock()
	h.armed = 0
	if !h.over {
		h.engine.Tick(h.now())
	}
}

// take has a message of the gateway.
func (h *home) take(message []byte) error {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return io.ErrClosedPipe
	}
	h.flushes = true
	err := h.engine.Receive(h.now(), gatewayPort, message)
	h.unlock()
	h.link.flush()
	return err
}

// close ends the engine. What it has said to the gateway is still delivered.
func (h *home) close() {
	h.mu.Lock()
	h.over = true
	h.timer.Stop()
	h.mu.Unlock()
	h.conn.in.close()
	h.conn.once.Do(func() {})
}
