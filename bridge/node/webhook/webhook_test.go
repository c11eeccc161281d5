package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A grantedResult is the result of a subscribe.
type grantedResult struct {
	ID             string
	RefreshBefore  time.Time
	Cursor         *string
	Truncated      *bool
	DeliveryStatus *struct {
		Active    bool
		LastError *string
	}
}

func subscribe(t *testing.T, s *Service, p Principal, r events.WebhookRequest) (g grantedResult) {
	t.Helper()
	text, refused := s.For(p).Subscribe(t.Context(), r)
	if refused != nil {
		t.Fatal(refused)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func refusedAs(t *testing.T, what string, refused *bridge.EventError, kind bridge.EventErrorKind, data string) {
	t.Helper()
	if refused == nil || refused.Kind != kind || string(refused.Data) != data {
		t.Errorf("%s: %v %s, want %v %s", what, refused, dataOf(refused), kind, data)
	}
}

func dataOf(e *bridge.EventError) string {
	if e == nil {
		return ""
	}
	return string(e.Data)
}

func TestSubscribeAndUnsubscribe(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a", func(o *Options) { o.PerPrincipal = 3 })
	for what, r := range map[string]events.WebhookRequest{
		"http":       wants(t, "http://hook.test/"),
		"no secret":  wants(t, e.URL, func(r *events.WebhookRequest) { r.Secret = "" }),
		"a mode":     wants(t, e.URL, func(r *events.WebhookRequest) { r.Mode = "push" }),
		"an address": wants(t, "https://10.0.0.1/"),
	} {
		_, refused := s.For(by(alice)).Subscribe(t.Context(), r)
		refusedAs(t, what, refused, bridge.EventInvalid, "")
	}
	first := subscribe(t, s, by(alice), wants(t, e.URL))
	if !strings.HasPrefix(first.ID, "sub_") || first.Cursor == nil || first.Truncated == nil || *first.Truncated ||
		first.DeliveryStatus != nil {
		t.Errorf("the first result is %+v", first)
	}
	again := subscribe(t, s, by(alice), wants(t, e.URL))
	if again.ID != first.ID || again.DeliveryStatus == nil || !again.DeliveryStatus.Active {
		t.Errorf("the refresh is %+v", again)
	}
	ids := []string{first.ID}
	for _, r := range []events.WebhookRequest{wants(t, e.URL+"/other"),
		wants(t, e.URL, func(r *events.WebhookRequest) { r.Subscription = parsed(t, `{"uri":"https://app.example/x"}`) })} {
		ids = append(ids, subscribe(t, s, by(alice), r).ID)
	}
	ids = append(ids, subscribe(t, s, by(bob), wants(t, e.URL)).ID)
	if slices.Sort(ids); len(slices.Compact(ids)) != 4 {
		t.Errorf("four subscriptions have the ids %v", ids)
	}
	if n := e.challenges(); n != 3 { // two for alice's URLs, one for bob's
		t.Errorf("%d challenges", n)
	}
	_, refused := s.For(by(alice)).Subscribe(t.Context(), wants(t, e.URL+"/4"))
	refusedAs(t, "one too many", refused, bridge.EventExhausted, `{"limit":"subscriptions","max":3}`)
	subscribe(t, s, by(alice), wants(t, e.URL)) // a refresh needs none

	now := time.Now()
	for wish, want := range map[time.Duration]time.Duration{-1: defaultGrant, 0: maxGrant, time.Second: minGrant,
		24 * time.Hour: maxGrant, 10 * time.Minute: 10 * time.Minute} {
		g := subscribe(t, s, by(alice), wants(t, e.URL, func(r *events.WebhookRequest) { r.TTL = wish }))
		if got := g.RefreshBefore.Sub(now); got < want-2*time.Second || got > want+testkit.Patience {
			t.Errorf("of %v it grants %v, want %v", wish, got, want)
		}
	}
	short := by(alice)
	short.Until = now.Add(5 * time.Minute)
	if g := subscribe(t, s, short, wants(t, e.URL)); g.RefreshBefore.After(short.Until) {
		t.Errorf("it outlives the token by %v", g.RefreshBefore.Sub(short.Until))
	}

	for range 2 {
		if text, refused := s.For(by(alice)).Unsubscribe(t.Context(), wants(t, e.URL)); string(text) != "{}" {
			t.Errorf("an unsubscribe: %s, %v", text, refused)
		}
	}
	_, refused = s.For(by(alice)).Unsubscribe(t.Context(), wants(t, e.URL+"/never"))
	refusedAs(t, "one that never was", refused, bridge.EventNotFound, `{"kind":"subscription"}`)
	_, refused = s.For(by(bob)).Unsubscribe(t.Context(), wants(t, e.URL+"/other"))
	refusedAs(t, "another's", refused, bridge.EventNotFound, `{"kind":"subscription"}`)

	e.answers(func(w http.ResponseWriter, _ *http.Request, _ *posted) bool {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "what only the endpoint knows")
		return true
	})
	_, refused = s.For(by(bob)).Subscribe(t.Context(), wants(t, e.URL+"/new"))
	refusedAs(t, "no answer to the challenge", refused, bridge.EventCallback, `{"reason":"http_4xx"}`)
	if strings.Contains(refused.Message, "only the endpoint") {
		t.Errorf("the subscriber is told %q", refused.Message)
	}
	for range verifications {
		_, refused = s.For(by(bob)).Subscribe(t.Context(), wants(t, e.URL+"/new"))
	}
	refusedAs(t, "too many challenges", refused, bridge.EventExhausted, `{"limit":"verifications","max":10}`)
}

// spelled writes the host of an endpoint's URL in another way.
func spelled(url string) string { return strings.Replace(url, "127.0.0.1", "[::ffff:7f00:1]", 1) }

// Failed challenges at one host have one bound for all principals, however the host is written.
func TestFailuresAtOneHost(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a")
	e.status(http.StatusNotFound)
	began, n := time.Now(), 0
	for ; n < 4*failures; n++ {
		to := []string{e.URL, spelled(e.URL)}[n%2]
		_, refused := s.For(by(fmt.Sprint("user", n/verifications))).Subscribe(t.Context(), wants(t, to))
		if refused != nil && refused.Kind == bridge.EventExhausted {
			refusedAs(t, to, refused, bridge.EventExhausted, `{"limit":"failed verifications at one host","max":120}`)
			break
		}
		refusedAs(t, "no answer to the challenge", refused, bridge.EventCallback, `{"reason":"http_4xx"}`)
	}
	refilled := failures * int(time.Since(began)/time.Second+1) / 60
	if n < failures || n > failures+refilled {
		t.Errorf("refused after %d failures, want %d and at most %d more that the time of the test has refilled", n,
			failures, refilled)
	}
	if asked := e.challenges(); asked != n {
		t.Errorf("%d challenges for %d failures", asked, n)
	}
}

// Without the store a subscriber gets an error, and nothing hangs.
func TestNoStore(t *testing.T) {
	s, err := New(Options{Node: "a", Key: "key", Lease: testLease,
		Open: func(context.Context, string, time.Duration) (Store, error) { return nil, fs.ErrNotExist }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, refused := s.For(by(alice)).Subscribe(t.Context(), wants(t, "https://1.1.1.1/"))
	refusedAs(t, "no store", refused, bridge.EventExhausted, `{"limit":"store"}`)
	if _, refused = s.For(by(alice)).Unsubscribe(t.Context(), wants(t, "https://1.1.1.1/")); refused == nil {
		t.Error("it unsubscribes")
	}
	if _, err := s.Revoke(t.Context(), alice); err == nil {
		t.Error("it revokes")
	}
}

// Deliveries are signed, in order, one at a time, and end with the subscription.
func TestDeliveries(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a")
	r := wants(t, e.URL+"/hook")
	w.set(alice, "a:before")
	g := subscribe(t, s, by(alice), r)
	w.set(bob, "a:bobs")
	var last int
	for i := range 20 {
		last = w.set(alice, fmt.Sprintf("a:%d", i))
	}
	all := once(e.delivered(r.Subscription, "a:19", last))
	if len(all) != 20 {
		t.Errorf("%d deliveries", len(all))
	}
	for i, p := range all {
		uri := fmt.Sprintf("a:%d", i)
		if !strings.Contains(string(p.body), `"uri":"`+uri+`"`) {
			t.Errorf("delivery %d is %s", i, p.body)
		}
		checkSigned(t, p, theSecret)
		if p.member("eventId") != p.header.Get("webhook-id") || p.header.Get("X-MCP-Subscription-Id") != g.ID ||
			p.header.Get("Content-Type") != "application/json" || p.path != "/hook" {
			t.Errorf("delivery %d to %s has %v", i, p.path, p.header)
		}
	}
	other := "whsec_" + strings.Repeat("AAAA", 8)
	subscribe(t, s, by(alice), wants(t, e.URL+"/hook", func(r *events.WebhookRequest) { r.Secret = other }))
	all = once(e.delivered(r.Subscription, "a:19", w.set(alice, "a:19")))
	next, _ := ParseSecret(other)
	checkSigned(t, all[len(all)-1], next, theSecret)
	// Unsubscribe ends an attempt whose answer is on its way.
	testkit.Eventually(t, "the answer is there", func() bool { return s.Stats().Delivered == 21 })
	if _, refused := s.For(by(alice)).Unsubscribe(t.Context(), r); refused != nil {
		t.Fatal(refused)
	}
	w.set(alice, "a:after")
	second := subscribe(t, s, by(alice), wants(t, e.URL+"/second"))
	rest := once(e.delivered(r.Subscription, "a:second", w.set(alice, "a:second")))[len(all):]
	if len(rest) != 1 || rest[0].header.Get("X-MCP-Subscription-Id") != second.ID {
		t.Errorf("after the unsubscribe %d are delivered", len(rest))
	}
	testkit.Eventually(t, "no attempt is under way", func() bool {
		st := s.Stats()
		return st.InFlight == 0 && st.Delivered >= 22
	})
	if st := s.Stats(); st.Delivered != 22 || st.Subscriptions != 1 || st.Users != 1 {
		t.Errorf("the stats are %+v", st)
	}
}

// once leaves out requests that repeat the one before. A node repeats an attempt whose answer comes after the end of its
// lease, and counts the last one alone as delivered.
func once(all []posted) []posted {
	return slices.CompactFunc(all, func(a, b posted) bool {
		return a.header.Get("webhook-id") == b.header.Get("webhook-id")
	})
}

func checkSigned(t *testing.T, p posted, secrets ...Secret) {
	t.Helper()
	var seconds int64
	fmt.Sscan(p.header.Get("webhook-timestamp"), &seconds)
	h := http.Header{}
	sign(h, p.header.Get("webhook-id"), time.Unix(seconds, 0), p.body, secrets)
	if h.Get("webhook-signature") != p.header.Get("webhook-signature") || time.Since(time.Unix(seconds, 0)) > time.Hour {
		t.Errorf("the signature of %s is %q at %d", p.body, p.header.Get("webhook-signature"), seconds)
	}
}

// A failed delivery is tried again, with its id, and is given up in the end. After 410 or 413 it is not tried again. A
// newer event of a resource replaces a waiting one.
func TestFailures(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a", patiently)
	r := wants(t, e.URL)
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:0", w.set(alice, "a:0"))
	count := func(id string) (n int) {
		for _, p := range e.had() {
			if p.header.Get("webhook-id") == id {
				n++
			}
		}
		return n
	}
	for _, final := range []int{http.StatusGone, http.StatusRequestEntityTooLarge} {
		e.status(final)
		id := r.ID(int64(w.set(alice, "a:1")), "a:1")
		testkit.Eventually(t, "it is dropped", func() bool { return count(id) > 0 && s.Stats().InFlight == 0 })
		e.status(200)
		e.delivered(r.Subscription, "a:2", w.set(alice, "a:2"))
		if n := count(id); n != 1 {
			t.Errorf("after %d it was tried %d times", final, n)
		}
	}
	e.status(500)
	id := r.ID(int64(w.set(alice, "a:1")), "a:1")
	testkit.Eventually(t, "it is given up", func() bool { return s.Stats().GivenUp == 1 })
	e.status(200)
	all := e.delivered(r.Subscription, "a:2", w.set(alice, "a:2"))
	if n := count(id); n != 3 {
		t.Errorf("it was tried %d times", n)
	}
	if gap := all[len(all)-2]; gap.member("type") != "gap" || gap.member("cursor") == "" ||
		!strings.HasPrefix(gap.header.Get("webhook-id"), "msg_gap_") {
		t.Errorf("before the next event comes %s", gap.body)
	}
	// While the first event fails, the resource changes again.
	failing := make(chan bool)
	e.answers(func(w http.ResponseWriter, _ *http.Request, p *posted) bool {
		if strings.Contains(string(p.body), "a:3") {
			if failing <- true; <-failing {
				w.WriteHeader(503)
			}
		}
		return true
	})
	old := r.ID(int64(w.set(alice, "a:3")), "a:3")
	testkit.Receive(t, "the first attempt", failing)
	newer := w.set(alice, "a:3")
	failing <- true
	testkit.Receive(t, "the second attempt", failing)
	failing <- false
	e.delivered(r.Subscription, "a:3", newer)
	if n := count(old); n != 1 {
		t.Errorf("the older was tried %d times", n)
	}
	testkit.Eventually(t, "the failure is over", func() bool { return s.Stats().InFlight == 0 })
	if st := s.Stats(); st.Failed[failed5xx] != 4 || st.Failed[failed4xx] != 2 || st.Dropped != 2 {
		t.Errorf("the stats are %+v", st)
	}
}

// An address that always fails gets nothing, whatever changes, until its subscription is renewed. It then gets the last
// state.
func TestSuspension(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a", patiently)
	r := wants(t, e.URL, func(r *events.WebhookRequest) { r.TTL = time.Hour })
	subscribe(t, s, by(alice), r)
	suspend := func() {
		e.status(500)
		testkit.Eventually(t, "it is suspended", func() bool {
			w.set(alice, "a:1")
			return s.Stats().Suspended == 1
		})
		testkit.Eventually(t, "no attempt is under way", func() bool { return s.Stats().InFlight == 0 })
	}
	suspend()
	e.status(200)
	tried, last := len(e.had()), w.set(alice, "a:1")
	if tried != minAttempts {
		t.Errorf("it was suspended after %d attempts", tried)
	}
	r.TTL = 30 * time.Minute // a renewal may end earlier than the last one, or, with the same token, when that does
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:1", last)
	if st := s.Stats(); st.Suspended != 0 {
		t.Errorf("after a renewal the stats are %+v", st)
	}
	// A subscription that comes after the end of the last one is not suspended.
	suspend()
	e.answers(nil)
	subscribe(t, s, by(alice), wants(t, e.URL+"/other"))
	if _, refused := s.For(by(alice)).Unsubscribe(t.Context(), r); refused != nil {
		t.Fatal(refused)
	}
	testkit.Eventually(t, "nothing is suspended", func() bool { return s.Stats().Suspended == 0 })
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:1", w.set(alice, "a:1"))
	// Successes in the last hour count, and older ones do not.
	var a address
	now := time.Now()
	for range minAttempts {
		a.count(now, false)
	}
	for range 10 * minAttempts {
		if a.count(now, true) {
			t.Fatal("it is suspended though one attempt in ten has succeeded")
		}
	}
	for i := range minAttempts {
		if got := a.count(now.Add(window+time.Second), true); got != (i == minAttempts-1) {
			t.Fatalf("in the next hour, after %d failures: %v", i+1, got)
		}
	}
}

// A subscription survives the end of its node, with the changes meanwhile. The store shows nothing of it in plain text.
func TestRestart(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a")
	r := wants(t, e.URL+"/hidden")
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:0", w.set(alice, "a:0"))
	// A delivery whose success is not known is repeated.
	testkit.Eventually(t, "the node knows that it is delivered", func() bool { return s.Stats().Delivered == 1 })
	s.Close()
	w.store.Close()
	missed := w.set(alice, "a:1")
	texts := 0
	if err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts += len(text)
		for _, word := range []string{"hidden", "127.0.0.1", "page.resource", string(theSecret)} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %q in it", path, word)
			}
		}
		return err
	}); err != nil || texts == 0 {
		t.Errorf("of the store %d bytes are read, and %v", texts, err)
	}
	w.openStore()
	next := w.open("b")
	all := once(e.delivered(r.Subscription, "a:1", missed))
	if len(all) != 2 {
		t.Errorf("%d deliveries", len(all))
	}
	next.Close()
	log := testkit.LogOf(t, "c")
	other := w.open("c", func(o *Options) { o.Key = "another key"; o.Log = logTo(log) })
	testkit.Eventually(t, "it says that the key is another", func() bool { return log.Has("another key has encrypted") })
	if other.Stats().Subscriptions != 0 {
		t.Error("it has subscriptions all the same")
	}
}

// One of several nodes delivers for a user. When it is killed another goes on from the stored cursor.
func TestAnotherNodeTakesOver(t *testing.T) {
	w, e := newWorld(t)
	nodes := map[string]*Service{}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = w.open(name)
	}
	testkit.Eventually(t, "they know each other", func() bool {
		for _, s := range nodes {
			s.mu.Lock()
			alive := len(s.alive(time.Now()))
			s.mu.Unlock()
			if alive != len(nodes) {
				return false
			}
		}
		return true
	})
	r := wants(t, e.URL)
	subscribe(t, nodes["b"], by(alice), r) // at any node
	owner := func() (owner string) {       // the node with alice's deliveries
		t.Helper()
		testkit.Eventually(t, "one node delivers", func() bool {
			count := 0
			for name, s := range nodes {
				if slices.Contains(s.owned(), alice) {
					owner = name
					count++
				}
			}
			return count == 1
		})
		return owner
	}
	last := 0
	for i := range 10 {
		last = w.set(alice, fmt.Sprintf("a:%d", i))
	}
	e.delivered(r.Subscription, "a:9", last)
	killed := owner()
	nodes[killed].kill()
	delete(nodes, killed)
	for i := range 10 {
		last = w.set(alice, fmt.Sprintf("b:%d", i))
	}
	e.delivered(r.Subscription, "b:9", last)
	ended := owner()
	nodes[ended].Close() // in order
	delete(nodes, ended)
	all := e.delivered(r.Subscription, "c:0", w.set(alice, "c:0"))
	told := map[string]string{} // by URI: each has changed once
	for _, p := range all {
		if id := told[string(p.body)]; id != "" && id != p.header.Get("webhook-id") {
			t.Errorf("%s was told twice, with another id", p.body)
		}
		uri := string(p.body)[strings.Index(string(p.body), `"uri"`):]
		told[uri] = p.header.Get("webhook-id")
	}
	if len(told) != 21 {
		t.Errorf("%d of 21 resources were told of", len(told))
	}
}

// A claimless is a store that refuses changes of claims while fails is set.
type claimless struct {
	Store
	fails *atomic.Bool
}

func (c claimless) Change(ctx context.Context, key string, change func([]byte) ([]byte, error)) (uint64, error) {
	if c.fails.Load() && strings.HasPrefix(key, keyUser) {
		return 0, errors.New("no answer")
	}
	return c.Store.Change(ctx, key, change)
}

// A node that lives gives a claim back if it does not deliver: no other node may take the claim from it.
func TestClaimWithoutDeliveries(t *testing.T) {
	next := "b"
	for chosen([]string{"a", next}, alice) != next {
		next += "b"
	}
	lets := func(a *Service) {
		t.Helper()
		testkit.Eventually(t, "a has the claim, and does not deliver", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.users[alice] != nil && a.users[alice].holder == "a" && a.users[alice].state == free
		})
	}
	t.Run("it could not be given back", func(t *testing.T) {
		w, e := newWorld(t)
		var fails atomic.Bool
		a := w.open("a", func(o *Options) {
			open := o.Open
			o.Open = func(ctx context.Context, name string, age time.Duration) (Store, error) {
				table, err := open(ctx, name, age)
				return claimless{table, &fails}, err
			}
		})
		r := wants(t, e.URL)
		subscribe(t, a, by(alice), r)
		e.delivered(r.Subscription, "a:0", w.set(alice, "a:0"))
		fails.Store(true)
		w.open(next)
		lets(a)
		fails.Store(false)
		e.delivered(r.Subscription, "a:1", w.set(alice, "a:1"))
	})
	t.Run("deliveries could not begin", func(t *testing.T) {
		w, e := newWorld(t)
		a := w.open("a", func(o *Options) {
			o.Feed = func(context.Context, string) (Feed, error) { return nil, errors.New("too many users") }
		})
		r, now := wants(t, e.URL), time.Now()
		granted := &record{Principal: alice, User: alice, URL: r.URL, Name: r.Name, Arguments: r.Arguments,
			Secrets: []Secret{theSecret}, Until: now.Add(time.Hour), Cursor: "0"}
		testkit.Must(a.grant(t.Context(), granted, now))(t)
		lets(a)
		w.open(next)
		e.delivered(r.Subscription, "a:1", w.set(alice, "a:1"))
	})
}

// The operator can end a principal's subscriptions, and the endpoints are notified.
func TestRevoke(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a")
	r := wants(t, e.URL)
	subscribe(t, s, by(alice), r)
	subscribe(t, s, Principal{bob, alice, by(bob).Until}, r) // an agent for alice
	subscribe(t, s, by(bob), r)
	s.owns(t, alice)
	s.owns(t, bob)
	s.revokes(t, alice, 2)
	e.terminated(2)
	w.set(alice, "a:0")
	if all := once(e.delivered(r.Subscription, "a:0", w.set(bob, "a:0"))); len(all) != 3 {
		t.Errorf("%d deliveries", len(all))
	}
}

func (s *Service) revokes(t *testing.T, user string, want int) {
	t.Helper()
	if n, err := s.Revoke(t.Context(), user); n != want || err != nil {
		t.Errorf("%d are revoked, and %v", n, err)
	}
}

// terminated waits until the endpoint has got an envelope for each of count subscriptions, and nothing else.
func (e *endpoint) terminated(count int) {
	e.t.Helper()
	testkit.Eventually(e.t, fmt.Sprint(count, " are told"), func() bool { return len(once(e.had())) == count })
	for _, p := range e.had() {
		checkSigned(e.t, p, theSecret)
		if p.member("type") != "terminated" || !strings.Contains(string(p.body), "Forbidden") {
			e.t.Errorf("it is told %s", p.body)
		}
	}
}

// What an endpoint is told last outlives the delivery, and the node.
func TestLastMessages(t *testing.T) {
	oneAtATime := func(o *Options) { o.InFlight = 1 }
	// busy takes the only place until leave.
	busy := func(t *testing.T, s *Service) (leave func()) {
		t.Helper()
		return testkit.Must(s.enter(t.Context(), "another", "another.test"))(t)
	}
	t.Run("the user's last subscription was revoked", func(t *testing.T) {
		w, e := newWorld(t)
		s := w.open("a", oneAtATime)
		r := wants(t, e.URL)
		subscribe(t, s, by(alice), r)
		s.owns(t, alice)
		leave := busy(t, s)
		s.revokes(t, alice, 1)
		s.settle()
		leave()
		e.terminated(1)
		testkit.Eventually(t, "its secret is not stored any more", func() bool {
			key := (&record{Principal: alice, User: alice, URL: r.URL, Name: r.Name, Arguments: r.Arguments}).key()
			stored, err := s.stored(t.Context(), key)
			return err == nil && stored.Ended && stored.Secrets == nil
		})
		testkit.Eventually(t, "the user is given back", func() bool { return s.idle() })
	})
	t.Run("the node ends", func(t *testing.T) {
		w, e := newWorld(t)
		s := w.open("a", oneAtATime)
		subscribe(t, s, by(alice), wants(t, e.URL))
		s.owns(t, alice)
		defer busy(t, s)()
		s.revokes(t, alice, 1)
		s.Close()
		w.open("b")
		e.terminated(1)
	})
	t.Run("the endpoint of two is suspended", func(t *testing.T) {
		w, e := newWorld(t)
		s := w.open("a")
		for _, arguments := range []string{`{}`, `{"uri":"https://a.test/"}`} {
			subscribe(t, s, by(alice), wants(t, e.URL, func(r *events.WebhookRequest) { r.Subscription = parsed(t, arguments) }))
		}
		testkit.Eventually(t, "both are delivered", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			u := s.users[alice]
			for _, d := range u.deliveries {
				d.to.suspended = true
			}
			return len(u.deliveries) == 2
		})
		s.revokes(t, alice, 2)
		e.terminated(2)
		testkit.Eventually(t, "the user is given back", func() bool { return s.idle() })
	})
	t.Run("deliveries are about to begin", func(t *testing.T) {
		w, e := newWorld(t)
		begins, begin := make(chan bool), make(chan bool)
		s := w.open("a", func(o *Options) {
			feed := o.Feed
			o.Feed = func(ctx context.Context, user string) (Feed, error) {
				select {
				case begins <- true:
					<-begin
				case <-begin:
				}
				return feed(ctx, user)
			}
		})
		r, now := wants(t, e.URL), time.Now()
		testkit.Must(s.grant(t.Context(), &record{Principal: alice, User: alice, URL: r.URL, Name: r.Name,
			Arguments: r.Arguments, Secrets: []Secret{theSecret}, Until: now.Add(time.Hour), Cursor: "0"}, now))(t)
		testkit.Receive(t, "deliveries begin", begins)
		s.revokes(t, alice, 1)
		close(begin)
		e.terminated(1)
	})
	t.Run("a gap", func(t *testing.T) {
		w, e := newWorld(t)
		s := w.open("a")
		r := wants(t, e.URL)
		subscribe(t, s, by(alice), r)
		gap := make(chan bool, 1)
		e.answers(func(w http.ResponseWriter, r *http.Request, p *posted) bool {
			if p.member("type") == "gap" {
				select {
				case gap <- true:
				default:
				}
				<-r.Context().Done()
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		})
		w.set(alice, "a:0")
		testkit.Receive(t, "an event is given up", gap)
		s.Close()
		e.answers(nil)
		before := len(e.had())
		w.open("b")
		testkit.Eventually(t, "another node tells of it", func() bool { return len(e.had()) > before })
	})
}

// A renewal needs no room: neither when the limit has sunk, because a node has died, nor beside others that may be new.
func TestRoomForRenewals(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a", func(o *Options) { o.PerPrincipal = 3 })
	var live []events.WebhookRequest
	for i := range 3 {
		live = append(live, wants(t, e.URL, func(r *events.WebhookRequest) {
			r.Subscription = parsed(t, fmt.Sprintf(`{"uri":"a:%d"}`, i))
		}))
		subscribe(t, s, by(alice), live[i])
	}
	s.mu.Lock()
	s.o.PerNode, s.pending[alice] = 2, 2
	s.mu.Unlock()
	for i, r := range live {
		if _, refused := s.For(by(alice)).Subscribe(t.Context(), r); refused != nil {
			t.Errorf("renewal %d: %s %s", i, refused.Message, refused.Data)
		}
	}
	if _, refused := s.For(by(bob)).Subscribe(t.Context(), wants(t, e.URL)); refused == nil {
		t.Error("a new one has room above the limit")
	}
}

// One subscriber's requests to one host are bounded by half of the host's places. The others wait without a loss, and
// another subscriber's do not wait for them.
func TestRoom(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a")
	const size = 3 * perHost
	for i := range size {
		subscribe(t, s, by(alice), wants(t, []string{e.URL, spelled(e.URL)}[i%2], func(r *events.WebhookRequest) {
			r.Subscription = parsed(t, fmt.Sprintf(`{"uri":"a:%d"}`, i))
		}))
	}
	testkit.Eventually(t, "all are followed", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.follows) == size
	})
	open := make(chan bool)
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	e.answers(func(http.ResponseWriter, *http.Request, *posted) bool { <-open; return true })
	for i := range size {
		w.set(alice, fmt.Sprintf("a:%d", i))
	}
	testkit.Eventually(t, "the others wait", func() bool { return s.Stats().Waiting == size-perHost/2 })
	if n := len(e.had()); n > perHost/2 {
		t.Errorf("%d are under way", n)
	}
	e.answers(nil)
	r := wants(t, e.URL)
	subscribe(t, s, by(bob), r) // its challenge has a place at the host, too
	e.delivered(r.Subscription, "a:0", w.set(bob, "a:0"))
	release()
	testkit.Eventually(t, "all are delivered", func() bool { return s.Stats().Delivered == size+1 })
}

// Accounts whose endpoints do not answer, at as many hosts as they like, leave places for the others.
func TestSlowAccounts(t *testing.T) {
	w, e := newWorld(t)
	hosts := map[string][]string{}
	for i := range 40 {
		hosts[fmt.Sprintf("h%d.hook.test", i)] = []string{"127.0.0.1"}
	}
	s := w.open("a", func(o *Options) { o.InFlight, o.Client.Resolver = 16, names(t, hosts) })
	open := make(chan bool)
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	for i := range 4 {
		user := strings.Repeat(string(rune('C'+i)), 43)
		for host := range 10 {
			for n := range 2 {
				url := strings.Replace(e.URL, "127.0.0.1", fmt.Sprintf("h%d.hook.test", 10*i+host), 1)
				subscribe(t, s, by(user), wants(t, url, func(r *events.WebhookRequest) {
					r.Subscription = parsed(t, fmt.Sprintf(`{"uri":"a:%d"}`, n))
				}))
			}
		}
		e.answers(func(_ http.ResponseWriter, r *http.Request, p *posted) bool {
			if p.member("type") != "verification" && !strings.HasPrefix(r.Host, "127.0.0.1:") {
				<-open
			}
			return false
		})
		w.set(user, "a:0")
		w.set(user, "a:1")
		testkit.Eventually(t, "its share is taken", func() bool { st := s.Stats(); return st.InFlight+st.Waiting == 20*(i+1) })
	}
	r := wants(t, e.URL)
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:0", w.set(alice, "a:0"))
	// Each of the four holds at least as many places as are free. So at most 3 are free: 8, 4, 2 and 1 are taken at first,
	// and less unequal numbers when attempts have ended with the lease and wait again.
	if st := s.Stats(); st.InFlight < 13 || st.InFlight > 16 {
		t.Errorf("%d places of 16 are taken, want 13 to 16", st.InFlight)
	}
}

func TestChosen(t *testing.T) {
	count := map[string]int{}
	for i := range 3000 {
		count[chosen([]string{"ABCDEFGHIJKLMNOP", "ABCDEFGHIJKLMNOQ", "QWERTYUIOPASDFGH"}, fmt.Sprintf("%043d", i))]++
	}
	for node, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("%s is chosen for %d of 3,000 users", node, n)
		}
	}
}

// A deaf is a store whose first watch brings nothing.
type deaf struct {
	Store
	heard bool
}

func (d *deaf) Watch(ctx context.Context, take func(string, []byte, uint64), all func()) error {
	if d.heard {
		return d.Store.Watch(ctx, take, all)
	}
	d.heard = true
	<-ctx.Done()
	return nil
}

// A node whose watch brings nothing is not chosen, and watches the store again.
func TestAStoreThatTellsNothing(t *testing.T) {
	w, e := newWorld(t)
	s := w.open("a", func(o *Options) {
		open := o.Open
		o.Open = func(ctx context.Context, name string, age time.Duration) (Store, error) {
			table, err := open(ctx, name, age)
			return &deaf{Store: table}, err
		}
	})
	r := wants(t, e.URL)
	subscribe(t, s, by(alice), r)
	e.delivered(r.Subscription, "a:0", w.set(alice, "a:0"))
}

// A delivery that ends while its attempt waits for a place makes no attempt: its record may have gone.
func TestAttemptAfterTheEnd(t *testing.T) {
	s := &Service{}
	d := &delivery{user: &user{records: map[string]held{}}, ended: true, busy: true}
	if s.attempt(t.Context(), d) || d.busy {
		t.Error("it goes on")
	}
}
