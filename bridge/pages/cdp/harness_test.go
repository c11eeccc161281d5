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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// dist is the output of make build.
const dist = "../../../dist"

func TestMain(m *testing.M) {
	pageLayer = func() (string, error) {
		text, err := os.ReadFile(filepath.Join(dist, "pagewire.inject.js"))
		return string(text), err
	}
	if _, err := pageLayer(); err != nil {
		fmt.Fprintln(os.Stderr, "cdp: dist/ is not built: run make build:", err)
		os.Exit(1)
	}
	status := m.Run()
	spares.close()
	os.Exit(status)
}

// A kind is how the pages of a test get the page layer. path is the path of a page with a state; with a 2 after it, of
// another such page. Both have script.
type kind struct {
	inject       bool
	path, script string
}

var (
	tagged   = kind{path: "/page", script: tag}
	injected = kind{inject: true, path: strict + "page", script: noTag}
)

// kinds runs a test with pages of either kind.
func kinds(t *testing.T, test func(t *testing.T, k kind)) {
	for name, k := range map[string]kind{"script tag": tagged, "injected": injected} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// A site is an origin: dist/ and documents by path. Documents under /strict/ allow only the site's scripts.
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

func serve(t *testing.T, k kind) *site {
	t.Helper()
	s := &site{docs: map[string]string{k.path: k.script, k.path + "2": k.script, "/bare": ""}}
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

func (s *site) add(path, document string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs[path] = document
}

// elsewhere is the site's URL by another name: another origin, and another process.
func (s *site) elsewhere() string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }

// A rig is a site, a browser that visits it, a gateway that is attached to the browser, and an agent.
type rig struct {
	*agent
	kind
	t       *testing.T
	site    *site
	uri     string // the state of a page of the site
	address string // of the gateway
	browser *launched.Started
	dial    func(ctx context.Context) (Conn, error) // or nil, to browser.URL
	looked  func()                                  // Options.Looked
	always  []string                                // gateway.Options.Shown
	picks   *Picks                                  // Options.Picks
	killed  bool
	g       *gateway.Gateway
	log     *testkit.Log
	user    *driver      // opens tabs and looks at them
	stop    func() error // ends Run, and returns its error
}

func begin(t *testing.T, k kind) *rig {
	t.Helper()
	r := browse(t, k)
	r.attach()
	// Before that a page might run its scripts without the page layer.
	testkit.Eventually(t, "the gateway is attached to the browser", func() bool {
		return r.user.pages(func(tab map[string]any) bool { return tab["attached"] == true }) > 0
	})
	return r
}

// browse is begin for tabs that are opened before the gateway comes. attach starts the gateway.
func browse(t *testing.T, k kind) *rig {
	t.Helper()
	r := &rig{kind: k, t: t, site: serve(t, k), log: testkit.LogOf(t, "the gateway")}
	r.uri = r.at("/state")
	r.browser = spares.acquire(t)
	r.user = dial(t, r.browser.URL)
	t.Cleanup(func() { spares.giveBack(r) })
	return r
}

// piped is browse for a new browser that is reached by its pipe. kill ends the gateway's connection.
func piped(t *testing.T, k kind) (r *rig, kill func()) {
	t.Helper()
	started := testkit.Must(launched.Start(t.Context(), launched.Options{DebugPort: "0"}))(t) // the port is the user's
	t.Cleanup(started.Close)
	r = &rig{kind: k, t: t, site: serve(t, k), log: testkit.LogOf(t, "the gateway"), browser: started,
		user: dial(t, started.URL)}
	r.uri = r.at("/state")
	var pipe *launched.Conn
	r.dial = func(ctx context.Context) (Conn, error) {
		var err error
		pipe, err = started.Pipe.Dial(ctx)
		return pipe, err
	}
	return r, func() { pipe.Close() }
}

// kill kills the browser's process.
func (r *rig) kill() {
	r.killed = true
	r.browser.Kill()
}

// spares are browsers that a test has given back with only the empty tab of their start. The next test takes one
// instead of starting its own. So each gateway but the first finds the rest of an earlier gateway in a browser.
var spares pool

type pool struct {
	mu   sync.Mutex
	idle []*launched.Started
}

func (s *pool) acquire(t *testing.T) *launched.Started {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		b := s.idle[last]
		s.idle = s.idle[:last]
		return b
	}
	return testkit.Must(launched.Start(t.Context(), launched.Options{DebugPort: "0"}))(t)
}

// giveBack takes the browser of a rig whose gateway has stopped. After a failed test the browser is not used again.
func (s *pool) giveBack(r *rig) {
	if r.killed || r.t.Failed() {
		r.browser.Close()
		return
	}
	testkit.Eventually(r.t, "the tabs are closed, and the gateway is gone", func() bool {
		return r.user.pages(func(tab map[string]any) bool {
			if tab["url"] != "about:blank" {
				r.user.send("", "Target.closeTarget", map[string]any{"targetId": tab["targetId"]})
				return true
			}
			return tab["attached"] == true
		}) == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, r.browser)
}

func (s *pool) close() {
	for _, b := range s.idle {
		b.Close()
	}
}

// attach starts a gateway in place of the last one.
func (r *rig) attach() {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	// The default of 30 s is not enough for some MB at a load of 60.
	g := gateway.New(gateway.Options{Log: log, Shown: r.always, ReadTimeout: testkit.Patience})
	r.g = g
	ctx, cancel := context.WithCancel(context.Background())
	returned := make(chan error, 1)
	go func() {
		returned <- Run(ctx, g, Options{URL: r.browser.URL, Dial: r.dial, Inject: r.inject, Gateway: r.address,
			Looked: r.looked, Picks: r.picks, Log: log})
	}()
	var once sync.Once
	var result error
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

// at returns the URL of a path of the site.
func (r *rig) at(path string) string { return r.site.URL + path }

// A tabbed is a page in a tab, as its user sees it.
type tabbed struct {
	*driver
	site        *site
	id, session string
}

// open opens a page of the site in a new tab, as a link does: only such a tab waits for the gateway.
func (r *rig) open(path string) *tabbed {
	r.t.Helper()
	return r.tab(r.user.openLink(r.at(path)))
}

// tab returns an open tab once it is loaded.
func (r *rig) tab(id string) *tabbed {
	r.t.Helper()
	p := &tabbed{r.user, r.site, id, r.user.attachTo(id)}
	p.loaded()
	return p
}

// openListed opens the page of the rig's kind, and waits until its state is the only listed resource.
func (r *rig) openListed() *tabbed {
	r.t.Helper()
	p := r.open(r.path)
	r.listed(r.uri)
	return p
}

// openWatched is openListed, and subscribes the agent to the state.
func (r *rig) openWatched() *tabbed {
	r.t.Helper()
	p := r.openListed()
	r.Watch(r.uri)
	return p
}

// bump changes the state of a page, and waits for its one update.
func (r *rig) bump(p *tabbed) {
	r.t.Helper()
	p.eval("bump()")
	r.Updated(r.uri)
}

// loaded waits until the tab's next page is loaded. A context of its last page may end meanwhile.
func (p *tabbed) loaded() {
	p.t.Helper()
	testkit.Eventually(p.t, "the page is loaded", func() bool {
		text, err := p.try("location.href + ' ' + document.readyState")
		return err == nil && strings.HasPrefix(text, "http") && strings.HasSuffix(text, " complete")
	})
}

// begun waits until attach.js has run in the tab's page. A context of its last page may end meanwhile.
func (p *tabbed) begun(r *rig) {
	p.t.Helper()
	testkit.Eventually(p.t, "attach.js has run", func() bool {
		found := p.send(p.session, "Runtime.evaluate", map[string]any{"includeCommandLineAPI": true,
			"expression": "'pagewire.gateway " + r.address + "' in getEventListeners(document)"})
		result, _ := found["result"].(map[string]any)
		return result["value"] == true
	})
}

func (p *tabbed) visit(path string) {
	p.t.Helper()
	url := p.site.URL + path
	if r := p.send(p.session, "Page.navigate", map[string]any{"url": url}); r["error"] != nil || r["errorText"] != nil {
		p.t.Fatalf("%s: %v", url, r)
	}
	p.loaded()
}

func (p *tabbed) reload()  { p.send(p.session, "Page.reload", nil) }
func (p *tabbed) toFront() { p.send(p.session, "Page.bringToFront", nil) }
func (p *tabbed) close()   { p.send("", "Target.closeTarget", map[string]any{"targetId": p.id}) }

// eval returns the value of an expression, which may await, as text.
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
	r := p.send(p.session, "Runtime.evaluate", map[string]any{"expression": "(async () => `${" + expression + "}`)()",
		"awaitPromise": true, "returnByValue": true})
	result, _ := r["result"].(map[string]any)
	text, ok := result["value"].(string)
	if !ok {
		return "", fmt.Errorf("%v", r)
	}
	return text, nil
}

// An agent follows the lists of resources and tools by their notifications.
type agent struct {
	*testkit.Agent
	t *testing.T
}

func connect(t *testing.T, g *gateway.Gateway) *agent {
	t.Helper()
	port := testkit.Must(g.Connect("test"))(t)
	return &agent{testkit.Connect(t, testkit.Transport(port), testkit.Legacy), t}
}

// until waits until ok returns true. It calls ok again after each notification that a list has changed.
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

// A driver is another client of the browser. It is not chromedp, which makes each tab believe that it has the focus.
type driver struct {
	t    *testing.T
	link *link
}

func dial(t *testing.T, url string) *driver {
	t.Helper()
	conn := testkit.Must(reach(t.Context(), Options{URL: url}))(t)
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

// pages counts the tabs for which f returns true.
func (d *driver) pages(f func(tab map[string]any) bool) (n int) {
	d.t.Helper()
	for _, info := range d.send("", "Target.getTargets", nil)["targetInfos"].([]any) {
		if tab := info.(map[string]any); tab["type"] == "page" && f(tab) {
			n++
		}
	}
	return n
}

// send sends a command, and returns the members of its result.
func (d *driver) send(session, method string, params any) map[string]any {
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
	return testkit.Receive(d.t, method+" is answered", answer)
}

// openLink opens a URL in a new tab from the empty one, as a page's link does. A tab of Target.createTarget is also
// told to wait for the debugger, but Chromium 156 loads it at once.
func (d *driver) openLink(url string) (id string) {
	d.t.Helper()
	before := map[any]bool{}
	var empty string
	d.pages(func(tab map[string]any) bool {
		before[tab["targetId"]] = true
		if tab["url"] == "about:blank" {
			empty = tab["targetId"].(string)
		}
		return false
	})
	session := d.attachTo(empty)
	d.send(session, "Runtime.evaluate", map[string]any{"expression": "void open(" + strconv.Quote(url) +
		", '', 'noopener')", "userGesture": true})
	d.send("", "Target.detachFromTarget", map[string]any{"sessionId": session})
	testkit.Eventually(d.t, "the tab is there", func() bool {
		return d.pages(func(tab map[string]any) bool {
			if before[tab["targetId"]] {
				return false
			}
			id = tab["targetId"].(string)
			return true
		}) == 1
	})
	return id
}

func (d *driver) attachTo(id string) string {
	d.t.Helper()
	return d.send("", "Target.attachToTarget", map[string]any{"targetId": id, "flatten": true})["sessionId"].(string)
}
