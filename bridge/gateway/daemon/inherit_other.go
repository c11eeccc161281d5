//go:build unix && !linux

package daemon

import (
	"os"
	"strconv"
	"syscall"
)

// inheritNothing has no child get what the agent left open for this process. Go closes only what it has opened itself.
func inheritNothing() {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
