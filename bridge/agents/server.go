package agents

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/events"
)

// HTTPOptions configure HTTP.
type HTTPOptions struct {
	// Shares bound the sessions and requests of one agent.
	Shares Shares
	// Idle is how long a legacy session lives without a request or an open stream. Default 30
	// minutes.
	Idle time.Duration
	// SessionPrefix begins the name of each legacy session: visible ASCII. Default none.
	SessionPrefix string
	// Agent configures each agent, by its Allow, Deny, Only, Reminders, DebuggingTools,
	// NoPageTools, NoSubscriptions and Front.
	Agent gateway.AgentOptions
	// Webhooks returns the gateway.AgentOptions.Webhooks of the agent that sends a request. Default
	// none.
	Webhooks func(*http.Request) events.Webhooks
	// Streams is called with each request whose answer is a stream until the client goes, before it
	// begins. May be nil.
	Streams func(*http.Request)
	// aliveEvery is the interval of comments on a silent stream: proxies cut a stream that is
	// silent for a minute. Default 15 s.
	aliveEvery time.Duration
	// bodyTimeout is BodyTimeout, except in tests.
	bodyTimeout time.Duration
	// Log receives the log. Default none.
	Log *slog.Logger
}

// A server is what both eras of the protocol use.
type server struct {
	g      *gateway.Gateway
	opt    HTTPOptions
	shares shares

	mu     sync.Mutex // guards the rest
	closed bool       // stays true: no request is taken
	// active are HTTP requests under way, and legacy sessions. While closed, none but a session is
	// added, by a request.
	active sync.WaitGroup
	// agents are sessions of the engine: legacy ones, and requests of the modern era.
	agents map[*gateway.Agent]bool
}

// enter counts an HTTP request, which active.Done ends. It reports false after Close.
func (h *server) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.active.Add(1)
	}
	return !h.closed
}

// keep registers an agent, until forget. It reports false after Close.
func (h *server) keep(agent *gateway.Agent) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agents[agent] = true
	return !h.closed
}

func (h *server) forget(agent *gateway.Agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.agents, agent)
}

func newServer(g *gateway.Gateway, o HTTPOptions) *server {
	o.Idle, o.aliveEvery = cmp.Or(o.Idle, 30*time.Minute), cmp.Or(o.aliveEvery, 15*time.Second)
	o.bodyTimeout = cmp.Or(o.bodyTimeout, BodyTimeout)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &server{g: g, opt: o, shares: newShares(o.Shares),
		agents: map[*gateway.Agent]bool{}}
}

func (h *server) connect(transport, client string) (*gateway.Agent, error) {
	o := h.opt.Agent
	o.Transport, o.Client = transport, client
	return h.g.ConnectWith(o)
}

func (h *server) streams(r *http.Request) {
	if h.opt.Streams != nil {
		h.opt.Streams(r)
	}
}

func (h *server) giveWebhooks(agent *gateway.Agent, r *http.Request) {
	if h.opt.Webhooks != nil {
		agent.SetWebhooks(h.opt.Webhooks(r))
	}
}
