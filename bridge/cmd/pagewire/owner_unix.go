//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf is who a file belongs to.
func ownerOf(info fs.FileInfo) owner {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{int(stat.Uid), int(stat.Gid)}
	}
	return unowned
}

// tryLock locks an open directory until it is closed, and reports false if another process has it locked. Where there
// are no locks it does without.
func tryLock(dir *os.File) bool {
	return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
