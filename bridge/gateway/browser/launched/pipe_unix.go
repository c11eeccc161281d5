//go:build !windows

package launched

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ends are the descriptors of a browser's pipe that a process keeps: the first takes commands, the second gives the
// browser's messages. An os.File would wake the process at each message.
type ends [2]int

// duplicate copies the descriptors of files, and closes the files.
func duplicate(to, from *os.File) (e *ends, err error) {
	e = &ends{-1, -1}
	for i, f := range []*os.File{to, from} {
		if err == nil {
			e[i], err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		}
		f.Close()
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("keep the browser's pipe: %w", err)
	}
	return e, nil
}

// open returns files of the same pipe, for reading and writing.
func (e *ends) open() (to, from *os.File, err error) {
	var dup ends
	for i, fd := range e {
		if dup[i], err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			closeAll(dup[:i])
			return nil, nil, fmt.Errorf("open the browser's pipe: %w", err)
		}
	}
	return os.NewFile(uintptr(dup[0]), "to the browser"), os.NewFile(uintptr(dup[1]), "from the browser"), nil
}

// close closes the descriptors. It may be called again.
func (e *ends) close() {
	closeAll(e[:])
	*e = ends{-1, -1}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// check returns an error if these are not the ends of a browser's pipe. It reads and writes nothing.
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
		// O_NONBLOCK is shared by all processes that have the pipe. They read it with a poller, or not at all.
		if err := unix.SetNonblock(e[i], true); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether both are ends of one pipe.
func (e *ends) same(other *ends) bool {
	var a, b unix.Stat_t
	return unix.Fstat(e[1], &a) == nil && unix.Fstat(other[1], &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// sendTime is how long the other process may take to accept a notice. A socket buffers hundreds of notices.
const sendTime = time.Second

// send sends a notice, with ends if they are not nil.
func send(conn *net.UnixConn, n notice, e *ends) error {
	var rights []byte
	if e != nil {
		rights = unix.UnixRights(e[:]...)
	}
	conn.SetWriteDeadline(time.Now().Add(sendTime))
	_, _, err := conn.WriteMsgUnix([]byte{byte(n)}, rights, nil)
	return err
}

// maxRights is how many descriptors receive takes at a time: more than are valid, so that it can close all of them.
const maxRights = 4

// receive returns the next notice, and the ends that come with it. If it fails, it closes all received descriptors.
func receive(conn *net.UnixConn) (notice, *ends, error) {
	text, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(maxRights*4))
	count, m, _, _, err := conn.ReadMsgUnix(text, rights)
	var fds []int
	if messages, err := unix.ParseSocketControlMessage(rights[:m]); err == nil {
		for _, message := range messages {
			some, _ := unix.ParseUnixRights(&message)
			fds = append(fds, some...)
		}
	}
	if err == nil && count == 0 {
		err = net.ErrClosed
	}
	n, e := notice(text[0]), (*ends)(nil)
	if err == nil && (n.kind() == holds) != (len(fds) == len(ends{})) || n.kind() != holds && len(fds) > 0 {
		err = errors.New("a browser's pipe has two ends, and other descriptors have come")
	}
	if err == nil && len(fds) > 0 {
		e = &ends{fds[0], fds[1]}
		err = e.check()
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, e, nil
}

// Sockets returns a connection between a holder and a server of this process.
func Sockets() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "socket")
		conn, failed := net.FileConn(f)
		err = errors.Join(err, failed, f.Close())
		conns[i], _ = conn.(*net.UnixConn)
	}
	return conns[0], conns[1], err
}

// give gives a browser its ends of the pipe, as descriptors 3 and 4, and a file that it keeps open for its life.
// Signals to our process group or our terminal do not reach it.
func give(cmd *exec.Cmd, commands, answers, held *os.File) {
	cmd.ExtraFiles = []*os.File{commands, answers, held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// crashed reports whether a browser's exit is a crash, and not a close by a person or the system.
func crashed(err error) bool {
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM && status.Signal() != syscall.SIGINT &&
		status.Signal() != syscall.SIGHUP
}
