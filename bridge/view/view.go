package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// A Time is the engine's.
type Time = bridge.Time

// An ID names a View. The home chooses it, and never uses it twice.
type ID uint32

// An Era is a family of protocol versions that a server speaks.
type Era byte

// The eras.
const (
	Legacy Era = iota // up to 2025-11-25: resources/subscribe
	Modern            // 2026-07-28: subscriptions/listen
)

// A Home sends a Host's messages. Its methods may call the Host again. They must not block. When a call returns, the
// bytes of its message belong to the Host again.
type Home interface {
	// ToView sends a message to a View.
	ToView(view ID, m bridge.Message)
	// ToServer sends a message to the server.
	ToServer(text []byte)
}

// Options configure a Host. The zero value works.
type Options struct {
	// Era is the server's era.
	Era Era
	// MaxSubscriptions is how many URIs a View may watch at a time. Default 10.
	MaxSubscriptions int
	// LimitCode is the error code for a subscription above MaxSubscriptions. Default -32603, as in the servers of the
	// official SDK; the proposal (ext-apps#659) has -32001 as a placeholder.
	LimitCode int
	// UpdateInterval is the least time between two updates of one URI. Default 100 ms, which is ten a second.
	UpdateInterval Time
	// ReadTimeout is how long the server may take for a read, or for the confirmation of a subscription. Default 30 s.
	ReadTimeout Time
	// MaxKnown is how many URIs of the server are remembered. Default 10,000; above it the oldest URI without a watch
	// is forgotten.
	MaxKnown int
	// MaxViews is how many Views may be open. Default 1,024.
	MaxViews int
}

// A Host serves the Views of one server connection. Create it with New.
type Host struct {
	opt    Options
	home   Home
	engine *bridge.Engine
	now    Time

	views map[ID]*view
	ports map[bridge.PortID]*view
	last  bridge.PortID

	server
	known

	depth int // of exported methods under way: a Home may call from within
	calls int // of exported methods, ever
	stats Stats
}

// A view is one View: a document in a frame. A new document gets a new port.
type view struct {
	id      ID
	port    bridge.PortID
	greeted bool // it has sent ui/initialize
	ready   bool // it accepts messages: it is initialized, or was by an earlier host
	leaving bool // ui/resource-teardown has been sent
	held    []held
}

// A held is a request of a View to subscribe, or to unsubscribe, that waits for the server's list.
type held struct {
	id   bridge.JSON
	text []byte
}

// maxHeld bounds the held requests of one View; the engine's bound for a port is the same.
const maxHeld = 64

// New returns a Host for a home.
func New(o Options, home Home) *Host {
	number := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	number(&o.MaxSubscriptions, 10)
	number(&o.MaxKnown, 10_000)
	number(&o.MaxViews, 1024)
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = 30_000
	}
	h := &Host{opt: o, home: home, views: map[ID]*view{}, ports: map[bridge.PortID]*view{}}
	h.server.init(o.Era)
	h.known.init()
	h.engine = bridge.New(bridge.Options{
		Rule:                  bridge.Rule{Any: true},
		Relay:                 true,
		ExposeErrors:          true, // they are the server's own words, which a View sees anyway
		UpdateInterval:        o.UpdateInterval,
		UpdateBurst:           1, // the proposal's ten a second are a bound
		ReadTimeout:           o.ReadTimeout,
		SubscriptionLimitCode: o.LimitCode,
		Limits: bridge.Limits{Subscriptions: o.MaxSubscriptions, Ports: o.MaxViews, Resources: -1,
			Calls: maxHeld},
	}, engineHost{h})
	return h
}

// Capabilities is the JSON text that a host announces as hostCapabilities, merged into its own: under serverResources
// as in the proposal, and under experimental because the stock View SDK (ext-apps 2.0.4) strips unknown members from
// serverResources.
func (h *Host) Capabilities() string {
	max := bridge.Text(nil).Int(h.opt.MaxSubscriptions)
	return string(bridge.Text(`{"serverResources":{"subscribe":true,"maxSubscriptions":`).Bytes(max).
		Raw(`},"experimental":{"` + Experimental + `":{"maxSubscriptions":`).Bytes(max).Raw(`}}}`))
}

// Experimental is the key under which support is announced to SDKs that strip the proposal's key.
const Experimental = "io.github.pagewire/resourceSubscriptions"

// Open begins a View. It fails above the limit, and for an ID that is open.
func (h *Host) Open(now Time, id ID) error {
	h.enter(now)
	defer h.leave()
	if h.views[id] != nil {
		return errOpen
	}
	v := &view{id: id, ready: true}
	if err := h.openPort(v); err != nil {
		return err
	}
	h.views[id] = v
	return nil
}

func (h *Host) openPort(v *view) error {
	port := h.last + 1
	if err := h.engine.OpenShaken(h.now, port); err != nil {
		return err
	}
	h.last, v.port = port, port
	h.ports[port] = v
	return nil
}

// Close ends a View whose frame is gone: nothing of it is left when Close returns, and URIs that only it watched are
// unsubscribed from. It ignores a View that is not open.
func (h *Host) Close(now Time, id ID) {
	h.enter(now)
	if v := h.views[id]; v != nil {
		h.closePort(v)
		delete(h.views, id)
	}
	h.leave()
}

func (h *Host) closePort(v *view) {
	v.held = nil
	h.dropRelays(v)
	delete(h.ports, v.port) // messages on their way are not sent
	h.engine.Close(h.now, v.port)
}

// release ends all requests and subscriptions of a View. The View stays open.
func (h *Host) release(v *view) {
	h.closePort(v)
	// There is room: the View's former port has just closed.
	_ = h.openPort(v)
	h.engine.Writable(h.now, v.port, v.ready)
}

// Teardown reports that the home has sent ui/resource-teardown to a View, or is about to. Its subscriptions end at
// once, since its answer may never come, and it gets no new ones. Its reads are still answered, so that it can save its
// state.
func (h *Host) Teardown(now Time, id ID) {
	h.enter(now)
	if v := h.views[id]; v != nil {
		v.leaving = true
		h.release(v)
	}
	h.leave()
}

// Receive handles a message of a View. It takes, and answers, requests for resources. The home handles all others, but
// Receive must see them: the handshake, cancellations, and ui/notifications/request-teardown, which ends the View's
// watches. The bytes belong to the caller again when it returns.
func (h *Host) Receive(now Time, id ID, text []byte) (taken bool) {
	h.enter(now)
	defer h.leave()
	v := h.views[id]
	if v == nil || len(text) > h.engine.MessageBytes() {
		return false
	}
	m, ok := bridge.DecodeMessage(text)
	if !ok {
		return false
	}
	request := len(m.ID) > 0
	switch m.Method {
	case "ui/initialize":
		// The frame has another document, or has loaded the same one again: the former document's watches end.
		v.greeted, v.ready, v.leaving = true, false, false
		h.release(v)
	case "ui/notifications/initialized":
		if !v.ready {
			v.ready = true
			h.engine.Writable(h.now, v.port, true)
		}
	case "ui/notifications/request-teardown":
		h.release(v)
	case "notifications/cancelled":
		h.cancel(v, m.Params.Get("requestId"))
		h.pass(v, text)
	case "resources/read", "subscriptions/listen":
		if request {
			if uri, ok := m.Params.Get("uri").Text(); ok {
				h.unshare(uri)
			}
			h.pass(v, text)
		}
		return request
	case "resources/list", "resources/templates/list":
		if request {
			h.relay(v, m)
		}
		return request
	case "resources/subscribe", "resources/unsubscribe":
		if request {
			h.subscription(v, m, text)
		}
		return request
	}
	return false
}

// pass hands a message to the engine.
func (h *Host) pass(v *view, text []byte) {
	// The port is open as long as the View is.
	_ = h.engine.Receive(h.now, v.port, text)
}

// subscription passes a request on, unless the View is leaving, or the server's list must come first. Requests stay in
// order.
func (h *Host) subscription(v *view, m bridge.Incoming, text []byte) {
	subscribe := m.Method == "resources/subscribe"
	if subscribe && v.leaving {
		h.fail(v, m.ID, -32603, "The View is being torn down: it gets no new subscriptions", "teardown")
		return
	}
	uri, _ := m.Params.Get("uri").Text()
	if len(v.held) < maxHeld && (len(v.held) > 0 || subscribe && uri != "" && !h.knows(uri) && h.canList()) {
		copied := append([]byte(nil), text...)
		again, _ := bridge.DecodeMessage(copied) // views into the copy
		v.held = append(v.held, held{again.ID, copied})
		h.list("")
		return
	}
	h.pass(v, text)
}

// listed continues the requests that waited for the list.
func (h *Host) listed() {
	for _, port := range h.inOrder() {
		v := h.ports[port]
		if v == nil { // the home has closed it when it got an answer below
			continue
		}
		waiting := v.held
		v.held = nil
		for _, m := range waiting {
			h.pass(v, m.text)
		}
	}
}

// inOrder lists the ports in the order in which they were opened.
func (h *Host) inOrder() []bridge.PortID {
	var ports []bridge.PortID
	for port := range h.ports {
		ports = append(ports, port)
	}
	slices.Sort(ports)
	return ports
}

// cancel cancels a request that the engine does not have yet.
func (h *Host) cancel(v *view, id bridge.JSON) {
	for i := range v.held {
		if v.held[i].id.Equal(id) {
			v.held = append(v.held[:i:i], v.held[i+1:]...)
			break
		}
	}
	h.cancelRelay(v, id)
}

// fail answers a View's request with an error.
func (h *Host) fail(v *view, id bridge.JSON, code int, message, reason string) {
	text := bridge.Text(`{"jsonrpc":"2.0","id":`).Bytes(id).Raw(`,"error":{"code":`).Int(code).Raw(`,"message":`).Str(
		message).
		Raw(`,"data":{"reason":`).Str(reason).Raw(`}}}`)
	h.home.ToView(v.id, bridge.Message{Head: text})
}

// enter begins every exported method, and leave ends it. The outermost leave settles with the server once, so that ten
// URIs of one listen, or of one closed View, are one change.
func (h *Host) enter(now Time) {
	h.now = max(h.now, now)
	h.depth++
	h.calls++
}

func (h *Host) leave() {
	if h.depth == 1 {
		h.settle()
	}
	h.depth--
}

// Tick does the work that is due. Call it at Deadline; an early or late call does no harm.
func (h *Host) Tick(now Time) {
	h.enter(now)
	h.engine.Tick(h.now)
	h.expireList()
	h.leave()
}

// Deadline is the time at which Tick is next needed. ok is false if nothing is scheduled.
func (h *Host) Deadline() (at Time, ok bool) {
	at, ok = h.engine.Deadline()
	if t, due := h.server.deadline(); due && (!ok || t < at) {
		at, ok = t, true
	}
	if h.listing && (!ok || h.listBy < at) {
		at, ok = h.listBy, true
	}
	return at, ok
}

// Stats count a Host's current state, and its requests to the server since New.
type Stats struct {
	Views         int
	Subscriptions int // of all Views together
	Watched       int // URIs that some View watches
	Upstream      int // subscriptions at the server; URIs of the listen, in the modern era
	Streams       int // listens open at the server
	Pending       int // requests without an answer of the server
	Known         int // URIs that may be subscribed to
	Updates       int // sent to Views

	Reads, Lists, Subscribes, Unsubscribes, Listens, Cancels int // sent to the server
}

// Stats returns the Host's counters.
func (h *Host) Stats() Stats {
	s, e := h.stats, h.engine.Stats()
	s.Views, s.Subscriptions, s.Watched, s.Updates = len(h.views), e.Subscriptions, e.Watched, e.Updates
	s.Known, s.Pending = len(h.known.seen), len(h.pending)
	s.Upstream, s.Streams = h.server.held()
	return s
}

// JSON is the counters as the text of an object, for homes that are not written in Go.
func (s Stats) JSON() string {
	t := bridge.Text(`{`)
	for i, count := range [...]struct {
		name string
		n    int
	}{
		{"views", s.Views}, {"subscriptions", s.Subscriptions}, {"watched", s.Watched}, {"upstream", s.Upstream},
		{"streams", s.Streams},
		{"pending", s.Pending}, {"known", s.Known}, {"updates", s.Updates}, {"reads", s.Reads}, {"lists", s.Lists},
		{"subscribes", s.Subscribes}, {"unsubscribes", s.Unsubscribes}, {"listens", s.Listens}, {"cancels", s.Cancels},
	} {
		if i > 0 {
			t = t.Raw(`,`)
		}
		t = t.Raw(`"`).Raw(count.name).Raw(`":`).Int(count.n)
	}
	return string(t.Raw(`}`))
}
