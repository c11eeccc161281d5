//go:build !windows

package launched

import (
	"os"
	"os/exec"
	"syscall"
)

// give gives a browser its ends of the pipe, as descriptors 3 and 4, and a file that it keeps open
// for its life. Signals to our process group or our terminal do not reach it.
func give(cmd *exec.Cmd, commands, answers, held *os.File) {
	cmd.ExtraFiles = []*os.File{commands, answers, held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	endWithUs(cmd.SysProcAttr)
}
