//go:build !js && !windows

package daemon

import (
	"os/exec"
	"syscall"
)

// detach has a command run in a session of its own, and in no directory that somebody wants to remove.
func detach(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// Umask has what this process makes be this user's alone.
func Umask() { syscall.Umask(0o077) }
