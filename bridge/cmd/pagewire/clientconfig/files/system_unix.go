//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// An owner is a user and a group, by number.
type owner struct{ uid, gid int }

func ownerOf(info fs.FileInfo) owner {
	stat := info.Sys().(*syscall.Stat_t) // as os documents it
	return owner{int(stat.Uid), int(stat.Gid)}
}
