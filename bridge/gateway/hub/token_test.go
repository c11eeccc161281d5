//go:build !js

package hub

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "pagewire", "token")
	t.Setenv(TokenFileEnv, path)
	var all sync.WaitGroup
	tokens := make([]string, 20)
	for i := range tokens {
		all.Go(func() {
			token, err := Token("")
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token
		})
	}
	all.Wait()
	if len(tokens[0]) != 43 {
		t.Errorf("the token is %q", tokens[0])
	}
	for _, token := range tokens {
		if token != tokens[0] {
			t.Fatalf("two tokens: %q and %q", tokens[0], token)
		}
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, want)
		}
	}
	other, err := Token(filepath.Join(t.TempDir(), "token"))
	if err != nil || other == tokens[0] {
		t.Errorf("another file has the token %q, %v", other, err)
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := strings.Repeat("x", 43) + "\n"
	for _, c := range []struct{ path, want string }{
		{write("group", good, 0o640), "chmod 600 " + filepath.Join(dir, "group")},
		{write("all", good, 0o604), "chmod 600"},
		{write("empty", "", 0o600), "remove it"},
		{write("short", "secret\n", 0o600), "remove it"},
		{write("spaces", "not a token, "+good, 0o600), "remove it"},
		{dir, "is no file"},
		{filepath.Join(dir, "short", "token"), "not a directory"},
	} {
		before, _ := os.ReadFile(c.path)
		token, err := Token(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want an error with %q", c.path, token, err, c.want)
		}
		if after, _ := os.ReadFile(c.path); string(after) != string(before) {
			t.Errorf("%s was changed", c.path)
		}
	}
	if token, err := Token(write("by hand", strings.Repeat("y", 32), 0o600)); err != nil || token != strings.Repeat("y", 32) {
		t.Errorf("a token without a newline: %q, %v", token, err)
	}
}
