package main

// These tests run pagewire changes as programs do. Processes of this binary are the agent, serve and the hook.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// playEnv names the part that a process of this binary plays instead of the tests: "command" or "agent".
const playEnv = "PAGEWIRE_TEST_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(playEnv) {
	case "command":
		os.Exit(pagewire(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case "agent":
		if err := playAgent(os.Args[1], os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process returns a command for a process of this binary that plays a part.
func process(part string, args ...string) *exec.Cmd {
	cmd := testcmd.Command(os.Args[0], args...)
	// Without atexit_sleep_ms it takes a second to end under -race.
	cmd.Env = append(os.Environ(), playEnv+"="+part, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

// An order makes an agent program run a hook, or send a message to its server and wait for the answer.
type order struct {
	Hook  []string
	Stdin string
	Send  string
	Wake  []string // start pagewire watch
	Line  bool     // wait for a line of the watch
}

// A report is the result of an order.
type report struct {
	Out    string
	Status int
	Error  string
}

// playAgent is an agent program: it starts pagewire serve, and takes one order on each line. Unless wrap is "", the
// server's process is a shell's child.
func playAgent(wrap string, args []string, in io.Reader, out io.Writer) error {
	server := process("command", append([]string{"serve"}, args...)...)
	if wrap != "" {
		server.Args = append([]string{"sh", "-c", `"$0" "$@"; exit $?`, server.Path}, server.Args[1:]...)
		server.Path = "/bin/sh"
	}
	to, err := server.StdinPipe()
	if err != nil {
		return err
	}
	from, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	answers := bufio.NewReader(from)
	orders := bufio.NewReader(in)
	var woken *bufio.Reader
	for {
		text, err := orders.ReadBytes('\n')
		if err != nil {
			to.Close()
			return server.Wait()
		}
		var o order
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		var r report
		switch {
		case o.Hook != nil:
			r = runHook(o)
		case o.Wake != nil:
			woken, err = wake(o.Wake)
		case o.Line:
			r.Out, err = woken.ReadString('\n')
		default:
			if _, err = io.WriteString(to, o.Send+"\n"); err == nil {
				r.Out, err = answers.ReadString('\n')
			}
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err := json.NewEncoder(out).Encode(r); err != nil {
			return err
		}
	}
}

// runHook runs a hook by a shell, as programs do.
func runHook(o order) (r report) {
	hook := process("command", append([]string{"changes"}, o.Hook...)...)
	hook.Args = append([]string{"sh", "-c", `"$0" "$@"; exit $?`, hook.Path}, hook.Args[1:]...)
	hook.Path = "/bin/sh"
	hook.Stdin = strings.NewReader(o.Stdin)
	out, err := hook.Output()
	r.Out = string(out)
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		r.Status = ended.ExitCode()
	} else if err != nil {
		r.Error = err.Error()
	}
	return r
}

// A program is a running agent program.
type program struct {
	t    testing.TB
	addr string
	in   io.Writer
	out  *bufio.Reader
}

func (r *running) program(wrap string) *program {
	r.t.Helper()
	cmd := process("agent", wrap, "--hub", r.addr, "--log-level", "error")
	in := testkit.Must(cmd.StdinPipe())(r.t)
	out := testkit.Must(cmd.StdoutPipe())(r.t)
	testkit.OK(r.t, cmd.Start())
	r.t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			r.t.Errorf("the agent: %v", err)
		}
	})
	p := &program{r.t, r.addr, in, bufio.NewReader(out)}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}`)
	return p
}

func (p *program) do(o order) (r report) {
	p.t.Helper()
	testkit.OK(p.t, json.NewEncoder(p.in).Encode(o))
	text, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Error != "" {
		p.t.Fatalf("%+v: %v %s", o, err, r.Error)
	}
	return r
}

func (p *program) send(message string) string { return p.do(order{Send: message}).Out }

// hook runs a hook of Claude Code at a prompt. All programs give their conversation the same name.
func (p *program) hook(args ...string) string {
	p.t.Helper()
	r := p.do(order{Hook: append([]string{"--hub", p.addr, "--hook", "claude-code"}, args...),
		Stdin: `{"session_id":"same","hook_event_name":"UserPromptSubmit","prompt":"hello"}`})
	if r.Status != 0 {
		p.t.Fatalf("a hook ends with %d, and says %q", r.Status, r.Out)
	}
	return r.Out
}

// told returns the output of a hook at the first prompt after a change. Each attempt makes another change, since a hook
// on a busy machine may run out of time and print nothing.
func (p *program) told(change func(i int), args ...string) (text string) {
	p.t.Helper()
	i := 0
	testkit.Eventually(p.t, "the hook tells of the change", func() bool {
		i++
		change(i)
		text = p.hook(args...)
		return text != ""
	})
	return text
}

// Two agents in one directory, one of them with a wrapped server, have separate records. No change is told twice.
func TestHooksOfTwoAgents(t *testing.T) {
	r := start(t, "", "one")
	a, b := r.program(""), r.program("wrapped")
	testkit.Eventually(t, "both have records of their own", func() bool {
		for _, p := range []*program{a, b} {
			if !strings.Contains(p.send(`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`), cart) {
				return false
			}
		}
		return true
	})
	const call = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"page_changes","arguments":{}}}`
	for _, p := range []*program{a, b} {
		if answer := p.send(call); !strings.Contains(answer, `"text":"{}"`) {
			t.Errorf("what is there is told: %s", answer)
		}
		if text := p.hook(); !strings.Contains(text, "] open in the user's browser as this conversation begins") ||
			!strings.Contains(text, cart) {
			t.Errorf("at the first prompt it is told %s", text)
		}
		if text := p.hook(); text != "" {
			t.Errorf("what is there is told again: %s", text)
		}
	}
	testkit.Eventually(t, "the page is watched", func() bool { return r.page.Watches(cart) })
	change := func(i int) { r.set(fmt.Sprintf("secret %d", i)) }
	var said struct {
		Output struct {
			Event string `json:"hookEventName"`
			Text  string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	text := a.told(change)
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.Output.Event != "UserPromptSubmit" ||
		!strings.Contains(said.Output.Text, cart) || strings.Contains(text, "secret") {
		t.Errorf("told %s, %v", text, err)
	}
	if text := a.hook(); text != "" {
		t.Errorf("told twice: %s", text)
	}
	if answer := b.send(call); !strings.Contains(answer, cart) {
		t.Errorf("the other is told %s", answer)
	}
	if text := b.told(change, "--inline", "https://shop.example"); !strings.Contains(text, "secret") {
		t.Errorf("contents are asked for, and it is told %s", text)
	}
	// The agent's tool and its reminders use the same record.
	a.told(change)
	if answer := a.send(call); !strings.Contains(answer, `"text":"{}"`) {
		t.Errorf("page_changes repeats it: %s", answer)
	}
	b.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_page_resource","arguments":{"uri":"` +
		cart + `"}}}`)
	if text := b.hook(); text != "" {
		t.Errorf("what it has read is told: %s", text)
	}
	if out := b.do(order{Hook: []string{"--hub", r.addr, "--forget"},
		Stdin: `{"session_id":"same","hook_event_name":"PreCompact"}`}); out.Out != "" || out.Status != 0 {
		t.Errorf("--forget: %+v", out)
	}
	if text := b.hook(); text != "" {
		t.Errorf("it has forgotten, and is told %s", text)
	}
}

// A hook ends with 0, and prints no text that its program does not take.
func TestAHookIsNeverInTheWay(t *testing.T) {
	testkit.Home(t)
	addr := testkit.Addr(t)
	as := func(in string, args ...string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		status = pagewire(t.Context(), append([]string{"changes"}, args...), strings.NewReader(in), &out, &errs)
		return status, out.String(), errs.String()
	}
	for _, with := range []string{"without a daemon", "with one"} {
		if with == "with one" {
			r := start(t, "", "one")
			addr = r.addr
			testkit.Must(r.g.Connect("test"))(t)
			if _, out, _ := as(`{"session_id":"s"}`, "--hook", "codex", "--hub", addr); !strings.Contains(out, cart) {
				t.Errorf("the first hook of a conversation says %q", out)
			}
		}
		for _, in := range []string{"no JSON", `{"session_id":"s"}`} {
			for _, args := range []string{"--hook claude-code", "--hook codex", "--hook gemini-cli", "--hook copilot",
				"--hook qwen-code",
				"--forget", "--hook claude-code --forget"} {
				if status, out, errs := as(in, append(strings.Fields(args), "--hub", addr)...); status != exitDone ||
					out != "" || errs != "" {
					t.Errorf("%s, %s, %s: status %d, stdout %q, stderr %q", with, args, in, status, out, errs)
				}
			}
		}
	}
}

// Without --hook it is a command like the others.
func TestChangesAsText(t *testing.T) {
	r := start(t, "", "one")
	const nothing = "pagewire: no open page has changed since the agent last looked\n"
	if status, out, errs := r.command("changes"); status != exitDone || out != "" || errs != nothing {
		t.Errorf("without an agent: status %d, stdout %q, stderr %q", status, out, errs)
	}
	testkit.Must(r.g.Connect("test"))(t)
	if status, out, errs := r.command("changes"); status != exitDone || !strings.Contains(out, cart) || errs != "" {
		t.Errorf("what is there: status %d, stdout %q, stderr %q", status, out, errs)
	}
	testkit.Eventually(t, "the page is watched", func() bool { return r.page.Watches(cart) })
	r.set("two\u202e")
	var text string
	testkit.Eventually(t, "the change is told", func() bool {
		status, out, errs := r.command("changes", "--uri", cart)
		if text = out; status != exitDone || errs != "" && errs != nothing {
			t.Fatalf("status %d, stderr %q", status, errs)
		}
		return text != ""
	})
	if lines := strings.Split(text, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "[pagewire-") ||
		!strings.HasSuffix(lines[1], `"now":"two\u202e"}`) {
		t.Errorf("told %q", lines)
	}
	if status, out, errs := r.command("changes"); status != exitDone || out != "" || errs != nothing {
		t.Errorf("told twice: status %d, stdout %q, stderr %q", status, out, errs)
	}
}

// BenchmarkHook measures the time that a hook's process adds to a prompt. Before each prompt the page changes.
func BenchmarkHook(b *testing.B) {
	r := start(b, "", "one")
	p := r.program("")
	p.hook()
	testkit.Eventually(b, "the page is watched", func() bool { return r.page.Watches(cart) })
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		r.set(strings.Repeat("x", i%100+1))
		began := time.Now()
		p.hook("--inline", "https://shop.example")
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}
