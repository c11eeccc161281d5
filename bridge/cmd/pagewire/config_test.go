package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// atHome gives the test a home directory of its own.
func atHome(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("APPDATA", filepath.Join(home, "roaming"))
	return home
}

// tree returns, by path, the mode and contents of each file below a directory, or the target of a link.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		all[name] = info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[name] += " " + to
			return err
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			all[name] += " " + string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lived are the files of a user with settings, hooks and a server of the user's own.
var lived = map[string]string{
	".claude.json":                 `{"numStartups": 3, "mcpServers": {"other": {"command": "x"}}}`,
	".claude/settings.json":        "{}",
	".claude/skills/mine/SKILL.md": "mine",
	".codex/config.toml":           "model = \"x\"\n\n[mcp_servers.other]\ncommand = \"x\"\n\n# the end\n",
	".codex/hooks.json": "{\n  \"hooks\": {\n    \"UserPromptSubmit\": [\n      { \"hooks\": [{ " +
		"\"type\": \"command\", \"command\": \"date\" }] }\n    ]\n  }\n}",
	".gemini/settings.json":           "{\r\n\t// mine\r\n\t\"theme\": 1,\r\n\t\"hooks\": {},\r\n}\r\n",
	".copilot/settings.json":          "// all\n{ \"model\": \"gpt\", \"hooks\": { \"preCompact\": [] } }\n",
	".copilot/mcp-config.json":        "{\"mcpServers\":{}}",
	".config/opencode/opencode.json":  "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
	".config/opencode/plugin/mine.js": "export const Mine = async () => ({});\n",
}

func fill(t *testing.T, home string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o640))
	}
}

// done runs a command line that must succeed.
func done(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	status, out, errs := run(args...)
	if status != exitDone {
		t.Fatalf("%v: status %d, stdout %q, stderr %q", args, status, out, errs)
	}
	return out, errs
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s is %q, want %q", what, name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: there is %s", what, name)
		}
	}
}

// Commands, completion and hooks find the daemon where the configuration file says that serve has it.
func TestHubOfTheConfigurationFile(t *testing.T) {
	r := start(t, "", "one")
	fill(t, os.Getenv("XDG_CONFIG_HOME"), map[string]string{"pagewire/pagewire.toml": fmt.Sprintf("hub = %q\n", r.addr)})
	if status, out, errs := run("read", cart); status != exitDone || out != "one" {
		t.Errorf("read: status %d, %q, %s", status, out, errs)
	}
	if _, out, _ := run("__completeNoDesc", "read", "https://shop.example/s"); !strings.HasPrefix(out, cart+"\n") {
		t.Errorf("read is completed to %q", out)
	}
	if status, _, errs := run("read", cart, "--hub", testkit.Addr(t)); status != exitFailed {
		t.Errorf("another hub: status %d, %s", status, errs)
	}
	if status, out, errs := run("config", "cursor"); status != exitDone || strings.Contains(out, "--hub") {
		t.Errorf("config: status %d, %s, %s", status, out, errs)
	}
	block, _, _ := strings.Cut(strings.SplitAfter(string(testkit.Must(os.ReadFile(reference))(t)), "```toml\n")[1], "```")
	fill(t, os.Getenv("XDG_CONFIG_HOME"), map[string]string{"pagewire/pagewire.toml": block})
	if o, as, status, errs := captured(t, nil); status != exitDone || as != "agent" || o.Launch == nil ||
		!slices.Equal(o.Launch.Open, []string{"https://app.example"}) || len(o.Flags.DenyOrigins) != 1 {
		t.Errorf("the manual's file: %s, %+v, %s", as, o, errs)
	}
	// Too much is not read, and what cannot be read is an error.
	fill(t, os.Getenv("XDG_CONFIG_HOME"), map[string]string{"pagewire/pagewire.toml": "#" + strings.Repeat("x", maxConfig)})
	if status, _, errs := run("ls"); status != exitFailed || !strings.Contains(errs, "pagewire.toml: it is larger than 64 KiB: correct it") ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("a large file: status %d, %s", status, errs)
	}
}

// A program with a form for the flags, such as Claude Desktop with a bundle, writes each of them.
func TestFlagsThatAskForNothing(t *testing.T) {
	if _, err := parseServe([]string{"--config", "none", "--launch=false", "--chrome=", "--inject=false", "--headless=false"}); err != nil {
		t.Error(err)
	}
	if _, err := parseServe([]string{"--config", "none", "--launch=false", "--inject"}); err == nil {
		t.Error("--inject without a browser is admitted")
	}
}

// An entry outlives the program that it starts: nvm and npx have a directory for each version. Setup and the doctor
// say so, and replace nothing without --force, since the entry may have flags of the user's.
func TestEntryOfAProgramThatIsGone(t *testing.T) {
	lonely(t)
	home := atHome(t)
	gone := filepath.Join(home, "node", "v20.1.0", "pagewire")
	fill(t, home, map[string]string{
		".cursor/mcp.json":   fmt.Sprintf(`{"mcpServers": {"pagewire": {"command": %q, "args": ["serve", "--only", "https://app.example"]}}}`, gone),
		".codex/config.toml": fmt.Sprintf("[mcp_servers.pagewire]\ncommand = %q\nargs = [\"serve\"]\n", gone),
	})
	for _, c := range []struct{ client, file string }{{"cursor", ".cursor/mcp.json"}, {"codex", ".codex/config.toml"}} {
		path := filepath.Join(home, filepath.FromSlash(c.file))
		was := string(testkit.Must(os.ReadFile(path))(t))
		want := "pagewire: " + path + " starts " + gone + ", which is not there\n" +
			"pagewire: pagewire config " + c.client + " --write --force; flags for its serve follow --\n"
		if status, _, errs := run("setup", c.client, "--yes", "--timeout", "1ms"); status != exitFailed || !strings.Contains(errs, want) {
			t.Errorf("setup %s: status %d, %s", c.client, status, errs)
		}
		if is := string(testkit.Must(os.ReadFile(path))(t)); is != was {
			t.Errorf("%s is %s", path, is)
		}
		i := slices.IndexFunc(programs(), func(p agentProgram) bool { return p.Name == c.client })
		if f := programs()[i].finding(); f.Status != "fail" || f.Says != path+" starts "+gone+", which is not there" {
			t.Errorf("the doctor says %+v", f)
		}
		done(t, "config", c.client, "--write", "--force")
		if f := programs()[i].finding(); f.Status == "fail" {
			t.Errorf("the doctor still says %+v", f)
		}
	}
}

// What npx has fetched it keeps only for a time: agents would start it in vain later.
func TestNothingIsWrittenForNpxsCache(t *testing.T) {
	for path, lasts := range map[string]bool{"/home/u/.npm/_npx/0123/node_modules/@pagewire/cli-linux-x64/bin/pagewire": false,
		"/usr/lib/node_modules/pagewire/bin/pagewire": true, "/home/my_npx/pagewire": true} {
		if err := checkLasts(path); (err == nil) != lasts {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The rules of XDG tell programs to ignore a relative directory. A project would get the settings.
func TestRelativeXDG(t *testing.T) {
	home := atHome(t)
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "config")
	if out, _ := done(t, "config", "zed", "--write"); !strings.HasPrefix(out, home) {
		t.Errorf("written: %s", out)
	}
}
