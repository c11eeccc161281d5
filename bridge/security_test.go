//go:build !js

package bridge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// SECURITY.md says which test proves what. A test that was renamed, or is gone, must not go on being named there.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
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
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("SECURITY.md names %d tests: this test sees nothing", len(named))
	}
	for _, m := range named {
		if !there[string(m[1])] {
			t.Errorf("SECURITY.md names %s, which is no test", m[1])
		}
	}
}
