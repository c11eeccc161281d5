//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// A fileChange is what is to become of some files: all of it is done, or nothing. A file is replaced as a whole, keeps
// its permissions, and if it is a link, what it leads to is replaced.
type fileChange struct {
	title string // of the program that reads them
	files []*changedFile
}

type changedFile struct {
	path string // where links lead to
	link bool
	mode fs.FileMode
	// was is what the file held when it was looked at, and is to hold; nil: it was not there, or is not to be.
	was, is []byte
	// secret says that it must not be one that others may read.
	secret bool
	// first says that it is written before the others: what was there is kept before it is changed.
	first bool
}

// file is one that may be changed: by setting what it is to hold.
func (c *fileChange) file(path string) (*changedFile, error) {
	f := &changedFile{path: path, mode: 0o600} // such files hold other servers' keys
	if real, err := filepath.EvalSymlinks(path); err == nil {
		info, err := os.Lstat(path)
		f.path, f.link = real, err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	for _, known := range c.files {
		if known.path == f.path {
			return known, nil
		}
	}
	text, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		info, err := os.Stat(f.path)
		if err != nil {
			return nil, err
		}
		f.mode, f.was, f.is = info.Mode().Perm(), append([]byte{}, text...), append([]byte{}, text...)
	}
	c.files = append(c.files, f)
	return f, nil
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
		switch {
		case f.is == nil:
			return 2
		case f.first:
			return 0
		}
		return 1
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

// do changes the files. If one cannot be changed, those before it are put back.
func (c *fileChange) do() error {
	var done []*changedFile
	dirs := c.newDirs()
	for _, f := range c.changed() {
		err := f.may(c.title)
		if err == nil {
			err = f.write()
		}
		if err != nil {
			slices.Reverse(done)
			for _, f := range done {
				f.was, f.is = f.is, f.was
				err = errors.Join(err, f.write())
			}
			removeEmpty(dirs)
			return err
		}
		done = append(done, f)
	}
	return nil
}

// may says what forbids to change a file.
func (f *changedFile) may(title string) error {
	now, err := os.ReadFile(f.path)
	switch {
	case !bytes.Equal(now, f.was) || errors.Is(err, fs.ErrNotExist) != (f.was == nil):
		// The program may have written it meanwhile: some keep their state there.
		return hintError{fmt.Errorf("%s changed while it was merged", f.path),
			"nothing was written; quit " + title + " and try again"}
	case f.was == nil || runtime.GOOS == "windows" && f.mode&0o200 != 0:
		return nil
	case f.mode&0o200 == 0:
		return hintError{fmt.Errorf("%s is read-only (its mode is %04o)", f.path, f.mode),
			"nothing was written: chmod u+w " + f.path + ", and try again"}
	case f.secret && f.mode&0o077 != 0:
		err := fmt.Errorf("others may read %s (its mode is %04o), and the token must not get there", f.path, f.mode)
		return hintError{err,
			"nothing was written: chmod 600 " + f.path + ", and try again"}
	}
	return nil
}

// write puts a new file in the place of the old one.
func (f *changedFile) write() error {
	if f.is == nil {
		return os.Remove(f.path)
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	to, err := os.CreateTemp(dir, ".pagewire-*")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // fails when it has been renamed
	_, err = to.Write(f.is)
	if err = errors.Join(err, to.Chmod(f.mode), to.Sync(), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), f.path)
}

// removeEmpty removes directories, outer ones first in the list, as far as nothing is in them, and returns the others.
func removeEmpty(dirs []string) (left []string) {
	for _, dir := range slices.Backward(dirs) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = slices.Insert(left, 0, dir)
		}
	}
	return left
}
