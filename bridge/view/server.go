package view

import (
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// server is the connection to the server: open requests, and watched URIs.
type server struct {
	era     Era
	down    bool
	next    int
	pending map[string]pending // by request id
	reads   map[bridge.CallID]string
	out     [][]byte // messages that settle sends

	sources map[string]*source
	ordered []*source // by age, so that the order is deterministic
	asked   map[bridge.CallID]*source

	modern

	listDue  bool // list_changed must be passed on at listAt
	listAt   Time
	listSaid bool // listAt is set
}

// The kinds of requests to the server.
type ask byte

const (
	askRead ask = iota
	askRelay
	askList
	askSubscribe
	askUnsubscribe
	askListen
)

type pending struct {
	kind   ask
	call   bridge.CallID // askRead
	uri    string        // askRead
	view   *view         // askRelay
	id     bridge.JSON   // askRelay: the View's own
	source *source       // askSubscribe, askUnsubscribe
	stream *stream       // askListen
}

// idPrefix distinguishes the ids of a Host's requests, and so their answers and streams, from those of other clients on
// the same connection.
const idPrefix = "pagewire:"

func (s *server) init(era Era) {
	s.era = era
	s.pending = map[string]pending{}
	s.reads = map[bridge.CallID]string{}
	s.sources = map[string]*source{}
	s.asked = map[bridge.CallID]*source{}
}

// modernMeta is the client's _meta in each request of the modern era. The official client adds its own.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"pagewire","version":"0"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

// ask queues a request and returns its id. params are the members of its params, without braces.
func (h *Host) ask(method string, params bridge.Text, p pending) string {
	h.next++
	id := idPrefix + string(bridge.Text(nil).Int(h.next))
	text := bridge.Text(`{"jsonrpc":"2.0","id":`).Str(id).Raw(`,"method":"`).Raw(method).Raw(`","params":{`)
	if h.era == Modern {
		text = text.Raw(modernMeta)
		if len(params) > 0 {
			text = text.Raw(`,`)
		}
	}
	h.out = append(h.out, text.Bytes(params).Raw(`}}`))
	h.pending[id] = p
	return id
}

// drop cancels a request to the server.
func (h *Host) drop(id string) {
	delete(h.pending, id)
	h.stats.Cancels++
	h.out = append(h.out, bridge.Text(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`).Str(
		id).Raw(`}}`))
}

// relay passes on a View's request for a list.
func (h *Host) relay(v *view, m bridge.Incoming) {
	waiting := 0
	for _, p := range h.pending {
		if p.view == v {
			waiting++
		}
	}
	switch {
	case h.down:
		h.fail(v, m.ID, -32603, "The server is not connected: try again when it is", "server_lost")
		return
	case waiting >= maxHeld:
		h.fail(v, m.ID, -32603, "Too many requests at once: wait for their answers", "call_limit")
		return
	}
	params := bridge.Text(nil)
	if cursor, ok := m.Params.Get("cursor").Text(); ok {
		params = params.Raw(`"cursor":`).Str(cursor)
	}
	h.stats.Lists++
	h.ask(m.Method, params, pending{kind: askRelay, view: v, id: append(bridge.JSON(nil), m.ID...)})
}

func (h *Host) cancelRelay(v *view, id bridge.JSON) {
	for ours, p := range h.pending {
		if p.kind == askRelay && p.view == v && p.id.Equal(id) {
			h.drop(ours)
			return
		}
	}
}

// dropRelays cancels the requests that were passed on for a View.
func (h *Host) dropRelays(v *view) {
	var ids []string
	for id, p := range h.pending {
		if p.view == v {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		h.drop(id)
	}
}

// FromServer handles a message of the server. It takes answers to the Host's requests and the messages of its streams;
// all others may be for another client of the home on the same connection.
func (h *Host) FromServer(now Time, text []byte) (taken bool) {
	h.enter(now)
	defer h.leave()
	m, ok := bridge.DecodeMessage(text)
	if !ok {
		return false
	}
	stream, _ := m.Params.Get("_meta").Get("io.modelcontextprotocol/subscriptionId").Text()
	switch m.Method {
	case "":
		id, _ := m.ID.Text()
		if p, ok := h.pending[id]; ok {
			delete(h.pending, id)
			h.answered(p, m)
		}
		return ours(id)
	case "notifications/resources/updated":
		if uri, ok := m.Params.Get("uri").Text(); ok {
			h.updated(uri)
		}
	case "notifications/resources/list_changed":
		h.fresh = false
		h.listDue = true
	case "notifications/subscriptions/acknowledged":
		h.acknowledged(stream, m.Params.Get("notifications").Get("resourceSubscriptions"))
	case "notifications/cancelled":
		stream, _ = m.Params.Get("requestId").Text()
		h.streamEnded(stream)
	}
	return ours(stream)
}

func ours(id string) bool { return len(id) > len(idPrefix) && id[:len(idPrefix)] == idPrefix }

func (h *Host) answered(p pending, m bridge.Incoming) {
	switch p.kind {
	case askRead:
		h.answerRead(p, m)
	case askRelay:
		if len(m.Result) > 0 {
			h.learnFrom(m.Result.Get("resources"))
		}
		text := bridge.Text(`{"jsonrpc":"2.0","id":`).Bytes(p.id)
		if len(m.Result) > 0 {
			text = text.Raw(`,"result":`).Bytes(m.Result)
		} else {
			text = text.Raw(`,"error":`).Bytes(m.Failure)
		}
		h.home.ToView(p.view.id, bridge.Message{Head: text.Raw(`}`)})
	case askList:
		h.answerList(m)
	case askSubscribe:
		h.answerSubscribe(p.source, m)
	case askUnsubscribe:
		p.source.state = idle // if the server refuses, no further step is possible
	case askListen:
		h.answerListen(p.stream, m)
	}
}

func (h *Host) answerRead(p pending, m bridge.Incoming) {
	delete(h.reads, p.call)
	if len(m.Result) > 0 {
		contents := m.Result.Get("contents")
		h.learn(p.uri)
		h.learnFrom(contents)
		h.engine.Complete(h.now, p.call, bridge.Result{Contents: append([]byte(nil), contents...)})
		return
	}
	r := bridge.Result{Failure: bridge.ReadFailed}
	r.Detail, _ = m.Failure.Get("message").Text()
	code, _ := m.Failure.Get("code").Int()
	if data, ok := m.Failure.Get("data").Get("uri").Text(); code == -32002 || code == -32602 && ok && data == p.uri {
		r.Failure = bridge.NotFound
	}
	h.engine.Complete(h.now, p.call, r)
}

// updated passes on a change of a URI. The server may name a URI below the subscribed one (legacy era), also if Views
// watch both: it sends one message then.
func (h *Host) updated(uri string) {
	touch := func(s *source) {
		if len(s.calls) > 0 {
			s.missed = true // it came before the confirmation: over HTTP their order is open
		}
		h.engine.Touch(h.now, s.uri)
	}
	for _, s := range h.ordered {
		if n := len(s.uri); uri == s.uri || len(uri) > n && uri[:n] == s.uri && (s.uri[n-1] == '/' || uri[n] == '/' ||
			uri[n] == '?' || uri[n] == '#') {
			touch(s)
		}
	}
}

// Lost reports that the connection to the server is gone. Open requests fail; subscriptions stay, and Back makes them
// again.
func (h *Host) Lost(now Time) {
	h.enter(now)
	h.lose()
	h.leave()
}

func (h *Host) lose() {
	h.down = true
	h.out = nil
	var ids []string
	for id := range h.pending {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	gone := bridge.Incoming{Failure: bridge.JSON(`{"code":-32603,"message":"The connection to the server is lost"}`)}
	waiting := h.pending
	h.pending = map[string]pending{}
	for _, id := range ids {
		switch p := waiting[id]; p.kind {
		case askRead, askRelay, askList:
			h.answered(p, gone)
		}
	}
	h.fresh = false
	h.modern = modern{}
	for _, s := range h.ordered {
		s.state, s.missed, s.retry = idle, true, retry{}
	}
}

// Back reports a new connection, and the era of its server. The Host subscribes to each watched URI, and then announces
// it, as it may have changed meanwhile.
func (h *Host) Back(now Time, era Era) {
	h.enter(now)
	if !h.down {
		h.lose()
	}
	h.era, h.down = era, false
	h.leave()
}

// listInterval is the least time between two list_changed, as for updates.
const listInterval = 100

// notifyListChanged passes on a change of the list to each View that is initialized.
func (h *Host) notifyListChanged() {
	if !h.listDue || h.listSaid && h.now < h.listAt {
		return
	}
	h.listDue, h.listSaid, h.listAt = false, true, h.now+listInterval
	for _, port := range h.inOrder() {
		if v := h.ports[port]; v != nil && v.ready && !v.leaving {
			h.home.ToView(v.id,
				bridge.Message{
					Head: []byte(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`)})
		}
	}
}

func (s *server) deadline() (at Time, ok bool) {
	soonest := func(t Time, wanted bool) {
		if wanted && (!ok || t < at) {
			at, ok = t, true
		}
	}
	soonest(s.listAt, s.listDue)
	if s.down {
		return at, ok
	}
	for _, src := range s.ordered {
		soonest(src.at, s.era == Legacy && src.wanted() && src.state == idle)
	}
	if s.era == Modern {
		for _, old := range s.old {
			soonest(old.end, true)
		}
		if s.opening != nil {
			soonest(s.opening.end, true)
		} else {
			soonest(s.modern.at, s.behind())
		}
	}
	return at, ok
}

// held counts the subscriptions and streams at the server, as if all open requests were answered.
func (s *server) held() (subscriptions, streams int) {
	for _, src := range s.ordered {
		if s.era == Legacy && src.state != idle {
			subscriptions++
		}
	}
	streams = len(s.old)
	for _, stream := range []*stream{s.current, s.opening} {
		if stream != nil {
			subscriptions = max(subscriptions, len(stream.uris))
			streams++
		}
	}
	return subscriptions, streams
}
