//go:build unix

package secret

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "pagewire", "secret")
	var all sync.WaitGroup
	secrets := make([]string, 64)
	for i := range secrets {
		all.Go(func() {
			var err error
			if secrets[i], err = Make(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(secrets[0]) != wholeLength {
		t.Errorf("the secret is %q", secrets[0])
	}
	for _, s := range secrets {
		if s != secrets[0] {
			t.Fatalf("two secrets: %q and %q", secrets[0], s)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left beside it: %v", left)
	}
	if other, err := Make(filepath.Join(t.TempDir(), "secret")); err != nil || other == secrets[0] {
		t.Errorf("another file has %q, %v", other, err)
	}
}

// Each faulty file gives an error at once, and stays unchanged.
func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) string {
		testkit.OK(t, os.WriteFile(at(name), []byte(text), mode), os.Chmod(at(name), mode))
		return at(name)
	}
	good := strings.Repeat("x", wholeLength) + "\n"
	write("good", good, 0o600)
	for name, err := range map[string]error{
		"fifo": syscall.Mkfifo(at("fifo"), 0o600), "link": os.Symlink(at("good"), at("link")),
		"dangling": os.Symlink(at("none"), at("dangling")), "directory": os.Mkdir(at("directory"), 0o700),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, c := range []struct{ path, want string }{
		{write("group", good, 0o640), "chmod 600 " + at("group")},
		{write("all", good, 0o604), "chmod 600"},
		{write("empty", "", 0o600), "is empty: remove it"},
		{write("half", strings.Repeat("x", wholeLength-1), 0o600), "does not hold a whole secret: remove it"},
		{write("short", "secret\n", 0o600), "does not hold a whole secret"},
		{write("spaces", "not a token, "+good, 0o600), "does not hold a whole secret"},
		{write("zeros", strings.Repeat("\x00", 44), 0o600), "does not hold a whole secret"},
		{write("two", good+good, 0o600), "does not hold a whole secret"},
		{at("fifo"), "is a named pipe"},
		{at("link"), "is a symbolic link"},
		{at("dangling"), "is a symbolic link"},
		{at("directory"), "is a directory"},
		{"/dev/null", "is a device"},
		{filepath.Join(at("short"), "token"), "not a directory"},
	} {
		before, _ := os.Lstat(c.path)
		secret, err := Make(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v; want an error with %q", c.path, secret, err, c.want)
		}
		if after, _ := os.Lstat(c.path); before != nil && (after == nil || after.Size() != before.Size() ||
			after.ModTime() != before.ModTime() || after.Mode() != before.Mode()) {
			t.Errorf("%s was changed: %v, was %v", c.path, after, before)
		}
	}
	for name, text := range map[string]string{"by hand": strings.Repeat("y", 32) + "\n",
		"without an end": strings.Repeat("y", wholeLength), "of Windows": strings.Repeat("y", 32) + "\r\n"} {
		if secret, err := Make(write(name, text, 0o600)); err != nil || secret != strings.TrimSpace(text) {
			t.Errorf("%s: %q, %v", name, secret, err)
		}
	}
}

// Another user may have put such a file there, and then knows the secret.
func TestFileOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "secret")
	testkit.OK(t, os.WriteFile(path, []byte(strings.Repeat("x", wholeLength)+"\n"), 0o600))
	testkit.OK(t, os.Chown(path, 65534, 65534))
	if secret, err := Make(path); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("%q, %v", secret, err)
	}
}

// A linked directory is as good as its parts: if another user may change one of them, no secret is written there.
func TestLinkedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		mode   os.FileMode // of the directory around the link's target
		link   string      // in place/way, to a directory
		owner  map[string]int
		path   string
		writes bool
	}{
		"own":                          {0o755, "own/dir", nil, "way/link/deeper/secret", true},
		"own, absolute":                {0o755, "/own/dir", nil, "way/link/secret", true},
		"own, over another link":       {0o755, "again", nil, "way/link/secret", true},
		"own, upwards":                 {0o755, "../way/own/dir", nil, "way/link/secret", true},
		"all may write, sticky":        {0o777 | os.ModeSticky, "own/dir", nil, "way/link/secret", true},
		"all may write":                {0o777, "own/dir", nil, "way/link/secret", false},
		"all may write, over two":      {0o777, "again", nil, "way/link/secret", false},
		"no link, and all may write":   {0o777, "own/dir", nil, "way/own/dir/secret", true},
		"another user's link":          {0o755, "own/dir", map[string]int{"way/link": 65534}, "way/link/secret", false},
		"to another user's":            {0o755, "own/dir", map[string]int{"way/own/dir": 65534}, "way/link/secret", false},
		"within another user's":        {0o755, "own/dir", map[string]int{"way/own": 65534}, "way/link/secret", false},
		"in another user's directory":  {0o755, "own/dir", map[string]int{"way": 65534}, "way/link/secret", false},
		"round and round":              {0o755, "link", nil, "way/link/secret", false},
		"to what is not there":         {0o755, "none", nil, "way/link/secret", false},
		"another user's link at depth": {0o755, "again", map[string]int{"way/again": 65534}, "way/link/secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.owner != nil && os.Geteuid() != 0 {
				t.Skip("needs root: only root can give a file away")
			}
			place := t.TempDir()
			testkit.OK(t, os.MkdirAll(filepath.Join(place, "way/own/dir"), 0o755))
			testkit.OK(t, os.Chmod(filepath.Join(place, "way/own"), c.mode))
			to := c.link
			if filepath.IsAbs(to) {
				to = filepath.Join(place, "way", to)
			}
			testkit.OK(t, os.Symlink(to, filepath.Join(place, "way/link")))
			testkit.OK(t, os.Symlink("own/dir", filepath.Join(place, "way/again")))
			for part, uid := range c.owner {
				testkit.OK(t, os.Lchown(filepath.Join(place, part), uid, uid))
			}
			path := filepath.Join(place, c.path)
			secret, err := Make(path)
			if (err == nil) != c.writes {
				t.Errorf("%q, %v", secret, err)
			}
			if left, _ := os.ReadDir(filepath.Join(place, "way/own/dir")); (len(left) > 0) != c.writes {
				t.Errorf("it has written %v", left)
			}
		})
	}
}

// A place where no file can be made gives an error.
func TestNoPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{filepath.Join(file, "secret"), filepath.Join(file, "deeper", "secret"),
		"/proc/pagewire/secret", "/proc/secret"} {
		if secret, err := Make(path); err == nil {
			t.Errorf("%s: made %q", path, secret)
		}
	}
}
