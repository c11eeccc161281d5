//go:build unix

package testkit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// OtherUID is the user as whom OtherUser runs: nobody's.
const OtherUID = 65534

// OtherUser gives a command that plays a role, at an address or path, as another user of this machine. It skips the test
// where that takes root. The test binary's TestMain must call Main.
func OtherUser(t testing.TB, role, at string) *exec.Cmd {
	t.Helper()
	needsRoot(t)
	// By its descriptor: the directory in which go test builds is root's alone.
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { binary.Close() })
	cmd := exec.Command("/proc/self/fd/3", at)
	cmd.ExtraFiles = []*os.File{binary}
	cmd.Env = append(os.Environ(), roleEnv+"="+role, "GORACE=atexit_sleep_ms=0") // else it takes a second to end under -race
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: OtherUID, Gid: OtherUID}}
	return cmd
}
