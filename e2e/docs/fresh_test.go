//go:build fresh

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// TestReadme follows the README and the manual as after a clone: in the repository's directory, with
// an empty HOME, it runs the sh blocks with the word fresh, in their order. TestBlocks runs the
// others.
//
// make test-readme runs it; make test-fresh runs it in a clone.
func TestReadme(t *testing.T) {
	home, followed := t.TempDir(), 0
	env := append(
		os.Environ(),
		"HOME="+home,
		"XDG_CONFIG_HOME="+home+"/.config",
		"PATH="+filepath.Dir(binary("pagewire"))+":"+os.Getenv("PATH"),
	)
	for _, variable := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
		value, err := testcmd.Command("go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+strings.TrimSpace(string(value))) // one download is enough
	}
	for _, name := range []string{"cache", "userconfig"} {
		if value, err := testcmd.Command("npm", "config", "get", name).Output(); err == nil {
			env = append(env, "npm_config_"+name+"="+strings.TrimSpace(string(value)))
		}
	}
	for _, name := range documents(t) {
		for _, b := range blocksOf(name, read(t, name)) {
			if b.language == "sh" && b.has("fresh") {
				runScript(t, b, b.values["until"], root, env, 30*time.Minute)
				followed++
			}
		}
	}
	if followed < 2 {
		t.Errorf("%d sh blocks with the word fresh: the test sees nothing", followed)
	}
}
