//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A fileChange is what is to become of some files: all of it is done, or nothing. A file is replaced as a whole,
// keeps its permissions and its owner, and if it is a link, what it leads to is replaced. What is no file is refused.
type fileChange struct {
	title string // of the program that reads them
	files []*changedFile
}

type changedFile struct {
	path string // where links lead to
	name string // the link, if it is one
	link bool
	mode fs.FileMode
	owner
	// was is what the file held when it was looked at, and is to hold; nil: it was not there, or is not to be.
	was, is []byte
	// secret says that it must not be one that others may read.
	secret bool
	// rank is how early it is written, and how late it is removed: what was there is kept before it is changed, and
	// on record until all else is done.
	rank int
	// staged is a file beside it that holds is already.
	staged string
}

// An owner is a user and a group, by their numbers.
type owner struct{ uid, gid int }

// unowned is the owner of what has none, or of what nobody is to be given.
var unowned = owner{-1, -1}

// file is one that may be changed: by setting what it is to hold.
func (c *fileChange) file(path string) (*changedFile, error) {
	f := &changedFile{name: path, mode: 0o600, owner: unowned} // such files hold other servers' keys
	var err error
	if f.path, f.link, err = follow(path); err != nil {
		return nil, err
	}
	for _, known := range c.files {
		if known.path == f.path {
			return known, nil
		}
	}
	text, info, err := readRegular(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		f.mode, f.owner, f.was, f.is = info.Mode().Perm(), ownerOf(info), text, bytes.Clone(text)
	}
	c.files = append(c.files, f)
	return f, nil
}

// follow is where links lead to. One that leads to what is not there is refused: a file in its place would take the
// link from its user, and one at its end may be where a disk is mounted later.
func follow(path string) (real string, link bool, err error) {
	real, err = filepath.EvalSymlinks(path)
	if err == nil {
		info, err := os.Lstat(path)
		return real, err == nil && info.Mode()&fs.ModeSymlink != 0, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil && at != filepath.Dir(at) {
			continue
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if _, err := os.Stat(at); err != nil {
				to, _ := os.Readlink(at)
				return "", false, hintError{fmt.Errorf("%s is a link to %s, which is not there", at, to),
					"nothing was written: mend the link or remove it, and try again"}
			}
		}
		return path, false, nil
	}
}

// readRegular reads what is a file and no link. It waits for nobody: a FIFO may never have another end.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, nil, hintError{fmt.Errorf("%s is %s, and must be a file", path, kind(named.Mode())),
			"nothing was written: move it away, and try again"}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO that has come in between is opened at once
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !os.SameFile(named, info) {
		err = hintError{fmt.Errorf("%s was replaced while it was opened", path), "nothing was written: try again"}
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(f)
	return text, info, err
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// settings is what a file of a person's holds, for looking only.
func settings(path string) ([]byte, error) {
	real, _, err := follow(path)
	if err != nil {
		return nil, err
	}
	text, _, err := readRegular(real)
	return text, err
}

func (f *changedFile) changed() bool {
	return (f.was == nil) != (f.is == nil) || !bytes.Equal(f.was, f.is)
}

// changed are the files that are to be other than they are, in the order in which that is done: what is to go goes
// last.
func (c *fileChange) changed() (all []*changedFile) {
	for _, f := range c.files {
		if f.changed() {
			all = append(all, f)
		}
	}
	turn := func(f *changedFile) int {
		if f.is == nil {
			return 1 + f.rank
		}
		return -f.rank
	}
	slices.SortStableFunc(all, func(a, b *changedFile) int { return turn(a) - turn(b) })
	return all
}

// newDirs are the directories that the change will make, outer ones first.
func (c *fileChange) newDirs() (dirs []string) {
	for _, f := range c.changed() {
		var missing []string
		for dir := filepath.Dir(f.path); f.is != nil; dir = filepath.Dir(dir) {
			if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
				break
			}
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		for _, dir := range missing {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// do changes the files, unless ctx ends before the first. All is on the disk before that, so that a full one changes
// nothing. If one cannot be changed, those before it are put back.
func (c *fileChange) do(ctx context.Context) (err error) {
	all, dirs := c.changed(), c.newDirs()
	defer func() {
		for _, f := range all {
			f.unstage()
		}
		if err != nil {
			removeEmpty(dirs)
		}
	}()
	for _, f := range all {
		if err := f.may(c.title); err != nil {
			return err
		}
		if err := f.stage(); err != nil {
			return hintError{err, "nothing was written"}
		}
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	for i, f := range all {
		if err := f.replace(c.title); err != nil {
			if failed := c.putBack(all[:i]); failed != nil {
				return hintError{fmt.Errorf("%w; and what was written before could not be put back: %v", err, failed),
					"--remove takes back what is written"}
			}
			return err
		}
	}
	return nil
}

// putBack undoes what was done. Where that fails, what was done before stays: what is kept and the record, without
// which nobody could take back the rest.
func (c *fileChange) putBack(done []*changedFile) error {
	for _, f := range slices.Backward(done) {
		f.was, f.is = f.is, f.was
		if err := f.stage(); err != nil {
			return err
		}
		if err := f.replace(c.title); err != nil {
			return err
		}
	}
	return nil
}

// may says what forbids to change a file.
func (f *changedFile) may(title string) error {
	now, _, err := readRegular(f.path)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !gone:
		return err
	case !bytes.Equal(now, f.was) || gone != (f.was == nil):
		// The program may have written it meanwhile: some keep their state there.
		return hintError{fmt.Errorf("%s changed while it was merged", f.path),
			"nothing was written; quit " + title + " and try again"}
	case f.was == nil || runtime.GOOS == "windows" && f.mode&0o200 != 0:
		return nil
	case f.mode&0o200 == 0:
		return hintError{fmt.Errorf("%s is read-only (its mode is %04o)", f.path, f.mode),
			"nothing was written: chmod u+w " + f.path + ", and try again"}
	case f.uid >= 0 && f.uid != os.Geteuid() && os.Geteuid() != 0:
		return hintError{fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d)", f.path, f.uid,
			os.Geteuid()), "nothing was written: run this as that user"}
	case f.secret && f.mode&0o077 != 0:
		err := fmt.Errorf("others may read %s (its mode is %04o), and the token must not get there", f.path, f.mode)
		return hintError{err,
			"nothing was written: chmod 600 " + f.path + ", and try again"}
	}
	return nil
}

// stage writes beside a file what it is to hold.
func (f *changedFile) stage() error {
	if f.is == nil {
		return nil
	}
	dir := filepath.Dir(f.path)
	if err := makeDirs(dir); err != nil {
		return err
	}
	to, err := os.CreateTemp(dir, ".pagewire-*")
	if err != nil {
		return err
	}
	f.staged = to.Name()
	if f.owner == unowned {
		f.owner = heirOf(dir)
	}
	_, err = to.Write(f.is)
	return errors.Join(err, f.own(to), to.Chmod(f.mode), to.Sync(), to.Close())
}

// own gives a file that we have made the owner of the one that it replaces.
func (f *changedFile) own(to *os.File) error {
	info, err := to.Stat()
	if err != nil || f.owner == unowned || f.owner == ownerOf(info) {
		return err
	}
	if err := to.Chown(f.uid, f.gid); err != nil {
		return fmt.Errorf("%s cannot keep its owner: %w", f.path, err)
	}
	return nil
}

// heirOf is who what is made in a directory belongs to, if not to us: with root's rights in a user's home, that user.
func heirOf(dir string) owner {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 || ownerOf(info).uid <= 0 {
		return unowned
	}
	return ownerOf(info)
}

// makeDirs makes a directory and those above it, as far as they are not there.
func makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
		return err
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if info, here := os.Stat(dir); here == nil && info.IsDir() {
			return nil // somebody was faster
		}
		return err
	}
	if heir := heirOf(filepath.Dir(dir)); heir != unowned {
		return os.Lchown(dir, heir.uid, heir.gid)
	}
	return nil
}

// unstage removes what stage has made, unless it has taken the file's place.
func (f *changedFile) unstage() {
	if f.staged != "" {
		os.Remove(f.staged)
		f.staged = ""
	}
}

// replace puts what is staged in the place of the old file, if that still is what it was.
func (f *changedFile) replace(title string) error {
	if err := f.may(title); err != nil {
		return err
	}
	switch {
	case f.is == nil && f.link:
		return os.Remove(f.name) // what it leads to somebody else has put there
	case f.is == nil:
		return os.Remove(f.path)
	}
	err := os.Rename(f.staged, f.path)
	if err == nil {
		f.staged = ""
	}
	return err
}

// removeEmpty removes directories, outer ones first in the list, as far as nothing is in them, and returns the
// others. What is no directory any more stays: os.Remove would take a link that somebody has put there.
func removeEmpty(dirs []string) (left []string) {
	for _, dir := range slices.Backward(dirs) {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = slices.Insert(left, 0, dir)
		}
	}
	return left
}

// turnTime is how long one who writes waits for another to end, which takes 0.1 s. Then that one was stopped, and what
// has changed meanwhile is refused anyway.
const turnTime = 10 * time.Second

// takeTurn waits until no other config writes in a home, so that two that are started at once both do what they are to.
// The directory itself is locked, which leaves nothing there.
func takeTurn(ctx context.Context, home string) (end func()) {
	dir, err := os.OpenFile(home, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return func() {}
	}
	for until := time.Now().Add(turnTime); !tryLock(dir) && ctx.Err() == nil && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	return func() { dir.Close() }
}

var errInterrupted = errors.New("interrupted, and nothing was written")

// interruptTime is how long what was interrupted has to end in order. Then it hangs: files can be on the other side
// of a network.
const interruptTime = time.Second

// interruptible runs what reads and writes files. When ctx ends it returns, though the system may not have let the
// files go.
func interruptible(ctx context.Context, run func() error) error {
	over := make(chan error, 1)
	go func() { over <- run() }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-over:
		return err
	case <-time.After(interruptTime):
		return hintError{errors.New("interrupted: the system has not answered for a file"),
			"look whether the disk or the network that it is on hangs"}
	}
}
