package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/fleet"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/bus"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/dial"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A service is a site whose pages dial in to a fleet of two nodes with its tickets, and the door to these.
type service struct {
	t       *testing.T
	nodes   []*fleet.Node
	doors   []*dial.Handler
	open    atomic.Int64 // the node that pages come to
	login   *issuertest.Issuer
	site    *site
	life    atomic.Int64 // of a ticket, in ns; 0 for a session that has ended
	tickets atomic.Int64 // that were given
}

func openService(t *testing.T) *service {
	t.Helper()
	const public = "https://live.example"
	s := &service{t: t}
	s.life.Store(int64(time.Minute))
	var err error
	if s.login, err = issuertest.New("https://login.example", public); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, s.login.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	verifier, err := tickets.New(tickets.Options{Audience: public, Issuers: []tickets.Issuer{{Issuer: s.login.Name,
		JWKS: keys}}})
	if err != nil {
		t.Fatal(err)
	}
	var join []string
	for range 2 {
		n, err := fleet.Open(fleet.Options{Bus: bus.Options{Cluster: "127.0.0.1:0", Join: join, Secret: "secret"}})
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
		if s.tickets.Add(1)%2 == 0 { // in either form
			text = `{"ticket":"` + text + `"}`
		}
		_, _ = io.WriteString(w, text)
	})
	return s
}

// agent is one of alice's, at the second node.
func (s *service) agent() *testkit.Agent {
	s.t.Helper()
	r, release, err := s.nodes[1].Reader(tickets.UserOf(s.login.Name, "alice"), true, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(release)
	port, err := r.Gateway.Connect("test")
	if err != nil {
		s.t.Fatal(err)
	}
	return testkit.Connect(s.t, mcpconn.Transport(port), testkit.Legacy)
}

const typed = `const f = document.getElementById("field"); f.value = %s; f.dispatchEvent(new Event("input", {bubbles: true}))`

func (b *tab) fills(text string) {
	b.t.Helper()
	run[any](b, strings.Replace(typed, "%s", `"`+text+`"`, 1))
}

// A page dials in with its service's ticket, renews it, and goes elsewhere, as the same tab, when its node drains.
func TestPageOfAFleet(t *testing.T) {
	t.Parallel()
	s := openService(t)
	s.life.Store(int64(8 * time.Second)) // which a page replaces after 5.6
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
	testkit.Eventually(t, "the ticket has been renewed", func() bool { return s.tickets.Load() >= 3 })
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
	testkit.Eventually(t, "it is at the other node", func() bool { return s.nodes[1].Stats().Pages == 1 })
	a.Reads(own, "milk")
	for len(a.Updates) > 0 {
		<-a.Updates // it was back
	}
	b.fills("honey")
	a.Reads(uri, "honey")
	if b.said("pagewire") {
		t.Error("the page complains")
	}
}

// Without a ticket a page works alone, says so once, and connects when there is one.
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
	run[any](b, `document.dispatchEvent(new Event("visibilitychange"))`) // its user looks at it
	a.Shows(s.site.URL + "/state/field")
	s.doors[0].Drain(t.Context()) // and takes no more: it is tried again, and the page goes on
	b.fills("milk")
	testkit.Eventually(t, "it is tried again", func() bool { return s.tickets.Load() >= 3 })
	s.open.Store(1)
	a.Reads(s.site.URL+"/state/field", "milk")
}
