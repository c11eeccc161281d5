//go:build linux

package launched

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// roleOwner is the argument of the process that TestAKilledProcess kills: it starts a browser, and waits.
const roleOwner = "owner"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == roleOwner {
		if _, err := Start(context.Background(), Options{}); err != nil {
			panic(err)
		}
		fmt.Println("started")
		select {}
	}
	os.Exit(m.Run())
}

// A home has the directories of a test's browsers, which are empty when the test begins.
type home struct {
	t    testing.TB
	temp string
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, temp: testkit.ShortDir(t)}
	t.Setenv("TMPDIR", h.temp)
	t.Cleanup(h.nothingLeft)
	return h
}

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
	further chan string   // sessions of other tabs
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

const attachParams = `{"autoAttach":true,"flatten":true,"waitForDebuggerOnStart":false,"filter":[{"type":"page"}]}`

var errOver = errors.New("the connection has ended")

// attach attaches to the tabs, and returns the first.
func attach(conn *Conn) (*tab, error) {
	t := &tab{conn: conn, answers: make(chan devtoolsMessage, 100), further: make(chan string, 100),
		over: make(chan struct{})}
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
				t.further <- m.Params.SessionID
			} else if m.ID > 0 {
				t.answers <- m
			}
		}
	}()
	if _, err := t.call("Target.setAutoAttach", attachParams); err != nil {
		return nil, err
	}
	select {
	case t.session = <-t.further:
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
