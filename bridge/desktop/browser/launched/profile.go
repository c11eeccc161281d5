package launched

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

const (
	profilePrefix = "pagewire-browser-"
	// markName is the file that marks a profile as Pagewire's. Its maker locks it, and the browser
	// inherits the lock.
	markName = "pagewire-profile"
)

// A profile is a browser's directory. It is emptied below the opened directory, in case its name
// leads elsewhere by then. Then an empty directory of that name is removed.
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
	if p.root, err = os.OpenRoot(path); err == nil {
		// a mark is always locked: sweep removes a profile whose mark is not
		const fresh = markName + ".new"
		if p.mark, err = p.root.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL,
			0o600); err == nil {
			err = errors.Join(userdir.LockFile(p.mark), p.root.Rename(fresh, markName))
		}
	}
	if err != nil {
		p.close()
		os.RemoveAll(path)
		return nil, fmt.Errorf("make a profile for the browser: %w", err)
	}
	return p, nil
}

func (p *profile) close() {
	if p.root != nil {
		p.root.Close()
	}
	p.mark.Close()
}

// removeTime is how long a browser's last processes may write to its profile. On a busy machine
// they do for seconds.
const removeTime = 10 * time.Second

// remove removes the profile. The error names the rest, and the reason.
func (p *profile) remove() error {
	defer p.close()
	here, err := p.root.Stat(".")
	if there, failed := os.Lstat(p.path); err == nil && failed == nil && !os.SameFile(here, there) {
		return fmt.Errorf("the profile %s stays: something else has its name now", p.path)
	}
	// A child process that is just starting would make the removed directory again.
	end := time.Now().Add(removeTime)
	for used(p.path) && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
	for err = p.empty(); err != nil && time.Now().Before(end); err = p.empty() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("the profile %s stays, or what is left of it: %w", p.path, err)
	}
	return nil
}

// empty removes the contents of the directory, the mark last, and then the directory.
func (p *profile) empty() error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if name != markName {
			err = errors.Join(err, p.root.RemoveAll(name))
		}
	}
	if err != nil {
		return err
	}
	if err := p.root.RemoveAll(markName); err != nil {
		return err
	}
	// os.Remove would also remove a file of that name.
	err = syscall.Rmdir(p.path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, p.root.WriteFile(markName, nil, 0o600)) // unlocked: sweep finds the rest
}

// Sweep removes the profiles that killed processes have left in the directory for temporary files.
func Sweep(log *slog.Logger) {
	if _, err := sweep(); err != nil {
		log.Warn("after a launched browser", "error", err)
	}
}

// sweep is Sweep. It returns how many it has removed.
func sweep() (removed int, err error) {
	// the pattern is well formed
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), profilePrefix+"*"))
	for _, path := range found {
		p := abandoned(path)
		if p == nil {
			continue
		}
		if failed := p.remove(); failed != nil {
			err = errors.Join(err, failed)
		} else {
			removed++
		}
	}
	return removed, err
}

// abandoned opens an unused profile: a directory of this user with an unlocked mark. Otherwise it
// returns nil.
func abandoned(path string) *profile {
	before, err := os.Lstat(path)
	if err != nil || !before.IsDir() || !userdir.OwnedByUs(before) {
		return nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil
	}
	p := &profile{path: path, root: root}
	here, err := root.Stat(".")
	if err == nil && os.SameFile(here, before) {
		if info, err := root.Lstat(markName); err == nil && info.Mode().IsRegular() &&
			userdir.OwnedByUs(info) {
			if p.mark, err = root.OpenFile(markName, os.O_RDWR, 0); err == nil &&
				userdir.LockFile(p.mark) == nil {
				return p
			}
		}
	}
	p.close()
	return nil
}
