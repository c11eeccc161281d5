//go:build !windows

package daemon

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach makes a command start in a session of its own, and in the root directory, so that it keeps
// no other directory in use. The command does not inherit descriptors that the agent left open: Go
// closes only its own.
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

// Umask makes this process's new files private to this user.
func Umask() { syscall.Umask(0o077) }
