package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A testPage is a testkit.Page that is attached to a gateway. Real pages in a real browser are in e2e.
type testPage struct {
	*Page
	t    *testing.T
	page *testkit.Page
}

func openPage(t *testing.T, g *Gateway, info PageInfo, state map[string]string) *testPage {
	t.Helper()
	p := &testPage{t: t, page: testkit.NewPage(t, nil)}
	p.attach(g, info)
	for uri, text := range state {
		p.offer(uri, text)
	}
	return p
}

func (p *testPage) attach(g *Gateway, info PageInfo) {
	p.t.Helper()
	p.page.Attach(func(send func([]byte)) (_ testkit.Receiver, err error) {
		p.Page, err = g.Attach(info, send)
		return p.Page, err
	})
}

func (p *testPage) offer(uri, text string) {
	if strings.Contains(uri, "{") {
		head, _, _ := strings.Cut(uri, "{")
		p.page.Add(uri, func(_ context.Context, asked string) (string, error) {
			return text + strings.TrimPrefix(asked, head), nil
		})
	} else {
		p.page.Offer(uri, text)
	}
}

// set changes the state and reports it.
func (p *testPage) set(uri, value string) { p.page.Set(uri, value) }

// subscriptions is 1 while the page is asked to report changes.
func (p *testPage) subscriptions(uri string) int { return truth(p.page.Watches(uri)) }

// crash ends the connection like a navigation.
func (p *testPage) crash() { p.Lost("its connection ended") }

type testAgent struct {
	*testkit.Agent
	t *testing.T
}

func openAgent(t *testing.T, g *Gateway) *testAgent {
	t.Helper()
	a, _ := openAgentWith(t, g, AgentOptions{})
	return a
}

// openAgentWith opens an agent, and returns its end too.
func openAgentWith(t *testing.T, g *Gateway, o AgentOptions, progress ...func(*mcp.ProgressNotificationParams)) (
	*testAgent, *Agent) {
	t.Helper()
	end := connect(t, g, o)
	return &testAgent{testkit.Connect(t, testkit.Transport(end), testkit.Legacy, progress...), t}, end
}

// connect opens the end of an agent. The default transport is "test".
func connect(t testing.TB, g *Gateway, o AgentOptions) *Agent {
	t.Helper()
	o.Transport = cmp.Or(o.Transport, "test")
	a, err := g.ConnectWith(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// updated waits for exactly these updates, and checks for a while that no other comes.
func (a *testAgent) updated(want ...string) {
	a.t.Helper()
	a.Told(want...)
	a.quiet()
}

func (a *testAgent) quiet() { a.t.Helper(); a.Silent() }

func (a *testAgent) tool(name string, args any) (texts []string, isError bool) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return texts, r.IsError
}

// apartWork is a piece of a call's work, which goes on until finish is closed or its context ends.
type apartWork struct {
	id            bridge.CallID
	began, finish chan bool
	ended, done   atomic.Bool // its context; the call has the result
}

// begins starts work on an origin for a call of an agent.
func begins(g *Gateway, id bridge.CallID, a *Agent, p *Page, origin string) *apartWork {
	w := &apartWork{id: id, began: make(chan bool, 1), finish: make(chan bool)}
	c := g.newToolCall(&call{id: id, agent: a})
	defer g.lock()()
	if p != nil {
		c.route = a.pass.To(p, false)
	}
	g.calls[id] = c.call
	c.start(func(ctx context.Context) {
		c.Apart(ctx, origin, func(ctx context.Context) {
			w.began <- true
			select {
			case <-w.finish:
			case <-ctx.Done():
				w.ended.Store(true)
			}
		})
		w.done.Store(ctx.Err() == nil)
	})
	return w
}

// Work on one origin's data has one of two places. What waits ends with its call, and what runs also with its page.
func TestWorkApart(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("hostile"), map[string]string{app + "/x": "1"})
	hostile, honest := connect(t, g, AgentOptions{}), connect(t, g, AgentOptions{})
	var id bridge.CallID = 1 << 30
	work := func(a *Agent, p *Page, origin string) *apartWork {
		id++
		return begins(g, id, a, p, origin)
	}
	end := func(w *apartWork) { g.locked(func() { (*host)(g).End(w.id) })() }
	bad := work(hostile, p.Page, app)
	testkit.Receive(t, "the page's first piece begins", bad.began)
	var waiting []*apartWork
	for range 50 {
		waiting = append(waiting, work(hostile, p.Page, app))
	}
	waits := func(n int) {
		t.Helper()
		testkit.Eventually(t, "they wait", func() bool { _, waiting := g.places.Held(apart); return waiting == n })
	}
	waits(50)
	for range 3 { // others do not wait for it
		w := work(honest, nil, "https://honest.example")
		testkit.Receive(t, "an honest piece begins", w.began)
		close(w.finish)
		testkit.Eventually(t, "it is done", w.done.Load)
		end(w)
	}
	same := work(honest, p.Page, app) // another program's call at the same origin waits for one piece, and not for 50
	waits(51)
	for _, w := range waiting[1:] {
		end(w)
	}
	waits(2)
	end(bad)
	testkit.Eventually(t, "it ends with its call", bad.ended.Load)
	testkit.Receive(t, "the next piece of the same agent begins", waiting[0].began)
	close(waiting[0].finish)
	testkit.Receive(t, "then it is the other agent's turn", same.began)
	p.Close("its tab was closed")
	testkit.Eventually(t, "it ends with its page", same.ended.Load)
	testkit.Eventually(t, "its call has a result", same.done.Load)
	if bad.done.Load() {
		t.Error("a call that has ended has a result")
	}
	for _, w := range waiting[1:] {
		if len(w.began) > 0 {
			t.Error("a call has begun that nobody waits for")
		}
	}
	for _, w := range []*apartWork{waiting[0], same} {
		end(w)
	}
	testkit.Eventually(t, "no place is taken", func() bool {
		taken, waits := g.places.Held(apart)
		return taken+waits == 0
	})
}

// Whatever the pages of other origins have to be checked, an honest page's plain reads and calls wait for none of it. Its
// own work apart (a large difference, the check of a result) waits for what has begun, and for one piece of each of them.
func TestHonestReadsAmongWorkApart(t *testing.T) {
	for _, origins := range []int{1, 2, 5} {
		t.Run(strconv.Itoa(origins), func(t *testing.T) {
			g := newGateway(t, Options{PageChars: 1 << 20})
			large := func(n int) string { return strings.Repeat(fmt.Sprintln("line", n), 8000) }
			p := openPage(t, g, tabInfo("honest"), map[string]string{app + "/x": "1", app + "/large": large(1)})
			p.page.SetTool("plain", testkit.Tool{})
			p.page.SetTool("checked", testkit.Tool{Members: map[string]any{"outputSchema": map[string]any{"type": "object"}},
				Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
					return json.RawMessage(`{"structuredContent":{}}`)
				}})
			a := openAgent(t, g)
			a.hasTool("checked")
			since := fields(t, a.must(calls.Read, map[string]any{"uri": app + "/large"})).Revision
			p.set(app+"/large", large(1)+large(2))

			// Each of the others has many pieces, of many programs.
			began := make(chan *apartWork, 1000)
			var all []*apartWork
			id := bridge.CallID(1 << 30)
			for n := range 20 * origins {
				id++
				w := begins(g, id, connect(t, g, AgentOptions{}), nil, fmt.Sprintf("https://%d.example", n%origins))
				all = append(all, w)
				go func() {
					select {
					case <-w.began:
						began <- w
					case <-t.Context().Done():
					}
				}()
			}
			places := min(origins, apart.Places)
			waiting := func(n int) {
				t.Helper()
				testkit.Eventually(t, "they wait", func() bool {
					taken, waits := g.places.Held(apart)
					return taken == places && waits == n
				})
			}
			waiting(len(all) - places)

			a.CheckText(app+"/x", "1")
			a.must(calls.Read, map[string]any{"uri": app + "/x"})
			a.must("plain", nil)
			for name, args := range map[string]map[string]any{calls.Read: {"uri": app + "/large", "since": since}, "checked": nil} {
				answered := make(chan []string, 1)
				go func() { answered <- a.must(name, args) }()
				if places == apart.Places { // otherwise there is a place
					waiting(len(all) - places + 1)
					for range places + origins { // what has begun, and one piece of each
						w := testkit.Receive(t, "a piece begins", began)
						close(w.finish)
						testkit.Eventually(t, "it is done", w.done.Load)
						g.locked(func() { (*host)(g).End(w.id) })()
						all = slices.DeleteFunc(all, func(o *apartWork) bool { return o == w })
					}
				}
				texts := testkit.Receive(t, "it waits for one piece of each origin", answered)
				if name == calls.Read && fields(t, texts).Delta == "" {
					t.Errorf("the read makes no difference apart: %.200q", texts)
				}
			}
			for _, w := range all {
				g.locked(func() { (*host)(g).End(w.id) })()
			}
		})
	}
}

func newGateway(t *testing.T, o Options) *Gateway {
	t.Helper()
	if o.Grace == 0 {
		o.Grace = time.Hour // tests must not depend on the machine's speed
	}
	g := New(o)
	t.Cleanup(func() {
		g.Close()
		defer g.lock()()
		if s := g.engine.Stats(); s.Ports != 0 || s.Subscriptions != 0 || s.Calls != 0 {
			t.Errorf("left when the gateway is closed: %+v", s)
		}
	})
	return g
}

const app = "https://app.example"

func tabInfo(tab string) PageInfo {
	return PageInfo{Tab: tab, Origin: app, URL: app + "/", Title: "App " + tab, Transport: "test"}
}

func TestOnePage(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "one", app + "/item/{id}": "item of "})
	a := openAgent(t, g)
	if got := a.URIs(); !slices.Equal(got, []string{app + "/doc"}) {
		t.Fatalf("listed %v", got)
	}
	if got := a.Text(app + "/doc"); got != "one" {
		t.Errorf("read %q", got)
	}
	if got := a.Text(app + "/.pagewire/tab/1/doc"); got != "one" {
		t.Errorf("read by tab %q", got)
	}
	a.Watch(app + "/doc")
	if n := p.subscriptions(app + "/doc"); n != 1 {
		t.Fatalf("%d subscriptions at the page when the agent has its answer, want 1", n)
	}
	p.set(app+"/doc", "two")
	a.updated(app + "/doc")
	if got := a.Text(app + "/doc"); got != "two" {
		t.Errorf("read %q", got)
	}
	if got := p.page.Asked(); got != 1 {
		t.Errorf("the page was asked %d times to subscribe or unsubscribe, want 1", got)
	}
	if err := a.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: app + "/doc"}); err != nil {
		t.Fatal(err)
	}
	if n := p.subscriptions(app + "/doc"); n != 1 {
		t.Errorf("%d subscriptions at the page while an agent has read it, want 1: it is to be told what becomes of it",
			n)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the page's subscription ends", func() bool { return p.subscriptions(app+"/doc") == 0 })
}

func TestSameURIInTwoTabs(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p1 := openPage(t, g, tabInfo("a"), map[string]string{doc: "one"})
	a := openAgent(t, g)
	a.Watch(doc)
	p2 := openPage(t, g, tabInfo("b"), map[string]string{doc: "two"})
	a.updated(doc) // the tab that came last owns it
	if got := a.URIs(); !slices.Equal(got, []string{app + "/.pagewire/tab/1/doc", doc}) {
		t.Fatalf("listed %v", got)
	}
	g.Focus("a")
	a.updated(doc)
	if got := a.URIs(); !slices.Equal(got, []string{app + "/.pagewire/tab/2/doc", doc}) {
		t.Fatalf("listed %v", got)
	}
	for uri, want := range map[string]string{doc: "one", app + "/.pagewire/tab/1/doc": "one",
		app + "/.pagewire/tab/2/doc": "two"} {
		if got := a.Text(uri); got != want {
			t.Errorf("%s reads %q, want %q", uri, got, want)
		}
	}
	a.Watch(app + "/.pagewire/tab/2/doc")
	p1.set(doc, "one'")
	a.updated(doc)
	p2.set(doc, "two'")
	a.updated(app + "/.pagewire/tab/2/doc")
	g.Focus("b")
	a.updated(doc)
	p2.set(doc, "two''")
	a.updated(doc, app+"/.pagewire/tab/2/doc")
	g.Focus("a")
	a.updated(doc)
	testkit.Eventually(t, "nothing is subscribed twice", func() bool {
		return p1.subscriptions(doc) == 1 && p2.subscriptions(doc) == 1
	})
	g.CloseTab("a")
	a.updated(doc)
	if got := a.URIs(); !slices.Equal(got, []string{doc}) {
		t.Fatalf("listed %v", got)
	}
	if got := a.Text(doc); got != "two''" {
		t.Errorf("read %q", got)
	}
}

func TestReload(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p := openPage(t, g, tabInfo("a"), map[string]string{doc: "before"})
	a := openAgent(t, g)
	a.Watch(doc)
	p.crash()
	<-p.Done()
	if got := a.URIs(); !slices.Equal(got, []string{doc}) {
		t.Fatalf("during the reload %v are listed", got)
	}
	answer := make(chan string, 1)
	go func() { answer <- a.Text(doc) }()
	testkit.Eventually(t, "the reader waits", func() bool {
		defer g.lock()()
		return len(g.parked) == 1
	})
	p2 := openPage(t, g, tabInfo("a"), map[string]string{doc: "after"})
	if got := <-answer; got != "after" {
		t.Errorf("who waited read %q", got)
	}
	a.updated(doc)
	if n := p2.subscriptions(doc); n != 1 {
		t.Errorf("%d subscriptions at the new page, want 1", n)
	}
	p2.set(doc, "later")
	a.updated(doc)
	if p2.InTab.Number != 1 {
		t.Errorf("the tab is number %d after a reload", p2.InTab.Number)
	}
	select {
	case what := <-a.Lists:
		t.Errorf("%s list changed by a reload that changed nothing", what)
	default:
	}
}

// When a page comes back without its minUpdateInterval of an hour, or offers the resource anew
// without it, its changes are told to subscribers and counted for reminders, at the usual pace.
func TestShorterInterval(t *testing.T) {
	const doc = app + "/doc"
	for what, again := range map[string]func(*Gateway, *testPage) *testPage{
		"it is reloaded": func(g *Gateway, p *testPage) *testPage {
			p.crash()
			return openPage(t, g, tabInfo("a"), map[string]string{doc: "three"})
		},
		"it offers it anew": func(_ *Gateway, p *testPage) *testPage {
			p.page.Describe(doc, nil)
			p.offer(doc, "three")
			return p
		},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGateway(t, Options{})
			p := openPage(t, g, tabInfo("a"), nil)
			p.page.Describe(doc, map[string]any{"minUpdateInterval": 3_600_000})
			p.offer(doc, "one")
			a := openAgent(t, g)
			a.Watch(doc)
			a.must(calls.Read, map[string]any{"uri": doc})
			p.set(doc, "two")
			a.Told(doc)
			p.set(doc, "three") // which is held back
			revision := func() int64 {
				defer g.lock()()
				return g.books.Revision(doc)
			}
			before := revision()
			p = again(g, p)
			testkit.Eventually(t, "the change is counted", func() bool { return revision() > before })
			a.Learns(doc, "three")
			p.set(doc, "four")
			a.Learns(doc, "four")
		})
	}
}

// A reload in the tab that owns a URI is one change, not three.
func TestReloadInOneOfTwoTabs(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p1 := openPage(t, g, tabInfo("a"), map[string]string{doc: "one"})
	openPage(t, g, tabInfo("b"), map[string]string{doc: "two"})
	g.Focus("a")
	a := openAgent(t, g)
	a.Watch(doc)
	p1.crash()
	<-p1.Done()
	a.quiet()
	openPage(t, g, tabInfo("a"), map[string]string{doc: "one'"})
	a.updated(doc)
	if got := a.Text(doc); got != "one'" {
		t.Errorf("read %q", got)
	}
}

func TestPageThatDoesNotReturn(t *testing.T) {
	g := newGateway(t, Options{Grace: 50 * time.Millisecond})
	doc := app + "/doc"
	p := openPage(t, g, tabInfo("a"), map[string]string{doc: "before"})
	a := openAgent(t, g)
	a.Watch(doc)
	p.crash()
	<-p.Done()
	if _, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: doc}); err == nil {
		t.Error("a page that has gone answered")
	}
	testkit.Eventually(t, "the resource is gone", func() bool { return len(a.URIs()) == 0 })
	a.quiet()
	p2 := openPage(t, g, tabInfo("a"), map[string]string{doc: "after"})
	a.updated(doc)
	p2.set(doc, "later")
	a.updated(doc)
	if got := a.Text(doc); got != "later" {
		t.Errorf("read %q", got)
	}
}

// A busy browser takes seconds to start its extension's worker again. A tab that is closed goes at once, also meanwhile.
func TestPageWhoseExtensionIsAway(t *testing.T) {
	lost := func(_ *Gateway, p *Page) { p.Lost("a reload") }
	away := func(_ *Gateway, p *Page) { p.Away("the worker") }
	for name, test := range map[string]struct {
		end   func(*Gateway, *Page)
		stays time.Duration
	}{
		"a reload":          {lost, 2 * time.Second},
		"the worker's end":  {away, 10 * time.Second},
		"the page's end":    {func(_ *Gateway, p *Page) { p.Close("it is closed") }, 0},
		"and a closed tab":  {func(g *Gateway, p *Page) { away(g, p); g.CloseTab(p.Tab) }, 0},
		"a second way away": {func(g *Gateway, p *Page) { lost(g, p); away(g, p) }, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(Options{})
				defer g.Close()
				p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "text"})
				began := time.Now()
				test.end(g, p.Page)
				for len(g.Snapshot().Pages) > 0 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if stayed := time.Since(began); stayed != test.stays {
					t.Errorf("it stayed for %v, and not for %v", stayed, test.stays)
				}
			})
		})
	}
}

func TestForeignOriginsAreRefused(t *testing.T) {
	g := newGateway(t, Options{Deny: []string{"https://*.bad.example"}})
	openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x", "https://bank.example/balance": "0",
		app + ".evil.example/": "0", "test://fixed": "0"})
	a := openAgent(t, g)
	if got := a.URIs(); !slices.Equal(got, []string{app + "/doc"}) {
		t.Fatalf("listed %v", got)
	}
	if _, err := g.Attach(PageInfo{Tab: "b", Origin: "https://very.bad.example"}, func([]byte) {}); !errors.Is(err,
		ErrDenied) {
		t.Error("a denied origin was attached")
	}
}

func TestTemplates(t *testing.T) {
	g := newGateway(t, Options{})
	items := app + "/item{?q}"
	deep := app + "/{a}/{b}/{c}/{d}" // it matches the other tab's /.pagewire/tab/2/item, too
	p1 := openPage(t, g, tabInfo("a"), map[string]string{items: "1", deep: "deep"})
	openPage(t, g, tabInfo("b"), map[string]string{items: "2"})
	g.Focus("a")
	a := openAgent(t, g)
	var listed []string
	for r, err := range a.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, r.URITemplate)
	}
	slices.Sort(listed)
	if !slices.Equal(listed, []string{app + "/.pagewire/tab/2/item{?q}", items, deep}) {
		t.Fatalf("listed %v", listed)
	}
	if got := a.Text(app + "/item?q=x"); !strings.HasPrefix(got, "1") {
		t.Errorf("read %q", got)
	}
	for _, query := range []string{"", "?q=x"} {
		if got := a.Text(app + "/.pagewire/tab/2/item" + query); !strings.HasPrefix(got, "2") {
			t.Errorf("read %q", got)
		}
	}
	a.Watch(app + "/item?q=x")
	p1.set(app+"/item?q=x", "")
	a.updated(app + "/item?q=x")
}

func TestTools(t *testing.T) {
	g := newGateway(t, Options{})
	type args struct{ Text string }
	add := func(p *testPage, name, answer string) {
		p.page.SetTool(name, testkit.Tool{Run: func(_ context.Context, raw json.RawMessage, _ func(map[string]any)) any {
			var in args
			json.Unmarshal(raw, &in)
			return textResult(answer+in.Text, nil)
		}})
	}
	a := openAgent(t, g)
	own := []string{"list_page_resources", "page_changes", "read_page_resource", "wait_for_page_update"}
	if got := a.ToolNames(); !slices.Equal(got, own) {
		t.Fatalf("tools %v", got)
	}
	p1 := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x"})
	add(p1, "add", "first ")
	a.hasTool("add")
	p2 := openPage(t, g, PageInfo{Tab: "b", Origin: "https://other.example", Title: "Other"}, map[string]string{})
	add(p2, "add", "second ")
	add(p2, "read_page_resource", "not ours ")
	add(p2, "read_it", "its own ")
	testkit.Eventually(t, "both are there, and none that looks like ours", func() bool {
		return slices.Equal(a.ToolNames(), append(slices.Clip(own), "add", "add_other_example", "read_it"))
	})
	for name, want := range map[string]string{"add": "first !", "add_tab1": "first !", "add_other_example": "second !",
		"read_it": "its own !"} {
		if got, failed := a.tool(name, args{"!"}); failed || got[0] != want {
			t.Errorf("%s answers %q", name, got)
		}
	}
	g.CloseTab("a")
	testkit.Eventually(t, "the first is gone", func() bool {
		return slices.Equal(a.ToolNames(), append(slices.Clip(own), "add_other_example", "read_it"))
	})
}

// A notice of a fault is in the list for agents until it is removed.
func TestNotices(t *testing.T) {
	g := newGateway(t, Options{})
	a := openAgent(t, g)
	note := func() string {
		texts, _ := a.tool("list_page_resources", struct{}{})
		var list struct{ Note string }
		if err := json.Unmarshal([]byte(texts[0]), &list); err != nil {
			t.Fatal(err)
		}
		return list.Note
	}
	before := note()
	g.Notice("port", "Something else has the port.")
	g.Notice("disk", "It is full.")
	if got := note(); got != before+" It is full. Something else has the port." {
		t.Errorf("it is said %q", got)
	}
	g.Notice("disk", "")
	g.Notice("port", "")
	if got := note(); got != before {
		t.Errorf("then it is said %q", got)
	}
}

// A change of a template is a change of each URI for which it answers, also of URIs under its tab's path.
func TestChangeOfATemplate(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/item/{id}": ""})
	a := openAgent(t, g)
	of := func(own string) string { return strings.Replace(own, app, app+"/.pagewire/tab/1", 1) }
	a.Watch(app+"/item/7", of(app+"/item/8"))
	p.page.Touch(app + "/item/{id}")
	a.Told(app+"/item/7", of(app+"/item/8"))
}

// A read that began before a change does not answer an agent that begins to watch after it, even if the page's report
// of the change crosses the gateway's request to watch.
func TestWatchDuringARead(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p := openPage(t, g, tabInfo("a"), nil)
	var state atomic.Value
	state.Store("one")
	begun, end := make(chan string, 10), make(chan struct{})
	p.page.Add(doc, func(context.Context, string) (string, error) {
		text := state.Load().(string)
		begun <- text
		if text == "one" {
			<-end
		}
		return text, nil
	})
	p.page.HoldWatch = make(chan struct{})
	request := AgentOptions{Transport: TransportRequest}
	first, _ := openAgentWith(t, g, request)
	second, _ := openAgentWith(t, g, request)
	answers := make(chan string, 2)
	go func() { answers <- first.Text(doc) }()
	testkit.Receive(t, "the first read has begun", begun)
	watching := make(chan bool, 1)
	go func() { second.Watch(doc); watching <- true }()
	testkit.Eventually(t, "the page is asked", func() bool { return p.subscriptions(doc) == 1 })
	state.Store("two")
	p.page.Touch(doc) // sent because of the read, but taken for the pending answer to watched
	testkit.Receive(t, "it watches", watching)
	calls := g.Snapshot().Reads
	go func() { answers <- second.Text(doc) }()
	if text := testkit.Receive(t, "it is answered while the first read goes on", answers); text != "two" {
		t.Errorf("it reads %q", text)
	}
	close(p.page.HoldWatch)
	close(end)
	if text := testkit.Receive(t, "the first read has ended", answers); text != "one" || g.Snapshot().Reads != calls+1 {
		t.Errorf("the first reads %q", text)
	}
}

// A change between the agent's subscription and that at the page must not be lost. So the agent's answer waits for the
// page's answer.
func TestSubscribeWaitsForThePage(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p := openPage(t, g, tabInfo("a"), map[string]string{doc: "one"})
	p.page.HoldWatch = make(chan struct{})
	var agents []*testAgent
	for range 5 {
		agents = append(agents, openAgent(t, g))
	}
	var all sync.WaitGroup
	var answered atomic.Bool
	for _, a := range agents {
		all.Go(func() {
			a.Watch(doc)
			if !answered.Load() || p.subscriptions(doc) != 1 {
				t.Errorf("%d subscriptions at the page", p.subscriptions(doc))
			}
		})
	}
	testkit.Eventually(t, "the page is asked", func() bool { return p.subscriptions(doc) == 1 })
	answered.Store(true)
	close(p.page.HoldWatch)
	all.Wait()
	p.set(doc, "two")
	for _, a := range agents {
		a.updated(doc)
		a.Close()
	}
	testkit.Eventually(t, "the page's subscription ends with the last agent", func() bool {
		return p.subscriptions(doc) == 0
	})
}

// A page is no longer asked for changes of a resource or template that it has withdrawn. When it offers that again, it
// is asked again, and the agent gets an update.
func TestWatchOfWhatIsWithdrawn(t *testing.T) {
	for offered, doc := range map[string]string{app + "/doc": app + "/doc", app + "/{name}": app + "/any"} {
		g := newGateway(t, Options{})
		p := openPage(t, g, tabInfo("a"), map[string]string{offered: "one"})
		a := openAgent(t, g)
		a.Watch(doc)
		p.page.Withdraw(offered)
		testkit.Eventually(t, "the page's subscription ends", func() bool { return p.subscriptions(doc) == 0 })
		p.offer(offered, "two")
		a.updated(doc)
		testkit.Eventually(t, "the page is asked again", func() bool { return p.subscriptions(doc) == 1 })
	}
}

func TestSnapshotCounts(t *testing.T) {
	g := newGateway(t, Options{})
	doc := app + "/doc"
	p := openPage(t, g, tabInfo("a"), map[string]string{doc: "one"})
	a := openAgent(t, g)
	a.Watch(doc)
	p.set(doc, "two")
	a.updated(doc)
	a.Text(doc)
	if texts, failed := a.tool("read_page_resource", map[string]string{"uri": doc}); failed {
		t.Fatal(texts)
	}
	s := g.Snapshot()
	if s.Reads != 2 || s.Updates != 1 || s.ToolCalls != 1 {
		t.Errorf("%d reads, %d updates, %d tool calls; want 2, 1, 1", s.Reads, s.Updates, s.ToolCalls)
	}
	if s.Latency.Count != 2 || s.Latency.Seconds <= 0 || s.Latency.Buckets()[30] != 2 {
		t.Errorf("latency of two reads: %+v", s.Latency)
	}
	if want := []WatchState{{doc, 1}}; !slices.Equal(s.Watched, want) {
		t.Errorf("watched: %v, want %v", s.Watched, want)
	}
	if len(s.Agents) != 1 || s.Agents[0].Name != "agent" || s.Agents[0].Transport != "test" {
		t.Errorf("agents: %v", s.Agents)
	}
	var got []Way
	for _, p := range s.Passed {
		got = append(got, p.Way)
		if p.Messages < 4 || p.Bytes < 160 { // some are "[]", and how many depends on the time
			t.Errorf("%s: %d messages in %d bytes", p.Way, p.Messages, p.Bytes)
		}
	}
	if want := []Way{FromAgent, ToPage, FromPage, ToAgent}; !slices.Equal(got, want) {
		t.Errorf("passed: %v, want %v", got, want)
	}
}

func TestAgentsSayTheirNames(t *testing.T) {
	for message, want := range map[string]string{
		`{"method":"initialize","params":{"clientInfo":{"name":"C","version":"1"}}}`:                                   "C",
		`{"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"M","version":"1"}}}}`: "M",
		`{"method":"tools/call","params":{"arguments":{"clientInfo":{"name":"no"}}}}`:                                  "",
		`{"params":{"clientInfo":{"name":"` + strings.Repeat("é", 200) +
			`"}}}`: strings.Repeat("é", 100),
		`{"params":{"clientInfo":{"name":7}}}`: "",
		`{"params":{"clientInfo":`:             "",
		`{"params":{"clientInfo":{"name":"C"},"x":"` + strings.Repeat("x", 64<<10) +
			`"}}`: "",
	} {
		if got, _ := agentName([]byte(message)); got != want {
			t.Errorf("agentName(%.80s) = %q, want %q", message, got, want)
		}
	}
}

func TestClosedGateway(t *testing.T) {
	g := New(Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "x"})
	p.page.Hold = make(chan struct{})
	defer close(p.page.Hold)
	a := openAgent(t, g)
	failed := make(chan error, 1)
	go func() {
		_, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: app + "/doc"})
		failed <- err
	}()
	testkit.Eventually(t, "the read is under way", func() bool {
		defer g.lock()()
		return len(g.calls) == 1
	})
	g.Close()
	if err := <-failed; err == nil {
		t.Error("a read outlived the gateway")
	}
	if _, err := g.Connect("test"); err != ErrClosed {
		t.Errorf("Connect: %v", err)
	}
}

// Close returns when no goroutine of a call can use the gateway any more.
func TestCloseWaitsForCalls(t *testing.T) {
	g := newGateway(t, Options{})
	c := g.newToolCall(&call{id: 1 << 30, agent: connect(t, g, AgentOptions{})})
	ended := make(chan bool, 1)
	returned := false // the lock guards it
	g.locked(func() {
		g.calls[c.id] = c.call
		c.start(func(ctx context.Context) {
			c.Without(func() { <-ctx.Done() })
			returned = true
		})
	})()
	go func() {
		g.Close()
		defer g.lock()()
		ended <- returned
	}()
	testkit.Eventually(t, "it is closed", func() bool {
		_, err := g.Connect("test")
		return err == ErrClosed
	})
	if len(ended) > 0 {
		t.Error("Close has not waited")
	}
	g.locked(func() { (*host)(g).End(c.id) })()
	if !testkit.Receive(t, "Close returns", ended) {
		t.Error("a call goes on after Close")
	}
}

// A page may go before its result has been checked. The tool has run, so the agent gets the result, as text
// that says so.
func TestPageThatGoesBeforeItsResultIsChecked(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/x": "1"})
	p.page.SetTool("order", testkit.Tool{Members: map[string]any{"outputSchema": map[string]any{"type": "object"}},
		Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
			return map[string]any{"content": []any{}, "structuredContent": map[string]any{"ordered": 1}}
		}})
	a := openAgent(t, g)
	a.hasTool("order")
	busy := begins(g, 1<<30, connect(t, g, AgentOptions{}), nil, app) // the origin's place is taken
	testkit.Receive(t, "it has begun", busy.began)
	type result struct {
		texts   []string
		isError bool
	}
	got := make(chan result, 1)
	go func() {
		texts, isError := a.tool("order", nil)
		got <- result{texts, isError}
	}()
	testkit.Eventually(t, "the result waits for its check", func() bool {
		_, waiting := g.places.Held(apart)
		return waiting == 1
	})
	p.Close("its tab was closed")
	close(busy.finish)
	if r := testkit.Receive(t, "the call is answered", got); !slices.Equal(r.texts, []string{`{"ordered":1}`, unfit}) {
		t.Errorf("it is answered %+v", r)
	}
	g.locked(func() { (*host)(g).End(busy.id) })()
}
