//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// An owner is a user and a group, by number.
type owner struct{ uid, gid int }

func ownerOf(info fs.FileInfo) owner {
	stat := info.Sys().(*syscall.Stat_t) // as os documents it
	return owner{int(stat.Uid), int(stat.Gid)}
}

// tryLock locks an open directory until it is closed. It returns false if another process has the
// lock.
func tryLock(dir *os.File) bool {
	return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
