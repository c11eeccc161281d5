//go:build !js && linux

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

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The processes that tests start are this binary: its second argument says what each is, its third where the daemon's
// socket is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A home is where browsers are started, empty when the test begins.
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

// processes lists those of browsers, by what the system says: their pids by command line.
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
		// One that it has begun has its line too, until it executes another program.
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
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// A devtools is a client of the browser.
type devtools struct {
	conn *Conn
	tabs chan string   // sessions of tabs
	over chan struct{} // closed when the connection is

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan *cdproto.Message
}

func newDevtools(conn *Conn) *devtools {
	d := &devtools{conn: conn, tabs: make(chan string, 100), over: make(chan struct{}),
		waiting: map[int64]chan *cdproto.Message{}}
	go func() {
		defer close(d.over)
		for d.take() == nil {
		}
	}()
	return d
}

// take takes a message.
func (d *devtools) take() error {
	from, err := d.conn.Next()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	m := new(cdproto.Message)
	if err := jsonv2.Unmarshal(text, m, chromedp.DefaultUnmarshalOptions); err != nil {
		return err
	}
	var e struct{ SessionID string }
	if m.Method == "Target.attachedToTarget" && json.Unmarshal(m.Params, &e) == nil {
		d.tabs <- e.SessionID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.waiting[m.ID]; w != nil {
		w <- m
		delete(d.waiting, m.ID)
	}
	return nil
}

var errOver = errors.New("the connection has ended")

// call runs a command, and gives its result.
func (d *devtools) call(session, method, params string) (json.RawMessage, error) {
	answer := make(chan *cdproto.Message, 1)
	d.mu.Lock()
	d.last++
	m := &cdproto.Message{
		ID: d.last, SessionID: target.SessionID(session), Method: cdproto.MethodType(method), Params: []byte(params),
	}
	d.waiting[m.ID] = answer
	d.mu.Unlock()
	text, err := jsonv2.Marshal(m)
	if err == nil {
		err = d.conn.Write(text)
	}
	if err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, errors.New(m.Error.Message)
		}
		return json.RawMessage(m.Result), nil
	case <-d.over:
		return nil, errOver
	case <-time.After(testkit.Patience):
		return nil, fmt.Errorf("%s is not answered", method)
	}
}

// A tab is one that a devtools is attached to.
type tab struct {
	*devtools
	session string
}

// tab attaches to the tabs, and returns one.
func (d *devtools) tab() (tab, error) {
	if _, err := d.call("", "Target.setAutoAttach", `{"autoAttach":true,"flatten":true,"waitForDebuggerOnStart":false,`+
		`"filter":[{"type":"page"}]}`); err != nil {
		return tab{}, err
	}
	select {
	case session := <-d.tabs:
		return tab{d, session}, nil
	case <-d.over:
		return tab{}, errOver
	}
}

// evaluate returns what an expression gives in the tab, or an error's text.
func (tab tab) evaluate(expression string) string {
	params, _ := json.Marshal(map[string]any{"expression": expression, "returnByValue": true})
	result, err := tab.call(tab.session, "Runtime.evaluate", string(params))
	var r struct {
		Result struct{ Value any }
	}
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(r.Result.Value)
}

const document = "data:text/html,x"

// loaded waits until the tab has a document that stays: a browser answers before its first tab has.
func (tab tab) loaded(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "the document is loaded", func() bool {
		return tab.evaluate("location.href + document.readyState") == document+"complete"
	})
}

// dialed gives the first tab of a browser.
func dialed(t *testing.T, p *Pipe) tab {
	t.Helper()
	d := newDevtools(connect(t, p))
	tab, err := d.tab()
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// A daemon is one that evaluates what a test likes.
type daemon struct {
	*Server
	t        testing.TB
	listener *net.UnixListener
	tabs     chan tab // of each browser that it is attached to
}

func listen(socket string) (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
}

func (h *home) daemon() *daemon {
	h.t.Helper()
	l, err := listen(h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	d := &daemon{t: h.t, listener: l, tabs: make(chan tab, 100)}
	d.Server = NewServer(func(ctx context.Context, p *Pipe, _ bool) {
		conn, err := p.Dial(ctx)
		if err != nil {
			return
		}
		defer conn.Close()
		c := newDevtools(conn)
		if tab, err := c.tab(); err == nil {
			d.tabs <- tab
		}
		select {
		case <-c.over:
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

// retire ends a daemon, so that there may be another one.
func (d *daemon) retire() {
	d.listener.Close()
	d.Close()
}

// holding waits until as many have the browser.
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

// tab is the next one that a daemon is attached to.
func (h *home) tab(d *daemon) tab {
	h.t.Helper()
	return testkit.Receive(h.t, "the daemon is attached to the browser", d.tabs)
}

// holder is a process that asks for the browser, in this one. leave gives it up.
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

// hold serves one daemon after the other.
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
