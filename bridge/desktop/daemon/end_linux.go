package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// peerPID returns the pid of the process at the other end of a Unix socket.
func peerPID(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

// waitingOf is waiting for one process. A thread that sleeps or is stopped does not wait.
func waitingOf(pid int) (since func() time.Duration) {
	began, before := time.Now(), threadsOf(pid)
	return func() (sum time.Duration) {
		for id, now := range threadsOf(pid) {
			was, known := before[id]
			switch {
			case !known:
			case now.isReady && now.ran == was.ran: // the kernel counts a wait at its end
				sum += time.Since(began)
			default:
				sum += now.waited - was.waited
			}
		}
		return sum
	}
}

type thread struct {
	ran, waited time.Duration
	isReady     bool // it runs, or waits
}

func threadsOf(pid int) map[string]thread {
	all := map[string]thread{}
	dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range dirs {
		var t thread
		text, _ := os.ReadFile(filepath.Join(dir, "schedstat"))
		_, _ = fmt.Sscan(string(text), &t.ran, &t.waited) // all is 0 if the kernel does not count it
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		t.isReady = t.ran > 0 && bytes.Contains(stat, []byte(") R "))
		all[dir] = t
	}
	return all
}
