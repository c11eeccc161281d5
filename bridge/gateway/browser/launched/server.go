//go:build !js && !windows

package launched

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// More than maxCrashes within crashTime, and a browser is not launched again.
	maxCrashes, crashTime = 3, time.Minute
	// reattachEvery is the pause between two attempts to attach to the browser.
	reattachEvery = 250 * time.Millisecond
	// sweepTime is how long the last processes of a browser may take to let its profile go, when its pipe is closed.
	// An attempt costs 20 us.
	sweepTime, sweepEvery = 2 * time.Second, 20 * time.Millisecond
)

// A Server is the daemon's part: it attaches to the browser of the holders, and decides which of them starts one. There
// are two browsers only where a new daemon had a holder start one before the holders of the first had come to it.
type Server struct {
	attach func(ctx context.Context, b *Browser, inject bool) error
	log    *slog.Logger
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	tasks  sync.WaitGroup // one for each browser

	serving atomic.Int32 // connections of holders

	mu      sync.Mutex
	clients []*client
	crashes []time.Time
}

// A client is a Holder as the daemon knows it.
type client struct {
	channel
	wants    bool    // there should be a browser
	starting bool    // it was told to start one
	starter  bool    // it has started the one that it has
	browser  *shared // or nil
}

// A shared browser is one that has holders.
type shared struct {
	*Browser
	ends   *ends // for further holders
	inject bool
	how    chan Ending // has what the starter says of its end
	stop   context.CancelFunc
	closed chan struct{} // closed when this process has nothing of it any more
}

func (b *shared) over() bool {
	select {
	case <-b.Done():
		return true
	default:
		return false
	}
}

// NewServer returns a Server. attach begins with b.Dial, and returns when ctx or the browser ends. Where it returns
// before, it is called again. A Conn of b must always be read: its end is that of the browser.
func NewServer(attach func(ctx context.Context, b *Browser, inject bool) error, log *slog.Logger) *Server {
	s := &Server{attach: attach, log: log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close returns when this process reads and writes no browser's pipe any more, and then lets the holders go to the next
// daemon, which may. The browsers go on.
func (s *Server) Close() {
	s.stop()
	s.tasks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.conn.Close()
	}
}

// Held reports whether there is a holder, be it one that has left and waits for the end of its browser.
func (s *Server) Held() bool { return s.serving.Load() > 0 }

// Serve is the life of a Holder's connection. If it was the browser's last holder, Serve returns when the browser has
// ended.
func (s *Server) Serve(conn *net.UnixConn) {
	defer conn.Close()
	c := &client{channel: channel{conn: conn}}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.clients = append(s.clients, c)
	s.mu.Unlock()
	s.serving.Add(1)
	defer s.serving.Add(-1)
	err, leaving := c.send(notice{}, nil), false
	for err == nil {
		var n notice
		var e *ends
		n, e, err = c.receive()
		switch {
		case err != nil:
		case n.Leaves && !leaving:
			if leaving = s.leave(c); !leaving {
				return
			}
		case n.Clean:
			return
		case !leaving:
			s.handle(c, n, e)
		}
	}
	if lost := new(net.OpError); err != io.EOF && !errors.As(err, &lost) {
		s.log.Warn("a process that asks for the launched browser is refused", "error", err)
	}
	if leaving || s.leave(c) {
		s.sweep()
	}
}

func (s *Server) handle(c *client, n notice, e *ends) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e != nil:
		c.wants, c.starting, c.starter = false, false, n.Starter
		s.adopt(c, e, n.Inject)
	case n.Wants:
		c.wants = true
	case n.Failed:
		c.starting = false
	case n.Ended != "" && c.browser != nil:
		select {
		case c.browser.how <- n.Ended:
		default:
		}
		c.browser.end()
	}
	s.provide()
}

// adopt takes on the browser of a client. The lock is held.
func (s *Server) adopt(c *client, e *ends, inject bool) {
	for _, other := range s.clients {
		if other.browser != nil && other.browser.ends.same(e) {
			c.browser = other.browser
			e.close()
			return
		}
	}
	to, from, err := e.open()
	if err != nil || s.ctx.Err() != nil {
		e.close()
		return
	}
	b := &shared{Browser: newBrowser(to, from), ends: e, inject: inject, how: make(chan Ending, 1),
		closed: make(chan struct{})}
	c.browser = b
	ctx, stop := context.WithCancel(s.ctx)
	b.stop = stop
	s.tasks.Go(func() {
		defer close(b.closed)
		s.follow(ctx, b)
		if s.ctx.Err() == nil {
			s.finish(b)
		}
	})
}

// follow attaches to a browser, again where that fails, until ctx or the browser ends.
func (s *Server) follow(ctx context.Context, b *shared) {
	said := ""
	for {
		err := s.attach(ctx, b.Browser, b.inject)
		select {
		case <-ctx.Done():
			return
		case <-b.Done():
			return
		case <-time.After(reattachEvery):
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			s.log.Warn("the launched browser is not reached, and is tried again", "error", err)
		}
	}
}

// provide gives each client that has none the browser that is there. Where there is none, it tells one that wants it to
// start it. The lock is held.
func (s *Server) provide() {
	var there *shared
	starting := false
	for _, c := range s.clients {
		if c.browser != nil && !c.browser.over() {
			there = c.browser
		}
		starting = starting || c.starting
	}
	for _, c := range s.clients {
		switch {
		case c.browser != nil || c.starting:
		case there != nil:
			c.browser, c.wants, c.starter = there, false, false
			c.send(notice{Browser: true, Inject: there.inject}, there.ends)
		case c.wants && !starting:
			starting, c.starting, c.wants = true, true, false
			c.send(notice{Start: true}, nil)
		}
	}
}

// finish closes this process's part of a browser that has ended, or that has no holder any more and ends therefore. It
// tells the holders how the browser has ended.
func (s *Server) finish(b *shared) {
	abandoned := false
	if b.over() {
		how := s.how(b)
		s.mu.Lock()
		again := how == Crashed && s.again()
		if !again {
			how = Closed
		}
		// The starter starts the next one, if it is there.
		slices.SortStableFunc(s.clients, func(a, b *client) int { return rank(a) - rank(b) })
		abandoned = true
		for _, c := range s.clients {
			if c.browser == b {
				abandoned = abandoned && !c.starter
				c.browser, c.wants = nil, again
				c.send(notice{Ended: how}, nil)
			}
		}
		s.provide()
		s.mu.Unlock()
	}
	b.ends.close()
	ctx, cancel := context.WithTimeout(s.ctx, closeTime)
	defer cancel()
	b.close(ctx)
	if abandoned {
		s.sweep()
	}
}

func rank(c *client) int {
	if c.starter {
		return 0
	}
	return 1
}

// how says how a browser has ended. Its starter knows, if that is there. Else it is seen from the last message.
func (s *Server) how(b *shared) Ending {
	s.mu.Lock()
	known := slices.ContainsFunc(s.clients, func(c *client) bool { return c.browser == b && c.starter })
	s.mu.Unlock()
	if known {
		select {
		case how := <-b.how:
			return how
		case <-time.After(closeTime):
		}
	}
	if b.orderly.Load() {
		return Closed
	}
	return Crashed
}

// again reports whether a browser that has crashed is to be replaced. The lock is held.
func (s *Server) again() bool {
	old := func(t time.Time) bool { return time.Since(t) > crashTime }
	s.crashes = slices.DeleteFunc(append(s.crashes, time.Now()), old)
	if len(s.crashes) <= maxCrashes {
		return true
	}
	s.log.Error("the browser dies again and again, and is not launched any more: start it by hand to see why",
		"times", len(s.crashes), "within", crashTime)
	return false
}

// leave forgets a client, and ends the browser of which it was the last holder. It reports whether the client has to
// clean up behind that.
func (s *Server) leave(c *client) bool {
	s.mu.Lock()
	s.clients = slices.DeleteFunc(s.clients, func(other *client) bool { return other == c })
	b := c.browser
	held := slices.ContainsFunc(s.clients, func(other *client) bool { return other.browser == b })
	s.provide()
	s.mu.Unlock()
	if b == nil || held || s.ctx.Err() != nil {
		return false
	}
	b.stop()
	<-b.closed
	n := notice{Ended: Closed}
	if !b.over() {
		n = notice{Stuck: true}
		s.log.Warn("the launched browser does not end", "starter", c.starter)
	}
	if !c.starter {
		s.sweep()
	}
	c.send(n, nil) // a process that was killed does not receive it
	return c.starter
}

// sweep removes the profile of a browser that has just ended, whose starter has gone before.
func (s *Server) sweep() {
	var left []error
	for end := time.Now().Add(sweepTime); time.Now().Before(end); time.Sleep(sweepEvery) {
		var removed int
		if removed, left = sweep(); removed > 0 {
			break
		}
	}
	for _, err := range left {
		s.log.Warn("after a launched browser", "error", err)
	}
}
