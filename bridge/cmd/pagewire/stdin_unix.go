//go:build unix

package main

import (
	"os"
	"syscall"
)

// pollable has the reads of a pipe or a socket wait in Go's poller, as Node has those of its own: a thread that waits
// in the kernel would hold what its goroutine has just made ready until another thread comes for it, which made a
// page's read by WebSocket take 0.55 ms instead of 0.45.
//
// A file that is one of others too, which are written to and would fail where they have to wait, stays as it is; so
// does a terminal, which is the shell's as well.
func pollable(f *os.File, others ...*os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f
	}
	for _, other := range others {
		if o, err := other.Stat(); err == nil && os.SameFile(info, o) {
			return f
		}
	}
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return f
	}
	return os.NewFile(fd, f.Name())
}
