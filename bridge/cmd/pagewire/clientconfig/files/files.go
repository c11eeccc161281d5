// Package files changes the settings of other programs: several files at once, or none.
//
// It never changes a file that another process has changed meanwhile, or that belongs to another
// user, never follows a link to a file that is not there, and never leaves half a file.
package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

// A Change changes several files. It writes all texts to temporary files before the first
// replacement, so that a full disk changes nothing, and it replaces a file as a whole. A file keeps
// its permissions and its owner. If a name is a link, the target is replaced. A file that is not
// regular is refused.
type Change struct {
	Title string // of the program that reads the files
	Files []*File
	// Public means that others may read a new file. Otherwise only its owner may.
	Public bool
}

// A File is one file of a Change.
type File struct {
	Name string // as given, which may be a link
	path string // with links resolved
	mode fs.FileMode
	info fs.FileInfo // before the change; nil if the file did not exist
	was  []byte      // the text before the change; nil if the file did not exist
	// Is is the text after the change; nil means no file.
	Is     []byte
	Secret bool   // Is has a token, so other users must not be able to read the file
	staged string // a temporary file in the same directory, with the text Is
}

// File adds a file to the change.
func (c *Change) File(name string) (*File, error) {
	path, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(c.Files, func(f *File) bool { return f.path == path }); i >= 0 {
		return c.Files[i], nil
	}
	f := &File{Name: name, path: path, mode: 0o600} // such files hold the keys of other servers
	if c.Public {
		f.mode = 0o644
	}
	f.was, f.info, err = readRegular(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if path != name {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return nil, err
	}
	if f.info != nil {
		f.mode, f.Is = f.info.Mode().Perm(), bytes.Clone(f.was)
	}
	c.Files = append(c.Files, f)
	return f, nil
}

// Changed reports whether the change writes or removes the file.
func (f *File) Changed() bool {
	return (f.was == nil) != (f.Is == nil) || !bytes.Equal(f.was, f.Is)
}

func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// resolve follows links. It refuses a link to a missing file, which may be on a disk that is not
// mounted.
func resolve(name string) (path string, err error) {
	path, err = filepath.EvalSymlinks(name)
	if err != nil && !errors.As(err, new(*fs.PathError)) { // a loop of links, or below a file
		return "", cli.Hint(fmt.Errorf("%s: %w", name, err),
			"nothing was written: move away what is in the way, and try again")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if IsLink(name) {
		to, _ := os.Readlink(name)
		return "", cli.Hint(fmt.Errorf("%s is a link to %s, which is not there", name, to),
			"nothing was written: mend the link or remove it, and try again")
	}
	return name, nil
}

// maxSize bounds a file that is changed, in bytes, since it is read into memory.
const maxSize = 256 << 20

// readRegular reads a regular file. It never waits for a FIFO, whose other end may never open.
func readRegular(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file (its mode is %v)", path, info.Mode())
	case info.Size() > maxSize:
		err = fmt.Errorf("%s is larger than 256 MiB", path)
	default:
		text, err := io.ReadAll(f)
		return text, info, err
	}
	return nil, nil, cli.Hint(err, "nothing was written: move it away, and try again")
}

// Read reads a file, with the checks that precede a change.
func Read(name string) ([]byte, error) {
	f, err := new(Change).File(name)
	if err == nil && f.info == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return f.was, nil
}

// Do makes the change, unless ctx ends first, and returns the names of the files that it has
// written or removed.
func (c *Change) Do(ctx context.Context) (done []string, err error) {
	all := slices.DeleteFunc(slices.Clone(c.Files), func(f *File) bool { return !f.Changed() })
	defer func() {
		for _, f := range all {
			if f.staged != "" {
				os.Remove(f.staged)
			}
		}
	}()
	for _, f := range all {
		if err := f.check(c.Title); err != nil {
			return nil, err
		}
	}
	for _, f := range all {
		if err := f.stage(); err != nil {
			return nil, cli.Hint(err, "nothing was written")
		}
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	for _, f := range all {
		if err := f.replace(c.Title); err != nil {
			if len(done) > 0 {
				err = cli.Hint(err, "written before that: "+strings.Join(done, ", ")+
					"; the same command does the rest")
			}
			return done, err
		}
		done = append(done, f.Name)
	}
	return done, nil
}

// check returns an error if the file has changed or must not be changed.
func (f *File) check(title string) error {
	now, info, err := readRegular(f.path)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !gone:
		return err
	case !bytes.Equal(now, f.was) || gone != (f.was == nil):
		// The program may have written it: some programs keep their state there.
		return cli.Hint(fmt.Errorf("%s changed while it was merged", f.path),
			"nothing was written; quit "+title+" and try again")
	case gone:
		return nil
	case f.mode&0o200 == 0:
		return cli.Hint(fmt.Errorf("%s is read-only (its mode is %04o)", f.path, f.mode),
			"nothing was written: chmod u+w "+f.path+", and try again")
	case os.Geteuid() != 0 && ownerOf(info).uid != os.Geteuid():
		return cli.Hint(fmt.Errorf("%s belongs to another user (its uid is %d, ours is %d)", f.path,
			ownerOf(info).uid, os.Geteuid()), "nothing was written: run this as that user")
	case f.Secret && userdir.Permits(f.mode, 0o077):
		return cli.Hint(fmt.Errorf(
			"others may read %s (its mode is %04o), and the token must not get there", f.path,
			f.mode), "nothing was written: chmod 600 "+f.path+", and try again")
	}
	return nil
}

// stage writes the new text into a temporary file in the same directory.
func (f *File) stage() error {
	if f.Is == nil {
		return nil
	}
	if err := makeDirs(filepath.Dir(f.path)); err != nil {
		return err
	}
	var err error
	if f.staged, err = userdir.Stage(f.path, f.Is, f.mode); err != nil {
		return err
	}
	return f.giveAway()
}

// giveAway gives the temporary file the owner of the file that it replaces.
func (f *File) giveAway() error {
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

// replace puts the staged file in the place of the old one, or removes the old one. It fails if
// that has changed.
func (f *File) replace(title string) error {
	if err := f.check(title); err != nil {
		return err
	}
	if f.Is == nil {
		return os.Remove(f.Name) // a link itself, and not its target, which another program made
	}
	err := os.Rename(f.staged, f.path)
	if err == nil {
		f.staged = ""
	}
	return err
}

// turnTime bounds the wait for another config process. It writes for 0.1 s, unless it is suspended.
const turnTime = 10 * time.Second

// TakeTurn waits until no other config process writes in a home. It locks the directory, so it
// leaves no file there. Where a directory cannot be locked, it does not wait.
func TakeTurn(ctx context.Context, home string) (end func()) {
	dir, err := os.OpenFile(home, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return func() {}
	}
	for until := time.Now().Add(turnTime); errors.Is(userdir.LockFile(dir), userdir.ErrHeld) &&
		ctx.Err() == nil && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	return func() { dir.Close() }
}

var errInterrupted = errors.New("interrupted, and nothing was written")
