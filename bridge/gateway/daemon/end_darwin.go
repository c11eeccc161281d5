//go:build !js

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// endPeer ends the process at the other end of a Unix socket: the one that the kernel names. Its number is nobody else's
// while the connection is there.
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
	err = raw.Control(func(fd uintptr) {
		pid, err := unix.GetsockoptInt(int(fd), 0 /* SOL_LOCAL */, unix.LOCAL_PEERPID)
		switch {
		case err != nil:
			ended = err
		case pid <= 1 || pid == os.Getpid():
			ended = fmt.Errorf("the kernel names process %d", pid)
		default:
			ended = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return errors.Join(err, ended)
}
