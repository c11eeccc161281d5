//go:build unix

package userdir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is sun_path without its last byte: 107 bytes on Linux, 103 on macOS.
const maxSocketPath = len(unix.RawSockaddrUnix{}.Path) - 1

// errRefused means that no process listens on a socket.
const errRefused = unix.ECONNREFUSED

// owner is the uid of a file's owner. known is false if the system has no owners.
func owner(info fs.FileInfo) (uid int, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}

// changeable reports whether another user may change a part of a way. In a directory with the
// sticky bit, other users cannot replace an entry of this user.
func changeable(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode()
	byGroup := mode&0o020 != 0 && s.Gid != 0 && int(s.Gid) != os.Getegid()
	return s.Uid != 0 && int(s.Uid) != os.Geteuid() ||
		mode.IsDir() && mode&fs.ModeSticky == 0 && (byGroup || mode&0o002 != 0)
}

// Permits reports whether a file's mode gives one of these permissions.
func Permits(mode, bits fs.FileMode) bool { return mode&bits != 0 }

// LockFile locks an open file, or fails with ErrHeld. A child that inherits a descriptor holds the
// lock too.
func LockFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = raw.Control(func(fd uintptr) {
		for locked = unix.EINTR; locked == unix.EINTR; {
			locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB)
		}
	})
	if errors.Is(locked, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return errors.Join(err, locked)
}
