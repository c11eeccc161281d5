package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/peer"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/retry"
)

const (
	// portFirst and portLast are the first and the longest pause between two attempts to listen on
	// the port.
	portFirst, portLast = 20 * time.Millisecond, 250 * time.Millisecond
	// portPatience is the time after which agents are notified that the daemon does not have the
	// port. A dead process keeps it for some milliseconds, and a daemon that retires for a second,
	// in which it answers requests.
	portPatience = 1500 * time.Millisecond
	// headerTimeout is the time for a request's header. Connections without a full header by then
	// are dropped.
	headerTimeout, idleTimeout = 5 * time.Second, 2 * time.Minute
	maxHeader                  = 64 << 10
	// maxIdle bounds the connections of a port without a request under way. Above it, one of the
	// user, or of the other machine, with most of them is closed: idle connections must not use up
	// the process's descriptors.
	maxIdle = 128
	// shutdownTimeout bounds the requests under way when the daemon ends.
	shutdownTimeout = 500 * time.Millisecond
)

// A pagePort is the port for pages, the inspector and agents on HTTP. The daemon works without it
// too.
type pagePort struct {
	addr    string
	handler http.Handler
	notice  func(about, sentence string) // gateway.Gateway.Notice
	log     *slog.Logger
	at      atomic.Pointer[string]
}

// listensAt returns the address of the port, or "" while the daemon does not listen on it.
func (p *pagePort) listensAt() string {
	if at := p.at.Load(); at != nil {
		return *at
	}
	return ""
}

// serve listens on the port as soon as it is free, and serves there until ctx ends.
func (p *pagePort) serve(ctx context.Context) {
	said, since := "", time.Now()
	for range retry.Attempts(ctx, portFirst, portLast) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.addr)
		switch {
		case err == nil:
			p.accept(ctx, l, said != "")
			said, since = "", time.Now()
		case time.Since(since) > portPatience && said != err.Error():
			said = err.Error()
			p.without(err)
		}
	}
}

// without reports to agents and in the log that the daemon does not have the port, and why.
func (p *pagePort) without(err error) {
	const without = "agents go on, without pages that connect by themselves, the inspector and agents on HTTP"
	if inUse(err) {
		p.notice("port", "Another program has "+p.addr+
			": pages that connect by themselves do not get here until it ends.")
		p.log.Warn("something else has the port: "+without+", until it is free", "addr", p.addr,
			"error", err)
		return
	}
	why := err
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		why = failed.Err // without the address, which the notice has already
	}
	p.notice("port", "Pagewire cannot listen on "+p.addr+" ("+why.Error()+
		"): pages that connect by themselves do not "+
		"get here until it can.")
	p.log.Warn("the system does not let us have the port: "+without+
		"; choose another with --hub, or allow this one",
		"addr", p.addr, "error", err)
}

// inUse reports whether listening has failed because another program listens there.
func inUse(err error) bool {
	const ofWindows = syscall.Errno(10048) // WSAEADDRINUSE, which package syscall lacks
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, ofWindows)
}

// newServer returns the server for a port: of the daemon, or of --http.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	idle := quota.NewBacklog(maxIdle, func(c net.Conn) { c.Close() })
	type key struct{}
	var owners sync.Map // by connection
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			idle.Set(r.Context().Value(key{}).(net.Conn), nil, 0)
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(peer.ConnContext(ctx, c), key{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				owners.Store(c, ownerOf(c))
				fallthrough
			case http.StateIdle:
				owner, _ := owners.Load(c)
				idle.Set(c, owner, 1)
			case http.StateHijacked, http.StateClosed:
				owners.Delete(c)
				idle.Set(c, nil, 0)
			}
		},
	}
}

// ownerOf is the user, or the other machine, at the other end of a connection.
func ownerOf(c net.Conn) string {
	who := peer.Of(c)
	if host, _, err := net.SplitHostPort(c.RemoteAddr().String()); err == nil && who == peer.Gone {
		return host
	}
	return who.String()
}

// accept serves at the port until ctx ends, or the listener fails. late means that without has
// reported an error.
func (p *pagePort) accept(ctx context.Context, l net.Listener, late bool) {
	at := l.Addr().String()
	if late {
		p.notice("port", "")
		p.log.Info("the port is free, and pages find the daemon there", "addr", at)
	}
	p.at.Store(&at)
	server := newServer(p.handler, p.log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		l.Close()
		limited, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if server.Shutdown(limited) != nil {
			server.Close()
		}
	})
	err := server.Serve(l)
	p.at.Store(nil)
	if stop() { // ctx goes on
		server.Close()
		p.log.Warn("listening on the port has failed, and is tried again", "addr", at, "error", err)
		return
	}
	<-ended
}
