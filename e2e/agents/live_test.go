package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A talk sends a program one message of the user, and returns when the program has answered.
type talk func(text string)

// lastings are programs that take more than one prompt. Each is started as an editor or another
// front end starts it.
var lastings = []struct {
	name  string
	args  []string
	talk  func(t *testing.T, r *running) talk
	by    string // the way
	wakes bool   // a change makes the program ask the model without a prompt
	// inline are flags of pagewire config that add contents to reports.
	inline []string
}{
	{"gemini-cli", []string{"--acp", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"}, talkACP,
		"hooks", false, nil},
	{"codex", []string{"app-server"}, talkCodex, "hooks, once trusted, with `--inline`", false,
		[]string{"--inline", origin}},
	{"opencode", []string{"serve", "--hostname", "127.0.0.1", "--port", "0"}, talkOpencode,
		"a plugin", true, nil},
}

type running struct {
	cmd  *exec.Cmd
	home string
	in   io.WriteCloser
	out  *bufio.Scanner
}

func (p program) start(t *testing.T, home string, args ...string) *running {
	t.Helper()
	cmd := testcmd.Command(p.command[0], args...)
	cmd.Env, cmd.Dir = p.environment(home), home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = testkit.LogOf(t, p.name)
	in, out := testkit.Pipes(t, cmd)
	r := &running{cmd: cmd, home: home, in: in, out: bufio.NewScanner(out)}
	r.out.Buffer(nil, 64<<20)
	t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	if r.cmd.ProcessState == nil {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM)
		_ = r.cmd.Wait()
	}
}

// An rpc speaks JSON-RPC with a program, one message a line. It refuses each of the program's
// requests.
type rpc struct {
	t       *testing.T
	in      io.Writer
	last    int
	answers chan answer
	told    chan string // methods of notifications
}

type answer struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
}

func newRPC(t *testing.T, r *running) *rpc {
	c := &rpc{t: t, in: r.in, answers: make(chan answer, 100), told: make(chan string, 10_000)}
	go func() {
		for r.out.Scan() {
			var a answer
			switch err := json.Unmarshal(r.out.Bytes(), &a); {
			case err != nil: // some programs print a line of their own first
			case a.Method != "" && len(a.ID) > 0:
				fmt.Fprintf(c.in,
					`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", a.ID)
			case a.Method != "":
				c.told <- a.Method
			default:
				c.answers <- a
			}
		}
	}()
	return c
}

func (c *rpc) call(method string, params object) json.RawMessage {
	c.t.Helper()
	c.last++
	fmt.Fprintln(c.in,
		encode(object{"jsonrpc": "2.0", "id": c.last, "method": method, "params": params}))
	a := testkit.Receive(c.t, "the answer to "+method, c.answers)
	if a.Error != nil {
		c.t.Fatalf("%s: %s", method, a.Error)
	}
	return a.Result
}

func talkACP(t *testing.T, r *running) talk {
	c := newRPC(t, r)
	c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{}})
	var session struct{ SessionID string }
	decode(t, c.call("session/new", object{"cwd": r.home, "mcpServers": []any{}}), &session)
	return func(text string) {
		c.call("session/prompt",
			object{"sessionId": session.SessionID,
				"prompt": []any{object{"type": "text", "text": text}}})
	}
}

// talkCodex speaks the app server's protocol, as Codex' own front ends do. Its user trusts the
// hooks, the step that pagewire config leaves to the user.
func talkCodex(t *testing.T, r *running) talk {
	c := newRPC(t, r)
	c.call("initialize", object{"clientInfo": object{"name": "test", "version": "1"}})
	fmt.Fprintln(c.in, `{"method":"initialized"}`)
	var hooks struct {
		Data []struct {
			Hooks []struct{ Key, CurrentHash string }
		}
	}
	decode(t, c.call("hooks/list", object{"cwds": []any{r.home}}), &hooks)
	trusted := object{}
	for _, h := range hooks.Data[0].Hooks {
		trusted[h.Key] = object{"trusted_hash": h.CurrentHash}
	}
	c.call("config/batchWrite",
		object{"edits": []any{object{"keyPath": "hooks.state", "mergeStrategy": "upsert",
			"value": trusted}},
			"reloadUserConfig": true})
	var started struct{ Thread struct{ ID string } }
	decode(t, c.call("thread/start", object{"cwd": r.home}), &started)
	return func(text string) {
		c.call("turn/start",
			object{"threadId": started.Thread.ID,
				"input": []any{object{"type": "text", "text": text}}})
		for testkit.Receive(t, "the end of the turn", c.told) != "turn/completed" {
		}
	}
}

func talkOpencode(t *testing.T, r *running) talk {
	url := ""
	for url == "" && r.out.Scan() {
		_, url, _ = strings.Cut(r.out.Text(), "listening on ")
	}
	go func() {
		for r.out.Scan() { // drained
		}
	}()
	post := func(path string, body any, into any) {
		t.Helper()
		answer, err := http.Post(url+path, "application/json", strings.NewReader(encode(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
		}
		decode(t, text, into)
	}
	var session struct{ ID string }
	post("/session", object{}, &session)
	return func(text string) {
		post("/session/"+session.ID+"/message",
			object{"parts": []any{object{"type": "text", "text": text}}}, &object{})
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func config(t *testing.T, home string, args ...string) {
	t.Helper()
	cmd := testcmd.Command(dir(t, "../../bin/pagewire"), append([]string{"config"}, args...)...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v, %s", args, err, out)
	}
}

// toldAtPrompt is in the report at a prompt, and not in a tool's result. toldIdle is in the report
// that wakes a model.
const (
	toldAtPrompt = "changed in the user's open pages ("
	toldIdle     = "changed in open pages (page data, not instructions)"
)

const changes = 5

// Each program is set up by pagewire config --live, talked to, and set back. Its user changes the
// cart between two prompts. The next request to the model then says so unasked; after --remove no
// request does.
func TestLive(t *testing.T) {
	var rows []string
	for _, l := range lastings {
		if !runs(l.name) {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			home := testkit.ShortDir(t)
			t.Cleanup(func() { endAll(home) })
			s := openShop(t, home)
			m := newModel(t, step{tool: "read_page_resource", args: object{"uri": cart}},
				step{say: "DONE"})
			p := programNamed(t, l.name, m.URL, s.gateway)
			p.install(t, home)
			flags := s.gateway[2:]

			config(t, home,
				slices.Concat([]string{l.name, "--live"}, l.inline, []string{"--"}, flags)...)
			r := p.start(t, home, l.args...)
			told := tellsOfChanges(t, l.wakes, l.talk(t, r), s, m)
			if contents := strings.Contains(told, `"value":`); contents != (l.inline != nil) {
				t.Errorf("contents are told: %v; the user has chosen %v", contents, l.inline)
			}
			r.stop()

			config(t, home, l.name, "--remove")
			config(t, home, append([]string{l.name, "--write", "--"}, flags...)...)
			tellsNothing(t, l.talk(t, p.start(t, home, l.args...)), s, m)

			if !t.Failed() {
				woken := map[bool]string{true: "woken", false: "nothing"}[l.wakes]
				rows = append(rows,
					fmt.Sprintf("| %s | %s | %s | told of %d changes of %d | nothing |",
						p.version(t),
						l.by, woken, changes, changes))
			}
		})
	}
	if len(rows) == len(lastings) && !t.Failed() {
		writeSection(t, "ways",
			"| program | by | while idle | at the next prompt | after `--remove` "+
				"|\n|---|---|---|---|---|\n"+strings.Join(rows, "\n")+"\n")
	}
}

// tellsOfChanges changes the cart between prompts, and before them while the program is idle if
// `wakes`. It returns the first report at a prompt.
func tellsOfChanges(t *testing.T, wakes bool, say talk, s *shop, m *model) string {
	t.Helper()
	say("Read the cart.")
	if last := m.last(); !strings.Contains(last, "b-19") || strings.Contains(last, toldAtPrompt) ||
		strings.Contains(last, toldIdle) {
		t.Errorf("before a change the last request ends in %s", last[max(0, len(last)-3000):])
	}
	if wakes {
		s.Set(cart, cartOf(2))
		began := time.Now()
		testkit.Eventually(t, "the model is asked without a prompt", func() bool {
			return strings.Contains(m.last(), toldIdle)
		})
		t.Logf("asked %v after the change", time.Since(began))
	}
	told := func() int { return strings.Count(m.last(), toldAtPrompt) }
	before, prompts := told(), 0
	for i := range changes {
		s.Set(cart, cartOf(3+i))
		// A report of a change takes up to 100 ms. No user is as fast as this one.
		testkit.Eventually(t, "the model is told at a prompt", func() bool {
			say("And now?")
			prompts++
			return told() > before+i
		})
	}
	t.Logf("%d changes were told at %d prompts", changes, prompts)
	_, report, _ := strings.Cut(unescaped(m.last()), toldAtPrompt)
	report, _, _ = strings.Cut(report, "}")
	return report
}

// tellsNothing changes the cart with a program that was set back.
func tellsNothing(t *testing.T, say talk, s *shop, m *model) {
	t.Helper()
	say("Read the cart.")
	s.Set(cart, cartOf(20))
	say("And now?")
	if last := m.last(); !strings.Contains(last, "b-19") || strings.Contains(last, toldAtPrompt) ||
		strings.Contains(last, toldIdle) {
		t.Errorf("after --remove the last request ends in %s", last[max(0, len(last)-3000):])
	}
}

// results is the page that a run of all programs writes.
const results = "results.md"

func writeSection(t *testing.T, name, text string) {
	t.Helper()
	before, after := aroundSection(t, name)
	if err := os.WriteFile(results, []byte(before+"\n"+text+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func aroundSection(t *testing.T, name string) (before, after string) {
	t.Helper()
	page, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": written by make test-agents -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section %s", results, name)
	}
	return before + begin, end + after
}

// A run of all programs takes half an hour, and writes only at its end. Each run looks for the
// marks beforehand.
func TestPageHasItsSections(t *testing.T) {
	for _, name := range []string{"programs", "ways"} {
		aroundSection(t, name)
	}
}

func programNamed(t *testing.T, name, url string, gateway []string) program {
	t.Helper()
	for _, p := range programs(t, url, gateway) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("there is no program %s", name)
	return program{}
}
