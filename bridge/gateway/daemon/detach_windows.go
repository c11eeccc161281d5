//go:build !js

package daemon

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach has a command run without a console, in a process group of its own. It inherits only what it is given.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS,
	}
}

// Umask has nothing to do: what is made in the user's profile is the user's.
func Umask() {}
