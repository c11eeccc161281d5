//go:build unix

package testcmd

import (
	"os"
	"os/signal"
	"syscall"
)

// Under nohup SIGHUP is ignored, and the programs of tests would inherit that: pagewire then takes it for its user's
// wish, and outlives its agent's program. With a handler here they begin with the default, and the tests still go on.
func init() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}
