//go:build pagewire_assets

package main

// The tests of a binary that has the files. make test runs both kinds of binary.

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/assets"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func TestAssetsListNamesEachFileWithItsIntegrity(t *testing.T) {
	status, out, errs := run("assets", "list")
	if status != exitDone || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(assets.Names) {
		t.Fatalf("%d lines for %d files:\n%s", len(lines), len(assets.Names), out)
	}
	for i, name := range assets.Names {
		if fields := strings.Fields(lines[i]); len(fields) != 3 || fields[0] != name ||
			!strings.HasPrefix(fields[2], "sha384-") {
			t.Errorf("line %d is %q; want name, size and integrity of %s", i, lines[i], name)
		}
	}
}

func TestAssetsWriteOverwritesOnlyByForce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "public")
	status, out, errs := run("assets", "write", dir)
	if status != exitDone || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	if got, want := strings.Count(out, dir), len(assets.Names); got != want {
		t.Errorf("%d paths are printed for %d files", got, want)
	}
	files := testkit.Must(assets.FS())(t)
	for _, name := range assets.Names {
		want, _ := fs.ReadFile(files, name)
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what is embedded (%v)", name, err)
		}
	}

	// If one file exists, no file is written.
	last := assets.Names[len(assets.Names)-1]
	for _, name := range assets.Names[:len(assets.Names)-1] {
		os.Remove(filepath.Join(dir, name))
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, last), []byte("mine"), 0o600))
	status, out, errs = run("assets", "write", dir)
	want := "pagewire: " + filepath.Join(dir, last) + " already exists\npagewire: nothing was written; --force replaces it\n"
	if status != exitFailed || out != "" || errs != want {
		t.Errorf("status %d, stdout %q, stderr %q; want %d and %q", status, out, errs, exitFailed, want)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files after a refusal; want the one that was in the way", len(entries))
	}

	if status, _, errs := run("assets", "write", "--force", dir); status != exitDone || errs != "" {
		t.Errorf("with --force: status %d, stderr %q", status, errs)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, last)); string(got) == "mine" {
		t.Error("--force did not overwrite")
	}
}

// The files of a site are written whole or not at all, also if the disk is full, and a web server may read them.
func TestAssetsWriteAllOrNone(t *testing.T) {
	dir := t.TempDir()
	done(t, "assets", "write", dir)
	first, last := filepath.Join(dir, assets.Names[0]), filepath.Join(dir, assets.Names[len(assets.Names)-1])
	if info := testkit.Must(os.Stat(first))(t); info.Mode().Perm()&0o044 == 0 && runtime.GOOS != "windows" {
		t.Errorf("its mode is %v", info.Mode())
	}
	// In place of a disk that gets full: the last file cannot be replaced.
	testkit.OK(t, os.WriteFile(first, []byte("mine"), 0o644), os.Remove(last), os.Mkdir(last, 0o755))
	if status, out, _ := run("assets", "write", "--force", dir); status != exitFailed || out != "" {
		t.Errorf("status %d, %s", status, out)
	}
	if is := string(testkit.Must(os.ReadFile(first))(t)); is != "mine" {
		t.Errorf("%s has been written: %.100s", first, is)
	}
}
