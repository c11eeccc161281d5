//go:build !js

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// givePipe gives a browser its ends of the pipe: it is told the handles, which are the same in both processes. No other
// process that this one starts may have the other two.
func givePipe(cmd *exec.Cmd, its, ours [2]*os.File, _ *os.File) error {
	for _, f := range ours {
		if err := syscall.SetHandleInformation(syscall.Handle(f.Fd()), syscall.HANDLE_FLAG_INHERIT, 0); err != nil {
			return fmt.Errorf("keep a pipe to this process: %w", err)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags:              syscall.CREATE_NEW_PROCESS_GROUP,
		AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(its[0].Fd()), syscall.Handle(its[1].Fd())},
	}
	cmd.Args = slices.Insert(cmd.Args, 1, fmt.Sprintf("--remote-debugging-io-pipes=%d,%d", its[0].Fd(), its[1].Fd()))
	return nil
}

// kill ends the browser; its children end with it.
func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}
