package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/proof"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const doc = "https://app.example/doc"

// attach attaches a page that has /doc.
func attach(t *testing.T, g *gateway.Gateway, text string) *testkit.Page {
	t.Helper()
	p := testkit.NewPage(t, nil)
	p.Describe(doc, map[string]any{"name": "doc", "mimeType": "text/plain"})
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return g.Attach(gateway.PageInfo{Tab: "a", Origin: "https://app.example", URL: "https://app.example/",
			Title: "<b>App</b>", Transport: "test"}, send)
	})
	p.Offer(doc, text)
	return p
}

// serve serves an inspector. After the test nothing of it must be left.
func serve(t *testing.T, g *gateway.Gateway, o Options) *httptest.Server {
	t.Helper()
	before := runtime.NumGoroutine()
	s := httptest.NewServer(New(g, o))
	t.Cleanup(func() {
		g.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
		testkit.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
		if t.Failed() {
			all := make([]byte, 1<<20)
			t.Logf("%s", all[:runtime.Stack(all, true)])
		}
	})
	return s
}

// get sends a request with these headers; "Host: x" is one of them.
func get(t *testing.T, url string, headers ...string) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r) // redirects are not followed
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

var files = fstest.MapFS{
	"index.html":    {Data: []byte("<!doctype html><title>x</title>")},
	"demo.html":     {Data: []byte(`<script data-gateway="ws://127.0.0.1:7433">`)},
	"inspector.js":  {Data: []byte("1")},
	"inspector.css": {Data: []byte("a{}")},
}

func TestPageIsServedUnderAStrictPolicy(t *testing.T) {
	s := serve(t, gateway.New(gateway.Options{}), Options{Files: files})
	for path, kind := range map[string]string{"/": "text/html", "/inspector/inspector.js": "text/javascript",
		"/inspector/inspector.css": "text/css", "/demo/": "text/html", "/healthz": "application/json", "/none": "text/plain"} {
		status, header, body := get(t, s.URL+path)
		if want := map[bool]int{true: 404, false: 200}[path == "/none"]; status != want ||
			!strings.HasPrefix(header.Get("Content-Type"), kind) {
			t.Errorf("%s: status %d, %s: %s", path, status, header.Get("Content-Type"), body)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		csp := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q lacks %s", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: the policy %q is lax", path, csp)
		}
	}
	if _, _, body := get(t, s.URL+"/demo/", "Host: x:1"); body != `<script data-gateway="ws://x:1">` {
		t.Errorf("the demo is %s", body)
	}
	for _, path := range []string{"/inspector/", "/inspector/..%2finspect.go", "/inspector/none.js", "/index.html",
		"/demo/none.js", "/demo/demo.html", "/demo/..%2finspector%2findex.html"} {
		if status, _, _ := get(t, s.URL+path); status != 404 {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// A request without a token learns nothing.
func TestHealthSaysNothingElse(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "x")
	s := serve(t, g, Options{Version: "1.2.3"})
	if _, _, body := get(t, s.URL+"/healthz"); body != `{"status":"ok"}`+"\n" {
		t.Errorf("healthz: %s", body)
	}
}

// A feed that is not admitted gets the reason, and nothing more.
func TestFeedsAreAdmitted(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "x")
	s := serve(t, g, Options{Admit: func(ctx context.Context, r *http.Request, m proof.Messages) error {
		first, err := m.Read(ctx)
		if err == nil && string(first) != `{"session":"good"}` {
			err = errors.New("not you")
		}
		return err
	}})
	bad := openFeed(t, s)
	bad.say(`{"session":"bad"}`)
	_, text, err := bad.ws.Read(t.Context())
	if closed := (websocket.CloseError{}); !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation ||
		closed.Reason != "not you" {
		t.Errorf("it hears %q, %v", text, err)
	}
	good := openFeed(t, s)
	good.say(`{"session":"good"}`)
	good.next("pages", anything)
}

func TestMetricsTellWhatHappened(t *testing.T) {
	g := gateway.New(gateway.Options{})
	p := attach(t, g, "one")
	s := serve(t, g, Options{Version: "1.2.3"})
	port, err := g.Connect("stdio")
	if err != nil {
		t.Fatal(err)
	}
	updated := make(chan string, 9)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			updated <- r.Params.URI
		},
	})
	agent, err := client.Connect(t.Context(), testkit.Transport(port),
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: doc}); err != nil {
		t.Fatal(err)
	}
	p.Set(doc, "two")
	<-updated
	for range 3 {
		if _, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: doc}); err != nil {
			t.Fatal(err)
		}
	}
	_, header, body := get(t, s.URL+"/metrics")
	if !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("served as %s", header.Get("Content-Type"))
	}
	for _, line := range []string{
		`pagewire_build_info{version="1.2.3"} 1`,
		`pagewire_pages{transport="test"} 1`,
		`pagewire_agents{transport="stdio"} 1`,
		`pagewire_tabs 1`,
		`pagewire_resources 1`,
		`pagewire_page_tools 0`,
		`pagewire_subscriptions 1`,
		`pagewire_watched 1`,
		`pagewire_calls_waiting 0`,
		`pagewire_inspectors 0`,
		`pagewire_reads_total 3`,
		`pagewire_page_updates_total 1`,
		`pagewire_links_ended_total 0`,
		`pagewire_updates_sent_total 1`,
		`pagewire_read_seconds_count 3`,
		`pagewire_read_seconds_bucket{le="30"} 3`,
		`# TYPE pagewire_read_seconds histogram`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, name := range []string{`messages_total{way="to_page"}`, `message_bytes_total{way="from_agent"}`} {
		if !strings.Contains(body, "\npagewire_"+name+" ") {
			t.Errorf("no metric %s", name)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// A feed is the inspector page's end of the WebSocket.
type feed struct {
	t  *testing.T
	ws *websocket.Conn
	// parts has the last message of each type.
	parts map[string]map[string]any
}

func openFeed(t *testing.T, s *httptest.Server) *feed {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), s.URL+"/feed", nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(64 << 20)
	t.Cleanup(func() { ws.CloseNow() })
	return &feed{t, ws, map[string]map[string]any{}}
}

func (f *feed) say(command string, args ...any) {
	f.t.Helper()
	if err := f.ws.Write(f.t.Context(), websocket.MessageText, fmt.Appendf(nil, command, args...)); err != nil {
		f.t.Fatal(err)
	}
}

// next reads messages until a message of that type satisfies ok.
func (f *feed) next(kind string, ok func(m map[string]any) bool) map[string]any {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), testkit.Patience)
	defer cancel()
	for {
		_, text, err := f.ws.Read(ctx)
		if err != nil {
			f.t.Fatalf("waiting for %s: %v; the last: %v", kind, err, f.parts[kind])
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			f.t.Fatal(err)
		}
		is := m["type"].(string)
		f.parts[is] = m
		if is == kind && ok(m) {
			return m
		}
	}
}

func anything(map[string]any) bool { return true }

func TestFeedShowsWhatThereIs(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "one")
	s := serve(t, g, Options{Version: "1.2.3"})
	f := openFeed(t, s)
	f.next("stats", anything)
	if f.parts["version"]["version"] != "1.2.3" {
		t.Errorf("version: %v", f.parts["version"])
	}
	pages := f.parts["pages"]["pages"].([]any)
	if p := pages[0].(map[string]any); len(pages) != 1 || p["title"] != "<b>App</b>" ||
		p["origin"] != "https://app.example" || p["tab"] != 1.0 || p["resources"] != 1.0 {
		t.Errorf("pages: %v", pages)
	}
	list := f.parts["resources"]["resources"].(map[string]any)
	if r := list["list"].([]any)[0].(map[string]any); list["all"] != 1.0 || r["uri"] != doc || r["name"] != "doc" {
		t.Errorf("resources: %v", list)
	}
	// Only a part that has changed comes again.
	if _, err := g.Connect("stdio"); err != nil {
		t.Fatal(err)
	}
	clear(f.parts)
	f.next("stats", func(map[string]any) bool { return f.parts["agents"] != nil })
	for _, kind := range []string{"pages", "resources", "tools", "version", "watched"} {
		if f.parts[kind] != nil {
			t.Errorf("%s came again without a change: %v", kind, f.parts[kind])
		}
	}
}

func TestFeedFollowsValues(t *testing.T) {
	g := gateway.New(gateway.Options{})
	p := attach(t, g, "one")
	f := openFeed(t, serve(t, g, Options{}))
	is := func(text string) func(m map[string]any) bool {
		return func(m map[string]any) bool { return m["uri"] == doc && m["text"] == text }
	}
	f.say(`{"open":%q}`, doc)
	if m := f.next("value", is("one")); m["error"] != nil || m["mimeType"] != "text/plain" || m["bytes"] != 3.0 {
		t.Errorf("value: %v", m)
	}
	p.Set(doc, "two")
	// The change is the same as for agents.
	if m := f.next("value", is("two")); !strings.Contains(fmt.Sprint(m["change"]), `"now":"two"`) {
		t.Errorf("the change: %v", m["change"])
	}
	cart := `{"items":[{"sku":"tea","count":%d},{"sku":"a long name of something that stays the same","count":1}]}`
	p.Set(doc, fmt.Sprintf(cart, 1))
	f.next("value", is(fmt.Sprintf(cart, 1)))
	p.Set(doc, fmt.Sprintf(cart, 2))
	if m := f.next("value", is(fmt.Sprintf(cart, 2))); !strings.Contains(fmt.Sprint(m["change"]),
		`"patch":[{"op":"replace","path":"/items/0/count","value":2}]`) {
		t.Errorf("the change of JSON: %v", m["change"])
	}
	p.Set(doc, strings.Repeat("é", maxValue))
	if m := f.next("value", func(m map[string]any) bool { return m["clipped"] == true }); m["bytes"] != 2.0*maxValue ||
		m["text"] != strings.Repeat("é", maxValue/2) {
		t.Errorf("a large value: %v bytes", m["bytes"])
	}
	p.Set(doc, "three")
	f.next("value", is("three"))

	// A resource that is closed and opened again at once is still followed.
	for range 20 {
		f.say(`{"close":%q}`, doc)
		f.say(`{"open":%q}`, doc)
	}
	f.next("value", is("three"))
	f.say(`{"close":%q}`, doc)
	f.say(`{"open":%q}`, doc)
	f.next("value", is("three"))
	p.Set(doc, "four")
	f.next("value", is("four"))
	if !p.Watches(doc) {
		t.Error("the page is not watched")
	}
	f.say(`{"close":%q}`, doc)

	testkit.Eventually(t, "the page is not watched any more", func() bool { return !p.Watches(doc) })

	f.say(`{"open":"https://app.example/none"}`)
	none := func(m map[string]any) bool { return m["uri"] == "https://app.example/none" }
	if m := f.next("value", none); m["error"] == nil {
		t.Errorf("a resource that is not there: %v", m)
	}
	for i := range maxOpen {
		f.say(`{"open":"https://app.example/%d"}`, i)
	}
	f.next("value", func(m map[string]any) bool { return strings.Contains(fmt.Sprint(m["error"]), "too many") })
	f.say(`{"close":"https://app.example/1"}`)
	f.say(`{"open":%q}`, doc)
	f.next("value", is("four"))
	f.ws.CloseNow()
	testkit.Eventually(t, "nor is it with the inspector gone", func() bool { return !p.Watches(doc) })
}

// The feed shows the bytes of descriptors that are kept, and why links were ended.
func TestFeedShowsWhatIsRefused(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "one")
	f := openFeed(t, serve(t, g, Options{}))
	shown := f.next("stats", anything)["stats"].(map[string]any)
	if shown["descriptors"].(float64) == 0 || len(shown["ended"].(map[string]any)) != 0 {
		t.Errorf("at first: %v", shown)
	}
	p := testkit.NewPage(t, nil)
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return g.Attach(gateway.PageInfo{Tab: "b", Origin: "https://evil.example", URL: "https://evil.example/",
			Transport: "test"}, send)
	})
	p.Post(`[["touch"`)
	f.next("stats", func(m map[string]any) bool {
		ended := m["stats"].(map[string]any)["ended"].(map[string]any)
		return len(ended) == 1 && ended["a frame that is neither calls nor contents"] == 1.0
	})
}

func TestFeedLogsMessagesWhileItIsAsked(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "one")
	h := New(g, Options{})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(g.Close)
	f := openFeed(t, s)
	f.next("stats", anything)
	port, err := g.Connect("stdio")
	if err != nil {
		t.Fatal(err)
	}
	// Messages before {"log":true} are not shown, and long messages are clipped.
	port.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":"early","method":"ping"}`))
	f.say(`{"log":true}`)
	f.say(`{"open":%q}`, doc)
	f.next("value", anything) // the commands before it have run
	long := `{"jsonrpc":"2.0","id":"longs","method":"ping","params":{"x":"` + strings.Repeat("é", maxText) + `"}}`
	port.Write(t.Context(), []byte(long))
	f.next("log", func(m map[string]any) bool { return strings.Contains(fmt.Sprint(m), `"longs"`) })
	entries := f.parts["log"]["entries"].([]any)
	for !strings.Contains(fmt.Sprint(entries[0]), "ping") {
		entries = entries[1:] // the read for the value
	}
	e := entries[0].(map[string]any)
	text := e["text"].(string)
	if e["way"] != "agent>" || e["agent"] == 0.0 || e["bytes"] != float64(len(long)) || len(text) > maxText ||
		!strings.HasPrefix(text, `{"jsonrpc":"2.0","id":"longs"`) || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("entry: %.200v, text of %d bytes", e, len(text))
	}
	if answer := entries[1].(map[string]any); answer["way"] != ">agent" || !strings.Contains(answer["text"].(string),
		`"longs"`) {
		t.Errorf("answer: %v", answer)
	}
	f.say(`{"log":false}`)
	f.say(`{"close":%q}`, doc)
	f.say(`{"open":%q}`, doc)
	f.next("value", anything)
	clear(f.parts)
	from := g.Snapshot().Passed[0].Messages
	port.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":"late","method":"ping"}`))
	// The log follows the stats of its pulse, so it comes before the stats of the next.
	for more := range int64(2) {
		f.next("stats", func(m map[string]any) bool {
			return m["stats"].(map[string]any)["passed"].([]any)[0].(map[string]any)["messages"].(float64) > float64(
				from+more)
		})
		port.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`))
	}
	if log := f.parts["log"]; log != nil && strings.Contains(fmt.Sprint(log), "late") {
		t.Errorf("after it was switched off: %v", log)
	}
}

func TestTapIsHeldOnlyWhileSomebodyLooks(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	shared := taps{g: g, logs: map[*ring]bool{}}
	var a, b ring
	port, err := g.Connect("stdio")
	if err != nil {
		t.Fatal(err)
	}
	passes := func() (int, int) {
		port.Write(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`))
		x, _ := a.drain()
		y, _ := b.drain()
		return len(x), len(y)
	}
	for _, step := range []struct {
		do   func()
		a, b int
	}{
		{func() {}, 0, 0},
		{func() { shared.add(&a) }, 1, 0},
		{func() { shared.add(&b) }, 1, 1},
		{func() { shared.add(&b) }, 1, 1}, // again: once
		{func() { shared.remove(&a) }, 0, 1},
		{func() { shared.remove(&a) }, 0, 1},
		{func() { shared.remove(&b) }, 0, 0},
	} {
		step.do()
		if x, y := passes(); x != step.a || y != step.b {
			t.Errorf("a has %d entries and b %d, want %d and %d", x, y, step.a, step.b)
		}
	}
}

func TestRingKeepsTheLast(t *testing.T) {
	var r ring
	for round := range 3 {
		for i := range maxLog + 10 {
			r.push(entry{Agent: i})
		}
		entries, dropped := r.drain()
		if len(entries) != maxLog || dropped != 10 || entries[0].Agent != 10 || entries[maxLog-1].Agent != maxLog+9 {
			t.Errorf("round %d: %d entries, %d dropped, from %d to %d", round, len(entries), dropped, entries[0].Agent,
				entries[len(entries)-1].Agent)
		}
		if entries, dropped := r.drain(); len(entries) != 0 || dropped != 0 {
			t.Errorf("round %d: %d entries and %d dropped of nothing", round, len(entries), dropped)
		}
	}
}

func TestFeedIsForItsOwnPage(t *testing.T) {
	g := gateway.New(gateway.Options{})
	s := serve(t, g, Options{})
	_, answer, err := websocket.Dial(t.Context(), s.URL+"/feed",
		&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://evil.example"}}})
	if err == nil || answer == nil || answer.StatusCode != 403 {
		t.Errorf("from another origin: %v, %v", answer, err)
	}
	f := openFeed(t, s)
	f.next("stats", anything)
	f.say("nonsense")
	if _, _, err := f.ws.Read(t.Context()); err == nil {
		t.Error("nonsense was taken")
	}
	f = openFeed(t, s)
	f.ws.Write(t.Context(), websocket.MessageText, make([]byte, 20<<10))
	for err = nil; err == nil; {
		_, _, err = f.ws.Read(t.Context())
	}
}

func TestInspectorsAreLimited(t *testing.T) {
	g := gateway.New(gateway.Options{})
	s := serve(t, g, Options{})
	for range maxInspectors {
		openFeed(t, s).next("stats", anything)
	}
	_, answer, err := websocket.Dial(t.Context(), s.URL+"/feed", nil)
	if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many: %v, %v", answer, err)
	}
	if _, _, body := get(t, s.URL+"/metrics"); !strings.Contains(body,
		fmt.Sprintf("pagewire_inspectors %d\n", maxInspectors)) {
		t.Error("the metrics do not count inspectors")
	}
}

// A feed that is not admitted takes no place, does not keep the daemon, and is closed when there
// are many.
func TestStrangersTakeNoPlace(t *testing.T) {
	g := gateway.New(gateway.Options{})
	h := New(g, Options{Admit: func(ctx context.Context, _ *http.Request, m proof.Messages) error {
		_, err := m.Read(ctx)
		return err
	}})
	s := httptest.NewServer(h)
	defer s.Close()
	defer g.Close()
	dial := func(origin string) *websocket.Conn {
		ws, _, err := websocket.Dial(t.Context(), s.URL+"/feed", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ws.CloseNow() })
		return ws
	}
	closed := make(chan error, 4*maxStrangers)
	for range 4 * maxStrangers {
		ws := dial("https://allowed.example")
		go func() {
			_, _, err := ws.Read(t.Context())
			closed <- err
		}()
	}
	if h.Busy() {
		t.Error("feeds that are not admitted keep the daemon")
	}
	for range 3 * maxStrangers {
		testkit.Receive(t, "a stranger is turned away", closed)
	}
	for range maxInspectors {
		ws := dial(s.URL)
		if err := ws.Write(t.Context(), websocket.MessageText, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ws.Read(t.Context()); err != nil {
			t.Errorf("beside strangers an inspector is not opened: %v", err)
		}
	}
	if !h.Busy() {
		t.Error("open inspectors do not keep the daemon")
	}
}

func TestFeedEndsWithItsGateway(t *testing.T) {
	g := gateway.New(gateway.Options{})
	attach(t, g, "one")
	f := openFeed(t, serve(t, g, Options{}))
	f.say(`{"open":%q}`, doc)
	f.next("value", anything)
	g.Close()
	for {
		if _, _, err := f.ws.Read(t.Context()); err != nil {
			return
		}
	}
}
