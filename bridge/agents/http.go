package agents

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// HTTP serves agents over Streamable HTTP: a handler for the one path, /mcp, that both eras share.
// The version in its _meta, its method or a header shows the era of a request (modern.go,
// legacy.go).
//
// It serves every request. Package access, in front of it, decides which requests reach it.
type HTTP struct {
	*server
	legacy *sessions
}

// NewHTTP returns a handler that serves the agents of g. Close ends it.
func NewHTTP(g *gateway.Gateway, o HTTPOptions) *HTTP {
	s := newServer(g, o)
	return &HTTP{s, &sessions{server: s, all: map[string]*session{}}}
}

// Close ends every session and stream: it answers open requests with an error, and listens with
// their result. It returns when these answers are written. If ctx ends first, Close cuts the other
// connections and returns ctx's cause. Later requests get 503.
func (h *HTTP) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	for agent := range h.agents {
		agent.Dismiss()
	}
	h.mu.Unlock()
	all := make(chan struct{})
	go func() {
		h.active.Wait()
		close(all)
	}()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	agents := slices.Collect(maps.Keys(h.agents))
	h.mu.Unlock()
	for _, agent := range agents {
		agent.Close()
	}
	return context.Cause(ctx)
}

// Busy reports whether a legacy session is open or a request under way.
func (h *HTTP) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.agents) > 0
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	LimitBody(w, r, h.opt.bodyTimeout)
	if !h.enter() {
		refuse(w, http.StatusServiceUnavailable, nil, codeInternal, "The server goes away",
			reason{"shutdown"})
		return
	}
	defer h.active.Done()

	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodGet, http.MethodDelete:
		h.legacy.streamOrEnd(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, nil, codeInvalidRequest,
			"Method "+r.Method+" is not served here: messages come by POST", nil)
	}
}

func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, nil, codeInvalidRequest,
			"Content-Type must be application/json", nil)
		return
	}
	body, err := ReadBody(w, r, h.g.MessageBytes())
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		h.ask(w, r,
			question{who: who(r, bridge.Incoming{}), oversize: body[:min(bridge.PeekBytes, len(body))]})
		return
	} else if err != nil {
		refuse(w, http.StatusBadRequest, nil, codeInvalidRequest,
			"The body could not be read: "+err.Error(), nil)
		return
	}
	body = bytes.TrimSpace(body)
	m, ok := parse(body)
	version := r.Header.Get("Mcp-Protocol-Version")
	switch {
	case !ok:
		h.ask(w, r, question{who: who(r, m), text: body}) // the engine answers with the fault
	case claims(m) || m.Method == "server/discover" || m.Method == "subscriptions/listen" ||
		Modern(version):
		h.serveModern(w, r, body, m)
	default:
		h.legacy.serve(w, r, body, m)
	}
}
