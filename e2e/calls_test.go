package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/debugger"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A till is a page with the tools pay, ask (which itself asks a person) and look. The page's server
// counts what they do.
type till struct {
	*site
	mu      sync.Mutex
	effects []string
	goes    atomic.Bool // a busy script ends
	stands  atomic.Bool // the page is about to stand still
}

const tillScript = `
	const say = (what) => { const x = new XMLHttpRequest(); x.open("GET", "/say?" + what, false); x.send(); return x.responseText; };
	const tool = (name, execute) => document.modelContext.registerTool({ name, description: "d", inputSchema: { type: "object" }, execute });
	tool("pay", ({ order }) => { say("paid " + order); return "paid"; });
	tool("ask", ({ order }) => { say("asked " + order); return confirm("Pay?") ? "paid" : "not paid"; });
	tool("look", () => "seen");
	globalThis.still = (f) => setTimeout(() => { say("stands"); f(); });
	document.addEventListener("freeze", () => navigator.sendBeacon("/say?stands"));
	globalThis.busy = () => { while (say("goes?") !== "true"); };`

func serveTill(t *testing.T, tag string) *till {
	w := &till{site: serve(t, page{tag: tag, script: tillScript})}
	files := w.Config.Handler
	w.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/say" {
			files.ServeHTTP(out, r)
			return
		}
		switch what := strings.ReplaceAll(r.URL.RawQuery, "%20", " "); what {
		case "stands":
			w.stands.Store(true)
		case "goes?":
			fmt.Fprint(out, w.goes.Load())
		default:
			w.mu.Lock()
			w.effects = append(w.effects, what)
			w.mu.Unlock()
		}
	})
	return w
}

// take returns the effects since the last call.
func (w *till) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	effects := w.effects
	w.effects = nil
	return effects
}

// A still is a way for a page to stand still.
type still struct {
	name string
	tool string // pay, or ask: the tool itself makes the page stand still
	stop func(w *till, b *tab)
	goOn func(w *till, b *tab)
}

func inPage(script string) func(*till, *tab) {
	return func(w *till, b *tab) {
		w.stands.Store(false)
		w.goes.Store(false)
		run[any](b, "still(() => {"+script+"})")
		testkit.Eventually(b.t, "the page stands still", w.stands.Load)
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	_, err := chromedp.Call(b.ctx, command, params)
	b.must(err)
}

func lifecycle(state cdppage.SetWebLifecycleStateState) func(*till, *tab) {
	return func(w *till, b *tab) {
		w.stands.Store(false)
		call(b, cdppage.SetWebLifecycleState, cdppage.SetWebLifecycleStateParams{State: state})
		if state == cdppage.SetWebLifecycleStateStateFrozen {
			// the answer comes before the renderer has heard of it
			testkit.Eventually(b.t, "the page is frozen", w.stands.Load)
		}
	}
}

func answerDialog(_ *till, b *tab) {
	testkit.Eventually(b.t, "the dialog is answered", func() bool {
		_, err := chromedp.Call(b.ctx, cdppage.HandleJavaScriptDialog,
			cdppage.HandleJavaScriptDialogParams{Accept: true})
		return err == nil
	})
}

var stills = []still{
	{name: "alert", tool: "pay", stop: inPage(`alert("x")`), goOn: answerDialog},
	{name: "busy script", tool: "pay", stop: inPage("busy()"),
		goOn: func(w *till, _ *tab) { w.goes.Store(true) }},
	{name: "breakpoint", tool: "pay", stop: func(w *till, b *tab) {
		call(b, debugger.Enable, debugger.EnableParams{})
		inPage("debugger")(w, b)
	}, goOn: func(_ *till, b *tab) {
		testkit.Eventually(b.t, "the script goes on", func() bool {
			_, err := chromedp.Call(b.ctx, debugger.Resume, debugger.ResumeParams{})
			return err == nil
		})
		call(b, debugger.Disable, cdp.Empty{})
	}},
	{name: "frozen tab", tool: "pay", stop: lifecycle("frozen"), goOn: lifecycle("active")},
	{name: "alert, then reloaded", tool: "pay", stop: inPage(`alert("x")`),
		goOn: func(_ *till, b *tab) {
			reloaded := make(chan error, 1)
			go func() { reloaded <- b.is.Reload(b.ctx) }()
			testkit.Eventually(b.t, "it is reloaded, whoever closes the dialog", func() bool {
				_, _ = chromedp.Call(b.ctx, cdppage.HandleJavaScriptDialog,
					cdppage.HandleJavaScriptDialogParams{Accept: true})
				return len(reloaded) > 0
			})
			b.must(<-reloaded)
		}},
	{name: "its own confirm", tool: "ask", stop: func(*till, *tab) {}, goOn: answerDialog},
}

// enders end the wait for a call.
var enders = map[string]func(a *started, h userHome, cancel func()){
	"cancelled": func(_ *started, _ userHome, cancel func()) { cancel() },
	"its agent ends it": func(a *started, _ userHome,
		_ func()) {
		a.cmd.Process.Signal(syscall.SIGTERM)
	},
	"its pipe is killed": func(a *started, _ userHome, _ func()) { a.cmd.Process.Kill() },
	"the daemon is killed": func(a *started, h userHome,
		_ func()) {
		syscall.Kill(h.daemon(a.t), syscall.SIGKILL)
	},
}

// No call starts that nobody waits for, and no effect comes twice unknowingly: by each way in, in
// each state of the page, and whatever ends the wait.
func TestCallsOfPagesThatStandStill(t *testing.T) {
	t.Parallel()
	for way, open := range map[string]func(t *testing.T, h userHome) (w *till, b *tab,
		args []string){
		"WebSocket": func(t *testing.T, h userHome) (*till, *tab, []string) {
			w := serveTill(t, `<script src="/pagewire.js" data-gateway="ws://`+h.hub+`"></script>`)
			browser, _ := startChromium(t)
			return w, openIn(t, browser, w.site), nil
		},
		"CDP": func(t *testing.T, h userHome) (*till, *tab, []string) {
			w := serveTill(t, "")
			browser, url := startChromium(t)
			return w, openIn(t, browser, w.site), []string{"--chrome", url}
		},
		"CDP without the page layer": func(t *testing.T, h userHome) (*till, *tab, []string) {
			w := serveTill(t, "<!-- none -->")
			browser, url := startChromium(t)
			return w, openIn(t, browser, w.site), []string{"--chrome", url}
		},
		"extension": func(t *testing.T, h userHome) (*till, *tab, []string) {
			w := serveTill(t, "<!-- none -->")
			x := extend(t, h, true)
			b := x.tab(w.URL)
			a := h.serve(t)
			x.allow(w.URL)
			a.Close()
			return w, b, nil
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			w, b, args := open(t, h)
			for _, s := range stills {
				for ended, end := range enders {
					w.row(t, h, b, args, way, s, ended, end)
				}
			}
		})
	}
}

func (w *till) row(t *testing.T, h userHome, b *tab, args []string, way string, s still,
	ended string,
	end func(*started, userHome, func())) {
	a := h.serve(t, args...)
	reacts := func(a *started) {
		t.Helper()
		testkit.Eventually(t, "the page answers the agent", func() bool {
			r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "look"})
			return err == nil && !r.IsError
		})
	}
	reacts(a)
	w.take()
	s.stop(w, b)
	order := map[string]any{"order": strings.ReplaceAll(s.name+" "+ended, " ", "-")}
	pays := func(ctx context.Context, a *started) string {
		r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: s.tool, Arguments: order})
		if err != nil {
			return err.Error()
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan string, 1)
	go func() { answer <- pays(ctx, a) }()
	if s.tool == "ask" {
		testkit.Eventually(t, "the tool has begun",
			func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.effects) > 0 })
	}
	testkit.Eventually(t, "the call has left the daemon", func() bool { return h.waits(1) })
	time.Sleep(2 * testkit.Moment) // for the call to wait in the page, and to be late
	end(a, h, cancel)
	first := testkit.Receive(t, "the first answer", answer)
	if ended != "the daemon is killed" {
		testkit.Eventually(t, "the daemon withdraws the call", func() bool { return h.waits(0) || len(h.daemons()) == 0 })
	}
	time.Sleep(testkit.Moment) // for the withdrawal to reach the page
	s.goOn(w, b)
	if ended == "its agent ends it" || ended == "its pipe is killed" {
		a = h.serve(t, args...)
	}
	reacts(a)
	late := w.take()
	again := ""
	// After the daemon's death the first answer says all. Without the page layer the daemon alone
	// knows what began, and it ends with its last agent.
	knows := ended == "cancelled" ||
		ended != "the daemon is killed" && way != "CDP without the page layer"
	if s.tool == "pay" || knows {
		go func() { answer <- pays(t.Context(), a) }()
		again = testkit.Receive(t, "the answer to the second try", answer)
	}
	t.Logf("%s | %s | %s | effects: late %q, then %q | %s | again: %s", way, s.name, ended, late,
		w.take(), first, again)
	switch {
	case s.tool == "pay" && (len(late) > 0 || again != "paid"):
		t.Errorf("%s, %s, %s: it ran late: %q, and the second try gives %q", way, s.name, ended,
			late, again)
	case s.tool == "ask" && ended == "the daemon is killed" &&
		!strings.Contains(first, "may have been done or not"):
		t.Errorf("%s, %s, %s: the answer is %q", way, s.name, ended, first)
	case s.tool == "ask" && knows && !strings.Contains(again, "the same call began"):
		t.Errorf("%s, %s, %s: the answer to the second try is %q", way, s.name, ended, again)
	}
	a.Close()
}
