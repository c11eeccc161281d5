package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/gateway/skills"
)

// tree is all that is below a directory: by its path a file's mode and contents, a link's end, or that it is a
// directory.
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

// lived are the files of users who have settings of their own, hooks too, and the one server.
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
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

// done runs a command line that is to succeed.
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

// What config writes is taken back byte for byte, with every directory that it has made, in whatever order it was
// written and is removed.
func TestRemoveRestoresEachByte(t *testing.T) {
	for _, c := range clients {
		ways := []string{"--write", "--write, --write --force -- --launch"}
		if c.notifier != nil {
			ways = append(ways, "--live --inline https://a.example -- --chrome auto, --live", "--write, --live",
				"--live, --write --force -- --launch", "--write, --live --force -- --launch")
		}
		for _, way := range ways {
			for what, files := range map[string]map[string]string{"an empty home": {}, "a home that is lived in": lived} {
				t.Run(c.name+" in "+what+": "+way, func(t *testing.T) {
					home := atHome(t)
					fill(t, home, files)
					before := tree(t, home)
					for step := range strings.SplitSeq(way, ", ") {
						args := append([]string{"config", c.name}, strings.Fields(step)...)
						was := tree(t, home)
						out, errs := done(t, args...)
						if !strings.Contains(errs, "pagewire: restart "+c.title+" to have it noticed\n") {
							t.Errorf("%s says %q", step, errs)
						}
						now := tree(t, home)
						if reflect.DeepEqual(now, was) {
							t.Errorf("%s changes nothing", step)
						}
						for path := range strings.Lines(out) {
							if _, err := os.Stat(strings.TrimSpace(path)); err != nil || !strings.HasPrefix(path, home) {
								t.Errorf("%s says that it wrote %s: %v", step, path, err)
							}
						}
						for path, text := range now {
							if was[path] == "" && text[0] == '-' && text[:10] != "-rw-------" {
								t.Errorf("others may read %s: %.10s", path, text)
							}
						}
						if out == "" {
							t.Errorf("%s prints no path", step)
						}
						if _, errs := done(t, args...); !strings.HasSuffix(errs, " has it already\n") {
							t.Errorf("%s a second time says %q", step, errs)
						}
						same(t, step+" a second time", tree(t, home), now)
					}
					for removed := 1; ; removed++ {
						_, errs := done(t, "config", c.name, "--remove")
						if strings.HasSuffix(errs, " has nothing of pagewire\n") {
							break
						}
						if removed > 2 {
							t.Fatalf("--remove has not ended: %s", errs)
						}
					}
					same(t, "after all", tree(t, home), before)
				})
			}
		}
	}
	// The last one removes the directories that were made for all.
	home := atHome(t)
	before := tree(t, home)
	for step := range strings.SplitSeq("zed --write, opencode --live, codex --write, codex --live, gemini-cli --live, "+
		"opencode --remove, zed --remove, codex --remove, gemini-cli --remove, codex --remove", ", ") {
		done(t, append([]string{"config"}, strings.Fields(step)...)...)
	}
	same(t, "after several clients", tree(t, home), before)
}

// A client has one server, whose entry stays where it was.
func TestLiveKeepsTheEntryThatWasThere(t *testing.T) {
	home := atHome(t)
	done(t, "config", "claude-code", "--write")
	done(t, "config", "claude-code", "--live")
	if _, err := os.Stat(filepath.Join(home, ".claude", "skills", "pagewire", ".mcp.json")); err == nil {
		t.Error("Claude Code has two servers")
	}
	if _, errs := done(t, "config", "claude-code", "--remove"); !strings.Contains(errs,
		"--remove once more takes it out") {
		t.Errorf("stderr %q", errs)
	}
}

// parsed is what a JSON text with comments says.
func parsed(t *testing.T, text string) (root map[string]any) {
	t.Helper()
	if err := json.Unmarshal(standard([]byte(text)), &root); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return root
}

// hooksOf are the command lines of a program's hooks, by event.
func hooksOf(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for event, list := range parsed(t, string(text))["hooks"].(map[string]any) {
		one, _ := list.([]any)[0].(map[string]any)
		if inner, ok := one["hooks"].([]any); ok {
			if matcher, ok := one["matcher"].(string); ok {
				event += " " + matcher
			}
			one = inner[0].(map[string]any)
			one["bash"], one["timeoutSec"] = one["command"], one["timeout"]
		}
		if one["type"] != "command" || one["timeoutSec"] == nil {
			t.Errorf("%s: %v", event, one)
		}
		all[event] = one["bash"].(string)
	}
	return all
}

func TestLiveWritesWhatEachProgramReads(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := atHome(t)
	for _, name := range clientNames(isLive) {
		done(t, "config", name, "--live", "--inline", "https://a.example", "--inline", "http://localhost:3000", "--",
			"--hub", "127.0.0.1:9")
	}
	plugin := filepath.Join(home, ".claude", "skills", "pagewire")
	changes := func(program string) string {
		return self + " changes --hook " + program + " --hub 127.0.0.1:9 --inline https://a.example --inline " +
			"http://localhost:3000"
	}
	for path, want := range map[string]map[string]string{
		filepath.Join(plugin, "hooks", "hooks.json"): {"UserPromptSubmit": changes("claude-code"),
			"SessionStart clear|compact": changes("claude-code") + " --forget"},
		filepath.Join(home, ".codex", "hooks.json"): {"UserPromptSubmit": changes("codex"),
			"SessionStart clear|compact": changes("codex") + " --forget"},
		filepath.Join(home, ".gemini", "settings.json"): {"BeforeAgent": changes("gemini-cli"),
			"SessionStart clear": changes("gemini-cli") + " --forget",
			"PreCompress":        changes("gemini-cli") + " --forget"},
		filepath.Join(home, ".qwen", "settings.json"): {"UserPromptSubmit": changes("qwen-code"),
			"SessionStart clear|compact": changes("qwen-code") + " --forget"},
		filepath.Join(home, ".copilot", "settings.json"): {"userPromptSubmitted": changes("copilot"),
			"sessionStart": changes("copilot") + " --forget",
			"preCompact":   changes("copilot") + " --forget"},
	} {
		if got := hooksOf(t, path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", path, got, want)
		}
	}
	read := func(elem ...string) string {
		text, err := os.ReadFile(filepath.Join(elem...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var monitors []map[string]string
	if err := json.Unmarshal([]byte(read(plugin, "monitors", "monitors.json")), &monitors); err != nil ||
		len(monitors) != 1 ||
		monitors[0]["command"] != self+" watch --changes --all --lines --min-interval 30s --hub 127.0.0.1:9" ||
		monitors[0]["when"] != "always" {
		t.Errorf("%v, %v", monitors, err)
	}
	if manifest := parsed(t, read(plugin, ".claude-plugin", "plugin.json")); manifest["name"] != "pagewire" {
		t.Errorf("the manifest: %v", manifest)
	}
	for path, want := range map[string]string{
		filepath.Join(plugin, ".mcp.json"):                          `"args": ["serve", "--hub", "127.0.0.1:9"]`,
		filepath.Join(home, ".copilot", "mcp-config.json"):          `"tools": ["*"]`,
		filepath.Join(home, ".config", "opencode", "opencode.json"): `"enabled": true`,
		filepath.Join(home, ".config", "opencode", "plugin",
			"pagewire.js"): `const watch = ["watch","--changes","--all","--lines","--min-interval","30s","--hub","127.0.0.1:9"];`,
		filepath.Join(home, ".codex", "config.toml"): `args = ["serve", "--hub", "127.0.0.1:9"]`,
	} {
		if text := read(path); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".claude.json")); err == nil {
		t.Error("Claude Code has two servers")
	}
}

func TestConfigRefusesToOverwrite(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there, and permissions are other ones")
	}
	write := func(path, text string, mode fs.FileMode) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			fill(t, home, map[string]string{path: text})
			if err := os.Chmod(filepath.Join(home, path), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(path, old, with string) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			name := filepath.Join(home, path)
			text, err := os.ReadFile(name)
			if err != nil || !bytes.Contains(text, []byte(old)) {
				t.Fatalf("no %s in %s, %v", old, text, err)
			}
			if err := os.WriteFile(name, bytes.ReplaceAll(text, []byte(old), []byte(with)), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := func(name string, then func(*testing.T, string)) func(t *testing.T, home string) {
		return func(t *testing.T, home string) {
			done(t, "config", name, "--live")
			then(t, home)
		}
	}
	for _, c := range []struct {
		name, client string
		first        func(t *testing.T, home string)
		flag, want   string
		forced       bool // --force does it
	}{
		{"hooks that do not parse", "codex", write(".codex/hooks.json", "{\n  oops", 0o640), "--live",
			"hooks.json: it is no JSON: line 2", false},
		{"a table that does not parse", "codex", write(".codex/config.toml", "a = ", 0o640), "--live",
			"config.toml: it is no TOML: line 1", false},
		{"hooks of another kind", "codex", write(".codex/hooks.json", `{"hooks": {"UserPromptSubmit": {}}}`, 0o640),
			"--live", `"UserPromptSubmit" holds no list`, false},
		{"read-only hooks", "codex", write(".codex/hooks.json", "{}", 0o440), "--live",
			"hooks.json is read-only (its mode is 0440)", false},
		{"another entry", "gemini-cli",
			write(".gemini/settings.json", `{"mcpServers": {"pagewire": {"command": "mine"}}}`, 0o640), "--live",
			"has another entry named pagewire", true},
		{"a hook of ours that nobody wrote down", "codex", write(".codex/hooks.json",
			`{"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "/old/pagewire changes --hook codex"}]}]}}`,
			0o640),
			"--live", "has another entry named pagewire", true},
		{"a plugin of that name", "opencode", write(".config/opencode/plugin/pagewire.js", "mine", 0o640), "--live",
			"is there already, and pagewire did not write it", true},
		{"a record that is none", "codex", write(".config/pagewire/live/record.json", "oops", 0o600), "--live",
			"is no record of pagewire", false},
		{"an edited entry", "gemini-cli",
			live("gemini-cli", edit(".gemini/settings.json", `"serve"`, `"serve", "--launch"`)), "--remove",
			"has an entry named pagewire that was edited since", true},
		{"an edited hook", "codex", live("codex", edit(".codex/hooks.json", `"timeout": 5`, `"timeout": 50`)),
			"--remove", "has an entry named pagewire that was edited since", true},
		{"an edited table", "codex", live("codex", edit(".codex/config.toml", `"serve"`, `"serve", "--launch"`)),
			"--remove", "has an entry named pagewire that was edited since", true},
		{"an edited plugin", "opencode",
			live("opencode", edit(".config/opencode/plugin/pagewire.js", "export const", "// mine\nexport const")),
			"--remove", "has an entry named pagewire that was edited since", true},
		{"an edited hook, written again", "codex",
			live("codex", edit(".codex/hooks.json", `"timeout": 5`, `"timeout": 50`)), "--live",
			"has an entry named pagewire that was edited since", true},
		{"an entry that is not ours", "cursor",
			write(".cursor/mcp.json", `{"mcpServers": {"pagewire": {"command": "mine"}}}`, 0o640), "--remove",
			"has an entry named pagewire that was edited since", true},
		{"an entry with other flags", "cursor",
			write(".cursor/mcp.json", `{"mcpServers": {"pagewire": {"command": "x", "args": ["serve"]}}}`, 0o640), "--write",
			"has another entry named pagewire", true},
		{"what does not parse any more", "gemini-cli", live("gemini-cli", edit(".gemini/settings.json", "{", "")),
			"--remove", "settings.json: it is no JSON: line 2", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := atHome(t)
			c.first(t, home)
			before := tree(t, home)
			status, out, errs := run("config", c.client, c.flag)
			if status != exitFailed || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 2 ||
				!strings.Contains(errs, "\npagewire: nothing was written") {
				t.Errorf("status %d, stdout %q, stderr %q; want %q", status, out, errs, c.want)
			}
			same(t, "after the refusal", tree(t, home), before)
			if status, _, errs := run("config", c.client, c.flag, "--force"); (status == exitDone) != c.forced {
				t.Errorf("--force: status %d, stderr %q", status, errs)
			}
		})
	}
}

func TestWordsForShells(t *testing.T) {
	for _, c := range []struct{ goos, word, want string }{
		{"linux", "/usr/bin/pagewire", "/usr/bin/pagewire"},
		{"linux", "/home/a b/pagewire", "'/home/a b/pagewire'"},
		{"linux", "/home/o'neil/$x/pagewire", `'/home/o'\''neil/$x/pagewire'`},
		{"linux", `a\b`, `'a\b'`},
		{"windows", `C:\bin\pagewire.exe`, `C:/bin/pagewire.exe`},
		{"windows", `C:\Program Files\pagewire.exe`, `"C:/Program Files/pagewire.exe"`},
	} {
		if got := quotedWord(c.goos, c.word); got != c.want {
			t.Errorf("%s on %s: %s, want %s", c.word, c.goos, got, c.want)
		}
	}
}

// What was put somewhere and taken out again leaves what was there.
func FuzzTake(f *testing.F) {
	for _, text := range []string{"", "{}", "{\"hooks\": {\"E\": [1,], \"a\": {}}, // x\n}",
		"{\"a\":1,\n\t\"hooks\": {}}", "[a]\nb = [1]\n[hooks.E]\nx = 1\n", "{\"hooks\":{\"E\":[ /* [ */ ]}}",
		"a = 1\n\n\n", "{\"\":0,", "a = \"\"\"x\"\"\"\n", "\xef\xbb\xbf{\"hooks\":{}}"} {
		f.Add([]byte(text))
	}
	list := part{At: []string{"hooks", "E"}, List: true, Value: entry{{"command", "pagewire changes --hook x"}}}
	table := part{file: "x.toml", At: []string{"hooks", serverName}, Value: ours}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range []part{list, {At: table.At, Value: ours}, table} {
			if p.found(text) != "" {
				continue
			}
			with, err := p.put(text, false)
			if err != nil {
				continue
			}
			if again, err := p.put(with, false); err != nil || string(again) != string(with) {
				t.Errorf("%q becomes %q, and then %q, %v", text, with, again, err)
			}
			without, err := p.take(with, text, false)
			if err != nil || p.found(without) != "" {
				t.Fatalf("%q becomes %q, and then %q, %v", text, with, without, err)
			}
			if p.toml() {
				if rest, ok := bytes.CutPrefix(without, text); !ok || len(bytes.TrimSpace(rest)) > 0 {
					t.Errorf("%q becomes %q, and then %q", text, with, without)
				}
				continue
			}
			if got, want := saying(without), saying(text); !reflect.DeepEqual(got, want) {
				t.Errorf("%q becomes %q, and then %q", text, with, without)
			}
		}
	})
}

// standard is a JSON text without comments and trailing commas.
func standard(text []byte) []byte {
	out, err := hujson.Standardize(append(bytes.TrimPrefix(text, byteOrderMark), '\n'))
	if err != nil {
		return text
	}
	return out
}

// saying is what a JSON text says; nothing is an object without members.
func saying(text []byte) any {
	var root any = map[string]any{}
	_ = json.Unmarshal(standard(text), &root)
	return root
}

func TestSkillsAreWrittenAndTakenBack(t *testing.T) {
	home := atHome(t)
	for client, dir := range map[string]string{"claude-code": ".claude/skills", "codex": ".agents/skills",
		"qwen-code": ".qwen/skills"} {
		done(t, "config", client, "--skill")
		file := filepath.Join(home, dir, skills.LivePages, "SKILL.md")
		if text, err := os.ReadFile(file); err != nil || string(text) != skills.Text(skills.LivePages) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
		done(t, "config", client, "--skill", "--remove")
		if entries, _ := os.ReadDir(filepath.Join(home, filepath.Dir(dir))); len(entries) > 0 {
			t.Errorf("%s: %v is left", client, entries)
		}
		mine := filepath.Join(home, dir, skills.LivePages, "SKILL.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o755), os.WriteFile(mine, []byte("mine"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if status, _, errs := run("config", client, "--skill"); status != exitFailed ||
			!strings.Contains(errs, "is there already, and pagewire did not write it") {
			t.Errorf("%s: over a skill of that name: status %d, %s", client, status, errs)
		}
	}
}
