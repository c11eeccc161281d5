package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The test is the agent program: it has started pagewire serve, and runs the binary as its hook, by a shell.
func TestHook(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := serveCounter(t)
	a := h.serve(t, "--launch", "--headless", "--open", c.URL)
	testkit.Eventually(t, "the page's resource is listed", func() bool { return a.Offers(c.uri()) })
	hook := func(args ...string) string {
		t.Helper()
		cmd, log := h.command(t)
		shell := exec.Command("sh", append([]string{"-c", `"$0" changes "$@"; exit $?`, cmd.Path, "--hub", h.hub},
			args...)...)
		shell.Env, shell.Stderr = cmd.Env, log
		shell.Stdin = strings.NewReader(`{"session_id":"s","prompt":"hello"}`)
		out, err := shell.Output()
		if err != nil {
			t.Fatalf("the hook: %v", err)
		}
		return string(out)
	}
	if text := hook("--hook", "claude-code"); text != "" {
		t.Errorf("what is there is told: %s", text)
	}
	for i, one := range []struct {
		program, begin string
		more           []string
	}{
		{"claude-code", `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"[pagewire-`,
			nil},
		{"codex", `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"[pagewire-`, nil},
		{"gemini-cli", `{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"[pagewire-`,
			[]string{"--inline", c.URL}},
		{"copilot", `{"additionalContext":"[pagewire-`, nil},
	} {
		told, n := "", 100*i
		// of another one each time: a hook has no time to wait
		testkit.Eventually(t, one.program+" is told of a change", func() bool {
			n++
			c.set(n)
			told = hook(append([]string{"--hook", one.program}, one.more...)...)
			return told != ""
		})
		if !strings.HasPrefix(told, one.begin) || !strings.Contains(told, c.uri()) {
			t.Errorf("%s is told %s", one.program, told)
		}
	}
	a.Close()
	testkit.Eventually(t, "nothing but the token is left behind", func() bool {
		return slices.Equal(h.left(t), []string{"pagewire/token"})
	})
}

// What wakes an agent waits for a gateway for as long as its program runs, and no longer.
func TestWakeEndsWithItsProgram(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cmd, log := h.command(t)
	program := exec.Command("sh", "-c", `"$0" watch --changes --all --lines --hub "$1" & echo $!; wait`, cmd.Path,
		h.hub)
	program.Env, program.Stderr = cmd.Env, log
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it waits", func() bool { return log.Has("waiting for one") })
	program.Process.Kill()
	testkit.Eventually(t, "it has ended", func() bool { return !running(pid) })
	program.Wait()
}
