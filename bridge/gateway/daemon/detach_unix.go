//go:build !js && !windows

package daemon

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach has a command run in a session of its own, in no directory that somebody wants to remove, and without what the
// agent left open for this process. Go closes only what it has opened itself.
func detach(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	open, _ := os.ReadDir("/dev/fd")
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// Umask has what this process makes be this user's alone.
func Umask() { syscall.Umask(0o077) }
