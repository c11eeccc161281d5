// Package endpoint serves the agents of a fleet over Streamable HTTP, in both eras, with OAuth 2.1 access tokens, as MCP's
// authorization specification says: protected resource metadata, WWW-Authenticate, audience and scopes.
//
// An agent sees the pages of its token's user. With the scope pages:read it lists and reads, and is notified of
// changes. With pages:act it also has the pages' tools. With pages:any-user a request may name another user of the
// token's tenant, in the header Pagewire-User. With pages:events it subscribes to events by webhook.
//
// A session of the legacy era belongs to its user, and its Mcp-Session-Id names its node. Another node passes a request
// of the session on to that node, which checks the token again. If that node is dead, the answer is 404, and the client
// begins another session. If the node may have carried out the request, the answer is 502. So no balancer needs to know
// a session's node, and MCP stays off the bus.
//
// The package never decides the content of answers (package agents and its engine do). It never passes a request on
// twice, and passes requests only to addresses of live nodes.
package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/webhook"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Scopes of access tokens.
const (
	ScopeRead    = "pages:read"
	ScopeAct     = "pages:act"
	ScopeAnyUser = "pages:any-user"
	ScopeEvents  = "pages:events"
)

// HeaderUser names the user of the token's tenant for whom a request with ScopeAnyUser is served.
const HeaderUser = "Pagewire-User"

// headerVia marks a request that another node has passed on.
const headerVia = "Pagewire-Via"

// Options configure a Handler.
type Options struct {
	Node    *node.Node
	Tickets *tickets.Verifier
	// Version is the node's version, for its server card.
	Version string
	// PublicURL is where clients reach the fleet, without the path /mcp, such as https://live.example.
	PublicURL string
	// Hosts are names of a node in the Host header, besides the host of PublicURL and loopback. Origins are origins of
	// pages that may send requests, besides the origin of PublicURL and loopback.
	Hosts, Origins []string
	// Roots are the authorities of other nodes' certificates. Default the system's.
	Roots *x509.CertPool
	// Admitted is called with each request with a good token, before its answer begins. Seen is called with each request
	// that this node serves itself, and the hash of the request's user. Both may be nil.
	Admitted func(w http.ResponseWriter, r *http.Request)
	Seen     func(r *http.Request, user string)
	// Webhooks configure the delivery of events. The Handler sets Node, Open and Feed. Nil delivers none.
	Webhooks *webhook.Options
	// Shares bound the share of one agent.
	Shares agents.Shares
	// DebuggingTools shows agents also the tools that pages have for their developers. Default off.
	DebuggingTools bool
	// NoSubscriptions switches agents' resource subscriptions off.
	NoSubscriptions bool
	// Log receives the log. Default none.
	Log *slog.Logger
}

// A Handler serves /mcp, and its metadata below /.well-known/.
type Handler struct {
	o     Options
	mux   *http.ServeMux
	proxy *http.Transport
	held  *quota.Quota // bodies of requests that are passed on

	webhooks *webhook.Service // nil for none

	under  atomic.Int64    // open requests, without streams
	closed context.Context // ends with Close
	close  context.CancelFunc
	// bodyTimeout and writeTimeout are those of package agents, except in tests.
	bodyTimeout, writeTimeout time.Duration
}

const (
	metadataPath = "/.well-known/oauth-protected-resource"
	// proxyTimeout bounds the time in which another node must accept a connection.
	proxyTimeout = 2 * time.Second
	// silence bounds the pause in another node's answer: each node sends a comment every 15 s, also while an answer is
	// awaited. The bus need not notice a blocked connection between two nodes.
	silence = 45 * time.Second
)

// New returns a Handler. It fails if PublicURL is not valid.
func New(o Options) (*Handler, error) {
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" ||
		u.Scheme != "https" && !weborigin.IsLoopback(o.PublicURL) {
		return nil, fmt.Errorf("%q is not a public URL: it must be like https://live.example, without a path", o.PublicURL)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	h := &Handler{o: o, mux: http.NewServeMux(), held: quota.New(maxHeld, maxHeldEach),
		proxy: &http.Transport{DialContext: (&net.Dialer{Timeout: proxyTimeout}).DialContext, ForceAttemptHTTP2: true,
			TLSClientConfig:     &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: silence,
			HTTP2: &http.HTTP2Config{SendPingTimeout: silence / 2, PingTimeout: silence / 2}},
		bodyTimeout: agents.BodyTimeout, writeTimeout: agents.WriteTimeout}
	if o.Webhooks != nil {
		hooks := *o.Webhooks
		began := make(chan struct{}) // webhook.New may call Feed before h.webhooks is set
		hooks.Node, hooks.Feed = o.Node.ID(), func(ctx context.Context, user string) (webhook.Feed, error) {
			<-began
			return h.feed(ctx, user)
		}
		hooks.Open = func(ctx context.Context, name string, age time.Duration) (webhook.Store, error) {
			return o.Node.Table(ctx, name, age)
		}
		if h.webhooks, err = webhook.New(hooks); err != nil {
			return nil, err
		}
		close(began)
	}
	scopes := []string{ScopeRead, ScopeAct, ScopeAnyUser}
	if h.webhooks != nil {
		scopes = append(scopes, ScopeEvents)
	}
	h.closed, h.close = context.WithCancel(context.Background())
	for path, resource := range map[string]string{"": o.PublicURL, "/mcp": o.PublicURL + "/mcp"} {
		h.mux.Handle(metadataPath+path, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
			Resource: resource, AuthorizationServers: o.Tickets.AgentIssuers(),
			BearerMethodsSupported: []string{"header"},
			ScopesSupported:        scopes, ResourceName: "Pagewire",
		}))
	}
	protect := auth.RequireBearerToken(h.verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: o.PublicURL + metadataPath + "/mcp", Scopes: []string{ScopeRead}, ClockSkew: tickets.Skew,
	})
	origins := append([]string{o.PublicURL, weborigin.Loopback}, o.Origins...)
	gate := access.New(access.Options{Hosts: append([]string{u.Hostname()}, o.Hosts...),
		Origins: func() []string { return origins },
		Refused: func(reason string) { o.Node.Refuse("agent: " + reason) }})
	h.cards(u, cmp.Or(o.Version, "0"))
	h.mux.Handle("/mcp", gate.Anybody(h.bounded(protect(http.HandlerFunc(h.serve)))))
	return h, nil
}

// EndWebhooks ends this node's deliveries, and other nodes take them over. The bus must still be connected.
func (h *Handler) EndWebhooks() {
	if h.webhooks != nil {
		h.webhooks.Close()
	}
}

// Close ends the requests that are passed on to other nodes, each with an error, and closes the connections to them.
func (h *Handler) Close() {
	h.close()
	h.proxy.CloseIdleConnections()
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// bounded bounds a request's body before its token is verified, and counts requests without a token.
func (h *Handler) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents.LimitBody(w, r, h.bodyTimeout)
		if r.Header.Get("Authorization") == "" {
			h.o.Node.Refuse("agent: no token")
		}
		next.ServeHTTP(&challenge{ResponseWriter: w}, r)
	})
}

func (h *Handler) refuse(w http.ResponseWriter, reason string, status int, sentence string) {
	h.o.Node.Refuse("agent: " + reason)
	http.Error(w, sentence, status)
}

// A challenge adds the error of RFC 6750 to go-sdk's answer to a client without a good token.
type challenge struct {
	http.ResponseWriter
	passed bool // the request was admitted
}

func (c *challenge) WriteHeader(status int) {
	if said := c.Header().Get("WWW-Authenticate"); said != "" && !c.passed {
		switch status {
		case http.StatusUnauthorized:
			c.Header().Set("WWW-Authenticate", said+`, error="invalid_token"`)
		case http.StatusForbidden:
			c.Header().Set("WWW-Authenticate", said+`, error="insufficient_scope"`)
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (c *challenge) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (h *Handler) verify(ctx context.Context, text string, _ *http.Request) (*auth.TokenInfo, error) {
	claim, err := h.o.Tickets.Token(ctx, text)
	if err != nil {
		h.o.Node.Refuse("agent: token: " + tickets.ReasonOf(err))
		return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
	}
	if !slices.Contains(claim.Scopes, ScopeRead) {
		h.o.Node.Refuse("agent: scope")
	}
	return &auth.TokenInfo{Scopes: claim.Scopes, Expiration: claim.Until, UserID: claim.User,
		Extra: map[string]any{"claim": claim}}, nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	w.(*challenge).passed = true
	if h.o.Admitted != nil {
		h.o.Admitted(w, r)
	}
	claim := auth.TokenInfoFromContext(r.Context()).Extra["claim"].(tickets.Claim)
	ctx, cancel := context.WithDeadline(r.Context(), claim.Until.Add(tickets.Skew))
	defer cancel()
	r = r.WithContext(ctx)
	method := r.Header.Get("Mcp-Method")
	answers := r.Method == http.MethodPost && method != "subscriptions/listen" && method != "events/stream"
	if answers {
		h.under.Add(1)
		leave := sync.OnceFunc(func() { h.under.Add(-1) })
		defer leave()
		r = r.WithContext(context.WithValue(ctx, counted{}, leave))
	}
	if node, ok := h.elsewhere(r); ok && h.pass(w, r, node, claim.User) {
		return
	}
	user := claim.User
	if name := r.Header.Get(HeaderUser); name != "" {
		if !slices.Contains(claim.Scopes, ScopeAnyUser) {
			h.lacks(w, ScopeAnyUser, "To ask for another user")
			return
		}
		user = tickets.UserOf(claim.Tenant, name)
	}
	if h.webhooks != nil {
		p := principal{Principal: webhook.Principal{ID: claim.User, User: user, Until: claim.Until},
			events: slices.Contains(claim.Scopes, ScopeEvents)}
		if !p.events && subscribes(w, r) {
			h.lacks(w, ScopeEvents, "To be told of events by webhook")
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), principal{}, p))
	}
	reader, release, err := h.o.Node.Reader(claim.User, user, slices.Contains(claim.Scopes, ScopeAct), h.server)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		h.refuse(w, "full", http.StatusServiceUnavailable, err.Error())
		return
	}
	defer release()
	if h.o.Seen != nil {
		h.o.Seen(r, user)
	}
	if answers {
		defer reader.Under(r.Context())()
	}
	select {
	case <-reader.Ready():
	case <-ctx.Done(): // the server answers this case
	}
	reader.Server.(*agents.HTTP).ServeHTTP(w, r)
}

// counted is the context key of the function that takes a request out of those that Settle waits for.
type counted struct{}

// streams takes a request out of those that Settle waits for. In a legacy session no header shows that the answer is a
// stream.
func streams(r *http.Request) {
	if leave, ok := r.Context().Value(counted{}).(func()); ok {
		leave()
	}
}

// Settle waits until all requests of agents are answered, except streams, or until ctx ends.
func (h *Handler) Settle(ctx context.Context) {
	for h.under.Load() > 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// lacks refuses a request whose token lacks a scope.
func (h *Handler) lacks(w http.ResponseWriter, scope, what string) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q, scope=%q, error=\"insufficient_scope\"",
		h.o.PublicURL+metadataPath+"/mcp", ScopeRead+" "+scope))
	h.refuse(w, "scope", http.StatusForbidden, what+" takes the scope "+scope+".")
}

func (h *Handler) server(g *gateway.Gateway) node.Server {
	o := agents.HTTPOptions{Shares: h.o.Shares, SessionPrefix: h.o.Node.ID() + ".", Log: h.o.Log,
		Streams: streams, Agent: gateway.AgentOptions{DebuggingTools: h.o.DebuggingTools,
			NoSubscriptions: h.o.NoSubscriptions}}
	if h.webhooks != nil {
		o.Webhooks = h.webhooksOf
	}
	return agents.NewHTTP(g, o)
}

// elsewhere returns the other node that has a request's session. In the modern era the session header means nothing.
func (h *Handler) elsewhere(r *http.Request) (node string, ok bool) {
	if agents.Modern(r.Header.Get("Mcp-Protocol-Version")) {
		return "", false
	}
	node, _, ok = strings.Cut(r.Header.Get("Mcp-Session-Id"), ".")
	return node, ok && node != h.o.Node.ID()
}
