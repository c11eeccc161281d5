package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// waiting waits until so many requests wait for a look.
func waiting(t *testing.T, g *Gateway, n int) {
	t.Helper()
	testkit.Eventually(t, "the requests wait", func() bool {
		defer g.lock()()
		return g.engine.Awaits() && g.engine.Stats().Calls == n
	})
}

// askAll asks in all ways that depend on the pages, and returns the answers, which have cart's contents "1".
func askAll(t *testing.T, g *Gateway) map[string]func() bool {
	all := map[string]func() bool{}
	ask := func(what string, shows func(a *testAgent) bool) {
		a, shown := openAgent(t, g), make(chan bool, 1)
		go func() { shown <- shows(a) }()
		all[what] = func() bool { return <-shown }
	}
	ask("resources/list", func(a *testAgent) bool { return slices.Contains(a.URIs(), cart) })
	ask("resources/templates/list", func(a *testAgent) bool {
		r, err := a.ListResourceTemplates(t.Context(), nil)
		return err == nil && len(r.ResourceTemplates) == 1
	})
	ask("tools/list", func(a *testAgent) bool { return slices.Contains(a.ToolNames(), "checkout") })
	ask("resources/read", func(a *testAgent) bool { text, _ := a.Read(cart); return text == cartOf(1) })
	ask("resources/subscribe", func(a *testAgent) bool {
		return a.Subscribe(t.Context(), &mcp.SubscribeParams{URI: cart}) == nil
	})
	for name, args := range map[string]any{calls.List: nil, calls.Read: map[string]any{"uri": cart}, "checkout": nil,
		calls.Wait: map[string]any{"uris": []string{cart}, "timeout_ms": 1}, calls.Changes: nil} {
		ask("tools/call "+name, func(a *testAgent) bool {
			text, isError := a.Call(name, args)
			if isError { // it is there, and depends on state
				return strings.Contains(text, "checkout was not run")
			}
			return name != calls.List || strings.Contains(text, cart)
		})
	}
	return all
}

// An agent that asks before a browser has said which pages are open gets them, whatever it asks, and whichever agent's
// browser that is.
func TestRequestsWaitForTheFirstLook(t *testing.T) {
	g := newGateway(t, Options{awaitTime: time.Hour})
	seen, other := g.Look(), g.Look()
	answers := askAll(t, g)
	waiting(t, g, len(answers))
	s := openShop(t, g)
	s.offer(app+"/item/{id}", "item ")
	other()
	waiting(t, g, len(answers))
	seen()
	for what, shows := range answers {
		if !shows() {
			t.Errorf("%s: the page is not there", what)
		}
	}
	if text, _ := openAgent(t, g).Call(calls.List, nil); !strings.Contains(text, cart) {
		t.Errorf("later it lists %s", text)
	}
}

// The handshake never waits, and nothing does without a look.
func TestWhatWaitsForNothing(t *testing.T) {
	g := newGateway(t, Options{awaitTime: time.Hour})
	if a := openAgent(t, g); len(a.URIs()) != 0 {
		t.Error("there is a resource")
	}
	seen := g.Look()
	a := openAgent(t, g) // initialized
	if err := a.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	seen()
	seen()
	if len(a.URIs()) != 0 {
		t.Error("there is a resource")
	}
}

// A browser that never answers holds agents up once. They are told that pages may be missing, and of those that come.
// A later look is waited for again.
func TestLookWithoutAnEnd(t *testing.T) {
	g := newGateway(t, Options{awaitTime: 20 * time.Millisecond})
	g.Look()
	a := openAgent(t, g)
	if text, _ := a.Call(calls.List, nil); !strings.Contains(text, "has not said yet which pages are open") {
		t.Errorf("it says %s", text)
	}
	g.opt.awaitTime = time.Hour
	openShop(t, g)
	a.Shows(cart)
	if text, _ := a.Call(calls.List, nil); strings.Contains(text, "not said") {
		t.Errorf("with a resource it says %s", text)
	}
	seen := g.Look()
	defer g.lock()()
	if !g.engine.Awaits() {
		t.Error("another look is not awaited")
	}
	g.mu.Unlock()
	seen()
	g.mu.Lock()
	if g.engine.Awaits() {
		t.Error("the first look is awaited again")
	}
}

// After a restart the pages that the earlier daemon had are awaited, with their tools, for all agents. A page lists its
// tools after its resources.
func TestTabsAndToolsComeBack(t *testing.T) {
	g := newGateway(t, Options{})
	openShop(t, g)
	a, kept := openKept(t, g, nil)
	a.Call(calls.List, nil)
	testkit.Eventually(t, "the snapshot has the tool", func() bool {
		a.Ping(t.Context(), nil)
		return strings.Contains(string(kept.snapshot()), `"checkout"`)
	})
	g.Close()

	g = newGateway(t, Options{awaitTime: time.Hour})
	openKept(t, g, kept.snapshot())
	answers := askAll(t, g)
	waiting(t, g, len(answers))
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: cartOf(1), app + "/item/{id}": "item "})
	testkit.Eventually(t, "the page is there", func() bool {
		defer g.lock()()
		return awaitedTabs(g) == 0
	})
	waiting(t, g, len(answers))
	shopAt(p)
	for what, shows := range answers {
		if !shows() {
			t.Errorf("%s: the page is not back", what)
		}
	}
}

// A hook, too, waits for the first look: the first prompt of a resumed conversation names the page.
func TestHookWaitsForTheFirstLook(t *testing.T) {
	g := newGateway(t, Options{awaitTime: time.Hour})
	seen := g.Look()
	go func() {
		openPage(t, g, tabInfo("a"), map[string]string{cart: "one"})
		seen()
	}()
	if text := prompt(t, g, calls.Ask{Session: talk}); !strings.Contains(text, cart) {
		t.Errorf("told %q", text)
	}
}

// Where looks begin again and again, a hook waits for as long as a request.
func TestHookWaitsNoLongerThanARequest(t *testing.T) {
	g := newGateway(t, Options{awaitTime: 100 * time.Millisecond})
	seen := g.Look()
	told := make(chan bool)
	go func() {
		changes(t, g, calls.Ask{Session: talk})
		close(told)
	}()
	for over := false; !over; {
		select {
		case <-told:
			over = true
		default:
			next := g.Look()
			seen()
			seen = next
		}
	}
}

// A call that is cancelled while it waits for the look never runs.
func TestCancelledBeforeTheLook(t *testing.T) {
	g := newGateway(t, Options{awaitTime: time.Hour})
	seen := g.Look()
	end := connect(t, g, AgentOptions{})
	say := func(text string) {
		if err := end.Write(t.Context(), []byte(`{"jsonrpc":"2.0",`+text+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	say(`"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}`)
	say(`"id":1,"method":"tools/call","params":{"name":"checkout"}`)
	say(`"id":2,"method":"tools/call","params":{"name":"checkout"}`)
	say(`"method":"notifications/cancelled","params":{"requestId":1}`)
	s := openShop(t, g)
	s.tool(nil)
	seen()
	testkit.Receive(t, "the second call runs", s.ran)
	for {
		message, err := end.Read(t.Context())
		var answer struct{ ID int }
		if err != nil || json.Unmarshal(message, &answer) != nil || answer.ID == 1 {
			t.Fatalf("%s, %v", message, err)
		}
		if answer.ID == 2 {
			break
		}
	}
	if len(s.ran) > 0 {
		t.Error("the cancelled call has run")
	}
	end.Close()
}
