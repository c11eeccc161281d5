package bridge_test

import (
	"go/build/constraint"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofSystem matches the name of a file that is for one system, and theSystem code that asks which
// system it is on.
var (
	ofSystem  = regexp.MustCompile(`_(linux|darwin|windows|freebsd|unix)\.go$`)
	theSystem = regexp.MustCompile(`runtime\.GOOS\b|\bgoos == |switch (\w+\.)?(goos|GOOS)\b`)
)

// differs reports whether a file is not the same on each system.
func differs(name, text string) bool {
	for line := range strings.Lines(text) {
		if !constraint.IsGoBuild(line) {
			continue
		}
		only, err := constraint.Parse(strings.TrimSpace(line))
		// "js" is the page, and other tags are no systems.
		if err == nil && only.Eval(func(tag string) bool { return tag == "windows" }) !=
			only.Eval(func(tag string) bool { return tag == "linux" || tag == "unix" }) {
			return true
		}
	}
	return ofSystem.MatchString(name) || theSystem.MatchString(text)
}

// What differs by system is in the packages that CONTRIBUTING.md's table names.
func TestSystemsAreInTheTable(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## What differs by system\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want []string
	for line := range strings.Lines(section) {
		if cell, is := strings.CutPrefix(line, "| `"); is {
			cell, _, _ = strings.Cut(cell, " |")
			want = append(want, strings.Split(strings.Trim(cell, "`"), "`, `")...)
		}
	}
	got := map[string]bool{}
	for _, top := range []string{"bridge", "js/build", "wasm", "idl"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			if err == nil && differs(name, string(text)) {
				got[path.Dir(strings.TrimPrefix(filepath.ToSlash(name), "../"))] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	if has := slices.Sorted(maps.Keys(got)); !slices.Equal(has, want) {
		t.Errorf("these packages differ by system: %q; CONTRIBUTING.md names %q", has, want)
	}
}
