//go:build !js

package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/quota"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const app = "https://app.example"

// A place is a page and its relay, with the clock and the lock that a home gives it.
type place struct {
	t     *testing.T
	page  *testkit.Page
	quota *quota.Quota
	began time.Time

	mu    sync.Mutex
	relay *Relay
	ended error
}

func openPlace(t *testing.T, state map[string]string) *place {
	t.Helper()
	p := &place{t: t, page: testkit.NewPage(t, state), began: time.Now()}
	p.quota = quota.New(1<<30, 100_000)
	p.relay = New(0, "user", app, &Options{Build: "1", Offered: p.quota, Send: p.send})
	out := make(chan []byte, 1000)
	p.page.Connect(func(frame []byte) {
		f := link.Parse(frame, link.Limits{})
		p.do(out, func() {
			if err := p.relay.Receive(p.now(), f); err != nil {
				p.ended = err
			}
		})
	}, map[string]any{"tab": "tab-tab-1", "title": "Doc", "url": app + "/"})
	stop := make(chan struct{})
	ticks := time.NewTicker(5 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case frame := <-out:
				p.page.Hear(frame)
			case <-ticks.C:
				p.do(out, func() {})
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done; ticks.Stop() })
	return p
}

func (p *place) now() bridge.Time { return bridge.Time(time.Since(p.began).Milliseconds()) }

func (p *place) do(out chan []byte, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	for frame := p.relay.Take(p.now()); frame != nil; frame = p.relay.Take(p.now()) {
		out <- slices.Clone(frame)
	}
}

// send hands frames to the gateway that the core is, on a goroutine of that gateway's.
func (p *place) send(to *Core, frame []byte) {
	to.Owner.(chan []byte) <- slices.Clone(frame)
}

// A home is a gateway that is one of the page's cores.
type home struct {
	*gateway.Gateway
	core *Core
}

func (p *place) join(acts bool) *home {
	p.t.Helper()
	h := &home{Gateway: gateway.New(gateway.Options{})}
	in := make(chan []byte, 1000)
	page, err := h.Attach(gateway.PageInfo{Tab: "a", Origin: app, URL: app + "/", Transport: "test"},
		func(frame []byte) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if frame != nil && h.core != nil {
				if err := h.core.Receive(frame); err != nil {
					p.t.Errorf("the relay refuses %s: %v", frame, err)
				}
			}
		})
	if err != nil {
		p.t.Fatal(err)
	}
	var pump sync.WaitGroup
	pump.Go(func() {
		for frame := range in {
			_ = page.Receive(frame) // tests say what must not be refused
		}
	})
	p.mu.Lock()
	h.core = p.relay.Join(in, acts)
	p.mu.Unlock()
	p.t.Cleanup(func() {
		p.mu.Lock()
		h.core.Leave()
		p.mu.Unlock()
		close(in)
		pump.Wait()
		h.Close()
	})
	return h
}

func (p *place) agent(h *home) *testkit.Agent {
	p.t.Helper()
	port, err := h.Connect("test")
	if err != nil {
		p.t.Fatal(err)
	}
	a := testkit.Connect(p.t, mcpconn.Transport(port), testkit.Legacy)
	testkit.Eventually(p.t, "the page is there", func() bool { return len(a.URIs()) > 0 })
	return a
}

// watched waits until the relay has so many URIs that are watched at the page.
func (p *place) watched(n int) {
	p.t.Helper()
	testkit.Eventually(p.t, "what is watched", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.relay.Watched() == n
	})
}

// One page, two cores: each reads and is told, a URI is watched at the page once, and what is left ends.
func TestTwoCoresOfOnePage(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one", app + "/other": "x"})
	h1, h2 := p.join(true), p.join(true)
	a1, a2 := p.agent(h1), p.agent(h2)
	for _, a := range []*testkit.Agent{a1, a2} {
		if got := a.Text(app + "/doc"); got != "one" {
			t.Errorf("read %q", got)
		}
		a.Watch(app + "/doc")
	}
	p.watched(1)
	if n := p.page.Asked(); n != 1 {
		t.Errorf("the page was told %d times what is watched", n)
	}
	p.page.Set(app+"/other", "y") // nobody watches it
	p.page.Set(app+"/doc", "two")
	a1.Told(app + "/doc")
	a2.Told(app + "/doc")
	p.mu.Lock()
	h1.core.Leave()
	p.mu.Unlock()
	p.page.Set(app+"/doc", "three")
	a2.Told(app + "/doc")
	p.page.Offer(app+"/new", "n")
	testkit.Eventually(t, "the list has grown", func() bool { return len(a2.URIs()) == 3 })
	p.page.Withdraw(app + "/new")
	testkit.Eventually(t, "the list has shrunk", func() bool { return len(a2.URIs()) == 2 })
	p.mu.Lock()
	h2.core.Leave()
	p.mu.Unlock()
	p.watched(0)
	testkit.Eventually(t, "the page is left alone", func() bool {
		return !p.page.Watches(app+"/doc") && p.page.Running() == 0
	})
}

// A change of a template, or of a resource with parameters, is told to each core that watches or reads a URI of it.
func TestTouchOfATemplate(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one"})
	p.page.Describe(app+"/search", map[string]any{"uriSchema": map[string]any{"type": "object",
		"properties": map[string]any{"q": map[string]any{"type": "string"}}}})
	for _, uri := range []string{app + "/item/{id}", app + "/search"} {
		p.page.Add(uri, func(_ context.Context, uri string) (string, error) { return "text of " + uri, nil })
	}
	h1, h2 := p.join(true), p.join(true)
	one, other := p.agent(h1), p.agent(h2)
	testkit.Eventually(t, "all is there", func() bool {
		return one.Offers(app+"/search") && other.Offers(app+"/search")
	})
	one.Watch(app+"/item/7", app+"/search?q=x")
	other.Watch(app + "/item/8")
	p.watched(3)
	p.page.Touch(app + "/item/{id}")
	one.Told(app + "/item/7")
	other.Told(app + "/item/8")
	p.page.Post(`[["touch","` + app + `/search",9]]`)
	one.Told(app + "/search?q=x")
	one.Silent()
	other.Silent()
}

// Who may only read is told of no tool, and runs none.
func TestCoreThatMayNotAct(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one"})
	p.page.SetTool("pay", testkit.Tool{})
	acting, reading := p.join(true), p.join(false)
	a, r := p.agent(acting), p.agent(reading)
	testkit.Eventually(t, "one has the tool", func() bool { return slices.Contains(a.ToolNames(), "pay") })
	res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Errorf("a tool: %v, %v", res, err)
	}
	if slices.Contains(r.ToolNames(), "pay") {
		t.Error("who may only read has a tool")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := reading.core.Receive([]byte(`[["callTool",77,"pay","{}",""]]`)); err == nil {
		t.Error("who may only read has called a tool")
	}
}

func TestToolThatIsStale(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one"})
	p.page.SetTool("pay", testkit.Tool{Members: map[string]any{
		"_meta": map[string]any{"pagewire/freshState": map[string]any{"uris": []string{app + "/doc"}}}}})
	a := p.agent(p.join(true))
	read, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_page_resource",
		Arguments: map[string]any{"uri": app + "/doc"}})
	if err != nil || read.IsError {
		t.Fatalf("%v, %v", read, err)
	}
	p.page.Edit(app+"/doc", "two")
	res, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{}})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "was not run") {
		text, _ := json.Marshal(res)
		t.Errorf("a call with old state: %s, %v", text, err)
	}
}

// What a page offers is bounded and counted, and gone with it.
func TestWhatIsKept(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one"})
	before := p.quota.Held()
	if before == 0 {
		t.Fatal("nothing is counted")
	}
	p.page.Describe(app+"/large", map[string]any{"description": strings.Repeat("x", 90_000)})
	p.page.Offer(app+"/large", "l")
	p.page.Offer(app+"/large", "l") // in its own place
	p.page.Describe(app+"/more", map[string]any{"description": strings.Repeat("x", 90_000)})
	p.page.Offer(app+"/more", "m")
	p.page.Offer("https://elsewhere.example/x", "x")
	testkit.Eventually(t, "the page is told of both refusals", func() bool { return len(p.page.Reports()) == 2 })
	p.page.Withdraw(app + "/large")
	testkit.Eventually(t, "it is not counted any more", func() bool { return p.quota.Held() == before })
	p.mu.Lock()
	p.relay.Close()
	p.mu.Unlock()
	if n := p.quota.Held(); n != 0 {
		t.Errorf("%d bytes are counted when it is gone", n)
	}
}

// Frames of cores that are none are refused, and harm nobody.
func TestFramesThatAreNone(t *testing.T) {
	p := openPlace(t, map[string]string{app + "/doc": "one"})
	testkit.Eventually(t, "the page offers", func() bool { return p.quota.Held() > 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, frame := range []string{"", "{}", "x", `[["dance"]]`, `[["read"]]`, `[["read",0,"a","b",""]]`,
		`[["read",4294967296,"a","b",""]]`, `[["callTool",1,"x","{}","{"]]`, `[["callTool",1,"x","{}","[[1,2]]"]]`,
		`[[["read"]]]`, `=1 2 []`} {
		c := p.relay.Join(make(chan []byte, 10), true)
		if err := c.Receive([]byte(frame)); err == nil {
			t.Errorf("%q is taken", frame)
		}
		c.Leave()
	}
	c := p.relay.Join(make(chan []byte, 10), true)
	if err := c.Receive([]byte(`[["refused","why"]]`)); err == nil || err.Error() != "why" {
		t.Errorf("a core that refuses the page: %v", err)
	}
	if err := c.Receive([]byte(`[["end",9],["watched","x",false],["hello",1,"0",{}],[]]`)); err == nil {
		t.Error("an empty call is taken")
	}
}

// What a page offers comes in frames that a message of the bus has room for, in order, however much it is.
func TestMuchThatIsOffered(t *testing.T) {
	var frames [][]byte
	r := New(0, "user", app, &Options{Build: "1", Offered: quota.New(1<<30, 1<<30), Send: func(_ *Core, frame []byte) {
		frames = append(frames, frame)
	}})
	say := func(frame string) {
		if err := r.Receive(0, link.Parse([]byte(frame), link.Limits{})); err != nil {
			t.Fatal(err)
		}
	}
	say(`[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]`)
	const many = 20
	for i := range many {
		say(fmt.Sprintf(`[["register","{\"uri\":\"%s/%02d\",\"name\":\"%s\"}"]]`, app, i, strings.Repeat("x", 200<<10)))
	}
	r.Join(nil, true)
	all := ""
	for i, frame := range frames {
		if len(frame) > 2<<20 || !json.Valid(frame) {
			t.Errorf("frame %d of %d has %d bytes, or is none", i, len(frames), len(frame))
		}
		all += string(frame)
	}
	last := 0
	for i := range many {
		at := strings.Index(all, fmt.Sprintf("%s/%02d", app, i))
		if at < last {
			t.Fatalf("resource %d is at %d, behind %d", i, at, last)
		}
		last = at
	}
}
