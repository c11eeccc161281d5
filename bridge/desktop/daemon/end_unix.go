//go:build linux || darwin

package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

var errTraced = errors.New("a debugger has it")

// endPeer ends the process that the kernel names as the other end of a Unix socket.
func endPeer(c net.Conn) error {
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("it is no process")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return err
	}
	var ended error
	err = raw.Control(func(fd uintptr) { ended = endPeerOf(int(fd)) })
	return errors.Join(err, ended)
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
