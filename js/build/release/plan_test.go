package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/js/build/commands"
)

const changelog = `# Changelog

What is noticed.

## 0.3.0, not yet released

* Three.

## 0.2.0, 2026-11-30

* Two.

  More of it.

## 0.1.0
* One.
`

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"0.1.0":        "* One.\n",
		"0.2.0":        "* Two.\n\n  More of it.\n",
		"0.2.0-rc.1":   "* Two.\n\n  More of it.\n", // what it leads to
		"0.3.0-rc.1":   "* Three.\n",
		"0.4.0-beta.2": "* Three.\n", // not yet released
		"0.3.0":        "",
		"0.4.0":        "",
		"0.1":          "",
	} {
		got, err := notesOf(changelog, version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("notes of %s: %q, %v; want %q", version, got, err, want)
		}
	}
	if _, err := notesOf("## 0.1.0\n", "0.2.0-rc.1"); err == nil {
		t.Error("a candidate is released of which nothing is written")
	}
}

func TestWhatIsNotReleased(t *testing.T) {
	tree := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("CHANGELOG.md", changelog)
	write("js/package.json", `{"version":"0.2.0"}`)
	commit(t, tree)
	for version, want := range map[string]string{
		"":            `VERSION is "", which is no semantic version`,
		"v0.2.0":      "no semantic version",
		"0.2":         "no semantic version",
		"0.02.0":      "no semantic version",
		"0.2.0+build": "no semantic version",
		"0.2.0-":      "no semantic version",
		"0.2.0-rc.01": "no semantic version",
		"0.3.0":       `no section "## 0.3.0"`,
		"0.1.0":       "js/package.json says 0.2.0: commit version 0.1.0 there first",
	} {
		if _, err := planned(tree, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", version, err, want)
		}
	}
	for _, version := range []string{"0.2.0", "0.3.0-rc.1"} {
		if p, err := planned(tree, version); err != nil || len(p.commit) != 40 || time.Since(p.at) > time.Hour {
			t.Errorf("%s: %+v, %v", version, p, err)
		}
	}
	write("left-over", "")
	if _, err := planned(tree, "0.2.0"); err == nil || !strings.HasSuffix(err.Error(), "first:\n?? left-over") {
		t.Errorf("a tree with something that is not committed: %v", err)
	}
}

func TestPlatforms(t *testing.T) {
	if _, err := commands.Parse("plan9/amd64"); err == nil || !strings.Contains(err.Error(), "one of linux/amd64,") {
		t.Errorf("plan9: %v", err)
	}
	p, err := commands.Parse("windows/amd64")
	if err != nil || p.Package() != "@pagewire/cli-win32-x64" || p.File("pagewire") != "pagewire.exe" {
		t.Errorf("windows/amd64: %v, %v", p, err)
	}
}
