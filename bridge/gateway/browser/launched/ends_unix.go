//go:build !js && !windows

package launched

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ends are the descriptors of a browser's pipe that a process keeps: one that takes commands, and one that has what the
// browser says. A file of package os would be in Go's poller, which wakes the process at each message of the browser,
// whoever reads it.
type ends [2]int

// keep takes ends out of files, which it closes.
func keep(to, from *os.File) (e *ends, err error) {
	e = new(ends)
	for i, f := range []*os.File{to, from} {
		raw, rawErr := f.SyscallConn() // Fd would make the descriptor block, in all processes that have it
		if err = errors.Join(err, rawErr); rawErr == nil {
			raw.Control(func(fd uintptr) {
				var dupErr error
				e[i], dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
				err = errors.Join(err, dupErr)
			})
		}
		f.Close()
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("keep the browser's pipe: %w", err)
	}
	return e, nil
}

// open returns files of the same pipe, to be read and written.
func (e *ends) open() (to, from *os.File, err error) {
	var dup ends
	for i, fd := range e {
		if dup[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			dup.close()
			return nil, nil, err
		}
	}
	return os.NewFile(uintptr(dup[0]), "to the browser"), os.NewFile(uintptr(dup[1]), "from the browser"), nil
}

func (e *ends) close() {
	for _, fd := range e {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}

// check says what is wrong with what another process has sent as ends, or nil. Nothing is read or written.
func (e *ends) check() error {
	for i, access := range []int{unix.O_WRONLY, unix.O_RDONLY} {
		var stat unix.Stat_t
		if err := unix.Fstat(e[i], &stat); err != nil {
			return err
		}
		flags, err := unix.FcntlInt(uintptr(e[i]), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFIFO || flags&unix.O_ACCMODE != access {
			return fmt.Errorf("descriptor %d of a browser's pipe is of kind %#o and access %d", i, kind, flags&unix.O_ACCMODE)
		}
		// All processes that have it read with a poller, or not at all.
		if err := unix.SetNonblock(e[i], true); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether two are ends of one pipe.
func (e *ends) same(other *ends) bool {
	var a, b unix.Stat_t
	return unix.Fstat(e[1], &a) == nil && unix.Fstat(other[1], &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// write sends text, and ends if there are any, in one piece.
func write(conn *net.UnixConn, text []byte, e *ends) error {
	var rights []byte
	if e != nil {
		rights = unix.UnixRights(e[:]...)
	}
	n, _, err := conn.WriteMsgUnix(text, rights, nil)
	if err == nil && n < len(text) {
		_, err = conn.Write(text[n:])
	}
	return err
}

// read reads text, and descriptors that come with it, which are not inherited by programs that this one starts.
func read(conn *net.UnixConn, text []byte) (n int, fds []int, err error) {
	rights := make([]byte, unix.CmsgSpace(maxRights*4))
	n, m, flags, _, err := conn.ReadMsgUnix(text, rights)
	messages, parseErr := unix.ParseSocketControlMessage(rights[:m])
	for _, message := range messages {
		some, _ := unix.ParseUnixRights(&message)
		fds = append(fds, some...)
	}
	switch {
	case err != nil:
	case parseErr != nil:
		err = parseErr
	case flags&unix.MSG_CTRUNC != 0:
		err = errors.New("too many descriptors at a time")
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
