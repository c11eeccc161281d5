//go:build !js

package hub

import (
	"context"
	"encoding/json"
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
	"github.com/pagewire/pagewire/bridge/gateway/internal/bearer"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

const (
	// A request that is not one by then is nobody's.
	headerTimeout, idleTimeout = 5 * time.Second, 2 * time.Minute
	maxHeader                  = 64 << 10
	// shutdownTimeout is how long requests under way may take when the hub ends. Joins take none of it.
	shutdownTimeout = 500 * time.Millisecond
	// shareEvery is how often what is shared is looked at.
	shareEvery = 500 * time.Millisecond
	// maxJoiners bounds the processes that have joined: each is one agent's, or a browser's native host.
	maxJoiners = 256
)

// A leader is a hub's side of those who have joined it.
type leader struct {
	o Options

	mu      sync.Mutex
	closing bool
	joiners map[*wsconn.Conn]bool
	shared  map[string]string // what they have been told
	gone    sync.WaitGroup
}

// lead is one life as the hub, until ctx ends, the listener fails or Lead does.
func lead(ctx context.Context, o Options, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &leader{o: o, joiners: map[*wsconn.Conn]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc(joinPath, h.join)
	if o.Handler != nil {
		mux.Handle("/", o.Handler)
	}
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: access.ConnContext,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	var parts sync.WaitGroup
	failed := make(chan error, 2)
	parts.Go(func() {
		if err := server.Serve(listener); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("the hub's listener: %w", err)
		}
	})
	if o.Lead != nil {
		parts.Go(func() {
			if err := o.Lead(ctx); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	if o.Share != nil {
		parts.Go(func() { h.share(ctx) })
	}
	o.Log.Info("this process is the hub", "addr", listener.Addr().String())
	o.Settled()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	cancel()
	// The port first: who has joined looks for it the moment the connection ends.
	listener.Close()
	h.close()
	limited, end := context.WithTimeout(context.Background(), shutdownTimeout)
	defer end()
	if server.Shutdown(limited) != nil {
		server.Close()
	}
	parts.Wait()
	return err
}

// join takes a gateway in: its agents' requests come as one agent's.
func (h *leader) join(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(hubHeader, "1")
	if r.Header.Get("Origin") != "" {
		h.o.Log.Warn("refused a browser at the hub's door for gateways", "origin", r.Header.Get("Origin"))
		http.Error(w, "Pages cannot join: this is for other gateways of this machine.", http.StatusForbidden)
		return
	}
	if !bearer.Has(r, h.o.Token) {
		h.o.Log.Warn("refused a process without the token", "remote", r.RemoteAddr)
		http.Error(w, "The token is missing or another one: send that of the token file as a bearer token.", http.StatusUnauthorized)
		return
	}
	c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxToHub})
	if err != nil {
		return // it has been answered
	}
	if why := h.enter(c); why != "" {
		c.CloseWith(websocket.StatusTryAgainLater, why)
		return
	}
	defer h.leave(c)
	agent, err := h.o.Gateway.Connect("gateway")
	if err != nil {
		c.CloseWith(websocket.StatusTryAgainLater, "the hub takes no more sessions")
		return
	}
	why := serve(c, agent)
	h.o.Log.Info("a joiner is gone", "remote", r.RemoteAddr, "reason", why)
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
	if h.o.Share != nil {
		h.refresh()
		go h.tell(c, h.shared)
	}
	return ""
}

func (h *leader) leave(c *wsconn.Conn) {
	h.mu.Lock()
	delete(h.joiners, c)
	h.mu.Unlock()
	h.gone.Done()
}

// close ends all joins, at the same time, and waits until they are gone.
func (h *leader) close() {
	h.mu.Lock()
	h.closing = true
	for c := range h.joiners {
		go c.CloseWith(websocket.StatusGoingAway, "the hub goes away")
	}
	h.mu.Unlock()
	h.gone.Wait()
}

// share tells the joiners when what is shared has changed.
func (h *leader) share(ctx context.Context) {
	t := time.NewTicker(shareEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		h.mu.Lock()
		if len(h.joiners) > 0 && h.refresh() {
			for c := range h.joiners {
				go h.tell(c, h.shared)
			}
		}
		h.mu.Unlock()
	}
}

// refresh reports whether what is shared has changed. It is called with the lock held.
func (h *leader) refresh() bool {
	now := h.o.Share()
	if maps.Equal(now, h.shared) {
		return false
	}
	h.shared = maps.Clone(now)
	return true
}

func (h *leader) tell(c *wsconn.Conn, shared map[string]string) {
	if text, err := json.Marshal(shareNote{shareType, shared}); err == nil {
		c.Write(context.Background(), text) // a failure ends the connection, which is dealt with
	}
}
