//go:build !js

package daemon

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// endPeerOf ends the process at the other end of a socket. Its number is nobody else's while the connection is there.
func endPeerOf(fd int) error {
	pid, err := unix.GetsockoptInt(fd, 0 /* SOL_LOCAL */, unix.LOCAL_PEERPID)
	switch {
	case err != nil:
		return err
	case pid <= 1 || pid == os.Getpid():
		return fmt.Errorf("the kernel names process %d", pid)
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}
