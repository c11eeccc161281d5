package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/wire"
)

// check returns an error if the engine's state is inconsistent. It is called after every step of
// the fuzzer, when nothing is under way.
func (e *Engine) check() error {
	if q := &e.queue; q.draining || len(q.ops) != 0 || len(q.text) != 0 {
		return fmt.Errorf("the queue was not drained: %d", len(q.ops))
	}
	if len(e.order) != len(e.ports) {
		return fmt.Errorf("%d ports in order, %d by id", len(e.order), len(e.ports))
	}
	subs, listens, waits, restricted, streams := 0, 0, 0, 0, 0
	for i, p := range e.order {
		if p.sight != nil {
			restricted++
		}
		if p.index != i || e.ports[p.id] != p {
			return fmt.Errorf("port %d is out of place", p.id)
		}
		legacy, waiting := 0, 0
		for j, s := range p.subs {
			w := s.watch
			if int(s.portIndex) != j || s.port != p || int(s.watchIndex) >= len(w.subs) ||
				w.subs[s.watchIndex] != s ||
				e.watches[w.uri] != w {
				return fmt.Errorf("port %d: subscription to %s is out of place", p.id, w.uri)
			}
			if s.listen == nil {
				legacy++
				if p.subscribed[w.uri] != s {
					return fmt.Errorf("port %d: legacy subscription to %s is unknown", p.id, w.uri)
				}
			}
			if s.waiting {
				waiting++
			}
		}
		if legacy != len(p.subscribed) {
			return fmt.Errorf("port %d: %d legacy subscriptions, %d known", p.id, legacy,
				len(p.subscribed))
		}
		var last *sub
		for s := p.first; s != nil; s = s.next {
			if !s.waiting || s.prev != last {
				return fmt.Errorf("port %d: the line of updates is broken", p.id)
			}
			last = s
			waiting--
		}
		if waiting != 0 || p.last != last {
			return fmt.Errorf("port %d: the line of updates leaves some out", p.id)
		}
		if p.first != nil && p.writable && !p.throttled {
			return fmt.Errorf("port %d: updates wait for nothing", p.id)
		}
		inListens := 0
		for _, l := range p.listens {
			inListens += len(l.subs)
			for _, s := range l.subs {
				if s.listen != l {
					return fmt.Errorf("port %d: a listen has another's subscription", p.id)
				}
			}
		}
		if legacy+inListens != len(p.subs) {
			return fmt.Errorf("port %d: %d subscriptions, of which %d legacy and %d of listens",
				p.id, len(p.subs),
				legacy, inListens)
		}
		if p.throttled != contains(e.throttled, p) {
			return fmt.Errorf("port %d: throttled is %v", p.id, p.throttled)
		}
		openings := map[*opening]bool{}
		for _, w := range p.waits {
			if w.port != p || !contains(w.call.waits, w) || e.calls[w.call.id] != w.call {
				return fmt.Errorf("port %d: a wait is out of place", p.id)
			}
			if w.opening != nil {
				openings[w.opening] = true
			}
		}
		if len(openings) != p.openings {
			return fmt.Errorf("port %d: %d openings, counted %d", p.id, len(openings), p.openings)
		}
		granted := 0
		for o := range openings {
			granted += len(o.uris) - o.left
		}
		if granted != p.granted {
			return fmt.Errorf("port %d: %d consents of openings, counted %d", p.id, granted,
				p.granted)
		}
		if p.subscriptions() > e.opt.Limits.Subscriptions {
			return fmt.Errorf("port %d: %d subscriptions, more than the limit", p.id,
				p.subscriptions())
		}
		subs += len(p.subs)
		listens += len(p.listens)
		waits += len(p.waits)
		for _, s := range p.streams {
			if s.port != p || e.streams[s.call] != s || !contains(e.beats, s) {
				return fmt.Errorf("port %d: a stream is out of place", p.id)
			}
		}
		if len(p.streams)+p.streamsOpening() > e.opt.Limits.Streams {
			return fmt.Errorf("port %d: %d streams, more than the limit", p.id, len(p.streams))
		}
		streams += len(p.streams)
	}
	if streams != len(e.streams) || streams != len(e.beats) || streams != e.stats.Streams {
		return fmt.Errorf("%d streams, %d by call, %d that beat, counted %d", streams,
			len(e.streams), len(e.beats),
			e.stats.Streams)
	}
	if subs != e.stats.Subscriptions || listens != e.stats.Listens {
		return fmt.Errorf("%d subscriptions and %d listens, counted %d and %d", subs, listens,
			e.stats.Subscriptions,
			e.stats.Listens)
	}
	for uri, w := range e.watches {
		if len(w.subs) == 0 || w.uri != uri {
			return fmt.Errorf("%s is watched by nobody", uri)
		}
		if w.entry != e.registry.Find(uri) {
			return fmt.Errorf("%s is bound to the wrong entry", uri)
		}
		if wide := w.entry == nil || w.entry.Wide; wide != (w.index < len(e.wide[w.entry]) &&
			e.wide[w.entry][w.index] == w) {
			return fmt.Errorf("%s: the list of its entry is wrong", uri)
		}
		subs -= len(w.subs)
	}
	if subs != 0 {
		return fmt.Errorf("%d subscriptions are of no watch", subs)
	}
	for entry, list := range e.wide {
		for _, w := range list {
			if w.entry != entry || e.watches[w.uri] != w {
				return fmt.Errorf("%s is listed under an entry that is not its own", w.uri)
			}
		}
	}
	for id, c := range e.calls {
		if c.id != id || len(c.waits) == 0 {
			return fmt.Errorf("call %d is for nobody", id)
		}
		waits -= len(c.waits)
	}
	if waits != 0 {
		return fmt.Errorf("%d waits are of no call", waits)
	}
	listed := 0
	for _, list := range [...]*ages{&e.reads, &e.toolCalls, &e.awaiting} {
		for c := list.first; c != nil; c = c.next {
			if listed++; e.calls[c.id] != c {
				return fmt.Errorf("call %d has ended and is still to expire", c.id)
			}
		}
	}
	if !e.awaits && e.awaiting.first != nil {
		return fmt.Errorf("requests wait for nothing")
	}
	if listed != len(e.calls) {
		return fmt.Errorf("%d calls are to expire, %d are under way", listed, len(e.calls))
	}
	for uri, c := range e.joinable {
		if c.uri != uri || e.calls[c.id] != c {
			return fmt.Errorf("an ended read of %s can be joined", uri)
		}
	}
	if restricted != e.restricted {
		return fmt.Errorf("%d ports are restricted, %d are counted", restricted, e.restricted)
	}
	if at, ok := e.Deadline(); ok && at < e.now {
		return fmt.Errorf("the deadline %d has passed at %d", at, e.now)
	}
	return nil
}

func contains[T comparable](list []T, x T) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// A world is an engine among random ports and a random host. It keeps its own record of requests
// and answers.
type world struct {
	t      testing.TB
	engine *Engine
	bytes  []byte
	now    Time

	open     map[PortID]bool
	last     PortID
	nextID   int
	asked    map[PortID]map[string]bool // ids that wait for an answer
	calls    []CallID                   // that the host may answer
	begun    map[CallID]bool
	due      map[*sub]Time // subscription -> last touch of its URI
	told     map[PortID]map[string]Time
	messages int
	blocked  map[PortID]bool
	streams  []CallID       // requested event streams
	news     map[CallID]int // events that a stream has not taken
}

var worldURIs = []string{
	"https://x.test/a", "https://x.test/b", "https://x.test/item/1", "https://x.test/item/2",
	"https://x.test/q",
	"https://x.test/q?p=1", "https://evil.test/a", "nonsense",
}

// hidden is the prefix of the URIs that every third port does not see.
const hidden = "https://x.test/item/"

var worldKeys = []string{"https://x.test/a", "https://x.test/b", "https://x.test/item/{id}",
	"https://x.test/{any}/1",
	"https://x.test/item/1", "https://x.test/q", "https://evil.test/a", "https://x.test/{any}{?p}"}

func newWorld(t testing.TB, data []byte) *world {
	w := &world{
		t: t, bytes: data, open: map[PortID]bool{}, asked: map[PortID]map[string]bool{},
		begun: map[CallID]bool{},
		due:   map[*sub]Time{}, told: map[PortID]map[string]Time{}, blocked: map[PortID]bool{},
		news: map[CallID]int{},
	}
	o := Options{Events: true, HeartbeatInterval: 400, Rule: Rule{Origin: "https://x.test"},
		Tools: true, ReadTimeout: 500, ToolTimeout: 900, AwaitTimeout: 700, PageSize: 2}
	o.Limits = Limits{Ports: 6, Subscriptions: 6, Listens: 3, Streams: 2, Calls: 4, Resources: 6,
		UpdateRate: 3, MessageBytes: 4096,
		ResultBytes: 200}
	var host Host = w
	if w.byte()%2 == 0 {
		host = consenting{w}
	}
	w.engine = New(o, host)
	return w
}

type consenting struct{ *world }

func (w consenting) Subscribe(call CallID, port PortID, uri string) {
	if w.begun[call] {
		w.t.Fatalf("call %d began twice", call)
	}
	w.begin(call)
}

func (w consenting) Unsubscribe(call CallID, port PortID, uri string) {
	if call != 0 {
		w.begin(call)
	}
}

func (w *world) byte() byte {
	if len(w.bytes) == 0 {
		return 0
	}
	b := w.bytes[0]
	w.bytes = w.bytes[1:]
	return b
}

func pick[T any](w *world, list []T) T { return list[int(w.byte())%len(list)] }

func (w *world) port() PortID {
	if w.last == 0 {
		return 0
	}
	return PortID(int(w.byte())%int(w.last)) + 1
}

func (w *world) begin(call CallID) {
	w.begun[call] = true
	w.calls = append(w.calls, call)
}

func (w *world) Read(call CallID, r Request) {
	if call == 0 || w.begun[call] || r.URI == "" || r.Key == "" {
		w.t.Fatalf("bad read: call %d, %+v", call, r)
	}
	if r.Params != "" && !json.Valid([]byte(r.Params)) {
		w.t.Fatalf("params %s", r.Params)
	}
	w.begin(call)
	if w.byte()%4 == 0 { // immediately, from within the engine's call
		w.engine.Complete(w.now, call, Result{Contents: []byte(`[{"text":"x"}]`)})
	}
}

func (w *world) CallTool(call CallID, t ToolCall) { w.begin(call) }

func (w *world) End(call CallID) {
	delete(w.begun, call)
	delete(w.news, call)
}

func (w *world) Events(call CallID, r EventRequest) {
	w.begin(call)
	if r.Method == wire.EventsStream {
		w.streams = append(w.streams, call)
	}
	if w.byte()%4 == 0 {
		w.engine.Complete(w.now, call, Result{Contents: []byte(`{"cursor":"c"}`)})
	}
}

func (w *world) NextEvent(call CallID) (n EventNote, ok bool) {
	if w.news[call] == 0 {
		return n, false
	}
	w.news[call]--
	if w.byte()%4 == 1 { // never at the end of the bytes, where byte is 0
		w.wake(call) // re-entry
	}
	return EventNote{Members: []byte(`"eventId":"e"`)}, true
}

func (w *world) EventCursor(CallID) string { return "c" }

func (w *world) wake(call CallID) {
	if w.engine.streams[call] != nil {
		w.news[call]++
		w.engine.Wake(w.now, call)
	}
}

func (w *world) Watched(uri string, on bool) {
	if on && w.byte()%8 == 0 {
		w.touch(uri) // re-entry
	}
}

func (w *world) touch(uri string) {
	if watch := w.engine.watches[uri]; watch != nil && watch.entry != nil {
		for _, s := range watch.subs {
			if !s.port.hides(uri) {
				w.due[s] = w.now
			}
		}
	}
	w.engine.Touch(w.now, uri)
}

func (w *world) Send(to PortID, m Message) {
	w.messages++
	text := m.AppendTo(nil)
	if !w.open[to] {
		w.t.Fatalf("sent to a closed port: %s", text)
	}
	var v struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  struct {
			URI string `json:"uri"`
		} `json:"params"`
		Result, Error json.RawMessage
	}
	if err := json.Unmarshal(text, &v); err != nil || v.JSONRPC != "2.0" {
		w.t.Fatalf("sent what is no message: %v: %s", err, text)
	}
	if (v.Method == "") == (v.Result == nil && v.Error == nil) {
		w.t.Fatalf("neither notification nor answer: %s", text)
	}
	if w.engine.ports[to].sight != nil && v.Error == nil &&
		bytes.Contains(text, []byte(`"uri":"`+hidden)) {
		w.t.Fatalf("a port is told of what it does not see: %s", text)
	}
	if w.blocked[to] && (v.Method == wire.EventsEvent || v.Method == wire.EventsHeartbeat) {
		w.t.Fatalf("an event for a port that is not writable: %s", text)
	}
	if v.Method == wire.ResourceUpdated {
		if w.blocked[to] {
			w.t.Fatalf("an update for a port that is not writable: %s", text)
		}
		if w.told[to] == nil {
			w.told[to] = map[string]Time{}
		}
		w.told[to][v.Params.URI] = w.now
	}
	if id := string(v.ID); v.Method == "" && id != "" {
		if !w.asked[to][id] {
			w.t.Fatalf("an answer that was not asked for: %s", text)
		}
		delete(w.asked[to], id)
	}
}

// send makes an agent send a random message.
func (w *world) send() {
	p := w.port()
	if !w.open[p] {
		return
	}
	w.nextID++
	id := fmt.Sprint(w.nextID)
	if w.byte()%4 == 0 {
		id = fmt.Sprintf("%q", id)
	}
	modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	uri := pick(w, worldURIs)
	var body string
	switch w.byte() % 19 {
	case 16, 17:
		body = `"method":"events/stream","params":{` + modern + `,"name":"x"}`
	case 18:
		body = `"method":"events/poll","params":{"name":"x"}`
	case 0:
		body = `"method":"initialize","params":{"protocolVersion":"2025-06-18"}`
	case 1, 2:
		body = fmt.Sprintf(`"method":"resources/read","params":{"uri":%q}`, uri)
	case 3:
		body = fmt.Sprintf(`"method":"resources/read","params":{%s,"uri":%q}`, modern, uri)
	case 4, 5, 6:
		body = fmt.Sprintf(`"method":"resources/subscribe","params":{"uri":%q}`, uri)
	case 7:
		body = fmt.Sprintf(`"method":"resources/unsubscribe","params":{"uri":%q}`, uri)
	case 8, 9:
		body = fmt.Sprintf(
			`"method":"subscriptions/listen","params":{%s,"notifications":{"resourcesListChanged":%v,"toolsListChanged":true,"resourceSubscriptions":[%q,%q]}}`, modern, w.byte()%2 == 0, uri, pick(w, worldURIs))
	case 10:
		body = fmt.Sprintf(`"method":"subscriptions/listen","params":{%s,"notifications":{}}`,
			modern)
	case 11:
		body = `"method":"resources/list"`
	case 12:
		body = fmt.Sprintf(`"method":"tools/call","params":{%s,"name":"t"}`, modern)
	case 13: // cancel something
		target := 1 + int(w.byte())%w.nextID
		text := fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`,
			target)
		delete(w.asked[p], fmt.Sprint(target)) // nothing more may come for it
		w.receive(p, text)
		return
	case 14: // the same id again
		target := 1 + int(w.byte())%w.nextID
		if w.asked[p][fmt.Sprint(target)] {
			return // two requests with one id, which the record does not model
		}
		id = fmt.Sprint(target)
		body = `"method":"ping"`
	default:
		garbage := []string{`{`, `[]`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","method":"x"}`,
			`null`,
			`{"jsonrpc":"2.0","result":1}`}
		w.receive(p, pick(w, garbage))
		return
	}
	if w.asked[p] == nil {
		w.asked[p] = map[string]bool{}
	}
	w.asked[p][id] = true
	w.receive(p, `{"jsonrpc":"2.0","id":`+id+`,`+body+`}`)
}

func (w *world) receive(p PortID, text string) {
	input := []byte(text)
	if err := w.engine.Receive(w.now, p, input); err != nil {
		w.t.Fatal(err)
	}
	for i := range input { // the bytes are the caller's again
		input[i] = 'X'
	}
}

func (w *world) step() {
	switch w.byte() % 24 {
	case 23:
		w.engine.Await(w.now, w.byte()%2 == 0)
	case 20, 21:
		if len(w.streams) > 0 {
			w.wake(pick(w, w.streams))
		}
	case 22:
		if len(w.streams) > 0 && w.byte()%4 == 0 {
			w.engine.Terminate(w.now, pick(w, w.streams),
				&EventError{Kind: EventForbidden, Message: "m"})
		}
	case 0:
		w.last++
		w.open[w.last] = true
		if w.engine.Open(w.now, w.last) != nil {
			delete(w.open, w.last)
			w.last--
		} else if w.last%3 == 0 {
			w.engine.Restrict(w.last,
				sight(func(uri string) bool { return !strings.HasPrefix(uri, hidden) }))
		}
	case 1:
		if p := w.port(); w.byte()%4 == 0 {
			delete(w.open, p)
			delete(w.asked, p)
			delete(w.blocked, p)
			delete(w.told, p)
			w.engine.Close(w.now, p)
		}
	case 2, 3:
		key := pick(w, worldKeys)
		r := Resource{URI: key, Name: "n", Size: -1}
		if key == "https://x.test/q" {
			r, _ = DecodeResource(
				[]byte(`{"uri":"https://x.test/q","name":"q","uriSchema":{"properties":{"p":{"type":"integer"}}}}`))
		}
		_ = w.engine.Register(w.now, r)
	case 4:
		key := pick(w, worldKeys)
		w.engine.Unregister(w.now, key)
		for s := range w.due {
			if s.watch.entry == nil { // it is notified when the URI comes back
				delete(w.due, s)
			}
		}
	case 5, 6, 7:
		w.touch(pick(w, worldURIs))
	case 8:
		w.engine.Touch(w.now, pick(w, worldKeys))
	case 9, 10:
		if len(w.calls) > 0 {
			i := int(w.byte()) % len(w.calls)
			r := Result{Contents: []byte(`[{"text":"x"}]`)}
			if w.byte()%2 == 0 {
				r.Contents = []byte(`{"content":[]}`)
			}
			switch w.byte() % 4 {
			case 0:
				r = Result{Failure: ReadFailed}
			case 1:
				r = Result{Contents: bytes.Repeat([]byte("x"), 300)}
			}
			w.engine.Complete(w.now, w.calls[i], r)
			w.calls = append(w.calls[:i], w.calls[i+1:]...)
		}
	case 11:
		if p := w.port(); w.open[p] {
			on := w.byte()%2 == 0
			w.blocked[p] = !on
			w.engine.Writable(w.now, p, on)
		}
	case 12:
		w.now += Time(w.byte())
		w.engine.Tick(w.now)
	case 13:
		tools := []Tool{{Name: "t", JSON: []byte(`{"name":"t"}`)},
			{Name: "u", JSON: []byte(`{"name":"u"}`)}}
		_ = w.engine.SetTools(w.now, tools[:1+w.byte()%2])
	case 14:
		w.now += Time(w.byte() % 8)
		w.engine.Notify(w.now, w.port(), pick(w, worldURIs))
	default:
		w.send()
	}
	if err := w.engine.check(); err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass while something is due. At three a second, an event takes 334 ms.
func (w *world) pass() {
	end := w.now + 100_000
	for _, events := range w.news {
		end += Time(334 * events)
	}
	for {
		at, ok := w.engine.Deadline()
		if !ok || at > end {
			return
		}
		w.now = max(w.now, at)
		w.engine.Tick(w.now)
	}
}

// settle makes all ports writable and lets all time pass. It checks that the last changes were
// announced and that nothing waits any more.
func (w *world) settle() {
	for p := range w.blocked {
		w.blocked[p] = false
		w.engine.Writable(w.now, p, true)
	}
	w.pass()
	for call := range w.engine.streams {
		if w.news[call] > 0 {
			w.t.Fatalf("stream %d has not taken %d events", call, w.news[call])
		}
	}
	for _, call := range w.streams { // whose heartbeats never end
		w.engine.Terminate(w.now, call, &EventError{Kind: EventForbidden, Message: "m"})
	}
	w.pass()
	if at, ok := w.engine.Deadline(); ok {
		w.t.Fatalf("there is always something due: %d", at)
	}
	for uri, watch := range w.engine.watches {
		for _, s := range watch.subs {
			if when, ok := w.due[s]; ok && w.told[s.port.id][uri] < when {
				w.t.Fatalf("the last change of %s, at %d, was not announced to port %d", uri, when,
					s.port.id)
			}
		}
	}
	for p, ids := range w.asked {
		for id := range ids {
			if w.engine.ports[p].listening(wire.Value(id)) == nil {
				w.t.Fatalf("port %d: request %s was never answered", p, id)
			}
		}
	}
}

// finish closes all ports and checks that nothing is left.
func (w *world) finish() {
	for p := range w.open {
		w.engine.Close(w.now, p)
	}
	if err := w.engine.check(); err != nil {
		w.t.Fatal(err)
	}
	s := w.engine.Stats()
	if s.Ports+s.Subscriptions+s.Listens+s.Streams+s.Calls+s.Watched != 0 || len(w.begun) != 0 {
		w.t.Fatalf("left behind: %+v, %d calls of the host", s, len(w.begun))
	}
}

// FuzzEngine plays random steps and checks the engine's invariants after each.
func FuzzEngine(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		data := make([]byte, 2000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t, data)
		for len(w.bytes) > 0 {
			w.step()
		}
		w.settle()
		w.finish()
	})
}

// 100,000 random steps leave no subscription, read or timer when all ports are closed.
func TestRandomSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	steps, messages := 0, 0
	for steps < 100_000 {
		data := make([]byte, 20_000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		w := newWorld(t, data)
		for ; len(w.bytes) > 0; steps++ {
			w.step()
		}
		w.settle()
		w.finish()
		messages += w.messages
	}
	if messages < steps/10 {
		t.Errorf("%d steps caused only %d messages: the steps do not reach the engine", steps,
			messages)
	}
}

// A sight sees an owner by its origin alone.
type sight func(uri string) bool

func (s sight) Sees(uri string) bool { return s(uri) }
func (s sight) Permits(o Owner) bool { return s(o.Origin) }
func (s sight) HidesTools() string   { return "" }
