//go:build !js

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/access"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

const (
	// A request that is not one by then is nobody's.
	headerTimeout, idleTimeout = 5 * time.Second, 2 * time.Minute
	maxHeader                  = 64 << 10
	// shutdownTimeout is how long requests under way may take when the hub ends. Joins take none of it.
	shutdownTimeout = 500 * time.Millisecond
	// helloTimeout is how long a joiner may take to introduce itself. Nobody waits for it, so that it may be busy.
	helloTimeout = 10 * time.Second
	// tellEvery is how often a joiner hears of the hub.
	tellEvery = 500 * time.Millisecond
	// maxJoiners bounds the processes that have joined: each is one agent's, or a browser's native host.
	maxJoiners = 256
	// maxToHub bounds a message of a joiner: an agent's may have 4 MiB.
	maxToHub = 8 << 20
)

// errDeposed is the cause of the end of a hub that another one has replaced.
var errDeposed = errors.New("another process is the hub now")

// A leader is a hub's side of those who have joined it.
type leader struct {
	o    Options
	seat *seat
	port *port

	mu      sync.Mutex
	closing bool
	joiners map[*wsconn.Conn]bool
	gone    sync.WaitGroup
}

// lead is one life as the hub, until ctx ends or another process is the hub, which is to be followed by a life as its
// joiner, or Lead fails.
func (m *member) lead(parent context.Context, s *seat) (deposed bool, err error) {
	if !s.holds() { // a higher generation has begun before the lock was taken
		s.l.Close()
		return true, nil
	}
	m.settle()
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	h := &leader{o: m.o, seat: s, port: newPort(m.o), joiners: map[*wsconn.Conn]bool{}}
	server := newServer(ctx, h.local(), m.o.Log)
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := server.Serve(s.l); ctx.Err() == nil {
			end(fmt.Errorf("the hub's socket: %w", err))
		}
	})
	parts.Go(func() { h.port.serve(ctx) })
	parts.Go(func() { h.watch(ctx, end) })
	parts.Go(func() { m.bring(ctx, end) })
	m.o.Log.Info("this process is the hub", "addr", m.o.Addr, "generation", s.at)
	m.o.Settled(s.at)
	<-ctx.Done()
	h.close()
	shutdown(server)
	parts.Wait()
	err = causeOf(parent, ctx)
	if errors.Is(err, errDeposed) {
		m.o.Log.Warn("this process is no longer the hub: it was stopped, or its lock was removed, and another one has "+
			"begun",
			"generation", s.at)
		return true, nil
	}
	return false, err
}

// causeOf is why a life has ended: nil if that was parent's end.
func causeOf(parent, ctx context.Context) error {
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// solo is a life without others, until ctx ends or Lead fails.
func (m *member) solo(parent context.Context) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	var parts sync.WaitGroup
	parts.Go(func() { newPort(m.o).serve(ctx) })
	parts.Go(func() { m.bring(ctx, end) })
	m.o.Settled(0)
	<-ctx.Done()
	parts.Wait()
	return causeOf(parent, ctx)
}

// bring runs Lead.
func (m *member) bring(ctx context.Context, end context.CancelCauseFunc) {
	if m.o.Lead == nil {
		return
	}
	if err := m.o.Lead(ctx); err != nil && ctx.Err() == nil {
		end(err)
	}
}

func newServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnContext: access.ConnContext,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

func shutdown(server *http.Server) {
	limited, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if server.Shutdown(limited) != nil {
		server.Close()
	}
}

// local is what is served to this user's processes.
func (h *leader) local() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(joinPath, h.join)
	mux.HandleFunc("GET "+statusPath, h.status)
	if h.o.Local != nil {
		mux.Handle("/", h.o.Local)
	}
	return mux
}

// watch ends the life of a hub that has been replaced. A process that was stopped comes here first of all when it
// wakes, since the time is over then.
func (h *leader) watch(ctx context.Context, end context.CancelCauseFunc) {
	t := time.NewTicker(generationEvery)
	defer t.Stop()
	for {
		if !h.seat.holds() {
			end(errDeposed)
			return
		}
		h.seat.tidy()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (h *leader) status(w http.ResponseWriter, _ *http.Request) {
	s := h.o.Gateway.Snapshot()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Status{ // who asked may have gone
		Build: h.o.Build, Protocol: Protocol, Generation: h.seat.at, Addr: h.port.addr(),
		Pages: len(s.Pages), Agents: len(s.Agents),
	})
}

// join takes a gateway in: its agents' requests come as one agent's.
func (h *leader) join(w http.ResponseWriter, r *http.Request) {
	c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxToHub})
	if err != nil {
		return // it has been answered
	}
	its, why := h.greet(c)
	if why != "" {
		h.o.Log.Warn("refused a joiner", "reason", why)
		return
	}
	if why := h.enter(c); why != "" {
		c.CloseWith(websocket.StatusTryAgainLater, why)
		return
	}
	err = h.host(r.Context(), c, its)
	h.o.Log.Info("a joiner is gone", "build", its.Build, "reason", err)
}

// host has a joiner that has entered until either ends, and says why it has ended.
func (h *leader) host(ctx context.Context, c *wsconn.Conn, its hello) error {
	defer h.leave(c)
	transport := gateway.TransportGateway
	if its.As == asAgent {
		transport = gateway.TransportCommand
	}
	agent, err := h.o.Gateway.Connect(transport)
	if err != nil {
		c.CloseWith(websocket.StatusTryAgainLater, "the hub takes no more sessions")
		return err
	}
	if err := c.Write(ctx, encode(h.hello())); err != nil {
		agent.Close()
		return err
	}
	go h.tell(c, agent, its.As != asAgent)
	return serve(c, agent)
}

func (h *leader) hello() hello { return hello{Type: typeHello, Protocol: Protocol, Build: h.o.Build} }

// greet hears who wants to join, and closes the connection if it cannot; why then says what was wrong.
func (h *leader) greet(c *wsconn.Conn) (its hello, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), helloTimeout)
	defer cancel()
	text, err := c.ReadNote(ctx)
	if err == nil {
		its, err = decodeHello(text)
	}
	switch {
	case err != nil:
		why = err.Error()
	case its.Protocol != Protocol:
		// It makes a sentence of its own of our hello.
		_ = c.Write(ctx, encode(h.hello())) // it may have gone
		why = versions(its, h.hello())
	default:
		return its, ""
	}
	c.CloseWith(websocket.StatusPolicyViolation, brief(why))
	return its, why
}

// serve carries messages between a joiner and its session until either ends, and says why.
func serve(c *wsconn.Conn, agent *gateway.Agent) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			message, err := agent.Read(ctx)
			if err != nil || c.Write(ctx, message) != nil {
				c.Close() // the session has ended: by the gateway's decision, or because the joiner takes nothing
				return
			}
		}
	}()
	for {
		message, err := c.Read(ctx)
		if err == nil {
			err = agent.Write(ctx, message)
		}
		if err != nil {
			agent.Close()
			c.Close()
			<-written
			return err
		}
	}
}

// enter returns why a joiner cannot be taken, or "".
func (h *leader) enter(c *wsconn.Conn) string {
	if !h.seat.holds() { // asked here too: a hub that has just woken may be asked before it has looked by itself
		return "the hub has been replaced"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return "the hub goes away"
	}
	if len(h.joiners) == maxJoiners {
		return "the hub has as many joiners as it takes"
	}
	h.joiners[c] = true
	h.gone.Add(1)
	return ""
}

func (h *leader) leave(c *wsconn.Conn) {
	h.mu.Lock()
	delete(h.joiners, c)
	h.mu.Unlock()
	c.Close()
	h.gone.Done()
}

// close gives the hub's place up, then ends all joins, at the same time, and waits until they are gone. In this order:
// who has joined looks for the lock the moment the connection ends. If there is nobody no file is left.
func (h *leader) close() {
	h.mu.Lock()
	h.closing = true
	if len(h.joiners) > 0 {
		h.seat.l.Close()
	} else {
		h.seat.l.Remove()
	}
	for c := range h.joiners {
		go c.CloseWith(websocket.StatusGoingAway, "the hub goes away")
	}
	h.mu.Unlock()
	h.gone.Wait()
}

// tell lets a joiner hear of the hub as long as it works, and of what is shared when that has changed.
func (h *leader) tell(c *wsconn.Conn, agent *gateway.Agent, shares bool) {
	t := time.NewTicker(tellEvery)
	defer t.Stop()
	var told map[string]string
	for first := true; ; first = false {
		agent.Settled() // takes the gateway's lock: one that is stuck says nothing, and is replaced
		next := note{Type: typeAlive}
		if shares && h.o.Share != nil {
			if now := h.o.Share(); first || !maps.Equal(now, told) {
				told = maps.Clone(now)
				next = note{Type: typeShare, Share: now}
			}
		}
		if c.Write(context.Background(), encode(next)) != nil {
			return // the connection has ended, which is dealt with
		}
		select {
		case <-c.Closed():
			return
		case <-t.C:
		}
	}
}
