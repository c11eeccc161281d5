//go:build linux || darwin

package daemon

import (
	"errors"
	"net"
)

// endPeer ends the process at the other end of a Unix socket: the one that the kernel names.
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
