//go:build !js

package hub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

// The tests run this binary again as what an agent starts: a process with a gateway that takes part in the election and
// has one agent on stdio. When it is the hub it brings in the page that the test serves: one that, like a tab, outlives hubs.
func TestMain(m *testing.M) {
	if os.Getenv("HUB_TEST_ADDR") == "" {
		os.Exit(m.Run())
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	g := gateway.New(gateway.Options{Log: log})
	agent, err := g.Connect("stdio")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				cancel()
				return
			}
			agent.Write(ctx, line)
		}
	}()
	go func() {
		for {
			message, err := agent.Read(ctx)
			if err != nil {
				return
			}
			os.Stdout.Write(append(bytes.TrimRight(message, "\n"), '\n'))
		}
	}()
	err = Run(ctx, Options{
		Addr: os.Getenv("HUB_TEST_ADDR"), Token: testToken, Gateway: g, Log: log,
		Lead: func(ctx context.Context) error {
			var pages []*gateway.Page
			for _, tab := range strings.Fields(os.Getenv("HUB_TEST_TABS")) {
				conn, _, err := wsconn.Dial(ctx, os.Getenv("HUB_TEST_PAGES"), "/"+tab, nil, wsconn.Options{MaxMessage: 1 << 20})
				if err != nil {
					return err
				}
				page, err := g.Attach(ctx, gateway.PageInfo{Tab: tab, Origin: app, URL: app + "/", Title: "Tab " + tab, Road: "test"}, conn)
				if err != nil {
					return err
				}
				pages = append(pages, page)
			}
			<-ctx.Done()
			for _, p := range pages {
				p.Close("the hub ends")
			}
			return nil
		},
		Share: func() map[string]string { return map[string]string{"browser": "ws://" + os.Getenv("HUB_TEST_PAGES")} },
		Learn: func(m map[string]string) { log.Info("learned", "browser", m["browser"]) },
	})
	g.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	app       = "https://app.example"
	testToken = "0123456789012345678901234567890123456789012"
)

// pages are tabs that a test serves: real MCP servers.
type pages struct {
	t    *testing.T
	addr string
	tabs map[string]*tab
}

type tab struct {
	server   *mcp.Server
	mu       sync.Mutex
	state    map[string]string
	sessions int // that were ever opened
}

func servePages(t *testing.T, uris map[string][]string) *pages {
	p := &pages{t: t, tabs: map[string]*tab{}}
	for name, list := range uris {
		tab := &tab{state: map[string]string{}}
		tab.server = mcp.NewServer(&mcp.Implementation{Name: "page", Version: "1"}, &mcp.ServerOptions{
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
		for _, uri := range list {
			tab.state[uri] = "0"
			tab.server.AddResource(&mcp.Resource{URI: uri, Name: "state"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				tab.mu.Lock()
				defer tab.mu.Unlock()
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: tab.state[uri]}}}, nil
			})
		}
		p.tabs[name] = tab
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tab := p.tabs[r.URL.Path[1:]]
		c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: 1 << 20})
		if err != nil {
			return
		}
		tab.mu.Lock()
		tab.sessions++
		tab.mu.Unlock()
		tab.server.Run(context.Background(), gateway.Transport(c))
	}))
	t.Cleanup(s.Close)
	p.addr = s.Listener.Addr().String()
	return p
}

// set changes a state, and says so to whoever is connected.
func (p *pages) set(tab, uri, value string) {
	t := p.tabs[tab]
	t.mu.Lock()
	t.state[uri] = value
	t.mu.Unlock()
	t.server.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: uri})
}

// A node is a process, and the agent that has started it.
type node struct {
	t   *testing.T
	cmd *exec.Cmd
	*mcp.ClientSession
	updates chan string
	log     *lines
	exited  chan struct{}
}

// lines is a log that can be awaited.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

const isHub, isJoined = "this process is the hub", "joined the hub"

func (n *node) hub() bool { return n.log.count(isHub) > 0 }

func command(t *testing.T, addr string, p *pages) (*exec.Cmd, *lines) {
	var tabs []string
	pagesAddr := ""
	if p != nil {
		for name := range p.tabs {
			tabs = append(tabs, name)
		}
		slices.Sort(tabs)
		pagesAddr = p.addr
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HUB_TEST_ADDR="+addr, "HUB_TEST_PAGES="+pagesAddr, "HUB_TEST_TABS="+strings.Join(tabs, " "),
		"GORACE=atexit_sleep_ms=0") // else a process under -race takes a second to end
	log := &lines{}
	cmd.Stderr = log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("process %d said:\n%s", cmd.Process.Pid, log.text.String())
		}
	})
	return cmd, log
}

func start(t *testing.T, addr string, p *pages) *node {
	t.Helper()
	n := &node{t: t, updates: make(chan string, 1000), exited: make(chan struct{})}
	n.cmd, n.log = command(t, addr, p)
	in, err := n.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		n.cmd.Wait()
		close(n.exited)
	}()
	t.Cleanup(func() {
		in.Close()
		select {
		case <-n.exited:
		case <-time.After(5 * time.Second):
			t.Errorf("process %d does not end with its agent", n.cmd.Process.Pid)
			n.cmd.Process.Kill()
			<-n.exited
		}
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { n.updates <- r.Params.URI },
	})
	n.ClientSession, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: in}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("the agent's session: %v", err)
	}
	return n
}

func (n *node) uris() (list []string) {
	n.t.Helper()
	for r, err := range n.Resources(n.t.Context(), nil) {
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, r.URI)
	}
	slices.Sort(list)
	return list
}

func (n *node) read(uri string) (string, error) {
	r, err := n.ReadResource(n.t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return r.Contents[0].Text, nil
}

func (n *node) subscribe(uris ...string) {
	n.t.Helper()
	for _, uri := range uris {
		if err := n.Subscribe(n.t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			n.t.Fatal(err)
		}
	}
}

// holds waits until the agent reads a value, and fails after a deadline.
func (n *node) holds(uri, want string, deadline time.Time) {
	n.t.Helper()
	for {
		got, err := n.read(uri)
		if err == nil && got == want {
			if over := time.Since(deadline); over > 0 {
				n.t.Errorf("%s reads %q %v too late", uri, want, over)
			}
			return
		}
		if time.Since(deadline) > 5*time.Second {
			n.t.Fatalf("%s reads %q, %v; want %q", uri, got, err, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// updated waits until the updates have come, by deadline, then for a moment for one too many.
func (n *node) updated(deadline time.Time, want ...string) {
	n.t.Helper()
	var got []string
	limit := time.After(time.Until(deadline))
	for range want {
		select {
		case uri := <-n.updates:
			got = append(got, uri)
		case <-limit:
			n.t.Fatalf("process %d: updates %v, still waiting for the rest of %v", n.cmd.Process.Pid, got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		n.t.Fatalf("process %d: updates %v, want %v", n.cmd.Process.Pid, got, want)
	}
	select {
	case uri := <-n.updates:
		n.t.Fatalf("process %d: one update too many, of %s", n.cmd.Process.Pid, uri)
	case <-time.After(150 * time.Millisecond):
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// freeAddr is an address at which nothing listens.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func split(nodes []*node) (hub *node, joiners []*node) {
	for _, n := range nodes {
		if n.hub() {
			hub = n
		} else {
			joiners = append(joiners, n)
		}
	}
	return hub, joiners
}

// The words: three agents, each with its own process, see the same pages; the hub is killed; the other two go on
// within 1 s, subscriptions intact.
func TestTakeover(t *testing.T) {
	const limit = time.Second
	doc, other, own := app+"/doc", app+"/other", app+"/own"
	p := servePages(t, map[string][]string{"a": {doc, own}, "b": {doc, other}})
	addr := freeAddr(t)
	nodes := []*node{start(t, addr, p), start(t, addr, p), start(t, addr, p)}
	listed := []string{doc, doc + "#tab=1", other, own}
	for _, n := range nodes {
		eventually(t, "all see the same pages", func() bool { return slices.Equal(n.uris(), listed) })
		n.subscribe(doc+"#tab=1", other)
	}
	p.set("b", other, "1")
	for _, n := range nodes {
		n.updated(time.Now().Add(5*time.Second), other)
		n.holds(other, "1", time.Now().Add(5*time.Second))
	}
	for round := 2; len(nodes) > 1; round++ {
		hub, joiners := split(nodes)
		nodes = joiners
		if err := hub.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		// Nobody is connected to hear it: who goes on must find out by itself.
		value := fmt.Sprint(round)
		p.set("b", other, value)
		for _, n := range nodes {
			if got := n.uris(); !slices.Equal(got, listed) {
				t.Errorf("process %d lists %v while the hub is being replaced", n.cmd.Process.Pid, got)
			}
		}
		for _, n := range nodes {
			n.holds(other, value, killed.Add(limit))
			n.holds(doc+"#tab=1", "0", killed.Add(limit))
			t.Logf("process %d has the last state %v after the kill", n.cmd.Process.Pid, time.Since(killed).Round(time.Millisecond))
		}
		for _, n := range nodes {
			n.updated(killed.Add(limit), doc+"#tab=1", other)
		}
		eventually(t, "one of them is the hub", func() bool { h, _ := split(nodes); return h != nil })
		p.set("b", other, value+"'")
		for _, n := range nodes {
			n.updated(time.Now().Add(5*time.Second), other)
			n.holds(other, value+"'", time.Now().Add(5*time.Second))
		}
		// What was kept for the absent hub is dropped after 2 s, and must take nothing of the pages' with it.
		time.Sleep(2200 * time.Millisecond)
		for _, n := range nodes {
			if got := n.uris(); !slices.Equal(got, listed) {
				t.Errorf("process %d lists %v when the dead hub is forgotten", n.cmd.Process.Pid, got)
			}
			n.updated(time.Now())
			n.holds(doc+"#tab=1", "0", time.Now().Add(5*time.Second))
		}
	}
}

func TestTakeoverWhileAReadIsUnderWay(t *testing.T) {
	doc := app + "/doc"
	p := servePages(t, map[string][]string{"a": {doc}})
	addr := freeAddr(t)
	hub := start(t, addr, p)
	eventually(t, "it is the hub", hub.hub)
	joiner := start(t, addr, p)
	eventually(t, "the joiner sees the page", func() bool { return len(joiner.uris()) == 1 })
	hub.cmd.Process.Kill()
	<-hub.exited
	for range 20 {
		if got, err := joiner.read(doc); err != nil && !strings.Contains(err.Error(), "went away") || err == nil && got != "0" {
			t.Fatalf("a read during the takeover: %q, %v", got, err)
		}
	}
	eventually(t, "the joiner is the hub", joiner.hub)
	if got, err := joiner.read(doc); err != nil || got != "0" {
		t.Fatalf("a read after the takeover: %q, %v", got, err)
	}
}

func TestHubThatEndsInOrder(t *testing.T) {
	doc := app + "/doc"
	p := servePages(t, map[string][]string{"a": {doc}})
	addr := freeAddr(t)
	hub := start(t, addr, p)
	eventually(t, "it is the hub", hub.hub)
	joiner := start(t, addr, p)
	eventually(t, "the joiner has learned what it needs as a successor", func() bool { return joiner.log.count("browser=ws://"+p.addr) == 1 })
	eventually(t, "the joiner sees the page", func() bool { return len(joiner.uris()) == 1 })
	joiner.subscribe(doc)
	began := time.Now()
	hub.Close() // its stdin
	select {
	case <-hub.exited:
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the hub took %v to end", took)
	}
	if code := hub.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	joiner.updated(began.Add(2*time.Second), doc)
	if !joiner.hub() {
		t.Error("the joiner is not the hub")
	}
}

// Of processes that start at the same instant exactly one is the hub, and the others have joined it.
func TestElection(t *testing.T) {
	p := servePages(t, map[string][]string{"a": {app + "/doc"}})
	for round := range 20 {
		addr := freeAddr(t)
		var logs []*lines
		var ends []func()
		for range 2 {
			cmd, log := command(t, addr, p)
			in, _ := cmd.StdinPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			logs = append(logs, log)
			ends = append(ends, func() { in.Close(); cmd.Wait() })
		}
		hubs := func() int { return logs[0].count(isHub) + logs[1].count(isHub) }
		eventually(t, "one has joined the other", func() bool { return logs[0].count(isJoined)+logs[1].count(isJoined) == 1 })
		if n := hubs(); n != 1 {
			t.Errorf("round %d: %d hubs", round, n)
		}
		for _, end := range ends {
			end()
		}
	}
	// Each of them has had the page, and nobody had it twice.
	tab := p.tabs["a"]
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if tab.sessions < 20 || tab.sessions > 40 { // who is left when the first ends is the hub for a moment
		t.Errorf("the page was brought in %d times in 20 rounds", tab.sessions)
	}
}

// another is a program that has the port.
func another(t *testing.T, behave func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go behave(c)
		}
	}()
	return l.Addr().String()
}

func TestPortOfAnotherProgram(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close) // behind the parallel tests
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err == nil {
			c.Read(r.Context())
		}
	}))
	t.Cleanup(chat.Close)
	for name, addr := range map[string]string{
		"a web server":       web.Listener.Addr().String(),
		"one that is silent": another(t, func(c net.Conn) { io.Copy(io.Discard, c) }),
		"one that greets":    another(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9\r\n"); io.Copy(io.Discard, c) }),
		"one that hangs up":  another(t, func(c net.Conn) { c.Close() }),
		"another WebSocket":  chat.Listener.Addr().String(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gateway.New(gateway.Options{})
			defer g.Close()
			err := Run(t.Context(), Options{Addr: addr, Token: testToken, Gateway: g, Lead: func(context.Context) error {
				t.Error("it leads")
				return nil
			}})
			if !errors.Is(err, ErrNotPagewire) || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "stop it, or give Pagewire another port") {
				t.Errorf("Run: %v", err)
			}
			if c, err := net.Dial("tcp", addr); err != nil {
				t.Errorf("it was killed: %v", err)
			} else {
				c.Close()
			}
		})
	}
}

// listen runs a hub within the test.
func listen(t *testing.T, o Options) (addr string, g *gateway.Gateway) {
	t.Helper()
	o.Gateway = gateway.New(gateway.Options{})
	o.Addr, o.Token = freeAddr(t), testToken
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the hub took %v to end", took)
		}
		o.Gateway.Close()
	})
	eventually(t, "it listens", func() bool {
		c, err := net.Dial("tcp", o.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return o.Addr, o.Gateway
}

func agents(g *gateway.Gateway) int { return len(g.Snapshot().Agents) }

func TestDial(t *testing.T) {
	if _, err := Dial(t.Context(), freeAddr(t), testToken); !errors.Is(err, ErrNoHub) {
		t.Errorf("with no hub: %v", err)
	}
	addr, g := listen(t, Options{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inspector") })})
	conn, err := Dial(t.Context(), addr, testToken)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "ls", Version: "1"}, nil).Connect(t.Context(), gateway.Transport(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ServerInfo.Name; got != "pagewire" {
		t.Errorf("the hub is %q", got)
	}
	if s := g.Snapshot().Agents; len(s) != 1 || s[0].Road != "gateway" {
		t.Errorf("agents of the hub: %+v", s)
	}
	cs.Close()
	eventually(t, "it is gone", func() bool { return agents(g) == 0 })
	response, err := http.Get("http://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); string(text) != "inspector" {
		t.Errorf("the hub serves %q", text)
	}
}

func TestWhoMayNotJoin(t *testing.T) {
	addr, g := listen(t, Options{})
	for _, token := range []string{"", "wrong", testToken + "x"} {
		if _, err := Dial(t.Context(), addr, token); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), TokenFileEnv) {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	other := gateway.New(gateway.Options{})
	defer other.Close()
	if err := Run(t.Context(), Options{Addr: addr, Token: "wrong", Gateway: other}); !errors.Is(err, ErrToken) {
		t.Errorf("Run with a wrong token: %v", err)
	}
	if err := Run(t.Context(), Options{Addr: addr, Gateway: other}); err == nil {
		t.Error("Run without a token")
	}
	for _, origin := range []string{"https://evil.example", "http://" + addr, "null"} {
		_, response, err := wsconn.Dial(t.Context(), addr, joinPath, http.Header{"Origin": {origin}, "Authorization": {"Bearer " + testToken}}, wsconn.Options{})
		if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
			t.Errorf("a page of %s: %v", origin, err)
		}
	}
	if n := agents(g); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestBadJoiners(t *testing.T) {
	addr, g := listen(t, Options{})
	header := http.Header{"Authorization": {"Bearer " + testToken}}
	join := func() *wsconn.Conn {
		t.Helper()
		c, _, err := wsconn.Dial(t.Context(), addr, joinPath, header, wsconn.Options{MaxMessage: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Run("oversize", func(t *testing.T) {
		c := join()
		defer c.Close()
		go c.Write(t.Context(), bytes.Repeat([]byte(" "), maxToHub+1))
		_, err := c.Read(t.Context())
		if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
			t.Errorf("read: %v", err)
		}
		eventually(t, "its session ends", func() bool { return agents(g) == 0 })
	})
	t.Run("no JSON", func(t *testing.T) {
		c := join()
		defer c.Close()
		c.Write(t.Context(), []byte("{"))
		if got, err := c.Read(t.Context()); err != nil || !strings.Contains(string(got), "-32700") {
			t.Errorf("answered %s, %v", got, err)
		}
	})
	t.Run("a page's note", func(t *testing.T) {
		c := join()
		defer c.Close()
		c.Write(t.Context(), []byte(`{"type":"pagewire:share","share":{"browser":"evil"}}`))
		c.Write(t.Context(), []byte("{"))
		if got, err := c.Read(t.Context()); err != nil || !strings.Contains(string(got), "-32700") {
			t.Errorf("answered %s, %v", got, err)
		}
	})
	t.Run("loris", func(t *testing.T) {
		// One that never ends its request, one that never ends its frame, and one that never says anything: each
		// costs a connection, nobody waits for them, and the hub ends on time in spite of them (listen asserts that).
		for _, part := range []string{"GET /join HTTP/1.1\r\nHost: x\r\nX: ", ""} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			io.WriteString(c, part)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "GET /join HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer %s\r\n\r\n\x81\xfe", addr, testToken)
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "101") {
			t.Fatalf("%q, %v", line, err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c := join()
			c.Write(t.Context(), []byte("{"))
			c.Read(t.Context())
			c.Close()
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("others wait for them")
		}
	})
}

func TestLeadThatFails(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	broken := errors.New("the browser is not there")
	addr := freeAddr(t)
	err := Run(t.Context(), Options{Addr: addr, Token: testToken, Gateway: g, Lead: func(context.Context) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("Run: %v", err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port is still taken")
	}
}
