package process

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
)

const app, public = "https://app.example", nodekit.Public

// A place is a fleet of several Runs, all in this process.
type place struct {
	t      *testing.T
	login  *nodekit.Login
	secret string
	traces string // receiver of traces for nodes started from now on
	nodes  []*member
}

type member struct {
	listen, admin, cluster string
	stop                   context.CancelFunc
	ended                  chan error
}

func newFleet(t *testing.T, size int) *place {
	t.Helper()
	f := &place{t: t, login: nodekit.NewLogin(t), secret: filepath.Join(t.TempDir(), "secret")}
	if err := os.WriteFile(f.secret, []byte(strings.Repeat("s", 20)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range size {
		f.start()
	}
	for _, m := range f.nodes {
		counts(t, m.admin, "nodes", size)
	}
	return f
}

// A setup has the options that differ between places, and between the nodes of one.
type setup struct {
	Issuer, Keys, Secret, Traces string
	Join                         []string
	Listen, Admin, Cluster       string        // default any port of loopback
	Advertise                    string        // default Cluster
	Interval                     time.Duration // default 200 ms
}

// next returns the setup of the next node.
func (f *place) next() setup {
	s := setup{Issuer: f.login.Name, Keys: f.login.Keys, Secret: f.secret, Traces: f.traces}
	for _, other := range f.nodes {
		s.Join = append(s.Join, other.cluster)
	}
	return s
}

func (s setup) options() Options {
	const free = "127.0.0.1:0"
	return Options{
		Listen: cmp.Or(s.Listen, free), Admin: cmp.Or(s.Admin, free), PublicURL: public, Cluster: cmp.Or(s.Cluster, free),
		SecretFile: s.Secret, Advertise: s.Advertise,
		Issuers: []tickets.Issuer{{Issuer: s.Issuer, JWKS: s.Keys}}, Drain: 2 * time.Second, Join: s.Join,
		Traces:   s.Traces,
		interval: cmp.Or(s.Interval, 200*time.Millisecond),
	}
}

func (f *place) start(changes ...func(*Options)) *member {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	m := &member{stop: stop, ended: make(chan error, 1)}
	o := f.next().options()
	o.Log = slog.New(slog.NewTextHandler(testkit.LogOf(f.t, "a node"), nil))
	for _, change := range changes {
		change(&o)
	}
	started := make(chan [3]net.Addr, 1)
	o.Started = func(listen, admin, cluster net.Addr) { started <- [3]net.Addr{listen, admin, cluster} }
	go func() { m.ended <- Run(ctx, o) }()
	at := testkit.Receive(f.t, "it listens", started)
	m.listen, m.admin, m.cluster = at[0].String(), at[1].String(), fmt.Sprint(at[2])
	f.nodes = append(f.nodes, m)
	f.t.Cleanup(func() {
		stop()
		testkit.Eventually(f.t, "it has ended", func() bool { return len(m.ended) == 1 })
	})
	return m
}

func get(t *testing.T, addr, path string) string {
	t.Helper()
	answer, err := http.Get("http://" + addr + path)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status + "\n" + string(text)
}

// counts waits until a node's metric has a value.
func counts(t *testing.T, admin, name string, want int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("a node has %s %d", name, want), func() bool {
		return strings.Contains(get(t, admin, "/metrics"), fmt.Sprintf("\npagewire_node_%s %d\n", name, want))
	})
}

// page makes a page dial a node. When the connection ends, the page dials the node that was last given to goTo.
func (f *place) page(m *member, page *testkit.Page, subject string) (goTo func(*member)) {
	var at atomic.Pointer[member]
	at.Store(m)
	page.Epoch("epoch of " + subject)
	ticket := f.login.Ticket(subject, app)
	page.DialAny(func() string { return at.Load().listen }, app, func() string { return ticket })
	return at.Store
}

// A header is a client's RoundTripper that sets it in each request.
type header http.Header

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, h)
	return http.DefaultTransport.RoundTrip(r)
}

func withToken(token string) header { return header{"Authorization": {"Bearer " + token}} }

func (f *place) agent(m *member, subject string) *testkit.Agent {
	f.t.Helper()
	return f.agentBy(m, withToken(f.login.Token(subject, "pages:read pages:act")), testkit.Legacy)
}

func (f *place) agentBy(m *member, by http.RoundTripper, version string) *testkit.Agent {
	f.t.Helper()
	return testkit.Connect(f.t, &mcp.StreamableClientTransport{Endpoint: "http://" + m.listen + "/mcp",
		HTTPClient: &http.Client{Transport: by}}, version)
}

// A node with DebuggingTools shows tools for developers, independent of the page's node.
func TestDebuggingTools(t *testing.T) {
	f := newFleet(t, 1)
	shows := f.start(func(o *Options) { o.DebuggingTools = true })
	page := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
	for name, debugging := range map[string]bool{"dump": true, "pay": false} {
		page.SetTool(name, testkit.Tool{Members: map[string]any{"_meta": map[string]any{
			"pagewire/hints": map[string]any{"debugging": debugging}}}})
	}
	f.page(f.nodes[0], page, "alice")
	for m, want := range map[*member]bool{f.nodes[0]: false, shows: true} {
		a := f.agent(m, "alice")
		testkit.Eventually(t, "the other tool is there", func() bool { return slices.Contains(a.ToolNames(), "pay") })
		if got := slices.Contains(a.ToolNames(), "dump"); got != want {
			t.Errorf("a node with debugging tools %v shows one: %v", want, got)
		}
	}
}

// During DrainDelay a node is not ready, but serves old and new clients; it does so without any page, too.
func TestDrainDelay(t *testing.T) {
	f, delayed := newFleet(t, 0), make(chan struct{})
	m := f.start(func(o *Options) { o.DrainDelay, o.delayed = testkit.Patience, delayed })
	t.Cleanup(func() { close(delayed) })
	m.stop()
	for _, at := range []string{m.listen, m.admin} {
		testkit.Eventually(t, "it is not ready", func() bool {
			got := get(t, at, "/readyz")
			if strings.Contains(got, "refused") {
				t.Fatal(got)
			}
			return strings.Contains(got, "503") && strings.Contains(got, "the node ends")
		})
		if got := get(t, at, "/healthz"); !strings.Contains(got, "200") {
			t.Errorf("a node that ends is not healthy: %s", got)
		}
	}
	f.page(m, testkit.NewPage(t, map[string]string{app + "/doc": "one"}), "alice")
	f.agent(m, "alice").Shows(app + "/doc")
}

// Requests that are open when a node is to end are answered, even if the page is the node's own. A request that takes
// more than half of the drain gets an error with the reason.
func TestCallsWhileANodeEnds(t *testing.T) {
	for _, finishes := range []bool{true, false} {
		f := newFleet(t, 0)
		m := f.start(func(o *Options) {
			if o.Drain = time.Second; finishes {
				o.Drain = testkit.Patience
			}
		})
		running, goOn := make(chan bool, 1), make(chan bool)
		page := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
		page.SetTool("slow", testkit.Tool{Run: func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
			running <- true
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return map[string]any{"content": []any{map[string]string{"type": "text", "text": "done"}}}
		}})
		f.page(m, page, "alice")
		a := f.agent(m, "alice")
		a.Shows(app + "/doc")
		answer := make(chan string, 1)
		go func() {
			result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow"})
			text, _ := json.Marshal(result)
			answer <- fmt.Sprint(string(text), err)
		}()
		testkit.Receive(t, "the tool runs", running)
		m.stop()
		if finishes {
			testkit.Eventually(t, "the node ends", func() bool { return strings.Contains(get(t, m.admin, "/readyz"), "503") })
			close(goOn)
		}
		got, want := testkit.Receive(t, "the call is answered", answer), "went away"
		if finishes {
			want = "done"
		}
		if !strings.Contains(got, want) {
			t.Errorf("the call is answered %q, not %q", got, want)
		}
	}
}

// The events/stream of a legacy session never ends by itself, and names no method in a header: a node that is to end
// does not wait for it, be it the session's own node or one that passes the request on.
func TestEventStreamWhileANodeEnds(t *testing.T) {
	f := newFleet(t, 1)
	own, other := f.nodes[0], f.start(func(o *Options) { o.Drain = 2 * testkit.Patience })
	for _, m := range f.nodes {
		counts(t, m.admin, "nodes", 2)
	}
	for _, m := range []*member{other, own} { // the session is at one node, and the stream is asked for at both
		session := ""
		post := func(at *member, body string) *http.Response {
			t.Helper()
			r := testkit.Must(http.NewRequestWithContext(t.Context(), "POST", "http://"+at.listen+"/mcp",
				strings.NewReader(`{"jsonrpc":"2.0",`+body+`}`)))(t)
			r.Header.Set("Content-Type", "application/json")
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			answer := testkit.Must(withToken(f.login.Token("alice", "pages:read")).RoundTrip(r))(t)
			t.Cleanup(func() { answer.Body.Close() })
			return answer
		}
		session = post(m, `"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
			`"clientInfo":{"name":"test","version":"1"}}`).Header.Get("Mcp-Session-Id")
		post(m, `"method":"notifications/initialized"`)
		stream := bufio.NewScanner(post(other, `"id":2,"method":"events/stream","params":{"name":"page.opened"}`).Body)
		for stream.Scan() && !strings.Contains(stream.Text(), "notifications/events/active") {
		}
		if stream.Err() != nil || stream.Text() == "" {
			t.Fatalf("there is no stream: %v", stream.Err())
		}
	}
	other.stop()
	testkit.Eventually(t, "it has ended", func() bool { return len(other.ended) == 1 })
}

func TestMetrics(t *testing.T) {
	f := newFleet(t, 0)
	m := f.start(func(o *Options) { o.Version = "1.2" })
	f.page(m, testkit.NewPage(t, map[string]string{app + "/doc": "one"}), "alice")
	f.agent(m, "alice").Shows(app + "/doc")
	if answer := get(t, m.listen, "/mcp"); !strings.Contains(answer, "401") {
		t.Errorf("a client without a token: %s", answer)
	}
	if answer := get(t, m.listen, "/page"); !strings.Contains(answer, "403") {
		t.Errorf("who is no page: %s", answer)
	}
	text := get(t, m.admin, "/metrics")
	for _, line := range []string{"pagewire_node_pages 1\n", "pagewire_node_agents 1\n", "pagewire_node_cores 1\n",
		"pagewire_node_bus_up 1\n", `pagewire_node_refused_total{reason="page: no origin"} 1` + "\n",
		"pagewire_node_messages_said_total ", "pagewire_node_bus_latency_seconds ", "pagewire_node_waiting_bytes ",
		"pagewire_node_pauses_total 0\n", "pagewire_node_announcements_total ", "pagewire_node_draining 0\n",
		`pagewire_node_build_info{version="1.2"} 1` + "\n", `pagewire_node_connections{address="admin"} 1` + "\n",
		`pagewire_node_request_seconds_count{code="200",method="post"} `,
		`pagewire_node_request_seconds_count{code="401",method="get"} 1` + "\n",
		`pagewire_node_keys_timestamp_seconds{issuer="https://login.example"} 1.`, "go_goroutines ",
		"process_resident_memory_bytes "} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %q:\n%s", line, text)
		}
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		asks, err := os.ReadFile(filepath.Join("../../../demo/fleet/deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(pagewire_node|process)_\w+`).FindAllString(string(asks), -1) {
			if !strings.Contains(text, "\n"+name+" ") && !strings.Contains(text, "\n"+name+"{") {
				t.Errorf("%s asks for %s, which there is not", file, name)
			}
		}
	}
	_, text, _ = strings.Cut(text, "\n")
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	if answer := get(t, m.listen, "/metrics"); !strings.Contains(answer, "404") {
		t.Errorf("anybody who reaches the node has its metrics: %s", answer)
	}
	for _, at := range []string{m.listen, m.admin} {
		if answer := get(t, at, "/readyz"); !strings.Contains(answer, "200") {
			t.Errorf("it is not ready: %s", answer)
		}
	}
}

// A node is ready when the bus is connected, a node has been heard if it is to join any, and it has keys.
func TestReadiness(t *testing.T) {
	for why, change := range map[string]func(*Options){
		"the bus is not there":         func(o *Options) { o.NATS, o.Cluster = "nats://"+testkit.Addr(t), "" },
		"no other node has been heard": func(o *Options) { o.Join = []string{testkit.Addr(t)} },
		"there are no keys of issuers": func(o *Options) { o.Issuers[0].JWKS = "http://" + testkit.Addr(t) },
	} {
		m := newFleet(t, 0).start(change)
		if got := get(t, m.admin, "/readyz"); !strings.Contains(got, "503") || !strings.Contains(got, why) {
			t.Errorf("%s: %s", why, got)
		}
		if got := get(t, m.admin, "/metrics"); !strings.Contains(got, "pagewire_node_ready 0\n") {
			t.Errorf("%s: the metrics say\n%s", why, got)
		}
	}
}

// Connections without a token are bounded, whatever they request: the oldest is closed. Connections of agents and
// pages, and connections at the other address, stay.
func TestStrangers(t *testing.T) {
	f := newFleet(t, 0)
	m := f.start(func(o *Options) { o.strangers = 2 })
	f.page(m, testkit.NewPage(t, map[string]string{app + "/doc": "one"}), "alice")
	a := f.agent(m, "alice")
	a.Shows(app + "/doc")
	operator := dialRaw(t, m.admin)
	operator.ask("/healthz")
	first := dialRaw(t, m.listen)
	first.ask("/healthz")
	dialRaw(t, m.listen).ask("/healthz")
	dialRaw(t, m.listen).ask("/healthz")
	if n, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest connection: %d, %v", n, err)
	}
	operator.ask("/metrics")
	a.Shows(app + "/doc")
	text := get(t, m.admin, "/metrics")
	for _, line := range []string{`pagewire_node_refused_total{reason="connection: strangers"}`,
		"pagewire_node_pages 1\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics lack %q:\n%s", line, text)
		}
	}
}

// A client without a token that reads nothing is given up. An agent may wait longer for its answer.
func TestClientThatReadsNothing(t *testing.T) {
	f := newFleet(t, 0)
	m := f.start(func(o *Options) { o.answers = 500 * time.Millisecond })
	reading, givenUp := make(chan bool, 1), make(chan struct{})
	page := testkit.NewPage(t, nil)
	page.Add(app+"/slow", func(context.Context, string) (string, error) {
		reading <- true
		<-givenUp
		return "slow", nil
	})
	f.page(m, page, "alice")
	a := f.agent(m, "alice")
	a.Shows(app + "/slow")
	text := make(chan string, 1)
	go func() {
		got, err := a.Read(app + "/slow")
		text <- fmt.Sprint(got, err)
	}()
	testkit.Receive(t, "the page is asked", reading)
	deaf := dialRaw(t, m.listen)
	for err := error(nil); err == nil; { // until it is given up; its deadline is Patience
		_, err = deaf.Write(bytes.Repeat([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 1000))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a client that reads nothing is not given up")
		}
	}
	close(givenUp)
	if got := testkit.Receive(t, "the agent has its answer", text); got != "slow<nil>" {
		t.Errorf("the agent reads %s", got)
	}
}

// A secret that everybody on the machine may read is refused. Kubernetes mounts secrets that a group may read.
func TestSecretsThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such bits")
	}
	f := newFleet(t, 0)
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o604: true, 0o644: true} {
		if err := os.Chmod(f.secret, mode); err != nil {
			t.Fatal(err)
		}
		if err := Run(ended, f.next().options()); (err != nil) != refused ||
			refused && !strings.Contains(err.Error(), "chmod o=") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// A raw connection sends requests as the test writes them.
type raw struct {
	net.Conn
	t *testing.T
}

func dialRaw(t *testing.T, addr string) raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return raw{c, t}
}

// ask requests a path, and reads the answer.
func (c raw) ask(path string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: live.example\r\n\r\n", path); err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s, %v", path, answer.Status, err)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	f := newFleet(t, 0)
	good := Options{Listen: "127.0.0.1:0", PublicURL: public, Issuers: []tickets.Issuer{{Issuer: "x", JWKS: f.login.Keys}}}
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"no address":       func(o *Options) { o.Listen = "here" },
		"no public URL":    func(o *Options) { o.PublicURL = "" },
		"no URL":           func(o *Options) { o.PublicURL = "live.example" },
		"no issuer":        func(o *Options) { o.Issuers = nil },
		"no keys":          func(o *Options) { o.Issuers = []tickets.Issuer{{Issuer: "x", JWKS: "/nowhere"}} },
		"no TLS":           func(o *Options) { o.Listen = "0.0.0.0:0" },
		"no URL of a node": func(o *Options) { o.NodeURL = "here" },
		"no node's own URL": func(o *Options) {
			o.Listen, o.InsecureHTTP, o.Cluster, o.SecretFile = "0.0.0.0:0", true, "127.0.0.1:0", f.secret
		},
		"a node without TLS":  func(o *Options) { o.NodeURL = "http://10.0.0.7:8443" },
		"no node authority":   func(o *Options) { o.NodeCA = short },
		"half a certificate":  func(o *Options) { o.TLSCert = "x" },
		"two kinds of bus":    func(o *Options) { o.NATS, o.Cluster = "nats://127.0.0.1:1", "127.0.0.1:0" },
		"no secret file":      func(o *Options) { o.SecretFile = "/nowhere" },
		"a short secret":      func(o *Options) { o.SecretFile = short },
		"no such certificate": func(o *Options) { o.ClusterCert = "/nowhere" },
		"no such authority":   func(o *Options) { o.NATSCA = "/nowhere" },
		"no receiver":         func(o *Options) { o.Traces = "here" },
		"no authority":        func(o *Options) { o.NATSCA = short },
		"fewer than no pages": func(o *Options) { o.Pages = -1 },
		"a drain in the past": func(o *Options) { o.Drain = -time.Second },
		"a delay below zero":  func(o *Options) { o.DrainDelay = -time.Second },
		"an origin's host":    func(o *Options) { o.AllowOrigins = []string{"app.example"} },
	} {
		o := good
		change(&o)
		if err := Run(ended, o); err == nil || !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
