package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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

const changelog = "# Changelog\n\nWhat is noticed.\n\n## 0.2.0, 2026-11-30\n\n* Two.\n\n  More of it.\n\n## 0.1.0\n* One.\n"

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
		"0.1.0":       `the newest section of CHANGELOG.md is "0.2.0, 2026-11-30": make it "0.1.0, DATE"`,
	} {
		if _, err := planned(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", version, err, want)
		}
	}
	for _, version := range []string{"0.2.0", "0.3.0-rc.1"} {
		if p, err := planned(version); err != nil || len(p.commit) != 40 || p.at == "" ||
			p.notes != "* Two.\n\n  More of it." {
			t.Errorf("%s: %+v, %v", version, p, err)
		}
	}
	for name, text := range map[string]string{"CHANGELOG.md": strings.Replace(changelog, "2026-11-30", "not yet released", 1),
		"js/package.json": `{"version":"0.1.0"}`} {
		was, _ := os.ReadFile(name)
		write(name, text)
		if _, err := planned("0.2.0"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		write(name, string(was))
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

func TestBundledPackagesAreThoseThatAreNotForDevelopmentAlone(t *testing.T) {
	of := func(version string, dev any) any { return map[string]any{"version": version, "dev": dev} }
	all := parts{"scripts": bundled(map[string]any{
		"":                                   of("0.1.0", nil),
		"node_modules/preact":                of("1.0.0", nil),
		"node_modules/@a/b":                  of("2.0.0", nil),
		"node_modules/preact/node_modules/c": of("3.0.0", nil),
		"node_modules/typescript":            of("4.0.0", true),
	})}
	got := ""
	for _, m := range all.modules("scripts") {
		got += m.purl() + " " + m.dir + "\n"
	}
	if want := "pkg:npm/%40a/b@2.0.0 js/node_modules/@a/b\npkg:npm/c@3.0.0 js/node_modules/preact/node_modules/c\n" +
		"pkg:npm/preact@1.0.0 js/node_modules/preact\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The workflows say what they mean to the forge that runs them.
func TestWorkflows(t *testing.T) {
	if out, err := tool(root(t), nil, "go", "tool", "actionlint", "-shellcheck=", "-pyflakes="); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
