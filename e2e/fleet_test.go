package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/node/dial"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A service is a site whose pages dial in to a fleet of two nodes with its tickets, and the nodes'
// doors.
type service struct {
	t       *testing.T
	nodes   []*node.Node
	doors   []*dial.Handler
	open    atomic.Int64 // the index of the node for new pages
	login   *nodekit.Login
	site    *site
	life    atomic.Int64 // of a ticket, in ns; 0 after the session's end
	tickets atomic.Int64 // tickets given
}

func openService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, login: nodekit.NewLogin(t)}
	s.life.Store(int64(time.Minute))
	verifier := s.login.Verifier()
	var join []string
	for range 2 {
		n, err := node.Open(
			node.Options{Bus: bus.Options{Cluster: "127.0.0.1:0", Join: join, Secret: "secret"}})
		if err != nil {
			t.Fatal(err)
		}
		join = []string{n.ClusterAddr()}
		s.nodes = append(s.nodes, n)
		s.doors = append(s.doors, dial.New(dial.Options{Node: n, Tickets: verifier}))
	}
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.doors[s.open.Load()].ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		for i, n := range s.nodes {
			s.doors[i].Drain(now)
			n.Close()
		}
		balancer.Close()
	})
	p := field
	p.tag = `<script src=/pagewire.js data-gateway="ws` + strings.TrimPrefix(balancer.URL, "http") +
		`/page" data-ticket=/ticket></script>`
	s.site = serve(t, p)
	files := s.site.Config.Handler
	s.site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ticket" {
			files.ServeHTTP(w, r)
			return
		}
		life := time.Duration(s.life.Load())
		text, err := s.login.Sign(s.login.Claims("alice", map[string]any{"origin": s.site.URL,
			"exp": time.Now().Add(life)}))
		if life == 0 || err != nil {
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		if s.tickets.Add(1)%2 == 0 { // in each of the two forms
			text = `{"ticket":"` + text + `"}`
		}
		_, _ = io.WriteString(w, text)
	})
	return s
}

// agent returns an agent of alice, at the second node.
func (s *service) agent() *testkit.Agent { return s.login.Agent(s.nodes[1], "alice") }

const typed = `const f = document.getElementById("field"); f.value = %s; f.dispatchEvent(new Event("input", {bubbles: true}))`

func (b *tab) fills(text string) {
	b.t.Helper()
	run[any](b, strings.Replace(typed, "%s", `"`+text+`"`, 1))
}

// A page dials in with its service's ticket, and renews it. When its node drains, it moves on as
// the same tab.
func TestPageOfAFleet(t *testing.T) {
	t.Parallel()
	s := openService(t)
	s.life.Store(int64(8 * time.Second)) // a page replaces it after 5.6
	b := open(t, native, s.site)
	uri := s.site.URL + "/state/field"
	a := s.agent()
	a.Shows(uri)
	a.Watch(uri)
	b.fills("milk")
	a.Told(uri)
	if got := a.Text(uri); got != "milk" {
		t.Errorf("read %q", got)
	}
	testkit.Eventually(t, "the ticket has been renewed",
		func() bool { return s.tickets.Load() >= 3 })
	if n := s.nodes[0].Stats(); n.Pages != 1 || len(n.Refused) != 0 || len(a.Updates) != 0 {
		t.Errorf("meanwhile %+v, and the agent was told of %d changes", n, len(a.Updates))
	}
	own := s.site.URL + "/.pagewire/tab/1/state/field"
	if got := a.Text(own); got != "milk" {
		t.Errorf("the tab's own URI reads %q", got)
	}
	s.open.Store(1)
	drained := make(chan struct{})
	go func() {
		s.doors[0].Drain(t.Context())
		close(drained)
	}()
	testkit.Ends(t, "the page has gone elsewhere", drained)
	testkit.Eventually(t, "it is at the other node",
		func() bool { return s.nodes[1].Stats().Pages == 1 })
	a.Reads(own, "milk")
	for len(a.Updates) > 0 {
		<-a.Updates // the notification that the page was back
	}
	b.fills("honey")
	a.Reads(uri, "honey")
	if b.said("pagewire") {
		t.Error("the page complains")
	}
}

// Without a ticket a page works alone, warns once, and connects when a ticket exists.
func TestPageWithoutATicket(t *testing.T) {
	t.Parallel()
	s := openService(t)
	s.life.Store(0)
	b := open(t, native, s.site)
	testkit.Eventually(t, "the console says so", func() bool {
		return b.said("no ticket for the gateway from /ticket: it answers 401")
	})
	if n := run[int](b, `return pagewire.stats().resources`); n != 1 {
		t.Errorf("the page alone has %d resources", n)
	}
	s.life.Store(int64(time.Minute))
	a := s.agent()
	// as if its user looked at it
	run[any](b, `document.dispatchEvent(new Event("visibilitychange"))`)
	a.Shows(s.site.URL + "/state/field")
	s.doors[0].Drain(t.Context()) // it admits no pages: the page retries, and works on
	b.fills("milk")
	testkit.Eventually(t, "it is tried again", func() bool { return s.tickets.Load() >= 3 })
	s.open.Store(1)
	a.Reads(s.site.URL+"/state/field", "milk")
}

// Pages of a desktop are a node's too, if `pagewire serve --node` names their origin. An agent at
// the node lists and reads them, is notified of changes, and no longer lists them after the
// desktop's process was killed.
func TestPagesOfADesktopAtANode(t *testing.T) {
	t.Parallel()
	const app, private = "http://localhost:3000", "http://localhost:4000"
	login := nodekit.NewLogin(t)
	dir, listen, admin := t.TempDir(), testkit.Addr(t), testkit.Addr(t)
	config := fmt.Sprintf(
		`{"listen":%q,"admin":%q,"public-url":%q,"issuers":[{"issuer":%q,"jwks":%q}]}`, listen,
		admin,
		login.Audience, login.Name, login.Keys)
	for name, text := range map[string]string{"node.json": config,
		"tickets": login.Ticket("alice", private) + "\n" + login.Ticket("alice", app)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node := testcmd.Command("../bin/pagewire-node", "--config", filepath.Join(dir, "node.json"))
	h := newHome(t)
	desktop, log := h.command(t, "serve", "--hub", h.hub, "--node", "ws://"+listen, "--node-origin",
		app,
		"--node-ticket-file", filepath.Join(dir, "tickets"))
	node.Stderr = testkit.LogOf(t, "the node")
	for _, program := range []*exec.Cmd{node, desktop} {
		if err := program.Start(); err != nil {
			t.Fatalf("%v (run make build first)", err)
		}
		t.Cleanup(func() {
			_ = program.Process.Kill() // the test may have killed it
			_ = program.Wait()
		})
	}
	testkit.Eventually(t, "the desktop takes pages", func() bool {
		c, err := net.Dial("tcp", h.hub)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	testkit.NewPage(t, map[string]string{private + "/diary": "secret"}).Dial(h.hub, private, "")
	near := h.serve(t)
	near.Shows(private + "/diary")
	doc := testkit.NewPage(t, map[string]string{app + "/doc": "one"})
	doc.Dial(h.hub, app, "")
	near.Shows(private+"/diary", app+"/doc")

	testkit.Eventually(t, "the node is ready", func() bool {
		return strings.Contains(testkit.Metrics(admin, ""), "\npagewire_node_ready 1\n")
	})
	bearer := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+login.Token("alice", "pages:read pages:act"))
	}
	far := testkit.Connect(t, &mcp.StreamableClientTransport{Endpoint: "http://" + listen + "/mcp",
		HTTPClient: &http.Client{Transport: setting(bearer)}}, testkit.Legacy)
	far.Shows(app + "/doc")
	far.Watch(app + "/doc")
	doc.Set(app+"/doc", "two")
	far.Learns(app+"/doc", "two")
	if got := testkit.Metrics(admin, ""); !strings.Contains(got, "\npagewire_node_pages 1\n") ||
		log.Has(private+" node=") {
		t.Error("the node has other pages than the one that was named, or was to have them")
	}

	if err := desktop.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	far.Shows()
}

// setting changes each request.
type setting func(*http.Request)

func (h setting) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	h(r)
	return http.DefaultTransport.RoundTrip(r)
}
