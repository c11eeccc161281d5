//go:build !js

package viewhost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

// viewHome is the Host as its rules see it. Its methods are called with Host.mu held.
type viewHome struct{ *Host }

func (h viewHome) ToView(id view.ID, m bridge.Message) {
	v := h.views[id]
	if v == nil {
		return
	}
	v.queue = append(v.queue, m.AppendTo(nil))
	v.more.Signal()
	if len(v.queue) >= backlog && !v.full {
		v.full = true
		h.rules.Writable(h.mu.Now(), id, false)
	}
}

// A request is what the rules ask of the server.
type request struct {
	ID     string
	Method string
	Params struct {
		URI           string
		Cursor        string
		RequestID     string
		Notifications *mcp.NotificationSubscriptions
	}
}

func (h viewHome) ToServer(text []byte) {
	var r request
	if err := json.Unmarshal(text, &r); err != nil || h.session == nil {
		return
	}
	if r.Method == "notifications/cancelled" {
		if cancel := h.running[r.Params.RequestID]; cancel != nil {
			cancel()
			delete(h.running, r.Params.RequestID)
		}
		if h.listens[r.Params.RequestID] != nil {
			h.hangUp(h.session, r.Params.RequestID)
		}
		if h.opening != nil && h.opening.id == r.Params.RequestID {
			h.opening = nil
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.running[r.ID] = cancel
	if r.Method == "subscriptions/listen" {
		h.opening = &opening{r.ID, r.Params.Notifications.ResourceSubscriptions}
		h.listens[r.ID] = h.opening.uris
	}
	session := h.session
	h.work.Go(func() {
		result, err := h.ask(ctx, session, r)
		h.mu.Lock()
		defer h.mu.Unlock()
		gone := ctx.Err() != nil // cancelled meanwhile, perhaps before it began
		delete(h.running, r.ID)
		cancel()
		if r.Method == "subscriptions/listen" {
			if err == nil && !gone {
				return // it goes on until it is cancelled
			}
			h.hangUp(session, r.ID)
		}
		if gone || h.session != session {
			return
		}
		h.rules.FromServer(h.mu.Now(), answer(r.ID, result, err))
	})
}

// ask sends a request by the client's own methods, so that what they know of protocol and connection is used.
func (h *Host) ask(ctx context.Context, session *mcp.ClientSession, r request) (any, error) {
	switch r.Method {
	case "resources/read":
		return session.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Params.URI})
	case "resources/list":
		return session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: r.Params.Cursor})
	case "resources/templates/list":
		return session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: r.Params.Cursor})
	case "resources/subscribe":
		return struct{}{}, session.Subscribe(ctx, &mcp.SubscribeParams{URI: r.Params.URI})
	case "resources/unsubscribe":
		return struct{}{}, session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: r.Params.URI})
	}
	// To subscribe to one URI the client opens a listen, which it ends when the session is closed. widen makes that one
	// a listen to all URIs, so that there is one of ours, and that goes with the session too.
	return nil, session.Subscribe(ctx, &mcp.SubscribeParams{URI: r.ID})
}

// widen replaces the one URI of a listen that stands for ours by the URIs that ours has.
func (h *Host) widen(method string, r mcp.Request) {
	if method != "subscriptions/listen" {
		return
	}
	p, ok := r.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || p.Notifications == nil || len(p.Notifications.ResourceSubscriptions) != 1 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if uris := h.listens[p.Notifications.ResourceSubscriptions[0]]; uris != nil {
		p.Notifications.ResourceSubscriptions = uris
	}
}

// hangUp ends a listen of ours.
func (h *Host) hangUp(session *mcp.ClientSession, id string) {
	delete(h.listens, id)
	// In the modern era this asks nothing of the server, and does not block.
	_ = session.Unsubscribe(context.Background(), &mcp.UnsubscribeParams{URI: id})
}

// answer is the JSON-RPC message that the rules wait for.
func answer(id string, result any, err error) []byte {
	m := map[string]any{"jsonrpc": "2.0", "id": id}
	var failure *jsonrpc.Error
	switch {
	case err == nil:
		m["result"] = result
	case errors.As(err, &failure):
		m["error"] = failure
	default:
		m["error"] = map[string]any{"code": -32603, "message": err.Error()}
	}
	text, err := json.Marshal(m)
	if err != nil {
		text, _ = json.Marshal(
			map[string]any{"jsonrpc": "2.0", "id": id,
				"error": map[string]any{"code": -32603, "message": "the server's answer cannot be encoded: " +
					err.Error()}})
	}
	return text
}

// stopAll ends what runs: the session is gone, and its listens with it.
func (h *Host) stopAll() {
	clear(h.listens)
	for id, cancel := range h.running {
		cancel()
		delete(h.running, id)
	}
}

// hear looks at a message of the server, before the client handles it.
func (h *Host) hear(method string, r mcp.Request) {
	var m map[string]any
	switch method {
	case "notifications/resources/updated":
		if p, ok := r.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			m = map[string]any{"uri": p.URI}
		}
	case "notifications/resources/list_changed":
		m = map[string]any{}
	case "notifications/subscriptions/acknowledged":
		if p, ok := r.GetParams().(*mcp.SubscriptionsAcknowledgedParams); ok {
			h.acknowledged(p.Notifications.ResourceSubscriptions)
		}
	}
	if m == nil {
		return
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": m})
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.rules.FromServer(h.mu.Now(), text)
	}
}

// acknowledged tells the rules that their listen is open, if it is theirs: listens of the client itself are
// acknowledged too.
func (h *Host) acknowledged(uris []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opening == nil || len(uris) == 0 ||
		slices.ContainsFunc(uris, func(uri string) bool { return !slices.Contains(h.opening.uris, uri) }) {
		return
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
		"params": map[string]any{
			"_meta":         map[string]any{"io.modelcontextprotocol/subscriptionId": h.opening.id},
			"notifications": map[string]any{"resourceSubscriptions": uris},
		}})
	h.opening = nil
	if err == nil {
		h.rules.FromServer(h.mu.Now(), text)
	}
}
