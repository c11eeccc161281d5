//go:build linux

package launched

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// roles are the processes that tests kill.
var roles = map[string]func(socket string){
	// A daemon that sends and receives as much as it can, and prints the tab's state.
	"daemon": func(socket string) {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		l, err := listen(socket)
		if err != nil {
			panic(err)
		}
		serve(NewServer(func(ctx context.Context, p *Pipe, _ bool) {
			conn, err := p.Dial(ctx)
			if err != nil {
				return
			}
			tab, err := attach(conn)
			if err != nil {
				return
			}
			text := strings.Repeat("x", 200_000)
			for n := 0; ; n++ {
				tab.evaluate("'" + text + "'")
				if n%10 == 9 {
					fmt.Println(tab.evaluate("globalThis.state"))
				}
			}
		}, slog.New(slog.DiscardHandler)), l)
	},
	// A holder that leaves when its standard input ends.
	"holder": func(socket string) {
		h := NewHolder(Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		go hold(h, socket, nil)
		io.Copy(io.Discard, os.Stdin)
		h.Release(context.Background())
	},
}

// A process plays a role.
type process struct {
	*exec.Cmd
	t    testing.TB
	in   io.Closer
	says <-chan string // line by line
}

func (h *home) process(role string) *process {
	h.t.Helper()
	p := &process{Cmd: testcmd.Command(os.Args[0], role, h.socket), t: h.t}
	p.Stderr = h.log
	in := testkit.Must(p.StdinPipe())(h.t)
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(p.leave)
	says := make(chan string)
	go func() {
		defer close(says)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			says <- scanner.Text()
		}
	}()
	p.in, p.says = in, says
	return p
}

func (p *process) kill() {
	p.Process.Kill()
	p.wait()
}

// leave makes a holder leave, or a daemon end, and waits until it has gone.
func (p *process) leave() {
	p.in.Close()
	p.wait()
}

func (p *process) wait() {
	for range p.says {
	}
	p.Wait()
}

// Each daemon is killed while it sends: within a command, within a message, or between two.
func TestABrowserOutlivesItsDaemons(t *testing.T) {
	h := newHome(t)
	first := h.daemon()
	leave := h.holder(Options{Open: []string{document}})
	defer leave()
	tab := h.tab(first)
	tab.loaded(t)
	if got := tab.evaluate("globalThis.state = 'kept'"); got != "kept" {
		t.Fatal(got)
	}
	second := h.holder(Options{})
	defer second()
	first.holding(2)
	browser := h.browser()
	first.retire()
	for range 5 {
		daemon := h.process("daemon")
		if got := testkit.Receive(t, "the next daemon speaks with the browser", daemon.says); got != "kept" {
			t.Errorf("it finds %q", got)
		}
		daemon.kill()
		testkit.OK(t, os.Remove(h.socket))
	}
	if got := h.tab(h.daemon()).evaluate("globalThis.state"); got != "kept" || h.browser() != browser {
		t.Errorf("the last daemon finds %q, in another browser than %d", got, browser)
	}
}

// Agents that come at the same time share one browser, and the last one ends it. It does not matter which agent has
// started it, or how that agent has gone.
func TestTheLastHolderEndsTheBrowser(t *testing.T) {
	for name, goes := range map[string]func(*process){"leaves": (*process).leave, "is killed": (*process).kill} {
		t.Run("the starter "+name, func(t *testing.T) {
			h := newHome(t)
			d := h.daemon()
			starter := h.process("holder")
			tab := h.tab(d)
			browser := h.browser()
			var others [3]*process
			for i := range others {
				others[i] = h.process("holder")
			}
			d.holding(4)
			goes(starter)
			d.holding(3)
			for i, other := range others {
				// Nobody reads the browser's standard error.
				if got := tab.evaluate("console.error('x'), 6*7"); got != "42" || h.browser() != browser {
					t.Fatalf("%d of 3 have gone, and it says %q", i, got)
				}
				if i%2 == 0 {
					other.leave()
				} else {
					other.kill()
				}
			}
			h.nothingLeft()
		})
	}
}

// Its starter replaces it, or else another holder.
func TestABrowserThatCrashesIsReplaced(t *testing.T) {
	h := newHome(t)
	d := h.daemon()
	starter := h.process("holder")
	h.tab(d)
	h.process("holder")
	d.holding(2)
	starter.kill()
	d.holding(1)
	for range maxCrashes {
		kill(t, h.browser(), syscall.SIGKILL)
		h.tab(d)
		d.holding(1)
	}
	kill(t, h.browser(), syscall.SIGKILL)
	testkit.Eventually(t, "it is not replaced any more", func() bool { return h.log.Has("again and again") })
	h.nothingLeft()
}

// It stays closed until another process asks for a browser. Then all holders get that one.
func TestABrowserThatIsClosedStaysClosed(t *testing.T) {
	byUser := func(_ *home, tab *tab) { tab.call("Browser.close", "{}") }
	for name, c := range map[string]struct {
		end            func(h *home, tab *tab)
		starterIsThere bool
	}{
		"by its user":                       {byUser, true},
		"by its user, and its starter gone": {byUser, false},
		// Only with its starter: on a busy machine a browser may end without a last message.
		"by the system": {func(h *home, _ *tab) { kill(h.t, h.browser(), syscall.SIGTERM) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			d := h.daemon()
			starter := h.process("holder")
			tab := h.tab(d)
			h.process("holder")
			d.holding(2)
			n := 3
			if !c.starterIsThere {
				starter.kill()
				n--
				d.holding(1)
			}
			c.end(h, tab)
			h.nothingLeft()
			h.process("holder")
			h.tab(d)
			d.holding(n)
		})
	}
}

// The end of a browser leaves other children of this process to their starters.
func TestOtherChildrenAreNotReaped(t *testing.T) {
	newHome(t)
	s := testkit.Must(Start(t.Context(), Options{}))(t)
	other := testcmd.Command("true")
	testkit.OK(t, other.Start())
	testkit.Eventually(t, "it has ended", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", other.Process.Pid))
		return strings.Contains(string(text), ") Z ")
	})
	s.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

// The debugging address is found after other output.
func TestListeningIsFoundBehindErrors(t *testing.T) {
	o := output{url: make(chan string, 1)}
	for range 100 {
		fmt.Fprintf(&o, "[1:2:ERROR:dbus/bus.cc:405] %s\n", strings.Repeat("x", 100))
	}
	fmt.Fprintln(&o, "DevTools listening on ws://127.0.0.1:1/devtools/browser/x")
	if got := testkit.Receive(t, "the URL", o.url); got != "ws://127.0.0.1:1/devtools/browser/x" {
		t.Errorf("it listens on %q", got)
	}
}

// The daemon ends the connection right after its answer. A holder that gives up a running browser takes the answer.
func TestReleaseTakesTheAnswer(t *testing.T) {
	socket := filepath.Join(testkit.ShortDir(t), "socket")
	l := testkit.Must(listen(socket))(t)
	defer l.Close()
	ended := make(chan struct{})
	close(ended)
	for range 50 { // of two channels that are ready, select takes either
		conn := testkit.Must(net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)))(t)
		h := NewHolder(Options{})
		h.started = &Started{exited: t.Context(), clean: make(chan struct{})}
		h.conn, h.served = conn, ended
		h.answer <- gone
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		h.Release(ctx)
		if ctx.Err() != nil {
			t.Fatal("it waits for the browser's end")
		}
		cancel()
	}
}

// A browser that goes on after the last copy of its pipe is closed is killed.
func TestABrowserThatIsStuck(t *testing.T) {
	h := newHome(t)
	d := h.daemon()
	leave := h.holder(Options{})
	h.tab(d)
	kill(t, h.browser(), syscall.SIGSTOP)
	leave()
	if left := h.profiles(); len(left) > 0 {
		t.Errorf("its starter leaves %v", left)
	}
}

func TestABrowserThatCannotBeStarted(t *testing.T) {
	h := newHome(t)
	t.Setenv("PAGEWIRE_BROWSER", "/bin/false")
	d := h.daemon()
	for range 2 {
		leave := h.holder(Options{})
		defer leave()
	}
	testkit.Eventually(t, "each one tries, and says so", func() bool {
		return h.log.Count("a browser cannot be launched") == 2
	})
	t.Setenv("PAGEWIRE_BROWSER", "")
	leave := h.holder(Options{})
	defer leave()
	h.tab(d)
}

// A daemon that dies leaves half a command, half a message, commands without an answer, and sessions with domains that
// it enabled.
func TestWhatADeadDaemonLeaves(t *testing.T) {
	newHome(t)
	s := testkit.Must(Start(t.Context(), Options{Open: []string{document}}))(t)
	defer s.Close()
	dead := dialed(t, s.Pipe)
	dead.loaded(t)
	for _, c := range [][2]string{
		{"Runtime.enable", "{}"},
		{"Runtime.addBinding", `{"name":"bound"}`},
		{"Page.enable", "{}"},
		{"Page.addScriptToEvaluateOnNewDocument", `{"source":"globalThis.added = true","runImmediately":true}`},
		{"Runtime.evaluate", `{"expression":"globalThis.state = added && typeof bound"}`},
	} {
		if _, err := dead.call(c[0], c[1]); err != nil {
			t.Fatal(c[0], err)
		}
	}
	dead.conn.Close()
	to, from, err := s.Pipe.open()
	if err != nil {
		t.Fatal(err)
	}
	half := make([]byte, 100_000)
	evaluate := `,"sessionId":"` + dead.session + `","method":"Runtime.evaluate","params":{"awaitPromise":true,"expression":`
	for _, command := range []string{
		`{"id":1000` + evaluate + `"'x'.repeat(3e5)"}}` + "\x00",
		`{"id":1001` + evaluate + `"new Promise(() => 0)"}}` + "\x00",
		`{"id":1002,"method":"Target.createTarget","params":{"url":"about:bl`,
	} {
		if _, err := to.WriteString(command); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(from, half); err != nil {
		t.Fatal(err)
	}
	to.Close()
	from.Close()
	tab := dialed(t, s.Pipe)
	if got := tab.evaluate("state"); got != "function" {
		t.Errorf("the state is %q", got)
	}
	if _, err := tab.call("Page.reload", "{}"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the tab is as new", func() bool {
		return tab.evaluate("typeof state + typeof bound + typeof added + document.readyState") ==
			"undefinedundefinedundefinedcomplete"
	})
}

func TestNothingListens(t *testing.T) {
	for port, listens := range map[string]bool{"": false, "0": true} {
		t.Run("port "+port, func(t *testing.T) {
			h := newHome(t)
			s := testkit.Must(Start(t.Context(), Options{DebugPort: port, Open: []string{"data:,a", "data:,b"}}))(t)
			defer s.Close()
			any := false
			for pid := range h.processes() {
				any = any || len(testkit.Listens(t, pid)) > 0
			}
			if any != listens || strings.HasPrefix(s.URL, "ws://127.0.0.1:") != listens {
				t.Errorf("it listens: %v, at %q", any, s.URL)
			}
		})
	}
}
