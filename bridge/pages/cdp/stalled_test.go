package cdp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A stalling browser has one page, with a resource and a tool. While it is stalled it accepts small commands, as its
// socket's buffer does, and no larger ones. How much a real browser accepts after it was stopped is not known.
type stalling struct {
	page    *testkit.Page
	binding string
	said    chan string
	over    chan struct{}
	end     sync.Once
	asked   atomic.Int32 // how often for the page's window
	removed atomic.Bool  // its binding

	mu      sync.Mutex
	stalled chan struct{} // closed when it goes on; nil while it runs
}

const stallingApp = "https://app.example"

func (b *stalling) Next() (io.Reader, error) {
	select {
	case text := <-b.said:
		return strings.NewReader(text), nil
	case <-b.over:
		return nil, io.EOF
	}
}

func (b *stalling) Close() error {
	b.end.Do(func() { close(b.over) })
	return nil
}

func (b *stalling) stall() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stalled = make(chan struct{})
}

func (b *stalling) goOn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.stalled)
	b.stalled = nil
}

func (b *stalling) Write(message []byte) error {
	b.mu.Lock()
	stalled := b.stalled
	b.mu.Unlock()
	if stalled != nil && len(message) > 1<<20 {
		select {
		case <-stalled:
		case <-b.over:
			return io.ErrClosedPipe
		}
	}
	var m struct {
		ID        int64
		SessionID string
		Method    string
		Params    struct {
			Name      string
			Arguments []struct{ Value json.RawMessage }
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	if m.Method == "Test.take" {
		return nil
	}
	result := map[string]any{}
	switch m.Method {
	case "Target.setAutoAttach":
		if m.SessionID == "" {
			b.event("", "Target.attachedToTarget", map[string]any{"sessionId": "S", "waitingForDebugger": false,
				"targetInfo": map[string]any{"targetId": "T", "type": "page", "title": "", "url": stallingApp + "/",
					"attached": true, "canAccessOpener": false}})
		}
	case "Runtime.enable":
		b.event("S", "Runtime.executionContextCreated", map[string]any{"context": map[string]any{"id": 1,
			"origin": stallingApp, "name": "", "uniqueId": "U",
			"auxData": map[string]any{"isDefault": true, "frameId": "T"}}})
	case "Browser.getWindowForTarget":
		b.asked.Add(1)
	case "Runtime.removeBinding":
		b.removed.Store(true)
	case "Runtime.addBinding":
		b.binding = m.Params.Name
	case "Runtime.evaluate":
		result["result"] = map[string]any{"type": "function", "objectId": "1"}
	}
	b.say(map[string]any{"id": m.ID, "sessionId": m.SessionID, "result": result})
	switch m.Method {
	case "Runtime.evaluate":
		b.call("pApp")
		b.page.Connect(func(frame []byte) { b.call("l" + string(frame)) }, nil)
	case "Runtime.callFunctionOn":
		if frame := m.Params.Arguments[0].Value; string(frame) != "null" {
			b.page.Hear(frame)
		}
	}
	return nil
}

// runStalling connects a gateway to such a browser, until the test ends.
func runStalling(t *testing.T) (*stalling, *gateway.Gateway) {
	b := &stalling{said: make(chan string, 1000), over: make(chan struct{}),
		page: testkit.NewPage(t, map[string]string{stallingApp + "/doc": "text"})}
	b.page.SetTool("save", testkit.Tool{})
	g := gateway.New(gateway.Options{ReadTimeout: testkit.Patience})
	t.Cleanup(g.Close)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, g, Options{URL: "a test", Dial: func(context.Context) (Conn, error) { return b, nil }})
	}()
	t.Cleanup(func() {
		stop()
		testkit.Receive(t, "Run returns", ended)
	})
	return b, g
}

// say sends a message, event an event of a session, and call a page's call of its binding.
func (b *stalling) say(message any) {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	select {
	case b.said <- string(text):
	case <-b.over:
	}
}

func (b *stalling) event(session, method string, params any) {
	b.say(map[string]any{"method": method, "params": params, "sessionId": session})
}

func (b *stalling) call(payload string) {
	b.event("S", "Runtime.bindingCalled", map[string]any{"name": b.binding, "payload": payload,
		"executionContextId": 1})
}

// A page that has found its binding gains nothing: it can say nothing that its link does not, and a second greeting
// ends it. Load events that it makes up cost no commands.
func TestPageThatHasItsBinding(t *testing.T) {
	b, g := runStalling(t)
	resources := func() int { return len(g.Snapshot().Resources) }
	testkit.Eventually(t, "the page's resource is there", func() bool { return resources() == 1 })
	for range 100 {
		b.call("nApp")
	}
	for n := range 100 {
		b.call(fmt.Sprint("pApp", n))
		b.call(fmt.Sprintf(`l[["hello",1,"0",{"epoch":"e%d"}]]`, n))
		b.call(`l[["register","{\"uri\":\"` + stallingApp + `/x\",\"name\":\"x\"}"]]`)
	}
	testkit.Eventually(t, "it is cut off", func() bool {
		return g.Snapshot().Ended["it speaks for the script that attaches it"] == 1 && b.removed.Load()
	})
	testkit.Eventually(t, "its resources have gone", func() bool {
		return !slices.ContainsFunc(g.Snapshot().Resources, func(r gateway.ResourceState) bool { return strings.HasSuffix(r.URI, "/x") })
	})
	if asked := b.asked.Load(); asked != 1 {
		t.Errorf("the browser is asked %d times for the page's window", asked)
	}
}

// An agent that calls a tool in a stalled browser gets answers to its other requests.
func TestABrowserThatStandsStill(t *testing.T) {
	b, g := runStalling(t)
	const elsewhere = "https://other.example"
	testkit.NewPage(t, map[string]string{elsewhere + "/doc": "other"}).Attach(
		func(send func([]byte)) (testkit.Receiver, error) {
			return g.Attach(gateway.PageInfo{Tab: "b", Origin: elsewhere, URL: elsewhere + "/"}, send)
		})
	testkit.Eventually(t, "the page's tool is there", func() bool {
		return slices.ContainsFunc(g.Snapshot().Tools, func(o gateway.ToolState) bool { return o.Name == "save" })
	})

	// As on standard input, the agent's messages are read one by one.
	raw := testkit.Must(g.Connect("test"))(t)
	answers := make(chan string, 10)
	go func() {
		for {
			text, err := raw.Read(t.Context())
			if err != nil {
				return
			}
			answers <- string(text)
		}
	}()
	b.stall()
	const calls = 2
	said := []string{`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`}
	for n := range calls {
		said = append(said, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"save","arguments":{"file":"`+
			strings.Repeat("x", 1<<20)+`"}}}`, strconv.Itoa(n)))
	}
	said = append(said, `{"jsonrpc":"2.0","id":"read","method":"resources/read","params":{"uri":"`+elsewhere+`/doc"}}`)
	go func() {
		for _, message := range said {
			_ = raw.Write(t.Context(), []byte(message)) // it has been closed if it fails, and has no answers
		}
	}()
	for _, want := range []string{`"id":"begin"`, `"id":"read","result":`} {
		if got := testkit.Receive(t, want, answers); !strings.Contains(got, want) {
			t.Errorf("the agent is told %.200s, want %s", got, want)
		}
	}
	b.goOn()
	for range calls {
		if got := testkit.Receive(t, "a call ends", answers); !strings.Contains(got, `"text":"fine"`) {
			t.Errorf("a call ends with %.200s", got)
		}
	}
}

// The bytes that wait for a browser are bounded, with those being written: above the limit it gets no further calls.
func TestABrowserThatStandsStillIsAskedNoMore(t *testing.T) {
	b := &stalling{said: make(chan string, 1000), over: make(chan struct{})}
	b.stall()
	l := newLink(b)
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	text := jsonv2.Value(`"` + strings.Repeat("x", 16<<20) + `"`)
	posted := 0
	for l.full() == nil {
		testkit.OK(t, l.post("", "Test.take", text, nil))
		posted++
	}
	if posted != maxQueued>>24 {
		t.Errorf("it is full with %d commands of 16 MiB", posted)
	}
	b.goOn()
	testkit.Eventually(t, "it is full no more", func() bool { return l.full() == nil })
	l.mu.Lock()
	l.fail(io.EOF)
	l.mu.Unlock()
	testkit.Ends(t, "nobody writes any more", written)
}
