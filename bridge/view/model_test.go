package view_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

// A world is a Host between correct Views and a correct server, with delays between them. Each channel keeps its order,
// and channels have no order among each other, as over HTTP. No message is on its way for longer than a replaced listen
// lingers. Each URI has a version, which change increments.
type world struct {
	t    *testing.T
	r    *rand.Rand
	host *view.Host
	now  bridge.Time
	era  view.Era

	version map[string]int

	// the server
	subscribed map[string]bool // legacy
	streams    map[string][]string
	answers    []func()            // to all requests except listens: in any order
	told       map[string][]parcel // messages on their way on each channel, in order
	calls      int

	views map[view.ID]*model
	last  view.ID
}

type parcel struct {
	sent bridge.Time
	act  func()
}

// A model is a View: the URIs that it watches, and the version of each that it last read.
type model struct {
	watching map[string]bool
	confirms map[int]string // request id -> URI
	reads    map[int]string
	seen     map[string]int
	stale    map[string]bool // updated, and not read since
	next     int
}

func newWorld(t *testing.T, seed uint64, era view.Era, o view.Options) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), era: era, version: map[string]int{},
		subscribed: map[string]bool{}, streams: map[string][]string{}, told: map[string][]parcel{},
		views: map[view.ID]*model{}}
	o.Era = era
	w.host = view.New(o, w)
	return w
}

type rpc struct {
	ID     json.RawMessage
	Method string
	Params struct {
		URI           string
		RequestID     string
		Notifications struct{ ResourceSubscriptions []string }
	}
	Result *struct {
		Contents []struct{ URI, Text string }
	}
	Error *struct{ Message string }
}

func (w *world) ToServer(text []byte) {
	var m rpc
	if err := json.Unmarshal(text, &m); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	w.calls++
	var id string
	_ = json.Unmarshal(m.ID, &id)
	reply := func(result string) {
		w.answers = append(w.answers, func() {
			w.host.FromServer(w.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":%s}`, id, result))
		})
	}
	switch m.Method {
	case "resources/list":
		reply(`{"resources":[]}`)
	case "resources/read":
		reply(fmt.Sprintf(`{"contents":[{"uri":%q,"text":"%d"}]}`, m.Params.URI, w.version[m.Params.URI]))
	case "resources/subscribe":
		if w.subscribed[m.Params.URI] {
			w.t.Errorf("subscribed twice to %s", m.Params.URI)
		}
		w.subscribed[m.Params.URI] = true
		reply(`{}`)
	case "resources/unsubscribe":
		if !w.subscribed[m.Params.URI] {
			w.t.Errorf("unsubscribed from %s, which was not", m.Params.URI)
		}
		delete(w.subscribed, m.Params.URI)
		reply(`{}`)
	case "subscriptions/listen":
		uris := m.Params.Notifications.ResourceSubscriptions
		w.streams[id] = uris
		list, _ := json.Marshal(uris)
		w.queue(id,
			fmt.Sprintf(
				`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%q},"notifications":{"resourceSubscriptions":%s}}}`, id, list))
	case "notifications/cancelled":
		// The listen's HTTP connection is closed: messages on their way on it are lost.
		delete(w.streams, m.Params.RequestID)
		delete(w.told, m.Params.RequestID)
	}
}

func (w *world) queue(channel, text string) {
	w.told[channel] = append(w.told[channel], parcel{w.now, func() { w.host.FromServer(w.now, []byte(text)) }})
}

// change gives a URI a new text, and announces it to its watchers.
func (w *world) change(uri string) {
	w.version[uri]++
	if w.subscribed[uri] {
		w.queue("", fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri))
	}
	for _, id := range sorted(w.streams) {
		if slices.Contains(w.streams[id], uri) {
			w.queue(id,
				fmt.Sprintf(
					`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%q},"uri":%q}}`, id, uri))
		}
	}
}

// deliver lets a random message on its way arrive, if there is one.
func (w *world) deliver() bool {
	channels := sorted(w.told)
	n := len(channels) + len(w.answers)
	if n == 0 {
		return false
	}
	i := w.r.IntN(n)
	if i < len(w.answers) {
		act := w.answers[i]
		w.answers = slices.Delete(w.answers, i, i+1)
		act()
		return true
	}
	w.arrive(channels[i-len(w.answers)])
	return true
}

// arrive lets the next message on a channel arrive.
func (w *world) arrive(channel string) {
	act := w.told[channel][0].act
	if w.told[channel] = w.told[channel][1:]; len(w.told[channel]) == 0 {
		delete(w.told, channel)
	}
	act()
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (w *world) ToView(id view.ID, m bridge.Message) {
	var r rpc
	text := m.AppendTo(nil)
	if err := json.Unmarshal(text, &r); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	v := w.views[id]
	if v == nil {
		w.t.Errorf("a View that is gone is sent %s", text)
		return
	}
	if r.Method == "notifications/resources/updated" {
		// An update may cross an unsubscribe: the View then reads a URI that it no longer watches.
		v.stale[r.Params.URI] = true
		return
	}
	var n int
	_ = json.Unmarshal(r.ID, &n)
	if uri, ok := v.confirms[n]; ok {
		delete(v.confirms, n)
		if r.Error != nil {
			w.t.Errorf("%s: %s", uri, r.Error.Message)
			return
		}
		v.watching[uri] = true
		v.stale[uri] = true // like a real View, it reads a URI that it begins to watch
	}
	if uri, ok := v.reads[n]; ok && r.Result != nil {
		delete(v.reads, n)
		var version int
		_, _ = fmt.Sscan(r.Result.Contents[0].Text, &version)
		v.seen[uri] = max(v.seen[uri], version) // answers come in any order too
	}
}

func (w *world) open() view.ID {
	w.last++
	w.views[w.last] = &model{watching: map[string]bool{}, confirms: map[int]string{}, reads: map[int]string{},
		seen: map[string]int{}, stale: map[string]bool{}}
	if err := w.host.Open(w.now, w.last); err != nil {
		w.t.Fatal(err)
	}
	return w.last
}

func (w *world) send(id view.ID, method, uri string) int {
	v := w.views[id]
	v.next++
	w.host.Receive(w.now, id, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"uri":%q}}`, v.next,
		method, uri))
	return v.next
}

func (w *world) subscribe(id view.ID, uri string) {
	v := w.views[id]
	if v.watching[uri] || len(v.confirms) > 0 {
		return
	}
	v.confirms[v.next+1] = uri
	w.send(id, "resources/subscribe", uri)
}

// readStale makes Views read the URIs that were updated.
func (w *world) readStale() {
	for id := view.ID(1); id <= w.last; id++ {
		v := w.views[id]
		if v == nil {
			continue
		}
		for _, uri := range sorted(v.stale) {
			delete(v.stale, uri)
			v.reads[v.next+1] = uri
			w.send(id, "resources/read", uri)
		}
	}
}

func (w *world) pass(ms bridge.Time) {
	for _, channel := range sorted(w.told) {
		for len(w.told[channel]) > 0 && w.told[channel][0].sent < w.now-90 {
			w.arrive(channel)
		}
	}
	for target := w.now + ms; ; {
		at, ok := w.host.Deadline()
		if !ok || at > target {
			w.now = target
			return
		}
		w.now = max(w.now, at)
		w.host.Tick(w.now)
	}
}

// settle lets all messages arrive. It checks that each View has read the newest version of each URI that it watches,
// and that the server has exactly the subscriptions that are needed.
func (w *world) settle() {
	w.t.Helper()
	for range 1000 {
		for w.deliver() {
		}
		w.pass(500)
		w.readStale()
		if len(w.answers)+len(w.told) == 0 {
			break
		}
	}
	wanted := map[string]bool{}
	for id, v := range w.views {
		for uri := range v.watching {
			wanted[uri] = true
			if v.seen[uri] != w.version[uri] {
				w.t.Errorf("View %d last read version %d of %s, which is at %d", id, v.seen[uri], uri, w.version[uri])
			}
		}
	}
	held := map[string]bool{}
	for uri := range w.subscribed {
		held[uri] = true
	}
	if len(w.streams) > 1 {
		w.t.Errorf("%d listens are open", len(w.streams))
	}
	for _, uris := range w.streams {
		for _, uri := range uris {
			held[uri] = true
		}
	}
	if a, b := fmt.Sprint(sorted(held)), fmt.Sprint(sorted(wanted)); a != b {
		w.t.Errorf("the server has subscriptions to %s, needed are %s", a, b)
	}
	if s := w.host.Stats(); s.Pending > len(w.streams) || s.Upstream != len(wanted) || s.Watched != len(wanted) {
		w.t.Errorf("%+v, %d URIs are watched", s, len(wanted))
	}
}

// play makes 400 random steps of Views, the server and time.
func play(w *world) {
	var uris []string
	for i := range 6 {
		uris = append(uris, fmt.Sprintf("data://%d", i))
		w.host.Learn(0, uris[i])
	}
	for range 400 {
		uri := uris[w.r.IntN(len(uris))]
		id := view.ID(1 + w.r.IntN(int(w.last)+1))
		switch v := w.views[id]; w.r.IntN(10) {
		case 0:
			if len(w.views) < 8 {
				w.open()
			}
		case 1, 2:
			if v != nil {
				w.subscribe(id, uri)
			}
		case 3:
			if v != nil && v.watching[uri] {
				delete(v.watching, uri)
				w.send(id, "resources/unsubscribe", uri)
			}
		case 4:
			if v != nil && w.r.IntN(3) == 0 {
				delete(w.views, id)
				w.host.Close(w.now, id)
			}
		case 5, 6:
			w.change(uri)
		case 7:
			w.readStale()
		case 8:
			w.pass(bridge.Time(w.r.IntN(100)))
		default:
			w.deliver()
		}
	}
}

// With any actions of Views and any order of messages, no change is lost and nothing is left at the server.
func TestNothingIsLostAndNothingIsLeft(t *testing.T) {
	for name, o := range map[string]view.Options{"legacy": {}, "modern": {Era: view.Modern}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				w := newWorld(t, seed, o.Era, o)
				play(w)
				w.settle()
				for id := range w.views {
					delete(w.views, id)
					w.host.Close(w.now, id)
				}
				w.settle()
				if s := w.host.Stats(); s.Upstream+s.Streams+s.Pending+s.Views+s.Subscriptions != 0 {
					t.Errorf("when all Views have gone: %+v", s)
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// Fifty Views that watch one URI share one subscription at the server. It ends when they have gone, in any order.
func TestFiftyViewsShareOneSubscription(t *testing.T) {
	for _, era := range []view.Era{view.Legacy, view.Modern} {
		t.Run([]string{"legacy", "modern"}[era], func(t *testing.T) {
			w := newWorld(t, 50, era, view.Options{})
			w.host.Learn(0, "data://one")
			for range 50 {
				w.subscribe(w.open(), "data://one")
			}
			w.settle()
			s := w.host.Stats()
			if s.Subscriptions != 50 || s.Upstream != 1 || s.Subscribes+s.Listens != 1 {
				t.Errorf("with fifty Views: %+v", s)
			}
			reads := s.Reads
			w.change("data://one")
			w.settle()
			if s = w.host.Stats(); s.Updates != 50 || s.Reads != reads+1 {
				t.Errorf("one change is told to %d Views, and read %d times", s.Updates, s.Reads-reads)
			}
			for left, i := range w.r.Perm(50) {
				id := view.ID(i + 1)
				delete(w.views, id)
				w.host.Close(w.now, id)
				if s := w.host.Stats(); left < 49 && (s.Upstream != 1 || s.Unsubscribes+s.Cancels != 0) {
					t.Fatalf("%d Views are left, and the server has been told to stop", 49-left)
				}
			}
			w.settle()
			if s := w.host.Stats(); s.Upstream != 0 || s.Streams != 0 || s.Unsubscribes+s.Cancels != 1 || s.Views != 0 {
				t.Errorf("when all have gone: %+v", s)
			}
		})
	}
}
