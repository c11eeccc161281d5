//go:build linux || darwin

package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

var errTraced = errors.New("a debugger has it")

// endPeer ends the process that the kernel names as the other end of a Unix socket.
func endPeer(c net.Conn) error { return onSocket(c, endPeerOf) }

// waiting begins to measure how long this process, or that at the other end of a Unix socket, waits
// for a processor, as far as the system says it.
func waiting(c net.Conn) (since func() time.Duration) {
	peer := 0
	_ = onSocket(c, func(fd int) (err error) { peer, err = peerPID(fd); return err })
	theirs, ours := waitingOf(peer), waitingOf(os.Getpid())
	return func() time.Duration { return theirs() + ours() }
}

// onSocket calls do with the descriptor of a Unix socket.
func onSocket(c net.Conn, do func(fd int) error) error {
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("it is no process")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	err = raw.Control(func(fd uintptr) { done = do(int(fd)) })
	return errors.Join(err, done)
}

// endPeerOf checks the connection after FindProcess: no other process gets the pid while the
// connection is open.
func endPeerOf(fd int) error {
	pid, err := peerPID(fd)
	switch {
	case err != nil:
		return err
	case pid <= 1 || pid == os.Getpid(): // 0: the process is in another PID namespace
		return fmt.Errorf("the kernel names process %d", pid)
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, 0); err != nil || n > 0 {
		return err // the connection has ended, so the process has too
	}
	// macOS has no such file, so a debugger is not noticed there.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil && !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		return errTraced
	}
	if err := process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
