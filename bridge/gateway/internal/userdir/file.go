//go:build !js

package userdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// ErrHeld is what TryLock and Listen return when another process has the lock. It may be this one, too.
var ErrHeld = errors.New("another process has it")

// lockEvery is the pause between two attempts to have a lock: one costs three system calls.
const lockEvery = 5 * time.Millisecond

// check says what is wrong with what is in place of a file, or nil.
func (d *Dir) check(name string, info fs.FileInfo, want fs.FileMode) error {
	uid, known := owner(info)
	switch {
	case info.Mode().Type() != want:
		return fmt.Errorf("%s is %s and not %s: find out who put it there, and move it away",
			d.full(name), kind(info.Mode()), kind(want))
	case known && uid != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d): find out who put it there, and "+
			"move it away",
			d.full(name), uid, os.Geteuid())
	case known && want == 0 && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to %s (its mode is %04o): chmod 600 it, or remove it",
			d.full(name), info.Mode().Perm())
	}
	return nil
}

// open opens a file of ours, and makes it where there is none. It waits for nobody: what is no file is not opened.
func (d *Dir) open(name string) (*os.File, error) {
	for range 100 { // each turn is one in which somebody else has made or removed it meanwhile
		before, err := d.root.Lstat(d.name(name))
		if errors.Is(err, fs.ErrNotExist) {
			f, err := d.root.OpenFile(d.name(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			return f, err
		}
		if err != nil {
			return nil, err
		}
		if err := d.check(name, before, 0); err != nil {
			return nil, err
		}
		f, err := d.root.OpenFile(d.name(name), os.O_RDWR|nonblock, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && os.SameFile(info, before) {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s is created and removed again and again", d.full(name))
}

// A Lock is held by one process at a time. The kernel releases it when that process ends, however it ends.
type Lock struct {
	d    *Dir
	name string
	f    *os.File
}

// TryLock takes a lock, or fails with ErrHeld. The lock is an empty file, which stays when the lock is released.
func (d *Dir) TryLock(name string) (*Lock, error) {
	for range 100 {
		f, err := d.open(name)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", d.full(name), err)
		}
		// What was locked may have been removed, or renamed, by who had the lock before.
		if l := (&Lock{d, name, f}); l.Holds() {
			return l, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s is created and removed again and again", d.full(name))
}

// Lock waits for a lock until ctx ends.
func (d *Dir) Lock(ctx context.Context, name string) (*Lock, error) {
	for {
		l, err := d.TryLock(name)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(lockEvery):
		}
	}
}

// Holds reports whether the lock is one that others respect: its file is still there. Who finds it removed makes
// another.
func (l *Lock) Holds() bool {
	locked, err := l.f.Stat()
	if err != nil {
		return false
	}
	there, err := l.d.root.Lstat(l.d.name(l.name))
	return err == nil && os.SameFile(there, locked)
}

// Unlock releases the lock. It may be called more than once.
func (l *Lock) Unlock() error {
	if err := l.f.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Remove removes the lock's file, and releases the lock: who waits for it makes another.
func (l *Lock) Remove() error {
	return errors.Join(l.d.root.Remove(l.d.name(l.name)), l.Unlock())
}
