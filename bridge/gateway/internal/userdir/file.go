//go:build !js

package userdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// MaxFile is the longest file that ReadFile gives and WriteFile writes, in bytes.
const MaxFile = 64 << 10

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

// open opens a file of ours, and makes it if create is set. It waits for nobody: what is no file is not opened.
func (d *Dir) open(name string, flag int, create bool) (*os.File, error) {
	for range 100 { // each turn is one in which somebody else has made or removed it meanwhile
		before, err := d.root.Lstat(d.name(name))
		if errors.Is(err, fs.ErrNotExist) && create {
			f, err := d.root.OpenFile(d.name(name), flag|os.O_CREATE|os.O_EXCL, 0o600)
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
		f, err := d.root.OpenFile(d.name(name), flag|nonblock, 0)
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

// ReadFile gives what a file holds. It fails with fs.ErrNotExist if there is none, and with a sentence if it is no file
// of this user's, others may write to it, or it is longer than MaxFile.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	f, err := d.open(name, os.O_RDONLY, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes, so Pagewire did not write it: look at it, and remove it",
			d.full(name), MaxFile)
	}
	return text, err
}

// WriteFile puts text in place of what a file held: who reads sees the one or the other, also after a power cut. What
// is no file of this user's is left as it is, and an error. Of several that write at once the last one stays.
func (d *Dir) WriteFile(name string, text []byte) error {
	if len(text) > MaxFile {
		return fmt.Errorf("%d bytes for %s: %d are the most", len(text), d.full(name), MaxFile)
	}
	if info, err := d.root.Lstat(d.name(name)); err == nil {
		if err := d.check(name, info, 0); err != nil {
			return err
		}
	}
	// The lock is the new file itself: what a killed process has left there is the next one's to overwrite.
	fresh, err := d.Lock(context.Background(), name+".new")
	if err != nil {
		return err
	}
	defer fresh.Unlock()
	if err := fresh.f.Truncate(0); err != nil {
		return err
	}
	if _, err := fresh.f.WriteAt(text, 0); err != nil {
		return err
	}
	if err := fresh.f.Sync(); err != nil {
		return err
	}
	if err := d.root.Rename(d.name(name+".new"), d.name(name)); err != nil {
		return err
	}
	return d.sync()
}

// sync has the names in the directory written to the disk.
func (d *Dir) sync() error {
	if runtime.GOOS == "windows" {
		return nil // where a directory cannot be
	}
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Names lists the files, locks and sockets that are there, as they are called here. What is neither is not in the list.
func (d *Dir) Names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), d.prefix)
		if ours && name != "" && (e.Type() == 0 || e.Type() == fs.ModeSocket) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Remove removes a file or a socket of this user's. What is something else stays, and is an error.
func (d *Dir) Remove(name string) error {
	info, err := d.root.Lstat(d.name(name))
	if err != nil {
		return err
	}
	want := info.Mode().Type()
	if want != fs.ModeSocket {
		want = 0
	}
	if err := d.check(name, info, want); err != nil {
		return err
	}
	return d.root.Remove(d.name(name))
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
		f, err := d.open(name, os.O_RDWR, true)
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
