//go:build unix

package process

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A world is a model of a fleet: its pages, their users and their texts.
type world struct {
	*outside
	rand   *rand.Rand
	pages  []*livePage
	agents []*follower
	number int

	slots chan bool      // for operations under way
	calls sync.WaitGroup // of the same operations
	whole bool           // no fault is active

	reads, ran, thefts atomic.Int64     // reads that were answered with contents; calls of tools; refused thefts
	errors             map[string]int64 // by text, of reads of a user's own pages, and calls of their tools
	faults             map[string]int
	late               int                      // watches that were later than 3 s
	latest             map[string]time.Duration // from a repair until all hold the last state, by fault
}

func openWorld(t *testing.T) *world {
	seed := testkit.Seed(t, "FLEET_SEED")
	return &world{outside: &outside{place: newFleet(t, 0)}, rand: rand.New(rand.NewPCG(seed, 1)),
		errors: map[string]int64{}, slots: make(chan bool, 256), whole: true, faults: map[string]int{}, latest: map[string]time.Duration{}}
}

func (w *world) begin() {
	for range 3 {
		w.start()
	}
	for range 6 {
		w.openPage()
		w.openAgent()
	}
	w.settle("no fault")
}

func pick[T any](w *world, list []T) T { return list[w.rand.IntN(len(list))] }

// async does an operation that may wait for a stopped node. Without a fault it lets few be under way.
func (w *world) async(do func()) {
	for w.whole && len(w.slots) > 16 {
		time.Sleep(time.Millisecond)
	}
	select {
	case w.slots <- true:
		w.calls.Go(func() {
			do()
			<-w.slots
		})
	default: // too many hang
	}
}

// openPage opens a page. Three users have one each at the same URI.
func (w *world) openPage() {
	uri := fmt.Sprint(app, "/page", w.number/len(subjects))
	w.pages = append(w.pages, w.outside.openPage(w.number, subjects[w.number%len(subjects)], uri))
	w.number++
}

func (w *world) closePage() {
	i := w.rand.IntN(len(w.pages))
	w.pages[i].close()
	w.pages = slices.Delete(w.pages, i, i+1)
}

// move makes a page connect again, to a random node; sometimes before its old connection has ended.
func (w *world) move() {
	p := pick(w, w.pages)
	if w.rand.IntN(2) == 0 {
		(*p.cut.Load())()
		return
	}
	select {
	case p.moves <- true:
	default:
	}
}

// openAgent opens an agent of either era, which watches all pages of its user.
func (w *world) openAgent() {
	subject := pick(w, w.pages).subject
	var uris []string
	for _, p := range w.pages {
		if p.subject == subject {
			uris = append(uris, p.uri)
		}
	}
	w.agents = append(w.agents, w.follow(subject, len(w.agents)%2 == 0, uris...))
}

func (w *world) closeAgent() {
	i := w.rand.IntN(len(w.agents))
	w.agents[i].end()
	w.agents = slices.Delete(w.agents, i, i+1)
}

// read reads a URI that other users have, too; send looks for their texts. A state may be as old as a shared read that
// was already under way: a watching agent is notified of later changes.
func (w *world) read() {
	a, p := pick(w, w.agents), pick(w, w.pages)
	w.async(func() {
		m, ok := w.try(a, p, "resources/read", p.uri, fmt.Sprintf(`"uri":%q`, p.uri))
		if !ok {
			return
		}
		w.reads.Add(1)
		var count int64
		rest, ok := strings.CutPrefix(m.Result.Contents[0].Text, stateOf(a.subject))
		if _, err := fmt.Sscanf(rest, "%d of "+p.uri, &count); !ok || err != nil ||
			a.subject == p.subject && count > p.count.Load() {
			w.t.Errorf("%s reads %q", p.uri, m.Result.Contents[0].Text)
		}
	})
}

// try sends a request for a page. If it fails, and the page is the user's own, try counts the failure.
func (w *world) try(a *follower, p *livePage, method, name, params string) (m said, ok bool) {
	m, err := a.call(method, name, params)
	how := method + ": "
	if a.legacy {
		how = "legacy " + how
	}
	switch {
	case err != nil:
		how += "no answer"
	case m.Error != nil:
		how += strings.TrimRight(m.Error.Message, "0123456789") // of a tool
	case m.Result.IsError:
		how += m.Result.Content[0].Text
	default:
		return m, len(m.ID) > 0 // false: it has no session, and has sent nothing
	}
	if a.subject == p.subject && a.ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errors[how]++
	}
	return m, false
}

// failures returns the errors of requests for users' own pages, with their counts.
func (w *world) failures() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.errors)
}

// act calls a page's tool. It must not run twice, and exactly once if the answer says so.
func (w *world) act() {
	a, p := pick(w, w.agents), pick(w, w.pages)
	number := w.ids.Add(1)
	w.async(func() {
		args := fmt.Sprintf(`{"n":%d}`, number)
		_, done := w.try(a, p, "tools/call", p.tool, fmt.Sprintf(`"name":%q,"arguments":%s`, p.tool, args))
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.ran.Add(int64(p.ran[args])); done && p.ran[args] != 1 || a.subject != p.subject && p.ran[args] > 0 {
			w.t.Errorf("%s's agent has called %s of %s, which ran %d times", a.subject, p.tool, p.subject, p.ran[args])
		}
	})
}

// steal tries another user's session, token or ticket.
func (w *world) steal() {
	thief, victim, at := pick(w, w.agents), pick(w, w.agents), pick(w, w.all())
	if thief.subject == victim.subject {
		return
	}
	if w.rand.IntN(4) == 0 {
		w.async(func() { w.stealPage(victim.subject, at) })
		return
	}
	its, own := strings.Split(victim.token, "."), strings.Split(thief.token, ".")
	token, verb := thief.token, http.MethodPost
	head := map[string]string{"Mcp-Protocol-Version": testkit.Modern, "Mcp-Method": "resources/list"}
	switch s := victim.session.Load(); w.rand.IntN(5) {
	case 0:
		token = its[0] + "." + its[1] + "." + own[2]
	case 1:
		token = w.login.Ticket(victim.subject, app)
	case 2:
		token = w.login.Signed(victim.subject, map[string]any{"scope": "pages:read", "aud": "https://other.example"})
	case 3:
		head["Pagewire-User"] = victim.subject
	default:
		if s == nil {
			return
		}
		verb = pick(w, []string{http.MethodPost, http.MethodGet, http.MethodDelete})
		head = map[string]string{"Mcp-Protocol-Version": testkit.Legacy, "Mcp-Session-Id": s.id}
	}
	head["Authorization"] = "Bearer " + token
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/list","params":{%s}}`, w.ids.Add(1), modernMeta)
	w.async(func() {
		status, _, err := w.send(w.t.Context(), at, thief.subject, verb, body, head, func(string, said) bool { return true })
		if err == nil && status < 400 {
			w.t.Errorf("%s takes %s's by %s %v: %d", thief.subject, victim.subject, verb, head, status)
		}
		w.thefts.Add(1)
	})
}

// stealPage connects a page with another user's ticket from another origin, or with a token in place of a ticket.
func (w *world) stealPage(subject string, at *own) {
	origin, ticket := "https://evil.example", w.login.Ticket(subject, app)
	if rand.IntN(2) == 0 {
		origin, ticket = app, w.login.Token(subject, "pages:read pages:act")
	}
	ws, _, err := w.dial(w.t.Context(), at, origin)
	if err != nil {
		return // the node was killed
	}
	defer ws.CloseNow()
	hello := `[["hello",1,"0",{"epoch":"stolen","tab":"stolen-tab","dial":1}],["register","{\"uri\":\"` + origin +
		`/stolen\",\"name\":\"x\"}"]]`
	for _, text := range []string{string(note(ticket)), hello} {
		_ = ws.Write(w.t.Context(), websocket.MessageText, []byte(text)) // it may be refused already
	}
	if _, text, err := ws.Read(w.t.Context()); err == nil {
		w.t.Errorf("a page with a stolen ticket is told %s", text)
	}
	w.thefts.Add(1)
}

// fault kills, stops or cuts off a node while the world goes on, repairs that, and waits until all are notified.
func (w *world) fault(kind string) {
	n := pick(w, w.all())
	w.whole = false
	var repair func()
	switch kind {
	case "kill":
		w.leave(n)
		w.signal(n, syscall.SIGKILL)
		repair = func() { w.start() }
	case "stop":
		w.signal(n, syscall.SIGSTOP)
		repair = func() { w.signal(n, syscall.SIGCONT) }
	default:
		repair = w.part(n, kind == "hang")
	}
	w.faults[kind]++
	lasts := time.Duration(w.rand.IntN(8 * int(w.options().interval)))
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(10 * time.Millisecond) {
		w.step()
	}
	repair()
	w.settle(kind)
	w.whole = true
}

func (w *world) options() Options { return w.next().options() }

func (w *world) signal(n *own, s syscall.Signal) {
	w.t.Helper()
	if err := n.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// settle waits until each agent holds the last state of the pages that it watches, and all requests are answered.
func (w *world) settle(after string) {
	w.t.Helper()
	repaired, counted := time.Now(), false
	testkit.Settles(w.t, "each agent holds the last state of what it watches", func() (lacks string) {
		late := 0
		for _, a := range w.agents {
			for _, p := range w.pages {
				if p.subject == a.subject && a.watches(p.uri) && a.holds(p.uri) != p.text() {
					late++
					lacks = fmt.Sprintf("an agent (legacy: %v) holds %q of %q", a.legacy, a.holds(p.uri), p.text())
				}
			}
		}
		if since := time.Since(repaired); since > 3*time.Second && !counted {
			counted = true
			w.late += late
			w.t.Logf("3 s after a repair (%s) %d watches are late: %s", after, late, lacks)
		}
		return lacks
	})
	w.latest[after] = max(w.latest[after], time.Since(repaired).Round(time.Millisecond))
	answered := make(chan bool)
	go func() {
		w.calls.Wait()
		close(answered)
	}()
	testkit.Ends(w.t, "all that was asked is answered", answered)
}

func (w *world) String() string {
	return fmt.Sprintf("faults %v; %d reads were answered, tools ran %d times, and this failed: %v; %d thefts were refused; "+
		"%d requests of watches were cut off by a kill; %d sessions and listens were begun, %d refused; %d watches were later "+
		"than 3 s, and all were told after a repair within %v", w.faults, w.reads.Load(), w.ran.Load(), w.failures(),
		w.thefts.Load(), w.cuts.Load(), w.begins.Load(), w.refused.Load(), w.late, w.latest)
}

// use makes a page change, or an agent read or call a tool.
func (w *world) use() {
	switch n := w.rand.IntN(8); {
	case n < 4:
		pick(w, w.pages).change()
	case n < 7:
		w.read()
	default:
		w.act()
	}
}

func (w *world) step() {
	switch n := w.rand.IntN(1000); {
	case n < 850:
		w.use()
	case n < 930:
		w.steal()
	case n < 950:
		w.move()
	case n < 965 && len(w.pages) < 12:
		w.openPage()
	case n < 980 && len(w.pages) > 4:
		w.closePage()
	case n < 990 && len(w.agents) < 8:
		w.openAgent()
	case n >= 990 && len(w.agents) > 3:
		w.closeAgent()
	}
	for len(w.agents) < 3 {
		w.openAgent()
	}
}

// asNode names the variable with a node's setup. With it the test's binary runs as that node.
const asNode = "PAGEWIRE_TEST_NODE"

func TestMain(m *testing.M) {
	text := os.Getenv(asNode)
	if text == "" {
		os.Exit(m.Run())
	}
	var s setup
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	o := s.options()
	o.Started = func(listen, admin, cluster net.Addr) { fmt.Println(listen, admin, cluster) }
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Pages and agents of both eras come, go, change, read and act, each request at a random node. Users steal from each
// other, and nodes are killed, stopped and cut off. Nothing crosses users, no tool runs twice, and all is answered.
// Each watching agent holds the last state soon after a repair. The time is only logged, because a busy machine takes
// longer.
func TestRandomOperations(t *testing.T) {
	t.Parallel()
	steps, interval := 600, 200*time.Millisecond
	if given, err := strconv.Atoi(os.Getenv("FLEET_STEPS")); err == nil { // make test-models takes 3,000
		steps, interval = given, time.Second // as in production
	}
	w := openWorld(t)
	w.command = func(s setup) *exec.Cmd {
		s.Interval = interval
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		cmd := testcmd.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asNode+"="+string(text), "GORACE=atexit_sleep_ms=0")
		return cmd
	}
	w.begin()
	kinds := []string{"kill", "stop", "cut", "hang"}
	every := min(300, steps/len(kinds))
	for i := range steps {
		w.step()
		if i%every == every-1 {
			w.fault(kinds[i/every%len(kinds)])
		}
	}
	w.settle("no fault")
	t.Log(w)
	if w.reads.Load() < int64(steps/20) || w.ran.Load() == 0 || w.thefts.Load() == 0 {
		t.Error("too few to say anything")
	}
}
