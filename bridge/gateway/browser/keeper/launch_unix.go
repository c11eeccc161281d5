//go:build !js && !windows

package keeper

import (
	"net"
	"os"
	"os/exec"
	"syscall"
)

// aloneFD is where a keeper without a socket has its client.
const aloneFD = 3

// detach gives a process a session of its own, without a terminal: what is sent to our group, or to those of a terminal
// that is closed, does not reach it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
}

// connect gives a process that is about to start one end of a connection, as aloneFD, and returns the other. theirs is
// to be closed when it has started.
func connect(cmd *exec.Cmd) (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "keeper")
	theirs = os.NewFile(uintptr(fds[1]), "keeper's end")
	ours, err = net.FileConn(file)
	file.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	cmd.ExtraFiles = []*os.File{theirs}
	return ours, theirs, nil
}
