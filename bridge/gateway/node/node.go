//go:build !js

// Package node makes one process of the gateway's parts: what `pagewire serve` runs.
//
// Every such process has a Gateway of its own, which serves its own agents (stdio, HTTP). One of them is the hub (package hub) and
// brings the pages in: from browsers (browsers.go), by WebSocket, through the extension; the others get them from it. The
// package decides nothing that one of the parts could decide; it only says who is told of what, and in what order all ends.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/inspect"
	"github.com/pagewire/pagewire/bridge/gateway/native"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
	"github.com/pagewire/pagewire/bridge/gateway/socket"
)

// Options say what a process serves.
type Options struct {
	// Version is what agents, pages and people are told. Default "0".
	Version string
	// Stdio serves one agent on In and Out; the process ends with it.
	Stdio bool
	In    io.Reader
	Out   io.Writer
	// HTTP is a further address where agents are served, besides the hub's. "" means none.
	HTTP string
	// Hub is where the hub listens. Default hub.DefaultAddr.
	Hub string
	// Chrome is the DevTools URL of a browser that runs, or "auto" for one that is looked for.
	Chrome string
	// Launch runs a browser, Headless without a window, with the URLs of Open in its first tabs and BrowserFlags.
	Launch, Headless bool
	Open             []string
	BrowserFlags     []string
	// DebugPort is a TCP port on loopback where the launched browser listens besides, for every process of the machine:
	// "0" is one that the system chooses. "" means that it listens nowhere.
	DebugPort string
	// Inject gives the page layer to the pages that have none.
	Inject bool
	// AllowOrigins and DenyOrigins are those of gateway.Options and socket.Options: a page that connects by itself must be at
	// loopback or allowed; one in a browser that the user has handed over is served unless others are allowed and it is not.
	AllowOrigins, DenyOrigins []string
	// RequireToken asks agents on loopback for the token too. Off loopback it is always asked for.
	RequireToken bool
	// TokenFile is where the token is. Default hub.TokenFile.
	TokenFile string
	// AnyScheme is gateway.Options.AnyScheme.
	AnyScheme bool
	// Log receives what happens. Default none.
	Log *slog.Logger
}

// ErrUsage wraps what is wrong with Options.
var ErrUsage = errors.New("usage")

// Run serves until ctx ends, the agent on stdio leaves, or the parent process does; all of these are nil. It ends within a
// second, in order: agents have answers to what they asked, a browser that it has launched is closed unless other gateways
// use it, and nothing that it has made is left.
func Run(ctx context.Context, o Options) error {
	if o.Hub == "" {
		o.Hub = hub.DefaultAddr
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Launch && o.Chrome != "" {
		return fmt.Errorf("%w: a browser is launched or attached to, not both", ErrUsage)
	}
	if host, _, err := net.SplitHostPort(o.Hub); err != nil || !gateway.IsLoopback("http://"+net.JoinHostPort(host, "1")) {
		return fmt.Errorf("%w: the hub's address must be a loopback address and a port, like %s, and not %q; agents elsewhere are served by --http", ErrUsage, hub.DefaultAddr, o.Hub)
	}
	file := o.TokenFile
	if file == "" {
		var err error
		if file, err = hub.TokenFile(); err != nil {
			return err
		}
	}
	token, err := hub.Token(file)
	if err != nil {
		return err
	}
	if o.Stdio {
		var stop context.CancelFunc
		ctx, stop = serve.Orphaned(ctx)
		defer stop()
	}
	// The parts go on until what has to be in order is done, also where ctx has ended.
	parent := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	defer cancel()

	g := gateway.New(gateway.Options{Version: o.Version, Allow: withLoopback(o.AllowOrigins), Deny: o.DenyOrigins, AnyScheme: o.AnyScheme, Log: o.Log})
	pages := socket.New(g, socket.Options{AllowOrigins: o.AllowOrigins, Extensions: []string{native.ExtensionID}, Token: token, Log: o.Log})
	browsers := newBrowsers(g, o, token)
	looks := inspect.Handler(g, inspect.Options{Version: o.Version, Log: o.Log, Origins: []string{native.ExtensionOrigin}, Token: asked(o.RequireToken, token)})
	front := func(loopback bool, hosts ...string) (http.Handler, *serve.HTTP) {
		agents := serve.NewHTTP(g, serve.HTTPOptions{Token: asked(o.RequireToken || !loopback, token), Hosts: hosts, Log: o.Log})
		mux := http.NewServeMux()
		mux.Handle("/mcp", agents)
		if loopback {
			mux.Handle("/page", pages) // it knows whom to admit
			mux.Handle("POST "+browsersPath, browsers)
			mux.Handle("/", serve.Guard(looks, serve.GuardOptions{Origins: []string{native.ExtensionOrigin}}))
		}
		return mux, agents
	}
	handler, hubAgents := front(true)
	fronts := []*serve.HTTP{hubAgents}

	var parts sync.WaitGroup
	failed := make(chan error, 4)
	part := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			err := run(ctx)
			if ctx.Err() == nil {
				failed <- err // also nil: the agent has left
				if err != nil {
					o.Log.Error("a part of the gateway has failed", "part", name, "error", err)
				}
			}
		})
	}
	var listener net.Listener
	if o.HTTP != "" {
		host, _, err := net.SplitHostPort(o.HTTP)
		if err != nil {
			return fmt.Errorf("%w: %q is no address to listen on: it is like 127.0.0.1:8080", ErrUsage, o.HTTP)
		}
		if listener, err = net.Listen("tcp", o.HTTP); err != nil {
			return fmt.Errorf("serve agents at %s: %w; stop what listens there, or choose another port", o.HTTP, err)
		}
		loopback := gateway.IsLoopback("http://" + net.JoinHostPort(host, "1"))
		h, agents := front(loopback, host)
		fronts = append(fronts, agents)
		part("http", func(ctx context.Context) error { return listen(ctx, listener, h, o.Log) })
		o.Log.Info("agents are served", "url", "http://"+listener.Addr().String()+"/mcp", "token", o.RequireToken || !loopback)
	}
	settled := make(chan struct{})
	part("hub", func(ctx context.Context) error {
		return hub.Run(ctx, hub.Options{
			Addr: o.Hub, Token: token, Gateway: g, Handler: handler, Log: o.Log,
			Lead: browsers.lead, Share: browsers.share, Learn: browsers.learn, Settled: sync.OnceFunc(func() { close(settled) }),
		})
	})
	if o.Stdio {
		part("stdio", func(ctx context.Context) error {
			// An agent that asks at once for the list gets that of the hub: it is there within 20 ms.
			select {
			case <-settled:
			case <-time.After(settleTimeout):
			case <-ctx.Done():
			}
			return serve.Stdio(ctx, g, o.In, o.Out)
		})
	}
	select {
	case <-parent.Done():
	case err = <-failed:
	}
	limited, end := context.WithTimeout(context.Background(), endTimeout)
	defer end()
	browsers.close(limited)
	for _, f := range fronts {
		f.Close(limited)
	}
	g.Close()
	pages.Close()
	cancel()
	done := make(chan struct{})
	go func() {
		parts.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-limited.Done(): // a read of stdin cannot be ended; the process is about to
	}
	return err
}

// settleTimeout is how long an agent on stdio waits to be served while it is not decided who is the hub.
const settleTimeout = time.Second

// endTimeout bounds an orderly end.
const endTimeout = 900 * time.Millisecond

// listen serves h until ctx ends.
func listen(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

func asked(ask bool, token string) string {
	if ask {
		return token
	}
	return ""
}

// withLoopback admits this machine's own pages besides those that are listed; no list means all.
func withLoopback(origins []string) []string {
	if len(origins) == 0 {
		return nil
	}
	return append(append([]string{}, origins...), gateway.Loopback)
}
