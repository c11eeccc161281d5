//go:build !js

package agents

import (
	"bytes"
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

// HTTPOptions say how agents are served over HTTP.
type HTTPOptions struct {
	// Shares bound what one agent may have.
	Shares Shares
	// Idle is how long a session of the legacy era lives without a request and without an open stream. Default 30
	// minutes.
	Idle time.Duration
	// SessionPrefix begins the name of each session of the legacy era: visible ASCII. Default none.
	SessionPrefix string
	// Agent is what each agent sees, and how it is reminded: its Allow, Deny, Only and Reminders.
	Agent gateway.AgentOptions
	// aliveEvery is how often a stream that is silent says that it is there: proxies cut what is silent for a minute.
	// Default 15 s.
	aliveEvery time.Duration
	// bodyTimeout is BodyTimeout, but in tests.
	bodyTimeout time.Duration
	// Log receives what happens. Default none.
	Log *slog.Logger
}

// HTTP serves agents over Streamable HTTP: a handler for the one path, /mcp, that both eras share. Which era a request
// speaks is decided by itself, as everywhere: by the version that it claims in its _meta (modern.go, legacy.go).
//
// It serves every request: package access, which belongs before it, decides which requests come here.
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
	if o.Idle == 0 {
		o.Idle = 30 * time.Minute
	}
	if o.aliveEvery == 0 {
		o.aliveEvery = 15 * time.Second
	}
	if o.bodyTimeout == 0 {
		o.bodyTimeout = BodyTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &HTTP{g: g, opt: o, shares: newShares(o.Shares), sessions: map[string]*session{},
		modern: map[*gateway.Agent]context.CancelFunc{}}
}

// connect opens a session of a client.
func (h *HTTP) connect(transport, client string) (*gateway.Agent, error) {
	o := h.opt.Agent
	o.Transport, o.Client = transport, client
	return h.g.ConnectWith(o)
}

// Close ends every session and stream in order: requests that wait are answered with an error, listens get their
// result. It returns when all that is written, or with the context's error when that ends; then it is cut off. Requests
// that come later are answered with 503.
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

// Busy reports whether there is a session of the legacy era, or a request under way.
func (h *HTTP) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)+len(h.modern) > 0
}

// Error codes of JSON-RPC and MCP that HTTP itself gives rise to.
const (
	codeInvalidRequest = -32600
	codeNotFound       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeMissing        = -32021 // a capability of the client's
	codeVersion        = -32022
)

// refuse answers with a JSON-RPC error. id is absent where the request has none that can be read.
func refuse(w http.ResponseWriter, status int, id bridge.JSON, code int, message string, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(failure(id, code, message, data))
}

// failure is an answer that is an error. data is a value of ours, or nil.
func failure(id bridge.JSON, code int, message string, data any) []byte {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	text, _ := json.Marshal(struct { // it cannot fail: what we say is JSON, and ids have been read as such
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
		h.ask(w, r, question{who: who(r, m), text: body}) // the engine says what is wrong with it
	case claims(m) || m.Method == "server/discover" || m.Method == "subscriptions/listen" || Modern(version):
		h.serveModern(w, r, body, m)
	default:
		h.serveLegacy(w, r, body, m)
	}
}

// LimitBody bounds how long a client may take to send the body of a request. It is to be called before anything refuses
// the request: the server reads what is left of the body before it sends an answer.
func LimitBody(w http.ResponseWriter, r *http.Request, timeout time.Duration) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) // what has none has no network
	}
}

// ReadBody reads the body of a request, and ends LimitBody's limit. Of a body that is longer than most it returns the
// beginning, with a *http.MaxBytesError.
func ReadBody(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	return body, err
}

// parse reads a message of an agent, whose id must be text or a whole number.
func parse(text []byte) (m bridge.Incoming, ok bool) {
	m, ok = bridge.DecodeMessage(text)
	if _, text := m.ID.Text(); len(m.ID) > 0 && !text && !m.ID.Integer() {
		ok = false
	}
	return m, ok
}

const metaVersion = "io.modelcontextprotocol/protocolVersion"

// claims reports whether a message says that it is of the modern era.
func claims(m bridge.Incoming) bool { return len(m.Params.Get("_meta").Get(metaVersion)) > 0 }

// legacyVersions are those that a legacy request may name, oldest first. 2025-03-26 is agreed on with nobody, but it is
// what a request without the header means, and some clients name it in every session.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// Modern reports whether a Mcp-Protocol-Version header is one of the modern era, known or not: versions are dates, and
// compare as text.
func Modern(version string) bool { return version > legacyVersions[len(legacyVersions)-1] }

// accepts reports whether a client takes answers of a type, by its Accept header. Without one it takes all.
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
