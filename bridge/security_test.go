//go:build !js

package bridge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Documents name tests as proofs, and files. A name must not stay there after its test or file was
// renamed or removed.
func TestDocumentsNameWhatExists(t *testing.T) {
	there := testNames(t)
	for document, atLeast := range map[string]int{"SECURITY.md": 20, "CONTRIBUTING.md": 15} {
		text, err := os.ReadFile("../" + document)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
		if len(named) < atLeast {
			t.Errorf("%s names %d tests: this test sees nothing", document, len(named))
		}
		for _, m := range named {
			if !there[string(m[1])] {
				t.Errorf("%s names %s, which is no test", document, m[1])
			}
		}
		paths := regexp.MustCompile("`((?:bridge|js|idl|wasm|e2e|demo)/[\\w./-]+)`").
			FindAllSubmatch(text, -1)
		for _, m := range paths {
			if _, err := os.Stat("../" + string(m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", document, m[1])
			}
		}
	}
}

// A word of the glossary has one meaning, and a type that a reader can look up.
func TestWordsHaveTypes(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([\\w ]+) \\| .* \\| `(\\w+)` in `([\\w./-]+)` \\|$").
		FindAllSubmatch(text, -1)
	if len(rows) < 30 || len(rows) > 40 {
		t.Errorf("the glossary has %d words; it must have 30 to 40", len(rows))
	}
	for _, row := range rows {
		code, err := os.ReadFile("../" + string(row[3]))
		declares := regexp.MustCompile(`(?m)^\s*(export )?(type|interface|class) ` + string(row[2]) + `\b`)
		if err != nil || !declares.Match(code) {
			t.Errorf("%s: %s does not declare %s", row[1], row[3], row[2])
		}
	}
}

// testNames are the tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for dir, files := range sources(t, "..") {
		for _, name := range files {
			code, err := os.ReadFile(filepath.Join("..", dir, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllSubmatch(code, -1) {
				there[string(m[1])] = true
			}
		}
	}
	return there
}
