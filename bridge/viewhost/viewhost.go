//go:build !js

// Package viewhost lets the Views of a host written in Go subscribe to the resources of the server that they came from, by
// the rules of package view. The server's side is a client of the official Go SDK.
//
// A Host belongs to one client. New puts a middleware into that client, by which the Host hears what the server announces and
// opens its own listens; the client's handlers stay what they are. Each View is a channel of JSON-RPC messages that the home
// has, to a webview say: what comes from it goes through View.Receive, what the home sends to it through View.Sent.
//
// What a Host never does: read a resource by itself, carry anything from one server to another's Views, or keep a
// View's subscriptions when that is closed. All of it is safe for concurrent use; nothing of it blocks but Close.
package viewhost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/home"
	"github.com/pagewire/pagewire/bridge/view"
)

// Options are those of package view, but for what the client settles itself: Era, Name and Version.
type Options = view.Options

// Stats are package view's counters.
type Stats = view.Stats

// backlog is how many messages may wait for a View before its channel counts as full: then one update of each URI waits for it.
const backlog = 64

// A Host serves the Views of one client's server. Create it with New.
type Host struct {
	mu      *home.Home // held around every call of rules, and so in every call by it
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

// An opening is a listen, from its request to its acknowledgement. The SDK does not tell the id that it gave it, so that an
// acknowledgement is known by its URIs.
type opening struct {
	id   string
	uris []string
}

// New returns a Host for a client that is not connected yet. Connected tells it when that is.
func New(client *mcp.Client, o Options) *Host {
	h := &Host{views: map[view.ID]*View{}, running: map[string]context.CancelFunc{}, listens: map[string][]string{}}
	h.rules = view.New(o, viewHome{h})
	h.rules.Lost(0) // there is no connection yet
	h.mu = home.New(h.rules, nil)
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

// Close ends all Views, tells the server so where it is there, and waits until nothing runs any more; the session must have
// been closed, or be closed meanwhile.
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

// A View is one View, as long as it is shown.
type View struct {
	host  *Host
	id    view.ID
	queue [][]byte // what waits to be sent, under host.mu
	more  *sync.Cond
	full  bool
	done  bool
}

// ErrClosed is what Open returns when the Host is closed.
var ErrClosed = errors.New("viewhost: the host is closed")

// Open begins a View. send gets each message for it, one after the other, on a goroutine of its own; it may block.
func (h *Host) Open(send func(text []byte)) (*View, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	v := &View{host: h, id: h.last + 1, more: sync.NewCond(h.mu)}
	if err := h.rules.Open(h.mu.Now(), v.id); err != nil {
		return nil, err
	}
	h.last = v.id
	h.views[v.id] = v
	h.work.Go(func() { v.pump(send) })
	return v, nil
}

// pump sends what waits, until the View is closed.
func (v *View) pump(send func([]byte)) {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for len(v.queue) == 0 && !v.done {
			if v.full {
				v.full = false
				h.rules.Writable(h.mu.Now(), v.id, true)
				continue // that may have brought more
			}
			v.more.Wait()
		}
		if v.done {
			return
		}
		text := v.queue[0]
		v.queue = v.queue[1:]
		h.mu.Unlock()
		send(text)
		h.mu.Lock()
	}
}

// Receive looks at a message of the View, and reports whether it is answered by the Host. The home handles all others, but
// Receive must see them.
func (v *View) Receive(text []byte) (taken bool) {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.done {
		return false
	}
	taken = h.rules.Receive(h.mu.Now(), v.id, text)
	return taken
}

// Sent looks at a message that the home sends to the View, and returns what is to be sent: the answer to ui/initialize, whose
// request id is hello, with what the Host can do added to its hostCapabilities; everything else as it is. It notices ui/resource-teardown,
// at which all that the View watches is released.
func (v *View) Sent(text, hello []byte) []byte {
	var m struct {
		ID     json.RawMessage
		Method string
		Result map[string]json.RawMessage
	}
	if json.Unmarshal(text, &m) != nil {
		return text
	}
	if m.Method == "ui/resource-teardown" {
		v.Teardown()
	}
	if m.Method != "" || m.Result == nil || len(hello) == 0 || string(m.ID) != string(hello) {
		return text
	}
	m.Result["hostCapabilities"] = v.host.Capabilities(m.Result["hostCapabilities"])
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": m.Result})
	if err != nil {
		return text
	}
	return answer
}

// Capabilities adds what the Host can do to the JSON text of hostCapabilities. Where the server has no subscriptions, or is not
// there, it is returned as it was.
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

// Teardown says that ui/resource-teardown is being sent, for homes that do not pass it through Sent.
func (v *View) Teardown() {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if !v.done {
		h.rules.Teardown(h.mu.Now(), v.id)
	}
}

// Close ends the View: its window is gone. Nothing is sent to it any more, but what is being sent.
func (v *View) Close() {
	h := v.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(v)
}

func (h *Host) end(v *View) {
	if v.done {
		return
	}
	v.done = true
	v.queue = nil
	v.more.Signal()
	delete(h.views, v.id)
	h.rules.Close(h.mu.Now(), v.id)
}

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
	// To subscribe to one URI the client opens a listen, which it ends when the session is closed. widen makes that one a listen to
	// all URIs, so that there is one of ours, and that goes with the session too.
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
		text, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": -32603, "message": "the server's answer cannot be encoded: " + err.Error()}})
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

// acknowledged tells the rules that their listen is open, if it is theirs: listens of the client itself are acknowledged too.
func (h *Host) acknowledged(uris []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opening == nil || len(uris) == 0 || slices.ContainsFunc(uris, func(uri string) bool { return !slices.Contains(h.opening.uris, uri) }) {
		return
	}
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": map[string]any{
		"_meta":         map[string]any{"io.modelcontextprotocol/subscriptionId": h.opening.id},
		"notifications": map[string]any{"resourceSubscriptions": uris},
	}})
	h.opening = nil
	if err == nil {
		h.rules.FromServer(h.mu.Now(), text)
	}
}
