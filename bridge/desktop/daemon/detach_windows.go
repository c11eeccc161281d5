package daemon

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach makes a command start without a console, in a process group of its own. It inherits no
// other handles.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS,
	}
}

// Umask does nothing: files in the user's profile are private already.
func Umask() {}
