package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/events"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Random operations of users, pages, endpoints and nodes. At the end each subscriber has the last change of each of its
// subscriptions. It has no change of another user, and none from before it subscribed. No change has two ids.
func TestRandomOperations(t *testing.T) {
	w, e := newWorld(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const users, uris = 8, 4
	many := func(o *Options) {
		o.Backoff = slices.Repeat([]time.Duration{time.Millisecond}, 8)
	}
	nodes, next := []*Service{}, 0
	begin := func() {
		next++
		nodes = append(nodes, w.open(fmt.Sprint("node", next), many))
	}
	for range 3 {
		begin()
	}
	type told struct{ user, id string }
	var mu sync.Mutex
	fails := 0 // number of next requests that get an error
	got := map[told]string{}
	e.answers(func(w http.ResponseWriter, _ *http.Request, p *posted) bool {
		mu.Lock()
		defer mu.Unlock()
		if p.member("type") == "verification" {
			return false
		}
		if fails > 0 {
			fails--
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		user, id := strings.TrimPrefix(p.path, "/"), p.header.Get("webhook-id")
		what := string(p.body)[strings.Index(string(p.body), `"data"`):]
		if before := got[told{user, id}]; before != "" && before != what {
			t.Errorf("%s of %s is %s, and was %s", id, user, what, before)
		}
		got[told{user, id}] = what
		return false
	})
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(got)
	}
	name := func(i int) string { return strings.Repeat(string(rune('A'+i)), 43) }
	subscribed := map[string]bool{}
	since := map[string]int{}                // revision
	changed := map[string]map[string][]int{} // by user and URI: revisions
	// answers asks until the store answers, which on a busy machine it may not do in time.
	answers := func(ask func(context.Context, events.WebhookRequest) ([]byte, *bridge.EventError),
		r events.WebhookRequest) (refused *bridge.EventError) {
		t.Helper()
		testkit.Eventually(t, "the store answers", func() bool {
			_, refused = ask(t.Context(), r)
			return refused == nil || refused.Kind != bridge.EventExhausted
		})
		return refused
	}
	step := func() {
		user := name(random.IntN(users))
		s := nodes[random.IntN(len(nodes))]
		p, r := by(user), wants(t, e.URL+"/"+user)
		switch n := random.IntN(100); {
		case n < 70:
			uri := fmt.Sprintf("a:%s/%d", user[:1], random.IntN(uris))
			if changed[user] == nil {
				changed[user] = map[string][]int{}
			}
			changed[user][uri] = append(changed[user][uri], w.set(user, uri))
		case n < 85:
			if refused := answers(s.For(p).Subscribe, r); refused != nil {
				t.Fatal(refused)
			}
			if !subscribed[user] {
				w.mu.Lock()
				since[user] = w.clock
				w.mu.Unlock()
			}
			subscribed[user] = true
		case n < 91:
			if refused := answers(s.For(p).Unsubscribe, r); refused != nil && subscribed[user] {
				t.Fatal(refused)
			}
			subscribed[user] = false
		case n < 94:
			if _, err := s.Revoke(t.Context(), user); err != nil {
				t.Fatal(err)
			}
			subscribed[user] = false
		case n < 99:
			mu.Lock()
			fails = random.IntN(4)
			mu.Unlock()
		case random.IntN(6) == 0:
			i := random.IntN(len(nodes))
			if random.IntN(2) == 0 {
				nodes[i].kill()
			} else {
				nodes[i].Close()
			}
			nodes = slices.Delete(nodes, i, i+1)
			begin()
		}
	}
	// A busy machine tells of fewer changes, because several of a resource become one.
	for i := 0; i < 5000 || count() < 500; i++ {
		step()
	}
	mu.Lock()
	fails = 0
	mu.Unlock()
	sub := parsed(t, `{}`)
	for user, is := range subscribed {
		for uri, all := range changed[user] {
			last := all[len(all)-1]
			if !is || last <= since[user] {
				continue
			}
			testkit.Settles(t, "the last change is told", func() string {
				mu.Lock()
				defer mu.Unlock()
				if got[told{user, sub.ID(int64(last), uri)}] == "" {
					return fmt.Sprintf("%s does not know of %s, revision %d", user[:1], uri, last)
				}
				return ""
			})
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for one, what := range got {
		if strings.HasPrefix(one.id, "msg_") {
			continue
		}
		count, _, _ := strings.Cut(one.id, ".")
		revision, _ := strconv.Atoi(count)
		uri := what[strings.Index(what, "a:"):][:5]
		if !strings.HasPrefix(uri, "a:"+one.user[:1]) || !slices.Contains(changed[one.user][uri], revision) {
			t.Errorf("%s was told %s by %s", one.user[:1], what, one.id)
		}
	}
}
