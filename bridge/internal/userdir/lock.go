package userdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/retry"
)

// ErrHeld is the error of LockFile and Listen if a process, maybe this one, has the lock.
var ErrHeld = errors.New("another process has it")

// lockEvery is the pause between two attempts to take a lock: an attempt costs three system calls.
const lockEvery = 5 * time.Millisecond

// A Lock is an empty file that one process at a time has locked. The kernel releases it when the
// process ends.
type Lock struct {
	d    *Dir
	name string
	f    *os.File
}

// TryLock takes a lock, or fails with ErrHeld.
func (d *Dir) TryLock(name string) (*Lock, error) {
	for {
		f, err := d.root.OpenFile(d.name(name), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = LockFile(f)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", d.full(name), err)
		}
		if l := (&Lock{d, name, f}); l.holds() {
			return l, nil
		}
		f.Close() // the lock's last owner has removed the file: the next attempt makes another
	}
}

// Lock waits for a lock until ctx ends.
func (d *Dir) Lock(ctx context.Context, name string) (*Lock, error) {
	for range retry.Attempts(ctx, lockEvery, lockEvery) {
		if l, err := d.TryLock(name); !errors.Is(err, ErrHeld) {
			return l, err
		}
	}
	return nil, fmt.Errorf("lock %s: %w: %w", d.full(name), ErrHeld, context.Cause(ctx))
}

// holds reports whether the locked file is still at its path, where other processes look for it.
func (l *Lock) holds() bool {
	locked, err := l.f.Stat()
	if err != nil {
		return false
	}
	there, err := l.d.root.Lstat(l.d.name(l.name))
	return err == nil && os.SameFile(there, locked)
}

// Remove removes the lock's file, and releases the lock: a waiting process makes a new file. It may
// be called again.
func (l *Lock) Remove() error {
	var err error
	if l.holds() {
		err = l.d.root.Remove(l.d.name(l.name))
	}
	l.f.Close()
	return err
}
