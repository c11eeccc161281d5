package process

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/internal/keypair"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options configure a process.
type Options struct {
	// Version is the version that agents, pages and other nodes see.
	Version string
	// Listen is the address for pages (/page) and agents (/mcp). Admin is the address for /healthz,
	// /readyz and /metrics, which are for the node's operators; "" for none.
	Listen, Admin string
	// PublicURL is where clients reach the fleet: the audience of tickets and tokens. NodeURL is
	// where other nodes reach this one. It must be on loopback or https, unless InsecureHTTP is
	// set, because agents' tokens are sent to it. Default: Listen, which must name a host if there
	// are other nodes. NodeCA is a file in PEM with the authority of nodes' certificates; default
	// the system's.
	PublicURL, NodeURL, NodeCA string
	// TLSCert and TLSKey are files in PEM for Listen. Without them an address that other machines
	// reach needs InsecureHTTP, which means that a proxy before it speaks TLS.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// AllowHosts and AllowOrigins are endpoint.Options' Hosts and Origins.
	AllowHosts, AllowOrigins []string
	// Issuers are the issuers of tickets and tokens.
	Issuers []tickets.Issuer

	// Cluster, Advertise, Join and NATS (URL) are those of bus.Options. SecretFile holds the nodes'
	// secret; ClusterCert, ClusterKey and ClusterCA are files in PEM. NATSCA is a file with the
	// roots of an existing cluster.
	Cluster, Advertise                 string
	Join                               []string
	SecretFile                         string
	ClusterCert, ClusterKey, ClusterCA string
	NATS, NATSCreds, NATSCA            string
	Space                              string
	// Name and Store are those of bus.Options. StoreKey is a file with the key that encrypts stored
	// records. It is the same at all nodes that deliver webhooks. WebhookAllow are networks of
	// endpoints that are not public, WebhookCA is a file with the authorities of endpoints'
	// certificates, and NoWebhookControl is webhook.Options.NoControl.
	Name, Store, StoreKey string
	WebhookAllow          []string
	WebhookCA             string
	NoWebhookControl      bool
	// Pages, UserPages, Users, OtherUsers and UserMessages are those of node.Options, Shares those
	// of agents.HTTPOptions.
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
	// DrainDelay is how long a process that is to end goes on serving while /readyz says that it is
	// not ready: a balancer needs that time to notice. Drain then bounds the time in which pages go
	// to other nodes. Default 0, and DefaultDrain.
	DrainDelay, Drain time.Duration
	// Started is called with the addresses when the node listens. May be nil.
	Started func(listen, admin, cluster net.Addr)
	// Log receives the log. Default none.
	Log *slog.Logger

	lease time.Duration // for tests: replaces the lease of package webhook
	// For tests: answers replaces agents.WriteTimeout until a token is shown.
	interval, answers time.Duration
	strangers         int           // for tests: replaces maxStrangers
	delayed           chan struct{} // for tests: closing it ends DrainDelay
}

// ErrUsage wraps errors in Options.
var ErrUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// DefaultDrainDelay is for a balancer that asks /readyz each second or two, and gives a node up
// after two answers. DefaultDrain is the time in which pages go to other nodes. EndTimeout is the
// time after that for open requests.
const (
	DefaultDrainDelay = 5 * time.Second
	DefaultDrain      = 20 * time.Second
	EndTimeout        = 2 * time.Second
)

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
		return usage("without an issuer nobody can connect: list at least one in the " +
			"configuration file")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return usage("a certificate needs its key: name both --tls-cert and --tls-key")
	case o.TLSCert == "" && !o.InsecureHTTP &&
		!weborigin.IsLoopback("http://"+net.JoinHostPort(host, "1")):
		return usage("%s can be reached from other machines, and without TLS anybody on the way "+
			"reads tokens and "+
			"contents: add --tls-cert and --tls-key, or say --insecure-http if something before "+
			"it speaks TLS", o.Listen)
	case o.Drain < 0 || o.DrainDelay < 0:
		return usage("--drain %v, --drain-delay %v: neither may be below 0", o.Drain, o.DrainDelay)
	case o.unnamed() && o.NodeURL == "" && (o.NATS != "" || o.Cluster != ""):
		return usage("%s is no address by which other nodes reach this one, and agents' sessions "+
			"would end wherever a "+
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
		return usage("nodes meet in a cluster of NATS that exists, or in their own: --nats, or " +
			"--cluster and --join")
	}
	if o.NodeURL != "" {
		if err := node.CheckURL(o.NodeURL, o.InsecureHTTP); err != nil {
			return usage("%w", err)
		}
	}
	for name, number := range map[string]int{"max-pages": o.Pages, "max-user-pages": o.UserPages,
		"max-users":       o.Users,
		"max-other-users": o.OtherUsers, "user-messages": o.UserMessages} {
		if number < 0 {
			return usage("--%s %d: it must be above 0", name, number)
		}
	}
	for _, origin := range o.AllowOrigins {
		if !weborigin.IsPattern(origin) {
			return usage("--allow-origin %q: it must be like https://example.com, or "+
				"https://*.example.com", origin)
		}
	}
	return nil
}

// unnamed reports whether Listen names no host by which others reach this machine.
func (o *Options) unnamed() bool {
	host, _, _ := net.SplitHostPort(o.Listen)
	return host == "" || net.ParseIP(host).IsUnspecified()
}

// nodeURL is where other nodes reach this one; "" if that is unknown, as it may be for a node that
// is alone.
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
	b = bus.Options{Name: o.Name, Store: o.Store, Cluster: o.Cluster, Advertise: o.Advertise,
		Join: o.Join, URL: o.NATS, Creds: o.NATSCreds}
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

// secretOf reads a secret of least characters or more. Only the file's user and group may be able
// to read it.
func secretOf(file, what string, least int) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usage("%s: %w", what, err)
	}
	if info, err := os.Stat(file); err == nil && userdir.Permits(info.Mode(), 0o007) {
		return "", usage("everybody on this machine may read %s: chmod o= %s", what, file)
	}
	secret := strings.TrimSpace(strings.TrimPrefix(string(text), "\ufeff"))
	if len(secret) < least {
		return "", usage("the secret in %s is too short: it must have %d characters at least", file,
			least)
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
