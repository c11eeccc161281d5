//go:build !js

package launched

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/internal/userdir"
)

const (
	profilePrefix = "pagewire-browser-"
	// markName is the file in a profile that says that Pagewire has made it. It is locked as long as the process lives
	// that has made it, or the browser.
	markName = "pagewire-profile"
	markText = "Pagewire has made this directory, and removes it. Process: "
)

// A profile is a browser's directory, made in this run. What is removed is what is below the directory that was made,
// whatever its name stands for meanwhile, and then an empty directory of that name.
type profile struct {
	path string
	root *os.Root
	mark *os.File
}

// newProfile makes a profile in the directory for temporary files.
func newProfile() (*profile, error) {
	path, err := os.MkdirTemp("", profilePrefix) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("make a profile for the browser: %w", err)
	}
	p := &profile{path: path}
	if err := p.sign(); err != nil {
		os.Remove(path) // where it is empty
		return nil, fmt.Errorf("make a profile for the browser: %w", err)
	}
	return p, nil
}

// sign puts the mark in the profile. It is there only when it is locked: a profile without is nobody's to remove.
func (p *profile) sign() (err error) {
	if p.root, err = os.OpenRoot(p.path); err != nil {
		return err
	}
	const fresh = markName + ".new"
	if p.mark, err = p.root.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		if err = userdir.LockFile(p.mark); err == nil {
			_, err = fmt.Fprintf(p.mark, "%s%d\n", markText, os.Getpid())
		}
	}
	if err == nil {
		err = p.root.Rename(fresh, markName)
	}
	if err != nil {
		p.root.Remove(fresh)
		p.close()
	}
	return err
}

func (p *profile) close() {
	p.root.Close()
	if p.mark != nil {
		p.mark.Close()
	}
}

// removeTime is how long the last processes of a browser may write to its profile: on a busy machine seconds after it
// was killed.
const removeTime = 10 * time.Second

// remove removes the profile. The error says what is left, and why.
func (p *profile) remove() error {
	defer p.close()
	if err := p.check(); errors.Is(err, fs.ErrNotExist) {
		return nil // somebody was faster
	} else if err != nil {
		return fmt.Errorf("the profile %s stays: %w", p.path, err)
	}
	err := p.empty()
	for end := time.Now().Add(removeTime); err != nil && time.Now().Before(end); err = p.empty() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("the profile %s stays, or what is left of it: %w", p.path, err)
	}
	return nil
}

// check says what is wrong with the directory, or with what has its name.
func (p *profile) check() error {
	here, err := p.root.Stat(".")
	if err != nil {
		return err
	}
	there, err := os.Lstat(p.path)
	switch {
	case err != nil:
		return err
	case !there.IsDir() || !os.SameFile(here, there):
		return errors.New("something else has its name now")
	case !userdir.OwnedByUs(here):
		return errors.New("it belongs to another user now")
	}
	made, err := p.mark.Stat()
	if err != nil {
		return err
	}
	if mark, err := p.root.Lstat(markName); err != nil || !os.SameFile(made, mark) {
		return errors.New("it has no mark of ours any more")
	}
	return nil
}

// empty removes what is in the directory, the mark last, and then the directory.
func (p *profile) empty() error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != markName {
			if err := p.root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	if err := p.root.Remove(markName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// os.Remove would remove a file of that name, too.
	if err := syscall.Rmdir(p.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweep removes the profiles that dead processes have left, and returns how many, and what is to be said about others.
// Such a profile is a directory of this user, here, with a mark that nobody has locked: not the process that has made
// it, nor the browser, which inherits the lock.
func sweep() (removed int, left []error) {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), profilePrefix+"*"))
	if err != nil {
		return 0, nil
	}
	for _, path := range found {
		p, err := abandoned(path)
		if err == nil && p != nil {
			if err = p.remove(); err == nil {
				removed++
			}
		}
		if err != nil {
			left = append(left, err)
		}
	}
	return removed, left
}

// abandoned opens a profile that nobody uses; nil if it is no such.
func abandoned(path string) (*profile, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, nil // it has just been removed
	}
	if !userdir.OwnedByUs(before) {
		return nil, nil // another user's, who launches browsers too, or wants our log to say something
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s stays: it has the name of a profile of ours, and is no directory", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil
	}
	p := &profile{path: path, root: root}
	if info, err := root.Lstat(markName); err != nil || !info.Mode().IsRegular() || !userdir.OwnedByUs(info) {
		p.close()
		return nil, nil // being made, or not by us
	}
	if p.mark, err = root.OpenFile(markName, os.O_RDWR, 0); err == nil {
		err = userdir.LockFile(p.mark)
	}
	if err != nil {
		p.close()
		return nil, nil // it is in use
	}
	text := make([]byte, len(markText))
	if _, err := p.mark.ReadAt(text, 0); err != nil || !strings.HasPrefix(string(text), markText) {
		p.close()
		return nil, fmt.Errorf("the profile %s stays: its mark is not ours", path)
	}
	return p, nil
}
