//go:build unix

package daemon

import (
	"context"
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
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// The tests run this binary again as an agent's pipe, which runs it again as the daemon. The daemon attaches the pages
// that the test serves: like tabs, they outlive daemons.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "daemon" || os.Args[1] == "pipe") {
		a := arguments(os.Args[2:])
		run := a.daemon
		if os.Args[1] == "pipe" {
			run = a.pipe
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// arguments are a process's: the version, the hub, the address at which the test serves pages, and the tabs' names.
type arguments []string

func (a arguments) options(ctx context.Context, log *slog.Logger) Options {
	g := gateway.New(gateway.Options{Log: log})
	go deadlock(g)
	bringIn(ctx, g, a[2], a[3:])
	return Options{
		Hub: a[1], Version: a[0], Log: log,
		Serve: func(ctx context.Context, h Hello, in io.Reader, out io.Writer, work func(Session)) error {
			agent, err := g.Connect(gateway.TransportStdio)
			if err != nil {
				return err
			}
			work(agent)
			return agents.Lines(ctx, agent, g.MessageBytes(), in, out)
		},
		Local: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) }),
		Busy:  func() bool { g.Agents(); return false },
	}
}

// daemon runs a daemon, and adds a line with its pid to a file in the home directory.
func (a arguments) daemon() error {
	Umask()
	home := os.Getenv("HOME")
	file, err := OpenLog(filepath.Join(home, "daemon.log"))
	if err != nil {
		return err
	}
	noted, err := os.OpenFile(filepath.Join(home, "daemons"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := a.options(ctx, slog.New(slog.NewTextHandler(file, nil)))
	o.Started = func() {
		fmt.Fprintln(noted, os.Getpid())
		fmt.Print(started)
		os.Stdout.Close()
	}
	return Run(ctx, o)
}

func (a arguments) pipe() error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	hello := Hello{Version: a[0], As: AsAgent, PID: os.Getpid()}
	return Pipe(ctx, PipeOptions{
		In: os.Stdin, Out: os.Stdout, Hello: hello, Log: log,
		Dial:  Dialer{Hub: a[1], Start: append([]string{os.Args[0], "daemon"}, a...)}.Dial,
		Probe: Dialer{Hub: a[1]}.Dial,
		Alone: func(hello Hello, reason error) *Conn {
			log.Warn("alone", "reason", reason)
			return Alone(ctx, a.options(ctx, log), hello)
		},
		AloneEnded: func() { log.Warn("not alone any more") },
	})
}

// deadlock takes the gateway's lock for ever after a signal, as a bug in the gateway could.
func deadlock(g *gateway.Gateway) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	<-told
	g.Tap(func(e gateway.Event) {
		if e.Way == gateway.ToAgent {
			os.WriteFile(filepath.Join(os.Getenv("HOME"), "hangs"), nil, 0o600)
			select {}
		}
	})
	agent, err := g.Connect("deadlock")
	if err == nil {
		agent.Write(context.Background(), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	}
}

const app = "https://app.example"

func bringIn(ctx context.Context, g *gateway.Gateway, addr string, tabs []string) {
	for _, tab := range tabs {
		over, err := net.Dial("tcp", addr)
		if err != nil {
			panic(err)
		}
		conn, _, err := wsconn.Client(ctx, over, "/"+tab, nil, wsconn.Options{MaxMessage: 1 << 20})
		if err != nil {
			panic(err)
		}
		page, err := g.Attach(gateway.PageInfo{Tab: tab, Origin: app, URL: app + "/", Title: "Tab " + tab,
			Transport: "test"}, func(frame []byte) {
			if frame != nil {
				conn.Send(frame)
			}
		})
		if err != nil {
			panic(err)
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
}

// A tab is a page with its resources' texts, by URI, and a link for each daemon that has it.
type tab struct {
	mu    sync.Mutex
	state map[string]string
	tools map[string]testkit.Tool
	links map[*testkit.Page]bool
}

func (tab *tab) serve(t *testing.T, c *wsconn.Conn) {
	tab.mu.Lock()
	page := testkit.NewPage(t, tab.state)
	for name, tool := range tab.tools {
		page.SetTool(name, tool)
	}
	tab.links[page] = true
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

// set changes a resource's text, and notifies each daemon.
func (tab *tab) set(uri, value string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.state[uri] = value
	for page := range tab.links {
		page.Set(uri, value)
	}
}

// A machine has the home directory, the hub and the tab that the processes of a test share.
type machine struct {
	t         *testing.T
	home, hub string
	pages     string
	tab       *tab
}

const uri = app + "/a"

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, home: testkit.Home(t), hub: testkit.Addr(t),
		tab: &tab{state: map[string]string{uri: "0"}, tools: map[string]testkit.Tool{}, links: map[*testkit.Page]bool{}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: 1 << 20}); err == nil {
			m.tab.serve(t, c)
		}
	}))
	t.Cleanup(s.Close)
	m.pages = s.Listener.Addr().String()
	t.Cleanup(func() {
		testkit.Eventually(t, "nothing is left of the daemon", func() bool { return len(m.files()) == 0 })
	})
	return m
}

// options returns the options of a daemon in the test's own process.
func (m *machine) options(t *testing.T) Options {
	return arguments{"1.0.0", m.hub, m.pages, "tab"}.options(t.Context(), slog.New(slog.NewTextHandler(testkit.LogOf(t,
		"the daemon"), nil)))
}

// files lists the names of the files in the user's directory.
func (m *machine) files() (names []string) {
	all := testkit.Must(filepath.Glob(filepath.Join(m.home, "pagewire", "*")))(m.t)
	for _, path := range all {
		names = append(names, filepath.Base(path))
	}
	return names
}

// daemons lists the pids of all daemons of the test, also of dead ones.
func (m *machine) daemons() []string {
	text, err := os.ReadFile(filepath.Join(m.home, "daemons"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// checkDaemons fails the test unless it has had that many daemons.
func (m *machine) checkDaemons(want int) {
	m.t.Helper()
	if n := m.daemons(); len(n) != want {
		m.t.Errorf("daemons %v, want %d", n, want)
	}
}

// dial connects to the running daemon.
func (m *machine) dial(as string) (*Conn, error) {
	return Dialer{Hub: m.hub}.Dial(m.t.Context(), Hello{Version: "1.0.0", As: as})
}

// daemon returns the process of the running daemon.
func (m *machine) daemon() *os.Process {
	m.t.Helper()
	c := testkit.Must(m.dial(AsProbe))(m.t)
	c.Close()
	return testkit.Must(os.FindProcess(c.Daemon.PID))(m.t)
}

// An agent is an agent and the process of its pipe.
type agent struct {
	*testkit.Agent
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	log    *testkit.Log
	exited chan struct{}
}

// start starts the pipe of an agent, which is of a version.
func (m *machine) start(version string) *agent {
	t := m.t
	t.Helper()
	cmd := testcmd.Command(os.Args[0], append([]string{"pipe"}, version, m.hub, m.pages, "tab")...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // saves a second at the end of a process under -race
	a := &agent{cmd: cmd, log: testkit.LogOf(t, "a pipe"), exited: make(chan struct{})}
	cmd.Stderr = a.log
	var err error
	if a.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if a.out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	testkit.OK(t, cmd.Start())
	go func() {
		cmd.Process.Wait() // cmd.Wait would close the output, which is still read
		close(a.exited)
	}()
	t.Cleanup(func() {
		a.in.Close()
		testkit.Ends(t, "the pipe ends with its agent", a.exited)
	})
	return a
}

// connect is start, with a session of an era.
func (m *machine) connect(era string) *agent {
	m.t.Helper()
	a := m.start("1.0.0")
	a.Agent = testkit.Connect(m.t, &mcp.IOTransport{Reader: io.NopCloser(a.out), Writer: a.in}, era)
	return a
}

// reads waits until the agent reads a text.
func (a *agent) reads(t *testing.T, text string) {
	t.Helper()
	var got string
	testkit.Eventually(t, "the agent reads "+text, func() bool {
		var err error
		got, err = a.Read(uri)
		return err == nil && got == text
	})
}

func (a *agent) ping() { io.WriteString(a.in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n") }
