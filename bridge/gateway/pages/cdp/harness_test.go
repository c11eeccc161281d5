//go:build !js

package cdp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// dist is what make build has written.
const dist = "../../../../dist"

func TestMain(m *testing.M) {
	pageLayer = func() (string, error) {
		text, err := os.ReadFile(filepath.Join(dist, "pagewire.inject.js"))
		return string(text), err
	}
	if _, err := pageLayer(); err != nil {
		fmt.Fprintln(os.Stderr, "cdp: dist/ is not built: run make build:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A site is an origin: dist/ and documents by path. Those under /strict/ forbid all but the scripts of the site.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	docs map[string]string
}

// app is a page's script: one resource, its state, which bump changes.
const app = `
globalThis.uri = origin + "/state" + (globalThis.part ?? "");
globalThis.count = 0;
globalThis.bump = () => { count++; navigator.modelContext.notifyResourceUpdated(uri); };
globalThis.offer = () => navigator.modelContext.registerResource({ uri, name: "state", mimeType: "text/plain", read: () => document.title + " " + count });
if (navigator.modelContext?.registerResource) offer();
`

const (
	tag    = `<script src="/pagewire.js"></script><script src="/app.js"></script>`
	noTag  = `<script src="/app.js"></script>`
	strict = "/strict/"
)

func serve(t *testing.T, docs map[string]string) *site {
	t.Helper()
	s := &site{docs: docs}
	files := http.FileServer(http.Dir(dist))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Origin-Agent-Cluster", "?1")
		s.mu.Lock()
		text, ok := s.docs[r.URL.Path]
		s.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, strict) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; "+
				"require-trusted-types-for 'script'")
		}
		switch {
		case ok:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<!doctype html><title>", r.URL.Path, "</title><link rel=icon href=data:,>", text)
		case r.URL.Path == "/app.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, app)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// elsewhere is the same site by another name: another origin, and another process.
func (s *site) elsewhere() string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }

// A rig is a browser, a gateway that is attached to it, and an agent.
type rig struct {
	*agent
	t       *testing.T
	browser *browser.Browser
	g       *gateway.Gateway
	log     *testkit.Log
	user    *driver      // who opens tabs and looks at them
	stop    func() error // ends Run, and gives what it returned
}

type setup struct {
	inject bool
	open   []string // tabs whose pages are loaded before the gateway comes
	flags  []string
}

func begin(t *testing.T, o setup) *rig {
	t.Helper()
	r := &rig{t: t, log: testkit.LogOf(t, "the gateway")}
	var err error
	if r.browser,
		err = browser.Start(t.Context(),
		browser.StartOptions{Open: o.open, Options: browser.Options{Flags: o.flags}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.browser.Close)
	r.user = dial(t, r.browser.URL)
	for _, url := range o.open {
		r.user.find(url).loaded()
	}
	r.attach(o.inject)
	return r
}

// attach makes a gateway, in the place of the one that there was.
func (r *rig) attach(inject bool) {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	g := gateway.New(gateway.Options{Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	go func() { returned <- Run(ctx, g, Options{URL: r.browser.URL, Inject: inject, Log: log}) }()
	var once sync.Once
	var result error
	r.g = g
	r.stop = func() error {
		once.Do(func() {
			cancel()
			select {
			case result = <-returned:
			case <-time.After(testkit.Patience):
				r.t.Error("Run does not return")
			}
			g.Close()
		})
		return result
	}
	r.t.Cleanup(func() { r.stop() })
	r.agent = connect(r.t, g)
}

// A tabbed is a page in a tab, as its user sees it.
type tabbed struct {
	*driver
	id, session string
}

func (r *rig) open(url string) *tabbed {
	r.t.Helper()
	// Not about:blank first: who navigates that at once may be ahead of the gateway, whose page layer then comes late.
	id := r.user.create(url)
	p := &tabbed{r.user, id, r.user.attachTo(id)}
	p.loaded()
	return p
}

// loaded waits for the page that the tab is on its way to: a context of the one before may end meanwhile.
func (p *tabbed) loaded() {
	p.t.Helper()
	testkit.Eventually(p.t, "the page is loaded", func() bool {
		text, err := p.try("location.href + ' ' + document.readyState")
		return err == nil && strings.HasPrefix(text, "http") && strings.HasSuffix(text, " complete")
	})
}

func (p *tabbed) visit(url string) {
	p.t.Helper()
	if r := p.call(p.session, "Page.navigate", map[string]any{"url": url}); r["error"] != nil || r["errorText"] != nil {
		p.t.Fatalf("%s: %v", url, r)
	}
	p.loaded()
}

func (p *tabbed) reload()  { p.call(p.session, "Page.reload", nil) }
func (p *tabbed) toFront() { p.call(p.session, "Page.bringToFront", nil) }
func (p *tabbed) close()   { p.call("", "Target.closeTarget", map[string]any{"targetId": p.id}) }

// eval gives the value of an expression, which may await, as text.
func (p *tabbed) eval(expression string) string {
	p.t.Helper()
	text, err := p.try(expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

func (p *tabbed) try(expression string) (string, error) {
	p.t.Helper()
	r := p.call(p.session, "Runtime.evaluate", map[string]any{"expression": "(async () => `${" + expression + "}`)()",
		"awaitPromise": true, "returnByValue": true})
	result, _ := r["result"].(map[string]any)
	text, ok := result["value"].(string)
	if !ok {
		return "", fmt.Errorf("%v", r)
	}
	return text, nil
}

// An agent is one that follows the list by what it is told of it.
type agent struct {
	*testkit.Agent
	t *testing.T
}

func connect(t *testing.T, g *gateway.Gateway) *agent {
	t.Helper()
	port, err := g.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	return &agent{testkit.Connect(t, mcpconn.Transport(port), testkit.Legacy), t}
}

// until waits for a list that satisfies ok, and looks again whenever it is told that the list has changed.
func (a *agent) until(what string, ok func() bool) {
	a.t.Helper()
	for !ok() {
		testkit.Receive(a.t, fmt.Sprintf("%s; listed are %v and %v", what, a.URIs(), a.ToolNames()), a.Lists)
	}
}

func (a *agent) listed(want ...string) {
	a.t.Helper()
	slices.Sort(want)
	a.until(fmt.Sprint("listed ", want), func() bool { return slices.Equal(a.URIs(), want) })
}

// updated waits for one update of uri, and then a while for another one.
func (a *agent) updated(uri string) {
	a.t.Helper()
	a.Told(uri)
	a.Silent()
}

// A driver is another client of the browser. It is none of chromedp's, which make each tab believe that it has the
// focus.
type driver struct {
	t    *testing.T
	link *link
}

func dial(t *testing.T, url string) *driver {
	t.Helper()
	conn, err := reach(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{t, newLink(conn)}
	var ended sync.WaitGroup
	ended.Go(d.link.write)
	ended.Go(func() {
		d.link.read(func(_ *message, answered func()) {
			if answered != nil {
				answered()
			}
		})
	})
	t.Cleanup(func() {
		conn.Close()
		ended.Wait()
	})
	return d
}

// call sends a command, and gives the member of its result.
func (d *driver) call(session, method string, params any) map[string]any {
	d.t.Helper()
	answer := make(chan map[string]any, 1)
	d.link.post(target.SessionID(session), method, params, func(result jsonv2.Value, err error) {
		var members map[string]any
		jsonv2.Unmarshal(result, &members)
		if err != nil {
			members = map[string]any{"error": err.Error()}
		}
		answer <- members
	})
	select {
	case members := <-answer:
		return members
	case <-time.After(testkit.Patience):
		d.t.Fatalf("%s is not answered", method)
		return nil
	}
}

func (d *driver) create(url string) string {
	d.t.Helper()
	return d.call("", "Target.createTarget", map[string]any{"url": url})["targetId"].(string)
}

func (d *driver) attachTo(id string) string {
	d.t.Helper()
	return d.call("", "Target.attachToTarget", map[string]any{"targetId": id, "flatten": true})["sessionId"].(string)
}

// find gives a tab that has been opened by another.
func (d *driver) find(url string) (found *tabbed) {
	d.t.Helper()
	testkit.Eventually(d.t, "there is a tab at "+url, func() bool {
		for _, info := range d.call("", "Target.getTargets", nil)["targetInfos"].([]any) {
			if info := info.(map[string]any); info["url"] == url {
				id := info["targetId"].(string)
				found = &tabbed{d, id, d.attachTo(id)}
			}
		}
		return found != nil
	})
	return found
}
