//go:build !js

package viewhost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/viewhost"
)

// A stage is a server of the Go SDK, its client, and a Host of that client.
type stage struct {
	t       *testing.T
	server  *mcp.Server
	session *mcp.ClientSession
	host    *viewhost.Host
	connect func() *mcp.ClientSession

	mu       sync.Mutex
	watching map[string]int
	versions map[string]int
}

var uris = []string{"data://a", "data://b", "data://c"}

func newStage(t *testing.T, version, transport string) *stage {
	t.Helper()
	s := &stage{t: t, watching: map[string]int{}, versions: map[string]int{}}
	count := func(uri string, n int) {
		s.mu.Lock()
		s.watching[uri] += n
		s.mu.Unlock()
	}
	s.server = mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{Subscribe: true,
			ListChanged: true}},
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			count(r.Params.URI, 1)
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			count(r.Params.URI, -1)
			return nil
		},
	})
	for _, uri := range uris {
		s.server.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (
			*mcp.ReadResourceResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return &mcp.ReadResourceResult{
				Contents: []*mcp.ResourceContents{{URI: uri, Text: fmt.Sprint(s.versions[uri])}}}, nil
		})
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	// the SDK's server confuses overlapping listens of a channel
	s.host = viewhost.New(client, viewhost.Options{NoOverlap: transport == "memory"})
	var endpoint string
	if transport == "http" {
		h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server },
			&mcp.StreamableHTTPOptions{Stateless: version >= "2026"}))
		t.Cleanup(h.Close)
		t.Cleanup(h.CloseClientConnections)
		endpoint = h.URL
	}
	s.connect = func() *mcp.ClientSession {
		t.Helper()
		var tr mcp.Transport = &mcp.StreamableClientTransport{Endpoint: endpoint}
		if endpoint == "" {
			theirs, ours := mcp.NewInMemoryTransports()
			if _, err := s.server.Connect(t.Context(), theirs, nil); err != nil {
				t.Fatal(err)
			}
			tr = ours
		}
		session, err := client.Connect(t.Context(), tr, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if got := session.InitializeResult().ProtocolVersion; got != version {
			t.Fatalf("settled on %s", got)
		}
		s.host.Connected(session)
		return session
	}
	s.session = s.connect()
	t.Cleanup(func() {
		s.session.Close()
		s.host.Close()
	})
	return s
}

func (s *stage) change(uri string) {
	s.mu.Lock()
	s.versions[uri]++
	s.mu.Unlock()
	s.server.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
}

// watched counts the URIs that the server has subscriptions to.
func (s *stage) watched() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, count := range s.watching {
		n += min(count, 1)
	}
	return n
}

// A port is a View by its messages.
type port struct {
	t    *testing.T
	view *viewhost.View
	mu   sync.Mutex
	got  []string
	next int
}

func (s *stage) open() *port {
	p := &port{t: s.t}
	v, err := s.host.Open(func(text []byte) {
		p.mu.Lock()
		p.got = append(p.got, string(text))
		p.mu.Unlock()
	})
	if err != nil {
		s.t.Fatal(err)
	}
	p.view = v
	return p
}

// ask sends a request and returns its answer.
func (p *port) ask(method, uri string) string {
	p.t.Helper()
	p.mu.Lock()
	p.next++
	id := p.next
	p.mu.Unlock()
	if !p.view.Receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"uri":%q}}`, id, method, uri)) {
		p.t.Fatalf("%s was not taken", method)
	}
	prefix := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, id)
	answer := ""
	testkit.Eventually(p.t, method+" is answered", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.got {
			if strings.HasPrefix(m, prefix) {
				answer = strings.TrimPrefix(m, prefix)
			}
		}
		return answer != ""
	})
	return answer
}

// told counts the updates of a URI.
func (p *port) told(uri string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m == fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri) {
			n++
		}
	}
	return n
}

func each(t *testing.T, test func(t *testing.T, s *stage)) {
	for _, transport := range []string{"memory", "http"} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(transport+"/"+version, func(t *testing.T) { test(t, newStage(t, version, transport)) })
		}
	}
}

func TestAViewSubscribesIsToldReadsAndGoes(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		p := s.open()
		if got := p.ask("resources/subscribe", "data://a"); got != `"result":{}}` {
			t.Fatalf("subscribe: %s", got)
		}
		if got := p.ask("resources/subscribe", "data://elsewhere"); !strings.Contains(got, `"code":-32002`) {
			t.Errorf("subscribe to what is not there: %s", got)
		}
		if got := p.ask("resources/read", "data://elsewhere"); !strings.Contains(got, `"code":-32002`) {
			t.Errorf("read what is not there: %s", got)
		}
		s.change("data://a")
		testkit.Eventually(t, "the View is told", func() bool { return p.told("data://a") == 1 })
		if got := p.ask("resources/read", "data://a"); got != `"result":{"contents":[{"uri":"data://a","text":"1"}]}}` {
			t.Errorf("read: %s", got)
		}
		if got := p.ask("resources/list", ""); !strings.Contains(got, `"uri":"data://c"`) {
			t.Errorf("list: %s", got)
		}
		if got := p.ask("resources/templates/list", ""); !strings.Contains(got, `"resourceTemplates"`) {
			t.Errorf("templates: %s", got)
		}
		// A larger set, and a smaller one: none of them misses a change.
		p.ask("resources/subscribe", "data://b")
		s.change("data://a")
		s.change("data://b")
		testkit.Eventually(t, "the View is told of both", func() bool {
			return p.told("data://a") >= 2 && p.told("data://b") >= 1
		})
		p.ask("resources/unsubscribe", "data://a")
		testkit.Eventually(t, "one listen, one URI", func() bool {
			x := s.host.Stats()
			return x.Upstream == 1 && x.Streams <= 1
		})
		s.change("data://b")
		testkit.Eventually(t, "the View is still told", func() bool { return p.told("data://b") >= 2 })
		p.view.Close()
		testkit.Eventually(t, "nothing is left", func() bool {
			x := s.host.Stats()
			return x.Upstream+x.Streams+x.Views == 0 && s.watched() == 0
		})
		if p.view.Receive([]byte(`{"jsonrpc":"2.0","id":9,"method":"resources/list"}`)) {
			t.Error("a closed View is answered")
		}
	})
}

func TestFiftyViewsAreOneSubscription(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		var ports []*port
		var all sync.WaitGroup
		for range 50 {
			p := s.open()
			ports = append(ports, p)
			all.Go(func() {
				if got := p.ask("resources/subscribe", "data://a"); got != `"result":{}}` {
					t.Errorf("subscribe: %s", got)
				}
			})
		}
		all.Wait()
		if x := s.host.Stats(); x.Subscriptions != 50 || x.Upstream != 1 || x.Subscribes+x.Listens != 1 ||
			s.watched() != 1 {
			t.Errorf("%+v, the server has %d", x, s.watched())
		}
		s.change("data://a")
		for _, p := range ports {
			testkit.Eventually(t, "all are told", func() bool { return p.told("data://a") == 1 })
		}
		for i, n := range rand.Perm(50) {
			if x := s.host.Stats(); x.Upstream != 1 || x.Unsubscribes+x.Cancels != 0 {
				t.Fatalf("when %d have gone: %+v", i, x)
			}
			ports[n].view.Close()
		}
		testkit.Eventually(t, "nothing is left", func() bool {
			x := s.host.Stats()
			return x.Upstream+x.Streams == 0 && s.watched() == 0
		})
	})
}

// The connection ends and another comes: what is watched is watched there, and announced.
func TestReconnect(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		p := s.open()
		p.ask("resources/subscribe", "data://a")
		s.session.Close()
		testkit.Eventually(t, "the host knows", func() bool { return s.host.Stats().Upstream == 0 })
		if got := p.ask("resources/read", "data://a"); !strings.Contains(got, "not connected") {
			t.Errorf("read without a connection: %s", got)
		}
		if got := string(s.host.Capabilities([]byte(`{}`))); got != `{}` {
			t.Errorf("without a connection: %s", got)
		}
		s.change("data://a")
		s.session = s.connect()
		testkit.Eventually(t, "the View is told of what it missed", func() bool { return p.told("data://a") == 1 })
		s.change("data://a")
		testkit.Eventually(t, "and of what changes now", func() bool { return p.told("data://a") == 2 })
	})
}

func TestTheHandshakeSaysWhatTheHostCan(t *testing.T) {
	s := newStage(t, "2025-11-25", "memory")
	p := s.open()
	sent := p.view.Sent(
		[]byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2026-01-26","hostCapabilities":{"openLinks":{},"serverResources":{"listChanged":true}}}}`), []byte(`0`))
	var m struct {
		Result struct{ HostCapabilities json.RawMessage }
	}
	if err := json.Unmarshal(sent, &m); err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.Result.HostCapabilities),
		`{"experimental":{"io.github.pagewire/resourceSubscriptions":{"maxSubscriptions":10}},"openLinks":{},"serverResources":{"listChanged":true,"maxSubscriptions":10,"subscribe":true}}`; got != want {
		t.Errorf("got %s", got)
	}
	for _, other := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":0,"method":"ui/x"}`,
		`{"jsonrpc":"2.0","id":0,"error":{}}`, `nonsense`} {
		if got := p.view.Sent([]byte(other), []byte(`0`)); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
	if got := string(s.host.Capabilities(nil)); !strings.Contains(got, "maxSubscriptions") {
		t.Errorf("got %s", got)
	}
	if got := string(s.host.Capabilities([]byte(`[]`))); got != `[]` {
		t.Errorf("got %s", got)
	}
	// The end begins with a message, too.
	s.host.Learn("data://learnt")
	p.ask("resources/subscribe", "data://learnt")
	p.view.Sent([]byte(`{"jsonrpc":"2.0","id":7,"method":"ui/resource-teardown","params":{}}`), nil)
	if x := s.host.Stats(); x.Subscriptions != 0 {
		t.Errorf("%+v", x)
	}
	if got := p.ask("resources/subscribe", "data://a"); !strings.Contains(got, "teardown") {
		t.Errorf("subscribe during the teardown: %s", got)
	}
}

// A View that takes nothing holds up no other, and gets one update when it takes again.
func TestASlowViewHoldsUpNoOther(t *testing.T) {
	s := newStage(t, "2025-11-25", "memory")
	gate, got := make(chan bool), make(chan string, 1000)
	slow, err := s.host.Open(func(text []byte) {
		<-gate
		got <- string(text)
	})
	if err != nil {
		t.Fatal(err)
	}
	fast := s.open()
	fast.ask("resources/subscribe", "data://a")
	for i := range 100 {
		slow.Receive(
			fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"data://a"}}`, i))
	}
	for i := range 3 {
		s.change("data://a")
		testkit.Eventually(t, "the other is told", func() bool { return fast.told("data://a") == i+1 })
	}
	close(gate)
	updates := 0
	for range 101 {
		if strings.Contains(<-got, "updated") {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("the slow View is told %d times", updates)
	}
	slow.Close()
}

// Views come and go, subscribe and stop, and the server changes things, all at once.
func TestHammer(t *testing.T) {
	each(t, func(t *testing.T, s *stage) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 10 {
					p := s.open()
					for range 3 {
						p.ask("resources/subscribe", uris[rand.IntN(3)])
						s.change(uris[rand.IntN(3)])
						p.ask("resources/read", uris[rand.IntN(3)])
						p.ask("resources/unsubscribe", uris[rand.IntN(3)])
					}
					p.view.Close()
				}
			})
		}
		all.Wait()
		testkit.Eventually(t, "nothing is left", func() bool {
			x := s.host.Stats()
			return x.Upstream+x.Streams+x.Views == 0 && s.watched() == 0
		})
	})
}

func TestAClosedHostLeavesNothingRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		s := newStage(t, "2026-07-28", "memory")
		p := s.open()
		p.ask("resources/subscribe", "data://a")
		s.session.Close()
		s.host.Close()
		if _, err := s.host.Open(func([]byte) {}); err != viewhost.ErrClosed {
			t.Errorf("open: %v", err)
		}
		s.host.Connected(s.session)
		s.host.Close()
	}()
	// the server's session ends with the test
	testkit.Eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before+2 })
}
