//go:build !js

package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var errTraced = errors.New("a debugger has it")

// endPeerOf ends the process at the other end of a socket. Its number is nobody else's while the connection is there,
// which is looked at again when a descriptor of the process holds the number.
func endPeerOf(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if peer.Pid <= 1 || int(peer.Pid) == os.Getpid() { // 0 is a process of another namespace
		return fmt.Errorf("the kernel names process %d", peer.Pid)
	}
	process, err := unix.PidfdOpen(int(peer.Pid), 0)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	} else if err != nil {
		return err
	}
	defer unix.Close(process)
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(poll, 0); err != nil || n > 0 {
		return err // it has gone by itself
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", peer.Pid))
	if err == nil && !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		return errTraced
	}
	return unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0)
}
