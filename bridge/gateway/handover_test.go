package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A keeper is an agent's end of a session that keeps its snapshot in the way of Agent.Handover.
type keeper struct {
	*Agent
	mu      sync.Mutex
	version uint64
	kept    []byte
	final   bool // kept stays
}

func (k *keeper) Read(ctx context.Context) ([]byte, error) {
	message, err := k.Agent.Read(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.HandoverVersion(); err == nil && v != k.version && !k.final {
		k.version, k.kept = v, k.Handover()
	}
	return message, err
}

func (k *keeper) snapshot() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept
}

// keep makes a snapshot the last one. The end of a gateway may still change what Read would keep.
func (k *keeper) keep(snapshot []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept, k.final = snapshot, true
}

// openKept opens an agent that begins with a snapshot and keeps its own.
func openKept(t *testing.T, g *Gateway, snapshot []byte) (*testAgent, *keeper) {
	t.Helper()
	end := connect(t, g, AgentOptions{Handover: snapshot})
	k := &keeper{Agent: end}
	return &testAgent{testkit.Connect(t, testkit.Transport(k), testkit.Legacy), t}, k
}

// A shop is a page with a cart and a tool that depends on it.
type shop struct {
	*testPage
	ran chan bool
}

func openShop(t *testing.T, g *Gateway) *shop {
	t.Helper()
	return shopAt(openPage(t, g, tabInfo("a"), map[string]string{cart: cartOf(1)}))
}

func shopAt(p *testPage) *shop {
	s := &shop{p, make(chan bool, 10)}
	s.tool(fresh(""))
	return s
}

// tool gives the page's tool other members.
func (s *shop) tool(members map[string]any) {
	s.page.SetTool("checkout", testkit.Tool{Members: members,
		Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
			s.ran <- true
			return textResult("paid", nil)
		}})
}

// After a gateway has died, nothing is known of what an agent has seen. So its first call is refused, with the present
// state, whether or not that has changed.
func TestStaleCallAtTheNextGateway(t *testing.T) {
	reload := func(text string) func(*shop) {
		return func(s *shop) {
			s.page.Epoch("another document")
			s.page.Edit(cart, text)
		}
	}
	for name, c := range map[string]struct {
		gap, later func(*shop) // steps without a gateway, and at the next one
		want       int         // the quantity that the refusal tells
	}{
		"unchanged":             {want: 1},
		"changed meanwhile":     {gap: func(s *shop) { s.page.Edit(cart, cartOf(2)) }, want: 2},
		"changed then":          {later: func(s *shop) { s.page.Edit(cart, cartOf(2)) }, want: 2},
		"reloaded":              {gap: reload(cartOf(1)), want: 1},
		"reloaded, and changed": {gap: reload(cartOf(2)), want: 2},
	} {
		for _, first := range []string{"agent", "page"} {
			t.Run(name+", "+first+" first", func(t *testing.T) {
				g := newGateway(t, Options{})
				s := openShop(t, g)
				a, kept := openKept(t, g, nil)
				a.must(calls.Read, map[string]any{"uri": cart})
				a.must("checkout", map[string]any{})
				for range 2 { // the same holds at a third gateway
					<-s.ran
					g.Close()
					if c.gap != nil {
						c.gap(s)
					}
					g = newGateway(t, Options{})
					if first == "page" {
						s.attach(g, tabInfo("a"))
					}
					a, kept = openKept(t, g, kept.snapshot())
					if first == "agent" {
						s.attach(g, tabInfo("a"))
					}
					a.hasTool("checkout")
					if c.later != nil {
						c.later(s)
					}
					texts, failed := a.tool("checkout", map[string]any{})
					if !failed || len(s.ran) != 0 || !strings.Contains(texts[0], "Pagewire was restarted") ||
						!strings.Contains(texts[0], `"now":`+cartOf(c.want)) {
						t.Fatalf("it ran %d times, and says %q", len(s.ran), texts)
					}
					if texts = a.must("checkout", map[string]any{}); texts[0] != "paid" || len(texts) > 1 {
						t.Errorf("once more it says %q", texts)
					}
				}
			})
		}
	}
}

// A revision of an earlier gateway means nothing at the next one: an agent that names it gets all contents, and no
// reminder. Later revisions are greater.
func TestRevisionsOfAnEarlierGateway(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: cartOf(1)})
	p.tellTool("say", nil)
	a, kept := openKept(t, g, nil)
	since := fields(t, a.must(calls.Read, map[string]any{"uri": cart})).Revision
	g.Close()
	g = newGateway(t, Options{})
	p.attach(g, tabInfo("a"))
	a, kept = openKept(t, g, kept.snapshot())
	a.hasTool("say")
	if texts := a.must("say", map[string]any{}); len(texts) != 1 {
		t.Errorf("it is reminded: %q", texts)
	}
	if texts := a.must(calls.Read, map[string]any{"uri": cart, "since": since}); texts[1] != cartOf(1) ||
		fields(t, texts).Revision <= since {
		t.Errorf("since %d it reads %q", since, texts)
	}
	if snapshot := kept.snapshot(); bytes.Contains(snapshot, []byte(cart)) {
		t.Errorf("the snapshot has what the agent has seen: %s", snapshot)
	}
}

// openTab opens a page with a document and a tool that both give the tab's key.
func openTab(t *testing.T, g *Gateway, tab, origin string) {
	t.Helper()
	info := PageInfo{Tab: tab, Origin: origin, URL: origin + "/", Transport: "test"}
	p := openPage(t, g, info, map[string]string{origin + "/doc": tab})
	p.page.SetTool("who", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
		return textResult(tab, nil)
	}})
}

// At the next gateway, tabs keep their numbers and order, and tools their names, in any order in which the pages come.
func TestTabsAtTheNextGateway(t *testing.T) {
	doc := app + "/doc"
	g := newGateway(t, Options{})
	for _, tab := range []string{"a", "b", "c", "d"} { // a and b are focused, c and d never
		openTab(t, g, tab, app)
	}
	openTab(t, g, "bank", bank)
	g.Focus("b")
	g.Focus("a")
	want := func(a *testAgent) {
		t.Helper()
		for name, who := range map[string]string{"who": "a", "who_tab1": "a", "who_tab2": "b", "who_tab4": "d",
			"who_bank_example": "bank"} {
			if got := whoRuns(t, a, name); got != who {
				t.Errorf("%s is run by %q, want %q", name, got, who)
			}
		}
		for uri, text := range map[string]string{doc: "a", app + "/.pagewire/tab/2/doc": "b",
			app + "/.pagewire/tab/3/doc": "c", app + "/.pagewire/tab/4/doc": "d"} {
			if got := a.Text(uri); got != text {
				t.Errorf("%s reads %q, want %q", uri, got, text)
			}
		}
	}
	a, kept := openKept(t, g, nil)
	want(a)
	g.Close()

	for _, order := range []string{"abcd", "dcba", "cadb"} {
		g = newGateway(t, Options{})
		var next *keeper
		a, next = openKept(t, g, kept.snapshot())
		openTab(t, g, "bank", bank)
		for _, tab := range order {
			openTab(t, g, string(tab), app)
		}
		want(a)
		kept = next // the restored session gives an equal snapshot
		openTab(t, g, "new", app)
		if got := a.Text(app + "/.pagewire/tab/6/doc"); got != "new" {
			t.Errorf("%s: tab 6 reads %q", order, got)
		}
		snapshot := kept.snapshot()
		for _, closed := range []struct{ tab, next string }{{"new", "a"}, {"a", "b"}, {"b", "d"}} {
			if g.CloseTab(closed.tab); a.Text(doc) != closed.next {
				t.Errorf("%s: when %s is closed it reads %q, want %q", order, closed.tab, a.Text(doc), closed.next)
			}
		}
		g.Focus("c")
		if got := a.Text(doc); got != "c" {
			t.Errorf("%s: it reads %q, and c is focused now", order, got)
		}
		g.Close()
		kept.keep(snapshot)
	}
}

// A tab that does not come back is awaited once, and not at later gateways.
func TestTabThatStaysAway(t *testing.T) {
	g := newGateway(t, Options{})
	for _, tab := range []string{"a", "b"} {
		openTab(t, g, tab, app)
	}
	a, kept := openKept(t, g, nil)
	if a.Text(app+"/doc") != "b" {
		t.Error("b is not the tab that came last")
	}
	g.Close()
	for _, awaited := range []int{1, 0} {
		g = newGateway(t, Options{awaitTime: 50 * time.Millisecond})
		a, kept = openKept(t, g, kept.snapshot())
		openTab(t, g, "a", app)
		if n := awaitedTabs(g); n != awaited {
			t.Errorf("%d tabs are awaited, want %d", n, awaited)
		}
		if got := a.Text(app + "/doc"); got != "a" {
			t.Errorf("it reads %q", got)
		}
		g.Close()
	}
}

// A URI keeps its owner even if pages come before the agent, and even if a page reports an earlier focus.
func TestOwnersWhosePagesComeFirst(t *testing.T) {
	g := newGateway(t, Options{})
	info := func(tab string, focused int64) PageInfo {
		return PageInfo{Tab: tab, Origin: app, URL: app + "/", Transport: "test", Focused: focused}
	}
	doc, old := app+"/doc", time.Now().Add(-time.Minute).UnixMilli()
	open := func(g *Gateway, tab string, focused int64) {
		openPage(t, g, info(tab, focused), map[string]string{doc: tab})
	}
	open(g, "a", 0)
	open(g, "b", old)
	open(g, "c", 0)
	g.Focus("a")
	a, kept := openKept(t, g, nil)
	a.Text(doc)
	g.Close()

	g = newGateway(t, Options{})
	open(g, "a", 0)
	open(g, "c", 0)
	a, _ = openKept(t, g, kept.snapshot())
	if got := a.Text(doc); got != "a" {
		t.Errorf("it reads %q, and a was focused last", got)
	}
	if open(g, "b", old); a.Text(doc) != "a" {
		t.Errorf("it reads %q, and b was focused before a", a.Text(doc))
	}
	if open(g, "d", time.Now().Add(time.Minute).UnixMilli()); a.Text(doc) != "d" {
		t.Errorf("it reads %q, and d was focused since", a.Text(doc))
	}
}

// An idle agent has an older snapshot. The snapshot with the latest focus decides the order of tabs, no matter which
// agent comes first.
func TestOwnersByTheLatestSnapshot(t *testing.T) {
	g := newGateway(t, Options{})
	openTab(t, g, "a", app)
	openTab(t, g, "b", app)
	a, kept := openKept(t, g, nil)
	var snapshots [][]byte
	now := time.Now()
	for i, tab := range []string{"b", "a"} {
		g.opt.wallClock = func() time.Time { return now.Add(time.Duration(i) * time.Minute) }
		g.Focus(tab)
		a.Text(app + "/doc")
		snapshots = append(snapshots, kept.snapshot())
	}
	g.Close()
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		g := newGateway(t, Options{})
		a, _ := openKept(t, g, snapshots[order[0]])
		openTab(t, g, "b", app)
		openTab(t, g, "a", app)
		openKept(t, g, snapshots[order[1]])
		if got := a.Text(app + "/doc"); got != "a" {
			t.Errorf("snapshots %v: it reads %q, and a was focused last", order, got)
		}
	}
}

// With the snapshots of several agents, each tab has one number and each number one tab, even if they contradict.
func TestSnapshotsOfSeveralAgents(t *testing.T) {
	g := newGateway(t, Options{})
	openTab(t, g, "a", app)
	a, first := openKept(t, g, nil)
	a.Text(app + "/doc")
	older := first.snapshot()
	openTab(t, g, "b", app)
	openTab(t, g, "c", app)
	a.Text(app + "/doc")
	newer := first.snapshot()
	g.Close()

	for name, c := range map[string]struct {
		snapshots [][]byte
		before    string // comes before all agents
		want      map[string]int
	}{
		"older first": {[][]byte{older, newer}, "", map[string]int{"a": 1, "b": 2, "c": 3, "new": 4}},
		"newer first": {[][]byte{newer, older}, "", map[string]int{"a": 1, "b": 2, "c": 3, "new": 4}},
		"one that says something else": {[][]byte{older, bytes.ReplaceAll(newer, []byte(`"b","n":2`),
			[]byte(`"b","n":1`))}, "", map[string]int{"a": 1, "c": 3, "b": 4, "new": 5}},
		"one that has a number twice": {[][]byte{bytes.ReplaceAll(newer, []byte(`"n":2`), []byte(`"n":3`))}, "",
			map[string]int{"a": 1, "c": 3, "b": 4, "new": 5}},
		"tabs that nobody remembers": {[][]byte{bytes.ReplaceAll(newer, []byte(`"last":3`), []byte(`"last":9`))}, "",
			map[string]int{"a": 1, "b": 2, "c": 3, "new": 10}},
		"a tab that was first": {[][]byte{newer}, "new", map[string]int{"new": 1, "b": 2, "c": 3, "a": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			if c.before != "" {
				openTab(t, g, c.before, app)
			}
			for _, snapshot := range c.snapshots {
				openKept(t, g, snapshot)
			}
			for _, tab := range []string{"c", "b", "a", "new"} {
				if tab != c.before {
					openTab(t, g, tab, app)
				}
			}
			got := map[string]int{}
			for _, p := range g.Snapshot().Pages {
				got[p.Tab] = p.Number
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("the numbers are %v, want %v", got, c.want)
			}
		})
	}
}

// A snapshot uses its room and does not exceed it, even with very many tabs and tools.
func TestSnapshotsHaveABound(t *testing.T) {
	g := newGateway(t, Options{})
	long := strings.Repeat("x", 1000)
	openTab(t, g, "a", app)
	end := connect(t, g, AgentOptions{})
	g.mu.Lock()
	const most = 10_000
	var tabs []catalog.TabNumber
	for n := range most - 1 {
		tabs = append(tabs, catalog.TabNumber{Key: fmt.Sprint("tab ", n, long[:n/10]), Number: n + 2})
	}
	g.catalog.Restore(tabs, 0, 0, 0)
	for n := range 5000 {
		g.tools.names.Of(app, fmt.Sprint("tool", n, long[:n/10]))
	}
	g.handedOver.names.Add(1)
	g.mu.Release()
	snapshot := end.Handover()
	if len(snapshot) > MaxHandoverBytes || len(snapshot) < partBytes*3/2 || !json.Valid(snapshot) {
		t.Fatalf("it has %d bytes", len(snapshot))
	}
	g.Close()
	g = newGateway(t, Options{})
	openKept(t, g, snapshot)
	openTab(t, g, "a", app)
	openTab(t, g, "new", app)
	if pages := g.Snapshot().Pages; pages[0].Number != 1 || pages[1].Number != most+1 {
		t.Errorf("the tabs are %d and %d", pages[0].Number, pages[1].Number)
	}
}

// A snapshot that was altered is ignored, as a whole or in part. It never makes a call run.
func TestAlteredSnapshots(t *testing.T) {
	g := newGateway(t, Options{})
	s := openShop(t, g)
	openTab(t, g, "bank", bank)
	a, kept := openKept(t, g, nil)
	a.hasTool("checkout")
	good := kept.snapshot()
	g.Close()
	s.page.Edit(cart, cartOf(2))

	altered := func(f func(*handover)) []byte {
		var s handover
		if err := json.Unmarshal(good, &s); err != nil {
			t.Fatal(err)
		}
		f(&s)
		return []byte(live.Line(s))
	}
	const most = 1<<63 - 1
	type kind struct {
		snapshot []byte
		ignored  bool // as a whole, with one line in the log
	}
	kinds := map[string]kind{
		"sound":           {good, false},
		"empty":           {[]byte{}, true},
		"no JSON":         {[]byte("snapshot"), true},
		"null":            {[]byte("null"), true},
		"a list":          {[]byte("[]"), true},
		"1 MB":            {append(bytes.TrimSuffix(good, []byte("}")), strings.Repeat(" ", 1<<20)+"}"...), true},
		"deep":            {[]byte(strings.Repeat(`{"tabs":`, 20_000)), true},
		"another version": {altered(func(s *handover) { s.Version++ }), true},
		"a type":          {bytes.Replace(good, []byte(`"last":`), []byte(`"last":"1","x":`), 1), true},
		"no number":       {bytes.Replace(good, []byte(`"last":2`), []byte(`"last":1e400`), 1), true},
		"what an agent has seen": {bytes.Replace(good, []byte(`"last":`), fmt.Appendf(nil,
			`"agent":{"seen":[{"u":%q,"r":1,"n":%d,"e":"","c":%d}]},"last":`, cart, most, most), 1), false},
		"negative numbers": {altered(func(s *handover) {
			s.Last, s.Focused = -most, -most
			for i := range s.Tabs {
				s.Tabs[i].Number, s.Tabs[i].Rank = -most, -most
			}
		}), false},
		"great numbers": {altered(func(s *handover) {
			s.Last, s.Focused = most, most
			for i := range s.Tabs {
				s.Tabs[i].Number, s.Tabs[i].Rank = most, most
			}
		}), false},
		"another's names": {altered(func(s *handover) {
			for _, name := range []string{calls.Read, "Read-Page_Resources", "checkout", "pay_tab1", "\x00"} {
				s.Names = append(s.Names, handedName{bank, "x", name}, handedName{bank, name, name})
			}
		}), false},
	}
	for n := 0; n < len(good); n += 1 + len(good)/50 {
		kinds[fmt.Sprint("cut at ", n)] = kind{good[:n], true}
	}
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			g := newGateway(t, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			a, _ := openKept(t, g, c.snapshot)
			if got := strings.Count(log.String(), "\n"); got != truth(c.ignored) {
				t.Errorf("the log says %s", log.String())
			}
			openTab(t, g, "bank", bank)
			s.attach(g, tabInfo("a"))
			a.hasTool("checkout")
			if texts, failed := a.tool("checkout", map[string]any{}); !failed || len(s.ran) != 0 ||
				!strings.Contains(texts[0], cartOf(2)) {
				t.Errorf("the call ran %d times, and says %q", len(s.ran), texts)
			}
			for _, p := range g.Snapshot().Pages {
				if p.Number < 1 || p.Number > 4 {
					t.Errorf("tab %s has number %d", p.Tab, p.Number)
				}
			}
			if got := whoRuns(t, a, "who"); got != "bank" {
				t.Errorf("the bank's tool is run by %q", got)
			}
		})
	}
	// With any bytes changed, the agent is served.
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		snapshot := slices.Clone(good)
		for range 1 + r.IntN(3) {
			snapshot[r.IntN(len(snapshot))] = byte(r.IntN(256))
		}
		g := New(Options{})
		end := connect(t, g, AgentOptions{Handover: snapshot})
		openTab(t, g, "bank", bank)
		if again := end.Handover(); !json.Valid(again) || len(again) > MaxHandoverBytes {
			t.Errorf("of %q it makes %q", snapshot, again)
		}
		g.Close()
	}
}

// An agent's pipe keeps its snapshot, and may send any other text.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"v":2,"focused":1,"tabs":[{"k":"a","n":1}],"names":[{"o":"https://a.example","t":"t","n":"t"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		g := New(Options{})
		defer g.Close()
		a := connect(t, g, AgentOptions{Handover: text})
		if again := a.Handover(); !json.Valid(again) || len(again) > MaxHandoverBytes {
			t.Errorf("%q gives the snapshot %q", text, again)
		}
	})
}

// awaitedTabs is the number of tabs of an earlier gateway that are not back yet.
func awaitedTabs(g *Gateway) int {
	tabs, _ := g.catalog.Awaited()
	return tabs
}
