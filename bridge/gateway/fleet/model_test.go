//go:build !js

package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/fleet/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A world is what a model says of a fleet: which pages there are, whose they are, and what they read as.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	nodes  []*Node
	pages  []*modelPage
	agents []*modelAgent
	number int
	reads  int // that were answered
	shared int // of them, with a state from before the question
	lost   int // that were not
}

// A modelPage reads as "USER PAGE COUNT", which grows.
type modelPage struct {
	*tab
	user, uri string
	count     int
	at        *Node
}

// A modelAgent holds the last state of what it watches: it reads whenever it is told of a change.
type modelAgent struct {
	*testkit.Agent
	user    string
	at      *Node
	watched map[string]bool

	mu   sync.Mutex
	held map[string]string
}

// users are those of the world.
var users = []string{alice, bob, strings.Repeat("C", 43)}

func pick[T any](w *world, list []T) T { return list[w.rand.IntN(len(list))] }

func (p *modelPage) text() string { return fmt.Sprint(p.user[:1], " ", p.uri, " ", p.count) }

func (w *world) openPage() {
	w.number++
	p := &modelPage{user: pick(w, users), uri: fmt.Sprintf("%s/page%d", app, w.number), at: pick(w, w.nodes)}
	p.tab = openTab(w.t, p.at, p.user, map[string]string{p.uri: p.text()})
	w.pages = append(w.pages, p)
}

func (w *world) change() {
	p := pick(w, w.pages)
	p.count++
	p.Set(p.uri, p.text())
}

// move has a page connect anew, to any node; sometimes before its old connection has ended.
func (w *world) move() {
	p := pick(w, w.pages)
	before := p.page
	p.at = pick(w, w.nodes)
	if w.rand.IntN(2) == 0 {
		p.cut()
		p.dial(p.at)
		return
	}
	p.dial(p.at)
	before.Lost()
}

func (w *world) closePage() {
	i := w.rand.IntN(len(w.pages))
	p := w.pages[i]
	p.say("bye", true)
	p.cut()
	w.pages = slices.Delete(w.pages, i, i+1)
	for _, a := range w.agents {
		delete(a.watched, p.uri)
	}
}

func (w *world) openAgent() {
	a := &modelAgent{user: pick(w, users), at: pick(w, w.nodes), watched: map[string]bool{}, held: map[string]string{}}
	a.Agent = openAgent(w.t, a.at, a.user)
	w.agents = append(w.agents, a)
	go func() {
		for uri := range a.Updates {
			a.look(w.t, uri)
		}
	}()
}

// look reads what has changed. Where that fails, the page has gone, and the agent is told when it is back.
func (a *modelAgent) look(t *testing.T, uri string) {
	r, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err == nil {
		a.mu.Lock()
		a.held[uri] = r.Contents[0].Text
		a.mu.Unlock()
	}
}

func (w *world) closeAgent() {
	i := w.rand.IntN(len(w.agents))
	w.agents[i].Close()
	w.agents = slices.Delete(w.agents, i, i+1)
}

// watch subscribes to a page that there is, or ends that.
func (w *world) watch() {
	a, p := pick(w, w.agents), pick(w, w.pages)
	if a.user != p.user {
		return
	}
	if a.watched[p.uri] {
		delete(a.watched, p.uri)
		_ = a.Unsubscribe(w.t.Context(), &mcp.UnsubscribeParams{URI: p.uri}) // its page may be elsewhere now
		return
	}
	if a.Subscribe(w.t.Context(), &mcp.SubscribeParams{URI: p.uri}) == nil {
		a.watched[p.uri] = true
		a.look(w.t, p.uri)
	}
}

// read reads a page of any user: what is another's is never had. A state may be as old as a read of another agent that
// was under way, which this one shares: an agent that watches is told of what has changed since.
func (w *world) read() {
	a, p := pick(w, w.agents), pick(w, w.pages)
	r, err := a.ReadResource(w.t.Context(), &mcp.ReadResourceParams{URI: p.uri})
	switch {
	case a.user != p.user:
		if err == nil {
			w.t.Fatalf("an agent of %s reads %s: %s", a.user[:1], p.uri, r.Contents[0].Text)
		}
	case err != nil:
		w.lost++
	default:
		var user, uri string
		var count int
		text := r.Contents[0].Text
		if n, err := fmt.Sscan(text, &user, &uri, &count); n != 3 || err != nil || user != p.user[:1] || uri != p.uri ||
			count > p.count {
			w.t.Fatalf("%s reads %q, and is %q", p.uri, text, p.text())
		}
		w.reads++
		if count < p.count {
			w.shared++
		}
	}
}

// die kills a node, and opens another in its place. Its pages go elsewhere, its agents are gone.
func (w *world) die() {
	i := w.rand.IntN(len(w.nodes))
	dead := w.nodes[i]
	kill(dead)
	live := w.nodes[(i+1)%len(w.nodes)]
	w.nodes[i] = openNode(w.t, Options{Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{live.ClusterAddr()}}})
	for _, p := range w.pages {
		if p.at == dead {
			p.at = pick(w, w.nodes)
			p.dial(p.at)
		}
	}
	w.agents = slices.DeleteFunc(w.agents, func(a *modelAgent) bool {
		if a.at == dead {
			a.Close()
		}
		return a.at == dead
	})
	meet(w.t, w.nodes...)
}

// settle waits until each agent holds the last state of what it watches.
func (w *world) settle() {
	w.t.Helper()
	testkit.Settles(w.t, "each agent holds the last state of what it watches", func() string {
		for _, a := range w.agents {
			a.mu.Lock()
			held := maps.Clone(a.held)
			a.mu.Unlock()
			for _, p := range w.pages {
				if a.watched[p.uri] && held[p.uri] != p.text() {
					return fmt.Sprintf("an agent holds %q of %q", held[p.uri], p.text())
				}
			}
		}
		return ""
	})
}

func (w *world) step() {
	switch n := w.rand.IntN(1000); {
	case n < 450:
		w.change()
	case n < 850:
		w.read()
	case n < 920:
		w.watch()
	case n < 950:
		w.move()
	case n < 965 && len(w.pages) < 12:
		w.openPage()
	case n < 980 && len(w.pages) > 4:
		w.closePage()
	case n < 989 && len(w.agents) < 8:
		w.openAgent()
	case n < 998 && len(w.agents) > 3:
		w.closeAgent()
	case n == 999:
		w.die()
	}
	for len(w.agents) < 3 {
		w.openAgent()
	}
}

// Pages and agents come, go, change and read, and nodes die: nothing crosses users, and each agent that watches holds
// the last state whenever it is quiet.
func TestRandomOperations(t *testing.T) {
	steps := 2_000
	if given, err := strconv.Atoi(os.Getenv("FLEET_STEPS")); err == nil { // 20,000 take 45 s
		steps = given
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), nodes: openFleet(t, 3)}
	for range 6 {
		w.openPage()
		w.openAgent()
	}
	for i := range steps {
		w.step()
		if i%500 == 499 {
			w.settle()
		}
	}
	t.Logf("%d reads were answered, %d of them with what another was reading, %d were not, since the page was elsewhere",
		w.reads, w.shared, w.lost)
	if w.reads < steps/20 {
		t.Error("too few to say anything")
	}
}
