//go:build linux

package launched

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The processes that tests start are this binary: its arguments are a role and the daemon's socket.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A home has the directories of a test's browsers, which are empty when the test begins.
type home struct {
	t      testing.TB
	temp   string
	socket string
	log    *testkit.Log
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, temp: testkit.ShortDir(t), log: testkit.LogOf(t, "the daemon and the holders")}
	h.socket = filepath.Join(testkit.Home(t), "socket")
	t.Setenv("TMPDIR", h.temp)
	t.Cleanup(h.nothingLeft)
	return h
}

func (h *home) logger() *slog.Logger { return slog.New(slog.NewTextHandler(h.log, nil)) }

// nothingLeft waits until there is no process of a browser, and no profile.
func (h *home) nothingLeft() {
	h.t.Helper()
	testkit.Eventually(h.t, "no process is left", func() bool { return len(h.processes()) == 0 })
	testkit.Eventually(h.t, "no profile is left", func() bool { return len(h.profiles()) == 0 })
}

func (h *home) profiles() []string {
	list, _ := filepath.Glob(filepath.Join(h.temp, profilePrefix+"*"))
	return list
}

// processes lists the processes of browsers from /proc: command lines by pid.
func (h *home) processes() map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		line := strings.ReplaceAll(string(text), "\x00", " ")
		if err != nil || !strings.Contains(line, "--user-data-dir="+h.temp) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			all[pid] = line
		}
	}
	return all
}

// browser is the pid of the one browser.
func (h *home) browser() int {
	h.t.Helper()
	for pid, line := range h.processes() {
		// A child of the browser has the same command line until it executes another program.
		if status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); strings.Contains(line, "--remote-debugging-pipe") &&
			!strings.Contains(line, "--type=") && strings.Contains(string(status), fmt.Sprintf("\nNSpgid:\t%d\n", pid)) {
			return pid
		}
	}
	h.t.Fatalf("there is no browser among %v", h.processes())
	return 0
}

func kill(t testing.TB, pid int, signal syscall.Signal) {
	t.Helper()
	testkit.OK(t, syscall.Kill(pid, signal))
}

// A tab is a client of a browser's first tab. It waits for each answer.
type tab struct {
	conn    *Conn
	session string
	last    int
	answers chan devtoolsMessage
	over    chan struct{} // closed when the connection is
}

// A devtoolsMessage has the parts of a message that a tab uses.
type devtoolsMessage struct {
	ID     int
	Method string
	Params struct{ SessionID string }
	Result struct{ Result struct{ Value any } }
	Error  *struct{ Message string }
}

var errOver = errors.New("the connection has ended")

// attach attaches to the tabs, and returns the first.
func attach(conn *Conn) (*tab, error) {
	t := &tab{conn: conn, answers: make(chan devtoolsMessage, 100), over: make(chan struct{})}
	sessions := make(chan string, 100)
	go func() {
		defer close(t.over)
		for {
			from, err := conn.Next()
			if err != nil {
				return
			}
			var m devtoolsMessage
			text, err := io.ReadAll(from)
			if err != nil || json.Unmarshal(text, &m) != nil {
				return
			}
			if m.Method == "Target.attachedToTarget" {
				sessions <- m.Params.SessionID
			} else if m.ID > 0 {
				t.answers <- m
			}
		}
	}()
	if _, err := t.call("Target.setAutoAttach", `{"autoAttach":true,"flatten":true,"waitForDebuggerOnStart":false,`+
		`"filter":[{"type":"page"}]}`); err != nil {
		return nil, err
	}
	select {
	case t.session = <-sessions:
		return t, nil
	case <-t.over:
		return nil, errOver
	}
}

// call runs a command, in the tab if t is attached to it, and returns the value of its result.
func (t *tab) call(method, params string) (value any, err error) {
	t.last++
	session := ""
	if t.session != "" {
		session = `"sessionId":"` + t.session + `",`
	}
	if err := t.conn.Write(fmt.Appendf(nil, `{"id":%d,%s"method":%q,"params":%s}`, t.last, session, method, params)); err != nil {
		return nil, err
	}
	for {
		select {
		case m := <-t.answers:
			switch {
			case m.ID != t.last:
			case m.Error != nil:
				return nil, errors.New(m.Error.Message)
			default:
				return m.Result.Result.Value, nil
			}
		case <-t.over:
			return nil, errOver
		}
	}
}

// evaluate returns the value of an expression in the tab, or an error's text.
func (t *tab) evaluate(expression string) string {
	params, _ := json.Marshal(map[string]any{"expression": expression, "returnByValue": true})
	value, err := t.call("Runtime.evaluate", string(params))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(value)
}

const document = "data:text/html,x"

// loaded waits until the tab has a document that stays: a browser answers before its first tab has one.
func (t *tab) loaded(tb testing.TB) {
	tb.Helper()
	testkit.Eventually(tb, "the document is loaded", func() bool {
		return t.evaluate("location.href + document.readyState") == document+"complete"
	})
}

// dialed returns the first tab of a browser.
func dialed(t *testing.T, p *Pipe) *tab {
	t.Helper()
	return testkit.Must(attach(connect(t, p)))(t)
}

// A daemon attaches to browsers' tabs for a test.
type daemon struct {
	*Server
	t        testing.TB
	listener *net.UnixListener
	tabs     chan *tab // of each browser that it is attached to
}

func listen(socket string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
}

func (h *home) daemon() *daemon {
	h.t.Helper()
	l := testkit.Must(listen(h.socket))(h.t)
	d := &daemon{t: h.t, listener: l, tabs: make(chan *tab, 100)}
	d.Server = NewServer(func(ctx context.Context, p *Pipe, _ bool) {
		conn, err := p.Dial(ctx)
		if err != nil {
			return
		}
		defer conn.Close()
		tab, err := attach(conn)
		if err != nil {
			return
		}
		d.tabs <- tab
		select {
		case <-tab.over:
		case <-ctx.Done():
		}
	}, h.logger())
	go serve(d.Server, l)
	h.t.Cleanup(d.retire)
	return d
}

func serve(s *Server, l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go s.Serve(conn)
	}
}

// retire ends a daemon, so that another one can start.
func (d *daemon) retire() {
	d.listener.Close()
	d.Close()
}

// holding waits until n holders have the browser.
func (d *daemon) holding(n int) {
	d.t.Helper()
	testkit.Eventually(d.t, fmt.Sprintf("%d have the browser", n), func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		has := 0
		for _, c := range d.clients {
			if c.browser != nil {
				has++
			}
		}
		return has == n && len(d.clients) == n
	})
}

// tab returns the next tab that the daemon is attached to.
func (h *home) tab(d *daemon) *tab {
	h.t.Helper()
	return testkit.Receive(h.t, "the daemon is attached to the browser", d.tabs)
}

// holder asks for the browser, in this process. leave gives the browser up.
func (h *home) holder(o Options) (leave func()) {
	o.Log = h.logger()
	holder := NewHolder(o)
	left := make(chan struct{})
	go hold(holder, h.socket, left)
	return sync.OnceFunc(func() {
		close(left)
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		holder.Release(ctx)
		if ctx.Err() != nil {
			h.t.Error("it does not get rid of its browser")
		}
	})
}

// hold makes a Holder serve one daemon after another.
func hold(holder *Holder, socket string, left <-chan struct{}) {
	for {
		if conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"}); err == nil {
			holder.Serve(conn)
		}
		select {
		case <-left:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
