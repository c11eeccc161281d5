//go:build !js && linux

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

// temporary gives the test a directory for temporary files of its own.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func made(t *testing.T) *profile {
	t.Helper()
	p, err := newProfile()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Default/Cache/data", "Local State"} {
		path := filepath.Join(p.path, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// precious is a directory that must stay as it is.
func precious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	if info, err := os.Stat(p.path); err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(p.path) != dir ||
		!strings.HasPrefix(filepath.Base(p.path), profilePrefix) {
		t.Errorf("%s: %v, %v", p.path, info.Mode(), err)
	}
	// What a link in it leads to stays.
	if err := os.Symlink(precious(t), filepath.Join(p.path, "Default", "link")); err != nil {
		t.Fatal(err)
	}
	if _, left := sweep(); len(left) > 0 || !there(p.path) {
		t.Errorf("one in use was swept: %v", left)
	}
	if err := p.remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What has taken a profile's place, or is not as it was made, stays, and so does the profile, wherever it is.
func TestOnlyTheProfileThatWasMadeIsRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		exchange func(t *testing.T, path string) error
		says     string
	}{
		"a link to elsewhere": {func(t *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(precious(t), path))
		}, "something else has its name"},
		"another directory": {func(t *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Mkdir(path, 0o700),
				os.WriteFile(filepath.Join(path, "Local State"), nil, 0o600))
		}, "something else has its name"},
		"a file": {func(t *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.WriteFile(path, nil, 0o600))
		}, "something else has its name"},
		"another owner": {func(t *testing.T, path string) error {
			if os.Geteuid() != 0 {
				t.Skip("not shown: only root can give a directory away")
			}
			return os.Chown(path, testkit.OtherUID, -1)
		}, "another user"},
		"no mark": {func(t *testing.T, path string) error { return os.Remove(filepath.Join(path, markName)) },
			"no mark"},
		"a mark that is a link": {func(t *testing.T, path string) error {
			mark := filepath.Join(path, markName)
			return errors.Join(os.Rename(mark, mark+".moved"), os.Symlink(mark+".moved", mark))
		}, "no mark of ours"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := temporary(t)
			p := made(t)
			if err := c.exchange(t, p.path); err != nil {
				t.Fatal(err)
			}
			err := p.remove()
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), p.path) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v; want %q", err, c.says)
			}
			for _, path := range []string{p.path, p.path + ".moved"} {
				if info, err := os.Lstat(path); err == nil && info.IsDir() &&
					!there(filepath.Join(path, "Local State")) {
					t.Errorf("%s is empty", path)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) == 0 {
				t.Error("all is gone")
			}
		})
	}
}

// A later process removes what a killed one has left, and nothing that only looks like it.
func TestSweep(t *testing.T) {
	dir := temporary(t)
	dead := made(t)
	dead.close() // as the kernel does when a process is killed
	keep := map[string]func(path string) error{
		"no-mark": func(path string) error { return os.Mkdir(path, 0o700) },
		"mark-of-something-else": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, markName), []byte("hello"),
				0o600))
		},
		"mark-that-is-a-link": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "m"), []byte(markText+"1\n"),
				0o600), os.Symlink("m", filepath.Join(path, markName)))
		},
		"a-link": func(path string) error {
			elsewhere := precious(t)
			return errors.Join(os.WriteFile(filepath.Join(elsewhere, markName), []byte(markText+"1\n"), 0o600),
				os.Symlink(elsewhere, path))
		},
		"a-file":          func(path string) error { return os.WriteFile(path, []byte(markText), 0o600) },
		"a-dangling-link": func(path string) error { return os.Symlink("nowhere", path) },
	}
	if os.Geteuid() == 0 {
		keep["another-user"] = func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700),
				os.WriteFile(filepath.Join(path, markName), []byte(markText+"1\n"), 0o600),
				os.Chown(path, testkit.OtherUID, -1))
		}
	}
	for name, make := range keep {
		if err := make(filepath.Join(dir, profilePrefix+name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "else"), 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(dir, "else", profilePrefix+"x") // not in the directory itself
	if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.WriteFile(filepath.Join(elsewhere, markName),
		[]byte(markText+"1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	removed, left := sweep()
	said := errors.Join(left...)
	if there(dead.path) || removed != 1 {
		t.Errorf("a dead process's profile stays: %v", said)
	}
	for name := range keep {
		if !there(filepath.Join(dir, profilePrefix+name)) {
			t.Errorf("%s is gone", name)
		}
	}
	if !there(filepath.Join(elsewhere, markName)) {
		t.Error("what is elsewhere is gone")
	}
	for _, name := range []string{"mark-of-something-else", "a-link", "a-file", "a-dangling-link"} {
		if said == nil || !strings.Contains(said.Error(), profilePrefix+name+" stays") {
			t.Errorf("nothing is said of %s: %v", name, said)
		}
	}
}

// What another user has put beside our profiles is not touched, whatever it is, and not a word of it gets into our log.
func TestSweepSaysNothingOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not shown: only root can give a file away")
	}
	dir := temporary(t)
	for name, make := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte(markText), 0o600) },
		"link":      func(path string) error { return os.Symlink(dir, path) },
		"dangling":  func(path string) error { return os.Symlink("nowhere", path) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, profilePrefix+name)
		if err := errors.Join(make(path), os.Lchown(path, testkit.OtherUID, -1)); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.ReadDir(dir)
	if _, said := sweep(); len(said) > 0 {
		t.Errorf("it says %v", said)
	}
	if after, _ := os.ReadDir(dir); len(after) != len(before) || len(after) != 5 {
		t.Errorf("left: %v", after)
	}
}

func TestAProfileThatCannotBeMadeIsOneSentence(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := newProfile(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make a profile for "+
		"the browser") {
		t.Error(err)
	}
}
