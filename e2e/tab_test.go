package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/e2e/engine"
)

// chromium is the engine of all tests. make test-engines also runs some in other engines.
const chromium = "chromium"

// thisEngine is the engine of this run.
var thisEngine = func() string {
	if name := os.Getenv("ENGINE"); name != "" {
		return name
	}
	return chromium
}()

// inThisEngine removes the cases of a test whose mode this engine does not have.
func inThisEngine[T any](cases []T, of func(T) mode) []T {
	return slices.DeleteFunc(cases, func(c T) bool {
		return thisEngine != chromium && of(c).name == native.name
	})
}

var browsers = struct {
	sync.Mutex
	running map[string]context.Context // of Chromium, by its flags
	others  engine.Browser
	close   []func()
}{running: map[string]context.Context{}}

func closeBrowsers() {
	for _, close := range browsers.close {
		close()
	}
}

func launch(t *testing.T, m mode) context.Context {
	t.Helper()
	browsers.Lock()
	defer browsers.Unlock()
	key := strings.Join(m.flags, " ")
	if ctx := browsers.running[key]; ctx != nil {
		return ctx
	}
	ctx, close := launchChromium(t, m)
	browsers.running[key] = ctx
	browsers.close = append(browsers.close, close)
	return ctx
}

func launchChromium(t *testing.T, m mode) (context.Context, func()) {
	t.Helper()
	if thisEngine != chromium {
		t.Fatalf("this test drives Chromium: it is none for ENGINE=%s", thisEngine)
	}
	ctx, close, err := browsertest.Launch(context.Background(), browsertest.Options{Flags: m.flags})
	if err != nil {
		t.Fatal(err)
	}
	wanted := !m.without && slices.Contains(m.flags, withWebMCP)
	switch has := hasWebMCP(t, ctx); {
	case has == wanted:
		return ctx, close
	case wanted:
		close()
		t.Fatalf("this browser has no document.modelContext with %q", m.flags)
	case slices.Contains(m.flags, withoutWebMCP):
		close()
		t.Fatalf("this browser has document.modelContext also with %q", m.flags)
	}
	// The browser has WebMCP without a flag.
	close()
	m.flags = append(slices.Clone(m.flags), withoutWebMCP)
	return launchChromium(t, m)
}

const withWebMCP, withoutWebMCP = "--enable-features=WebMCP",
	"--disable-features=WebMCP,WebMCPTesting"

// hasWebMCP reports whether a browser has WebMCP of its own. It tries, because no version number
// says so.
func hasWebMCP(t *testing.T, ctx context.Context) (has bool) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	}))
	defer s.Close()
	ctx, end := chromedp.NewContext(ctx)
	defer end()
	err := chromedp.Do(ctx, chromedp.Navigate(s.URL))
	if err == nil {
		has, err = chromedp.Run(ctx, chromedp.Evaluate[bool]("!!document.modelContext"))
	}
	if err != nil {
		t.Fatalf("look for WebMCP: %v", err)
	}
	return has
}

// A browser that has WebMCP without a flag also runs tests of pages without it.
func TestBrowserThatHasWebMCPAlready(t *testing.T) {
	t.Parallel()
	if thisEngine != chromium {
		t.Skip("other engines have none")
	}
	ctx, close := launchChromium(t, mode{"has it already", []string{withWebMCP}, true})
	defer close()
	if hasWebMCP(t, ctx) {
		t.Error("its pages have document.modelContext")
	}
}

// startChromium starts a browser of the test's own, and returns the URL by which other programs can
// also drive it. The context is for openIn.
func startChromium(t *testing.T, flags ...string) (ctx context.Context, url string) {
	t.Helper()
	b, err := launched.Start(t.Context(), launched.Options{DebugPort: "0", Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	allocator, detach := remote.NewAllocator(context.Background(), b.URL)
	t.Cleanup(detach)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx, b.URL
}

func other(t *testing.T) engine.Browser {
	t.Helper()
	browsers.Lock()
	defer browsers.Unlock()
	if browsers.others == nil {
		b, err := engine.Launch(context.Background(), thisEngine)
		if err != nil {
			t.Fatal(err)
		}
		browsers.others = b
		browsers.close = append(browsers.close, b.Close)
	}
	return browsers.others
}

// tabTime is the maximum life of a tab or a subscription: several times the patience for one event.
const tabTime = 5 * testkit.Patience

type tab struct {
	t   *testing.T
	ctx context.Context
	is  engine.Tab
	// console holds the page's messages to console.error and console.warn.
	mu       sync.Mutex
	console  []string
	uncaught bool // uncaught exceptions also go to console, and fail no test
}

// open loads a site's page in a tab of its own. An uncaught exception fails the test.
func open(t *testing.T, m mode, s *site) *tab {
	t.Helper()
	if thisEngine == chromium {
		return openIn(t, launch(t, m), s)
	}
	ctx, stop := context.WithTimeout(context.Background(), tabTime)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	is, err := other(t).Open(ctx, b.record)
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	t.Cleanup(is.Close)
	b.is = is
	return b.begin(s)
}

// openAlone is open in a browser that no other test uses.
func openAlone(t *testing.T, m mode, s *site) *tab {
	t.Helper()
	if thisEngine != chromium {
		return open(t, m, s) // in a window of its own
	}
	ctx, close := launchChromium(t, m)
	t.Cleanup(close)
	return openIn(t, ctx, s)
}

// openIn is open for a Chromium of the test's own.
func openIn(t *testing.T, browser context.Context, s *site) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, tabTime)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, is: chromiumTab{ctx}}
	if err := listen(ctx, b.record); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return b.begin(s)
}

func (b *tab) begin(s *site) *tab {
	b.t.Helper()
	b.logs("the page")
	b.navigate(s.URL)
	return b
}

// logs prints the page, and the end of its console, if the test fails.
func (b *tab) logs(of string) {
	testkit.State(b.t, of+" and its console", func() string {
		shown := "it is not there any more"
		if b.ctx.Err() == nil {
			shown, _ = try[string](b,
				"return location.href + ' ' + document.readyState + ': ' + document.body?.innerText.slice(0, 1000)")
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return shown + "\n" + strings.Join(b.console, "\n")
	})
}

func (b *tab) record(m engine.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Uncaught && !b.uncaught {
		b.t.Errorf("uncaught in the page: %s", m.Text)
		return
	}
	b.console = append(b.console, m.Text)
}

// Tests rely on this: a tab reports its page's console messages and uncaught exceptions.
func TestTabTellsWhatItsPageWrites(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, field))
	b.mu.Lock()
	b.uncaught = true
	b.mu.Unlock()
	if _, err := try[any](b, `throw new Error("a reason")`); err == nil ||
		!strings.Contains(err.Error(), "a reason") {
		t.Errorf("a script that throws: %v", err)
	}
	run[any](b, `
		console.error("said", new Error("its text"));
		console.log("not heard");
		setTimeout(() => { throw new TypeError("thrown"); });
		void Promise.reject(new RangeError("rejected"));
	`)
	for _, text := range []string{"its text", "TypeError: thrown", "RangeError: rejected"} {
		testkit.Eventually(t, text+" is heard", func() bool {
			run[any](b, "") // WebKit reports its messages with the next answer
			return b.said(text)
		})
	}
	if b.said("not heard") {
		t.Error("console.log is heard")
	}
}

func (b *tab) said(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.console {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

func run[T any](b *tab, body string) T {
	b.t.Helper()
	v, err := try[T](b, body)
	if err != nil {
		b.t.Fatalf("%v\nin the page: %s", err, body)
	}
	return v
}

// try is run for a body that may fail, for example while a tab changes its page.
func try[T any](b *tab, body string) (v T, err error) {
	// By JSON text, so that undefined and odd objects appear as an agent could see them.
	text, err := b.is.Evaluate(b.ctx,
		"(async () => { "+body+" })().then((v) => JSON.stringify(v === undefined ? null : v))")
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	return v, err
}

// expectations runs a body with expect(what, got, want) and expectPart in the page, and reports its
// failures.
func (b *tab) expectations(body string) {
	b.t.Helper()
	for what, detail := range run[map[string]any](b, "const { expect, expectPart } = agent; "+body+"; return agent.takeUnexpected()") {
		b.t.Errorf("%s: %v", what, detail)
	}
}

// do runs an action that only Chromium has, or an action of a person there.
func (b *tab) do(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, action))
}

func (b *tab) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) navigate(url string) { b.t.Helper(); b.must(b.is.Navigate(b.ctx, url)) }

func (b *tab) reload() { b.t.Helper(); b.must(b.is.Reload(b.ctx)) }

func (b *tab) click(selector string) { b.t.Helper(); b.must(b.is.Click(b.ctx, selector)) }

func (b *tab) types(selector, text string) { b.t.Helper(); b.must(b.is.Type(b.ctx, selector, text)) }

type chromiumTab struct{ ctx context.Context }

var _ engine.Tab = chromiumTab{}

func listen(ctx context.Context, hear func(engine.Message)) error {
	return chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			d := event.ExceptionDetails
			text := d.Text
			if d.Exception != nil {
				text += " " + d.Exception.Description
			}
			hear(engine.Message{Uncaught: true, Text: text})
		case *runtime.EventConsoleAPICalled:
			if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
				var words []string
				for _, a := range event.Args {
					words = append(words, strings.Trim(string(a.Value), `"`)+a.Description)
				}
				hear(engine.Message{Text: strings.Join(words, " ")})
			}
		}
	})
}

func (c chromiumTab) Navigate(ctx context.Context, url string) error {
	return chromedp.Do(ctx, chromedp.Navigate(url))
}

func (c chromiumTab) Reload(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Reload()) }

// Back goes back by the page's history: the protocol's command would wait for a loaded document.
func (c chromiumTab) Back(ctx context.Context) error {
	_, err := c.Evaluate(ctx, `(async () => { setTimeout(() => history.back()); return ""; })()`)
	return err
}

func (c chromiumTab) Evaluate(ctx context.Context, expression string) (string, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
}

func (c chromiumTab) Click(ctx context.Context, selector string) error {
	return chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector)))
}

func (c chromiumTab) Type(ctx context.Context, selector, text string) error {
	return chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Hide minimises the tab's window, which is the only hidden window of its browser.
func (c chromiumTab) Hide(ctx context.Context) error {
	window, err := chromedp.CallBrowser(ctx, cdpbrowser.GetWindowForTarget,
		cdpbrowser.GetWindowForTargetParams{TargetID: chromedp.FromContext(ctx).Target.TargetID})
	if err == nil {
		_, err = chromedp.CallBrowser(ctx, cdpbrowser.SetWindowBounds,
			cdpbrowser.SetWindowBoundsParams{WindowID: window.WindowID,
				Bounds: &cdpbrowser.Bounds{WindowState: cdpbrowser.WindowStateMinimized}})
	}
	return err
}

func (c chromiumTab) Close() { _ = chromedp.Cancel(c.ctx) }
