//go:build unix

package testcmd

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// Under nohup SIGHUP is ignored, and the programs of tests would inherit that: pagewire then takes
// it for its user's wish, and outlives its agent's program. With a handler here they begin with the
// default, and the tests still go on.
var nohup = signal.Ignored(syscall.SIGHUP)

func init() {
	if nohup {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// detach keeps a program from the SIGHUP that the tests ignore, the one of their terminal: it goes
// to their group.
func detach(cmd *exec.Cmd) {
	if nohup {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
}
