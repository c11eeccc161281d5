// Package e2e proves Pagewire in a real browser with clients that others wrote. Nothing here stands in for a thing
// that can be run: pages are served over HTTP on loopback, the core is the built wasm, the agents are the official
// SDKs, and a missing browser is a failure, not a skip.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A mode is a way to run the browser.
type mode struct {
	name  string
	flags []string
}

var (
	noFlag = mode{"no flag", nil}
	native = mode{"WebMCP", []string{"--enable-features=WebMCP"}}
	modes  = []mode{noFlag, native}
)

// dist is what make build has written.
const dist = "../dist"

// agentScript is e2e/agent, bundled.
var agentScript []byte

var browsers struct {
	sync.Mutex
	running map[string]context.Context
	close   []func()
}

func TestMain(m *testing.M) {
	testkit.Main()
	os.Exit(func() int {
		if _, err := os.Stat(filepath.Join(dist, "pagewire.wasm")); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: dist/ is not built: run make build")
			return 1
		}
		modules, _ := filepath.Abs("../js/node_modules")
		result := api.Build(api.BuildOptions{
			EntryPoints: []string{"agent/agent.ts"},
			Bundle:      true,
			Format:      api.FormatIIFE,
			GlobalName:  "agent",
			Target:      api.ES2022,
			NodePaths:   []string{modules},
		})
		if len(result.Errors) > 0 {
			fmt.Fprintln(os.Stderr, "e2e: bundle the agent:", result.Errors[0].Text)
			return 1
		}
		agentScript = result.OutputFiles[0].Contents
		browsers.running = map[string]context.Context{}
		defer func() {
			for _, close := range browsers.close {
				close()
			}
		}()
		return m.Run()
	}())
}

// launch returns the one browser of a mode.
func launch(t *testing.T, m mode) context.Context {
	t.Helper()
	browsers.Lock()
	defer browsers.Unlock()
	if ctx := browsers.running[m.name]; ctx != nil {
		return ctx
	}
	ctx, close, err := browser.Launch(context.Background(), browser.Options{Flags: m.flags})
	if err != nil {
		t.Fatal(err)
	}
	browsers.running[m.name] = ctx
	browsers.close = append(browsers.close, close)
	return ctx
}

// launchOwn returns a browser that no other test uses.
func launchOwn(t *testing.T, m mode) context.Context {
	t.Helper()
	ctx, close, err := browser.Launch(context.Background(), browser.Options{Flags: m.flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(close)
	return ctx
}

// A site is an origin of its own: dist/ and one page.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

// A page is what a site serves at /.
type page struct {
	// head stands before the script tag of Pagewire, script right behind it, inline.
	head, script string
	// tag replaces the script tag.
	tag string
	// headers are those of the page; those of every response where all is set.
	headers map[string]string
	all     bool
	// nonce is given to every script of the page.
	nonce string
	// also has further documents, by path.
	also map[string]string
	// scripts has further scripts, by path.
	scripts map[string]string
	// emulated gives the page the core that stands in for TinyGo's (js/test/tinygo).
	emulated bool
	// hold is called before a file is given, and may wait.
	hold func(*http.Request)
}

// standIns has what an emulated page is given instead, by path.
var standIns = map[string]string{
	"/pagewire.core.js": "/test/tinygo.core.mjs",
	"/pagewire.wasm":    "/test/tinygo.wasm",
}

func serve(t *testing.T, p page) *site {
	t.Helper()
	s := &site{}
	files := http.FileServer(http.Dir(dist))
	if p.tag == "" {
		p.tag = `<script src="/pagewire.js"></script>`
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		w.Header().Set("Origin-Agent-Cluster", "?1")
		if r.URL.Path == "/" || p.all {
			for name, value := range p.headers {
				w.Header().Set(name, value)
			}
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			text := fmt.Sprintf("<!doctype html><title>e2e</title><link rel=icon "+
				"href=data:,>%s%s<script>%s</script><script src=/agent.js></script><body><input id=field>", p.head,
				p.tag, p.script)
			if p.nonce != "" {
				text = strings.ReplaceAll(text, "<script", "<script nonce="+p.nonce)
			}
			fmt.Fprint(w, text)
		case "/agent.js":
			w.Header().Set("Content-Type", "text/javascript")
			w.Write(agentScript)
		default:
			if text, ok := p.also[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, "<!doctype html><title>e2e</title><link rel=icon href=data:,>", text)
				return
			}
			if text, ok := p.scripts[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, text)
				return
			}
			if p.hold != nil {
				p.hold(r)
			}
			if path, ok := standIns[r.URL.Path]; ok && p.emulated {
				r.URL.Path = path
			}
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// fetched reports whether a file has been asked for.
func (s *site) fetched(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == path {
			return true
		}
	}
	return false
}

// tabTime is how long a tab may be open: several times what a test may wait for one thing.
const tabTime = 5 * testkit.Patience

// A tab is one page that is open.
type tab struct {
	t   *testing.T
	ctx context.Context
	// console holds what the page wrote to console.error and console.warn.
	mu      sync.Mutex
	console []string
}

// open loads a site's page in a tab of its own. An exception that nobody catches fails the test.
func open(t *testing.T, m mode, s *site) *tab {
	t.Helper()
	return openIn(t, launch(t, m), s)
}

// openIn is open for a browser of the test's own.
func openIn(t *testing.T, browser context.Context, s *site) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, tabTime)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			d := event.ExceptionDetails
			text := d.Text
			if d.Exception != nil {
				text += " " + d.Exception.Description
			}
			t.Errorf("uncaught in the page: %s", text)
		case *runtime.EventConsoleAPICalled:
			if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
				var words []string
				for _, a := range event.Args {
					words = append(words, strings.Trim(string(a.Value), `"`)+a.Description)
				}
				b.mu.Lock()
				b.console = append(b.console, strings.Join(words, " "))
				b.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		if t.Failed() && len(b.console) > 0 {
			t.Logf("the page's console: %s", strings.Join(b.console, "\n"))
		}
	})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(s.URL))
	}
	if err != nil {
		t.Fatalf("open the page: %v", err)
	}
	return b
}

// said reports whether the page wrote something with that text to its console.
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

// run runs the body of an async function in the page and returns what it returns.
func run[T any](b *tab, body string) T {
	b.t.Helper()
	// By way of JSON text, so that undefined and odd objects are seen as what an agent could see of them.
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"(async () => { "+body+" })().then((v) => JSON.stringify(v === undefined ? null : v))",
		chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v\nin the page: %s", err, body)
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.t.Fatalf("the page returned %s: %v", text, err)
	}
	return v
}

// do does what a person does.
func (b *tab) do(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, action); err != nil {
		b.t.Fatal(err)
	}
}

// each runs a test in every mode and era.
func each(t *testing.T, test func(t *testing.T, m mode, era string)) {
	for _, m := range modes {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(m.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				test(t, m, era)
			})
		}
	}
}
