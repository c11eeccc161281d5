package dial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/seats"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/nodekit"
)

const app = "https://app.example"

// A place is a node for pages, and the pages' service.
type place struct {
	t      *testing.T
	node   *node.Node
	pages  *Handler
	server *httptest.Server
	login  *nodekit.Login
	log    *testkit.Log
}

func openPlace(t *testing.T) *place {
	t.Helper()
	return openPlaceWith(t, node.Options{}, 0)
}

func openPlaceWith(t *testing.T, o node.Options, unsent int) *place {
	t.Helper()
	p := &place{t: t, login: nodekit.NewLogin(t), log: testkit.LogOf(t, "the node")}
	var err error
	o.Log = slog.New(slog.NewTextHandler(p.log, nil))
	if p.node, err = node.Open(o); err != nil {
		t.Fatal(err)
	}
	p.pages = New(Options{Node: p.node, Tickets: p.login.Verifier(), unsent: unsent})
	p.server = httptest.NewServer(p.pages)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		p.pages.Drain(ended)
		p.server.Close()
		p.node.Close()
	})
	return p
}

// A connection is the connection of a page, driven by the test.
type connection struct {
	*websocket.Conn
	t *testing.T
}

func (p *place) dial(origin string) *connection {
	p.t.Helper()
	return p.dialBy(origin, http.DefaultClient)
}

func (p *place) dialBy(origin string, by *http.Client) *connection {
	p.t.Helper()
	ws, _, err := websocket.Dial(p.t.Context(), p.server.URL, &websocket.DialOptions{HTTPClient: by,
		HTTPHeader: http.Header{"Origin": {origin}}, Subprotocols: []string{"pagewire.v1"}})
	if err != nil {
		p.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	p.t.Cleanup(func() { ws.CloseNow() })
	return &connection{ws, p.t}
}

func (s *connection) say(text string) {
	// The node may refuse a message before it has read all.
	_ = s.Write(s.t.Context(), websocket.MessageText, []byte(text))
}

const hello = `[["hello",1,"0",{"epoch":"e","tab":"tab-tab-1"}]]`

// dialAs dials, and shows a ticket and the hello.
func (p *place) dialAs(ticket, hello string) *connection {
	p.t.Helper()
	s := p.dial(app)
	s.say(note(ticket))
	s.say(hello)
	return s
}

// ends waits for the end, with a code and a reason.
func (s *connection) ends(want websocket.StatusCode, says string) {
	s.t.Helper()
	if code, why := s.closed(); code != want || !strings.Contains(why, says) {
		s.t.Errorf("closed with %d %q, and not with %d %q", code, why, want, says)
	}
}

func note(ticket string) string { return fmt.Sprintf(`{"type":"pagewire:ticket","ticket":%q}`, ticket) }

// closed waits for the end, and returns its code and reason.
func (s *connection) closed() (websocket.StatusCode, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	defer cancel()
	for {
		if _, _, err := s.Read(ctx); err != nil {
			if ctx.Err() != nil {
				s.t.Fatal("the connection does not end")
			}
			var end websocket.CloseError
			if !errors.As(err, &end) {
				return 0, err.Error()
			}
			return end.Code, end.Reason
		}
	}
}

// begin connects a testkit.Page to the socket. The page introduces itself, and receives nothing. epoch tells documents
// of one tab apart.
func (s *connection) begin(ticket, tab string, state map[string]string, epoch ...string) *testkit.Page {
	s.say(note(ticket))
	page := testkit.NewPage(s.t, state)
	page.Epoch(strings.Join(append(epoch, tab), " of "))
	page.Connect(func(frame []byte) { s.say(string(frame)) }, map[string]any{"tab": tab, "url": app + "/"})
	return page
}

// run is begin for a page that receives messages until the end of the connection.
func (s *connection) run(ticket, tab string, state map[string]string, epoch ...string) *testkit.Page {
	page := s.begin(ticket, tab, state, epoch...)
	go func() {
		for {
			_, text, err := s.Read(context.Background())
			if err != nil {
				return
			}
			if text[0] == '[' {
				page.Hear(text)
			}
		}
	}()
	return page
}

func (p *place) agent(subject string) *testkit.Agent { return p.login.Agent(p.node, subject) }

// Connections that are not of a page of a known user are refused with a reason, and counted.
func TestPagesThatAreRefused(t *testing.T) {
	p := openPlace(t)
	good := p.login.Ticket("alice", app)
	expired := p.login.Signed("alice", map[string]any{"origin": app, "exp": time.Now().Add(-time.Hour)})
	for name, c := range map[string]struct {
		origin string
		say    []string
		reason string
	}{
		"no ticket":        {app, []string{hello}, "page: no ticket"},
		"another note":     {app, []string{`{"type":"pagewire:hello"}`}, "page: no ticket"},
		"not JSON":         {app, []string{`{"type":"pagewire:ticket`}, "page: no ticket"},
		"an empty ticket":  {app, []string{note("")}, "page: ticket: malformed"},
		"an expired one":   {app, []string{note(expired)}, "page: ticket: expired"},
		"another's origin": {"https://evil.example", []string{note(good)}, "page: ticket: origin"},
		"an access token":  {app, []string{note(p.login.Token("alice", "pages:read"))}, "page: ticket: no ticket"},
		"no hello":         {app, []string{note(good), `[["touch","x",1]]`}, "page: hello"},
		"a bad tab":        {app, []string{note(good), `[["hello",1,"0",{"epoch":"e","tab":"../../x"}]]`}, "page: hello"},
		"what a page shows": {app, []string{note(good), strings.Replace(hello, `"e"`, `"e","shown":true`, 1)},
			"page: shown"},
		"another version": {app, []string{note(good), `[["hello",9,"0",{"epoch":"e","tab":"tab-tab-1"}]]`},
			"page: version"},
		"too long a hello": {app, []string{note(good), "[" + strings.Repeat(" ", 70<<10) + "]"}, "page: hello"},
	} {
		before := p.node.Stats().Refused[c.reason]
		s := p.dial(c.origin)
		for _, text := range c.say {
			s.say(text)
		}
		code, why := s.closed()
		testkit.Eventually(t, name+" is counted", func() bool { return p.node.Stats().Refused[c.reason] == before+1 })
		if n := p.node.Stats().Refused[c.reason]; n != before+1 || why == "" && code != websocket.StatusGoingAway {
			t.Errorf("%s: closed with %d %q, counted %v", name, code, why, p.node.Stats().Refused)
		}
	}
	for _, origin := range []string{"", "null", "https://" + strings.Repeat("x", maxOrigin)} {
		r, err := http.NewRequest(http.MethodGet, p.server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("from the origin %.100q: %s", origin, answer.Status)
		}
	}
	testkit.Eventually(t, "nothing is left", func() bool { return p.node.Stats().Pages == 0 })
}

// For any number of refusals with one reason, the log has one line in ten seconds.
func TestRefusalsInTheLog(t *testing.T) {
	p := openPlace(t)
	g := &guest{h: p.pages, origin: app}
	for range 1000 {
		_ = g.refuse("no ticket", "it is no ticket")
	}
	_ = g.refuse("ticket: malformed", "it is malformed")
	if n := p.log.Count("refused"); n != 2 || !p.log.Has(app) {
		t.Errorf("of two reasons there are %d lines", n)
	}
	if n := p.node.Stats().Refused["page: no ticket"]; n != 1000 {
		t.Errorf("%d of 1000 are counted", n)
	}
}

// A new ticket keeps the page; a ticket of another user ends it, and so does the end of the last ticket.
func TestTicketsThatAreRenewed(t *testing.T) {
	p := openPlace(t)
	brief := func(subject string, left time.Duration) string {
		return p.login.Signed(subject, map[string]any{"origin": app, "exp": time.Now().Add(left - tickets.Skew)})
	}
	ends, kept := p.dialAs(brief("alice", 2*time.Second), hello), p.dialAs(brief("alice", 2*time.Second), hello)
	kept.say(note(brief("alice", 2*time.Minute)))
	ends.ends(websocket.StatusPolicyViolation, "expired")
	kept.say(`[["note",{"title":"x"}]]`)
	testkit.Eventually(t, "one page is left", func() bool { return p.node.Stats().Pages == 1 })
	kept.say(note(brief("bob", 2*time.Minute)))
	kept.ends(websocket.StatusPolicyViolation, "another user")
	long := p.dialAs(p.login.Ticket("alice", app), hello)
	long.say(note(strings.Repeat("x", maxNote))) // a frame may be as long
	long.ends(websocket.StatusPolicyViolation, "too long")
}

// A tab is duplicated with its sessionStorage: the second document with a tab's id gets another tab. A document that
// connects again keeps its own.
func TestDuplicatedTab(t *testing.T) {
	p := openPlace(t)
	given := func(ticket, epoch string) (*connection, string) {
		s := p.dialAs(ticket, strings.Replace(hello, `"e"`, `"`+epoch+`"`, 1))
		_, text, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go s.CloseRead(context.Background()) // it answers pings
		_, after, _ := strings.Cut(string(text), `"tab":"`)
		tab, _, _ := strings.Cut(after, `"`)
		return s, tab
	}
	alice := p.login.Ticket("alice", app)
	first, tab := given(alice, "first")
	if tab != "" {
		t.Fatalf("the first tab is given %q", tab)
	}
	copied, other := given(alice, "copied")
	if !seats.IsNamed(other, "") {
		t.Fatalf("the copy is given %q", other)
	}
	if _, tab := given(alice, "first"); tab != "" {
		t.Errorf("a document that connects anew is given %q", tab)
	}
	if _, tab := given(p.login.Ticket("bob", app), "bob's"); tab != "" {
		t.Errorf("another user's tab is given %q", tab)
	}
	copied.CloseNow()
	first.CloseNow()
}

func (s *Strangers[T]) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// The node bounds pages that show many tickets, and connections that send nothing.
func TestStrangers(t *testing.T) {
	p := openPlace(t)
	p.pages.strangers.most = 2
	known := p.dialAs(p.login.Ticket("alice", app), hello)
	testkit.Eventually(t, "it is a page", func() bool { return p.node.Stats().Pages == 1 })
	var silent []*connection
	for range 2 {
		silent = append(silent, p.dial(app))
		testkit.Eventually(t, "it is a stranger", func() bool {
			return p.pages.strangers.count() == len(silent)
		})
	}
	late := p.dial(app) // the connection with the longest silence makes room
	silent[0].ends(websocket.StatusTryAgainLater, "too many")
	late.say(note(p.login.Ticket("bob", app)))
	late.say(`[["hello",1,"0",{"epoch":"f","tab":"tab-tab-2"}]]`)
	testkit.Eventually(t, "the late one is a page, and the other still a stranger", func() bool {
		return p.node.Stats().Pages == 2 && p.pages.strangers.count() == 1
	})
	for range 10 {
		known.say(note(p.login.Ticket("alice", app)))
	}
	known.ends(websocket.StatusPolicyViolation, "too many tickets")
}

// A node that ends notifies its pages first, and cuts off the pages that stay.
func TestDrain(t *testing.T) {
	p := openPlace(t)
	goes, stays := p.dialAs(p.login.Ticket("alice", app), hello), p.dialAs(p.login.Ticket("alice", app), hello)
	testkit.Eventually(t, "both are there", func() bool { return p.node.Stats().Pages == 2 })
	told := make(chan string, 10)
	go func() {
		for {
			_, text, err := goes.Read(context.Background())
			if err != nil {
				return
			}
			if text[0] == '{' {
				told <- string(text)
				goes.CloseNow()
			}
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		p.pages.Drain(ctx)
		close(done)
	}()
	if got := testkit.Receive(t, "it is told", told); got != `{"type":"pagewire:elsewhere"}` {
		t.Errorf("it is told %s", got)
	}
	p.dial(app).ends(websocket.StatusTryAgainLater, "")
	testkit.Eventually(t, "one has gone", func() bool { return p.node.Stats().Pages == 1 })
	cancel()
	stays.ends(websocket.StatusGoingAway, "")
	testkit.Ends(t, "the drain", done)
}

// A page whose connection is dead, so that nobody has noticed its end, loses its tab to the tab's next document, also
// if that one dials elsewhere.
func TestDeadConnectionGivesUpItsTab(t *testing.T) {
	p := openPlace(t)
	elsewhere := &place{t: t, node: p.node, login: p.login, pages: New(Options{Node: p.node, Tickets: p.login.Verifier()})}
	elsewhere.server = httptest.NewServer(elsewhere.pages)
	t.Cleanup(func() {
		testkit.OK(t, elsewhere.pages.Close())
		elsewhere.server.Close()
	})
	ticket := p.login.Ticket("alice", app)
	dead := p.dial(app) // it reads nothing, so it answers no ping
	dead.begin(ticket, "tab-tab-1", map[string]string{app + "/doc": "one"})
	a := p.agent("alice")
	testkit.Eventually(t, "the first document is there", func() bool { return a.Offers(app + "/doc") })
	next := elsewhere.dial(app)
	next.run(ticket, "tab-tab-1", map[string]string{app + "/next": "two"}, "another")
	testkit.Eventually(t, "the next one is there", func() bool { return a.Offers(app + "/next") })
	dead.ends(websocket.StatusGoingAway, "")
}
