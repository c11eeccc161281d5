//go:build fresh

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadme follows the README in the directory of the repository, as after a clone:
// the sh blocks with the word fresh, in their order, with a HOME where nothing is. TestBlocks has the others.
//
// make test-readme runs it; make test-fresh does so in a clone.
func TestReadme(t *testing.T) {
	home, followed := t.TempDir(), 0
	env := append(
		os.Environ(),
		"HOME="+home,
		"XDG_CONFIG_HOME="+home+"/.config",
		"PATH="+filepath.Dir(binary("pagewire"))+":"+os.Getenv("PATH"),
	)
	for _, variable := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+strings.TrimSpace(string(value))) // what is downloaded once is enough
	}
	for _, name := range []string{"cache", "userconfig"} {
		if value, err := exec.Command("npm", "config", "get", name).Output(); err == nil {
			env = append(env, "npm_config_"+name+"="+strings.TrimSpace(string(value)))
		}
	}
	for _, b := range blocksOf("README.md", read(t, "README.md")) {
		if b.language == "sh" && b.has("fresh") {
			runScript(t, b, b.values["until"], root, env, 30*time.Minute)
			followed++
		}
	}
	if followed == 0 {
		t.Error("the README has no sh block with the word fresh: the test sees nothing")
	}
}
