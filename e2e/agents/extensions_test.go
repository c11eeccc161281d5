package agents

import (
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Programs install the extensions of the repository and of a release, and find the server and the
// skills in them: Gemini CLI its own extension, and Codex the plugin and the marketplace of Claude
// Code.
func TestExtensions(t *testing.T) {
	extension, repository := dir(t, "../../js/gemini-extension"), dir(t, "../..")
	for _, of := range []struct {
		name     string
		commands [][]string
		want     []string // parts of lines of the last output
	}{
		{"gemini-cli",
			[][]string{{"extensions", "validate", extension},
				{"extensions", "install", extension, "--consent"},
				{"extensions", "list"}},
			[]string{"  pagewire\n", "  live-pages: ", "  add-live-state: "}},
		{"codex",
			[][]string{{"plugin", "marketplace", "add", repository},
				{"plugin", "add", "pagewire@pagewire"},
				{"mcp", "list"}}, []string{"pagewire  pagewire  serve "}},
	} {
		if !runs(of.name) {
			continue
		}
		t.Run(of.name, func(t *testing.T) {
			home := testkit.ShortDir(t)
			p := programNamed(t, of.name, "http://127.0.0.1:1", []string{"none"})
			p.install(t, home)
			var out []byte
			for _, args := range of.commands {
				var err error
				if out, err = p.run(t, home, args...); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			for _, want := range of.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("it has not %q: %s", want, out)
				}
			}
		})
	}
}
