package launched

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
)

// A notice is one byte between a holder and the daemon. holds comes with the ends of a pipe.
type notice byte

const (
	// From a holder: it asks for a browser; it was told to start one and cannot; it gives its browser up; the browser
	// that it has started was closed; that browser crashed; that browser has left nothing behind.
	wants notice = iota + 1
	failed
	leaves
	closed
	crashes
	clean
	// From the daemon: this holder must start a browser; its browser has ended, or goes on without it; it was the last.
	start
	gone
	last
	// From both: the ends of the browser's pipe. Flags say that this holder started it, and that pages are injected.
	holds

	started notice = 0x40
	injects notice = 0x80
)

func (n notice) kind() notice { return n &^ (started | injects) }

// with adds a flag.
func (n notice) with(flag notice, is bool) notice {
	if is {
		n |= flag
	}
	return n
}

// A Holder is an agent's process that asked for the browser. The browser lives as long as one of its Holders.
type Holder struct {
	o    Options
	ctx  context.Context // ends with Release
	stop context.CancelFunc

	mu      sync.Mutex
	conn    *net.UnixConn // to the daemon, or nil
	had     bool          // it had a browser
	ends    *ends         // of the browser's pipe, or nil
	inject  bool
	started *Started      // the last browser that this process started
	served  chan struct{} // closed with conn
	answer  chan notice   // the daemon's answer to leaves: gone, if the browser has other holders, or last
}

// NewHolder returns a Holder that asks for a browser. It starts one with o if the daemon has none.
func NewHolder(o Options) *Holder {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Holder{o: o, answer: make(chan notice, 1)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Serve exchanges notices with a daemon's Server until an error, which it returns. It is called for each daemon.
func (h *Holder) Serve(conn *net.UnixConn) error {
	defer conn.Close()
	served := make(chan struct{})
	defer close(served)
	h.mu.Lock()
	h.conn, h.served = conn, served
	h.mu.Unlock()
	err := h.begin(conn)
	for err == nil {
		var n notice
		var e *ends
		if n, e, err = receive(conn); err == nil {
			err = h.handle(conn, n, e)
		}
	}
	return err
}

// begin tells the daemon of this process's browser, or asks for one.
func (h *Holder) begin(conn *net.UnixConn) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ctx.Err() != nil:
		return errors.New("this process has given its browser up")
	case h.ends != nil:
		own := h.started != nil && h.started.Pipe.ends == h.ends
		return send(conn, holds.with(started, own).with(injects, h.inject), h.ends)
	case !h.had:
		return send(conn, wants, nil)
	}
	return nil
}

func (h *Holder) handle(conn *net.UnixConn, n notice, e *ends) error {
	if n == start {
		s, err := Start(h.ctx, h.o)
		if err != nil {
			h.o.Log.Error("a browser cannot be launched", "error", err)
			return send(conn, failed, nil)
		}
		h.o.Log.Info("a browser has been launched", "url", s.URL)
		h.mu.Lock()
		h.started = s
		h.setEnds(s.Pipe.ends, h.o.Inject)
		h.mu.Unlock()
		if h.ctx.Err() != nil {
			s.Close() // no other process has it
		}
		go h.watch(s)
		return h.begin(conn)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch n.kind() {
	case holds:
		h.setEnds(e, n&injects != 0)
	case gone, last:
		h.setEnds(nil, false)
		if h.ctx.Err() != nil {
			select {
			case h.answer <- n:
			default:
			}
		}
	}
	return nil
}

// watch tells the daemon how a browser has ended that this process started. Only its parent learns that.
func (h *Holder) watch(s *Started) {
	<-s.exited.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ends != s.Pipe.ends {
		return // it was given up
	}
	h.setEnds(nil, false)
	h.had = !s.crashed // after a crash begin asks the next daemon for another browser
	if h.conn == nil {
		return
	}
	if s.crashed {
		send(h.conn, crashes, nil)
	} else {
		send(h.conn, closed, nil)
	}
}

// setEnds replaces the ends by others, or by none. The lock is held.
func (h *Holder) setEnds(e *ends, inject bool) {
	if h.ends != nil {
		h.ends.close()
	}
	if e != nil && h.ctx.Err() != nil {
		e.close()
		e = nil
	}
	h.ends, h.inject, h.had = e, inject, true
}

// Release gives the browser up. The last holder waits until nothing is left of it, or ctx ends.
func (h *Holder) Release(ctx context.Context) {
	h.stop()
	h.mu.Lock()
	h.setEnds(nil, false)
	conn, served := h.conn, h.served
	if conn != nil {
		send(conn, leaves, nil)
	}
	h.mu.Unlock()
	var answer notice
	if conn != nil {
		defer conn.Close()
		select {
		case answer = <-h.answer:
		case <-served: // often closed right after the answer
			select {
			case answer = <-h.answer:
			default:
			}
		case <-ctx.Done():
		}
	}
	h.mu.Lock()
	s := h.started
	h.mu.Unlock()
	switch {
	case s == nil || answer == gone && !s.ended():
		return
	case answer == last:
		go s.Close()
	}
	select {
	case <-s.clean:
		if conn != nil {
			send(conn, clean, nil)
		}
	case <-ctx.Done():
	}
}
