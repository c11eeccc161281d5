//go:build !js && unix

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
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// The tests run this binary again as what an agent starts: a process with a gateway that takes part in the election and
// has one agent on stdio. When it is the hub it brings in the pages that the test serves: they, like tabs, outlive
// hubs. And as a squatter: a program that has the port, and says how many have connected and what they have sent.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("HUB_TEST_SQUAT") != "":
		squat(os.Getenv("HUB_TEST_SQUAT"))
	case os.Getenv("HUB_TEST_ADDR") != "":
		process()
	default:
		os.Exit(m.Run())
	}
}

func process() {
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
	go deadlock(g)
	err = Run(ctx, Options{
		Addr: os.Getenv("HUB_TEST_ADDR"), Build: "test", Gateway: g, Log: log,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) }),
		Lead:    func(ctx context.Context) error { return bringIn(ctx, g) },
		Share: func() map[string]string {
			return map[string]string{"browser": "ws://" + os.Getenv("HUB_TEST_PAGES")}
		},
		Learn: func(m map[string]string) { log.Info("learned", "browser", m["browser"]) },
	})
	g.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// deadlock keeps the gateway's lock for good when it is told to: what a mistake of ours would do.
func deadlock(g *gateway.Gateway) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	<-told
	g.Tap(func(e gateway.Event) {
		if e.Way == gateway.ToAgent {
			select {}
		}
	})
	agent, err := g.Connect("deadlock")
	if err == nil {
		agent.Write(context.Background(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	}
}

func bringIn(ctx context.Context, g *gateway.Gateway) error {
	var conns []*wsconn.Conn
	for _, tab := range strings.Fields(os.Getenv("HUB_TEST_TABS")) {
		over, err := net.Dial("tcp", os.Getenv("HUB_TEST_PAGES"))
		if err != nil {
			return err
		}
		conn, _, err := wsconn.Client(ctx, over, "/"+tab, nil, wsconn.Options{MaxMessage: 1 << 20})
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return err
		}
		conns = append(conns, conn)
		page, err := g.Attach(gateway.PageInfo{Tab: tab, Origin: app, URL: app + "/", Title: "Tab " + tab,
			Transport: "test"}, func(frame []byte) {
			if frame != nil {
				conn.Send(frame)
			}
		})
		if err != nil {
			return err
		}
		go func() {
			defer page.Lost("its connection ended")
			for {
				frame, err := conn.Read(ctx)
				if err != nil || page.Receive(frame) != nil {
					return
				}
			}
		}()
	}
	<-ctx.Done()
	for _, c := range conns {
		c.Close() // as a browser's connection ends: its tabs may be another hub's
	}
	return nil
}

// squat listens on an address as soon as that is free, and writes what comes.
func squat(addr string) {
	var l net.Listener
	for l == nil {
		l, _ = net.Listen("tcp", addr)
	}
	fmt.Println("listens")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				fmt.Println("connected")
				text, _ := io.ReadAll(c)
				fmt.Printf("received %q\n", text)
			}()
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

const app = "https://app.example"

// pages are tabs that a test serves.
type pages struct {
	addr string
	tabs map[string]*tab
}

// A tab is a page with what it reads as, and a link for each process that has ever been the hub.
type tab struct {
	mu       sync.Mutex
	state    map[string]string
	links    map[*testkit.Page]bool
	sessions int // that were ever opened
}

func servePages(t *testing.T, uris map[string][]string) *pages {
	p := &pages{tabs: map[string]*tab{}}
	for name, list := range uris {
		tab := &tab{state: map[string]string{}, links: map[*testkit.Page]bool{}}
		for _, uri := range list {
			tab.state[uri] = "0"
		}
		p.tabs[name] = tab
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: 1 << 20}); err == nil {
			p.tabs[r.URL.Path[1:]].serve(t, c)
		}
	}))
	t.Cleanup(s.Close)
	p.addr = s.Listener.Addr().String()
	return p
}

func (tab *tab) serve(t *testing.T, c *wsconn.Conn) {
	tab.mu.Lock()
	page := testkit.NewPage(t, tab.state)
	tab.links[page] = true
	tab.sessions++
	tab.mu.Unlock()
	page.Connect(c.Send, nil)
	for {
		frame, err := c.Read(context.Background())
		if err != nil {
			break
		}
		page.Hear(frame)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	delete(tab.links, page)
}

// set changes a state, and says so to whoever is connected.
func (p *pages) set(tab, uri, value string) {
	t := p.tabs[tab]
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state[uri] = value
	for page := range t.links {
		page.Set(uri, value)
	}
}

// A machine is what the processes of a test share: a configuration directory, an address, and the pages.
type machine struct {
	t      *testing.T
	config string
	addr   string
	pages  *pages
}

func newMachine(t *testing.T, uris map[string][]string) *machine {
	t.Helper()
	// What the test does in its own process is on the same machine.
	return &machine{t: t, config: testkit.Home(t), addr: testkit.Addr(t), pages: servePages(t, uris)}
}

// files lists what is in the directory, without what tells one address from another.
func (m *machine) files() (names []string) {
	all, err := filepath.Glob(filepath.Join(m.config, "pagewire", "*"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range all {
		_, name, _ := strings.Cut(filepath.Base(path), "-")
		names = append(names, name)
	}
	return names
}

// A node is a process, and the agent that has started it.
type node struct {
	t   *testing.T
	cmd *exec.Cmd
	*testkit.Agent
	log    *testkit.Log
	exited chan struct{}
	in     io.Closer
}

func (m *machine) command(t *testing.T) (*exec.Cmd, *testkit.Log) {
	var tabs []string
	for name := range m.pages.tabs {
		tabs = append(tabs, name)
	}
	slices.Sort(tabs)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+m.config, "HOME="+m.config, "HUB_TEST_ADDR="+m.addr,
		"HUB_TEST_PAGES="+m.pages.addr,
		// else a process under -race takes a second to end
		"HUB_TEST_TABS="+strings.Join(tabs, " "), "GORACE=atexit_sleep_ms=0")
	log := testkit.LogOf(t, "a process")
	cmd.Stderr = log
	return cmd, log
}

// note is what the node's agent is told with the list.
func (n *node) note() string {
	n.t.Helper()
	r, err := n.CallTool(n.t.Context(), &mcp.CallToolParams{Name: "list_page_resources"})
	if err != nil {
		n.t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func (m *machine) start() *node {
	t := m.t
	t.Helper()
	n := &node{t: t, exited: make(chan struct{})}
	n.cmd, n.log = m.command(t)
	in, err := n.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.in = in
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
		n.cmd.Process.Signal(syscall.SIGCONT)
		testkit.Ends(t, "the process ends with its agent", n.exited)
	})
	n.Agent = testkit.Connect(t, &mcp.IOTransport{Reader: out, Writer: in}, testkit.Legacy)
	return n
}

// shows starts a node, and waits until its agent is shown all.
func (m *machine) shows(uris ...string) *node {
	m.t.Helper()
	n := m.start()
	n.Shows(uris...)
	return n
}

// toldAgain waits until each of these was told, and nothing is told any more. A hub's tabs come one by one, to it and
// to those who join it meanwhile: one may be told twice to read again, and none not at all.
func (n *node) toldAgain(uris ...string) {
	n.t.Helper()
	missing := slices.Clone(uris)
	for len(missing) > 0 {
		uri := testkit.Receive(n.t, fmt.Sprintf("%v are told", missing), n.Updates)
		if !slices.Contains(uris, uri) {
			n.t.Fatalf("an update of %s, and none of it is due", uri)
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == uri })
	}
	n.quiet()
}

// quiet waits until nothing more is told.
func (n *node) quiet() {
	for {
		select {
		case <-n.Updates:
		case <-time.After(testkit.Moment):
			return
		}
	}
}

func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) kill() {
	n.t.Helper()
	n.signal(syscall.SIGKILL)
	testkit.Ends(n.t, "it is dead", n.exited)
}

const (
	isHub, isJoined, isAlone = "this process is the hub\"", "joined the hub", "this process serves alone"
	hubGone, joinerGone      = "the hub is gone", "a joiner is gone"
)

// hub reports whether it is the hub now, by the last that it has said.
func (n *node) hub() bool {
	said := n.log.String()
	last := strings.LastIndex(said, isHub)
	return last >= 0 && last > strings.LastIndex(said, isJoined) &&
		last > strings.LastIndex(said, "is no longer the hub")
}

// joined reports whether it has joined a hub, of whose end it has not heard, by the last that it has said.
func (n *node) joined() bool {
	said := n.log.String()
	last := strings.LastIndex(said, isJoined)
	return last >= 0 && last > strings.LastIndex(said, isHub) && last > strings.LastIndex(said, hubGone)
}

// one waits until one of the nodes is the hub and the others have joined it, and returns them.
func one(t *testing.T, nodes []*node) (hub *node, joiners []*node) {
	t.Helper()
	testkit.Eventually(t, "there is one hub", func() bool {
		hub, joiners = nil, nil
		for _, n := range nodes {
			switch {
			case n.joined():
				joiners = append(joiners, n)
			case hub == nil && n.hub():
				hub = n
			default:
				return false
			}
		}
		return hub != nil
	})
	return hub, joiners
}

// takePart runs a part within the test, and ends it with it.
func takePart(t *testing.T, o Options) (log *testkit.Log, g *gateway.Gateway) {
	t.Helper()
	log = testkit.LogOf(t, "the part of the test")
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	o.Gateway = gateway.New(gateway.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, "the part ends", ended); err != nil {
			t.Errorf("Run: %v", err)
		}
		o.Gateway.Close()
	})
	return log, o.Gateway
}

// lead runs a hub within the test.
func lead(t *testing.T, m *machine, o Options) (g *gateway.Gateway) {
	t.Helper()
	o.Addr, o.Build = m.addr, "test"
	_, g = takePart(t, o)
	testkit.Eventually(t, "it is the hub", func() bool {
		s, err := Ask(t.Context(), m.addr)
		return err == nil && (o.Handler == nil || s.Addr == m.addr)
	})
	return g
}

func agents(g *gateway.Gateway) int { return len(g.Snapshot().Agents) }

// squatter is a program of another user, or of this one, that has the port.
type squatter struct {
	t    *testing.T
	said *testkit.Log
	end  func()
}

func (m *machine) squat(as func(testing.TB, *exec.Cmd)) *squatter {
	t := m.t
	t.Helper()
	cmd := exec.Command(testkit.Self(t))
	if as != nil {
		as(t, cmd)
	}
	s := &squatter{t: t, said: testkit.LogOf(t, "the squatter")}
	cmd.Env = append(os.Environ(), "HUB_TEST_SQUAT="+m.addr, "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = s.said, s.said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.end = sync.OnceFunc(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Error(err)
		}
	})
	t.Cleanup(s.end)
	return s
}

func (s *squatter) listens() bool { return s.said.Has("listens") }

// heard fails if anybody has said anything to it.
func (s *squatter) heard() {
	s.t.Helper()
	if s.said.Has("connected") || s.said.Has("received") {
		s.t.Errorf("who has the port was told: %s", s.said)
	}
}
