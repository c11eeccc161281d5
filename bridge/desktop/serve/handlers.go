package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/desktop/inspect"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/keypair"
	"github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/pages/socket"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// handlers are those of the TCP ports, and the checks before them. The daemon's port, and an --http
// port on loopback, have all paths. An --http port that other machines reach has only the agents'
// path.
type handlers struct {
	o         Options
	local     *access.Guard
	world     *access.Guard
	pages     *socket.Handler
	inspector *inspect.Handler
	// agents serves all ports, so that an agent's bounds apply to all of them together.
	agents *agents.HTTP
}

// newHandlers returns the handlers. token is "" if it could not be read. secret returns the
// extension's secret.
func newHandlers(g *gateway.Gateway, o Options, token string,
	secret func() (string, error)) *handlers {
	guard := access.Options{
		Token: token, NoToken: o.NoToken, Hosts: o.AllowHosts, Origins: g.AllowedOrigins,
		Log: o.Log,
	}
	local := guard
	local.Extension, local.Secret = extension.ExtensionOrigin, secret
	h := &handlers{o: o, local: access.New(local)}
	guard.Public = true
	if host, _, err := net.SplitHostPort(o.HTTP); err == nil && host != "" {
		guard.Hosts = append([]string{host}, guard.Hosts...)
	}
	h.world = access.New(guard)
	h.pages = socket.New(g, socket.Options{
		Extensions: []string{extension.ExtensionID}, Secret: secret,
		Refused: h.local.Count, Log: o.Log,
	})
	h.inspector = inspect.New(g,
		inspect.Options{Version: o.Version, Log: o.Log, Admit: h.local.AdmitFeed,
			Refused: h.refused})
	h.agents = agents.NewHTTP(g,
		agents.HTTPOptions{Shares: o.Shares, Log: o.Log, Agent: o.scope(o.Flags)})
	return h
}

// refused is the sum of both guards' refusals, by reason.
func (h *handlers) refused() map[string]int64 {
	all := maps.Clone(h.local.Refused())
	for reason, n := range h.world.Refused() {
		all[reason] += n
	}
	return all
}

// handler returns the handler of a port. A public port can be reached from other machines.
func (h *handlers) handler(public bool) *http.ServeMux {
	mux := http.NewServeMux()
	if public {
		mux.Handle("/mcp", h.world.Agents(h.agents))
		return mux
	}
	mux.Handle("/mcp", h.local.Agents(h.agents))
	mux.Handle("/metrics", h.local.Agents(h.inspector))
	mux.Handle("/page", h.local.Pages(h.pages))
	mux.Handle(access.FeedPath, h.local.Feed(h.inspector))
	mux.Handle(access.SessionPath, h.local.Sessions())
	mux.Handle("/", h.local.Anybody(h.inspector)) // the inspector's files, and /healthz
	return mux
}

// A port is the listener of --http.
type port struct {
	net.Listener
	public bool
	tls    *tls.Config // nil means plain HTTP
}

// openPort listens at Options.HTTP. Its errors say what to do.
func openPort(o Options) (*port, error) {
	host, _, err := net.SplitHostPort(o.HTTP)
	if err != nil {
		return nil,
			fmt.Errorf("%w: %q is not an address to listen on: it must be like 127.0.0.1:8080",
				ErrUsage, o.HTTP)
	}
	p := &port{public: !weborigin.IsLoopback("http://" + net.JoinHostPort(host, "1"))}
	if o.TLSCert != "" || o.TLSKey != "" {
		pair, err := keypair.Open(o.TLSCert, o.TLSKey, o.Log)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		p.tls = pair.Config()
	}
	if p.public && p.tls == nil && !o.InsecureHTTP {
		return nil, fmt.Errorf(
			"%w: --http %s can be reached from other machines, and without TLS anybody on the "+
				"way reads the token and all that agents read: "+
				"add --tls-cert FILE and --tls-key FILE, or say --insecure-http as well", ErrUsage,
			o.HTTP)
	}
	if p.Listener, err = net.Listen("tcp", o.HTTP); err != nil {
		return nil, fmt.Errorf(
			"serve agents at %s: %w; stop what listens there, or choose another port", o.HTTP, err)
	}
	return p, nil
}

func (p *port) url() string {
	scheme := "http"
	if p.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + p.Addr().String() + "/mcp"
}

// serve serves h until ctx ends, which is no error.
func (p *port) serve(ctx context.Context, h http.Handler, log *slog.Logger) error {
	server := newServer(h, log)
	server.TLSConfig = p.tls
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	var err error
	if p.tls != nil {
		err = server.ServeTLS(p.Listener, "", "")
	} else {
		err = server.Serve(p.Listener)
	}
	if ctx.Err() == nil {
		return err
	}
	return nil
}
