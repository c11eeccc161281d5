package daemon

import "golang.org/x/sys/unix"

// peerPID returns the pid of the process at the other end of a Unix socket.
func peerPID(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}
