package testkit

import (
	"os"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A test that fails leaves no process behind, not even one that it has stopped.
func TestFailedTestLeavesNoProcess(t *testing.T) {
	f := &failing{TB: t, name: "TestZ"}
	dir := ShortDir(f)
	cmd := testcmd.Command("sleep", "600")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	OK(t, cmd.Start(), cmd.Process.Signal(syscall.SIGSTOP))
	Eventually(t, "it is its program", func() bool { return len(Processes("HOME="+dir)) == 1 })
	f.failed = true
	f.ends(func() {})
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ends with %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}
