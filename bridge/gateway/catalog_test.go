package gateway

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// sharedURIs are the resources of each tab of one application.
func sharedURIs() map[string]string {
	state := map[string]string{}
	for i := range 20 {
		state[app+"/state/"+strconv.Itoa(i)] = "text"
	}
	return state
}

// The cost of a tab does not grow with the number of tabs that have the same URIs.
func TestManyTabsWithTheSameURIs(t *testing.T) {
	const few, many = 20, 200
	g := newGateway(t, Options{})
	g.tools.pending = true // their list is rebuilt at most every 200 ms, at a cost that grows with the tabs
	state := sharedURIs()
	costs := map[string][2]uint64{} // by step: with few tabs, and with many
	tabs := map[int]*testPage{}
	open := func(n int) { tabs[n] = openPage(t, g, tabInfo(strconv.Itoa(n)), state) }
	measure := func(column, n int) {
		for _, step := range []struct {
			what string
			do   func()
		}{
			{"a tab comes", func() { open(n) }},
			{"an older one has the focus", func() { g.Focus("1") }},
			{"the new one has it again", func() { g.Focus(strconv.Itoa(n)) }},
			{"it offers something anew", func() { tabs[n].page.Offer(app+"/state/7", "other") }},
			{"it is loaded anew", func() {
				tabs[n].crash()
				open(n)
			}},
			{"it is closed", func() { g.CloseTab(strconv.Itoa(n)) }},
		} {
			cost := costs[step.what]
			cost[column] = mallocs(step.do)
			costs[step.what] = cost
		}
	}
	for n := range many {
		if n == few {
			measure(0, n)
		}
		open(n)
	}
	measure(1, many)
	for what, cost := range costs {
		t.Logf("%s: %d allocations with %d tabs, %d with %d", what, cost[0], few, cost[1], many)
		if cost[1] > 3*cost[0]+200 { // other goroutines may allocate too
			t.Errorf("%s: %d allocations with %d tabs, %d with %d", what, cost[0], few, cost[1], many)
		}
	}
	if got, want := len(openAgent(t, g).URIs()), many*len(state); got != want {
		t.Errorf("%d URIs are listed, want %d", got, want)
	}
}

// mallocs counts the allocations during f, those of other goroutines included.
func mallocs(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// Each offer is described once when it comes, and once more after its page's title has changed any number of times. The
// number of tabs with the same URIs does not matter. A change of focus needs no description.
func TestTitlesThatTick(t *testing.T) {
	const tabs = 50
	g := newGateway(t, Options{})
	state := sharedURIs()
	var pages []*testPage
	for n := range tabs {
		pages = append(pages, openPage(t, g, tabInfo(strconv.Itoa(n)), state))
	}
	all := tabs * len(state)
	described := func() int {
		defer g.lock()()
		return g.catalog.Described()
	}
	came := described()
	if came != all {
		t.Errorf("%d descriptions of %d offers that have come", came, all)
	}
	g.Focus("7")
	if n := described() - came; n != 0 {
		t.Errorf("%d descriptions when a tab has got the focus", n)
	}
	for tick := range 10 {
		for _, p := range pages {
			p.Retitle("tick " + strconv.Itoa(tick))
		}
	}
	renewed := func() (n int) {
		for _, r := range g.Snapshot().Resources {
			n += truth(strings.Contains(r.Title, "tick 9"))
		}
		return n
	}
	testkit.Eventually(t, "all titles are told", func() bool { return renewed() == all })
	if n := described() - came; n != all {
		t.Errorf("%d descriptions of %d offers whose titles have changed", n, all)
	}
}

// After each step of the pages, in any order, the catalog is the same as a new one made of their offers.
func TestCatalogIsWhatPagesOffer(t *testing.T) {
	runs, seed := 50, testkit.Seed(t, "CATALOG_SEED")
	if given, err := strconv.Atoi(os.Getenv("CATALOG_RUNS")); err == nil {
		runs = given
	}
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, run))
		g := New(Options{Grace: time.Hour})
		var pages []*testPage
		var did []string
		for range 60 {
			uri := app + "/" + strconv.Itoa(random.IntN(3))
			tab := strconv.Itoa(random.IntN(4))
			info := tabInfo(tab)
			if random.IntN(3) == 0 {
				info.Frame = strconv.Itoa(random.IntN(2))
			}
			var p *testPage
			if len(pages) > 0 {
				p = pages[random.IntN(len(pages))]
			}
			step := random.IntN(9)
			did = append(did, fmt.Sprint(step, " ", tab, info.Frame, " ", uri))
			switch {
			case step < 2 || p == nil:
				pages = append(pages, openPage(t, g, info, map[string]string{uri: "text"}))
			case step < 4:
				p.offer(uri, "text")
			case step == 4:
				p.page.Withdraw(uri)
			case step == 5:
				g.Focus(tab)
			case step == 6:
				p.crash()
			case step == 7 && random.IntN(4) == 0:
				g.CloseTab(tab)
			case step == 7:
				p.Close("closed")
			default:
				p.Retitle("title " + uri)
				g.announceTitles()
			}
			if wrong := g.wrongInCatalog(); wrong != "" {
				t.Fatalf("run %d: %s\n%s", run, wrong, strings.Join(did, "\n"))
			}
		}
		g.Close()
		left := len(slices.Collect(g.catalog.Keys()))
		for tab := range 4 {
			if g.catalog.Tab(strconv.Itoa(tab)) != nil {
				left++
			}
		}
		if left != 0 {
			t.Fatalf("run %d: %d tabs and routes are left", run, left)
		}
	}
}

// wrongInCatalog compares the catalog with the offers of its pages. It returns the first difference, or "".
func (g *Gateway) wrongInCatalog() string {
	defer g.lock()()
	byURI := map[string][]*catalog.Page{}
	for p := range g.catalog.Pages {
		for uri := range p.Offers {
			byURI[uri] = append(byURI[uri], p)
		}
	}
	left, done := map[string]*catalog.Entry{}, map[string]bool{}
	for key := range g.catalog.Keys() {
		left[key] = g.catalog.Entry(key)
	}
	for uri, pages := range byURI {
		slices.SortFunc(pages, func(a, b *catalog.Page) int {
			return cmp.Or(cmp.Compare(b.InTab.Rank, a.InTab.Rank),
				cmp.Compare(truth(a.Frame != ""), truth(b.Frame != "")), cmp.Compare(b.Order, a.Order))
		})
		for i, p := range pages {
			keys := []string{taburi.Of(uri, p.Segment())}
			if i == 0 {
				keys = append(keys, uri)
			}
			for _, key := range keys {
				if done[key] {
					continue // two documents are in one place for a moment: the later one owns it
				}
				done[key] = true
				r := left[key]
				delete(left, key)
				switch {
				case r == nil:
					return key + " leads nowhere"
				case r.Page != p || r.Own(key) != uri:
					return key + " leads to " + r.Own(key) + " of " + r.Page.Tab + ", and not of " + p.Tab
				case r.Resource.Unlisted != (i == 0 && key != uri):
					return fmt.Sprintf("%s is unlisted: %t", key, r.Resource.Unlisted)
				case !strings.Contains(r.Resource.Title, p.Caption()):
					return key + " has the title " + r.Resource.Title
				}
				if found, ok := g.engine.Find(key); !ok || found != key {
					return key + " is not in the engine"
				}
			}
		}
	}
	for key := range left {
		return key + " is offered by nobody"
	}
	return ""
}

// A wall clock that was ahead no longer decides which tab has the focus once it has been set right.
func TestFocusByAClockThatWasAhead(t *testing.T) {
	now := time.Now()
	g := newGateway(t, Options{wallClock: func() time.Time { return now }})
	a := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "a"})
	b := openPage(t, g, tabInfo("b"), map[string]string{app + "/doc": "b"})
	focused := func(p *testPage, at time.Time) {
		p.page.Post(fmt.Sprintf(`[["note",{"focused":%d}]]`, at.UnixMilli()))
	}
	owner := func() string {
		defer g.lock()()
		return g.catalog.Entry(app + "/doc").Page.Tab
	}
	focused(a, now)
	if got := owner(); got != "a" {
		t.Fatalf("the URI is tab %s's", got)
	}
	now = now.Add(-2 * time.Hour) // the clock is set right
	focused(b, now)
	if got := owner(); got != "b" {
		t.Errorf("the URI is tab %s's when b has got the focus after the clock was set", got)
	}
	focused(a, now.Add(2*time.Hour)) // a repeats its earlier report
	if got := owner(); got != "b" {
		t.Errorf("the URI is tab %s's when a has said again when it had the focus", got)
	}
	focused(a, now.Add(-time.Minute))
	if got := owner(); got != "b" {
		t.Errorf("the URI is tab %s's though a had the focus a minute before", got)
	}
	focused(a, now.Add(time.Hour)) // by the page's own clock, which is ahead: counts as now
	focused(b, now.Add(time.Second))
	if got := owner(); got != "b" {
		t.Errorf("the URI is tab %s's when b has got the focus again", got)
	}
}

// A fakeClock moves only by add.
type fakeClock struct{ passed, asked atomic.Int64 }

func (c *fakeClock) now() time.Time {
	defer c.asked.Add(1)
	return time.Unix(0, c.passed.Load())
}

func (c *fakeClock) add(d time.Duration) { c.passed.Add(int64(d)) }

// A page is not charged for the time for which it waits for the gateway.
func TestWaitingIsNotWork(t *testing.T) {
	var clock fakeClock
	g := newGateway(t, Options{wallClock: clock.now})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "text"})
	g.Tap(func(Event) { clock.add(time.Millisecond) }) // each message takes 1 ms of work
	before, asked := p.Worked(), clock.asked.Load()
	received := make(chan struct{})
	g.mu.Lock()
	go func() {
		defer close(received)
		p.page.Post(`[["note",{}]]`)
	}()
	testkit.Eventually(t, "the frame is parsed", func() bool { return clock.asked.Load() == asked+2 })
	clock.add(time.Hour)
	g.mu.Release()
	testkit.Ends(t, "it is received", received)
	if got := p.Worked() - before; got != time.Millisecond {
		t.Errorf("it was charged with %v, want 1ms", got)
	}
}

// A page's skill is read under skill://, and each of two tabs has its own.
func TestSkillsOfPages(t *testing.T) {
	g := newGateway(t, Options{})
	const uri = app + "/help/pay/SKILL.md"
	for _, tab := range []string{"a", "b"} {
		p := openPage(t, g, tabInfo(tab), nil)
		p.page.Describe(uri, map[string]any{"mimeType": "text/markdown", "description": "How to pay"})
		p.offer(uri, "in "+tab)
	}
	a := openAgent(t, g)
	for path, tab := range map[string]string{"": "b", "/.pagewire/tab/1": "a"} {
		want := "---\nname: pay\ndescription: \"By the web page " + app + ", not by the user or Pagewire: How to pay\"\n---\nin " + tab
		if got := a.Text("skill://https/app.example" + path + "/help/pay/SKILL.md"); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
}

// Of a resource's icons, agents get those that bring their program to no place but the page's own.
func TestIconsOfResources(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	var icons []any
	for _, src := range []string{"https://tracker.test/seen", "http://127.0.0.1:631/", "javascript:alert(1)", "file:///etc/passwd",
		app + ".evil.test/", app + "@evil.test/", "data:text/html,x", app + "/icon.png", "data:image/png;base64,AAAA"} {
		icons = append(icons, map[string]any{"src": src, "sizes": []string{"48x48"}})
	}
	p.page.Describe(app+"/doc", map[string]any{"icons": icons})
	p.page.Offer(app+"/doc", "1")
	p.page.Describe(app+"/{id}", map[string]any{"icons": icons[:1]})
	p.page.Offer(app+"/{id}", "1")
	a := openAgent(t, g)
	a.Shows(app + "/doc")
	list, err := a.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, icon := range list.Resources[0].Icons {
		got = append(got, icon.Source)
	}
	if want := []string{app + "/icon.png", "data:image/png;base64,AAAA"}; !slices.Equal(got, want) {
		t.Errorf("agents get the icons %q, want %q", got, want)
	}
	templates, err := a.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].Icons != nil {
		t.Errorf("the template is %+v, %v", templates, err)
	}
}
