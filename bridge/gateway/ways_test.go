package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// wayInfos describe one document as each transport does, best transport first.
var wayInfos = []PageInfo{
	{Tab: "cdp:T", Origin: app, URL: app + "/", Title: "App", Transport: "cdp", Browser: "Chrome", Window: "cdp:W"},
	{Tab: "page " + app + " name", Origin: app, URL: app + "/", Title: "App", Transport: "extension", Browser: "Chrome",
		Window: "window", Profile: "Work"},
	{Tab: "page " + app + " id", Origin: app, URL: app + "/", Title: "App", Transport: "websocket", Browser: "Chrome"},
}

// openWay connects a document to a gateway, in one of its ways.
func openWay(t *testing.T, g *Gateway, info PageInfo, epoch string, state map[string]string) *testPage {
	t.Helper()
	p := &testPage{t: t, page: testkit.NewPage(t, state)}
	p.page.Epoch(epoch)
	p.attach(g, info)
	return p
}

func pagesOf(g *Gateway) (list []string) {
	for _, p := range g.Snapshot().Pages {
		list = append(list, fmt.Sprintf("tab %d by %s", p.Number, p.Transport))
	}
	return list
}

func (a *testAgent) titles() (list []string) {
	for r, err := range a.Resources(a.t.Context(), nil) {
		if err != nil {
			a.t.Fatal(err)
		}
		list = append(list, r.URI+" "+r.Title)
	}
	return list
}

// A document that connects in two ways is one page, and stays it when a way ends: the agent's list does not change, its
// subscription is told of each change once, its read is answered, and its tool call runs once.
func TestPairsOfWays(t *testing.T) {
	doc := app + "/doc"
	for i, first := range wayInfos {
		for j, second := range wayInfos {
			for _, ends := range []string{"first", "second", "both"} {
				if i == j {
					continue // TestSameTransport
				}
				t.Run(first.Transport+" and "+second.Transport+", "+ends+" ends", func(t *testing.T) {
					g := newGateway(t, Options{})
					ran := make(chan bool, 10)
					open := func(info PageInfo) *testPage {
						p := &testPage{t: t, page: testkit.NewPage(t, map[string]string{doc: "1"})}
						p.page.Epoch("document")
						p.page.SetTool("pay", testkit.Tool{Run: func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
							ran <- true
							<-ctx.Done()
							return textResult("paid", nil)
						}})
						p.attach(g, info)
						return p
					}
					ways := []*testPage{open(first)}
					a := openAgent(t, g)
					a.Watch(doc)
					ways = append(ways, open(second))
					best := 0
					if j < i {
						best = 1
					}
					used, other := ways[best], ways[1-best]
					set := func(text string) {
						for _, w := range ways {
							w.set(doc, text)
						}
					}
					testkit.Eventually(t, "the best way alone is asked to report changes", func() bool {
						return used.subscriptions(doc) == 1 && other.subscriptions(doc) == 0
					})
					if got, want := pagesOf(g), []string{"tab 1 by " + wayInfos[min(i, j)].Transport}; !slices.Equal(got, want) {
						t.Errorf("the pages are %q, want %q", got, want)
					}
					a.hasTool("pay")
					names := a.ToolNames()
					if n := strings.Count(strings.Join(names, " "), "pay"); n != 1 {
						t.Errorf("the tools are %q", names)
					}
					listed := a.titles()
					if len(listed) != 1 {
						t.Errorf("the list is %q", listed)
					}
					set("2")
					a.updated(doc)
					for len(a.Lists) > 0 {
						<-a.Lists // the second way may have known the window
					}
					read, called := make(chan string, 1), make(chan error, 1)
					go func() {
						_, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{}})
						called <- err
					}()
					testkit.Receive(t, "the tool runs", ran)
					used.page.Hold = make(chan struct{})
					go func() { read <- a.Text(doc) }()
					testkit.Eventually(t, "the way in use is asked", func() bool { return used.page.Running() == 2 })
					ended := map[string][]*testPage{"first": ways[:1], "second": ways[1:], "both": ways}[ends]
					for _, w := range ended {
						w.crash()
						<-w.Done()
					}
					left := slices.DeleteFunc(slices.Clone(ways), func(w *testPage) bool { return slices.Contains(ended, w) })
					if len(left) == 0 {
						left = append(left, openWay(t, g, first, "next", map[string]string{doc: "2"}),
							openWay(t, g, second, "next", map[string]string{doc: "2"}))
						left = []*testPage{left[best]}
						a.Told(doc) // another document may read differently
					} else if left[0] == used {
						used.page.Hold <- struct{}{}
					}
					if text := testkit.Receive(t, "the read is answered", read); text != "2" {
						t.Errorf("the read gave %q", text)
					}
					if slices.Contains(ended, used) {
						if err := testkit.Receive(t, "the call is answered", called); err == nil || !strings.Contains(err.Error(), "the page went away before it answered") {
							t.Errorf("the call ended with %v", err)
						}
					}
					if len(ran) > 0 {
						t.Error("the tool has run twice")
					}
					for _, w := range left {
						w.page.Hold = nil
						testkit.Eventually(t, "the way that is left is used", func() bool { return w.subscriptions(doc) == 1 })
						a.quiet()
						w.set(doc, "3")
						a.updated(doc)
						a.CheckText(doc, "3")
					}
					if now := a.titles(); ends != "both" && !slices.Equal(now, listed) || len(now) != 1 {
						t.Errorf("the list is %q, and was %q", now, listed)
					}
					if ends != "both" && len(a.Lists) > 0 {
						t.Errorf("the agent is told of another list: %v", <-a.Lists)
					}
				})
			}
		}
	}
}

// What a way has offered while another was in use counts as soon as it is used.
func TestReserveHasAllOffers(t *testing.T) {
	g := newGateway(t, Options{})
	a, b, c := app+"/a", app+"/b", app+"/c"
	ways := []*testPage{openWay(t, g, wayInfos[0], "e", map[string]string{a: "1", b: "1"}),
		openWay(t, g, wayInfos[2], "e", map[string]string{a: "1", b: "1"})}
	agent := openAgent(t, g)
	ways[1].page.Withdraw(a) // the document does so at both, and one ends before its frames have come
	ways[1].page.Offer(c, "1")
	ways[1].page.SetTool("pay", testkit.Tool{})
	agent.Shows(a, b)
	ways[0].crash()
	agent.Shows(b, c)
	agent.hasTool("pay")
	again := openWay(t, g, wayInfos[0], "e", map[string]string{b: "1", c: "1"})
	testkit.Eventually(t, "it is used again", func() bool { return pagesOf(g)[0] == "tab 1 by cdp" })
	ways[1].page.Offer(a, "1")
	agent.Shows(b, c)
	if again.page.Offer(a, "1"); g.Snapshot().Descriptors > 300 {
		t.Errorf("the descriptors have %d bytes: those of a reserve count", g.Snapshot().Descriptors)
	}
	agent.Shows(a, b, c)
}

// Whoever repeats the id of a document is not taken for it, unless all that the transports know agrees.
func TestSameEpochIsNotEnough(t *testing.T) {
	cdp, ext, ws := wayInfos[0], wayInfos[1], wayInfos[2]
	with := func(info PageInfo, change func(*PageInfo)) PageInfo { change(&info); return info }
	private := with(ext, func(i *PageInfo) { i.Profile, i.Tab = "Private", "page "+app+" other" })
	for name, c := range map[string]struct {
		ways []PageInfo
		want int
	}{
		"another origin":                  {[]PageInfo{cdp, with(ws, func(i *PageInfo) { i.Origin = "https://evil.example" })}, 2},
		"another profile":                 {[]PageInfo{ext, private}, 2},
		"a socket beside its own":         {[]PageInfo{ws, with(ws, func(i *PageInfo) { i.Tab += "2" })}, 2},
		"a frame of the same tab":         {[]PageInfo{cdp, with(cdp, func(i *PageInfo) { i.Frame = "F" })}, 2},
		"a socket beside a document's":    {[]PageInfo{cdp, ws, with(ws, func(i *PageInfo) { i.Tab += "2" })}, 2},
		"no profile, and two may be":      {[]PageInfo{ext, private, ws}, 3},
		"a browser of a known profile":    {[]PageInfo{with(cdp, func(i *PageInfo) { i.Profile = "Private" }), ext}, 2},
		"all three ways":                  {[]PageInfo{ws, ext, cdp}, 1},
		"the same place, once more":       {[]PageInfo{ws, ws, cdp, cdp, ext, ext}, 1},
		"no profile, and then the others": {[]PageInfo{ws, ext, private}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			for _, info := range c.ways {
				openWay(t, g, info, "e", map[string]string{info.Origin + "/doc": "1"})
			}
			if got := pagesOf(g); len(got) != c.want {
				t.Errorf("the pages are %q, want %d", got, c.want)
			}
		})
	}
}

// If one way vouches for a profile, the page has it, also when that way has ended. If two vouch for different ones, no
// agent that is limited to profiles sees the page.
func TestProfileOfADocument(t *testing.T) {
	doc := app + "/doc"
	state := map[string]string{doc: "1"}
	cdp := wayInfos[0]
	cdp.Source = "browser"
	for i := range 2 {
		g := newGateway(t, Options{})
		agents := map[string]*testAgent{}
		for _, profile := range []string{"Work", "Private"} {
			agents[profile], _ = openAgentWith(t, g, AgentOptions{Only: []string{ProfilePrefix + profile}})
		}
		all := openAgent(t, g)
		see := func(want ...string) {
			t.Helper()
			for profile, a := range agents {
				if got := len(a.URIs()) > 0; got != slices.Contains(want, profile) {
					t.Errorf("an agent of %s sees it: %v", profile, got)
				}
			}
			all.Shows(doc)
		}
		unknown := []PageInfo{cdp, wayInfos[2]}[i]
		openWay(t, g, unknown, "e", state)
		see()
		known := openWay(t, g, wayInfos[1], "e", state)
		see("Work")
		known.crash()
		see("Work")
		if openWay(t, g, wayInfos[1], "e", state); i == 0 {
			release := g.NameProfile("browser", "Private")
			see()
			release()
			see("Work")
		}
	}
}

// Each way's key of a tab is the tab's: for its focus, its end, and the documents that follow in it.
func TestKeysOfATab(t *testing.T) {
	doc := app + "/doc"
	for _, key := range []string{wayInfos[0].Tab, wayInfos[1].Tab, wayInfos[2].Tab} {
		g := newGateway(t, Options{})
		for _, info := range []PageInfo{wayInfos[2], wayInfos[0], wayInfos[1]} {
			openWay(t, g, info, "e", map[string]string{doc: "1"})
		}
		openPage(t, g, tabInfo("b"), map[string]string{doc: "2"})
		a := openAgent(t, g)
		g.Focus("b")
		a.Shows(taburiOf(1), doc)
		g.Focus(key)
		a.Shows(doc, taburiOf(2))
		if got := g.Snapshot().Pages[0].Key; got != wayInfos[1].Tab {
			t.Errorf("the extension's key of the tab is %q", got)
		}
		next := wayInfos[1]
		next.Tab = key
		p := openWay(t, g, next, "next", map[string]string{app + "/next": "1"})
		if p.InTab.Number != 1 {
			t.Errorf("the next document is in tab %d", p.InTab.Number)
		}
		if g.CloseTab(key); len(pagesOf(g)) != 1 {
			t.Errorf("after the end of the tab there are %q", pagesOf(g))
		}
		a.Shows(doc)
	}
}

func taburiOf(tab int) string { return fmt.Sprint(app, "/.pagewire/tab/", tab, "/doc") }

// restored gives a gateway the snapshot of another.
func restored(t *testing.T, to, from *Gateway) {
	t.Helper()
	var snapshot []byte
	from.locked(func() { snapshot = from.handover() })()
	to.locked(func() { testkit.OK(t, to.restore(snapshot)) })()
}

// After a daemon's end the tab has its number again, whichever way comes first, and no list waits for the others.
func TestKeysOfATabInASnapshot(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		before, after := newGateway(t, Options{}), newGateway(t, Options{})
		openPage(t, before, tabInfo("b"), map[string]string{app + "/b": "1"})
		for _, i := range order {
			openWay(t, before, wayInfos[i], "e", map[string]string{app + "/doc": "1"})
		}
		for range 2 { // another agent brings the same
			restored(t, after, before)
		}
		for _, i := range []int{2, 0} {
			if openWay(t, after, wayInfos[i], "e", map[string]string{app + "/doc": "1"}); pagesOf(after)[0][:5] != "tab 2" {
				t.Errorf("in the order %v it is %q", order, pagesOf(after))
			}
		}
		openPage(t, after, tabInfo("b"), map[string]string{app + "/b": "1"})
		_, last := after.catalog.TabNumbers()
		if left := awaitedTabs(after); left != 0 || last != 2 {
			t.Errorf("%d tabs are waited for, and the last number is %d", left, last)
		}
	}
}

// A tab that is back is so by each of its keys: a frame that only CDP sees is in it before CDP has its document, and the
// next snapshot has its rank.
func TestKeysOfATabThatIsBack(t *testing.T) {
	doc := app + "/doc"
	before, after := newGateway(t, Options{}), newGateway(t, Options{})
	both := []PageInfo{wayInfos[2], wayInfos[0]}
	for _, info := range both {
		openWay(t, before, info, "e", map[string]string{doc: "1"})
	}
	openPage(t, before, tabInfo("b"), map[string]string{doc: "2"})
	before.Focus("b")
	before.Focus(both[1].Tab)
	restored(t, after, before)
	openWay(t, after, both[0], "e", map[string]string{doc: "1"})
	openPage(t, after, tabInfo("b"), map[string]string{doc: "2"})
	last := newGateway(t, Options{})
	restored(t, last, after)
	openWay(t, last, both[0], "e", map[string]string{doc: "1"})
	openPage(t, last, tabInfo("b"), map[string]string{doc: "2"})
	openAgent(t, last).Shows(doc, taburiOf(2))

	frame := both[1]
	frame.Frame, frame.Origin, frame.URL = "F", "https://frame.example", "https://frame.example/"
	openWay(t, after, frame, "f", map[string]string{frame.Origin + "/doc": "1"})
	openWay(t, after, both[1], "e", map[string]string{doc: "1"})
	after.CloseTab(both[1].Tab)
	if got := pagesOf(after); len(got) != 1 {
		t.Errorf("after the end of the tab there are %q", got)
	}
}

// A document without our page layer has tools alone, by CDP, and no id. When the layer comes by WebSocket, CDP is asked
// to look for it, ends that page and begins a link: the tools are listed once.
func TestLayerThatComesLate(t *testing.T) {
	g := newGateway(t, Options{})
	looks := make(lateRunner, 10)
	bare, err := g.AttachTools(wayInfos[0], looks)
	if err != nil {
		t.Fatal(err)
	}
	tool := bridge.Tool{Name: "pay", JSON: []byte(`{"name":"pay","inputSchema":{"type":"object"}}`)}
	if err := bare.SetTools([]bridge.Tool{tool}); err != nil {
		t.Fatal(err)
	}
	a := openAgent(t, g)
	a.hasTool("pay")
	for _, info := range []PageInfo{wayInfos[2], wayInfos[0]} {
		p := &testPage{t: t, page: testkit.NewPage(t, nil)}
		p.page.Epoch("e")
		p.page.SetTool("pay", testkit.Tool{})
		p.attach(g, info)
		if info.Transport == "websocket" {
			testkit.Receive(t, "CDP is asked to look", looks)
			bare.Lost("its document has the page layer now")
		}
	}
	testkit.Eventually(t, "the tool is there once", func() bool {
		return strings.Count(strings.Join(a.ToolNames(), " "), "pay") == 1
	})
	a.hasTool("pay")
	if got := pagesOf(g); len(got) != 1 || len(looks) > 0 {
		t.Errorf("the pages are %q, and CDP is asked %d times more", got, len(looks))
	}
}

type lateRunner chan bool

func (r lateRunner) Look() { r <- true }

func (lateRunner) Report(string) {}

func (lateRunner) RunTool(string, []byte, func(), func([]byte, bool)) func() { return func() {} }

// A way that ends with its first words is never used.
func TestWayThatEndsAtOnce(t *testing.T) {
	doc := app + "/doc"
	g := newGateway(t, Options{})
	openWay(t, g, wayInfos[2], "e", map[string]string{doc: "1"})
	better, err := g.Attach(wayInfos[0], func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range []string{`[["hello",1,"0",{"epoch":"e"}]]`, `[["bye",false]]`} {
		if err := better.Receive([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	if got := pagesOf(g); !slices.Equal(got, []string{"tab 1 by websocket"}) {
		t.Errorf("the pages are %q", got)
	}
	openAgent(t, g).CheckText(doc, "1")
}

// A title that came over a reserve is not lost if the way in use ends before it has said the same.
func TestTitleOverAReserve(t *testing.T) {
	g := newGateway(t, Options{})
	ways := []*testPage{openWay(t, g, wayInfos[0], "e", map[string]string{app + "/doc": "1"}),
		openWay(t, g, wayInfos[2], "e", map[string]string{app + "/doc": "1"})}
	ways[1].page.Post(`[["note",{"title":"Cart"}]]`)
	ways[0].crash()
	if got := g.Snapshot().Pages[0].Title; got != "Cart" {
		t.Errorf("the title is %q", got)
	}
}

// A document has said what it offers when agents can see it, not when one of its ways has.
func TestSettledInTwoWays(t *testing.T) {
	g := newGateway(t, Options{})
	ways := []*testPage{openWay(t, g, wayInfos[0], "e", map[string]string{app + "/doc": "1"}),
		openWay(t, g, wayInfos[1], "e", map[string]string{app + "/doc": "1"})}
	settled := func() []bool { return []bool{ways[0].Settled(), ways[1].Settled()} }
	ways[1].page.SetTool("pay", testkit.Tool{})
	if got := settled(); got[0] || got[1] {
		t.Errorf("before agents see its tool it is settled: %v", got)
	}
	ways[0].page.SetTool("pay", testkit.Tool{})
	if got := settled(); !got[0] || !got[1] {
		t.Errorf("when agents see its tool it is settled: %v", got)
	}
}

// A tab that had the focus before its document came is focused, whichever of its keys was named.
func TestFocusBeforeAWayComes(t *testing.T) {
	doc := app + "/doc"
	for _, attaching := range []bool{false, true} { // the way itself says so, or its browser
		g := newGateway(t, Options{})
		openWay(t, g, wayInfos[2], "e", map[string]string{doc: "1"})
		openPage(t, g, tabInfo("b"), map[string]string{doc: "2"})
		a := openAgent(t, g)
		g.Focus("b")
		a.Shows(taburiOf(1), doc)
		info := wayInfos[0]
		if attaching {
			info.Focused = time.Now().UnixMilli() + 1000
		} else {
			g.Focus(info.Tab)
		}
		openWay(t, g, info, "e", map[string]string{doc: "1"})
		a.Shows(doc, taburiOf(2))
		g.locked(func() {
			if next := g.catalog.FocusAwaited(); next != "" {
				t.Errorf("%q is still awaited", next)
			}
		})()
	}
}
