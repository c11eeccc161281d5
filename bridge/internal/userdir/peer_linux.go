package userdir

import "golang.org/x/sys/unix"

// peer is the uid of the process that had the other end when the two were connected (or began to
// listen).
func peer(fd uintptr) (uid int, err error) {
	c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
