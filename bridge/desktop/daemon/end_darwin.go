package daemon

import (
	"time"

	"golang.org/x/sys/unix"
)

// peerPID returns the pid of the process at the other end of a Unix socket.
func peerPID(fd int) (int, error) {
	return unix.GetsockoptInt(fd, 0 /* SOL_LOCAL */, unix.LOCAL_PEERPID)
}

// waitingOf measures nothing: macOS says it only to C.
func waitingOf(int) (since func() time.Duration) { return func() time.Duration { return 0 } }
