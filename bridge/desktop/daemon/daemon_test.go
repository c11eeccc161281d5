//go:build unix

package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

func TestOneDaemonForAll(t *testing.T) {
	m := newMachine(t)
	var all []*agent
	for range 50 {
		all = append(all, m.start("1.0.0"))
	}
	for _, a := range all {
		a.ping()
	}
	for _, a := range all {
		a.out.Read(make([]byte, 1))
	}
	m.checkDaemons(1)
}

func TestSessionOutlivesItsDaemon(t *testing.T) {
	for _, era := range []string{testkit.Legacy, testkit.Modern} {
		for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP,
			"hangs": syscall.SIGUSR1, "told to end": syscall.SIGTERM} {
			t.Run(era+" "+name, func(t *testing.T) {
				m := newMachine(t)
				a, b := m.connect(era), m.connect(era)
				for _, one := range []*agent{a, b} {
					one.reads(t, "0")
					one.Watch(uri)
				}
				testkit.OK(t, m.daemon().Signal(sig))
				if sig == syscall.SIGUSR1 {
					testkit.Eventually(t, "the daemon hangs", func() bool {
						_, err := os.Stat(filepath.Join(m.home, "hangs"))
						return err == nil
					})
				}
				m.tab.set(uri, "1")
				for _, one := range []*agent{a, b} {
					testkit.Receive(t, "an update", one.Updates)
					one.reads(t, "1")
				}
				// A busy machine may deliver the signal only now.
				testkit.Eventually(t, "another daemon has begun", func() bool { return len(m.daemons()) == 2 })
				m.tab.set(uri, "2")
				for _, one := range []*agent{a, b} {
					testkit.Receive(t, "an update", one.Updates)
					one.reads(t, "2")
				}
				m.checkDaemons(2)
			})
		}
	}
}

// A writes is a connection that calls before before each write.
type writes struct {
	net.Conn
	before func()
}

func (c writes) Write(p []byte) (int, error) {
	c.before()
	return c.Conn.Write(p)
}

// A daemon that retires while it answers a hello sends its own hello first: a client refuses any other line.
func TestHelloGoesFirst(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	d := &daemon{agents: map[*beating]bool{}, o: Options{Version: "1",
		Serve: func(context.Context, Hello, io.Reader, io.Writer, func(Session)) error { return nil }}}
	go d.serve(newConn(writes{server, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for b := range d.agents {
			if b.mu.TryLock() {
				t.Error("another line can go before the hello")
				b.mu.Unlock()
			}
		}
		if len(d.agents) != 1 {
			t.Errorf("%d clients are registered", len(d.agents))
		}
	}}))
	testkit.OK(t, writeHello(client, Hello{Version: "1", As: AsCommand}))
	testkit.Must(readHello(bufio.NewReader(client)))(t)
}

// A daemon hangs, and has no agent that could notice. The next agent is served all the same.
func TestDaemonThatHangsForNobody(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	testkit.OK(t, m.daemon().Signal(syscall.SIGSTOP))
	a.cmd.Process.Kill()
	testkit.Ends(t, "its agent is killed", a.exited)
	m.connect(testkit.Legacy).reads(t, "0")
	m.checkDaemons(2)
}

// A daemon hangs while it retires, when another one runs already. It would keep its port, and its pages.
func TestDaemonThatHangsWhileItRetires(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	former := m.daemon()
	for _, name := range m.files() { // a daemon that retires removes its socket and its lock
		testkit.OK(t, os.Remove(filepath.Join(m.home, "pagewire", name)))
	}
	m.connect(testkit.Legacy).reads(t, "0")
	testkit.OK(t, former.Signal(syscall.SIGSTOP))
	testkit.Eventually(t, "it is ended", func() bool { return former.Signal(syscall.Signal(0)) != nil })
	a.reads(t, "0")
	m.checkDaemons(2)
}

// A daemon that finds another's lock says that it runs. The pipe then tries again, and does not serve alone.
func TestDaemonBesideADyingOne(t *testing.T) {
	var said strings.Builder
	SayFailed(&said, fmt.Errorf("lock it: %w: too late", ErrRuns))
	if err := start(t.Context(), []string{"printf", said.String()}); err != ErrNone {
		t.Error(err)
	}
	if err := start(t.Context(), []string{"true"}); err == nil || err == ErrNone { // it ends without a reason
		t.Errorf("of one that says nothing: %v", err)
	}
}

// If a pipe is too slow to leave a daemon that retires, its listens do not end: the next daemon gets them.
func TestRetireEndsNoListen(t *testing.T) {
	m := newMachine(t)
	c, err := Dialer{Hub: m.hub, Start: append([]string{os.Args[0], "daemon"}, "1.0.0", m.hub, m.pages, "tab")}.Dial(t.Context(),
		Hello{Version: "1.0.0", As: AsAgent})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n")
	for line := ""; !strings.Contains(line, "acknowledged"); {
		if line, err = c.In.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	m.daemon().Signal(syscall.SIGTERM)
	if rest, err := io.ReadAll(c.In); err != nil || strings.Contains(string(rest), `"id":7`) {
		t.Errorf("it says %q, %v", rest, err)
	}
}

// A tool call without an answer when the daemon dies may have run, so it gets an error.
func TestUnansweredWhenTheDaemonDies(t *testing.T) {
	m := newMachine(t)
	var ran atomic.Int32
	m.tab.tools["buy"] = testkit.Tool{Run: func(ctx context.Context, _ json.RawMessage, _ func(map[string]any)) any {
		if ran.Add(1) == 1 {
			<-t.Context().Done() // the daemon dies before this
		}
		return map[string]any{"content": []any{}}
	}}
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	called := make(chan error, 1)
	go func() {
		_, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "buy"})
		called <- err
	}()
	testkit.Eventually(t, "the tool runs", func() bool { return ran.Load() == 1 })
	m.daemon().Kill()
	if err := testkit.Receive(t, "an answer", called); err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("the call is answered %v", err)
	}
	// Unlike package serve's daemon, the tests' daemon does not wait for tabs.
	testkit.Eventually(t, "the next daemon has the tool", func() bool {
		list, err := a.ListTools(t.Context(), nil)
		return err == nil && slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "buy" })
	})
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "buy"}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if n := ran.Load(); n != 2 {
		t.Errorf("the tool ran %d times, want 2", n)
	}
}

// Commands and processes that send HTTP requests neither start a daemon nor keep it running.
func TestWhomTheDaemonStaysFor(t *testing.T) {
	m := newMachine(t)
	if _, err := m.dial(AsCommand); !errors.Is(err, ErrNone) {
		t.Errorf("without a daemon: %v", err)
	}
	a := m.connect(testkit.Legacy)
	command := testkit.Must(m.dial(AsCommand))(t)
	defer command.Close()
	local := testkit.Must(m.dial(AsHTTP))(t)
	defer local.Close()
	fmt.Fprintf(local, "GET / HTTP/1.1\r\nHost: daemon\r\n\r\n")
	answer := testkit.Must(http.ReadResponse(local.In, nil))(t)
	if text, _ := io.ReadAll(answer.Body); string(text) != strconv.Itoa(local.Daemon.PID) {
		t.Errorf("by HTTP it says %q", text)
	}
	a.in.Close()
	testkit.Eventually(t, "nothing is left of the daemon", func() bool { return len(m.files()) == 0 })
	if _, err := io.Copy(io.Discard, command.In); err != nil {
		t.Errorf("the command's connection: %v", err)
	}
}

// Wait returns when a daemon starts, and not for the socket of a killed one.
func TestWait(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	if err := Wait(t.Context(), m.hub); err != nil {
		t.Errorf("beside a daemon: %v", err)
	}
	dead := m.daemon()
	a.cmd.Process.Kill()
	testkit.Ends(t, "its agent is killed", a.exited)
	dead.Kill()
	testkit.Eventually(t, "it is killed", func() bool {
		_, err := m.dial(AsProbe)
		return errors.Is(err, ErrNone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		err := Wait(ctx, m.hub)
		if err == nil {
			_, err = m.dial(AsProbe)
		}
		waited <- err
	}()
	m.connect(testkit.Legacy).reads(t, "0")
	if err := testkit.Receive(t, "the next daemon", waited); err != nil {
		t.Error(err)
	}
	cancel()
	if err := Wait(ctx, "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("where none comes: %v", err)
	}
}

// What a killed daemon has left is removed, but not what one that runs has.
func TestClear(t *testing.T) {
	m := newMachine(t) // in the end nothing is left
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	Clear(m.hub)
	dead := m.daemon()
	a.cmd.Process.Kill()
	dead.Kill()
	testkit.Ends(t, "its agent is killed", a.exited)
	testkit.Eventually(t, "it is killed", func() bool {
		_, err := m.dial(AsProbe)
		return errors.Is(err, ErrNone)
	})
	testkit.Eventually(t, "nothing is left", func() bool {
		Clear(m.hub) // the kernel frees a killed daemon's lock a moment after its socket
		return len(m.files()) == 0
	})
}

// A command does not fail because a daemon is being replaced.
func TestCommandWaitsForADaemonThatIsStarted(t *testing.T) {
	m := newMachine(t)
	dir := testkit.Must(userdir.Open(m.hub))(t)
	defer dir.Close()
	starting := testkit.Must(dir.Lock(t.Context(), startLock))(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Moment)
	defer cancel()
	if _, err := (Dialer{Hub: m.hub}).Dial(ctx, Hello{As: AsCommand}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another process starts one: %v", err)
	}
	starting.Remove()
	if _, err := m.dial(AsCommand); !errors.Is(err, ErrNone) {
		t.Errorf("after that process has failed: %v", err)
	}
}

// An agent may be killed while it is to start a daemon. If another one runs by then, nobody takes
// its lock any more.
func TestDaemonRemovesTheLockOfAKilledAgent(t *testing.T) {
	m := newMachine(t) // in the end nothing is left
	a := m.start("1.0.0")
	a.ping()
	testkit.Must(a.out.Read(make([]byte, 1)))(t)
	for _, name := range m.files() {
		if hub, is := strings.CutSuffix(name, "-"+socketName); is {
			testkit.OK(t, os.WriteFile(filepath.Join(m.home, "pagewire", hub+"-"+startLock), nil, 0o600))
		}
	}
	if !slices.ContainsFunc(m.files(), func(name string) bool { return strings.HasSuffix(name, "-"+startLock) }) {
		t.Error("there is no lock")
	}
}

// On a busy machine an agent's process may leave, or serve alone, before the daemon that it has started listens. The
// daemon goes on, and in the end removes its files.
func TestDaemonWhoseStarterHasGone(t *testing.T) {
	m := newMachine(t) // in the end nothing is left
	said, its, err := os.Pipe()
	testkit.OK(t, err, said.Close())
	cmd := testcmd.Command(os.Args[0], "daemon", "1.0.0", m.hub, m.pages, "tab")
	cmd.Stdout = its
	testkit.OK(t, cmd.Start(), its.Close())
	testkit.Eventually(t, "it listens", func() bool { return len(m.daemons()) == 1 })
	testkit.OK(t, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
}

func TestNewerBuildTakesOver(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	a.Watch(uri)
	same, older := m.start("1.0.0"), m.start("0.9.0")
	for _, other := range []*agent{same, older} {
		other.ping()
		other.out.Read(make([]byte, 1))
	}
	m.checkDaemons(1)
	m.start("1.0.1")
	testkit.Receive(t, "an update", a.Updates)
	m.tab.set(uri, "1")
	a.reads(t, "1")
	m.checkDaemons(2)
}

// A daemon that agents need serves newer builds and agents that ask for more, and retires when it is
// not needed. An agent may begin to need it at any moment of another one's attempt to replace it.
func TestDaemonThatIsKept(t *testing.T) {
	for first := range 4 { // the first question that is answered with yes; 3: none
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			m := newMachine(t)
			o := m.options(t)
			started := make(chan struct{})
			o.Started = func() { close(started) }
			var asked, over atomic.Int32
			o.Keeps = func() bool { return first < 3 && int(asked.Add(1)) > first && over.Load() == 0 }
			o.Lacks = func(h Hello) bool { return h.Launch != nil }
			ended := make(chan error, 1)
			go func() { ended <- Run(t.Context(), o) }()
			testkit.Ends(t, "it listens", started)
			dialer := Dialer{Hub: m.hub, Start: []string{"false"}}
			c, err := dialer.Dial(t.Context(), Hello{Version: "1.0.1", As: AsAgent})
			if first == 3 { // it was not needed at any question, and another one is to be started
				if err == nil || !strings.Contains(err.Error(), "start a daemon") {
					t.Errorf("a newer build: %v", err)
				}
			} else if err != nil || c.Daemon.PID != os.Getpid() || !c.Daemon.Stays {
				t.Fatalf("a newer build: %+v, %v", c, err)
			} else {
				defer c.Close()
				other, err := dialer.Dial(t.Context(), Hello{Version: "1.0.0", As: AsAgent, Launch: &Launch{}})
				if err != nil || !other.Daemon.Stays {
					t.Fatalf("an agent that asks for more: %+v, %v", other, err)
				}
				defer other.Close()
				if _, err := Succeed(t.Context(), m.hub, "1.0.0"); !errors.Is(err, ErrOther) {
					t.Errorf("serve --http: %v", err)
				}
				over.Store(1)
			}
			if err := testkit.Receive(t, "it retires", ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// At the next daemon nothing is known of what an agent has seen. So its first call of a tool that depends on state is
// refused, with the state, though it has not changed.
func TestStaleCallsAtTheNextDaemon(t *testing.T) {
	signal := func(sig syscall.Signal) func(*machine) {
		return func(m *machine) { testkit.OK(m.t, m.daemon().Signal(sig)) }
	}
	for _, era := range []string{testkit.Legacy, testkit.Modern} {
		for name, end := range map[string]func(*machine){"killed": signal(syscall.SIGKILL),
			"stopped": signal(syscall.SIGSTOP), "told to end": signal(syscall.SIGTERM),
			"replaced": func(m *machine) { m.start("1.0.1") }} {
			t.Run(era+" "+name, func(t *testing.T) {
				m := newMachine(t)
				var ran atomic.Int32
				depends := map[string]any{"pagewire/freshState": map[string]any{"uris": []string{uri}}}
				m.tab.tools["buy"] = testkit.Tool{Members: map[string]any{"_meta": depends},
					Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
						ran.Add(1)
						return map[string]any{"content": []any{}}
					}}
				a := m.connect(era)
				a.reads(t, "0")
				a.Watch(uri)
				buys := func(want int32, refused string) {
					t.Helper()
					testkit.Eventually(t, "the daemon has the tool", func() bool {
						return slices.Contains(a.ToolNames(), "buy")
					})
					text, failed := a.Call("buy", nil)
					if ran.Load() != want || failed != (refused != "") || !strings.Contains(text, refused) {
						t.Errorf("it ran %d times, want %d, and says %q", ran.Load(), want, text)
					}
				}
				buys(1, "")
				end(m)
				testkit.Receive(t, "an update", a.Updates) // by the next daemon
				buys(1, `"now":"0"`)
				buys(2, "")
				m.checkDaemons(2)
			})
		}
	}
}

func TestForegroundTakesThePlace(t *testing.T) {
	m := newMachine(t)
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	a.Watch(uri)
	release := testkit.Must(Succeed(t.Context(), m.hub, "1.0.0"))(t)
	o := m.options(t)
	o.Foreground, o.Started = "127.0.0.1:8000", func() { release() }
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	testkit.Receive(t, "an update", a.Updates)
	if p := m.daemon(); p.Pid != os.Getpid() {
		t.Errorf("the daemon is process %d, want %d", p.Pid, os.Getpid())
	}
	end()
	if err := testkit.Receive(t, "its end", ended); err != nil {
		t.Error(err)
	}
	testkit.Receive(t, "an update", a.Updates)
	a.reads(t, "0")
	m.checkDaemons(2)
}

func TestForegroundIsNotReplaced(t *testing.T) {
	m := newMachine(t)
	o := m.options(t)
	o.Foreground = "127.0.0.1:8000"
	started := make(chan struct{})
	o.Started = func() { close(started) }
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	testkit.Ends(t, "it listens", started)
	_, err := Succeed(t.Context(), m.hub, "2.0.0")
	want := fmt.Sprintf("runs already at 127.0.0.1:8000 (process %d)", os.Getpid())
	if !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), want) {
		t.Errorf("another one is told %v, want %q", err, want)
	}
	if c, err := (Dialer{Hub: m.hub}).Dial(t.Context(), Hello{Version: "2.0.0", As: AsAgent}); err != nil {
		t.Errorf("a newer build: %v", err)
	} else {
		c.Close()
	}
	if err := Run(ctx, o); !errors.Is(err, ErrRuns) {
		t.Errorf("a second one: %v", err)
	}
	end()
	if err := testkit.Receive(t, "its end", ended); err != nil {
		t.Error(err)
	}
}

// If the directory cannot be used, the agent is served alone. It moves to a daemon as soon as one can run.
func TestAloneAndBack(t *testing.T) {
	m := newMachine(t)
	place := filepath.Join(m.home, "pagewire")
	testkit.OK(t, os.WriteFile(place, nil, 0o600))
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	a.Watch(uri)
	testkit.Eventually(t, "it says why", func() bool { return strings.Contains(a.log.String(), "is a file") })
	m.checkDaemons(0)
	testkit.OK(t, os.Remove(place))
	testkit.Eventually(t, "there is a daemon", func() bool { return len(m.daemons()) == 1 })
	testkit.Receive(t, "an update", a.Updates)
	m.tab.set(uri, "1")
	a.reads(t, "1")
	if !strings.Contains(a.log.String(), "not alone any more") {
		t.Error("what has served it alone goes on")
	}
}

func TestHellosThatAreNone(t *testing.T) {
	m := newMachine(t)
	m.connect(testkit.Legacy)
	dir := testkit.Must(userdir.Open(m.hub))(t)
	defer dir.Close()
	long := strings.Repeat("x", maxHello+1)
	for name, c := range map[string]struct{ send, want string }{
		"no JSON":          {"hello\n", ""},
		"a list":           {"[1]\n", ""},
		"no version":       {"{}\n", ""},
		"protocol 0":       {`{"pagewire":0}` + "\n", ""},
		"another protocol": {`{"pagewire":7,"version":"9.9","flags":3}` + "\n", "end all agents"},
		"endless":          {long, ""},
		"too long":         {`{"pagewire":1,"version":"` + long + `"}` + "\n", ""},
		"a long snapshot":  {`{"pagewire":1,"as":"agent","snapshot":"` + strings.Repeat("A", 400<<10) + `"}` + "\n", ""},
		"flags of a shape": {`{"pagewire":1,"as":"agent","flags":{"allowOrigins":"x"}}` + "\n", ""},
		"as nobody":        {`{"pagewire":1,"as":"king"}` + "\n", "serves nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := testkit.Must(dir.Dial(t.Context(), socketName))(t)
			defer raw.Close()
			go func() {
				io.WriteString(raw, c.send)
				raw.(*net.UnixConn).CloseWrite()
			}()
			text, _ := io.ReadAll(raw) // an error if the daemon closes before it has read everything
			if (len(text) == 0) != (c.want == "") || !strings.Contains(string(text), c.want) {
				t.Errorf("it says %q, want %q", text, c.want)
			}
		})
	}
	m.checkDaemons(1)
}

// A daemon of another protocol is not ended, and the agent is served alone.
func TestDaemonOfAnotherProtocol(t *testing.T) {
	m := newMachine(t)
	dir := testkit.Must(userdir.Open(m.hub))(t)
	defer dir.Close()
	l := testkit.Must(dir.Listen(socketName))(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, `{"pagewire":2,"version":"5.0.0","error":{}}`+"\n")
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	a := m.connect(testkit.Legacy)
	a.reads(t, "0")
	if !strings.Contains(a.log.String(), "end all agents") {
		t.Errorf("it says %s", a.log)
	}
	l.Remove()
}

// A daemon of an older build, which would show pages' tools to an agent that is to get none, does not serve it. One of
// this build says that it hides them.
func TestDaemonThatWouldShowTools(t *testing.T) {
	m := newMachine(t)
	dir := testkit.Must(userdir.Open(m.hub))(t)
	defer dir.Close()
	l := testkit.Must(dir.Listen(socketName))(t)
	defer l.Remove()
	hellos := make(chan Hello, 3)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			readHello(newConn(c).In) // closed unread, it would reset the connection
			writeHello(c, <-hellos)
			c.Close()
		}
	}()
	looks := Hello{Version: "1.0.0", As: AsAgent, Flags: Flags{NoPageTools: true}}
	for _, older := range []bool{true, false} {
		h := Hello{Version: "1.0.0"}
		if !older {
			h = (&daemon{o: Options{Version: "1.0.0", Busy: func() bool { return false }}, agents: map[*beating]bool{}}).answer(Hello{Protocol: Protocol, As: AsProbe,
				Flags: looks.Flags}, nil)
		}
		hellos <- h
		if _, err := (Dialer{Hub: m.hub}).Dial(t.Context(), looks); errors.Is(err, errOutdated) != older {
			t.Errorf("older is %t: %v", older, err)
		}
	}
	hellos <- Hello{Version: "1.0.0"}
	if _, err := m.dial(AsAgent); err != nil {
		t.Errorf("another agent: %v", err)
	}
}

func TestWhatCountsAsSilence(t *testing.T) {
	begin := time.Now()
	for _, c := range []struct {
		name  string
		steps []time.Duration
		heard int // index of the step at which something was heard, or -1
		want  bool
	}{
		{"for long enough", slices.Repeat([]time.Duration{measureEvery}, 16), -1, true},
		{"heard in between", slices.Repeat([]time.Duration{measureEvery}, 16), 3, false},
		{"this process was stopped for a minute", []time.Duration{measureEvery, time.Minute, measureEvery}, -1, false},
	} {
		s, now, got := silence{last: begin}, begin, false
		for i, step := range c.steps {
			now = now.Add(step)
			got = s.measure(now, i == c.heard)
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// On a busy machine a daemon sends nothing because it waits for a processor. Only one that is silent without that hangs.
func TestDaemonThatWaitsForAProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, its := memoryConns()
		c.Daemon.PID = 1
		var works atomic.Bool
		c.waiting = func() func() time.Duration {
			began := time.Now()
			return func() time.Duration {
				if works.Load() {
					return 0
				}
				return time.Since(began)
			}
		}
		var said strings.Builder
		in, agent := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- Pipe(t.Context(), PipeOptions{In: in, Out: io.Discard, Log: slog.New(slog.NewTextHandler(&said, nil)),
				Dial:  func(context.Context, Hello) (*Conn, error) { return c, nil },
				Probe: func(ctx context.Context, _ Hello) (*Conn, error) { <-ctx.Done(); return nil, ctx.Err() }})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if said.Len() > 0 {
			t.Errorf("of one that waits is said %s", &said)
		}
		works.Store(true)
		time.Sleep(maxSilence + 2*probeTimeout)
		synctest.Wait()
		if !strings.Contains(said.String(), "the daemon is silent") { // its end is no socket, and is left alone
			t.Errorf("of one that hangs is said %q", &said)
		}
		agent.Close()
		its.Close()
		testkit.OK(t, <-ended)
	})
}

// A daemon's heartbeat and its answer to a probe come together after a silence, since it has waited for a processor. The
// connection works, and stays.
func TestHeartbeatDuringAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, its := memoryConns()
		c.Daemon.PID = 1
		var said strings.Builder
		in, agent := io.Pipe()
		ended := make(chan error, 1)
		probes := 0
		go func() {
			ended <- Pipe(t.Context(), PipeOptions{In: in, Out: io.Discard, Log: slog.New(slog.NewTextHandler(&said, nil)),
				Dial: func(context.Context, Hello) (*Conn, error) { return c, nil },
				Probe: func(context.Context, Hello) (*Conn, error) {
					probes++
					io.WriteString(its, beatLine)
					answer, _ := memoryConns()
					answer.Daemon.PID = 1
					return answer, nil
				}})
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if said.Len() > 0 || probes < 2 {
			t.Errorf("after %d probes is said %s", probes, &said)
		}
		agent.Close()
		its.Close()
		testkit.OK(t, <-ended)
	})
}

// A daemon is not ended because an agent does not read for longer than maxSilence.
func TestAgentThatReadsNothing(t *testing.T) {
	m := newMachine(t)
	m.tab.state[uri] = strings.Repeat("x", 256<<10)
	other := m.connect(testkit.Legacy)
	other.reads(t, m.tab.state[uri])
	a := m.start("1.0.0")
	for i := range 40 {
		fmt.Fprintf(a.in, `{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`+"\n", i, uri)
	}
	looked := time.Now()
	testkit.Eventually(t, "it has been silent for long", func() bool { return time.Since(looked) > 2*maxSilence })
	other.reads(t, m.tab.state[uri])
	m.checkDaemons(1)
	a.cmd.Process.Kill()
}

func TestRandomEndsLeaveNothing(t *testing.T) {
	m := newMachine(t)
	random := rand.New(rand.NewPCG(1, 2))
	var all []*agent
	for range 200 {
		switch n := random.IntN(6); {
		case n < 3 || len(all) == 0:
			all = append(all, m.start("1.0.0"))
			continue
		case n == 3:
			all[0].in.Close()
			all = all[1:]
		case n == 4:
			all[0].cmd.Process.Kill()
			all = all[1:]
		default:
			if c, err := m.dial(AsProbe); err == nil {
				c.Close()
				syscall.Kill(c.Daemon.PID, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[random.IntN(2)])
			}
		}
	}
	for _, a := range all {
		a.ping()
		if _, err := a.out.Read(make([]byte, 1)); err != nil {
			t.Errorf("an agent is not answered: %v", err)
		}
	}
}

func TestLogHasABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := testkit.Must(OpenLog(path))(t)
	line := []byte(strings.Repeat("x", 99_999) + "\n")
	for range 100 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	all, err := filepath.Glob(path + "*")
	if err != nil || len(all) != 2 {
		t.Fatalf("files %v %v, want 2", all, err)
	}
	for _, name := range all {
		if info, err := os.Stat(name); err != nil || info.Size() > maxLog+int64(len(line)) || info.Size() == 0 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if _, err := OpenLog(t.TempDir()); err == nil {
		t.Error("a directory was opened as a log")
	}
}

// Who causes lines of one message without end leaves room to the others.
func TestLogLeavesRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := slog.New(slog.NewTextHandler(testkit.Must(OpenLog(path))(t), nil))
	log.Warn("the first line", "about", "it")
	for i := range 2000 {
		log.Warn("refused a page", "origin", fmt.Sprint("https://", i, ".example"))
		log.Info("page attached", "tab", i)
	}
	log.Warn("the last line")
	text := string(testkit.Must(os.ReadFile(path))(t))
	if !strings.Contains(text, "the first line") || !strings.Contains(text, "the last line") ||
		strings.Count(text, "refused a page") != maxSame || strings.Count(text, "page attached") != maxSame ||
		strings.Count(text, "(more are left out for a minute)\n") != 2 {
		t.Errorf("the log has %d bytes: %.300s", len(text), text)
	}
}

// An answer reaches the agent at once, also if a heartbeat comes with it.
func TestAnswerBesideABeat(t *testing.T) {
	near, far := net.Pipe()
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Pipe(t.Context(), PipeOptions{In: in, Out: out, Log: slog.New(slog.DiscardHandler),
			Dial: func(context.Context, Hello) (*Conn, error) { return newConn(near), nil }})
	}()
	go io.WriteString(ask, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if _, err := bufio.NewReader(far).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"
	go io.WriteString(far, answer+beatLine)
	got := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(answers).ReadString('\n')
		got <- line
	}()
	if line := testkit.Receive(t, "the agent gets an answer", got); line != answer {
		t.Errorf("the agent gets %q", line)
	}
	ask.Close()
	far.Close()
	testkit.Receive(t, "the pipe ends", ended)
}

// A pipe leaves a daemon that retires before it has read the agent's state. It also ends its own process's service a
// second after a daemon runs, even with open requests: this process may have the port that the daemon needs.
func TestPipeGoesOn(t *testing.T) {
	for from, retires := range map[string]bool{"a daemon that retires at once": true, "the own process at work": false} {
		t.Run(from, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, former := memoryConns()
				second, next := memoryConns()
				daemons := []*Conn{nil, second}
				if retires {
					daemons[0] = first
				}
				in, ask := io.Pipe()
				ended := make(chan error, 1)
				go func() {
					ended <- Pipe(t.Context(), PipeOptions{In: in, Out: io.Discard,
						Dial: func(context.Context, Hello) (c *Conn, err error) {
							if c, daemons = daemons[0], daemons[1:]; c == nil {
								err = ErrOther
							}
							return c, err
						},
						Alone: func(Hello, error) *Conn { return first }})
				}()
				if retires {
					io.WriteString(former, retireLine)
				}
				synctest.Wait()
				go func() {
					io.Copy(io.Discard, former)
					if retires {
						former.Close()
					}
				}()
				time.Sleep(aloneFirst + retireTimeout)
				const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
				io.WriteString(ask, "\ufeff"+ping) // as Codex on Windows begins
				if line, err := next.In.ReadString('\n'); err != nil || line != ping {
					t.Errorf("the next daemon gets %q, %v", line, err)
				}
				ask.Close()
				io.Copy(io.Discard, next)
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"pagewire":1,"version":"1","as":"agent","snapshot":"AAAA","flags":{"allowOrigins":["*"]}}` + "\n"))
	f.Add([]byte(`{"pagewire":2}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		new(pipe).keep(text)
		h, err := readHello(bufio.NewReader(bytes.NewReader(text)))
		if err != nil || h.Protocol != Protocol {
			return
		}
		var out bytes.Buffer
		writeHello(&out, h)
		if _, err := readHello(bufio.NewReader(&out)); err != nil || len(h.Handover) > maxHandover {
			t.Errorf("%q is %+v, and then %v", text, h, err)
		}
	})
}
