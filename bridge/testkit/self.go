package testkit

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Self is a copy of the test's own binary that every user of the machine may run. The end of the
// test removes it.
func Self(t testing.TB) string {
	t.Helper()
	dir := ShortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "self")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
