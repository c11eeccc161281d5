package agents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// checked are programs with the command lines of clientcheck's doc comment and the flags of these
// tests.
var checked = []struct {
	name string
	args func(program string) []string
}{
	{"gemini-cli", func(program string) []string {
		return []string{"sh", "-c",
			`mkdir .gemini && cp {config} .gemini/settings.json && "$0" --approval-mode yolo -m gemini-2.5-flash -p "{prompt}"`, program}
	}},
	{"codex", func(program string) []string {
		return []string{program, "exec", "--skip-git-repo-check",
			"--dangerously-bypass-approvals-and-sandbox", "-c",
			`mcp_servers.pagewire-check={command="{command}",args={args}}`, "{prompt}"}
	}},
	{"opencode", func(program string) []string {
		return []string{"env",
			`OPENCODE_CONFIG_CONTENT={"mcp":{"pagewire-check":{"type":"local","enabled":true,"command":{words}}}}`,
			program, "run", "{prompt}"}
	}},
}

// The report agrees with a program's requests to the model: a word is in both or in neither.
func TestClientCheck(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "clientcheck")
	if out, err := testcmd.Command("go", "build", "-o", binary, "./clientcheck").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range checked {
		if !runs(c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			home := testkit.ShortDir(t)
			t.Cleanup(func() { endAll(home) })
			word := regexp.MustCompile(`pw-[a-z0-9]{8}`)
			var steps []step
			for _, place := range []string{"text", "both", "structured", "embedded", "link", "user",
				"meta", "error"} {
				steps = append(steps, step{tool: "check_" + place})
			}
			m := newModel(t, append(steps, step{tool: "check_slow", args: object{"seconds": 1}},
				step{tool: "check_report",
					with: func(
						body string) map[string]any {
						return object{"words": word.FindAllString(body, -1)}
					}},
				step{say: "DONE"})...)
			p := programNamed(t, c.name, m.URL, []string{"none"})
			p.install(t, home)
			cmd := testcmd.Command(binary, c.args(p.command[0])...)
			cmd.Env, cmd.Dir = p.environment(home), filepath.Join(home, "work")
			if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = testkit.LogOf(t, c.name)
			out, err := cmd.Output()
			report := string(out)
			if err != nil {
				t.Errorf("it ends with %v", err)
			}
			if !strings.Contains(report, "| text | yes |\n") ||
				!strings.Contains(report, "| the slow call | "+
					"answered after 1 s |\n") ||
				!strings.Contains(report, "| tool that came within the session | was "+
					"not asked for |\n") ||
				strings.Contains(report, "not known") {
				t.Errorf("the last request ends in %s; the report is\n%s",
					m.last()[max(0, len(m.last())-2000):],
					report)
			}
		})
	}
}
