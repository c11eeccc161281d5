package endpoint

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
)

const app, public = "https://app.example", nodekit.Public

// A place is a fleet, with a balancer before it that does not know sessions.
type place struct {
	t        *testing.T
	nodes    []*node.Node
	servers  []*httptest.Server
	handlers []*Handler
	login    *nodekit.Login
	turn     atomic.Int64
	only     atomic.Int64 // if not 0, the number from 1 of the node that gets all requests
}

func openPlace(t *testing.T, size int) *place {
	t.Helper()
	return openPlaceAt(t, size, httptest.NewServer, nil)
}

// openPlaceAt opens a place whose nodes have servers made by start. roots are the authorities of their certificates.
func openPlaceAt(t *testing.T, size int, start func(http.Handler) *httptest.Server,
	roots *x509.CertPool) *place {
	t.Helper()
	p := &place{t: t, login: nodekit.NewLogin(t)}
	verifier := p.login.Verifier()
	var join []string
	for range size {
		log := slog.New(slog.NewTextHandler(testkit.LogOf(t, "a node"), nil))
		var handler atomic.Pointer[Handler]
		server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.Load().ServeHTTP(w, r)
		}))
		n, err := node.Open(node.Options{Log: log, URL: server.URL,
			Bus: bus.Options{Cluster: "127.0.0.1:0", Join: join, Secret: "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		if join == nil {
			join = []string{n.ClusterAddr()}
		}
		h, err := New(Options{Node: n, Tickets: verifier, PublicURL: public, Roots: roots, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		handler.Store(h)
		p.nodes, p.servers, p.handlers = append(p.nodes, n), append(p.servers, server), append(p.handlers, h)
		t.Cleanup(func() {
			server.CloseClientConnections()
			n.Close()
			server.Close()
			h.Close()
		})
	}
	testkit.Eventually(t, "the nodes know each other", func() bool {
		return !slices.ContainsFunc(p.nodes, func(n *node.Node) bool { return n.Stats().Nodes != size })
	})
	return p
}

// RoundTrip is the balancer: each request goes to the next node.
func (p *place) RoundTrip(r *http.Request) (*http.Response, error) {
	i := p.only.Load() - 1
	if i < 0 {
		i = p.turn.Add(1) % int64(len(p.servers))
	}
	target, err := url.Parse(p.servers[i].URL)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.URL.Scheme = target.Host, target.Scheme
	r.Host = "live.example"
	return p.servers[i].Client().Transport.RoundTrip(r)
}

// bearer adds a token to each request.
type bearer struct {
	next   http.RoundTripper
	header http.Header
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range b.header {
		r.Header[name] = values
	}
	return b.next.RoundTrip(r)
}

func (p *place) agent(version, token string, more ...string) *testkit.Agent {
	p.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}}
	for i := 0; i+1 < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return testkit.Connect(p.t, &mcp.StreamableClientTransport{Endpoint: public + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{p, header}}, MaxRetries: -1}, version)
}

// page opens a page of a user at a node.
func (p *place) page(n *node.Node, subject string, state map[string]string) *testkit.Page {
	p.t.Helper()
	page := testkit.NewPage(p.t, state)
	page.Epoch("epoch of " + subject)
	out := make(chan []byte, 1000)
	at, err := n.Attach(tickets.UserOf(p.login.Name, subject), app, func(frame []byte) {
		if frame == nil {
			close(out)
			return
		}
		out <- frame
	})
	if err != nil {
		p.t.Fatal(err)
	}
	go func() {
		for frame := range out {
			page.Hear(frame)
		}
	}()
	page.Connect(func(frame []byte) { _ = at.Receive(frame) }, map[string]any{"tab": "tab-" + subject})
	return page
}

// The official client works, in both eras, through a balancer that sends each request to another node.
func TestAgentsBehindABalancer(t *testing.T) {
	for _, version := range []string{testkit.Legacy, testkit.Modern} {
		t.Run(version, func(t *testing.T) {
			p := openPlace(t, 3)
			page := p.page(p.nodes[0], "alice", map[string]string{app + "/doc": "one"})
			p.page(p.nodes[1], "bob", map[string]string{app + "/bobs": "b"})
			a := p.agent(version, p.login.Token("alice", "pages:read pages:act"))
			b := p.agent(version, p.login.Token("bob", "pages:read"))
			for range 4 {
				a.Shows(app + "/doc")
				b.Shows(app + "/bobs")
			}
			a.Watch(app + "/doc")
			page.Set(app+"/doc", "two")
			a.Learns(app+"/doc", "two")
			if text, err := b.Read(app + "/doc"); err == nil {
				t.Errorf("another user reads %q", text)
			}
		})
	}
}

// Only agents that may act have the pages' tools.
func TestScopes(t *testing.T) {
	p := openPlace(t, 2)
	page := p.page(p.nodes[0], "alice", map[string]string{app + "/doc": "one"})
	page.SetTool("pay", testkit.Tool{})
	acts := p.agent(testkit.Legacy, p.login.Token("alice", "pages:read pages:act"))
	reads := p.agent(testkit.Legacy, p.login.Token("alice", "pages:read"))
	testkit.Eventually(t, "the tool is there", func() bool { return slices.Contains(acts.ToolNames(), "pay") })
	if slices.Contains(reads.ToolNames(), "pay") {
		t.Error("who may only read has a tool")
	}
	if r, err := reads.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err == nil && !r.IsError {
		t.Error("who may only read has called a tool")
	}
	service := p.agent(testkit.Legacy, p.login.Token("the service", "pages:read pages:any-user"), HeaderUser, "alice")
	service.Shows(app + "/doc")
}

// initialize is the request of a client that begins.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`

// send sends a request of alice's to a node. headers are pairs of name and value.
func (p *place) send(ctx context.Context, node int, method string, body io.Reader,
	headers ...string) (*http.Response, error) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, p.servers[node].URL+"/mcp", body)
	if err != nil {
		p.t.Fatal(err)
	}
	headers = append([]string{"Authorization", "Bearer " + p.login.Token("alice", "pages:read"), "Content-Type",
		"application/json", "Accept", "application/json, text/event-stream"}, headers...)
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	return p.servers[node].Client().Do(r)
}

// An answered is an answer, as far as the client got it.
type answered struct {
	status int
	header http.Header
	text   string
	err    error // the error that ends text
}

func (p *place) ask(node int, method, body string, headers ...string) (a answered) {
	p.t.Helper()
	answer, err := p.send(p.t.Context(), node, method, strings.NewReader(body), headers...)
	if err != nil {
		return answered{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answered{answer.StatusCode, answer.Header, string(text), err}
}

// begin begins a session of alice's at a node.
func (p *place) begin(node int) (session string) {
	p.t.Helper()
	a := p.ask(node, "POST", initialize)
	if session = a.header.Get("Mcp-Session-Id"); a.status != 200 || !strings.HasPrefix(session, p.nodes[node].ID()+".") {
		p.t.Fatalf("the session is %q: %+v", session, a)
	}
	return session
}

func TestRequestsThatAreRefused(t *testing.T) {
	p := openPlace(t, 1)
	by := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	expired := p.login.Signed("alice", map[string]any{"scope": "pages:read", "exp": time.Now().Add(-time.Hour)})
	other := p.login.Signed("alice", map[string]any{"scope": "pages:read", "aud": "https://other.example"})
	const none, lacks = "invalid_token", "insufficient_scope"
	for name, c := range map[string]struct {
		header []string
		status int
		reason string
		error  string
	}{
		"good":                   {nil, 200, "", ""},
		"no token":               {[]string{"Authorization", ""}, 401, "agent: no token", none},
		"another scheme":         {[]string{"Authorization", "Basic eDp5"}, 401, "", none},
		"garbage":                {by("x"), 401, "agent: token: malformed", none},
		"expired":                {by(expired), 401, "agent: token: expired", none},
		"another audience":       {by(other), 401, "agent: token: audience", none},
		"a ticket":               {by(p.login.Ticket("alice", app)), 401, "agent: token: no token", none},
		"no scope":               {by(p.login.Token("alice", "email")), 403, "agent: scope", lacks},
		"another user":           {[]string{HeaderUser, "bob"}, 403, "agent: scope", lacks},
		"another host":           {[]string{"Host", "evil.example"}, 403, "agent: host", ""},
		"a name below localhost": {[]string{"Host", "evil.localhost"}, 403, "agent: host", ""},
		"its name in capitals":   {[]string{"Host", "LIVE.example:443"}, 200, "", ""},
		"another origin":         {[]string{"Origin", "https://evil.example"}, 403, "agent: origin", ""},
	} {
		before := p.nodes[0].Stats().Refused[c.reason]
		a := p.ask(0, "POST", initialize, c.header...)
		asks := a.header.Get("WWW-Authenticate")
		counted := p.nodes[0].Stats().Refused[c.reason] - before
		if a.status != c.status || c.reason != "" && counted != 1 {
			t.Errorf("%s: %+v, counted %d", name, a, counted)
		}
		if c.error != "" && (!strings.Contains(asks, `error="`+c.error+`"`) || !strings.Contains(asks,
			`resource_metadata="https://live.example/.well-known/oauth-protected-resource/mcp"`)) {
			t.Errorf("%s: WWW-Authenticate: %s", name, asks)
		}
		if strings.Contains(a.text, "alice") || strings.Contains(a.text, "Bearer") {
			t.Errorf("%s: the answer says whose the token is: %s", name, a.text)
		}
	}
}

// A request or stream may last until its token ends, plus the greatest difference of clocks.
func TestRequestsEndWithTheirToken(t *testing.T) {
	p := openPlace(t, 1)
	until := time.Now().Add(time.Minute).Truncate(time.Second)
	token := p.login.Signed("alice", map[string]any{"scope": "pages:read", "exp": until})
	var end time.Time
	p.handlers[0].o.Seen = func(r *http.Request, _ string) { end, _ = r.Context().Deadline() }
	a := p.ask(0, "POST", initialize, "Authorization", "Bearer "+token)
	if a.status != 200 || !end.Equal(until.Add(tickets.Skew)) {
		t.Errorf("%+v; it may take until %v after the token's end", a, end.Sub(until))
	}
}

// An agent in a page of an allowed origin gets CORS headers. Without them its browser would not show it the answer.
func TestAgentsInPages(t *testing.T) {
	p := openPlace(t, 2)
	for origin, want := range map[string]int{public: 204, "http://localhost:3000": 204, "https://evil.example": 403} {
		a := p.ask(0, "OPTIONS", "", "Authorization", "", "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization")
		allowed := a.header.Get("Access-Control-Allow-Origin")
		if a.status != want || (allowed == origin) != (want == 204) {
			t.Errorf("%s: %+v, and %q may read it", origin, a, allowed)
		}
	}
	a := p.ask(1, "POST", ping, "Origin", public, "Mcp-Session-Id", p.begin(0))
	if by := a.header.Values("Access-Control-Allow-Origin"); a.status != 200 || len(by) != 1 {
		t.Errorf("what another node answers: %+v, and %q may read it", a, by)
	}
}

// The metadata of the resource is at the paths that clients request.
func TestMetadata(t *testing.T) {
	p := openPlace(t, 1)
	for path, resource := range map[string]string{"": public, "/mcp": public + "/mcp"} {
		answer, err := http.Get(p.servers[0].URL + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		var m oauthex.ProtectedResourceMetadata
		err = json.NewDecoder(answer.Body).Decode(&m)
		answer.Body.Close()
		if err != nil || m.Resource != resource || !slices.Equal(m.AuthorizationServers, []string{p.login.Name}) ||
			!slices.Contains(m.ScopesSupported, ScopeRead) {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
	}
}

// A session belongs to its user at each node, and ends with its node.
func TestSessionsOfOtherNodes(t *testing.T) {
	p := openPlace(t, 2)
	session := p.begin(0)
	for name, c := range map[string]struct {
		node    int
		subject string
		session string
		status  int
	}{
		"at its node":             {0, "alice", session, 200},
		"at another":              {1, "alice", session, 200},
		"of another user":         {0, "bob", session, 404},
		"of another user, passed": {1, "bob", session, 404},
		"that is none":            {1, "alice", p.nodes[0].ID() + ".x", 404},
		"of no node":              {1, "alice", "x.y", 404},
		"of no form":              {1, "alice", "xy", 404},
	} {
		a := p.ask(c.node, "POST", ping, "Mcp-Session-Id", c.session, "Authorization",
			"Bearer "+p.login.Token(c.subject, "pages:read"))
		if a.status != c.status {
			t.Errorf("a session %s: %+v", name, a)
		}
	}
	if a := p.ask(1, "POST", ping, "Mcp-Session-Id", session, "Pagewire-Via", "x"); a.status != 404 {
		t.Errorf("what was passed on is passed on again: %+v", a)
	}
	p.handlers[1].proxy.CloseIdleConnections() // if an open connection breaks, the request may have been carried out
	p.servers[0].CloseClientConnections()
	p.servers[0].Listener.Close() // it is dead, and the other node does not know that yet
	if a := p.ask(1, "POST", ping, "Mcp-Session-Id", session); a.status != 404 {
		t.Errorf("of a node that does not answer: %+v", a)
	}
	p.nodes[0].Close()
	testkit.Eventually(t, "it is known to be dead", func() bool { return p.nodes[1].Stats().Nodes == 1 })
	if a := p.ask(1, "POST", ping, "Mcp-Session-Id", session); a.status != 404 {
		t.Errorf("of a dead node: %+v", a)
	}
	for _, stale := range []string{session, p.nodes[1].ID() + ".x", "x.y", "xy"} {
		if a := p.ask(1, "POST", initialize, "Mcp-Session-Id", stale); a.status != 200 || a.header.Get("Mcp-Session-Id") == "" {
			t.Errorf("initialize with the session %s, which is over: %+v", stale, a)
		}
	}
}

// Nodes with certificates of a private authority pass requests on to each other if the authority is named.
func TestNodesOfAnAuthority(t *testing.T) {
	sample := httptest.NewTLSServer(nil) // all TLS servers of net/http/httptest have the same certificate
	defer sample.Close()
	roots := x509.NewCertPool()
	roots.AddCert(sample.Certificate())
	for name, c := range map[string]struct {
		roots  *x509.CertPool
		status int
	}{"named": {roots, 200}, "not named": {nil, 404}} {
		p := openPlaceAt(t, 2, httptest.NewTLSServer, c.roots)
		if a := p.ask(1, "POST", ping, "Mcp-Session-Id", p.begin(0)); a.status != c.status {
			t.Errorf("an authority that is %s: %+v", name, a)
		}
	}
}

func TestPublicURLsThatAreNone(t *testing.T) {
	for _, u := range []string{"", "live.example", "http://live.example", "https://live.example/mcp", "https://"} {
		if _, err := New(Options{PublicURL: u}); err == nil {
			t.Errorf("%q is taken", u)
		}
	}
}

// The modern era has no sessions: the node that gets a request serves it, even with an Mcp-Session-Id.
func TestModernRequestsHaveNoSession(t *testing.T) {
	p := openPlace(t, 1)
	a := p.ask(0, "POST", `{"jsonrpc":"2.0","id":2,"method":"resources/list","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"`+testkit.Modern+`","io.modelcontextprotocol/clientInfo":`+
		`{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, "Mcp-Session-Id", "dead.x",
		"Mcp-Protocol-Version", testkit.Modern, "Mcp-Method", "resources/list")
	if a.status != 200 {
		t.Errorf("%+v", a)
	}
}
