package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// root is the repository's.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a tool, which must succeed, and returns what it prints on standard output.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// tool runs a tool and returns all that it prints.
func tool(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

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
	t.Chdir(tree)
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
	output(t, tree, "git", "init", "-q")
	output(t, tree, "git", "add", "-A")
	output(t, tree, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a")
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
		if _, err := planned(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", version, err, want)
		}
	}
	for _, version := range []string{"0.2.0", "0.3.0-rc.1"} {
		if p, err := planned(version); err != nil || len(p.commit) != 40 || time.Since(p.at) > time.Hour {
			t.Errorf("%s: %+v, %v", version, p, err)
		}
	}
	write("left-over", "")
	if _, err := planned("0.2.0"); err == nil || !strings.HasSuffix(err.Error(), "first:\n?? left-over") {
		t.Errorf("a tree with something that is not committed: %v", err)
	}
}

func TestLicencesAreHandedOnOnceAndNoneIsMissing(t *testing.T) {
	of := func(name string, files map[string]string) module {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return module{"golang", name, "v1.0.0", dir}
	}
	t.Chdir(t.TempDir())
	err := licences("stage", []module{
		of("a", map[string]string{"LICENSE": "terms\r\n", "main.go": "code"}),
		{"generic", "tinygo", "0.41.1", ""},
		of("b", map[string]string{"LICENSE.md": "terms\n", "NOTICE": "a notice"}),
	})
	got, readErr := os.ReadFile("dist/stage/THIRD-PARTY-LICENSES.txt")
	text := string(got)
	if err != nil || readErr != nil || strings.Count(text, "terms") != 2 ||
		!strings.Contains(text, "a v1.0.0\nb v1.0.0\n") ||
		!strings.Contains(text, "a notice") || strings.Contains(text, "code") || !strings.Contains(text, "BSD-3-Clause") {
		t.Errorf("got %q, %v", text, err)
	}
	if err := licences("stage", []module{of("c", map[string]string{"main.go": ""})}); err == nil ||
		!strings.Contains(err.Error(), "c v1.0.0 is linked and has no licence file") {
		t.Errorf("without a licence: %v", err)
	}
}

func TestBundledPackagesAreKnown(t *testing.T) {
	of := func(version string) any { return map[string]any{"version": version} }
	packages := map[string]any{
		"node_modules/preact":                of("1.0.0"),
		"node_modules/@a/b":                  of("2.0.0"),
		"node_modules/preact/node_modules/c": of("3.0.0"),
	}
	for input, want := range map[string]string{
		"js/page/page.ts":                                "",
		"js/node_modules/preact/hooks/hooks.mjs":         "pkg:npm/preact@1.0.0",
		"../x/js/node_modules/@a/b/index.js":             "pkg:npm/%40a/b@2.0.0",
		"js/node_modules/preact/node_modules/c/index.js": "pkg:npm/c@3.0.0",
	} {
		all := parts{}
		if err := all.addInput("x.js", input, packages); err != nil {
			t.Error(err)
		}
		if got := all.of(func(string) bool { return true }); want == "" && len(got) > 0 ||
			want != "" && (len(got) != 1 || got[0].purl() != want) {
			t.Errorf("%s is of %v, want %q", input, got, want)
		}
	}
	if err := (parts{}).addInput("x.js", "js/node_modules/z/z.js", packages); err == nil {
		t.Error("what is in no lock file is taken")
	}
}

// The workflows say what they mean to the forge that runs them.
func TestWorkflows(t *testing.T) {
	if out, err := tool(root(t), nil, "go", "tool", "actionlint", "-shellcheck=", "-pyflakes="); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
