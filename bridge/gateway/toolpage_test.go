package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A till is a page with the tool pay, and an agent that calls it.
type till struct {
	testing.TB
	*testPage
	agent    *testAgent
	end      *Agent
	effects  chan string // the arguments of each start
	aborted  chan bool   // each start whose signal was aborted
	progress chan string
}

// openTill opens a till. tells is whether the page says when it starts a tool. It stands still until hold has an element.
func openTill(t *testing.T, o Options, tells bool, hold chan struct{}) *till {
	g := newGateway(t, o)
	p := &testPage{t: t, page: testkit.NewPage(t, nil)}
	p.page.Starts, p.page.Hold = tells, hold
	w := &till{TB: t, testPage: p, effects: make(chan string, 9), aborted: make(chan bool, 9), progress: make(chan string, 99)}
	p.attach(g, tabInfo("a"))
	p.page.SetTool("pay", testkit.Tool{Run: func(ctx context.Context, args json.RawMessage, _ func(map[string]any)) any {
		w.effects <- string(args)
		if strings.Contains(string(args), "slow") {
			<-ctx.Done()
			w.aborted <- true
		}
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": "paid"}}}
	}})
	w.agent, w.end = openAgentWith(t, g, AgentOptions{}, func(p *mcp.ProgressNotificationParams) {
		select {
		case w.progress <- p.Message:
		default:
		}
	})
	return w
}

// call calls pay, and returns its answer later.
func (w *till) call(ctx context.Context, order string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"order": order}}
		p.SetProgressToken("p")
		r, err := w.agent.CallTool(ctx, p)
		switch {
		case err != nil:
			answer <- err.Error()
		default:
			answer <- r.Content[0].(*mcp.TextContent).Text
		}
	}()
	return answer
}

func (w *till) answers(what string, answer <-chan string, want string) {
	w.Helper()
	if got := testkit.Receive(w.TB, what, answer); !strings.Contains(got, want) {
		w.Errorf("%s: the answer is %q, want %q", what, got, want)
	}
}

// A page that does not start a tool gets the call withdrawn. The agent gets progress, and an error that says so.
func TestToolOfAPageThatStandsStill(t *testing.T) {
	w := openTill(t, Options{progressEvery: time.Millisecond}, true, make(chan struct{}))
	w.call(t.Context(), "none")
	w.answers("progress", w.progress, "has not started the tool yet")

	w = openTill(t, Options{ReadTimeout: 50 * time.Millisecond}, true, make(chan struct{}))
	w.answers("the call", w.call(t.Context(), "one"), "has not begun")
	testkit.Eventually(t, "the page drops the call", func() bool { return w.page.Running() == 0 })
	close(w.page.Hold)
	testkit.Eventually(t, "the next call is in time", func() bool { // a busy machine may take 50 ms for one
		answer := testkit.Receive(t, "its answer", w.call(t.Context(), "two"))
		return answer == "paid" || !strings.Contains(answer, "has not begun")
	})
	if got := testkit.Receive(t, "an effect", w.effects); !strings.Contains(got, "two") || len(w.effects) > 0 {
		t.Errorf("the withdrawn call has the effect %s, or a later one has two", got)
	}
}

// A tool that has begun is waited for as long as its agent waits, and so is one of a page that does not say it. Its clock is
// not the machine's: a busy one may take longer than a page's whole time to start a tool.
func TestToolThatTakesLong(t *testing.T) {
	for tells, said := range map[bool]string{true: "the tool runs", false: "waiting for the page"} {
		synctest.Test(t, func(t *testing.T) {
			w := openTill(t, Options{ReadTimeout: time.Millisecond, progressEvery: time.Millisecond}, tells, nil)
			w.page.Hold = make(chan struct{}, 1)
			ctx, cancel := context.WithCancel(t.Context())
			if tells {
				w.page.Hold = nil
			}
			answer := w.call(ctx, "slow")
			if tells {
				testkit.Receive(t, "the tool begins", w.effects)
			}
			for n := 0; n < 20; { // each a millisecond after the one before
				if testkit.Receive(t, "progress", w.progress) == said {
					n++
				}
			}
			if len(answer) > 0 {
				t.Errorf("the call ends with %q", <-answer)
			}
			cancel()
			if tells {
				testkit.Receive(t, "the tool's signal is aborted", w.aborted)
			}
		})
	}
}

// A page that does not say what it starts, or has no page layer, may have begun a call that nobody waits for any more: an
// agent that tries again is told so, once.
func TestCallsThatAreTriedAgain(t *testing.T) {
	w := openTill(t, Options{}, false, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := w.call(ctx, "slow")
	testkit.Receive(t, "the tool begins", w.effects)
	cancel()
	<-first
	testkit.Receive(t, "the tool's signal is aborted", w.aborted)
	w.answers("another order", w.call(t.Context(), "other"), "paid")
	<-w.effects
	w.answers("the same order", w.call(t.Context(), "slow"), "the same call began")
	if len(w.effects) > 0 {
		t.Error("it runs all the same")
	}
	ctx, cancel = context.WithCancel(t.Context())
	w.call(ctx, "slow")
	testkit.Receive(t, "the agent insists", w.effects)
	w.end.Close() // it goes while the tool runs: the next agent is told, too
	cancel()
	testkit.Receive(t, "the tool's signal is aborted", w.aborted)
	w.agent = openAgent(t, w.g)
	w.answers("the same order of another agent", w.call(t.Context(), "slow"), "the same call began")
}

// A page that goes while its tool runs leaves the outcome unknown, and the answer says so.
func TestPageThatGoesWhileItsToolRuns(t *testing.T) {
	w := openTill(t, Options{}, true, nil)
	answer := w.call(t.Context(), "slow")
	testkit.Receive(t, "the tool begins", w.effects)
	w.crash()
	w.answers("the call", answer, "after the tool had begun")
}
