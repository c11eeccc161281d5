package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Modern agents that are notified by one node and read at another, which may learn of each change later.

// hold stops a gateway's mailbox until the test calls release.
func hold(t *testing.T, r *Reader) (release func()) {
	t.Helper()
	held := make(chan struct{})
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	r.mailbox.post(func() { <-held })
	return release
}

// always makes a roamer read at one node.
func always(r *Reader) func() *gateway.Gateway { return func() *gateway.Gateway { return r.Gateway } }

// One node notifies an agent of a change. Another, at which the agent reads, does not know the change yet. The agent
// does not share a read that began before the change.
func TestReadAtANodeThatHasNotHeardOfTheChange(t *testing.T) {
	nodes := openFleet(t, 3)
	b := openTab(t, nodes[0], alice, nil)
	var state atomic.Value
	state.Store("one")
	begun, end := make(chan string, 10), make(chan struct{})
	b.Add(app+"/doc", func(context.Context, string) (string, error) {
		text := state.Load().(string)
		begun <- text
		if text == "one" {
			<-end
		}
		return text, nil
	})
	x, y := openReader(t, nodes[1], alice), openReader(t, nodes[2], alice)
	agentOf(t, x.Gateway).Shows(app + "/doc")
	agentOf(t, y.Gateway).Shows(app + "/doc")
	m := roam(t, x.Gateway, always(y), app+"/doc")
	first := make(chan string, 1)
	go func() { first <- m.look(app + "/doc") }()
	testkit.Receive(t, "the first read has begun", begun)
	release := hold(t, y)
	state.Store("two")
	b.Touch(app + "/doc")
	testkit.Eventually(t, "it is told, and asks", func() bool { return m.asks.Load() == 2 })
	close(end)
	release()
	if text := testkit.Receive(t, "it has read what it was told of", m.told); text != "two" {
		t.Errorf("then it reads %q", text)
	}
	testkit.Receive(t, "the first read has ended", first)
}

// One node notifies an agent of a page. The agent reads at another node, which does not know the page yet. When that
// node knows it, the agent is notified again.
func TestReadAtANodeThatHasNotMetThePage(t *testing.T) {
	nodes := openFleet(t, 3)
	x, y := openReader(t, nodes[1], alice), openReader(t, nodes[2], alice)
	m := roam(t, x.Gateway, always(y), app+"/doc", app+"/item/7")
	all := func(string, []byte) bool { return true }
	nodes[2].drops.Store(&all) // no message of the agent's reading node arrives
	b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
	b.Add(app+"/item/{id}", func(_ context.Context, uri string) (string, error) { return "text of " + uri, nil })
	for range 2 {
		if text := testkit.Receive(t, "it has read what it was told of", m.told); text != "Resource not found" {
			t.Fatalf("it reads %q at a node that does not know of the page", text)
		}
	}
	nodes[2].drops.Store(nil)
	m.holds(app+"/doc", "one")
	m.holds(app+"/item/7", "text of "+app+"/item/7")
	for len(m.told) > 0 {
		<-m.told
	}
	b.Set(app+"/doc", "two")
	m.holds(app+"/doc", "two")
}

// An agent that asks for missing resources is answered at once, and is remembered within bounds.
func TestReadsOfWhatThereIsNot(t *testing.T) {
	n := openNode(t, Options{})
	r := openReader(t, n, alice)
	m := roam(t, r.Gateway, always(r), app+"/999")
	for i := range 1000 {
		if text := m.look(fmt.Sprint(app, "/", i)); text != "Resource not found" {
			t.Fatalf("it reads %q", text)
		}
	}
	state := map[string]string{}
	for i := range 1000 {
		state[fmt.Sprint(app, "/", i)] = "x"
	}
	openTab(t, n, alice, state)
	m.holds(app+"/999", "x")
	var finds uint64
	testkit.Eventually(t, "what was found is not said any more", func() bool {
		n.found.mu.Lock()
		defer n.found.mu.Unlock()
		finds = n.found.last
		return finds > 0 && len(n.found.list) == 0
	})
	if finds > 256 {
		t.Errorf("it has found %d", finds)
	}
}

// An agent is notified of a page by one node, and reads at another before the first node watches. The agent is notified
// of a change between the two.
func TestChangeBeforeThePageIsWatched(t *testing.T) {
	nodes := openFleet(t, 3)
	x, y := openReader(t, nodes[1], alice), openReader(t, nodes[2], alice)
	m := roam(t, x.Gateway, always(y), app+"/doc")
	b := &tab{Page: testkit.NewPage(t, map[string]string{app + "/doc": "one"}), t: t, user: alice, name: "tab-late"}
	b.HoldWatch = make(chan struct{})
	b.dial(nodes[0])
	m.holds(app+"/doc", "one")
	testkit.Eventually(t, "it is watched", func() bool { return b.Watches(app + "/doc") })
	b.Set(app+"/doc", "two") // its touch counts as the answer that is still to come
	m.holds(app+"/doc", "two")
	close(b.HoldWatch)
}

// Modern agents listen and read at random nodes. Each node lags behind at times, and other agents' slow reads of the
// same URIs could be shared. Each agent holds the last state whenever all is quiet.
func TestRandomOrder(t *testing.T) {
	rounds := 40
	if given, err := strconv.Atoi(os.Getenv("FLEET_ORDER")); err == nil { // 1,000 take 25 s
		rounds = given
	}
	seed := testkit.Seed(t, "FLEET_SEED")
	random := rand.New(rand.NewPCG(seed, 2))
	nodes := openFleet(t, 3)
	b := openTab(t, nodes[0], alice, nil)
	uris := []string{app + "/a", app + "/item/1", app + "/item/2"}
	keys := []string{app + "/a", app + "/item/{id}"}
	var count atomic.Int64
	read := func(context.Context, string) (string, error) {
		state := fmt.Sprint(count.Load())
		time.Sleep(rand.N(20 * time.Millisecond)) // the read returns the state of its beginning
		return state, nil
	}
	for _, key := range keys {
		b.Add(key, read)
	}
	var readers []*Reader
	for _, n := range nodes {
		r := openReader(t, n, alice)
		agentOf(t, r.Gateway).Shows(app + "/a")
		readers = append(readers, r)
	}
	anywhere := func() *gateway.Gateway { return readers[rand.IntN(len(readers))].Gateway }
	var agents []*roamer
	for i := range 6 {
		m := roam(t, readers[i%len(readers)].Gateway, anywhere, uris...)
		for _, uri := range uris {
			m.look(uri)
		}
		agents = append(agents, m)
	}
	others, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() { // each of these reads could be shared
			m := &roamer{t: t, reads: always(r), held: map[string]string{}}
			for others.Err() == nil {
				m.look(uris[rand.IntN(len(uris))])
			}
		})
	}
	for range rounds {
		for range 1 + random.IntN(5) {
			lags := time.Duration(random.IntN(20)) * time.Millisecond
			readers[random.IntN(len(readers))].mailbox.post(func() { time.Sleep(lags) })
			count.Add(1)
			for _, key := range keys {
				b.Touch(key)
			}
		}
		for _, m := range agents {
			for _, uri := range uris {
				m.holds(uri, fmt.Sprint(count.Load()))
			}
		}
	}
	stop()
	reading.Wait()
}

// Many modern agents read the same at once: four reads are under way, and all others share the read after them, which
// begins after they asked.
func TestManyReadsAtOnce(t *testing.T) {
	const many = 50
	n := openNode(t, Options{})
	r := openReader(t, n, alice)
	b := openTab(t, n, alice, nil)
	var count atomic.Int64
	begun, end := make(chan bool, many), make(chan bool, many)
	b.Add(app+"/doc", func(ctx context.Context, _ string) (string, error) {
		text := strconv.FormatInt(count.Add(1), 10)
		begun <- true
		select {
		case <-end:
		case <-ctx.Done():
		}
		return text, nil
	})
	agentOf(t, r.Gateway).Shows(app + "/doc")
	m := &roamer{t: t, reads: always(r), held: map[string]string{}}
	answers := make(chan string, many)
	for range many {
		go func() { answers <- m.look(app + "/doc") }()
	}
	testkit.Eventually(t, "all have asked", func() bool { return m.asks.Load() == many })
	for range 4 {
		testkit.Receive(t, "a read has begun", begun)
	}
	end <- true
	testkit.Receive(t, "the next read begins when one of them has ended", begun)
	for range 4 {
		end <- true
	}
	of := map[string]int{}
	for range many {
		of[testkit.Receive(t, "all are answered", answers)]++
	}
	if of["5"] != many-4 || count.Load() != 5 {
		t.Errorf("the answers are %v", of)
	}
	if left := r.Gateway.Snapshot().Stats.Calls; left != 0 {
		t.Errorf("%d calls are left", left)
	}
}
