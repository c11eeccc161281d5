//go:build darwin || freebsd

package userdir

import "golang.org/x/sys/unix"

// solLocal is SOL_LOCAL, the level of the options of Unix sockets.
const solLocal = 0

// peer is the uid of the process that had the other end when the two were connected.
func peer(fd uintptr) (uid int, err error) {
	c, err := unix.GetsockoptXucred(int(fd), solLocal, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(c.Uid), nil
}
