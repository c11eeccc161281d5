//go:build !js && unix

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestDial(t *testing.T) {
	m := newMachine(t, nil)
	if _, err := Dial(t.Context(), m.addr, "test"); !errors.Is(err, ErrNoHub) {
		t.Errorf("with no hub: %v", err)
	}
	if _, err := Ask(t.Context(), m.addr); !errors.Is(err, ErrNoHub) {
		t.Errorf("asked with no hub: %v", err)
	}
	g := lead(t, m, Options{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inspector") }),
		Local: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "local "+r.URL.Path)
		}),
	})
	conn, err := Dial(t.Context(), m.addr, "test")
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "ls", Version: "1"}, nil).Connect(t.Context(),
		mcpconn.Transport(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ServerInfo.Name; got != "pagewire" {
		t.Errorf("the hub is %q", got)
	}
	if s := g.Snapshot().Agents; len(s) != 1 || s[0].Transport != "command" { // no gateway: it cannot be the hub next
		t.Errorf("agents of the hub: %+v", s)
	}
	cs.Close()
	testkit.Eventually(t, "it is gone", func() bool { return agents(g) == 0 })
	get := func(client *http.Client, url string) string {
		answer, err := client.Get(url)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return string(text)
	}
	if got := get(http.DefaultClient, "http://"+m.addr+"/"); got != "inspector" {
		t.Errorf("at the port there is %q", got)
	}
	if got := get(Client(m.addr), "http://hub/browsers"); got != "local /browsers" {
		t.Errorf("at the socket there is %q", got)
	}
	// What is for this user's processes is not at the port.
	for _, path := range []string{joinPath, statusPath} {
		if got := get(http.DefaultClient, "http://"+m.addr+path); got != "inspector" {
			t.Errorf("at the port %s is %q", path, got)
		}
	}
	if s, err := Ask(t.Context(), m.addr); err != nil ||
		s != (Status{Build: "test", Protocol: Protocol, Generation: 1, Addr: m.addr}) {
		t.Errorf("it is %+v, %v", s, err)
	}
}

// raw connects to a hub's /join and says nothing.
func raw(t *testing.T, m *machine) *wsconn.Conn {
	t.Helper()
	over, _, err := Connect(t.Context(), m.addr)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := wsconn.Client(t.Context(), over, joinPath, nil, wsconn.Options{MaxMessage: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var greeting = encode(hello{Type: typeHello, Protocol: Protocol, Build: "test", As: asGateway})

// greeted is raw, and has been let in.
func greeted(t *testing.T, m *machine) *wsconn.Conn {
	t.Helper()
	c := raw(t, m)
	if err := c.Write(t.Context(), greeting); err != nil {
		t.Fatal(err)
	}
	text, err := c.ReadNote(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if its, err := decodeHello(text); err != nil || its.Build != "test" {
		t.Fatalf("it answers %s, %v", text, err)
	}
	return c
}

func TestWhoDoesNotIntroduceItselfIsRefused(t *testing.T) {
	m := newMachine(t, nil)
	g := lead(t, m, Options{})
	for _, v := range vectors(t) {
		if v.From != "joiner" || v.Expect == "ok" || v.Hex != "" {
			continue
		}
		c := raw(t, m)
		if err := c.Write(t.Context(), []byte(v.Message)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(t.Context())
		if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%s: %v", v.About, err)
		}
	}
	c := raw(t, m)
	c.Write(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("MCP without a hello: %v", err)
	}
	if n := agents(g); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// Both sides say who is of which version: the joiner serves alone then.
func TestAnotherVersion(t *testing.T) {
	const words = "the hub is pagewire %s (protocol %d), the joiner %s (protocol %d): restart the agents with one " +
		"version"
	t.Run("of the joiner", func(t *testing.T) {
		m := newMachine(t, nil)
		log, g := takePart(t, Options{Addr: m.addr, Build: "0.1.0"})
		testkit.Eventually(t, "it is the hub", func() bool { return log.Has(isHub) })
		c := raw(t, m)
		c.Write(t.Context(), []byte(`{"type":"pagewire:hello","protocol":2,"build":"0.9.0","as":"new"}`))
		text, err := c.ReadNote(t.Context())
		if its, bad := decodeHello(text); err != nil || bad != nil || its.Protocol != Protocol || its.Build != "0.1.0" {
			t.Errorf("it answers %s, %v", text, err)
		}
		if _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("then: %v", err)
		}
		testkit.Eventually(t, "it says why", func() bool { return log.Has(fmt.Sprintf(words, "0.1.0", 1, "0.9.0", 2)) })
		if agents(g) != 0 {
			t.Error("it has let it in")
		}
	})
	t.Run("of the hub", func(t *testing.T) {
		m := newMachine(t, nil)
		answers(t, m, func(w http.ResponseWriter, r *http.Request) {
			if c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxToHub}); err == nil {
				c.ReadNote(r.Context())
				c.Write(r.Context(), []byte(`{"type":"pagewire:hello","protocol":2,"build":"0.9.0","more":true}`))
				c.CloseWith(websocket.StatusPolicyViolation, "another version")
			}
		})
		want := fmt.Sprintf(words, "0.9.0", 2, "0.1.0", 1)
		if _, err := Dial(t.Context(), m.addr, "0.1.0"); !errors.Is(err, ErrVersion) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("Dial: %v", err)
		}
		leads := make(chan bool, 1)
		log, _ := takePart(t, Options{Addr: m.addr, Build: "0.1.0", Lead: func(ctx context.Context) error {
			leads <- true
			<-ctx.Done()
			return nil
		}})
		testkit.Receive(t, "it brings its own pages in", leads)
		if !log.Has(isAlone) || !log.Has(want) {
			t.Error("it does not say why")
		}
	})
}

// answers is a process of this user that has the hub's place and is none of ours.
func answers(t *testing.T, m *machine, join http.HandlerFunc) {
	t.Helper()
	d, err := userdir.Open(m.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Listen(socketOf(1))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: join}
	go server.Serve(l)
	t.Cleanup(func() {
		server.Close()
		d.Close()
	})
}

// Whatever a hub says, a joiner ends up with an error that is one sentence without control characters, or goes on.
func TestHubsThatMakeNoSense(t *testing.T) {
	say := func(texts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxToHub})
			if err != nil {
				return
			}
			c.ReadNote(r.Context())
			for _, text := range texts {
				c.Write(r.Context(), []byte(text))
			}
			c.Read(r.Context())
		}
	}
	for name, c := range map[string]struct {
		hub  http.HandlerFunc
		kind error
		says string
	}{
		"a web server": {http.NotFound, ErrRefused, "404"},
		"no hello":     {say(`{"jsonrpc":"2.0"}`), ErrRefused, "did not introduce itself"},
		"escapes": {say("{\"type\":\"pagewire:hello\",\"protocol\":1,\"build\":\"\\u001b[2J\"}"),
			ErrRefused, `\x1b[2J`},
		"a status with escapes": {escapes, ErrRefused, "answers"},
		"a reason with escapes": {func(w http.ResponseWriter, r *http.Request) {
			if c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxToHub}); err == nil {
				c.ReadNote(r.Context())
				c.CloseWith(websocket.StatusTryAgainLater, "no\x1b[2J")
			}
		}, ErrRefused, `no\x1b[2J`},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ErrSilent,
			"for 2s"},
		"silence for hello": {say(), ErrSilent, "for 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, nil)
			answers(t, m, c.hub)
			_, err := Dial(t.Context(), m.addr, "test")
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("Dial: %v; want %v, %q", err, c.kind, c.says)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q has control characters", err)
			}
		})
	}
	t.Run("silence for those who ask", func(t *testing.T) {
		m := newMachine(t, nil)
		answers(t, m, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		if _, err := Ask(t.Context(), m.addr); !errors.Is(err, ErrSilent) {
			t.Errorf("Ask: %v", err)
		}
	})
}

// escapes answers with a status line that acts on a terminal.
func escapes(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		io.WriteString(c, "HTTP/1.1 403 \x1b[2Jno\r\nContent-Length: 0\r\n\r\n")
		c.Close()
	}
}

func TestBadJoiners(t *testing.T) {
	m := newMachine(t, nil)
	g := lead(t, m, Options{})
	t.Run("oversize", func(t *testing.T) {
		c := greeted(t, m)
		go c.Write(t.Context(), bytes.Repeat([]byte(" "), maxToHub+1))
		_, err := c.Read(t.Context())
		if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("read: %v", err)
		}
		testkit.Eventually(t, "its session ends", func() bool { return agents(g) == 0 })
	})
	t.Run("no JSON", func(t *testing.T) {
		c := greeted(t, m)
		c.Write(t.Context(), []byte("{"))
		if got, err := c.Read(t.Context()); err != nil || !strings.Contains(string(got), "-32700") {
			t.Errorf("answered %s, %v", got, err)
		}
	})
	t.Run("a hub's note", func(t *testing.T) {
		c := greeted(t, m)
		c.Write(t.Context(), []byte(`{"type":"pagewire:share","share":{"browser":"evil"}}`))
		c.Write(t.Context(), []byte("{"))
		if got, err := c.Read(t.Context()); err != nil || !strings.Contains(string(got), "-32700") {
			t.Errorf("answered %s, %v", got, err)
		}
	})
	t.Run("as many as there may be", func(t *testing.T) {
		m := newMachine(t, nil)
		lead(t, m, Options{})
		for range maxJoiners {
			greeted(t, m)
		}
		if _, err := Dial(t.Context(), m.addr, "test"); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), "as many joiners as it takes") {
			t.Errorf("one too many: %v", err)
		}
	})
	t.Run("loris", func(t *testing.T) {
		// One that never ends its request, one that says nothing, and one that never ends its frame: each costs a
		// connection, nobody waits for them, and the hub ends in spite of them.
		for _, part := range []string{"GET /join HTTP/1.1\r\nHost: x\r\nX: ", "",
			"GET /join HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n\x81\xfe"} {
			c, _, err := Connect(t.Context(), m.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, part)
		}
		if _, err := Ask(t.Context(), m.addr); err != nil {
			t.Errorf("others wait for them: %v", err)
		}
	})
}

// TestMain's processes are of one user. What another one's program can do is in package userdir's tests; here is that
// nobody says a word to it.
func TestThePortOfAnotherUsersProgram(t *testing.T) {
	doc := app + "/doc"
	m := newMachine(t, map[string][]string{"a": {doc}})
	before := m.squat(testkit.AsOther)
	testkit.Eventually(t, "it has the port", before.listens)
	nodes := []*node{m.shows(doc), m.shows(doc), m.shows(doc)}
	taken := func(n *node) bool { return n.log.Count("something else has the port: agents go on") == 1 }
	hub, joiners := one(t, nodes)
	testkit.Eventually(t, "that is said once, by the hub", func() bool { return taken(hub) })
	if note := hub.note(); !strings.Contains(note, "Another program has "+m.addr) {
		t.Errorf("the hub's agent is told %q", note)
	}
	for _, n := range nodes {
		n.Watch(doc)
	}
	m.pages.set("a", doc, "1")
	for _, n := range nodes {
		n.Told(doc)
		n.Reads(doc, "1")
	}
	if s, err := Ask(t.Context(), m.addr); err != nil || s.Addr != "" {
		t.Errorf("the hub says %+v, %v", s, err)
	}
	// The hub changes while it has the port.
	hub.kill()
	m.pages.set("a", doc, "2")
	for _, n := range joiners {
		n.Reads(doc, "2")
	}
	hub, _ = one(t, joiners)
	testkit.Eventually(t, "the next hub says it too", func() bool { return taken(hub) })
	before.heard()
	before.end()
	at := func() string {
		s, err := Ask(t.Context(), m.addr)
		if err != nil {
			return err.Error()
		}
		return s.Addr
	}
	testkit.Eventually(t, "the port is taken when it is free", func() bool { return at() == m.addr })
	if note := hub.note(); strings.Contains(note, "Another program has") {
		t.Errorf("then the hub's agent is told %q", note)
	}
	if !hub.log.Has("the port is free") || hub.log.Count("something else has the port") != 1 {
		t.Error("it is not said once each")
	}

	// It takes the port in the moment in which the hub changes.
	during := m.squat(testkit.AsOther)
	hub.kill()
	testkit.Eventually(t, "it or the next hub has the port", func() bool { return during.listens() || at() == m.addr })
	_, rest := one(t, joiners[1:])
	if len(rest) != 0 {
		t.Fatal("more than the last one is left")
	}
	last := joiners[1]
	if joiners[0] != hub {
		last = joiners[0]
	}
	m.pages.set("a", doc, "3")
	last.Reads(doc, "3")
	last.kill()
	fresh := m.shows(doc)
	fresh.Reads(doc, "3")
	during.heard()
}

func TestThePortIsTakenWhenItIsFree(t *testing.T) {
	m := newMachine(t, nil)
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log, _ := takePart(t, Options{Addr: m.addr, Handler: http.NotFoundHandler()})
	testkit.Eventually(t, "it says that it does without", func() bool {
		return log.Has("something else has the port: agents go on")
	})
	l.Close()
	testkit.Eventually(t, "it has the port", func() bool {
		s, err := Ask(t.Context(), m.addr)
		return err == nil && s.Addr == m.addr
	})
	answer, err := http.Get("http://" + m.addr)
	if err != nil || answer.StatusCode != http.StatusNotFound {
		t.Errorf("it answers %v, %v", answer, err)
	}
	if log.Count("something else has the port") != 1 || log.Count("the port is free") != 1 {
		t.Error("it is not said once each")
	}
}

// What the system says is passed on: nobody looks for another program where there is none.
func TestAPortThatCannotBeHad(t *testing.T) {
	m := newMachine(t, nil)
	m.addr = "192.0.2.1:7433" // for documentation: no machine's
	n := m.start()
	testkit.Eventually(t, "it says that it does without", func() bool {
		return n.log.Has("the system does not let us have the port: agents go on")
	})
	if note := n.note(); !strings.Contains(note, "cannot listen on "+m.addr+" (bind: ") {
		t.Errorf("the agent is told %q", note)
	}
	if n.log.Has("something else has the port") || n.log.Count("does not let us have the port") != 1 {
		t.Error("it is said twice, or of another program")
	}
}

// Nothing of one who serves alone is missing but the others: pages find it at the port.
func TestAloneItHasThePort(t *testing.T) {
	m := newMachine(t, nil)
	if err := os.WriteFile(m.config+"/pagewire", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settled := make(chan uint64, 1)
	takePart(t, Options{Addr: m.addr, Handler: http.NotFoundHandler(), Settled: func(g uint64) { settled <- g }})
	if g := testkit.Receive(t, "it is decided", settled); g != 0 {
		t.Errorf("generation %d", g)
	}
	testkit.Eventually(t, "it has the port", func() bool {
		answer, err := http.Get("http://" + m.addr)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusNotFound
	})
}
