//go:build !js

package keeper

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of whatever its children leave behind, so that reap can wait for it.
func adopt() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapTime is how long a browser's other processes may go on when it has ended. They take some 20 ms.
const reapTime = time.Second

// reap waits until all processes that came of the browser are gone: its crash handlers leave its group. The browser
// itself must have been waited for.
func reap() {
	for end := time.Now().Add(reapTime); time.Now().Before(end); {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.ECHILD:
			return
		case err == nil && pid == 0:
			time.Sleep(2 * time.Millisecond)
		}
	}
}
