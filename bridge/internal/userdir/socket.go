package userdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

var (
	// ErrNobody is the error of Dial if no process listens.
	ErrNobody = errors.New("nobody listens")
	// ErrPeer is the error of Dial if another user's process listens.
	ErrPeer = errors.New("a process of another user listens")
)

// socketPath is a socket's path, if the system accepts its length.
func (d *Dir) socketPath(name string) (string, error) {
	path := d.full(name)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path of the socket %s has %d bytes, and this system takes %d: "+
			"set XDG_CONFIG_HOME to a directory with a shorter one", path, len(path), maxSocketPath)
	}
	return path, nil
}

// A Listener accepts this user's processes. It is a net.Listener.
type Listener struct {
	*net.UnixListener
	d    *Dir
	name string
	lock *Lock
}

// Listen listens on a socket, or fails with ErrHeld if a process already does. It holds the lock
// name+".lock": a socket whose lock is free was left by a dead process, and is replaced. A file
// that is not a socket stays.
func (d *Dir) Listen(name string) (*Listener, error) {
	path, err := d.socketPath(name)
	if err != nil {
		return nil, err
	}
	lock, err := d.TryLock(name + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := d.listen(name, path)
	if err != nil {
		lock.Remove()
		return nil, err
	}
	// Close would unlink by path, and the directory there may be another one by then
	l.SetUnlinkOnClose(false)
	return &Listener{UnixListener: l, d: d, name: name, lock: lock}, nil
}

func (d *Dir) listen(name, path string) (*net.UnixListener, error) {
	if info, err := d.root.Lstat(d.name(name)); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf(
				"%s is %s and not a socket: find out who put it there, and move it away", path,
				Kind(info.Mode()))
		}
		if err := d.root.Remove(d.name(name)); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Until here only the directory's mode has kept others out; from here on the socket's mode does
	// too.
	if err := d.root.Chmod(d.name(name), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Accept waits for a process of this user. It closes connections of processes of other users.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if samePeer(c) == nil {
			return c, nil
		}
		c.Close()
	}
}

// Remove ends the listening, and removes the socket and the lock if they are still its own. It may
// be called again.
func (l *Listener) Remove() error {
	l.UnixListener.Close()
	var err error
	if l.lock.holds() {
		err = l.d.root.Remove(l.d.name(l.name))
	}
	return errors.Join(err, l.lock.Remove())
}

// Dial connects to a socket, and sends nothing. It fails with ErrNobody or ErrPeer, with ctx's
// error, or a sentence.
func (d *Dir) Dial(ctx context.Context, name string) (net.Conn, error) {
	path, err := d.socketPath(name)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, errRefused), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w at %s", ErrNobody, path)
	case err != nil:
		return nil, err
	}
	if err := samePeer(c.(*net.UnixConn)); err != nil {
		c.Close()
		return nil, fmt.Errorf("%w at %s: %w", ErrPeer, path, err)
	}
	return c, nil
}

// samePeer fails unless the kernel says that the other end is a process of this user.
func samePeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = peer(fd) }); err != nil {
		return err
	}
	switch {
	case asked != nil:
		return fmt.Errorf("the kernel does not say whose process it is: %w", asked)
	case uid != os.Geteuid():
		return fmt.Errorf("its uid is %d, ours is %d", uid, os.Geteuid())
	}
	return nil
}
