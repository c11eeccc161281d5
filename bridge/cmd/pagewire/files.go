package main

import (
	"bytes"
	"cmp"
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

// A fileChange changes several files: all of them or none. It replaces a file as a whole, and keeps its permissions and
// its owner. If a name is a link, it replaces the target. It refuses a file that is not regular.
type fileChange struct {
	title string // of the program that reads the files
	files []*changedFile
}

type changedFile struct {
	name string // as given, which may be a link
	path string // with links resolved
	mode fs.FileMode
	info fs.FileInfo // before the change; nil if the file did not exist
	// was and is are the texts before and after the change; nil means no file.
	was, is []byte
	secret  bool // the text is has a token, so other users must not be able to read the file
	// order is the file's place in the change. The record comes first when files are written, and last when they are
	// restored. So if the process dies, every file that it has written is on record.
	order  int
	staged string // a temporary file in the same directory, with the text is
}

// file adds a file to the change. To change the file, set its is.
func (c *fileChange) file(name string) (*changedFile, error) {
	path, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(c.files, func(f *changedFile) bool { return f.path == path }); i >= 0 {
		return c.files[i], nil
	}
	f := &changedFile{name: name, path: path, mode: 0o600} // such files hold the keys of other servers
	f.was, f.info, err = readRegular(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if f.info != nil {
		f.mode, f.is = f.info.Mode().Perm(), bytes.Clone(f.was)
	}
	c.files = append(c.files, f)
	return f, nil
}

func (f *changedFile) isLink() bool { return f.name != f.path && f.info != nil && isLink(f.name) }

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// resolve follows links. It refuses a link to a missing file, which may be on a disk that is not mounted.
func resolve(name string) (path string, err error) {
	path, err = filepath.EvalSymlinks(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if isLink(name) {
		to, _ := os.Readlink(name)
		return "", hintError{fmt.Errorf("%s is a link to %s, which is not there", name, to),
			"nothing was written: mend the link or remove it, and try again"}
	}
	return name, nil
}

// readRegular reads a regular file. It never waits for a FIFO, whose other end may never open.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, nil, hintError{fmt.Errorf("%s is not a regular file (its mode is %v)", path, named.Mode()),
			"nothing was written: move it away, and try again"}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that a FIFO in its place would open at once
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

// settings reads a file, with the checks that precede a change.
func settings(name string) ([]byte, error) {
	f, err := new(fileChange).file(name)
	if err == nil && f.info == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return f.was, nil
}

func (f *changedFile) changed() bool {
	return (f.was == nil) != (f.is == nil) || !bytes.Equal(f.was, f.is)
}

// changed returns the files that the change writes or removes, in order. Removals come after writes.
func (c *fileChange) changed() []*changedFile {
	all := slices.DeleteFunc(slices.Clone(c.files), func(f *changedFile) bool { return !f.changed() })
	slices.SortStableFunc(all, func(a, b *changedFile) int { return cmp.Or(a.order-b.order, removal(a)-removal(b)) })
	return all
}

func removal(f *changedFile) int {
	if f.is == nil {
		return 1
	}
	return 0
}

// newDirs returns the directories that the change will make, outer ones first.
func (c *fileChange) newDirs() (dirs []string) {
	for _, f := range c.changed() {
		at := len(dirs)
		for dir := filepath.Dir(f.path); f.is != nil && !slices.Contains(dirs, dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
				break
			}
			dirs = slices.Insert(dirs, at, dir)
		}
	}
	return dirs
}

// do changes the files, unless ctx ends first. It writes all texts to temporary files before the first replacement, so
// that a full disk changes nothing. If one file cannot be changed, it restores the files before it.
func (c *fileChange) do(ctx context.Context) (err error) {
	all, dirs := c.changed(), c.newDirs()
	defer func() {
		for _, f := range all {
			if f.staged != "" {
				os.Remove(f.staged)
			}
		}
		if err != nil {
			removeEmpty(dirs)
		}
	}()
	for _, f := range all {
		if err := f.check(c.title); err != nil {
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
			if failed := c.restore(all[:i]); failed != nil {
				return hintError{fmt.Errorf("%w; and what was written before could not be restored: %v", err, failed),
					"--remove takes back what is written"}
			}
			return err
		}
	}
	return nil
}

// restore undoes replacements, the last one first. If that fails for one, the earlier ones stay, with the record.
func (c *fileChange) restore(done []*changedFile) error {
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

// check returns an error if the file has changed or must not be changed.
func (f *changedFile) check(title string) error {
	now, info, err := readRegular(f.path)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !gone:
		return err
	case !bytes.Equal(now, f.was) || gone != (f.was == nil):
		// The program may have written it: some programs keep their state there.
		return hintError{fmt.Errorf("%s changed while it was merged", f.path),
			"nothing was written; quit " + title + " and try again"}
	case gone || runtime.GOOS == "windows" && f.mode&0o200 != 0:
		return nil
	case f.mode&0o200 == 0:
		return hintError{fmt.Errorf("%s is read-only (its mode is %04o)", f.path, f.mode),
			"nothing was written: chmod u+w " + f.path + ", and try again"}
	case os.Geteuid() != 0 && ownerOf(info).uid != os.Geteuid():
		return hintError{fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d)", f.path,
			ownerOf(info).uid, os.Geteuid()), "nothing was written: run this as that user"}
	case f.secret && f.mode&0o077 != 0:
		return hintError{fmt.Errorf("others may read %s (its mode is %04o), and the token must not get there", f.path,
			f.mode), "nothing was written: chmod 600 " + f.path + ", and try again"}
	}
	return nil
}

// stage writes the new text into a temporary file in the same directory.
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
	_, err = to.Write(f.is)
	return errors.Join(err, f.giveAway(), to.Chmod(f.mode), to.Sync(), to.Close())
}

// giveAway gives the temporary file the owner of the file that it replaces.
func (f *changedFile) giveAway() error {
	if f.info == nil {
		return inherit(f.staged)
	}
	made, err := os.Lstat(f.staged)
	if err == nil && ownerOf(made) != ownerOf(f.info) {
		if err = os.Lchown(f.staged, ownerOf(f.info).uid, ownerOf(f.info).gid); err != nil {
			err = fmt.Errorf("%s cannot keep its owner: %w", f.path, err)
		}
	}
	return err
}

// inherit gives a file to the owner of its directory, if root has made it in a user's directory.
func inherit(path string) error {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || os.Geteuid() != 0 || ownerOf(dir).uid <= 0 {
		return err
	}
	return os.Lchown(path, ownerOf(dir).uid, ownerOf(dir).gid)
}

// makeDirs is os.MkdirAll with inherit.
func makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
		return err
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil // another process was faster
		}
		return err
	}
	return inherit(dir)
}

// replace puts the staged file in the place of the old one, or removes the old one. It fails if that has changed.
func (f *changedFile) replace(title string) error {
	if err := f.check(title); err != nil {
		return err
	}
	if f.is == nil {
		return os.Remove(f.name) // a link itself, and not its target, which another program made
	}
	err := os.Rename(f.staged, f.path)
	if err == nil {
		f.staged = ""
	}
	return err
}

// removeEmpty removes empty directories, outer ones last. It avoids os.Remove, which would also remove a link.
func removeEmpty(dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		_ = syscall.Rmdir(dir) // it fails if the directory is not empty
	}
}

// turnTime bounds the wait for another config process. It writes for 0.1 s, unless it is suspended.
const turnTime = 10 * time.Second

// takeTurn waits until no other config process writes in a home. It locks the directory, so it leaves no file there.
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

// interruptible runs a function that reads and writes files. It returns at most one second after the end of ctx, even
// if the system still waits for a file, which can be on the other side of a network.
func interruptible(ctx context.Context, run func() error) error {
	over, hangs := make(chan error, 1), make(chan struct{})
	go func() { over <- run() }()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { close(hangs) }) })()
	select {
	case err := <-over:
		return err
	case <-hangs:
		return hintError{errors.New("interrupted: the system has not answered for a file"),
			"look whether the disk or the network that it is on hangs"}
	}
}
