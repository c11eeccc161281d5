//go:build !js

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
	"github.com/pagewire/pagewire/bridge/gateway/access"
	"github.com/pagewire/pagewire/bridge/gateway/agents"
	"github.com/pagewire/pagewire/bridge/gateway/agents/hook"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/gateway/pages/extension"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
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
	// Hub is where pages find the hub, and tells those who share their pages from others. Default hub.DefaultAddr.
	Hub string
	// Settled is hub.Options.Settled. May be nil.
	Settled func(generation uint64)
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
	// AllowOrigins and DenyOrigins are those of gateway.Options and socket.Options: a page that connects by itself must
	// be at loopback or allowed; one in a browser that the user has handed over is served unless others are allowed and
	// it is not.
	AllowOrigins, DenyOrigins []string
	// AllowHosts are the names, besides those of loopback, by which the ports may be asked: those in the Host header.
	AllowHosts []string
	// NoToken asks no token of agents on loopback that the kernel knows as this user's processes.
	NoToken bool
	// TLSCert and TLSKey are files in PEM for HTTP; without them an address that other machines reach takes
	// InsecureHTTP.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// Shares bound what one agent on HTTP may have.
	Shares agents.Shares
	// TokenFile is where the token is. Default hub.TokenFile.
	TokenFile string
	// AnyScheme is gateway.Options.AnyScheme.
	AnyScheme bool
	// Reminders, ReminderChars and Seen are those of gateway.Options.
	Reminders     gateway.Reminders
	ReminderChars int
	Seen          seen.Limits
	// Log receives what happens. Default none.
	Log *slog.Logger
}

// ErrUsage wraps what is wrong with Options.
var ErrUsage = errors.New("usage")

// Run serves until ctx ends, the agent on stdio leaves, or the parent process does; all of these are nil. It ends
// within a second, or two on a busy machine, in order: agents have answers to what they asked, a browser that it has
// launched is closed unless other gateways use it, and nothing that it has made is left.
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
	if host, _, err := net.SplitHostPort(o.Hub); err != nil ||
		!weborigin.IsLoopback("http://"+net.JoinHostPort(host, "1")) {
		return fmt.Errorf("%w: the hub's address must be a loopback address and a port, like %s, and not %q; agents "+
			"elsewhere are served by --http", ErrUsage, hub.DefaultAddr, o.Hub)
	}
	file := o.TokenFile
	if file == "" {
		var err error
		if file, err = hub.TokenFile(); err != nil {
			return err
		}
	}
	token, tokenErr := hub.Token(file)
	if tokenErr != nil {
		if !o.Stdio {
			return tokenErr
		}
		// The agent on stdio needs none, nor do the other gateways.
		o.Log.Error("there is no token: what needs it, agents on HTTP and the inspector, is not served", "error",
			tokenErr)
	}
	if o.Stdio {
		var stop context.CancelFunc
		ctx, stop = agents.Orphaned(ctx)
		defer stop()
	}
	// The parts go on until what has to be in order is done, also where ctx has ended.
	parent := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	defer cancel()

	g := gateway.New(gateway.Options{
		Version: o.Version, Allow: withLoopback(o.AllowOrigins), Deny: o.DenyOrigins, AnyScheme: o.AnyScheme,
		Reminders: o.Reminders, ReminderChars: o.ReminderChars, Seen: o.Seen, Log: o.Log,
	})
	if tokenErr != nil {
		g.Notice("token", "Pages are served, agents on HTTP and the inspector are not: "+tokenErr.Error()+".")
	}
	browsers := newBrowsers(g, o)
	front := newFront(g, o, token, func() (string, error) { return extension.Secret(file) })
	local := http.NewServeMux() // for this user's processes
	local.Handle("/page", front.pages.Host())
	local.Handle(access.TicketPath, front.local.Tickets())
	local.Handle("POST "+browsersPath, browsers)
	local.Handle("POST "+hook.Path, hook.Handler(g))

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
	if o.HTTP != "" {
		port, err := openPort(o)
		if err != nil {
			return err
		}
		part("http", func(ctx context.Context) error { return port.serve(ctx, front.handler(port.public), o.Log) })
		o.Log.Info("agents are served", "url", port.url(), "token", port.public || !o.NoToken)
	}
	settled := make(chan struct{})
	once := sync.OnceFunc(func() { close(settled) })
	part("hub", func(ctx context.Context) error {
		return hub.Run(ctx, hub.Options{
			Addr: o.Hub, Build: o.Version, Gateway: g, Handler: front.handler(false), Local: local, Log: o.Log,
			Lead: browsers.lead, Share: browsers.share, Learn: browsers.learn,
			Settled: func(generation uint64) {
				once()
				if o.Settled != nil {
					o.Settled(generation)
				}
			},
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
			return agents.Stdio(ctx, g, o.In, o.Out)
		})
		part("hooks", func(ctx context.Context) error {
			hook.Serve(ctx, o.Hub, g, o.Log)
			<-ctx.Done()
			return nil
		})
	}
	var err error
	select {
	case <-parent.Done():
	case err = <-failed:
	}
	limited, end := context.WithTimeout(context.Background(), endTimeout)
	defer end()
	browsers.close(limited)
	front.agents.Close(limited)
	g.Close()
	front.pages.Close()
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

// endTimeout bounds an orderly end, of which a browser's takes the most: 0.2 s, and more than 1 s on a machine that is
// busy. Some clients kill a server 2 s after they have closed its input.
const endTimeout = 1800 * time.Millisecond

// withLoopback admits this machine's own pages besides those that are listed; no list means all.
func withLoopback(origins []string) []string {
	if len(origins) == 0 {
		return nil
	}
	return append(append([]string{}, origins...), weborigin.Loopback)
}
