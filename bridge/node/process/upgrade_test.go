//go:build unix

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// build builds pagewire-node.
func build(t *testing.T, flags ...string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "pagewire-node")
	cmd := testcmd.Command("go", append(append([]string{"build", "-o", program}, flags...),
		"github.com/pagewire/pagewire/bridge/cmd/pagewire-node")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build a node: %v\n%s", err, out)
	}
	return program
}

// buildOfAnotherBus builds a pagewire-node with the next version of the bus.
func buildOfAnotherBus(t *testing.T) (program string) {
	t.Helper()
	source, err := filepath.Abs("../message.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const line = `const version = "1"`
	if !strings.Contains(string(text), line) {
		t.Fatalf("%s lacks %s", source, line)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "message.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{overlay: string(list),
		changed: strings.Replace(string(text), line, `const version = "2"`, 1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return build(t, "-overlay", overlay)
}

// runs returns a function that makes the command of a node from a program.
func (o *outside) runs(program string) func(setup) *exec.Cmd {
	return func(s setup) *exec.Cmd {
		o.t.Helper()
		text, err := json.Marshal(map[string]any{"public-url": public, "secret-file": s.Secret, "drain": "2s", "drain-delay": "1ms",
			"listen": s.Listen, "admin": s.Admin, "cluster": s.Cluster, "advertise": s.Advertise, "join": s.Join,
			"issuers": []any{map[string]any{"issuer": s.Issuer, "jwks": s.Keys}}})
		if err != nil {
			o.t.Fatal(err)
		}
		config := filepath.Join(o.t.TempDir(), "node.json")
		if err := os.WriteFile(config, text, 0o600); err != nil {
			o.t.Fatal(err)
		}
		return testcmd.Command(program, "--config", config)
	}
}

// atAnEnd matches the errors that a node's end in order may cause: a legacy session at the node has ended, or the page
// of a called tool was there. No read of the modern era fails.
var atAnEnd = regexp.MustCompile(`^legacy [a-z/]+: (There is no such session any more|The session (has )?ended|` +
	`The server goes away|The node of this session broke off)|tools/call: the page (went away|that has this tool is gone)`)

// Node after node is replaced by one of the next build, while pages and agents of both eras work. Each agent holds the
// last state, no tool runs twice, and all is answered. Then nodes with another version of the bus come: they are not
// ready, the fleet is, and both say why.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.command = w.runs(build(t, "-ldflags", "-X main.version=1.0.0"))
	w.begin()
	old := w.all()
	w.command = w.runs(build(t, "-ldflags", "-X main.version=1.1.0"))
	for _, n := range old {
		w.start()
		w.uses(200)
		w.leave(n)
		n.under.Wait() // like a balancer that waits for answers
		w.signal(n, syscall.SIGTERM)
		testkit.Eventually(t, "it ends", func() bool {
			w.uses(1)
			return len(n.ended) == 1
		})
		err := <-n.ended
		if close(n.ended); err != nil {
			t.Errorf("it ends with %v", err)
		}
		w.uses(200)
		w.settle("an end")
	}
	t.Log(w)
	for how, count := range w.failures() {
		if !atAnEnd.MatchString(how) {
			t.Errorf("%d of %s", count, how)
		}
	}
	for _, n := range w.all() {
		if got := w.release(n); got != "1.1.0" {
			t.Errorf("a node is of release %q", got)
		}
	}

	w.command = w.runs(buildOfAnotherBus(t))
	strange := []*own{w.launch(), w.launch()}
	for _, n := range strange {
		counts(t, n.Admin, "nodes_of_other_version", 3)
		testkit.Eventually(t, "it says why it is not ready", func() bool {
			got := get(t, n.Admin, "/readyz")
			return strings.Contains(got, "503") && strings.Contains(got, "an older node has another version of the bus")
		})
	}
	for _, n := range w.all() {
		counts(t, n.Admin, "nodes_of_other_version", 2)
		if got := get(t, n.Admin, "/readyz"); !strings.HasPrefix(got, "200") {
			t.Errorf("a node of the fleet is not ready: %s", got)
		}
		if !n.log.Has("a node of another version is on the bus") {
			t.Error("it does not say so")
		}
	}
	for _, n := range strange {
		w.signal(n, syscall.SIGTERM)
	}
	for _, n := range w.all() {
		counts(t, n.Admin, "nodes_of_other_version", 0)
	}
	w.settle("no fault")
}

// uses calls use so many times, with pauses.
func (w *world) uses(count int) {
	for range count {
		w.use()
		time.Sleep(time.Millisecond)
	}
}

// release returns the version that a node reports to agents.
func (w *world) release(n *own) (version string) {
	a := w.agents[0]
	_, _, err := w.send(w.t.Context(), n, a.subject, "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":`+
		`"server/discover","params":{%s}}`, modernMeta), map[string]string{"Authorization": "Bearer " + a.token,
		"Mcp-Protocol-Version": testkit.Modern, "Mcp-Method": "server/discover"}, func(_ string, m said) bool {
		version = m.Result.Meta.ServerInfo.Version
		return true
	})
	if err != nil {
		w.t.Error(err)
	}
	return version
}
