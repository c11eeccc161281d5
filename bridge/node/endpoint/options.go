package endpoint

import (
	"crypto/x509"
	"log/slog"
	"net/http"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/node/webhook"
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

// Options configure a Handler.
type Options struct {
	Node    *node.Node
	Tickets *tickets.Verifier
	// Version is the node's version, for its server card.
	Version string
	// PublicURL is where clients reach the fleet, without the path /mcp, such as
	// https://live.example.
	PublicURL string
	// Hosts are names of a node in the Host header, besides the host of PublicURL and loopback.
	// Origins are origins of pages that may send requests, besides the origin of PublicURL and
	// loopback.
	Hosts, Origins []string
	// Roots are the authorities of other nodes' certificates. Default the system's.
	Roots *x509.CertPool
	// Admitted is called with each request with a good token, before its answer begins. Seen is
	// called with each request that this node serves itself, and the hash of the request's user.
	// Both may be nil.
	Admitted func(w http.ResponseWriter, r *http.Request)
	Seen     func(r *http.Request, user string)
	// Webhooks configure the delivery of events. The Handler sets Node, Open and Feed. Nil delivers
	// none.
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
