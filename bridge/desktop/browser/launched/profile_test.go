//go:build linux

package launched

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// temporary gives the test its own directory for temporary files.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func made(t *testing.T) *profile {
	t.Helper()
	p := testkit.Must(newProfile())(t)
	for _, name := range []string{"Default/Cache/data", "Local State"} {
		path := filepath.Join(p.path, name)
		testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte("x"), 0o600))
	}
	return p
}

// precious makes a directory that must stay unchanged.
func precious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600))
	t.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "precious" {
			t.Errorf("what is elsewhere was touched: %q, %v", text, err)
		}
	})
	return dir
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAProfileIsOfThisUserAndGoes(t *testing.T) {
	dir := temporary(t)
	p := made(t)
	if info, err := os.Stat(p.path); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(p.path) != dir {
		t.Errorf("%s: %v, %v", p.path, info.Mode(), err)
	}
	// The target of a link in it stays.
	testkit.OK(t, os.Symlink(precious(t), filepath.Join(p.path, "Default", "link")))
	if n, err := sweep(); n > 0 || err != nil || !there(p.path) {
		t.Errorf("one in use was swept: %d, %v", n, err)
	}
	if err := p.remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A child process of the browser writes for as long as its profile is being removed. A later process
// removes the rest.
func TestAProfileThatIsWrittenToCanBeSwept(t *testing.T) {
	dir := temporary(t)
	p, end, over := made(t), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-end:
				return
			default:
			}
			found, _ := filepath.Glob(filepath.Join(dir, profilePrefix+"*"))
			for _, path := range found {
				_ = os.WriteFile(filepath.Join(path, "late"), nil, 0o600) // the directory may be gone
			}
		}
	}()
	testkit.Eventually(t, "a file comes when the directory is about to go", func() bool {
		err := p.empty()
		if err == nil { // it was fast enough
			p.close()
			p = made(t)
		}
		return errors.Is(err, syscall.ENOTEMPTY)
	})
	close(end)
	<-over
	p.close()
	if n, err := sweep(); n != 1 || err != nil || there(p.path) {
		t.Errorf("the rest stays: %d, %v", n, err)
	}
}

// A link, a directory or a file that has taken a profile's place stays.
func TestOnlyTheProfileThatWasMadeIsRemoved(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, path string) error{
		"a link to elsewhere": func(t *testing.T, path string) error { return os.Symlink(precious(t), path) },
		"another directory": func(t *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "Local State"), nil, 0o600))
		},
		"a file": func(t *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			temporary(t)
			p := made(t)
			testkit.OK(t, os.Rename(p.path, p.path+".moved"), take(t, p.path))
			if err := p.remove(); err == nil || !strings.Contains(err.Error(), p.path+" stays") {
				t.Errorf("it says %v", err)
			}
			if !there(p.path) {
				t.Error("it is gone")
			}
		})
	}
}

// A later process removes the profile of a killed process, and nothing that only looks like a profile.
func TestSweep(t *testing.T) {
	dir := temporary(t)
	dead := made(t)
	dead.close() // as the kernel does when a process is killed
	mark := func(path string) error {
		return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, markName), nil, 0o600))
	}
	keep := map[string]func(path string) error{
		"no-mark": func(path string) error { return os.Mkdir(path, 0o700) },
		"mark-that-is-a-link": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "m"), nil, 0o600),
				os.Symlink("m", filepath.Join(path, markName)))
		},
		"mark-that-is-a-fifo": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), syscall.Mkfifo(filepath.Join(path, markName), 0o600))
		},
		"a-link": func(path string) error {
			elsewhere := precious(t)
			return errors.Join(os.WriteFile(filepath.Join(elsewhere, markName), nil, 0o600), os.Symlink(elsewhere, path))
		},
		"a-file":          func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a-dangling-link": func(path string) error { return os.Symlink("nowhere", path) },
	}
	if os.Geteuid() == 0 {
		keep["another-user"] = func(path string) error {
			return errors.Join(mark(path), os.Chown(path, testkit.OtherUID, -1))
		}
	}
	for name, make := range keep {
		testkit.OK(t, make(filepath.Join(dir, profilePrefix+name)))
	}
	elsewhere := filepath.Join(dir, "else", profilePrefix+"x") // not in the directory itself
	testkit.OK(t, os.Mkdir(filepath.Dir(elsewhere), 0o700), mark(elsewhere))
	if n, err := sweep(); n != 1 || err != nil || there(dead.path) {
		t.Errorf("a dead process's profile stays: %d, %v", n, err)
	}
	for name := range keep {
		if !there(filepath.Join(dir, profilePrefix+name)) {
			t.Errorf("%s is gone", name)
		}
	}
	if !there(elsewhere) {
		t.Error("what is elsewhere is gone")
	}
}

func TestAProfileThatCannotBeMadeIsOneSentence(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := newProfile(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make a profile for "+
		"the browser") {
		t.Error(err)
	}
}
