// Package endpoint serves the agents of a fleet over Streamable HTTP, in both eras, with OAuth 2.1
// access tokens, as MCP's authorization specification says: protected resource metadata,
// WWW-Authenticate, audience and scopes.
//
// An agent sees the pages of its token's user. With the scope pages:read it lists and reads, and is
// notified of changes. With pages:act it also has the pages' tools. With pages:any-user a request
// may name another user of the token's tenant, in the header Pagewire-User. With pages:events it
// subscribes to events by webhook.
//
// A session of the legacy era belongs to its user, and its Mcp-Session-Id names its node. Another
// node passes a request of the session on to that node, which checks the token again. If that node
// is dead, the answer is 404, and the client begins another session. If the node may have carried
// out the request, the answer is 502. So no balancer needs to know a session's node, and MCP stays
// off the bus.
//
// The package never decides the content of answers (package agents and its engine do). It never
// passes a request on twice, and passes requests only to addresses of live nodes.
package endpoint

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/webhook"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// A Handler serves /mcp, and its metadata below /.well-known/. Its fields do not change, and guard
// themselves.
type Handler struct {
	o          Options
	mux        *http.ServeMux
	unanswered        // requests, without streams
	passer            // of requests to other nodes
	webhooks   *hooks // nil for none
	// bodyTimeout is that of package agents, except in tests.
	bodyTimeout time.Duration
}

const metadataPath = "/.well-known/oauth-protected-resource"

// New returns a Handler. It fails if PublicURL is not valid.
func New(o Options) (*Handler, error) {
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" ||
		u.Scheme != "https" && !weborigin.IsLoopback(o.PublicURL) {
		return nil, fmt.Errorf("%q is not a public URL: it must be like https://live.example, "+
			"without a path", o.PublicURL)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	h := &Handler{o: o, mux: http.NewServeMux(), passer: newPasser(&o),
		bodyTimeout: agents.BodyTimeout}
	if o.Webhooks != nil {
		if h.webhooks, err = newHooks(*o.Webhooks, o.Node, h.server); err != nil {
			return nil, err
		}
	}
	scopes := []string{ScopeRead, ScopeAct, ScopeAnyUser}
	if h.webhooks != nil {
		scopes = append(scopes, ScopeEvents)
	}
	for path, resource := range map[string]string{"": o.PublicURL, "/mcp": o.PublicURL + "/mcp"} {
		h.mux.Handle(metadataPath+path,
			auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
				Resource: resource, AuthorizationServers: o.Tickets.AgentIssuers(),
				BearerMethodsSupported: []string{"header"},
				ScopesSupported:        scopes, ResourceName: "Pagewire",
			}))
	}
	protect := auth.RequireBearerToken(h.verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: o.PublicURL + metadataPath + "/mcp",
		Scopes:              []string{ScopeRead}, ClockSkew: tickets.Skew,
	})
	origins := append([]string{o.PublicURL, weborigin.Loopback}, o.Origins...)
	gate := access.New(access.Options{Hosts: append([]string{u.Hostname()}, o.Hosts...),
		Origins: func() []string { return origins },
		Refused: func(reason string) { o.Node.Refuse("agent: " + reason) }})
	cards(h.mux, o.PublicURL, u, cmp.Or(o.Version, "0"))
	h.mux.Handle("/mcp", gate.Anybody(h.bounded(protect(http.HandlerFunc(h.serve)))))
	return h, nil
}

// EndWebhooks ends this node's deliveries, and other nodes take them over. The bus must still be
// connected.
func (h *Handler) EndWebhooks() {
	if h.webhooks != nil {
		h.webhooks.Close()
	}
}

// Webhooks is the service that delivers events; nil if there is none.
func (h *Handler) Webhooks() *webhook.Service {
	if h.webhooks == nil {
		return nil
	}
	return h.webhooks.Service
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// bounded bounds a request's body before its token is verified, and counts requests without a
// token.
func (h *Handler) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents.LimitBody(w, r, h.bodyTimeout)
		if r.Header.Get("Authorization") == "" {
			h.o.Node.Refuse("agent: no token")
		}
		next.ServeHTTP(&challenge{ResponseWriter: w}, r)
	})
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

func (h *Handler) verify(ctx context.Context, text string, _ *http.Request) (*auth.TokenInfo,
	error) {
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
	answers := r.Method == http.MethodPost && method != "subscriptions/listen" &&
		method != "events/stream"
	if answers {
		var leave func()
		r, leave = h.count(r)
		defer leave()
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
	reader, release, err := h.o.Node.Reader(claim.User, user,
		slices.Contains(claim.Scopes, ScopeAct), h.server)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, h.o.Node, "full", http.StatusServiceUnavailable, err.Error())
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

// lacks refuses a request whose token lacks a scope.
func (h *Handler) lacks(w http.ResponseWriter, scope, what string) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q, scope=%q, "+
		"error=\"insufficient_scope\"",
		h.o.PublicURL+metadataPath+"/mcp", ScopeRead+" "+scope))
	refuse(w, h.o.Node, "scope", http.StatusForbidden, what+" takes the scope "+scope+".")
}

func (h *Handler) server(g *gateway.Gateway) node.Server {
	o := agents.HTTPOptions{Shares: h.o.Shares, SessionPrefix: h.o.Node.ID() + ".", Log: h.o.Log,
		Streams: streams, Agent: gateway.AgentOptions{DebuggingTools: h.o.DebuggingTools,
			NoSubscriptions: h.o.NoSubscriptions}}
	if h.o.Webhooks != nil { // not h.webhooks, which this may be called before
		o.Webhooks = func(r *http.Request) events.Webhooks { return h.webhooks.of(r) }
	}
	return agents.NewHTTP(g, o)
}
