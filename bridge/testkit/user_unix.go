//go:build unix

package testkit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// OtherUID is the user as whom AsOther runs programs: "nobody", which every system has.
const OtherUID = 65534

// AsOther makes a command run as another user, which only root can do. Without root it ends the
// test, with a message about the missing proof. Other users must be able to run the command's
// program: Self is such a program.
func AsOther(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not shown: only root can run a process as another user")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: OtherUID,
		Gid: OtherUID}}
	cmd.Dir = "/"
}
