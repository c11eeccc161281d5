//go:build !js && linux

package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// The keepers that tests start are this binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "keeper" {
		os.Exit(Main(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

const hub = "127.0.0.1:7433"

// A home is what one user's gateways share, empty when the test begins.
type home struct {
	t      testing.TB
	dir    *userdir.Dir
	config string
	temp   string
	log    *testkit.Log
}

func newHome(t testing.TB) *home {
	t.Helper()
	h := &home{t: t, config: testkit.Home(t), temp: testkit.ShortDir(t), log: testkit.LogOf(t, "the gateway")}
	t.Setenv("TMPDIR", h.temp)
	// A keeper has no standard error to say there what -race finds; and it is not to take a second to end.
	races := filepath.Join(h.config, "race")
	t.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+races)
	t.Cleanup(func() {
		found, _ := filepath.Glob(races + "*")
		for _, file := range found {
			text, _ := os.ReadFile(file)
			t.Errorf("a data race in a keeper: %s", text)
		}
	})
	var err error
	if h.dir, err = userdir.Open(hub, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.dir.Close() })
	return h
}

func (h *home) options() Options {
	return Options{Hub: hub, Log: slog.New(slog.NewTextHandler(h.log, nil))}
}

// launch launches a browser, which ends with the test.
func (h *home) launch(o Options) *Hold {
	h.t.Helper()
	hold, launched, err := Launch(h.t.Context(), h.dir, o)
	if err != nil || !launched {
		h.t.Fatalf("launched %v, %v", launched, err)
	}
	h.t.Cleanup(func() { leaves(h.t, hold); h.nothingLeft() })
	return hold
}

// leaves gives a hold up, and waits until the keeper has heard it.
func leaves(t testing.TB, hold *Hold) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if hold.Leave(ctx); ctx.Err() != nil {
		t.Error("the keeper does not hear that a gateway leaves")
	}
}

// processes lists those of the browser, and its keeper, by what the system says: their pids by command line.
func (h *home) processes() map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		line := strings.ReplaceAll(string(text), "\x00", " ")
		keeper := strings.HasSuffix(line, " keeper ") && strings.HasPrefix(line, os.Args[0]) && h.mine(pid)
		if !keeper && !strings.Contains(line, "--user-data-dir="+h.temp) {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			all[pid] = line
		}
	}
	return all
}

func (h *home) mine(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return strings.Contains(string(text), "TMPDIR="+h.temp)
}

// pid is that of the one process of which of says so. One that such a process has begun has its line too, until it
// executes another program, and is not meant.
func (h *home) pid(of func(line string) bool) int {
	h.t.Helper()
	all := h.processes()
	for pid, line := range all {
		if of(line) && !of(all[parent(pid)]) {
			return pid
		}
	}
	h.t.Fatalf("there is no such process among %v", all)
	return 0
}

// parent is the process that has begun another; 0 if that one has gone.
func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, behind, _ := strings.Cut(string(text), ") ") // PID (NAME) STATE PPID …
	fields := strings.Fields(behind)
	if len(fields) < 2 {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

func (h *home) keeper() int {
	return h.pid(func(line string) bool { return strings.HasSuffix(line, " keeper ") })
}

func (h *home) browser() int {
	return h.pid(func(line string) bool {
		return strings.Contains(line, "--remote-debugging-pipe") && !strings.Contains(line, "--type=")
	})
}

func (h *home) profiles() []string {
	list, _ := filepath.Glob(filepath.Join(h.temp, profilePrefix+"*"))
	return list
}

// nothingLeft waits until there is no process, no profile, no socket and no lock.
func (h *home) nothingLeft() {
	h.t.Helper()
	testkit.Eventually(h.t, "no process is left", func() bool { return len(h.processes()) == 0 })
	if left := h.profiles(); len(left) > 0 {
		h.t.Errorf("profiles left: %v", left)
	}
	if left, err := h.dir.Names(); err != nil || len(left) > 0 {
		h.t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func kill(t testing.TB, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// A conn is a Conn, or what chromedp has for that.
type conn interface {
	Next() (io.Reader, error)
	Write(message []byte) error
	Close() error
}

// A devtools is a client, and what it was told.
type devtools struct {
	t      testing.TB
	conn   conn
	last   int64
	events []*cdproto.Message
}

func dialed(t testing.TB, hold *Hold) *devtools {
	t.Helper()
	conn, err := hold.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &devtools{t: t, conn: conn}
}

func (d *devtools) send(session, method, params string) int64 {
	d.t.Helper()
	d.last++
	if params == "" {
		params = "{}"
	}
	m := &cdproto.Message{
		ID: d.last, SessionID: target.SessionID(session), Method: cdproto.MethodType(method), Params: []byte(params),
	}
	text, err := jsonv2.Marshal(m)
	if err == nil {
		err = d.conn.Write(text)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return d.last
}

// answer returns the answer to a message, and keeps the events that come before.
func (d *devtools) answer(id int64) (json.RawMessage, error) {
	d.t.Helper()
	for {
		m := new(cdproto.Message)
		from, err := d.conn.Next()
		if err != nil {
			d.t.Fatal(err)
		}
		text, err := io.ReadAll(from)
		if err == nil {
			err = jsonv2.Unmarshal(text, m, chromedp.DefaultUnmarshalOptions)
		}
		if err != nil {
			d.t.Fatal(err)
		}
		switch {
		case m.ID == 0:
			d.events = append(d.events, m)
		case m.ID != id:
			d.t.Fatalf("an answer to %d, and not to %d: %+v", m.ID, id, m)
		case m.Error != nil:
			return nil, errors.New(m.Error.Message)
		default:
			return json.RawMessage(m.Result), nil
		}
	}
}

func (d *devtools) try(session, method, params string) (json.RawMessage, error) {
	d.t.Helper()
	return d.answer(d.send(session, method, params))
}

func (d *devtools) call(session, method, params string) json.RawMessage {
	d.t.Helper()
	result, err := d.try(session, method, params)
	if err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// page attaches to the tabs, and returns the session of the first.
func (d *devtools) page(params string) string {
	d.t.Helper()
	const all = `"autoAttach":true,"flatten":true,"filter":[{"type":"page"},{"type":"iframe"}],`
	d.call("", "Target.setAutoAttach", `{`+all+params+`}`)
	var session string
	testkit.Eventually(d.t, "a tab is attached to", func() bool {
		for _, m := range d.events {
			if m.Method == "Target.attachedToTarget" && session == "" {
				session = sessionIn([]byte(`{"params":` + string(m.Params) + "}\x00"))
			}
		}
		if session == "" {
			d.call("", "Browser.getVersion", "")
		}
		return session != ""
	})
	return session
}

// evaluate returns what an expression gives in a page.
func (d *devtools) evaluate(session, expression string) string {
	d.t.Helper()
	params, _ := json.Marshal(map[string]any{"expression": expression, "returnByValue": true})
	var r struct {
		Result struct{ Value any }
	}
	if err := json.Unmarshal(d.call(session, "Runtime.evaluate", string(params)), &r); err != nil {
		d.t.Fatal(err)
	}
	return fmt.Sprint(r.Result.Value)
}

// count returns how many events of a method have come.
func (d *devtools) count(method string) (n int) {
	for _, m := range d.events {
		if string(m.Method) == method {
			n++
		}
	}
	return n
}
