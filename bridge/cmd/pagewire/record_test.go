package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/testkit"
)

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

// --remove restores each file byte for byte and removes every directory that config has made, in any order of commands.
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
	// The last --remove removes the directories that were made for all clients.
	home := atHome(t)
	before := tree(t, home)
	for step := range strings.SplitSeq("zed --write, opencode --live, codex --write, codex --live, gemini-cli --live, "+
		"opencode --remove, zed --remove, codex --remove, gemini-cli --remove, codex --remove", ", ") {
		done(t, append([]string{"config"}, strings.Fields(step)...)...)
	}
	same(t, "after several clients", tree(t, home), before)
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

// A part that is put into a text and taken out again leaves the original text.
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
			without, err := p.remove(with, text, false)
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

// standard removes comments and trailing commas from a JSON text.
func standard(text []byte) []byte {
	out, err := hujson.Standardize(append(bytes.TrimPrefix(text, byteOrderMark), '\n'))
	if err != nil {
		return text
	}
	return out
}

// saying decodes a JSON text. An empty text is an object without members.
func saying(text []byte) any {
	var root any = map[string]any{}
	_ = json.Unmarshal(standard(text), &root)
	return root
}
