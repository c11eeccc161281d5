//go:build !js && !windows

package launched

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
)

// A Holder is the part of an agent's process that asked for the launched browser: the browser lives as long as one of
// its holders does.
type Holder struct {
	o    Options
	ctx  context.Context // ends with Release
	stop context.CancelFunc

	mu      sync.Mutex
	conn    *net.UnixConn // to the daemon
	served  chan struct{} // closed when conn is
	wants   bool          // there should be a browser
	ends    *ends         // of the one that is there
	inject  bool
	started *Started      // by this process, until it has ended
	before  *Started      // by this process, the last that has ended
	last    bool          // what was started has ended, or is about to
	told    chan struct{} // the daemon has said how the browser ends
}

// NewHolder returns one that wants a browser, and starts it by o where the daemon has none.
func NewHolder(o Options) *Holder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Holder{o: o, wants: true, told: make(chan struct{}, 1)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

var errReleased = errors.New("this process has given its browser up")

// Serve exchanges notices with a daemon, whose Server serves the other end of conn, and returns why it ends. It is
// called once more for each daemon that follows.
func (h *Holder) Serve(conn *net.UnixConn) error {
	defer conn.Close()
	c := &channel{conn: conn}
	if _, _, err := c.receive(); err != nil {
		return err
	}
	served := make(chan struct{})
	defer close(served)
	h.mu.Lock()
	h.conn, h.served = conn, served
	h.mu.Unlock()
	err := h.begin(c)
	for err == nil {
		var n notice
		var e *ends
		if n, e, err = c.receive(); err == nil {
			err = h.handle(c, n, e)
		}
	}
	return err
}

// begin tells the daemon what this process has.
func (h *Holder) begin(c *channel) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return errReleased
	}
	n := notice{Browser: h.ends != nil, Inject: h.inject, Starter: h.started != nil, Wants: h.ends == nil && h.wants}
	return c.send(n, h.ends)
}

func (h *Holder) handle(c *channel, n notice, e *ends) error {
	if n.Start {
		if err := h.start(); err != nil && h.ctx.Err() == nil {
			h.o.Log.Error("a browser cannot be launched", "error", err)
			return c.send(notice{Failed: true}, nil)
		}
		return h.begin(c)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case e != nil:
		h.hold(e)
		h.inject, h.wants = n.Inject, false
	case n.Ended != "":
		h.hold(nil)
		h.wants, h.last = n.Ended == Crashed, true
	case n.Stuck && h.started != nil:
		h.started.piped.Kill()
		h.last = true
	}
	if n.Ended != "" || n.Stuck {
		select {
		case h.told <- struct{}{}:
		default:
		}
	}
	return nil
}

// hold takes ends, or none, in place of those that there were. The lock is held.
func (h *Holder) hold(e *ends) {
	if h.ends != nil {
		h.ends.close()
	}
	if h.ends = e; e != nil && h.ctx.Err() != nil {
		e.close()
		h.ends = nil
	}
}

// start starts a browser for all.
func (h *Holder) start() error {
	s, b, err := Start(h.ctx, h.o)
	if err != nil {
		return err
	}
	e, err := keep(b.to, b.from)
	if err != nil {
		s.End(b)
		return err
	}
	h.o.Log.Info("a browser has been launched", "url", s.URL)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold(e)
	h.inject, h.wants, h.started, h.last = h.o.Inject, false, s, h.ends == nil
	go h.watch(s)
	return nil
}

// watch waits for the end of a browser that this process has started. No other process is told its exit status.
func (h *Holder) watch(s *Started) {
	<-s.piped.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || h.started != s {
		return
	}
	h.hold(nil)
	h.started, h.before, h.wants = nil, s, s.How() == Crashed
	if h.conn != nil {
		(&channel{conn: h.conn}).send(notice{Ended: s.How()}, nil)
	}
}

// Release gives the browser up. If this was its last holder, Release returns when nothing is left of the browser, or
// ctx ends.
func (h *Holder) Release(ctx context.Context) {
	h.stop()
	h.mu.Lock()
	h.hold(nil)
	conn, served := h.conn, h.served
	select {
	case <-h.told: // of an earlier browser
	default:
	}
	h.mu.Unlock()
	if conn != nil {
		defer conn.Close()
		(&channel{conn: conn}).send(notice{Leaves: true}, nil)
		select {
		case <-h.told:
		case <-served: // the browser has other holders, or the daemon has gone
		case <-ctx.Done():
		}
	}
	h.mu.Lock()
	s := h.before
	if h.last && h.started != nil {
		s = h.started
	}
	h.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case <-s.Done():
		if conn != nil {
			(&channel{conn: conn}).send(notice{Clean: true}, nil)
		}
	case <-ctx.Done():
	}
}
