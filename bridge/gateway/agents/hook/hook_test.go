//go:build !js

package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const (
	app  = "https://app.example"
	cart = app + "/cart"
)

// newGateway returns a gateway with one page, which has a cart.
func newGateway(t *testing.T) (*gateway.Gateway, *testkit.Page) {
	t.Helper()
	g := gateway.New(gateway.Options{})
	t.Cleanup(g.Close)
	p := testkit.NewPage(t, nil)
	p.Attach(func(send func([]byte)) (testkit.Receiver, error) {
		return g.Attach(gateway.PageInfo{Tab: "a", Origin: app, URL: app + "/", Transport: "test"}, send)
	})
	p.Offer(cart, "one")
	testkit.Eventually(t, "the cart is listed", func() bool { return len(g.Snapshot().Resources) == 1 })
	return g, p
}

// A family of processes, by name and parent; who has a + behind the name leads a terminal's session.
func family(members map[int]string) func(int) (process, bool) {
	return func(pid int) (process, bool) {
		var p process
		if _, err := fmt.Sscanf(members[pid], "%s %d", &p.name, &p.parent); err != nil {
			return p, false
		}
		p.pid, p.began = pid, uint64(pid)
		p.name, p.terminal = strings.CutSuffix(p.name, "+")
		return p, true
	}
}

// The hook is 900 and its agent 100; the serves are 300, 301 and so on.
func TestWhoseHookItIs(t *testing.T) {
	for name, c := range map[string]struct {
		members map[int]string
		want    []int
		starter int
	}{
		"directly": {map[int]string{50: "bash+ 1", 100: "claude 50", 300: "pagewire 100",
			900: "pagewire 100"}, []int{300}, 100},
		"by a shell": {map[int]string{50: "bash+ 1", 100: "codex 50", 300: "pagewire 100",
			800: "sh 100", 900: "pagewire 800"}, []int{300}, 100},
		"by npx, and by two shells": {map[int]string{50: "zsh+ 1", 100: "node 50", 200: "npm 100", 201: "sh 200",
			202: "node 201", 300: "pagewire 202", 800: "sh 100", 801: "bash 800", 900: "pagewire 801"}, []int{300},
			100},
		"two in one terminal": {map[int]string{50: "bash+ 1", 100: "claude 50", 101: "codex 50",
			300: "pagewire 101", 301: "pagewire 100", 900: "pagewire 100"}, []int{301}, 100},
		"beside one, and has none": {map[int]string{50: "bash+ 1", 100: "claude 50", 101: "codex 50",
			300: "pagewire 101", 800: "sh 100", 900: "pagewire 800"}, nil, 100},
		"in a terminal of its own": {map[int]string{40: "tmux 1", 100: "claude+ 40", 101: "codex+ 40",
			300: "pagewire 101", 301: "pagewire 100", 900: "pagewire 100"}, []int{301}, 100},
		"of an agent of an agent": {map[int]string{90: "claude 1", 100: "claude 90", 300: "pagewire 90",
			301: "pagewire 100", 900: "pagewire 100"}, []int{301}, 100},
		"of who has started an agent": {map[int]string{100: "claude 1", 110: "sh 100", 111: "claude 110",
			300: "pagewire 100", 301: "pagewire 111", 900: "pagewire 100"}, []int{300}, 100},
		"two serves of one agent": {map[int]string{100: "claude 1", 300: "pagewire 100", 301: "pagewire 100",
			900: "pagewire 100"}, []int{300, 301}, 100},
		"typed beside an agent": {map[int]string{40: "tmux 1", 50: "bash+ 40", 51: "bash+ 40",
			100: "claude 51", 300: "pagewire 100", 900: "pagewire 50"}, nil, 50},
		"typed into the agent's shell": {map[int]string{40: "tmux 1", 50: "bash+ 40", 100: "claude 50",
			300: "pagewire 100", 900: "pagewire 50"}, nil, 50},
		"of a window": {map[int]string{100: "claude 1", 300: "pagewire 100", 800: "zsh 100",
			900: "pagewire 800"}, []int{300}, 100},
		"without a trace": {map[int]string{}, nil, 0},
		"a number that is another's now": {map[int]string{950: "claude 1", 300: "pagewire 950", 900: "pagewire 950"},
			nil, 0},
		"a circle": {map[int]string{800: "sh 801", 801: "sh 800", 300: "pagewire 801",
			900: "pagewire 801"}, nil, 800},
	} {
		t.Run(name, func(t *testing.T) {
			look := family(c.members)
			s := starterOf(900, look)
			if s.pid != c.starter {
				t.Errorf("%d has started it, want %d", s.pid, c.starter)
			}
			if got := s.among([]int{301, 300, 302}, look); !slices.Equal(got, c.want) {
				t.Errorf("its serves are %v, want %v", got, c.want)
			}
		})
	}
}

// A program is given what it is given: a hook reads what it can use of that, and takes nothing else for it.
func TestRead(t *testing.T) {
	for text, want := range map[string]Input{
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hello"}` + "\n": {"s", "UserPromptSubmit"},
		`{"sessionId":"s","timestamp":1}`:                                                 {"s", ""},
		`{}`:                                                                              {},
		`{"session_id":"s"} and more`:                                                     {"s", ""},
	} {
		if got, err := Read(t.Context(), strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "{", "null", "[]", "7", `"s"`, "hello", `{"session_id":7}`,
		`{"session_id":"s"`, "\x00", `{"session_id":"` + strings.Repeat("s", maxSession+1) + `"}`} {
		if got, err := Read(t.Context(), strings.NewReader(text)); !errors.Is(err, ErrInput) {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
	// What is too long is read to its end all the same.
	from, to := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		_, err := io.Copy(to, io.MultiReader(strings.NewReader(`{"prompt":"`),
			strings.NewReader(strings.Repeat("x", 2*maxInput)), strings.NewReader(`"}`)))
		wrote <- err
		to.Close()
	}()
	if _, err := Read(t.Context(), from); !errors.Is(err, ErrInput) {
		t.Errorf("a long one: %v", err)
	}
	if err := testkit.Receive(t, "it is written", wrote); err != nil {
		t.Errorf("who writes is told: %v", err)
	}
	// One that is left open is read, and one in which nothing comes is given up.
	from, to = io.Pipe()
	defer to.Close()
	go io.WriteString(to, `{"session_id":"s"}`)
	if got, err := Read(t.Context(), from); got.Session != "s" || err != nil {
		t.Errorf("one that is left open: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, from); !errors.Is(err, context.Canceled) {
		t.Errorf("one that says nothing: %v", err)
	}
}

func TestHandlerRefusesWhatIsNoQuestion(t *testing.T) {
	g, _ := newGateway(t)
	for _, text := range []string{"", "{", "7", "[]", `{}`, `{"forget":true}`, `{"session":7}`,
		`{"session":"s","uris":7}`, `{"session":"` + strings.Repeat("s", maxAsk) + `"}`} {
		w := httptest.NewRecorder()
		Handler(g).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(text)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%.60s: %d %s", text, w.Code, w.Body)
		}
	}
}

// home gives the test a directory of its own, in which a hub may run.
func home(t *testing.T) (addr string, dir *userdir.Dir) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", testkit.ShortDir(t))
	addr = testkit.Addr(t)
	dir, err := userdir.Open(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return addr, dir
}

// Of who is not found among the processes the hub keeps a record for each conversation.
func TestByConversation(t *testing.T) {
	addr, _ := home(t)
	ask := func(session string) (string, error) {
		return Changes(t.Context(), addr, gateway.Ask{Session: session, Inline: []string{app}})
	}
	if text, err := ask("s"); text != "" || !errors.Is(err, hub.ErrNoHub) {
		t.Errorf("without a hub: %q, %v", text, err)
	}
	g, p := newGateway(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	local := http.NewServeMux()
	local.Handle("POST "+Path, Handler(g))
	go func() { over <- hub.Run(ctx, hub.Options{Addr: addr, Gateway: g, Local: local}) }()
	defer func() {
		cancel()
		testkit.Receive(t, "the hub ends", over)
	}()
	testkit.Eventually(t, "it is asked", func() bool {
		_, err := ask("s")
		return err == nil
	})
	testkit.Eventually(t, "the page is watched", func() bool { return p.Watches(cart) })
	p.Set(cart, "two")
	testkit.Eventually(t, "the change is told", func() bool {
		text, err := ask("s")
		return err == nil && strings.Contains(text, `"now":"two"`)
	})
	for _, session := range []string{"s", "another"} {
		if text, err := ask(session); text != "" || err != nil {
			t.Errorf("%s: %q, %v", session, text, err)
		}
	}
}

// Process ids above what systems give.
const dead, deadLock, alive = 1<<22 + 1, 1<<22 + 2, 1<<22 + 3

// leave has in the directory what a serve leaves that was killed (the socket and a lock, or a lock alone), the socket
// of another one that lives, and a file that is none of ours; path is that of the first.
func leave(t *testing.T, dir *userdir.Dir) (path, foreign string) {
	t.Helper()
	l, err := dir.Listen(socketOf(dead))
	if err != nil {
		t.Fatal(err)
	}
	path = l.Addr().String()
	l.Close()
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	left.Close()
	lock, err := dir.TryLock(socketOf(deadLock) + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
	other, err := dir.Listen(socketOf(alive))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Remove() })
	foreign = filepath.Join(filepath.Dir(path), "agent-7")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, foreign
}

// A socket goes with its serve. One of a serve that was killed is removed by the next, and what is none stays.
func TestSockets(t *testing.T) {
	addr, dir := home(t)
	g, _ := newGateway(t)
	path, foreign := leave(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { Serve(ctx, addr, g, slog.New(slog.DiscardHandler)) })
	names := func() []string {
		list, err := dir.Names()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(list)
		return list
	}
	want := func(pids ...int) (list []string) {
		for _, pid := range pids {
			list = append(list, socketOf(pid), socketOf(pid)+".lock")
		}
		slices.Sort(list)
		return list
	}
	testkit.Eventually(t, "its socket and that of the living are there", func() bool {
		return slices.Equal(names(), want(os.Getpid(), alive))
	})
	info, err := os.Stat(strings.Replace(path, socketOf(dead), socketOf(os.Getpid()), 1))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its socket: %v, %v", info, err)
	}
	text, err := post(t.Context(), question{Ask: gateway.Ask{Session: "s"}},
		func(ctx context.Context) (net.Conn, error) { return dir.Dial(ctx, socketOf(os.Getpid())) })
	if text.Text != "" || err != nil {
		t.Errorf("asked there: %+v, %v", text, err)
	}
	cancel()
	serving.Wait()
	if got := names(); !slices.Equal(got, want(alive)) {
		t.Errorf("afterwards there are %v", got)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("another's file is gone: %v", err)
	}
}

func TestThisProcess(t *testing.T) {
	p, ok := look(os.Getpid())
	if !ok || p.pid != os.Getpid() || p.parent != os.Getppid() || p.name == "" || p.began == 0 ||
		p.began == math.MaxUint64 {
		t.Fatalf("this process is %+v, %v", p, ok)
	}
	if _, ok := look(1 << 30); ok {
		t.Error("a process that there is not is known")
	}
	up := ancestors(os.Getpid(), look)
	if len(up) == 0 || up[0].pid != os.Getppid() {
		t.Errorf("its ancestors are %v", up)
	}
}
