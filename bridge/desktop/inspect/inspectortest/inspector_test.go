// Package inspectortest tests the inspector page as a person uses it: the built page in a real
// browser, and its gateway with real MCP servers for pages and real clients for agents. It also
// takes the pictures of the README:
//
//	go test ./bridge/desktop/inspect/inspectortest -run Inspector -pictures demo
package inspectortest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/desktop/inspect"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/peer"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
)

var pictures = flag.String("pictures", "", "write inspector-dark.webp and inspector-light.webp to this directory, by "+
	"its path from the module's root")

// dist is the output of make build.
const dist = "../../../../dist/inspector"

// A site is a page and its origin.
type site struct {
	page   *testkit.Page
	origin string
}

func attach(t *testing.T, g *gateway.Gateway, tab, origin, title string, state map[string]string) *site {
	t.Helper()
	s := &site{testkit.NewPage(t, nil), origin}
	s.page.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return g.Attach(gateway.PageInfo{Tab: tab, Origin: origin, URL: origin + "/", Title: title, Transport: "cdp"},
			send)
	})
	for path, value := range state {
		s.page.Describe(origin+path, map[string]any{"name": path[strings.LastIndexByte(path, '/')+1:],
			"mimeType": "application/json"})
		s.page.Offer(origin+path, value)
	}
	return s
}

func (s *site) set(path, value string) { s.page.Set(s.origin+path, value) }

// agent connects an agent that reads each watched resource when it changes.
func agent(t *testing.T, g *gateway.Gateway, name, transport string, uris ...string) {
	t.Helper()
	port, err := g.Connect(transport)
	if err != nil {
		t.Fatal(err)
	}
	var session *mcp.ClientSession
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			uri := r.Params.URI
			// the handler's context ends with it
			go session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		},
	})
	if session, err = client.Connect(t.Context(), testkit.Transport(port),
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}); err != nil {
		t.Fatal(err)
	}
	for _, uri := range uris {
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
}

// A tab is an open inspector in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open serves a gateway's inspector and opens it. An error on the page's console, an exception or a
// violation of its policy fails the test.
func open(t *testing.T, g *gateway.Gateway) *tab {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dist, "inspector.js")); err != nil {
		t.Fatal("dist/ is not built: run make build")
	}
	t.Cleanup(g.Close)
	server := httptest.NewServer(inspect.New(g, inspect.Options{Version: "0.1.0", Files: os.DirFS(dist)}))
	t.Cleanup(server.Close)
	b := launch(t)
	b.do(chromedp.EmulateViewport(1360, 850), chromedp.Navigate(server.URL))
	b.sees("it is connected", `document.querySelector('.status.connected')`)
	return b
}

// launch runs a browser with one tab. Errors in the tab fail the test.
func launch(t *testing.T) *tab {
	t.Helper()
	ctx, closeBrowser,
		err := browsertest.Launch(t.Context(),
		browsertest.Options{Flags: []string{"--force-prefers-reduced-motion", "--lang=en", "--disable-lcd-text"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeBrowser)
	ctx, cancel := context.WithTimeout(ctx, 5*testkit.Patience)
	t.Cleanup(cancel)
	err = chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("uncaught in the page: %s", event.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			// The end of the WebSocket, when the gateway is gone, is such an entry too.
			if event.Entry.Level == cdplog.EntryLevelError && !strings.Contains(event.Entry.Text, "WebSocket") {
				t.Errorf("on the console: %s", event.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return &tab{t, ctx}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[string]("Promise.resolve("+expression+").then((v) => JSON.stringify(v ?? null))",
			chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%v\nin the page: %s", err, expression)
	}
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.t.Fatalf("the page returned %s: %v", text, err)
	}
	return v
}

// sees waits until an expression is true. It evaluates the expression at each frame that the page
// draws.
func (b *tab) sees(what, expression string) {
	b.t.Helper()
	if !eval[bool](b, `new Promise((done) => {
		const end = performance.now() + `+fmt.Sprint(testkit.Patience.Milliseconds())+`;
		const look = () => { if (`+expression+`) done(true); else if (performance.now() > end) done(false); else requestAnimationFrame(look); };
		look();
	})`) {
		b.t.Fatalf("never seen: %s\nthe page: %.3000s", what, eval[string](b, `document.body.innerText`))
	}
}

const shop, editor = "https://shop.example", "https://notes.example"

func cart(n int) string {
	return fmt.Sprintf("{\n  \"items\": [\n    {\"sku\": \"oat-milk\", \"count\": %d},\n    {\"sku\": \"rye-bread\", "+
		"\"count\": 1}\n  ],\n  \"total\": %.2f\n}", n, 3.2+2.4*float64(n))
}

func TestInspectorIsLive(t *testing.T) {
	g := gateway.New(gateway.Options{})
	hostile := `<img src=x onerror=alert(1)><script>alert(2)</script>`
	s := attach(t, g, "a", shop, "Corner shop",
		map[string]string{"/state/cart": cart(1), "/state/stock": `{"oat-milk": 17}`,
			"/state/session": `{"user": "ada"}`})
	n := attach(t, g, "b", editor, "Shopping list – Notes", map[string]string{"/doc/selection": `{"from": 4, "to": 9}`,
		"/doc/text": `"# This week"`})
	attach(t, g, "c", "https://evil.example", hostile, map[string]string{"/note": hostile})
	attach(t, g, "d", "https://status.example", "Build status", map[string]string{"/builds/main": `{"state": "green"}`,
		"/builds/queue": `[]`})
	g.Focus("a")
	agent(t, g, "claude-desktop", "stdio", shop+"/state/cart", editor+"/doc/selection")
	agent(t, g, "cursor", "http", shop+"/state/cart")
	b := open(t, g)

	// Pages' titles are text.
	b.sees("the hostile title, as text",
		`document.querySelector('#tabs').innerText.includes('<img src=x onerror=alert(1)>')`)
	if n := eval[int](b, `document.querySelectorAll('img, iframe, body script').length`); n != 0 {
		t.Errorf("%d elements were made of a page's title", n)
	}
	b.sees("the focused tab", `document.querySelector('#tabs .tag').closest('.row').innerText.includes('Corner shop')`)
	b.sees("both agents by name",
		`['claude-desktop', 'cursor'].every((name) => document.querySelector('#agents').innerText.includes(name))`)
	b.sees("what is watched", `document.querySelector('#watched').innerText.includes('/state/cart')`)

	// A value is read when its resource is selected, and is read again after each change.
	row := func(uri string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('#resources .row')].find((r) => r.innerText.includes(%q))`,
			uri)
	}
	card := func(uri string) string { return fmt.Sprintf(`document.querySelector('[data-uri=%q]')`, uri) }
	b.sees("the cart in the list", row(shop+"/state/cart"))
	if got := len(g.Snapshot().Agents); got != 2 {
		t.Errorf("%d sessions before anything is opened, want 2", got)
	}
	eval[any](b, row(shop+"/state/cart")+`.click()`)
	b.sees("the cart's value", card(shop+"/state/cart")+`?.querySelector('pre')?.textContent.includes('"count": 1\n')`)
	s.set("/state/cart", cart(2))
	b.sees("the cart's new value", card(shop+"/state/cart")+`.querySelector('pre').textContent.includes('"count": 2\n')`)
	b.sees("that it has changed once", card(shop+"/state/cart")+`.innerText.includes('1 change')`)

	eval[any](b, row("https://evil.example/note")+`.click()`)
	b.sees("a hostile value, as text",
		card("https://evil.example/note")+`?.querySelector('pre')?.innerText === `+fmt.Sprintf("%q", hostile))
	eval[any](b, row("https://evil.example/note")+`.click()`)
	b.sees("it closed", `document.querySelectorAll('.card').length === 1`)

	// By keyboard: the selected row has focus by aria-activedescendant.
	b.do(chromedp.Focus(chromedp.CSS("#resources")), chromedp.KeyEvent(kb.Home+kb.ArrowDown))
	active := eval[string](b,
		`document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.sees("two values", `document.querySelectorAll('.card').length === 2`)
	if got := eval[string](b,
		`[...document.querySelectorAll('#resources [aria-selected=true]')].map((r) => r.innerText).join()`); !strings.Contains(got, active) {
		t.Errorf("selected by keyboard: %q, active was %q", got, active)
	}
	b.do(chromedp.KeyEvent(" "))
	b.sees("one value", `document.querySelectorAll('.card').length === 1`)

	// Only the resources of one tab.
	eval[any](b, `[...document.querySelectorAll('#tabs .row')].find((r) => r.innerText.includes('Notes')).click()`)
	b.sees("the resources of one tab", `document.querySelectorAll('#resources .row').length === 2`)
	eval[any](b, `document.querySelector('#tabs [aria-selected=true]').click()`)

	// The log, and its filter.
	n.set("/doc/selection", `{"from": 1, "to": 2}`)
	b.sees("an update's notification", `document.querySelector('#log').innerText.includes('resources/updated')`)
	b.sees("paths, and the origins in the heading alone", `(() => {
		const rows = [...document.querySelectorAll('#log .row')].map((r) => r.innerText).join();
		return rows.includes('/doc/selection') && !rows.includes('https://') &&
			document.querySelector('#log-title').innerText.includes('`+editor+`');
	})()`)
	b.do(chromedp.SendKeys(chromedp.CSS("#log-filter"), "doc/selection"))
	b.sees("only what fits",
		`(() => { const rows = [...document.querySelectorAll('#log .row')]; return rows.length > 0 && rows.every((r) => r.textContent.includes('doc/selection')); })()`)
	b.sees("what a page is told, in a word",
		`[...document.querySelectorAll('#log .row')].some((r) => /read #\d+/.test(r.innerText))`)
	b.sees("what it answers",
		`[...document.querySelectorAll('#log .row')].some((r) => /contents #\d+/.test(r.innerText))`)
	b.sees("what an agent is told",
		`[...document.querySelectorAll('#log .row')].some((r) => r.innerText.includes('resources/'))`)
	eval[any](b, `[...document.querySelectorAll('#log .row')].find((r) => r.innerText.includes('resources/')).click()`)
	b.sees("a message in full", `document.querySelector('.log pre')?.textContent.includes('"jsonrpc": "2.0"')`)
	eval[any](b, `document.querySelector('#log [aria-selected=true]').click()`)
	b.do(chromedp.SendKeys(chromedp.CSS("#log-filter"), " and nothing like it"))
	b.sees("nothing that fits", `document.querySelectorAll('#log .row').length === 0`)
	eval[any](b,
		`(() => { const field = document.querySelector('#log-filter'); field.value = ''; field.dispatchEvent(new Event('input', {bubbles: true})); })()`)
	b.sees("all again", `document.querySelectorAll('#log .row').length > 5`)

	// While paused, the log shows nothing new; values are still updated.
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.sees("it is paused", `document.querySelector('#pause').getAttribute('aria-pressed') === 'true'`)
	before := eval[string](b, `document.querySelector('.log h2 .n').textContent`)
	s.set("/state/cart", cart(3))
	b.sees("the value", card(shop+"/state/cart")+`.querySelector('pre').textContent.includes('"count": 3\n')`)
	if after := eval[string](b, `document.querySelector('.log h2 .n').textContent`); after != before {
		t.Errorf("paused, the log went from %s to %s messages", before, after)
	}
	b.do(chromedp.Click(chromedp.CSS("#pause")))

	// The other theme stays after a reload.
	background := `getComputedStyle(document.body).backgroundColor`
	first, was := eval[string](b, `document.documentElement.dataset.theme`), eval[string](b, background)
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.sees("the other theme", `document.documentElement.dataset.theme !== `+fmt.Sprintf("%q", first))
	if now := eval[string](b, background); now == was {
		t.Errorf("both themes have the background %s", now)
	}
	second := eval[string](b, `document.documentElement.dataset.theme`)
	b.do(chromedp.Reload())
	b.sees("it is connected again", `document.querySelector('.status.connected')`)
	if now := eval[string](b, `document.documentElement.dataset.theme`); now != second {
		t.Errorf("after a reload the theme is %s, was %s", now, second)
	}

	takePictures(t, b, s, n, row)

	g.Close()
	b.sees("that the gateway has gone", `document.querySelector('.status.lost')`)
}

// problems is a list of what breaks a rule of axe-core, of what is wider than the window, and of
// the totals that are not seen whole.
const problems = `(async () => {
	await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
	const { violations } = await axe.run(document, { resultTypes: ["violations"] });
	const { scrollWidth, clientWidth } = document.documentElement;
	return violations.map(({ id, nodes }) => id + ": " + nodes[0].html)
		.concat(scrollWidth > clientWidth ? ["it scrolls sideways: " + scrollWidth] : [],
			[...document.querySelectorAll(".totals dd")].filter((e) => {
				const box = e.closest(".totals").getBoundingClientRect(), it = e.getBoundingClientRect();
				return it.right > box.right || it.bottom > box.bottom;
			}).map((e) => "it is cut off: " + e.textContent));
})()`

// takePictures takes one of each theme. Without -pictures it only checks that they can be taken and
// differ. With it, there is activity for the plots first.
func takePictures(t *testing.T, b *tab, s, n *site, row func(string) string) {
	for _, uri := range []string{shop + "/state/cart", editor + "/doc/selection"} {
		b.sees(uri, row(uri))
		eval[any](b, row(uri)+`.click()`)
	}
	if *pictures != "" {
		for i := range 150 { // 30 s
			if i%3 == 0 || i > 60 && i < 100 {
				n.set("/doc/selection", fmt.Sprintf(`{"from": %d, "to": %d}`, i, i+5))
			}
			if i%11 == 0 {
				s.set("/state/cart", cart(i/11+1))
			}
			time.Sleep(200 * time.Millisecond)
		}
	} else {
		s.set("/state/cart", cart(9))
		b.sees("a message", `document.querySelectorAll('#log .row').length > 0`)
	}
	axe, err := os.ReadFile("../../../../js/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	eval[any](b, "(() => {"+string(axe)+"\n})()")
	var seen []string
	for range 2 {
		for _, width := range []int64{420, 1360} {
			b.do(chromedp.EmulateViewport(width, 850))
			if problems := eval[[]string](b, problems); len(problems) > 0 {
				t.Errorf("%d px: %q", width, problems)
			}
		}
		name := "inspector-" + eval[string](b, `document.documentElement.dataset.theme`) + ".webp"
		eval[any](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
		shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "webp"})
		if err != nil {
			t.Fatal(err)
		}
		if len(shot.Data) > 200<<10 {
			t.Errorf("%s has %d bytes, more than belong into a repository", name, len(shot.Data))
		}
		seen = append(seen, string(shot.Data))
		if *pictures != "" {
			path := filepath.Join("../../../..", *pictures, name)
			if filepath.IsAbs(*pictures) {
				path = filepath.Join(*pictures, name)
			}
			if err := os.WriteFile(path, shot.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b.do(chromedp.Click(chromedp.CSS("#theme")))
	}
	if seen[0] == seen[1] {
		t.Error("both themes look alike")
	}
}

// A browser sees nothing without a ticket. With one it sees everything, also after a reload. No
// other port of this machine and no other tab gets to see the credential that the page keeps.
func TestInspectorTakesATicket(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef0123456789a"
	g := gateway.New(gateway.Options{})
	t.Cleanup(g.Close)
	attach(t, g, "a", shop, "Corner shop", map[string]string{"/state/cart": cart(1)})
	guard := access.New(access.Options{Token: token})
	handler := inspect.New(g, inspect.Options{Version: "0.1.0", Files: os.DirFS(dist), Admit: guard.AdmitFeed})
	mux := http.NewServeMux()
	mux.Handle("/", guard.Anybody(handler))
	mux.Handle(access.FeedPath, guard.Feed(handler))
	mux.Handle(access.SessionPath, guard.Sessions())
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnContext = peer.ConnContext
	server.Start()
	t.Cleanup(server.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<!doctype html><link rel=icon href=data:,><p>%q",
			r.Header.Get("Cookie")+r.Header.Get("Referer"))
	}))
	t.Cleanup(other.Close)
	b := launch(t)
	b.do(chromedp.Navigate(server.URL))
	b.sees("what to do", `document.querySelector('.status.refused')?.textContent.includes("pagewire inspect")`)
	if text := eval[string](b, `document.body.innerText`); strings.Contains(text, "shop.example") ||
		strings.Contains(text, "Resources") {
		t.Errorf("without a ticket the page shows %s", text)
	}
	socket := httptest.NewServer(guard.Tickets())
	t.Cleanup(socket.Close)
	client := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", socket.Listener.Addr().String())
		}}}
	ticket, err := access.Ask(t.Context(), client, server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ticket.Close)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(ticket.URL))
	b.sees("the shop", `document.querySelector('#resources')?.innerText.includes('/state/cart')`)
	if err := ticket.Opened(); err != nil {
		t.Errorf("who asked for the ticket is told %v", err)
	}
	if at := eval[string](b, `location.href`); at != server.URL+"/" {
		t.Errorf("the address is %s", at)
	}
	if cookies := eval[string](b, `document.cookie`); cookies != "" {
		t.Errorf("there are cookies: %s", cookies)
	}
	b.do(chromedp.Reload())
	b.sees("the shop after a reload", `document.querySelector('#resources')?.innerText.includes('/state/cart')`)
	b.do(chromedp.Navigate(other.URL))
	if text := eval[string](b, `document.body.innerText`); text != `""` {
		t.Errorf("another port is sent %s", text)
	}
}

func TestInspectorHoldsManyResources(t *testing.T) {
	const tabs, each = 200, 25
	g := gateway.New(gateway.Options{})
	var last *site
	for i := range tabs {
		state := map[string]string{}
		for j := range each {
			state[fmt.Sprintf("/r/%04d", i*each+j)] = "x"
		}
		last = attach(t, g, fmt.Sprint(i), "https://many.example", fmt.Sprintf("Page %d", i), state)
	}
	b := open(t, g)
	b.sees("all are counted",
		`document.querySelector('.resources h2 .n').textContent === '5,000' && document.querySelector('.tabs h2 .n').textContent === '200'`)
	if n := eval[int](b, `document.querySelectorAll('.row').length`); n > 150 {
		t.Errorf("%d rows are in the document", n)
	}
	b.do(chromedp.Focus(chromedp.CSS("#resources")), chromedp.KeyEvent(kb.End))
	b.sees("the last one",
		`[...document.querySelectorAll('#resources .row')].some((r) => r.innerText.includes('/r/4999'))`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.sees("its value", `document.querySelector('.card pre')?.textContent === 'x'`)
	last.set("/r/4999", "y")
	b.sees("its new value", `document.querySelector('.card pre').textContent === 'y'`)
	b.do(chromedp.SendKeys(chromedp.CSS(".resources input"), "/r/123"))
	b.sees("ten that fit", `document.querySelector('.resources h2 .n').textContent === '10'`)
}
