package agents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// HTTPOptions configure HTTP.
type HTTPOptions struct {
	// Shares bound the sessions and requests of one agent.
	Shares Shares
	// Idle is how long a legacy session lives without a request or an open stream. Default 30 minutes.
	Idle time.Duration
	// SessionPrefix begins the name of each legacy session: visible ASCII. Default none.
	SessionPrefix string
	// Agent configures each agent, by its Allow, Deny, Only, Reminders, DebuggingTools, NoSubscriptions and Front.
	Agent gateway.AgentOptions
	// Webhooks returns the gateway.AgentOptions.Webhooks of the agent that sends a request. Default none.
	Webhooks func(*http.Request) gateway.Webhooks
	// Streams is called with each request whose answer is a stream until the client goes, before it begins. May be nil.
	Streams func(*http.Request)
	// aliveEvery is the interval of comments on a silent stream: proxies cut a stream that is silent for a minute.
	// Default 15 s.
	aliveEvery time.Duration
	// bodyTimeout is BodyTimeout, except in tests.
	bodyTimeout time.Duration
	// Log receives the log. Default none.
	Log *slog.Logger
}

// HTTP serves agents over Streamable HTTP: a handler for the one path, /mcp, that both eras share. The version in its
// _meta, its method or a header shows the era of a request (modern.go, legacy.go).
//
// It serves every request. Package access, in front of it, decides which requests reach it.
type HTTP struct {
	g      *gateway.Gateway
	opt    HTTPOptions
	shares shares

	mu       sync.Mutex
	closed   bool
	active   sync.WaitGroup // requests under way; none is added once closed is set
	sessions map[string]*session
	modern   map[*gateway.Agent]context.CancelFunc // each is one request
}

// NewHTTP returns a handler that serves the agents of g. Close ends it.
func NewHTTP(g *gateway.Gateway, o HTTPOptions) *HTTP {
	o.Idle, o.aliveEvery = cmp.Or(o.Idle, 30*time.Minute), cmp.Or(o.aliveEvery, 15*time.Second)
	o.bodyTimeout, o.Log = cmp.Or(o.bodyTimeout, BodyTimeout), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &HTTP{g: g, opt: o, shares: newShares(o.Shares), sessions: map[string]*session{},
		modern: map[*gateway.Agent]context.CancelFunc{}}
}

func (h *HTTP) connect(transport, client string) (*gateway.Agent, error) {
	o := h.opt.Agent
	o.Transport, o.Client = transport, client
	return h.g.ConnectWith(o)
}

// eventsStream is the method whose answer is a stream until the client goes.
const eventsStream = "events/stream"

func (h *HTTP) streams(r *http.Request) {
	if h.opt.Streams != nil {
		h.opt.Streams(r)
	}
}

func (h *HTTP) giveWebhooks(agent *gateway.Agent, r *http.Request) {
	if h.opt.Webhooks != nil {
		agent.SetWebhooks(h.opt.Webhooks(r))
	}
}

// Close ends every session and stream: it answers open requests with an error, and listens with their result. It
// returns when these answers are written. If ctx ends first, Close cuts the other connections and returns ctx's cause.
// Later requests get 503.
func (h *HTTP) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	for agent := range h.modern {
		agent.Dismiss()
	}
	sessions := h.sessions
	h.sessions = map[string]*session{}
	h.mu.Unlock()
	for _, s := range sessions {
		s.dismiss()
	}
	all := make(chan struct{})
	go func() {
		h.active.Wait()
		for _, s := range sessions {
			<-s.ended
		}
		close(all)
	}()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	for _, cancel := range h.modern {
		cancel()
	}
	h.mu.Unlock()
	for _, s := range sessions {
		s.cut()
	}
	return context.Cause(ctx)
}

// Busy reports whether a legacy session is open or a request under way.
func (h *HTTP) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)+len(h.modern) > 0
}

// Error codes of JSON-RPC and MCP for errors at HTTP's level.
const (
	codeInvalidRequest = -32600
	codeNotFound       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeMissing        = -32021 // the client lacks a required capability
	codeVersion        = -32022
)

// refuse answers with a JSON-RPC error. id is empty if the request has no readable one.
func refuse(w http.ResponseWriter, status int, id bridge.JSON, code int, message string, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(failure(id, code, message, data))
}

// failure is the text of a JSON-RPC error. data is a value of this package, or nil.
func failure(id bridge.JSON, code int, message string, data any) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	text, _ := json.Marshal(struct { // it cannot fail: data can be marshalled, and ids have been parsed
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   failure         `json:"error"`
	}{"2.0", json.RawMessage(id), failure{code, message, data}})
	return text
}

type reason struct {
	Reason string `json:"reason"`
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	LimitBody(w, r, h.opt.bodyTimeout)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		refuse(w, http.StatusServiceUnavailable, nil, codeInternal, "The server goes away", reason{"shutdown"})
		return
	}
	h.active.Add(1)
	h.mu.Unlock()
	defer h.active.Done()

	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet, http.MethodDelete:
		h.legacyStreamOrEnd(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, nil, codeInvalidRequest,
			"Method "+r.Method+" is not served here: messages come by POST", nil)
	}
}

func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, nil, codeInvalidRequest, "Content-Type must be application/json",
			nil)
		return
	}
	body, err := ReadBody(w, r, h.g.MessageBytes())
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		h.ask(w, r, question{who: who(r, bridge.Incoming{}), oversize: body[:min(beginning, len(body))]})
		return
	} else if err != nil {
		refuse(w, http.StatusBadRequest, nil, codeInvalidRequest, "The body could not be read: "+err.Error(), nil)
		return
	}
	body = bytes.TrimSpace(body)
	m, ok := parse(body)
	version := r.Header.Get("Mcp-Protocol-Version")
	switch {
	case !ok:
		h.ask(w, r, question{who: who(r, m), text: body}) // the engine answers with the fault
	case claims(m) || m.Method == "server/discover" || m.Method == "subscriptions/listen" || Modern(version):
		h.serveModern(w, r, body, m)
	default:
		h.serveLegacy(w, r, body, m)
	}
}

// LimitBody bounds the time in which a client sends the body of a request. It must be called before a refusal: net/http
// reads the rest of the body before it sends an answer.
func LimitBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) // a writer without deadlines has no network
	}
}

// ReadBody reads the body of a request without a byte order mark, and ends LimitBody's limit. If the body is longer than
// most bytes, it returns the beginning, with a *http.MaxBytesError.
func ReadBody(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return body, err
}

// parse reads a message of an agent. Its id must be text or a whole number.
func parse(text []byte) (m bridge.Incoming, ok bool) {
	m, ok = bridge.DecodeMessage(text)
	if _, text := m.ID.Text(); len(m.ID) > 0 && !text && !m.ID.Integer() {
		ok = false
	}
	return m, ok
}

const metaVersion = "io.modelcontextprotocol/protocolVersion"

// claims reports whether a message claims to be of the modern era.
func claims(m bridge.Incoming) bool { return len(m.Params.Get("_meta").Get(metaVersion)) > 0 }

// legacyVersions are the versions that the header of a legacy request may name, oldest first. No session negotiates
// 2025-03-26. But a request without the header means it, and some clients name it in every session.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// Modern reports whether a Mcp-Protocol-Version header names a version of the modern era, known or not: versions are
// dates, and compare as text.
func Modern(version string) bool { return version > legacyVersions[len(legacyVersions)-1] }

// accepts reports whether a client's Accept header includes a media type. Without the header a client accepts all
// types.
func accepts(r *http.Request, kind string) bool {
	all := r.Header.Values("Accept")
	if len(all) == 0 {
		return true
	}
	group, _, _ := strings.Cut(kind, "/")
	for part := range strings.SplitSeq(strings.Join(all, ","), ",") {
		name, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case kind, group + "/*", "*/*":
			return true
		}
	}
	return false
}
