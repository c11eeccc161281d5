// Package process makes one process of a fleet's parts, which `pagewire node` runs.
//
// It listens at one address for pages and agents, and at another for health checks and metrics. It
// joins the bus. When it is to end, it first reports that it is not ready. Then its agents get the
// answers that they wait for, its pages go to other nodes, and it leaves the bus. Its parts make
// all other decisions.
package process

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/keypair"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/dial"
	"github.com/pagewire/pagewire/bridge/node/endpoint"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/traces"
)

// A process is a node with all its parts.
type process struct {
	o       Options
	node    *node.Node
	pages   *dial.Handler
	agents  *endpoint.Handler
	traces  *traces.Traces // nil without traces
	tls     *keypair.Pair  // nil without TLS
	health  health
	figures *figures
	revokes *revoker // nil without webhooks
}

// Run serves until ctx ends, and then ends in order. That takes Options.DrainDelay, at most
// Options.Drain, and two seconds.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	listen, admin, err := o.open()
	if err != nil {
		return err
	}
	p, err := newProcess(o, listen)
	if err != nil {
		listen.Close()
		if admin != nil {
			admin.Close()
		}
		return err
	}
	failed := make(chan error, 2)
	public := p.serve("listen", listen, p.public(), p.tls, failed)
	var private *http.Server
	if admin != nil {
		private = p.serve("admin", admin, p.admin(), nil, failed)
	}
	o.started(listen, admin, p.node)
	select {
	case <-ctx.Done():
		p.announceEnd()
	case err = <-failed:
	}
	p.shutDown(public, private)
	return err
}

func (o *Options) started(listen, admin net.Listener, n *node.Node) {
	o.Log.Info("pages and agents are served", "listen", listen.Addr().String(), "public",
		o.PublicURL, "node", n.ID(), "cluster", n.ClusterAddr())
	if o.Started == nil {
		return
	}
	var at, cluster net.Addr
	if admin != nil {
		at = admin.Addr()
	}
	if a, err := net.ResolveTCPAddr("tcp", n.ClusterAddr()); err == nil && n.ClusterAddr() != "" {
		cluster = a
	}
	o.Started(listen.Addr(), at, cluster)
}

// open listens. Its errors say what to do.
func (o *Options) open() (listen, admin net.Listener, err error) {
	at := func(addr string) (net.Listener, error) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("serve at %s: %w; stop what listens there, or choose another "+
				"port", addr, err)
		}
		return l, nil
	}
	if listen, err = at(o.Listen); err != nil || o.Admin == "" {
		return listen, nil, err
	}
	if admin, err = at(o.Admin); err != nil {
		listen.Close()
	}
	return listen, admin, err
}

func newProcess(o Options, listen net.Listener) (*process, error) {
	verifier, err := tickets.New(tickets.Options{Issuers: o.Issuers,
		Audience: strings.TrimSuffix(o.PublicURL, "/"),
		Log:      o.Log})
	if err != nil {
		return nil, usage("%w", err)
	}
	at, err := o.bus()
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if o.NodeCA != "" {
		if roots, err = rootsOf(o.NodeCA); err != nil {
			return nil, err
		}
	}
	self := o.nodeURL(listen)
	p := &process{o: o}
	if o.TLSCert != "" {
		if p.tls, err = keypair.Open(o.TLSCert, o.TLSKey, o.Log); err != nil {
			return nil, usage("--tls-cert and --tls-key: %w", err)
		}
	}
	if o.Traces != "" {
		p.traces, err = traces.New(traces.Options{Endpoint: o.Traces, Version: o.Version,
			Failed: func(err error) {
				o.Log.Warn("traces could not be exported", "error", err)
			}})
		if err != nil {
			return nil, usage("%w", err)
		}
	}
	members := node.Options{Version: o.Version, Bus: at, Space: o.Space, URL: self,
		InsecureHTTP: o.InsecureHTTP,
		Pages:        o.Pages, UserPages: o.UserPages, Users: o.Users, OtherUsers: o.OtherUsers,
		UserMessages: o.UserMessages,
		Interval:     o.interval, Log: o.Log, Gateway: gateway.Options{AnyScheme: o.AnyScheme}}
	doors := endpoint.Options{Version: o.Version, Tickets: verifier, PublicURL: o.PublicURL,
		Origins: o.AllowOrigins, Roots: roots, Shares: o.Shares, Admitted: p.admitted,
		DebuggingTools: o.DebuggingTools, NoSubscriptions: o.NoSubscriptions, Log: o.Log}
	if p.traces != nil {
		members.Tracer, doors.Seen = p.traces, p.traces.Seen
	}
	hooks, err := o.webhooks()
	if err != nil {
		return nil, err
	}
	if p.node, err = node.Open(members); err != nil {
		return nil, err
	}
	p.health.node, p.health.keys = p.node, verifier
	doors.Node, doors.Webhooks = p.node, hooks
	hosts := o.AllowHosts
	if u, err := url.Parse(self); err == nil && u.Hostname() != "" {
		hosts = append([]string{u.Hostname()}, hosts...)
	}
	doors.Hosts = hosts
	if p.agents, err = endpoint.New(doors); err != nil {
		p.node.Close()
		return nil, usage("%w", err)
	}
	if hooks != nil {
		p.revokes = &revoker{p.agents.Webhooks(), tokenOf(hooks.Key)}
	}
	p.pages = dial.New(dial.Options{Node: p.node, Tickets: verifier})
	p.figures = newFigures(&p.health, p.agents, o.Version)
	return p, nil
}

func (p *process) public() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/page", p.pages)
	asked := http.Handler(p.agents)
	if p.traces != nil {
		asked = p.traces.Agents(asked)
	}
	mux.Handle("/mcp", p.figures.timed(asked))
	mux.Handle("/mcp/", p.agents) // the server card
	mux.Handle("/.well-known/", p.agents)
	p.health.handle(mux)
	return mux
}

func (p *process) admin() http.Handler {
	mux := http.NewServeMux()
	p.health.handle(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.figures.registry, promhttp.HandlerOpts{}))
	if p.revokes != nil {
		mux.Handle("DELETE /webhooks", p.revokes)
	}
	return mux
}

// maxStrangers bounds the connections of clients that have shown no good token, except pages'
// connections. It is more than a node accepts in 5 s, the time for a header: when another node
// dies, all its pages dial at once.
const maxStrangers = 16_384

// know is the context key of the function that takes a request's connection out of the strangers.
type know struct{}

// serve serves a handler until the server is shut down, with TLS if there is a certificate. It
// bounds the cost of clients without a token: their connections in total, and the time of each for
// a header, a body and an answer.
func (p *process) serve(option string, l net.Listener, h http.Handler, pair *keypair.Pair,
	failed chan<- error) *http.Server {
	open := p.figures.connections.WithLabelValues(option)
	strangers := dial.NewStrangers(cmp.Or(p.o.strangers, maxStrangers), func(c net.Conn) {
		p.node.Refuse("connection: strangers")
		c.Close()
	})
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agents.LimitBody(w, r, agents.BodyTimeout)
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: cmp.Or(p.o.answers, agents.WriteTimeout),
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(p.o.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, know{}, func() { strangers.Know(c) })
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				strangers.Meet(c)
				open.Inc()
			case http.StateHijacked, http.StateClosed: // p.pages counts a page's connection itself
				strangers.Know(c)
				open.Dec()
			}
		},
	}
	go func() {
		var err error
		if pair != nil {
			s.TLSConfig = pair.Config()
			err = s.ServeTLS(l, "", "")
		} else {
			err = s.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return s
}

// admitted lets a client with a good token keep its connection, and wait for an answer.
func (p *process) admitted(w http.ResponseWriter, r *http.Request) {
	// Package agents sets its own deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	if known, ok := r.Context().Value(know{}).(func()); ok {
		known()
	}
}

// announceEnd makes /readyz report that the node is not ready, and serves on for
// Options.DrainDelay.
func (p *process) announceEnd() {
	p.health.leaves.Store(true)
	p.o.Log.Info("the node is to end, and is not ready any more", "drain delay",
		p.o.DrainDelay.String())
	select {
	case <-time.After(p.o.DrainDelay):
	case <-p.o.delayed:
	}
}

func (p *process) shutDown(public, private *http.Server) {
	p.health.leaves.Store(true)
	p.o.Log.Info("the node ends: its pages go elsewhere")
	drain, cancel := context.WithTimeout(context.Background(), p.o.Drain)
	half, cancelHalf := context.WithTimeout(drain, p.o.Drain/2)
	p.agents.Settle(half) // a page that disconnects ends the calls of its tools
	cancelHalf()
	p.pages.Drain(drain)
	p.agents.Settle(drain) // calls of pages at other nodes
	cancel()
	p.agents.EndWebhooks()
	p.node.Close() // notifies the agents; requests without an answer get an error
	ctx, cancel := context.WithTimeout(context.Background(), EndTimeout)
	defer cancel()
	half, cancelHalf = context.WithTimeout(ctx, EndTimeout/2)
	_ = public.Shutdown(half) // requests passed on to other nodes may still be answered
	cancelHalf()
	p.agents.Close() // the others get an error
	for _, s := range []*http.Server{public, private} {
		if s != nil && s.Shutdown(ctx) != nil {
			s.Close()
		}
	}
	if p.traces != nil {
		if err := p.traces.Close(); err != nil {
			p.o.Log.Warn("the last traces could not be exported", "error", err)
		}
	}
}
