//go:build !js && unix

package testkit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// OtherUID is the user that AsOther runs programs as: nobody, which every system has.
const OtherUID = 65534

// AsOther has a command run as another user than this one, which only root can arrange. Elsewhere the test ends here,
// and says what it has not shown. The command's program must be one that others may run: Self is.
func AsOther(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not shown: only root can run a process as another user")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: OtherUID, Gid: OtherUID}}
	cmd.Dir = "/"
}
