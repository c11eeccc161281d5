//go:build !js

// Package viewhost lets the Views of a host written in Go subscribe to the resources of the server that they came from,
// by the rules of package view. The server's side is a client of the official Go SDK.
//
// A Host belongs to one client. New adds a middleware to that client. By it the Host hears what the server
// announces, and opens listens of its own. The client's handlers stay as they are. Each View is a channel of
// JSON-RPC messages that the home has, for example to a webview. What the View sends goes through View.Receive, and
// what the home sends to it goes through View.Sent.
//
// A Host never reads a resource by itself, never carries anything from one server to the Views of another, and keeps
// no subscription of a View that is closed. All methods are safe for concurrent use, and only Close blocks.
package viewhost

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/driver"
	"github.com/pagewire/pagewire/bridge/view"
)

// Options are those of package view, but for what the client settles itself: Era, Name and Version.
type Options = view.Options

// Stats are package view's counters.
type Stats = view.Stats

// backlog is how many messages may wait for a View before its channel counts as full: then one update of each URI waits
// for it.
const backlog = 64

// A Host serves the Views of one client's server. Create it with New.
type Host struct {
	mu      *driver.Driver // held around every call of rules, and so in every call by it
	rules   *view.Host
	session *mcp.ClientSession
	views   map[view.ID]*View
	last    view.ID
	closed  bool

	running map[string]context.CancelFunc // request id -> what runs for it
	opening *opening                      // the listen that the server has not acknowledged
	listens map[string][]string           // request id of a listen -> its URIs
	work    sync.WaitGroup                // one for each goroutine
}

// An opening is a listen, from its request to its acknowledgement. The SDK does not tell the id that it gave it, so
// that an acknowledgement is known by its URIs.
type opening struct {
	id   string
	uris []string
}

// New returns a Host for a client that is not connected yet. Connected tells it when that is.
func New(client *mcp.Client, o Options) *Host {
	h := &Host{views: map[view.ID]*View{}, running: map[string]context.CancelFunc{}, listens: map[string][]string{}}
	h.rules = view.New(o, viewHome{h})
	h.rules.Lost(0) // there is no connection yet
	h.mu = driver.New(h.rules, nil)
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			h.widen(method, r)
			return next(ctx, method, r)
		}
	})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			h.hear(method, r)
			return next(ctx, method, r)
		}
	})
	return h
}

// Connected says that the client has a session. When that ends the Host waits for the next one: what Views watch is
// subscribed to again, and announced to them.
func (h *Host) Connected(session *mcp.ClientSession) {
	era := view.Legacy
	if r := session.InitializeResult(); r != nil && r.ProtocolVersion >= "2026-07-28" {
		era = view.Modern
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.session = session
	h.rules.Back(h.mu.Now(), era)
	h.work.Go(func() {
		_ = session.Wait() // why it ended is the client's affair
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.session == session {
			h.session, h.opening = nil, nil
			h.stopAll()
			h.rules.Lost(h.mu.Now())
		}
	})
}

// Close ends all Views, tells the server so where it is there, and waits until nothing runs any more; the session must
// have been closed, or be closed meanwhile.
func (h *Host) Close() {
	h.mu.Lock()
	for _, v := range h.views {
		h.end(v)
	}
	h.closed = true
	h.mu.End()
	h.mu.Unlock()
	h.work.Wait()
}

// Stats returns the counters.
func (h *Host) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rules.Stats()
}

// Learn says that the server offers a URI: the home has seen it in a list or a read of its own.
func (h *Host) Learn(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules.Learn(h.mu.Now(), uri)
}

// Capabilities adds what the Host can do to the JSON text of hostCapabilities. Where the server has no subscriptions,
// or is not there, it is returned as it was.
func (h *Host) Capabilities(hostCapabilities []byte) []byte {
	h.mu.Lock()
	session, ours := h.session, h.rules.Capabilities()
	h.mu.Unlock()
	if session == nil || session.InitializeResult() == nil || session.InitializeResult().Capabilities == nil {
		return hostCapabilities
	}
	if r := session.InitializeResult().Capabilities.Resources; r == nil || !r.Subscribe {
		return hostCapabilities
	}
	var theirs, added map[string]map[string]json.RawMessage
	var all map[string]json.RawMessage
	if len(hostCapabilities) > 0 && json.Unmarshal(hostCapabilities, &all) != nil {
		return hostCapabilities
	}
	_ = json.Unmarshal([]byte(ours), &added) // it is ours
	_ = json.Unmarshal(hostCapabilities, &theirs)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for key, members := range added {
		merged := map[string]json.RawMessage{}
		_ = json.Unmarshal(all[key], &merged)
		for name, value := range members {
			merged[name] = value
		}
		all[key], _ = json.Marshal(merged)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return hostCapabilities
	}
	return text
}
