//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// blocking returns a pipe in blocking mode, as a process inherits it.
func blocking(t *testing.T) (in, out *os.File) {
	t.Helper()
	var fds [2]int
	testkit.OK(t, syscall.Pipe(fds[:]))
	in, out = os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
	t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}

func TestPollable(t *testing.T) {
	in, out := blocking(t)
	_, other := blocking(t)
	p := pollable(in, other)
	t.Cleanup(func() { p.Close() })
	if err := p.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatalf("reads of a pipe do not wait in the poller: %v", err)
	}
	if _, err := p.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a read behind its deadline: %v", err)
	}
	testkit.OK(t, p.SetReadDeadline(time.Time{}))
	if _, err := out.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if text, err := io.ReadAll(p); string(text) != "text" || err != nil {
		t.Fatalf("read %q, %v", text, err)
	}
}

// TestNotPollable has a file, and a socket that is also the output: writes to these must be able to wait.
func TestNotPollable(t *testing.T) {
	file := testkit.Must(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer file.Close()
	if pollable(file) != file {
		t.Error("a file is not as it was")
	}
	pair := testkit.Must(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	second := testkit.Must(syscall.Dup(pair[0]))(t)
	in, out := os.NewFile(uintptr(pair[0]), "in"), os.NewFile(uintptr(second), "out")
	peer := os.NewFile(uintptr(pair[1]), "peer")
	defer func() { in.Close(); out.Close(); peer.Close() }()
	if pollable(in, out) != in {
		t.Error("a socket that is written to as well is not as it was")
	}
}
