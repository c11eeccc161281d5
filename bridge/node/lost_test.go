package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A loser stands between some nodes and the bus. It loses one message of each kind in its list, in the list's order:
// the next one only after the one before.
type loser struct {
	t     *testing.T
	mu    sync.Mutex
	kinds []string
}

func (l *loser) drops(_ string, text []byte) bool {
	if kinds[kindOf(text)].take == nil {
		l.t.Errorf("what is said is none of the kinds, and so is never lost here: %.100q", text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kinds) == 0 || kindOf(text) != l.kinds[0] {
		return false
	}
	l.kinds = l.kinds[1:]
	return true
}

func (l *loser) between(n *Node) {
	drops := l.drops
	n.drops.Store(&drops)
}

func (l *loser) lose(kinds ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds = kinds
}

func (l *loser) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.kinds)
}

// A page goes while all its messages are lost. Its agents do not wait for its return.
func TestPageThatWentUnheard(t *testing.T) {
	t.Parallel()
	l := loser{t: t}
	a := openNode(t, Options{Bus: bus.Options{Cluster: "127.0.0.1:0"}})
	b := openNode(t, Options{Gateway: gateway.Options{Grace: time.Hour},
		Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{a.ClusterAddr()}}})
	meet(t, a, b)
	l.between(a)
	page := openTab(t, a, alice, map[string]string{app + "/doc": "0"})
	agent := agentOf(t, openReader(t, b, alice).Gateway)
	agent.Shows(app + "/doc")
	l.lose(kindPage, kindGone)
	page.Post(`[["bye",true]]`)
	page.cut()
	testkit.Eventually(t, "the page has gone", func() bool { return !agent.Offers(app + "/doc") })
}

// A lossy is a fleet that loses messages. A page moves between the first and the second node. A modern agent listens at
// the second and reads at the third. A legacy agent is at the third.
type lossy struct {
	t      *testing.T
	loser  loser
	nodes  []*Node
	x, y   *Reader
	page   *tab
	at     int
	legacy *testkit.Agent
	rounds int
}

func openLossy(t *testing.T) *lossy {
	t.Helper()
	l := &lossy{t: t, loser: loser{t: t}, nodes: openFleetOf(t, 3, interval/2)}
	for _, n := range l.nodes {
		l.loser.between(n)
	}
	l.x, l.y = openReader(t, l.nodes[1], alice), openReader(t, l.nodes[2], alice)
	l.page = openTab(t, l.nodes[0], alice, map[string]string{app + "/doc": "0"})
	l.legacy = agentOf(t, l.y.Gateway)
	testkit.Eventually(t, "the page is there", func() bool { return l.legacy.Offers(app + "/doc") })
	l.legacy.Watch(app + "/doc")
	return l
}

// set changes the resources that both agents watch. It waits until they hold the new text by notifications alone.
func (l *lossy) set(m *roamer, uri, text string) {
	l.t.Helper()
	l.page.Set(uri, text)
	l.page.Set(app+"/doc", text)
	m.holds(uri, text)
	held := ""
	testkit.Eventually(l.t, fmt.Sprintf("the legacy agent holds %q, which is told", text), func() bool {
		for len(l.legacy.Updates) > 0 {
			<-l.legacy.Updates
			held, _ = l.legacy.Read(app + "/doc")
		}
		return held == text
	})
}

// round causes messages of all kinds: a page comes, changes, and goes to another node; an agent begins to listen, reads
// a URI that does not exist yet, and ends; a node comes and goes.
func (l *lossy) round(kinds ...string) {
	l.t.Helper()
	l.rounds++
	uri := fmt.Sprint(app, "/round", l.rounds)
	m, end := roamUntil(l.t, l.x.Gateway, func() *gateway.Gateway { return l.y.Gateway }, uri)
	defer end()
	m.look(uri)
	if slices.Contains(kinds, kindBye) {
		n := openNode(l.t, Options{Interval: interval / 2,
			Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{l.nodes[0].ClusterAddr()}}})
		l.loser.between(n)
		defer n.Close()
		testkit.Eventually(l.t, "one more is there", func() bool { return l.nodes[0].Stats().Nodes == 4 })
	}
	l.page.Offer(uri, "one")
	m.holds(uri, "one")
	if slices.Contains(kinds, kindClaim) || slices.Contains(kinds, kindAlive) {
		c := l.page.follows(uri, l.nodes[1-l.at], map[string]string{uri + "/copy": "copied"})
		testkit.Eventually(l.t, "the copy of its tab is there", func() bool { return l.legacy.Offers(uri + "/copy") })
		defer testkit.Eventually(l.t, "the copy has gone", func() bool { return !l.legacy.Offers(uri + "/copy") })
		defer c.cut()
		defer c.Post(`[["bye",true]]`)
	}
	l.set(m, uri, fmt.Sprint("two of ", l.rounds))
	l.page.cut()
	l.at = 1 - l.at
	l.page.dial(l.nodes[l.at])
	l.set(m, uri, fmt.Sprint("three of ", l.rounds))
	end()
	testkit.Eventually(l.t, "nobody listens", func() bool { return l.x.Gateway.Agents() == 0 })
	l.page.Withdraw(uri)
}

// clean waits until nothing is left of ended pages, agents and nodes.
func (l *lossy) clean() {
	l.t.Helper()
	l.loser.lose()
	testkit.Settles(l.t, "nothing is left of what was lost", func() (said string) {
		var s Stats
		for _, n := range l.nodes {
			of := n.Stats()
			said += fmt.Sprintf("%+v\n", of)
			s.Cores += of.Cores
			s.Sessions += of.Sessions
			s.Watched += of.Watched
			s.Agents += of.Agents
			s.WaitingBytes += of.WaitingBytes
			s.Nodes += of.Nodes
			s.Pages += of.Pages
		}
		if s.Cores == 2 && s.Sessions == 2 && s.Watched == 1 && s.Agents == 1 && s.WaitingBytes == 0 &&
			s.Nodes == 9 && s.Pages == 1 {
			return ""
		}
		return said
	})
}

// If a message of any kind is lost, twice or followed by one of any kind, each agent ends with the last state without
// asking again, and nothing is left over. The test includes new kinds by itself.
func TestWhateverIsLost(t *testing.T) {
	t.Parallel()
	all := slices.Sorted(maps.Keys(kinds))
	var twice, pairs [][]string
	for _, first := range all {
		twice = append(twice, []string{first, first})
		for _, second := range all {
			pairs = append(pairs, []string{first, second})
		}
	}
	rand.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	some := 5
	if given, err := strconv.Atoi(os.Getenv("FLEET_PAIRS")); err == nil { // all of them, 196, take 300 s
		some = given
	}
	l := openLossy(t)
	for _, lost := range slices.Concat(twice, pairs[:min(some, len(pairs))]) {
		began := time.Now()
		l.loser.lose(lost...)
		for first := l.rounds; l.loser.left() > 0; {
			if l.rounds == first+10 {
				t.Fatalf("of %q, the last %d are said in no round", lost, l.loser.left())
			}
			l.round(lost...)
		}
		l.clean()
		if took := time.Since(began); took > 10*time.Second {
			t.Logf("%v took %v", lost, took)
		}
	}
}
