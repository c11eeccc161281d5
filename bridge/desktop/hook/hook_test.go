package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
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

// family looks up processes, each "name parent". A + after the name marks the leader of a terminal's session.
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

// Process 900 is the hook, 100 its agent. 300, 301 and 302 are `pagewire serve`.
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
			find := family(c.members)
			s := starterOf(900, find)
			if s.pid != c.starter {
				t.Errorf("%d has started it, want %d", s.pid, c.starter)
			}
			if got := s.among([]int{301, 300, 302}, find); !slices.Equal(got, c.want) {
				t.Errorf("its serves are %v, want %v", got, c.want)
			}
		})
	}
}

// Read uses the known members of a hook's input, and refuses input without a JSON object.
func TestRead(t *testing.T) {
	for text, want := range map[string]Input{
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"hello"}` + "\n": {"s", "UserPromptSubmit", ""},
		`{"sessionId":"s","timestamp":1}`:                                                 {"s", "", ""},
		`{"sessionId":"s","source":"resume"}`:                                             {"s", "", "resume"},
		"\ufeff" + `{"session_id":"s"}`:                                                   {"s", "", ""},
		`{}`:                                                                              {},
		`{"session_id":"s"} and more`:                                                     {"s", "", ""},
	} {
		if got, err := Read(t.Context(), strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "\ufeff", "\ufeff\ufeff{}", "{", "null", "[]", "7", `"s"`, "hello", `{"session_id":7}`,
		`{"session_id":"s"`, "\x00", `{"session_id":"` + strings.Repeat("s", maxSession+1) + `"}`} {
		if got, err := Read(t.Context(), strings.NewReader(text)); !errors.Is(err, ErrInput) {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
	// An input that is too long is still read to its end.
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
	// Read does not wait for the end of an input that is left open. Without input it returns when ctx ends.
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
	for text, want := range map[string]int{"": 400, "{": 400, "7": 400, "[]": 400, `{"session":7}`: 400,
		`{"pid":"1"}`: 400, `{"session":"s","uris":7}`: 400,
		`{"session":"` + strings.Repeat("s", maxAsk) + `"}`: 400,
		`{"pid":7}`: 503, `{"pid":7,"changed":[]}`: 503} { // the agent has ended
		w := httptest.NewRecorder()
		new(Agents).Handler(g).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(text)))
		if w.Code != want {
			t.Errorf("%.60s: %d %s", text, w.Code, w.Body)
		}
	}
}

// daemonAt returns a client whose requests go to the connections of dial.
func daemonAt(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// serve answers hooks as the daemon does, and returns a client for it.
func serve(t *testing.T, g *gateway.Gateway) (*Agents, *http.Client) {
	t.Helper()
	var a Agents
	s := httptest.NewServer(a.Handler(g))
	t.Cleanup(s.Close)
	return &a, daemonAt(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	})
}

// A hook whose agent is not found has a record for each conversation.
func TestByConversation(t *testing.T) {
	g, p := newGateway(t)
	_, daemon := serve(t, g)
	ask := func(session string) (string, error) {
		return Changes(t.Context(), daemon, calls.Ask{Session: session, Inline: []string{app}})
	}
	if text, err := ask("s"); text != "" || err != nil { // whose scope is not known
		t.Errorf("without an agent: %q, %v", text, err)
	}
	testkit.Must(g.Connect("test"))(t)
	if text, err := ask("s"); !strings.Contains(text, `"now":"one"`) || err != nil {
		t.Errorf("at first: %q, %v", text, err)
	}
	testkit.Eventually(t, "the page is watched", func() bool { return p.Watches(cart) })
	p.Set(cart, "two")
	testkit.Eventually(t, "the change is told", func() bool {
		text, err := ask("s")
		return err == nil && strings.Contains(text, `"now":"two"`)
	})
	for session, begins := range map[string]bool{"s": false, "another": true} {
		if text, err := ask(session); strings.Contains(text, "] open in the user's browser") != begins || err != nil {
			t.Errorf("%s: %q, %v", session, text, err)
		}
	}
	if _, err := Unknown(t.Context(), daemon, []string{cart}); !errors.Is(err, ErrNoAgent) {
		t.Errorf("what wakes an agent that is not found: %v", err)
	}
	none := errors.New("none")
	nowhere := daemonAt(func(context.Context, string, string) (net.Conn, error) { return nil, none })
	if _, err := Changes(t.Context(), nowhere, calls.Ask{}); !errors.Is(err, none) {
		t.Errorf("without a daemon: %v", err)
	}
}

// TestWhoseHookItIs tests the choice of the process.
func TestByProcess(t *testing.T) {
	g, p := newGateway(t)
	a, daemon := serve(t, g)
	add := func(pid int) (remove func()) {
		t.Helper()
		agent, err := g.Connect("test")
		if err != nil {
			t.Fatal(err)
		}
		return a.Add(pid, agent)
	}
	ask := func(q question) told {
		t.Helper()
		answer, err := post(t.Context(), q, daemon)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
		return answer
	}
	remove := add(8)
	defer add(7)()
	if got := ask(question{}).PIDs; !slices.Equal(got, []int{7, 8}) {
		t.Errorf("the agents' processes are %v", got)
	}
	changes := question{PID: 8, Ask: calls.Ask{Session: "s", Inline: []string{app}}}
	if got := ask(changes).Text; !strings.Contains(got, `"now":"one"`) {
		t.Errorf("at first it is told %q", got)
	}
	testkit.Eventually(t, "the page is watched", func() bool { return p.Watches(cart) })
	p.Set(cart, "two")
	testkit.Eventually(t, "the change is told", func() bool {
		return strings.Contains(ask(changes).Text, `"now":"two"`)
	})
	unknown := question{PID: 8, Changed: []string{cart}}
	if got := ask(unknown).URIs; len(got) > 0 {
		t.Errorf("what it was told of is news to it: %v", got)
	}
	p.Set(cart, "three")
	testkit.Eventually(t, "the next change is news", func() bool { return len(ask(unknown).URIs) == 1 })
	// The next session of the same process begins before the last one is over.
	next := add(8)
	remove()
	if got := ask(question{}).PIDs; !slices.Equal(got, []int{7, 8}) {
		t.Errorf("then the agents' processes are %v", got)
	}
	next()
	if got := ask(question{}).PIDs; !slices.Equal(got, []int{7}) {
		t.Errorf("afterwards they are %v", got)
	}
}

func TestThisProcess(t *testing.T) {
	p, ok := processOf(os.Getpid())
	if !ok || p.pid != os.Getpid() || p.parent != os.Getppid() || p.name == "" || p.began == 0 ||
		p.began == math.MaxUint64 {
		t.Fatalf("this process is %+v, %v", p, ok)
	}
	if _, ok := processOf(1 << 30); ok {
		t.Error("a process that there is not is known")
	}
	up := ancestors(os.Getpid(), processOf)
	if len(up) == 0 || up[0].pid != os.Getppid() {
		t.Errorf("its ancestors are %v", up)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"session_id":"a","hook_event_name":"Stop","source":"resume"} x`)
	f.Add(`{"sessionId":1}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := Read(t.Context(), strings.NewReader(text))
		if err != nil && err != ErrInput || err == nil && len(in.Session) > maxSession {
			t.Errorf("%q is %+v, %v", text, in, err)
		}
	})
}
