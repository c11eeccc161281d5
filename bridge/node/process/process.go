// Package process makes one process of a fleet's parts, which `pagewire node` runs.
//
// It listens at one address for pages and agents, and at another for health checks and metrics. It joins the bus. When
// it is to end, it first reports that it is not ready. Then its agents get the answers that they wait for, its pages go
// to other nodes, and it leaves the bus. Its parts make all other decisions.
package process

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/keypair"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/node/dial"
	"github.com/pagewire/pagewire/bridge/node/endpoint"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/traces"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options configure a process.
type Options struct {
	// Version is the version that agents, pages and other nodes see.
	Version string
	// Listen is the address for pages (/page) and agents (/mcp). Admin is the address for /healthz, /readyz and /metrics,
	// which are for the node's operators; "" for none.
	Listen, Admin string
	// PublicURL is where clients reach the fleet: the audience of tickets and tokens. NodeURL is where other nodes reach
	// this one. It must be on loopback or https, unless InsecureHTTP is set, because agents' tokens are sent to it.
	// Default: Listen, which must name a host if there are other nodes. NodeCA is a file in PEM with the authority of
	// nodes' certificates; default the system's.
	PublicURL, NodeURL, NodeCA string
	// TLSCert and TLSKey are files in PEM for Listen. Without them an address that other machines reach needs
	// InsecureHTTP, which means that a proxy before it speaks TLS.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// AllowHosts and AllowOrigins are endpoint.Options' Hosts and Origins.
	AllowHosts, AllowOrigins []string
	// Issuers are the issuers of tickets and tokens.
	Issuers []tickets.Issuer

	// Cluster, Advertise, Join and NATS (URL) are those of bus.Options. SecretFile holds the nodes' secret; ClusterCert,
	// ClusterKey and ClusterCA are files in PEM. NATSCA is a file with the roots of an existing cluster.
	Cluster, Advertise                 string
	Join                               []string
	SecretFile                         string
	ClusterCert, ClusterKey, ClusterCA string
	NATS, NATSCreds, NATSCA            string
	Space                              string
	// Name and Store are those of bus.Options. StoreKey is a file with the key that encrypts stored records. It is the
	// same at all nodes that deliver webhooks. WebhookAllow are networks of endpoints that are not public, WebhookCA is a
	// file with the authorities of endpoints' certificates, and NoWebhookControl is webhook.Options.NoControl.
	Name, Store, StoreKey string
	WebhookAllow          []string
	WebhookCA             string
	NoWebhookControl      bool
	// Pages, UserPages, Users, OtherUsers and UserMessages are those of node.Options, Shares those of
	// agents.HTTPOptions.
	Pages, UserPages, Users, OtherUsers, UserMessages int
	Shares                                            agents.Shares
	// Traces is the URL of a receiver of traces, by OTLP over HTTP. Default none.
	Traces string
	// AnyScheme is gateway.Options.AnyScheme, for conformance suites.
	AnyScheme bool
	// DebuggingTools shows agents also the tools that pages have for their developers.
	DebuggingTools bool
	// NoSubscriptions switches agents' resource subscriptions off.
	NoSubscriptions bool
	// DrainDelay is how long a process that is to end goes on serving while /readyz says that it is not ready: a balancer
	// needs that time to notice. Drain then bounds the time in which pages go to other nodes. Default 0, and DefaultDrain.
	DrainDelay, Drain time.Duration
	// Started is called with the addresses when the node listens. May be nil.
	Started func(listen, admin, cluster net.Addr)
	// Log receives the log. Default none.
	Log *slog.Logger

	lease             time.Duration // for tests: replaces the lease of package webhook
	interval, answers time.Duration // for tests: answers replaces agents.WriteTimeout until a token is shown
	strangers         int           // for tests: replaces maxStrangers
	delayed           chan struct{} // for tests: closing it ends DrainDelay
}

// ErrUsage wraps errors in Options.
var ErrUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// A process is a node with all its parts.
type process struct {
	o      Options
	node   *node.Node
	keys   *tickets.Verifier
	pages  *dial.Handler
	agents *endpoint.Handler
	traces *traces.Traces // nil without traces
	tls    *keypair.Pair  // nil without TLS
	leaves atomic.Bool
	// revoker is the token that ends a user's webhooks.
	revoker string
	*figures
}

// Run serves until ctx ends, and then ends in order. That takes Options.DrainDelay, at most Options.Drain, and two
// seconds.
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
	o.Log.Info("pages and agents are served", "listen", listen.Addr().String(), "public", o.PublicURL, "node", n.ID(),
		"cluster", n.ClusterAddr())
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

// check sets defaults, and refuses options that contradict each other or are not valid.
func (o *Options) check() error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return usage("%q is not an address to listen at: it must be like 0.0.0.0:8443", o.Listen)
	case o.PublicURL == "":
		return usage("clients must know where the fleet is: name its --public-url")
	case len(o.Issuers) == 0:
		return usage("without an issuer nobody can connect: list at least one in the configuration file")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return usage("a certificate needs its key: name both --tls-cert and --tls-key")
	case o.TLSCert == "" && !o.InsecureHTTP && !weborigin.IsLoopback("http://"+net.JoinHostPort(host, "1")):
		return usage("%s can be reached from other machines, and without TLS anybody on the way reads tokens and "+
			"contents: add --tls-cert and --tls-key, or say --insecure-http if something before it speaks TLS", o.Listen)
	case o.Drain < 0 || o.DrainDelay < 0:
		return usage("--drain %v, --drain-delay %v: neither may be below 0", o.Drain, o.DrainDelay)
	case o.unnamed() && o.NodeURL == "" && (o.NATS != "" || o.Cluster != ""):
		return usage("%s is no address by which other nodes reach this one, and agents' sessions would end wherever a "+
			"balancer sends a request to another node: name this node by --node-url", o.Listen)
	case o.Store != "" && (o.Name == "" || o.StoreKey == ""):
		return usage("a node with a --store has a --name, which stays the same, and a --store-key")
	case o.Store != "" && o.NATS != "":
		return usage("a cluster of NATS that exists has its own store: leave out --store")
	case o.StoreKey == "" && (len(o.WebhookAllow) > 0 || o.WebhookCA != ""):
		return usage("webhooks need a store: name its --store-key")
	case o.StoreKey != "" && o.Store == "" && o.NATS == "" && o.Cluster == "":
		return usage("a node that is alone has no store to reach: name a directory by --store")
	case o.NATS != "" && (o.Cluster != "" || len(o.Join) > 0):
		return usage("nodes meet in a cluster of NATS that exists, or in their own: --nats, or --cluster and --join")
	}
	if o.NodeURL != "" {
		if err := node.CheckURL(o.NodeURL, o.InsecureHTTP); err != nil {
			return usage("%w", err)
		}
	}
	for name, number := range map[string]int{"max-pages": o.Pages, "max-user-pages": o.UserPages, "max-users": o.Users,
		"max-other-users": o.OtherUsers, "user-messages": o.UserMessages} {
		if number < 0 {
			return usage("--%s %d: it must be above 0", name, number)
		}
	}
	for _, origin := range o.AllowOrigins {
		if !weborigin.IsPattern(origin) {
			return usage("--allow-origin %q: it must be like https://example.com, or https://*.example.com", origin)
		}
	}
	return nil
}

// open listens. Its errors say what to do.
func (o *Options) open() (listen, admin net.Listener, err error) {
	at := func(addr string) (net.Listener, error) {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("serve at %s: %w; stop what listens there, or choose another port", addr, err)
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
	verifier, err := tickets.New(tickets.Options{Issuers: o.Issuers, Audience: strings.TrimSuffix(o.PublicURL, "/"),
		Log: o.Log})
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
	p := &process{o: o, keys: verifier}
	if o.TLSCert != "" {
		if p.tls, err = keypair.Open(o.TLSCert, o.TLSKey, o.Log); err != nil {
			return nil, usage("--tls-cert and --tls-key: %w", err)
		}
	}
	if o.Traces != "" {
		p.traces, err = traces.New(traces.Options{Endpoint: o.Traces, Version: o.Version, Failed: func(err error) {
			o.Log.Warn("traces could not be exported", "error", err)
		}})
		if err != nil {
			return nil, usage("%w", err)
		}
	}
	members := node.Options{Version: o.Version, Bus: at, Space: o.Space, URL: self, InsecureHTTP: o.InsecureHTTP,
		Pages: o.Pages, UserPages: o.UserPages, Users: o.Users, OtherUsers: o.OtherUsers, UserMessages: o.UserMessages,
		Interval: o.interval, Log: o.Log, Gateway: gateway.Options{AnyScheme: o.AnyScheme}}
	doors := endpoint.Options{Version: o.Version, Tickets: verifier, PublicURL: o.PublicURL, Origins: o.AllowOrigins, Roots: roots,
		Shares: o.Shares, Admitted: p.admitted, DebuggingTools: o.DebuggingTools,
		NoSubscriptions: o.NoSubscriptions, Log: o.Log}
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
	doors.Node = p.node
	if doors.Webhooks = hooks; hooks != nil {
		p.revoker = revokerOf(hooks.Key)
	}
	hosts := o.AllowHosts
	if u, err := url.Parse(self); err == nil && u.Hostname() != "" {
		hosts = append([]string{u.Hostname()}, hosts...)
	}
	doors.Hosts = hosts
	if p.agents, err = endpoint.New(doors); err != nil {
		p.node.Close()
		return nil, usage("%w", err)
	}
	p.pages = dial.New(dial.Options{Node: p.node, Tickets: verifier})
	p.figures = p.newFigures()
	return p, nil
}

// unnamed reports whether Listen names no host by which others reach this machine.
func (o *Options) unnamed() bool {
	host, _, _ := net.SplitHostPort(o.Listen)
	return host == "" || net.ParseIP(host).IsUnspecified()
}

// nodeURL is where other nodes reach this one; "" if that is unknown, as it may be for a node that is alone.
func (o *Options) nodeURL(listen net.Listener) string {
	if o.NodeURL != "" {
		return o.NodeURL
	}
	host, _, err := net.SplitHostPort(o.Listen)
	_, port, err2 := net.SplitHostPort(listen.Addr().String())
	if err != nil || err2 != nil || o.unnamed() {
		return ""
	}
	scheme := "http://"
	if o.TLSCert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

func (o *Options) bus() (b bus.Options, err error) {
	b = bus.Options{Name: o.Name, Store: o.Store, Cluster: o.Cluster, Advertise: o.Advertise, Join: o.Join, URL: o.NATS, Creds: o.NATSCreds}
	if o.SecretFile != "" {
		if b.Secret, err = secretOf(o.SecretFile, "the nodes' secret", 16); err != nil {
			return b, err
		}
	}
	if o.NATSCA != "" {
		roots, err := rootsOf(o.NATSCA)
		if err != nil {
			return b, err
		}
		b.ClientTLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if o.ClusterCert == "" {
		return b, nil
	}
	shown, err := keypair.Open(o.ClusterCert, o.ClusterKey, o.Log)
	if err != nil {
		return b, usage("--cluster-cert and --cluster-key: %w", err)
	}
	roots, err := rootsOf(o.ClusterCA)
	if err != nil {
		return b, err
	}
	b.TLS = shown.Config()
	b.TLS.RootCAs = roots
	return b, nil
}

// secretOf reads a secret of least characters or more. Only the file's user and group may be able to read it.
func secretOf(file, what string, least int) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usage("%s: %w", what, err)
	}
	// Windows has no permission bits.
	if info, err := os.Stat(file); err == nil && info.Mode()&0o007 != 0 && runtime.GOOS != "windows" {
		return "", usage("everybody on this machine may read %s: chmod o= %s", what, file)
	}
	secret := strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff"))
	if len(secret) < least {
		return "", usage("the secret in %s is too short: it must have %d characters at least", file, least)
	}
	return secret, nil
}

func rootsOf(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("certificates of an authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, usage("%s holds no certificate in PEM", file)
	}
	return roots, nil
}

func (p *process) public() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/page", p.pages)
	asked := http.Handler(p.agents)
	if p.traces != nil {
		asked = p.traces.Agents(asked)
	}
	mux.Handle("/mcp", p.timed(asked))
	mux.Handle("/mcp/", p.agents) // the server card
	mux.Handle("/.well-known/", p.agents)
	p.health(mux)
	return mux
}

// maxStrangers bounds the connections of clients that have shown no good token, except pages' connections. It is more
// than a node accepts in 5 s, the time for a header: when another node dies, all its pages dial at once.
const maxStrangers = 16_384

// know is the context key of the function that takes a request's connection out of the strangers.
type know struct{}

// serve serves a handler until the server is shut down, with TLS if there is a certificate. It bounds the cost of
// clients without a token: their connections in total, and the time of each for a header, a body and an answer.
func (p *process) serve(option string, l net.Listener, h http.Handler, pair *keypair.Pair,
	failed chan<- error) *http.Server {
	open := p.connections.WithLabelValues(option)
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
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(p.o.Log.Handler(), slog.LevelDebug),
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // package agents sets its own deadline
	if known, ok := r.Context().Value(know{}).(func()); ok {
		known()
	}
}

// DefaultDrainDelay is for a balancer that asks /readyz each second or two, and gives a node up after two answers.
// DefaultDrain is the time in which pages go to other nodes. EndTimeout is the time after that for open requests.
const DefaultDrainDelay, DefaultDrain, EndTimeout = 5 * time.Second, 20 * time.Second, 2 * time.Second

// announceEnd makes /readyz report that the node is not ready, and serves on for Options.DrainDelay.
func (p *process) announceEnd() {
	p.leaves.Store(true)
	p.o.Log.Info("the node is to end, and is not ready any more", "drain delay", p.o.DrainDelay.String())
	select {
	case <-time.After(p.o.DrainDelay):
	case <-p.o.delayed:
	}
}

func (p *process) shutDown(public, private *http.Server) {
	p.leaves.Store(true)
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
