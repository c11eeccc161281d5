package e2e

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

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
