package socket

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
)

// dist is the output of make build.
const dist = "../../../dist"

// A place is a gateway that pages connect to. Its port stays the same after a restart.
type place struct {
	t       *testing.T
	addr    string
	options Options
	denies  []string      // origins
	answers time.Duration // how long a page may take to answer
	g       *gateway.Gateway
	pages   *Handler
	server  *http.Server
	log     *testkit.Log
}

func openPlace(t *testing.T, o Options) *place {
	t.Helper()
	return openPlaceFor(t, o, testkit.Patience)
}

// openPlaceFor opens a place that gives up a page without an answer within a time.
func openPlaceFor(t *testing.T, o Options, answers time.Duration) *place {
	t.Helper()
	p := &place{t: t, addr: testkit.Addr(t), options: o, answers: answers, log: testkit.LogOf(t, "the gateway"),
		denies: []string{"https://denied.example"}}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *place) start() {
	p.t.Helper()
	p.serve(p.listen())
}

// listen takes the port, once a process that is being started has closed its copy of the last listener.
func (p *place) listen() (l net.Listener) {
	p.t.Helper()
	testkit.Eventually(p.t, "it listens at "+p.addr, func() bool {
		var err error
		l, err = net.Listen("tcp", p.addr)
		return err == nil
	})
	return l
}

func (p *place) serve(l net.Listener) {
	log := slog.New(slog.NewTextHandler(p.log, nil))
	p.options.Log = log
	p.g = gateway.New(gateway.Options{Log: log, Deny: p.denies, ReadTimeout: p.answers})
	p.pages = New(p.g, p.options)
	mux := http.NewServeMux()
	mux.Handle("/page", p.pages)
	p.server = &http.Server{Handler: mux}
	go p.server.Serve(l)
}

// stop ends the gateway, and asserts that it then holds nothing.
func (p *place) stop() {
	p.server.Close()
	p.close()
}

// restart replaces the gateway. The port is closed only while connections are ended: on a busy machine pages would
// otherwise log that the gateway is missing.
func (p *place) restart() {
	p.t.Helper()
	p.server.Close()
	p.pages.Close()
	l := p.listen()
	p.close()
	p.serve(l)
}

func (p *place) close() {
	p.pages.Close()
	p.pages.origins.mu.Lock()
	defer p.pages.origins.mu.Unlock()
	of := 0
	for _, o := range p.pages.origins.all {
		of += o.pages
	}
	if p.pages.Len()+of+p.pages.seats.Len() > 0 {
		p.t.Errorf("left when the handler is closed: %d pages, %d of origins, %d seats", p.pages.Len(), of,
			p.pages.seats.Len())
	}
	p.g.Close()
}

// documents counts the connected documents of an origin.
func (p *place) documents(of string) int {
	p.pages.origins.mu.Lock()
	defer p.pages.origins.mu.Unlock()
	if o := p.pages.origins.all[of]; o != nil {
		return o.pages
	}
	return 0
}

// url is the value of data-gateway.
func (p *place) url() string { return "ws://" + p.addr }

// attached lists the pages that are attached now and have resources.
func (p *place) attached() (list []gateway.PageState) {
	for _, s := range p.g.Snapshot().Pages {
		if !s.Absent && s.Resources > 0 {
			list = append(list, s)
		}
	}
	return list
}

// waitFor waits until n pages are attached.
func (p *place) waitFor(n int) []gateway.PageState {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprintf("%d pages are attached", n), func() bool { return len(p.attached()) == n })
	return p.attached()
}

// allow connects an agent whose user allows some origins.
func (p *place) allow(origins ...string) *gateway.Agent {
	p.t.Helper()
	return testkit.Must(p.g.ConnectWith(gateway.AgentOptions{Transport: "test", Allow: origins}))(p.t)
}

func (p *place) agent() *testkit.Agent {
	p.t.Helper()
	port := testkit.Must(p.g.Connect("test"))(p.t)
	return testkit.Connect(p.t, testkit.Transport(port), testkit.Legacy)
}

// A site serves one page at /, and dist/.
type site struct {
	*httptest.Server
	name   string // a host name in place of 127.0.0.1
	header http.Header
	// markup comes before the script tag, tag has its attributes, and page follows it.
	markup, tag, page string
}

func serve(t *testing.T, s *site) *site {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dist, "pagewire.wasm")); err != nil {
		t.Fatal("dist/ is not built: run make build")
	}
	files := http.FileServer(http.Dir(dist))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/", "/frame", "/other":
			for name, values := range s.header {
				w.Header()[name] = values
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html><title>Page %s</title><link rel=icon href=data:,><script>let state = "+
				"'one'; const uri = location.origin + '/doc'</script>", r.URL.Path)
			if r.URL.Path != "/other" {
				fmt.Fprintf(w, `%s<script src="/pagewire.js" %s></script><script>
					if (navigator.modelContext) navigator.modelContext.registerResource({uri, name: "doc", read: () => state});
					const set = (value) => { state = value; navigator.modelContext.notifyResourceUpdated(uri) }
				</script>%s`, s.markup, s.tag, s.page)
			}
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) origin() string {
	if s.name == "" {
		return s.URL
	}
	return strings.Replace(s.URL, "127.0.0.1", s.name, 1)
}

// shared is the browser of all tests that need no flags: a start takes a second of processor time.
var shared struct {
	sync.Once
	ctx context.Context
	end func()
	err error
}

func TestMain(m *testing.M) {
	status := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(status)
}

// launch gives the test a profile of its own in the shared browser; with flags, a browser of its own.
func launch(t *testing.T, flags ...string) context.Context {
	t.Helper()
	if len(flags) > 0 {
		ctx, end, err := browsertest.Launch(context.Background(), browsertest.Options{Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return ctx
	}
	shared.Do(func() {
		shared.ctx, shared.end, shared.err = browsertest.Launch(context.Background(), browsertest.Options{})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	ctx, end := chromedp.NewContext(shared.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	testkit.OK(t, chromedp.Do(ctx))
	return ctx
}

// A tab is an open page.
type tab struct {
	t       *testing.T
	ctx     context.Context
	close   func()
	console *testkit.Log
}

func open(t *testing.T, browser context.Context, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 5*testkit.Patience)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx, close: cancel, console: testkit.LogOf(t, "the page")}
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("uncaught in the page: %s %+v", event.ExceptionDetails.Text, event.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			for _, a := range event.Args {
				fmt.Fprintf(b.console, "%s %s\n", event.Type, a.Value)
			}
		}
	})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(url))
	}
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	return b
}

// run runs the body of an async function in the page and returns its result.
func run[T any](b *tab, body string) (v T) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"(async () => { "+body+" })().then((v) => JSON.stringify(v === undefined ? null : v))",
		chromedp.EvalAwaitPromise,
		func(p *runtime.EvaluateParams) { p.UserGesture = new(true) })) // without one there are no new windows
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		b.t.Fatalf("%v\nin the page: %s", err, body)
	}
	return v
}

func (b *tab) do(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	testkit.OK(b.t, chromedp.Do(b.ctx, action))
}

// allow grants the page the permission to reach this device, as a person would.
func allow(t *testing.T, b *tab, origin string) {
	t.Helper()
	params := cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "loopback-network"},
		Setting:    cdpbrowser.PermissionSettingGranted, Origin: origin,
	}
	if _, err := chromedp.CallBrowser(b.ctx, cdpbrowser.SetPermission, params); err != nil {
		t.Fatal(err)
	}
}
