package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A frame that falls due after the last Take is left to the timer, because the sending goroutine has gone.
func TestFrameThatFallsDueAtTheEnd(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	l := p.link
	defer g.lock()()
	l.late.Stop()
	l.late = time.AfterFunc(time.Hour, func() {}) // the timer sends nothing during the test
	for range 50 {
		g.mu.Release()
		if err := p.Receive([]byte(`[["touch","` + app + `/doc",1]]`)); err != nil { // answered in 10 ms
			t.Fatal(err)
		}
		g.mu.Lock()
		for waits := true; waits; _, waits = l.peer.Deadline() {
			l.sending = true
			g.mu.Release()
			_, ok := g.nextFrame(l)
			g.mu.Lock()
			if !ok && l.sending {
				t.Fatal("it is said to be sent, and nobody sends it")
			}
		}
		l.sending = false
	}
}

// All agents share one link with a page, which gets at most 64 requests at once. The others wait. A request that is
// cancelled while it waits never reaches the page.
func TestMoreReadsThanAPageTakes(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	p.page.Hold = make(chan struct{})
	reading := make(chan string, 1000)
	p.page.OnRead = func(uri string) { reading <- uri }
	p.page.Add(app+"/echo/{x}", func(_ context.Context, uri string) (string, error) {
		return strings.TrimPrefix(uri, app+"/echo/"), nil
	})
	a := openAgent(t, g)
	const asked = 64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			want := fmt.Sprint(i)
			if got := a.Text(app + "/echo/" + want); got != want {
				t.Errorf("read %q, want %q", got, want)
			}
		})
	}
	for range asked {
		testkit.Receive(t, "the page is asked", reading)
	}
	// These are cancelled while they wait.
	ctx, giveUp := context.WithCancel(t.Context())
	var given sync.WaitGroup
	for i := range 20 {
		given.Go(func() {
			a.ReadResource(ctx, &mcp.ReadResourceParams{URI: fmt.Sprint(app, "/echo/gone", i)})
		})
	}
	testkit.Eventually(t, "all wait", func() bool { return g.Snapshot().Stats.Calls == 220 })
	if n := p.page.Running(); n != asked || len(reading) != 0 {
		t.Errorf("the page is at work on %d, and has been asked %d more", n, len(reading))
	}
	giveUp()
	given.Wait()
	testkit.Eventually(t, "they have been given up", func() bool { return g.Snapshot().Stats.Calls == 200 })
	close(p.page.Hold)
	all.Wait()
	for len(reading) > 0 {
		if uri := <-reading; strings.Contains(uri, "gone") {
			t.Errorf("the page was asked for %s, for which nobody waits", uri)
		}
	}
}

// A frame that a transport refuses ends the page like a frame that the gateway refuses: the page and its readers get
// the reason, and it is counted.
func TestPageThatATransportRefuses(t *testing.T) {
	const why = "a message is too long; the limit is 7 bytes"
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "one"})
	p.page.Hold = make(chan struct{})
	reading := make(chan string, 1)
	p.page.OnRead = func(uri string) { reading <- uri }
	a := openAgent(t, g)
	answered := make(chan error, 1)
	go func() {
		_, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: app + "/doc"})
		answered <- err
	}()
	testkit.Receive(t, "the page is asked", reading)
	p.Refuse(why)
	p.Refuse(why) // the page has ended already
	if err := testkit.Receive(t, "the reader is answered", answered); err == nil ||
		!strings.Contains(err.Error()+dataOf(err), why) {
		t.Errorf("the reader is told %v", err)
	}
	g.CountRefused("before it was a page")
	if s := g.Snapshot(); s.Ended[why] != 1 || s.Ended["before it was a page"] != 1 || len(s.Pages) != 0 ||
		p.page.Refusal() != why {
		t.Errorf("counted are %v, there are %d pages, and the page was told %q", s.Ended, len(s.Pages),
			p.page.Refusal())
	}
}

// A tool's progress arrives before its result and in order. No other page can send it.
func TestProgress(t *testing.T) {
	g := newGateway(t, Options{})
	started, go1 := make(chan bool), make(chan bool)
	a, b := openPage(t, g, tabInfo("A"), nil), openPage(t, g, tabInfo("B"), nil)
	a.page.SetTool("workA",
		testkit.Tool{Run: func(_ context.Context, _ json.RawMessage, progress func(map[string]any)) any {
			started <- true
			<-go1
			for n := range 10 {
				progress(map[string]any{"progress": n})
			}
			return map[string]any{"content": []any{}}
		}})
	b.page.SetTool("workB", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
		<-started
		// The ids of other pages' calls.
		for id := range 50 {
			if id != 1 {
				b.page.Post(fmt.Sprintf(`[["progress",%d,"{\"progress\":100}"]]`, 1000+id))
			}
		}
		go1 <- true
		return map[string]any{"content": []any{}}
	}})
	port := connect(t, g, AgentOptions{})
	port.Write(t.Context(),
		[]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
	if _, err := port.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		port.Write(t.Context(),
			fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":"a%d","method":"tools/call","params":{"name":"workA","_meta":{"progressToken":"t"}}}`, round))
		port.Write(t.Context(),
			fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":"b%d","method":"tools/call","params":{"name":"workB","_meta":{"progressToken":"u"}}}`, round))
		var said []string
		for answers := 0; answers < 2; {
			text, err := port.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     string
				Params struct{ Progress int }
			}
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasPrefix(m.ID, "a"):
				said = append(said, "result")
				answers++
			case m.ID != "":
				answers++
			default:
				said = append(said, fmt.Sprint(m.Params.Progress))
			}
		}
		if got := strings.Join(said, " "); got != "0 1 2 3 4 5 6 7 8 9 result" {
			t.Errorf("round %d: %s", round, got)
		}
	}
}

// A page that offers nothing has no tab, and is in no list.
func TestPageThatOffersNothing(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	if n := len(g.Snapshot().Pages); n != 0 {
		t.Errorf("%d pages are shown", n)
	}
	p.page.Offer(app+"/doc", "x")
	q := openPage(t, g, tabInfo("b"), nil)
	if pages := g.Snapshot().Pages; len(pages) != 1 || pages[0].Number != 1 || pages[0].Resources != 1 {
		t.Errorf("the pages are %+v", pages)
	}
	q.crash()
	testkit.Ends(t, "the other has gone", q.Done())
}

// A hostile page's input above a limit is refused with a message that names the limit. Other pages and agents notice
// nothing.
func TestHostilePages(t *testing.T) {
	g := newGateway(t,
		Options{OriginBytes: 3000, AllBytes: 5000, PageLimits: link.Limits{Resources: 20, Calls: 10, CallsBurst: 1000}})
	doc := app + "/doc"
	good := openPage(t, g, tabInfo("good"), map[string]string{doc: "one"})
	a := openAgent(t, g)
	a.Watch(doc)
	other := func(tab string) PageInfo { return PageInfo{Tab: tab, Origin: "https://evil.example", Title: "Evil"} }
	unharmed := func(t *testing.T) {
		t.Helper()
		value := t.Name()
		good.set(doc, value)
		a.updated(doc)
		if got := a.Text(doc); got != value {
			t.Errorf("the other page reads %q", got)
		}
		if uris := a.URIs(); !slices.Contains(uris, doc) {
			t.Errorf("listed %v", uris)
		}
	}
	for _, c := range []struct {
		name   string
		frames []string
		report string // told to the page
		ended  string
	}{
		{"another's URI", []string{`[["register","{\"uri\":\"` + doc + `\",\"name\":\"evil\"}"]]`},
			"resource refused: " + doc + ": it is not at the page's origin", ""},
		{"another tab's URI",
			[]string{`[["register","{\"uri\":\"https://evil.example/.pagewire/tab/2/doc\",\"name\":\"evil\"}"]]`},
			"resource refused: https://evil.example/.pagewire/tab/2/doc: it is under /.pagewire/, which is the " +
				"gateway's", ""},
		{"no JSON", []string{`[["touch"`}, "", "a frame that is neither calls nor contents"},
		{"a second hello", []string{`[["hello",1,"0",{}]]`}, "", "a call that the link does not have"},
		{"a port", []string{`[["open",1],["receive",1,"{}"],["close",1]]`}, "", "a call that the link does not have"},
		{"a flood", slices.Repeat([]string{`[["touch","https://evil.example/x",1]]`}, 1100), "",
			"it says more calls than it may; the limit is 10 a second"},
		{"answers that nobody asked for",
			slices.Repeat([]string{`=1 0 [{"uri":"` + doc + `","text":"evil"}]`, `[["complete",1,1,0,""]]`}, 100), "",
			""},
		{"contents with a NUL", []string{"=1 0 [\"\x00\"]"}, "", "contents that are no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPage(t, g, other(c.name), nil)
			for _, f := range c.frames {
				p.page.Post(f)
			}
			if c.report != "" {
				testkit.Eventually(t, "the page is told", func() bool {
					return slices.ContainsFunc(p.page.Reports(), func(r string) bool {
						return strings.HasPrefix(r, c.report)
					})
				})
			}
			if got := p.page.Refusal(); got != c.ended {
				t.Errorf("its link ended with %q, want %q", got, c.ended)
			}
			unharmed(t)
			p.Close("the test is over")
		})
	}
	t.Run("many and long", func(t *testing.T) {
		var pages []*testPage
		for i := range 4 {
			p := openPage(t, g, other(fmt.Sprint("long", i)), nil)
			pages = append(pages, p)
			for n := range 30 {
				p.page.Post(fmt.Sprintf(`[["register","{\"uri\":\"https://evil.example/%d/%d\",\"name\":\"%s\"}"]]`, i,
					n, strings.Repeat("n", 100)))
			}
		}
		for i, want := range []string{"the page has too many; the limit is 20",
			"the pages of https://evil.example together have too long descriptors; the limit is 3000 bytes"} {
			testkit.Eventually(t, fmt.Sprintf("page %d is told: %s", i, want), func() bool {
				return strings.Contains(strings.Join(pages[i].page.Reports(), "\n"), want)
			})
		}
		unharmed(t)
		for _, p := range pages {
			p.Close("the test is over")
		}
		if s := g.Snapshot(); s.Descriptors >= 1000 {
			t.Errorf("%d bytes of descriptors are kept for pages that are gone", s.Descriptors)
		}
	})
	if n := g.Snapshot().Ended["contents that are no JSON"]; n != 1 {
		t.Errorf("the links that were ended are counted as %v", g.Snapshot().Ended)
	}
}

// When another tab becomes a URI's owner, the URI takes the parameters of that tab's resource.
func TestParametersAreTheOwners(t *testing.T) {
	g := newGateway(t, Options{})
	for _, tab := range []string{"a", "b"} {
		p := openPage(t, g, tabInfo(tab), nil)
		p.page.Describe(app+"/doc", map[string]any{"uriSchema": map[string]any{
			"type": "object", "properties": map[string]any{tab: map[string]any{"type": "string"}},
			"additionalProperties": false,
		}})
		p.page.Add(app+"/doc", func(_ context.Context, uri string) (string, error) {
			return tab + " reads " + uri, nil
		})
	}
	agent := openAgent(t, g)
	for _, tab := range []string{"a", "b", "a"} {
		g.Focus(tab)
		uri := app + "/doc?" + tab + "=1"
		testkit.Eventually(t, "it takes the parameters of the tab that is focused", func() bool {
			r, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			return err == nil && r.Contents[0].Text == tab+" reads "+uri
		})
	}
}

// While a page's transport has too much to send, an agent's call of the page fails at once.
func TestCallsOfAPageWhoseTransportIsFull(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/doc": "text"})
	p.page.SetTool("save", testkit.Tool{})
	var full atomic.Bool
	p.LimitCalls(func() error {
		if full.Load() {
			return errors.New("too much waits")
		}
		return nil
	})
	a := openAgent(t, g)
	calls := map[string]func() error{
		"a read": func() error {
			_, err := a.Read(app + "/doc")
			return err
		},
		"a tool call": func() error {
			r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "save"})
			if err == nil && r.IsError {
				err = errors.New(r.Content[0].(*mcp.TextContent).Text)
			}
			return err
		},
		"a read as a tool": func() error {
			if texts, isError := a.tool("read_page_resource", map[string]any{"uri": app + "/doc"}); isError {
				return errors.New(texts[0])
			}
			return nil
		},
	}
	for _, now := range []bool{false, true, false} {
		full.Store(now)
		for what, call := range calls {
			err := call()
			if now != (err != nil) || now && !strings.Contains(err.Error(), "too much waits") {
				t.Errorf("%s, full: %t, gives %v", what, now, err)
			}
		}
	}
}

// Pages of one origin, or of several, leave room for resources of others.
func TestOriginsLeaveRoom(t *testing.T) {
	g := newGateway(t, Options{OriginBytes: 1 << 20, AllBytes: 3 << 20})
	offers := func(origin string) (n int) {
		p := openPage(t, g, PageInfo{Tab: origin, Origin: origin}, nil)
		for i := range 40 {
			p.page.Post(fmt.Sprintf(`[["register","{\"uri\":\"%s/%d\",\"name\":\"x\",\"description\":\"%s\"}"]]`, origin, i,
				strings.Repeat("d", 32<<10)))
			if strings.Contains(strings.Join(p.page.Reports(), "\n"), "all open pages together have too long descriptors") {
				return i
			}
		}
		return 40
	}
	for i := range 40 {
		offers(fmt.Sprintf("https://%d.evil.example", i))
	}
	if n := offers(app); n == 0 {
		t.Error("an origin that comes later has no room")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if most := 3<<20 + 42*(toolsAlways+32<<10+200); g.heldAll.bytes > most {
		t.Errorf("%d bytes are held, more than %d", g.heldAll.bytes, most)
	}
}

// Frames of one page, with as many resources as they may have, leave places for resources of others.
func TestOriginsLeaveResources(t *testing.T) {
	g := newGateway(t, Options{resources: 1000})
	const evil = "https://evil.example"
	for i := range 25 {
		p := openPage(t, g, PageInfo{Tab: "evil", Frame: fmt.Sprint(i + 1), Origin: evil}, nil)
		for n := range 100 {
			p.page.Post(fmt.Sprintf(`[["register","{\"uri\":\"%s/%d/%d\",\"name\":\"x\"}"]]`, evil, i, n))
		}
	}
	g.locked(func() {
		if n := g.heldAll.places; n != 500 {
			t.Errorf("one origin has %d places of 1,000", n)
		}
	})()
	for i := range 3 {
		origin := fmt.Sprintf("https://%d.example", i)
		openPage(t, g, PageInfo{Tab: origin, Origin: origin}, map[string]string{origin + "/doc": "one"})
		testkit.Eventually(t, "an origin that comes later has a place for its resource", func() bool {
			defer g.lock()()
			_, known := g.engine.Find(origin + "/doc")
			return known
		})
	}
}
