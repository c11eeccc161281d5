//go:build !js && !windows

package browser

import (
	"os"
	"os/exec"
	"syscall"
)

// givePipe gives a browser its ends of the pipe: the file descriptors 3 and 4. The other two are ours.
func givePipe(cmd *exec.Cmd, its, _ [2]*os.File, held *os.File) error {
	cmd.ExtraFiles = []*os.File{its[0], its[1]}
	if held != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, held)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends our group or our terminal does not reach it
	return nil
}

// kill ends a process group. Its first process is still there, or a zombie: nobody else's group can have the number.
func kill(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
