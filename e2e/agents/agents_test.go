package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

var allRun = os.Getenv("AGENTS") == "all"

// runs reports whether a program is run. Gemini CLI is run with all other tests.
func runs(name string) bool { return allRun || name == "gemini-cli" }

const (
	origin = "http://localhost:3000"
	cart   = origin + "/cart"
)

// cartOf returns a cart that is long enough for a change to be sent as a patch.
func cartOf(quantity int) string {
	items := []string{fmt.Sprintf(`{"sku":"a-1","quantity":%d}`, quantity)}
	for i := range 20 {
		items = append(items,
			fmt.Sprintf(`{"sku":"b-%d","quantity":1,"title":"a thing that is in the cart"}`, i))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

type shop struct {
	*testkit.Page
	gateway []string // the command line for an agent on stdio
	daemon  *exec.Cmd
	paid    atomic.Int32
	asked   atomic.Int32
}

// openShop starts a gateway on HTTP, which all agents of the home share, and connects the page to
// it as pages do.
func openShop(t *testing.T, home string) *shop {
	t.Helper()
	binary := dir(t, "../../bin/pagewire")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("bin/pagewire is not built: run make build (%v)", err)
	}
	addr, http := testkit.Addr(t), testkit.Addr(t)
	s := &shop{Page: testkit.NewPage(t, map[string]string{cart: cartOf(1)}),
		gateway: []string{binary, "serve", "--hub", addr}}
	text := func(text string) any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	s.SetTool("shipping_costs",
		testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
			s.asked.Add(1)
			return text("shipping is free")
		}})
	s.SetTool("checkout", testkit.Tool{
		Members: map[string]any{"_meta": map[string]any{"pagewire/freshState": map[string]any{"uris": []string{cart}}}},
		Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
			s.paid.Add(1)
			return text("it is paid")
		},
	})
	s.daemon = testcmd.Command(binary, "serve", "--hub", addr, "--http", http, "--log-level",
		"warn")
	s.daemon.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	s.daemon.Stderr = os.Stderr
	if err := s.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.daemon.Process.Signal(syscall.SIGTERM)
		_ = s.daemon.Wait()
	})
	s.Dial(addr, origin, "")
	testkit.Eventually(t, "the gateway has the page", s.isListed)
	return s
}

func (s *shop) isListed() bool {
	ls := testcmd.Command(s.gateway[0], append([]string{"ls"}, s.gateway[2:]...)...)
	ls.Env = s.daemon.Env
	said, _ := ls.Output() // fails where no daemon runs
	return strings.Contains(string(said), cart)
}

// killDaemon returns when the page is connected to the next daemon, which the agent's pipe starts.
func (s *shop) killDaemon(t *testing.T) {
	_ = s.daemon.Process.Kill()
	_ = s.daemon.Wait()
	for t.Context().Err() == nil && !s.isListed() {
		time.Sleep(10 * time.Millisecond)
	}
}

// The story of each program: its model reads the cart, and the user changes it. The result of an
// unrelated tool tells the model of the change. The user changes the cart again, and the model
// wants to pay: nothing is bought with the old cart. After the payment the daemon is killed, the
// user changes the cart once more, and the model wants to pay again. A run of all programs writes
// its table of results.md.
func TestPrograms(t *testing.T) {
	var rows []string
	for _, p := range programs(t, "", []string{""}) {
		if !runs(p.name) {
			continue
		}
		if p.theirs != "" && p.needs == "" {
			rows = append(rows, p.theirs+" | not installed here | | ")
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			if _, err := os.Stat(p.needs); err != nil {
				t.Fatalf("it is not installed: run make test-agents (%v)", err)
			}
			runProgram(t, p.name)
			rows = append(rows, p.version(t)+
				" | in the next request | refused, with what has changed | it is paid, once")
		})
	}
	if allRun && !t.Failed() {
		writeSection(t, "programs", "Last run: "+time.Now().UTC().Format("2 January 2006")+".\n\n"+
			"| program | what has changed, unasked | a call with the old cart | with what it was told |\n|---|---|---|---|\n| "+
			strings.Join(rows, " |\n| ")+" |\n")
	}
}

// runProgram tells the story.
func runProgram(t *testing.T, name string) {
	home := testkit.ShortDir(t)
	s := openShop(t, home)
	m := newModel(t, append(programNamed(t, name, "", s.gateway).search,
		step{tool: "read_page_resource", args: map[string]any{"uri": cart}},
		step{before: func() { s.Set(cart, cartOf(2)) }, tool: "shipping_costs"},
		step{before: func() { s.Edit(cart, cartOf(3)) }, tool: "checkout"},
		step{tool: "checkout"},
		step{before: func() { s.killDaemon(t); s.Edit(cart, cartOf(4)) }, tool: "checkout"},
		step{say: "DONE"},
	)...)
	p := programNamed(t, name, m.URL, s.gateway)
	p.install(t, home)
	if p.client != "" {
		config(t, home, append([]string{p.client, "--write", "--"}, s.gateway[2:]...)...)
	}
	said, err := p.run(t, home, p.command[1:]...)
	last := m.last()
	if dump := os.Getenv("AGENTS_DUMP"); dump != "" {
		_ = os.WriteFile(filepath.Join(dump, name+".json"), []byte(strings.Join(m.bodies, "\n")),
			0o600)
		_ = os.WriteFile(filepath.Join(dump, name+".txt"), said, 0o600)
	}
	if err != nil {
		t.Errorf("it ends with %v", err)
	}
	plain := unescaped(last)
	for what, want := range map[string]string{
		"what has changed, unasked": `"patch":[{"op":"replace","path":"/items/0/quantity","value":2}]`,
		"why it was not paid":       "checkout was not run",
		"what it had not seen":      `"patch":[{"op":"replace","path":"/items/0/quantity","value":3}]`,
		"that it was paid then":     "it is paid",
		// it has no text of the previous one
		"what the next daemon has": `"now":{"items":[{"sku":"a-1","quantity":4}`,
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("the model is not told %s", what)
		}
	}
	if s.paid.Load() != 1 || s.asked.Load() != 1 {
		t.Errorf("paid %d times, want 1; asked for shipping %d times, want 1", s.paid.Load(),
			s.asked.Load())
	}
	if t.Failed() {
		t.Logf("it says: %.3000s\n%d requests to the model, the last %.500s; others: %v", said,
			len(m.bodies), last,
			m.other)
	}
}

// unescaped removes the escapes of quotes from a request. Programs write one or two levels of them.
func unescaped(body string) string {
	return strings.NewReplacer(`\\n`, "\n", `\n`, "\n", `\`, "").Replace(body)
}

// endAll ends the processes that a program has left running, such as a daemon: those with this
// test's own home.
func endAll(home string) {
	for _, pid := range testkit.Processes("HOME=" + home) {
		if pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}
