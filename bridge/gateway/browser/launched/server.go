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
	// After more than maxCrashes within crashTime no browser is launched again.
	maxCrashes, crashTime = 3, time.Minute
	// sweepTime is how long the last processes of a browser may keep its profile after its pipe is closed: they take 20
	// ms, and more than 2 s at a load of 60. An attempt costs 20 us. A daemon that ends waits for closeTime.
	sweepTime, sweepEvery = 10 * time.Second, 20 * time.Millisecond
)

// A Server is the daemon's part: it attaches the holders' browser, and decides which holder starts one. It has two
// browsers only if a new daemon told a holder to start one before the holders of the first had connected to it.
type Server struct {
	attach func(ctx context.Context, p *Pipe, inject bool)
	// Failed is called when a holder cannot start a browser. May be nil. It must be set before Serve.
	Failed  func()
	log     *slog.Logger
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	tasks   sync.WaitGroup // one for each browser
	serving atomic.Int32   // connections of holders

	mu      sync.Mutex
	clients []*client
	crashes []time.Time
}

// A client is a Holder as the daemon knows it.
type client struct {
	conn     *net.UnixConn
	wants    bool    // it asks for a browser
	starting bool    // it was told to start one
	starter  bool    // it has started its browser
	browser  *shared // or nil
}

// A shared is a browser with holders.
type shared struct {
	*Pipe
	inject bool
	stop   context.CancelFunc
	closed chan struct{} // closed when this process has closed its ends
	how    chan notice   // receives the starter's report of its end
}

// NewServer returns a Server. attach must read a Conn of p until ctx or the browser ends, and then return.
func NewServer(attach func(ctx context.Context, p *Pipe, inject bool), log *slog.Logger) *Server {
	s := &Server{attach: attach, log: log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close stops using the browsers' pipes, and then closes the connections: the holders go on to the next daemon.
func (s *Server) Close() {
	s.stop()
	s.tasks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.conn.Close()
	}
}

// Held reports whether there is a holder, including one that has left and waits for the end of its browser.
func (s *Server) Held() bool { return s.serving.Load() > 0 }

// Serve serves a Holder's connection. If it was the browser's last holder, Serve returns when the browser has ended.
func (s *Server) Serve(conn *net.UnixConn) {
	defer conn.Close()
	s.serving.Add(1)
	defer s.serving.Add(-1)
	c := &client{conn: conn}
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.clients = append(s.clients, c)
	s.mu.Unlock()
	for {
		n, e, err := receive(conn)
		switch {
		case err != nil:
			if lost := new(net.OpError); err != io.EOF && !errors.Is(err, net.ErrClosed) && !errors.As(err, &lost) {
				s.log.Warn("a process that asks for the launched browser is refused", "error", err)
			}
			s.leave(c, false)
			return
		case n == leaves:
			s.leave(c, true)
			return
		}
		s.handle(c, n, e)
	}
}

func (s *Server) handle(c *client, n notice, e *ends) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n.kind() {
	case holds:
		c.wants, c.starting, c.starter = false, false, n&started != 0
		s.adopt(c, e, n&injects != 0)
	case wants:
		c.wants = true
	case failed:
		c.starting = false
		if s.Failed != nil {
			s.Failed()
		}
	case closed, crashes:
		if c.browser != nil {
			select {
			case c.browser.how <- n:
			default:
			}
		}
	}
	s.provide()
}

// adopt takes over the browser of a client. The lock is held.
func (s *Server) adopt(c *client, e *ends, inject bool) {
	for _, other := range s.clients {
		if other.browser != nil && other.browser.same(e) {
			c.browser = other.browser
			e.close()
			return
		}
	}
	if s.ctx.Err() != nil {
		e.close()
		return
	}
	b := &shared{Pipe: newPipe(e), inject: inject, closed: make(chan struct{}), how: make(chan notice, 1)}
	c.browser = b
	ctx, stop := context.WithCancel(s.ctx)
	b.stop = stop
	s.tasks.Go(func() {
		defer close(b.closed)
		s.attach(ctx, b.Pipe, inject)
		switch {
		case s.ctx.Err() != nil:
			b.ends.close()
		case b.over():
			s.ended(b)
		case !b.close(closeTime):
			s.log.Warn("the launched browser does not end")
		}
	})
}

// provide gives the browser to each client without one, or tells a client that asks to start one. The lock is held.
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
			send(c.conn, holds.with(injects, there.inject), there.ends)
		case c.wants && !starting:
			starting, c.starting, c.wants = true, true, false
			send(c.conn, start, nil)
		}
	}
}

// ended tells the holders of a browser that it has ended. If it has crashed, one of them starts another.
func (s *Server) ended(b *shared) {
	crashed := s.crashed(b)
	s.mu.Lock()
	again := crashed && s.again()
	cleans := false // the starter removes the profile
	for _, c := range s.clients {
		if c.browser == b {
			cleans = cleans || c.starter
			c.browser, c.wants = nil, again
			send(c.conn, gone, nil)
		}
	}
	b.ends.close()
	s.provide()
	s.mu.Unlock()
	if !cleans {
		s.sweep()
	}
}

// crashed reports whether a browser has ended without being closed. Its starter reports that, if it is still there.
// Otherwise the last message decides; on a busy machine a browser may end without sending one.
func (s *Server) crashed(b *shared) bool {
	s.mu.Lock()
	known := slices.ContainsFunc(s.clients, func(c *client) bool { return c.browser == b && c.starter })
	s.mu.Unlock()
	if known {
		select {
		case how := <-b.how:
			return how == crashes
		case <-time.After(closeTime):
		}
	}
	return !b.orderly.Load()
}

// again reports whether to replace a crashed browser. The lock is held.
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

// leave forgets a client, and ends the browser if the client was its last holder. A client that started the browser,
// and leaves in order, removes the profile itself if it has the time.
func (s *Server) leave(c *client, orderly bool) {
	s.mu.Lock()
	s.clients = slices.DeleteFunc(s.clients, func(other *client) bool { return other == c })
	b := c.browser
	held := slices.ContainsFunc(s.clients, func(other *client) bool { return other.browser == b })
	s.provide()
	s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return
	case b == nil || held:
		send(c.conn, gone, nil)
		return
	}
	cleans := orderly && c.starter
	if cleans {
		send(c.conn, last, nil)
	}
	b.stop()
	<-b.closed
	if cleans {
		if n, _, err := receive(c.conn); err == nil && n == clean {
			return
		}
	}
	s.sweep()
	send(c.conn, last, nil)
}

// sweep removes the profile of a browser that has just ended and has no starter any more.
func (s *Server) sweep() {
	for begin := time.Now(); time.Since(begin) < sweepTime; time.Sleep(sweepEvery) {
		if s.ctx.Err() != nil && time.Since(begin) > closeTime {
			return
		}
		removed, err := sweep()
		if err != nil {
			s.log.Warn("after a launched browser", "error", err)
		}
		if removed > 0 {
			return
		}
	}
}
