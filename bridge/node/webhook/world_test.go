package webhook

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A world has pages of users, which all nodes see, and a store. Each resource has the revision of its last change.
type world struct {
	t        *testing.T
	endpoint *endpoint
	dir      string
	store    *bus.Bus

	mu      sync.Mutex
	clock   int
	changed map[string]map[string]int // by user and URI
	follows map[*worldFollow]bool
}

func newWorld(t *testing.T) (w *world, e *endpoint) {
	t.Helper()
	w = &world{t: t, endpoint: listen(t), dir: t.TempDir(), changed: map[string]map[string]int{},
		follows: map[*worldFollow]bool{}}
	w.openStore()
	return w, w.endpoint
}

// openStore opens the store. It may be called again after closeStore.
func (w *world) openStore() (closeStore func()) {
	w.t.Helper()
	var err error
	if w.store, err = bus.Open(bus.Options{Name: "store", Store: w.dir}); err != nil {
		w.t.Fatal(err)
	}
	closeStore = sync.OnceFunc(w.store.Close)
	w.t.Cleanup(closeStore)
	return closeStore
}

// set changes a resource, and returns its revision.
func (w *world) set(user, uri string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	if w.changed[user] == nil {
		w.changed[user] = map[string]int{}
	}
	w.changed[user][uri] = w.clock
	for f := range w.follows {
		if f.user == user {
			f.wake()
		}
	}
	return w.clock
}

type worldFeed struct {
	*world
	user string
}

func (f *worldFeed) Close() {}

func (f *worldFeed) Follow(sub events.Subscription, cursor string, _ time.Duration,
	wake func()) (Follow, *bridge.EventError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &worldFollow{world: f.world, user: f.user, sub: sub, wake: wake, at: f.clock}
	if cursor != "" {
		l.at, _ = strconv.Atoi(cursor)
	}
	f.follows[l] = true
	return l, nil
}

type worldFollow struct {
	*world
	user  string
	sub   events.Subscription
	wake  func()
	at    int
	began bool
}

func (f *worldFollow) Next() (events.Note, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.began {
		f.began = true
		return events.Note{Kind: events.Active, Occurrence: events.Occurrence{Cursor: strconv.Itoa(f.at)}}, true
	}
	next := ""
	for uri, at := range f.changed[f.user] {
		if at > f.at && f.sub.Matches(uri, "") && (next == "" || at < f.changed[f.user][next]) {
			next = uri
		}
	}
	if next == "" {
		return events.Note{}, false
	}
	f.at = f.changed[f.user][next]
	return events.Note{Kind: events.Event, Occurrence: events.Occurrence{ID: f.sub.ID(int64(f.at), next), Name: f.sub.Name,
		Time: time.Now(), Data: []byte(`{"uri":"` + next + `"}`), Cursor: strconv.Itoa(f.at), Subject: next}}, true
}

func (f *worldFollow) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.follows, f)
}

const testLease = time.Second

// patiently is for tests that count attempts: one whose answer takes longer than the lease is made again, uncounted.
func patiently(o *Options) { o.Lease = testkit.Patience }

// open opens a node. Its deliveries go to the endpoint.
func (w *world) open(name string, change ...func(*Options)) *Service {
	w.t.Helper()
	o := Options{
		Node: name, Key: "key", Lease: testLease, Backoff: []time.Duration{time.Millisecond, time.Millisecond},
		Open: func(ctx context.Context, name string, age time.Duration) (Store, error) {
			return w.store.KV(ctx, name, age)
		},
		Feed: func(_ context.Context, user string) (Feed, error) { return &worldFeed{w, user}, nil },
		Log:  logTo(testkit.LogOf(w.t, name)), Client: ClientOptions{Allow: loopback, Roots: w.endpoint.roots},
	}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	testkit.Eventually(w.t, "the store is there", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.known == 2
	})
	s.renew(0) // otherwise it comes to life after a third of its lease
	testkit.Eventually(w.t, "the node is alive", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Contains(s.alive(time.Now()), name)
	})
	return s
}

// kill ends a node like a power cut: without a word to the store.
func (s *Service) kill() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cancel()
}

// alice and bob have the form of a user's hash.
var alice, bob = strings.Repeat("A", 43), strings.Repeat("B", 43)

// secretText is a secret of 24 bytes.
const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var theSecret, _ = ParseSecret(secretText)

// by returns a principal with a token for two hours, for the user's own pages.
func by(user string) Principal { return Principal{user, user, time.Now().Add(2 * time.Hour)} }

// wants returns a request for all changes of resources, modified by change.
func wants(t *testing.T, url string, change ...func(*events.WebhookRequest)) events.WebhookRequest {
	t.Helper()
	r := events.WebhookRequest{URL: url, Secret: secretText, MaxAge: -1, TTL: -1}
	r.Subscription = parsed(t, `{}`)
	for _, f := range change {
		f(&r)
	}
	return r
}

func parsed(t *testing.T, arguments string) events.Subscription {
	t.Helper()
	sub, refused := events.Parse(events.Updated, []byte(arguments))
	if refused != nil {
		t.Fatal(refused)
	}
	return sub
}

// delivered waits until a resource's revision has come, and returns all requests so far.
func (e *endpoint) delivered(sub events.Subscription, uri string, revision int) (all []posted) {
	e.t.Helper()
	want := sub.ID(int64(revision), uri)
	testkit.Settles(e.t, want+" is delivered", func() string {
		var ids []string
		for _, p := range e.had() {
			ids = append(ids, p.header.Get("webhook-id"))
		}
		if !slices.Contains(ids, want) {
			return "only " + strings.Join(ids, " ")
		}
		return ""
	})
	return e.had()
}

// owns waits until a node delivers for a user.
func (s *Service) owns(t *testing.T, user string) {
	t.Helper()
	testkit.Eventually(t, s.o.Node+" delivers for the user", func() bool { return slices.Contains(s.owned(), user) })
}

func (s *Service) owned() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := maps.Clone(s.users)
	maps.DeleteFunc(names, func(_ string, u *user) bool { return u.state != mine || len(u.deliveries) == 0 })
	return slices.Collect(maps.Keys(names))
}

func logTo(log *testkit.Log) *slog.Logger { return slog.New(slog.NewTextHandler(log, nil)) }
