package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

func TestConversations(t *testing.T) {
	home := t.TempDir()
	kept := conversationsOf(filepath.Join(home, "pagewire", "token"), slog.New(slog.DiscardHandler)).(conversations)
	if record := kept.Load("session a"); record != nil {
		t.Errorf("nothing was kept, and it is %q", record)
	}
	names := []string{"session a", "../../evil", "/etc/passwd", strings.Repeat("s", 10_000), "session \x00", ""}
	for i := range 2 {
		for _, name := range names {
			kept.Save(name, fmt.Appendf(nil, "%d %.20q", i, name))
		}
	}
	for _, name := range names {
		if got, want := string(kept.Load(name)), fmt.Sprintf("1 %.20q", name); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	dir := filepath.Join(home, "pagewire", "conversations")
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := files(); len(list) != len(names) {
		t.Errorf("the files are %q", list)
	}
	for _, file := range files() {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if list, _ := os.ReadDir(home); len(list) != 1 {
		t.Errorf("beside the directory there is %v", list)
	}

	// A day later a record is not loaded, and the next Save removes it.
	old := time.Now().Add(-keptFor - time.Minute)
	for _, file := range files() {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if record := kept.Load("session a"); record != nil {
		t.Errorf("a day later there is %q", record)
	}
	mine := filepath.Join(dir, "chat with Ann.md") // the token, and so the directory, may be anywhere
	if err := errors.Join(os.WriteFile(mine, nil, 0o600), os.Chtimes(mine, old, old)); err != nil {
		t.Fatal(err)
	}
	for i := range maxKept + 10 {
		kept.Save(fmt.Sprint(i), []byte("x"))
		at := time.Now().Add(time.Duration(i-maxKept-10) * time.Second)
		if err := os.Chtimes(kept.path(fmt.Sprint(i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(mine); err != nil {
		t.Errorf("a file of the user is gone: %v", err)
	}
	if n := len(files()); n != maxKept || kept.Load("9") != nil || kept.Load(fmt.Sprint(maxKept+9)) == nil {
		t.Errorf("%d are kept, want the last %d", n, maxKept)
	}

	// A link or a large file is not read.
	link := kept.path("linked")
	if err := os.Symlink(kept.path("70"), link); err == nil && kept.Load("linked") != nil {
		t.Error("a link is followed")
	}
	if err := os.WriteFile(kept.path("large"), make([]byte, 2*gateway.MaxSnapshotBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(kept.Load("large")); n > 0 {
		t.Errorf("%d bytes of a large file are read", n)
	}
	if conversationsOf("", slog.New(slog.DiscardHandler)) != nil {
		t.Error("records are kept at an unknown place")
	}
}
