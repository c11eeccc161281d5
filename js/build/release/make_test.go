package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/js/build/commands"
)

func TestAnArchiveIsTheSameEachTimeAndKeepsModes(t *testing.T) {
	files := []file{{"a/README.md", plain, []byte("text")}, {"a/pagewire", program, bytes.Repeat([]byte("ab"), 1e5)}}
	at := time.Unix(1_790_000_000, 0).UTC()
	for _, name := range []string{"a.tgz", "a.tar.gz", "a.zip"} {
		one, err := packed(name, files, at)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := packed(name, files, at); err != nil || !bytes.Equal(one, two) {
			t.Errorf("%s: the same files make two archives (%v)", name, err)
		}
		got, err := unpacked(name, one)
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		for i, f := range got {
			if f.name != files[i].name || f.mode != files[i].mode || !bytes.Equal(f.text, files[i].text) {
				t.Errorf("%s: %s of mode %v became %s of %v", name, files[i].name, files[i].mode, f.name, f.mode)
			}
		}
		if _, err := unpacked(name, []byte("no archive")); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: what is no archive: %v", name, err)
		}
	}
}

// What verify says of a release with something wrong in it; a right one is TestRelease's.
func TestWhatIsWrongWithARelease(t *testing.T) {
	for want, spoil := range map[string]func(dir string) error{
		"a.tgz has the sum":               func(dir string) error { return os.Truncate(dir+"/a.tgz", 0) },
		"extra is not in SHA256SUMS":      func(dir string) error { return os.Mkdir(dir+"/extra", 0o755) },
		"no such file":                    func(dir string) error { return os.Remove(dir + "/a.tgz") },
		"a.tgz: its name is of another":   func(string) error { return nil },
		"install.sh: it does not install": func(string) error { return nil },
		"SRI.json: it names /built/here":  func(string) error { return nil },
		"lacks npm packages, programs, e": func(string) error { return nil },
	} {
		dir := t.TempDir()
		var sums strings.Builder
		for name, text := range map[string]string{
			"a.tgz": "text", "install.sh": "none", sriFile: `{"version":"1.2.3","by":"/built/here"}`,
		} {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(text)), name)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, sumsFile), []byte(sums.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if err := verify(dir, "/built/here"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Programs that do nothing, of the three formats and both processors: each is taken for what it is.
func TestProgramsAreOfTheirPlatform(t *testing.T) {
	dir := t.TempDir()
	source := []byte("package main\n\nfunc main() {}\n")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	of := map[commands.Platform][]byte{}
	for _, text := range []string{"linux/amd64", "darwin/arm64", "windows/arm64"} {
		p, err := commands.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		env := []string{"GOOS=" + p.OS, "GOARCH=" + p.Arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"}
		if out, err := tool(dir, env, "go", "build", "-trimpath", "-o", "program", "main.go"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if of[p], err = os.ReadFile(filepath.Join(dir, "program")); err != nil {
			t.Fatal(err)
		}
	}
	for its, text := range of {
		for _, p := range commands.Platforms {
			if err := ofPlatform(p, text); (err == nil) != (p == its) {
				t.Errorf("a program for %s, taken for one for %s: %v", its, p, err)
			}
		}
	}
	if err := ofPlatform(commands.Host, []byte("#!/bin/sh")); err == nil {
		t.Error("a script is taken for a program")
	}
	v := verifier{version: "1.2.3"}
	for want, f := range map[string]file{
		"is not there, or cannot be run": {},
		"cannot be run":                  {"pagewire", plain, of[commands.Platforms[0]]},
		"of another version than 1.2.3":  {"pagewire", program, of[commands.Platforms[0]]},
	} {
		if err := v.program(commands.Platforms[0], "pagewire", f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
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
		return module{system: "golang", path: name, version: "v1.0.0", dir: dir}
	}
	got, err := licences([]module{
		of("a", map[string]string{"LICENSE": "terms\r\n", "main.go": "code"}),
		of("b", map[string]string{"LICENSE.md": "terms\n", "NOTICE": "a notice"}),
	})
	text := string(got)
	if err != nil || strings.Count(text, "terms") != 2 || !strings.Contains(text, "a v1.0.0\nb v1.0.0\n") ||
		!strings.Contains(text, "a notice") || strings.Contains(text, "code") {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := licences([]module{of("c", map[string]string{"main.go": ""})}); err == nil ||
		!strings.Contains(err.Error(), "c v1.0.0 is linked and has no licence file") {
		t.Errorf("without a licence: %v", err)
	}
}

func TestBundledPackagesAreKnown(t *testing.T) {
	std := module{system: "golang", path: "std", version: "1.26.8"}
	packages := map[string]module{
		"node_modules/preact":                {system: "npm", path: "preact", version: "1.0.0"},
		"node_modules/@a/b":                  {system: "npm", path: "@a/b", version: "2.0.0"},
		"node_modules/preact/node_modules/c": {system: "npm", path: "c", version: "3.0.0"},
	}
	for input, want := range map[string]string{
		"js/page/page.ts":                                "",
		"wasm_exec:wasm_exec":                            "pkg:golang/std@1.26.8",
		"js/node_modules/preact/hooks/hooks.mjs":         "pkg:npm/preact@1.0.0",
		"../x/js/node_modules/@a/b/index.js":             "pkg:npm/%40a/b@2.0.0",
		"js/node_modules/preact/node_modules/c/index.js": "pkg:npm/c@3.0.0",
	} {
		all := parts{}
		if err := all.addInput("x.js", input, packages, []module{std}); err != nil {
			t.Error(err)
		}
		if got := all.of(func(string) bool { return true }); want == "" && got != nil && len(got) > 0 ||
			want != "" && (len(got) != 1 || got[0].purl() != want) {
			t.Errorf("%s is of %v, want %q", input, got, want)
		}
	}
	if err := (parts{}).addInput("x.js", "js/node_modules/z/z.js", packages, nil); err == nil {
		t.Error("what is in no lock file is taken")
	}
}

func TestTinyGosCoreIsNamed(t *testing.T) {
	std := module{system: "golang", path: "std", version: "1.25.1"}
	got := coreRuntime("tinygo version 0.39.0 linux/amd64 (using go version go1.25.1 and LLVM version 19.1.2)", std)
	if len(got) != 2 || got[1].purl() != "pkg:generic/tinygo@0.39.0" {
		t.Errorf("got %v", got)
	}
	if text, err := licencesOf(got[1]); err != nil || !strings.Contains(text[0], "BSD-3-Clause") {
		t.Errorf("its licence: %q, %v", text, err)
	}
}
