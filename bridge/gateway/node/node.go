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
	// AllowOrigins and DenyOrigins are those of gateway.Options: a page that connects by itself must
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
	// Reminders are those of gateway.Options.
	Reminders gateway.Reminders
	// Log receives what happens. Default none.
	Log *slog.Logger
}

// ErrUsage wraps what is wrong with Options.
var ErrUsage = errors.New("usage")

// Run serves until ctx ends, the agent on stdio leaves, or the parent process does; all of these are nil. It ends
// within a second, or two on a busy machine, in order: agents have answers to what they asked, a browser that it has
// launched is closed unless other gateways use it, and nothing that it has made is left.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	known, err := secretsOf(&o)
	if err != nil {
		return err
	}
	if o.Stdio {
		var stop context.CancelFunc
		ctx, stop = agents.Orphaned(ctx)
		defer stop()
	}
	p := newProcess(ctx, o, known)
	defer p.cancel()
	if err := p.start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-p.failed:
	}
	p.end()
	return err
}

// check sets defaults, and refuses what makes no sense.
func (o *Options) check() error {
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
	return nil
}

// secrets are the user's token, in the file beside which the extension's secret is; or why there is none.
type secrets struct {
	file, token string
	missing     error
}

func secretsOf(o *Options) (s secrets, err error) {
	if s.file = o.TokenFile; s.file == "" {
		s.file, s.missing = hub.TokenFile()
	}
	if s.missing == nil {
		s.token, s.missing = hub.Token(s.file)
	}
	switch {
	case s.missing == nil:
	case !o.Stdio:
		return s, s.missing
	default:
		// The agent on stdio needs none, nor do the other gateways.
		o.Log.Error("there is no token: what needs it, agents on HTTP and the inspector, is not served", "error",
			s.missing)
	}
	return s, nil
}

// extension is what the extension must know. Where nobody knows where the token is, it is not looked for elsewhere.
func (s secrets) extension() (string, error) {
	if s.file == "" {
		return "", s.missing
	}
	return extension.Secret(s.file)
}

// A process is a gateway with all its parts.
type process struct {
	o        Options
	g        *gateway.Gateway
	browsers *browsers
	front    *front
	local    http.Handler // for this user's processes

	ctx    context.Context // the parts'
	cancel context.CancelFunc
	parts  sync.WaitGroup
	failed chan error
}

func newProcess(parent context.Context, o Options, known secrets) *process {
	g := gateway.New(gateway.Options{
		Version: o.Version, Allow: withLoopback(o.AllowOrigins), Deny: o.DenyOrigins, AnyScheme: o.AnyScheme,
		Reminders: o.Reminders, Log: o.Log,
	})
	if known.missing != nil {
		g.Notice("token", "Pages are served, agents on HTTP and the inspector are not: "+known.missing.Error()+".")
	}
	p := &process{o: o, g: g, browsers: newBrowsers(g, o), failed: make(chan error, 4)}
	// The parts go on until what has to be in order is done, also where parent has ended.
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(parent))
	p.front = newFront(g, o, known.token, known.extension)
	local := http.NewServeMux()
	local.Handle("/page", p.front.pages.Host())
	local.Handle(access.TicketPath, p.front.local.Tickets())
	local.Handle("POST "+browsersPath, p.browsers)
	local.Handle("POST "+hook.Path, hook.Handler(g))
	p.local = local
	return p
}

// part runs one of the parts; when it ends, the process does.
func (p *process) part(name string, run func(context.Context) error) {
	p.parts.Go(func() {
		err := run(p.ctx)
		if p.ctx.Err() == nil {
			p.failed <- err // also nil: the agent has left
			if err != nil {
				p.o.Log.Error("a part of the gateway has failed", "part", name, "error", err)
			}
		}
	})
}

// start begins all parts, or none.
func (p *process) start() error {
	o := p.o
	if o.HTTP != "" {
		port, err := openPort(o)
		if err != nil {
			return err
		}
		p.part("http", func(ctx context.Context) error {
			return port.serve(ctx, p.front.handler(port.public), o.Log)
		})
		o.Log.Info("agents are served", "url", port.url(), "token", port.public || !o.NoToken)
	}
	settled := make(chan struct{})
	once := sync.OnceFunc(func() { close(settled) })
	p.part("hub", func(ctx context.Context) error {
		return hub.Run(ctx, hub.Options{
			Addr: o.Hub, Build: o.Version, Gateway: p.g, Handler: p.front.handler(false), Local: p.local, Log: o.Log,
			Lead: p.browsers.lead, Share: p.browsers.share, Learn: p.browsers.learn,
			Settled: func(generation uint64) {
				once()
				if o.Settled != nil {
					o.Settled(generation)
				}
			},
		})
	})
	if o.Stdio {
		p.part("stdio", func(ctx context.Context) error {
			// An agent that asks at once for the list gets that of the hub: it is there within 20 ms.
			select {
			case <-settled:
			case <-time.After(settleTimeout):
			case <-ctx.Done():
			}
			return agents.Stdio(ctx, p.g, o.In, o.Out)
		})
		p.part("hooks", func(ctx context.Context) error {
			hook.Serve(ctx, o.Hub, p.g, o.Log)
			<-ctx.Done()
			return nil
		})
	}
	return nil
}

// end ends the parts in order, within endTimeout.
func (p *process) end() {
	limited, end := context.WithTimeout(context.Background(), endTimeout)
	defer end()
	closing, stop := context.WithTimeout(limited, browsersTimeout)
	p.browsers.close(closing) // their keeper goes on by itself
	stop()
	p.front.agents.Close(limited)
	p.g.Close()
	p.front.pages.Close()
	p.cancel()
	done := make(chan struct{})
	go func() {
		p.parts.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-limited.Done(): // a read of stdin cannot be ended; the process is about to
	}
}

// settleTimeout is how long an agent on stdio waits to be served while it is not decided who is the hub.
const settleTimeout = time.Second

// endTimeout bounds an orderly end, of which a browser's takes the most: 0.2 s, and more than 1 s on a machine that is
// busy. Some clients kill a server 2 s after they have closed its input.
const endTimeout = 1800 * time.Millisecond

// browsersTimeout is how much of that browsers have. The rest is for what would be left behind otherwise: the sockets
// of the hub and of hooks. They take milliseconds, and were left (2 of 30 runs, at load 20) when a browser took it all.
const browsersTimeout = 1200 * time.Millisecond

// withLoopback admits this machine's own pages besides those that are listed; no list means all.
func withLoopback(origins []string) []string {
	if len(origins) == 0 {
		return nil
	}
	return append(append([]string{}, origins...), weborigin.Loopback)
}
