//go:build !js

package userdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

var (
	// ErrNobody is what Dial returns when nobody listens.
	ErrNobody = errors.New("nobody listens")
	// ErrPeer is what Dial returns when another user's process listens.
	ErrPeer = errors.New("a process of another user listens")
)

// socketPath is a socket's, if the system takes one as long as that.
func (d *Dir) socketPath(name string) (string, error) {
	path := d.full(name)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("the path of the socket %s has %d bytes, and this system takes %d: "+
			"set XDG_CONFIG_HOME to a directory with a shorter one", path, len(path), maxSocketPath)
	}
	return path, nil
}

// Listen listens on a socket, or fails with ErrHeld if a process does that already: who listens holds the lock
// name+".lock" for as long, so that a socket whose lock is free is one that a dead process has left, and is replaced.
// What is no socket of this user's is left as it is, and an error. Connections from processes of another user are
// closed before they are seen, and logged.
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
		lock.Unlock()
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by its path, where the directory may be another one meanwhile
	return &Listener{UnixListener: l, d: d, name: name, lock: lock}, nil
}

func (d *Dir) listen(name, path string) (*net.UnixListener, error) {
	if _, err := d.root.Lstat(d.name(name)); err == nil {
		if err := d.checkSocket(name); err != nil {
			return nil, err
		}
		if err := d.root.Remove(d.name(name)); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// Until here the directory's mode has kept others away; from here on there are two reasons.
	if err := d.root.Chmod(d.name(name), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (d *Dir) checkSocket(name string) error {
	info, err := d.root.Lstat(d.name(name))
	if err != nil {
		return err
	}
	return d.check(name, info, fs.ModeSocket)
}

// A Listener accepts this user's processes. It is a net.Listener.
type Listener struct {
	*net.UnixListener
	d       *Dir
	name    string
	lock    *Lock
	refused atomic.Uint64
	closed  sync.Once
	err     error // of closing
}

// Accept waits for a process of this user.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if err := samePeer(c); err != nil {
			c.Close()
			// Whoever may do it once may do it in a loop.
			if n := l.refused.Add(1); bits.OnesCount64(n) == 1 {
				l.d.log.Warn("refused a process at this user's socket", "socket", l.d.full(l.name), "reason", err,
					"count", n)
			}
			continue
		}
		return c, nil
	}
}

// Holds reports whether others still respect that this is who listens: see Lock.Holds.
func (l *Listener) Holds() bool { return l.lock.Holds() }

// Close ends the listening, removes the socket and releases the lock, in this order: the next one's socket is not
// removed.
func (l *Listener) Close() error { return l.close(l.lock.Unlock) }

// Remove is Close, and removes the lock's file too: for the last one, who leaves nothing.
func (l *Listener) Remove() error { return l.close(l.lock.Remove) }

func (l *Listener) close(release func() error) error {
	l.closed.Do(func() {
		l.err = l.UnixListener.Close()
		if !l.Holds() { // the file of that name is another one's
			release = l.lock.Unlock
		} else {
			l.err = errors.Join(l.err, l.d.root.Remove(l.d.name(l.name)))
		}
		l.err = errors.Join(l.err, release())
	})
	return l.err
}

// Dial connects to a socket. It fails with ErrNobody or ErrPeer, with ctx's error, or with a sentence; nothing has been
// sent then, nor is anything sent before the other end is known to be this user's.
func (d *Dir) Dial(ctx context.Context, name string) (net.Conn, error) {
	path, err := d.socketPath(name)
	if err != nil {
		return nil, err
	}
	switch err := d.checkSocket(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w at %s", ErrNobody, path)
	case err != nil:
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
