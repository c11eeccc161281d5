package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// numbered is the URI of a resource under its tab's number.
func numbered(tab, path string) string { return app + "/.pagewire/tab/" + tab + path }

// follows opens another document with the tab's name, as a navigation or a copy of the tab does.
func (b *tab) follows(epoch string, n *Node, state map[string]string) *tab {
	next := &tab{Page: testkit.NewPage(b.t, state), t: b.t, user: b.user, name: b.name}
	next.Epoch(epoch)
	next.Arrived = func(context.Context, json.RawMessage, func(map[string]any)) any {
		return map[string]any{"content": []any{map[string]string{"type": "text", "text": "three cups"}}}
	}
	next.dial(n)
	return next
}

// answers replaces what the tab's transport says when its node asks whether the page is still there.
func (b *tab) answers(ping func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.page.mu.Lock()
	defer b.page.mu.Unlock()
	b.page.Ping(ping)
}

// loses makes a node lose its next messages of a kind.
func loses(n *Node, kind string, count int64) (left *atomic.Int64) {
	left = &atomic.Int64{}
	left.Store(count)
	drop := func(_ string, text []byte) bool { return kindOf(text) == kind && left.Add(-1) >= 0 }
	n.drops.Store(&drop)
	return left
}

// A call navigates its tab to another document, which connects to another node. The new document answers, although the
// agent's node may hear of it before it hears that the old one has gone.
func TestCallThatOutlivesItsDocument(t *testing.T) {
	for _, lost := range []int64{0, 2} {
		nodes := openFleetOf(t, 3, time.Second)
		b := openTab(t, nodes[0], alice, map[string]string{app + "/form": "empty"})
		runs := make(chan bool)
		b.SetTool("search", testkit.Tool{Members: map[string]any{"_meta": map[string]any{"pagewire/navigates": true}},
			Run: func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
				close(runs)
				<-ctx.Done()
				return nil
			}})
		a := openAgent(t, nodes[1], alice)
		testkit.Eventually(t, "the tool is there", func() bool { return slices.Contains(a.ToolNames(), "search") })
		var result *mcp.CallToolResult
		ended := make(chan error, 1)
		go func() {
			var err error
			result, err = a.CallTool(a.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{}})
			ended <- err
		}()
		testkit.Ends(t, "the tool runs", runs)
		left := loses(nodes[0], kindGone, lost)
		b.cut()
		testkit.Eventually(t, "the first document has gone", func() bool { return nodes[0].Stats().Pages == 0 })
		b.follows("epoch of the results", nodes[2], map[string]string{app + "/results": "3"})
		if err := testkit.Receive(t, "the call ends", ended); err != nil {
			t.Fatal(err)
		}
		if left.Load() >= 0 && lost > 0 {
			t.Error("nothing got lost")
		}
		if got := result.Content[0].(*mcp.TextContent).Text; result.IsError || got != "three cups" {
			t.Errorf("it ends with %q, failed %v", got, result.IsError)
		}
		a.Reads(numbered("1", "/results"), "3") // what it offers may come after its answer
		if text, err := a.Read(numbered("2", "/results")); err == nil {
			t.Errorf("it is in a second tab, too, and reads %q", text)
		}
	}
}

// The next document of a tab gets the tab's name, although its node tells of it before the first one's node tells that
// the first one has gone.
func TestNextDocumentIsHeardFirst(t *testing.T) {
	end := func(t *testing.T, nodes []*Node, b *tab) {
		b.cut()
		testkit.Eventually(t, "the first document has gone", func() bool { return nodes[0].Stats().Pages == 0 })
	}
	for name, leave := range map[string]func(*testing.T, []*Node, *tab){
		"its end is lost": func(t *testing.T, nodes []*Node, b *tab) {
			loses(nodes[0], kindGone, 1)
			end(t, nodes, b)
		},
		"its end is lost, and the answer to the question": func(t *testing.T, nodes []*Node, b *tab) {
			loses(nodes[0], kindGone, 2)
			end(t, nodes, b)
		},
		"the question is lost": func(t *testing.T, nodes []*Node, b *tab) {
			loses(nodes[0], kindGone, 1)
			loses(nodes[1], kindClaim, 1)
			end(t, nodes, b)
		},
		"its connection is dead, and its node does not know": func(_ *testing.T, _ []*Node, b *tab) {
			b.answers(func() error { return errors.New("no pong") })
		},
		"its node dies": func(_ *testing.T, nodes []*Node, _ *tab) { kill(nodes[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := openFleetOf(t, 3, time.Second)
			b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
			a := openAgent(t, nodes[1], alice)
			a.Reads(numbered("1", "/doc"), "one")
			leave(t, nodes, b)
			b.follows("another", nodes[2], map[string]string{app + "/doc": "two"})
			a.Reads(app+"/doc", "two")
			a.CheckText(numbered("1", "/doc"), "two")
			if text, err := a.Read(numbered("2", "/doc")); err == nil {
				t.Errorf("it is in a second tab, too, and reads %q", text)
			}
		})
	}
}

// A document whose tab was copied keeps its name, whatever gets lost, and so does the copy.
func TestCopyOfATab(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, nodes []*Node, a *testkit.Agent, b *tab){
		"none": func(*testing.T, []*Node, *testkit.Agent, *tab) {},
		"the first answer is lost": func(_ *testing.T, nodes []*Node, _ *testkit.Agent, _ *tab) {
			loses(nodes[0], kindAlive, 1)
		},
		"its node does not know the question": func(_ *testing.T, nodes []*Node, _ *testkit.Agent, _ *tab) {
			loses(nodes[0], kindAlive, 1<<60)
		},
		"a message of the first document is lost at that moment": func(t *testing.T, nodes []*Node, a *testkit.Agent,
			b *tab) {
			a.Watch(app + "/doc")
			testkit.Eventually(t, "it is watched", func() bool { return b.Watches(app + "/doc") })
			left := loses(nodes[0], kindPage, 1)
			b.Set(app+"/doc", "one")
			testkit.Eventually(t, "it is lost", func() bool { return left.Load() < 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := openFleetOf(t, 3, time.Second)
			b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
			a := openAgent(t, nodes[1], alice)
			a.Reads(numbered("1", "/doc"), "one")
			trouble(t, nodes, a, b)
			c := b.follows("another", nodes[2], map[string]string{app + "/doc": "two"})
			a.Reads(numbered("2", "/doc"), "two")
			a.Reads(numbered("1", "/doc"), "one")
			// The copy navigates, and its next document is heard first; at last the original goes.
			loses(nodes[2], kindGone, 1)
			c.cut()
			c.follows("the copy's next", nodes[1], map[string]string{app + "/doc": "three"})
			a.Reads(numbered("2", "/doc"), "three")
			b.Post(`[["bye",true]]`)
			b.cut()
			testkit.Eventually(t, "the original has gone", func() bool {
				_, err := a.Read(numbered("1", "/doc"))
				return err != nil
			})
			a.CheckText(numbered("2", "/doc"), "three")
		})
	}
}

// Two documents claim a name at once: one follows the document that has gone, and the other is in a copy.
func TestTwoDocumentsAtOnce(t *testing.T) {
	nodes := openFleetOf(t, 4, time.Second)
	b := openTab(t, nodes[0], alice, map[string]string{app + "/doc": "one"})
	a := openAgent(t, nodes[1], alice)
	a.Reads(numbered("1", "/doc"), "one")
	loses(nodes[0], kindGone, 1)
	b.cut()
	b.follows("two", nodes[2], map[string]string{app + "/doc": "two"})
	b.follows("three", nodes[3], map[string]string{app + "/doc": "three"})
	testkit.Settles(t, "both have a number", func() string {
		one, _ := a.Read(numbered("1", "/doc"))
		two, _ := a.Read(numbered("2", "/doc"))
		if got := []string{one, two}; slices.Contains(got, "two") && slices.Contains(got, "three") {
			return ""
		}
		return "they read " + one + " and " + two
	})
	if text, err := a.Read(numbered("3", "/doc")); err == nil {
		t.Errorf("a third tab reads %q", text)
	}
}
