package clientconfig

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// ours is our entry in the tables below.
var ours = entry{{"command", "/bin/pagewire"}, {"args", []string{"serve"}}}

func entryIn(key string, e entry) part { return part{at: []string{key, serverName}, value: e} }

// TestEdits plays testdata/merge.txtar. Words are quoted as in Go; json! and toml! use --force.
//
//	json TEXT, toml TEXT   the text with our server put into it, or the error
func TestEdits(t *testing.T) {
	script.Each(t, func(t *testing.T, file string) {
		script.Play(t, file, func(s *script.Script) func(string) {
			return func(line string) {
				verb, quoted, _ := strings.Cut(line, " ")
				text, err := strconv.Unquote(quoted)
				if err != nil {
					t.Fatal(line, err)
				}
				put, key := putJSON, "mcpServers"
				if strings.HasPrefix(verb, "toml") {
					put, key = putTOML, "mcp_servers"
				}
				after, err := put([]byte(text), entryIn(key, ours), strings.HasSuffix(verb, "!"))
				if err != nil {
					s.Say("error: %v", err)
					return
				}
				if again, err := put(after, entryIn(key, ours), false); err != nil || string(again) != string(after) {
					t.Errorf("%q is %q, and not the same a second time: %v", text, again, err)
				}
				if string(after) == text {
					s.Say("unchanged")
					return
				}
				for line := range strings.Lines(string(after)) {
					quoted := strconv.Quote(line)
					shown, whole := strings.CutSuffix(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\n`)
					if !whole {
						shown += " (no newline)"
					}
					s.Say("| %s", shown)
				}
			}
		})
	})
}

func TestTakeKeepsTheCommentsAroundIt(t *testing.T) {
	const entry = `"pagewire": {"command": "/bin/pagewire", "args": ["serve"]}`
	for before, want := range map[string]string{
		`{"mcpServers": {"a": 1, // x` + "\n" + entry + `, "z": 1}}`:          `{"mcpServers": {"a": 1, // x` + "\n" + `"z": 1}}`,
		`{"mcpServers": {"a": 1 /* x */,` + "\n" + entry + " // y\n}}":        `{"mcpServers": {"a": 1 /* x */` + "\n// y\n}}",
		`{"mcpServers": {"a": 1,` + "\n" + entry + "\n, /* y */ \"z\": 1, }}": `{"mcpServers": {"a": 1,` + "\n/* y */ \"z\": 1, }}",
		`{"mcpServers": {"a": 1,` + "\n" + entry + ",\n}}":                    `{"mcpServers": {"a": 1,` + "\n}}",
		`{"mcpServers": {"a": 1, ` + entry + ` // y` + "\n,}}":                `{"mcpServers": {"a": 1,  // y` + "\n}}",
		`{"mcpServers": {"a": 1, // x` + "\n" + entry + `}}`:                  `{"mcpServers": {"a": 1 // x` + "\n}}",
		`{"mcpServers": {` + "\n// \"db\": {},\n" + entry + "\n}}":            `{"mcpServers": {` + "\n// \"db\": {},\n}}",
		`{"mcpServers": {` + entry + `, /* "db": {} */ }}`:                    `{"mcpServers": {/* "db": {} */ }}`,
		`{"mcpServers": {` + entry + `, }}`:                                   `{"mcpServers": {}}`,
	} {
		after, err := takeJSON([]byte(before), part{at: []string{"mcpServers", serverName}}, false)
		if err != nil || string(after) != want {
			t.Errorf("%v\n got %q\nwant %q", err, after, want)
		}
	}
	const table = "[mcp_servers.pagewire] # us\n# args = []\ncommand = '/bin/pagewire'\nargs = [\n'serve',]\n"
	for before, want := range map[string]string{
		"a = 1 # x\n\n" + table + "\n# y\n[z]\n":                                       "a = 1 # x\n\n# y\n[z]\n",
		table + "[mcp_servers.pagewire.env]\nA = '1'\n[z]\n":                           "[z]\n",
		"[mcp_servers.z]\n" + table + "# y\n[a]\n[mcp_servers.pagewire.tools.x]\n":     "[mcp_servers.z]\n# y\n[a]\n",
		"[mcp_servers]\npagewire = {command = 'pagewire', args = ['serve']}\nz = {}\n": "[mcp_servers]\nz = {}\n",
		"mcp_servers.pagewire.url = 'http://localhost:7433/mcp'\nb = 1":                "b = 1",
	} {
		after, err := takeTOML([]byte(before), entryIn("mcp_servers", nil), false)
		if err != nil || string(after) != want {
			t.Errorf("%v\n got %q\nwant %q", err, after, want)
		}
	}
}

// A hook replaces those of another build in its list, also beside one that is the same, and nothing
// else.
func TestAHookReplacesOthersOfOurs(t *testing.T) {
	const same = `{"hooks": [{"type": "command", "command": "/b/pagewire changes --hook codex", "timeout": 5}]}`
	const other = `{"hooks": [{"command": "/a/pagewire changes --hook codex"}]}`
	hook := part{at: []string{"hooks", "E"}, hook: true,
		value: inGroup(1)(moment{}, "/b/pagewire changes --hook codex")}
	for before, want := range map[string]string{
		`{"hooks": {"E": [1, ` + same + `, 2], "F": [` + other + `]}}`: "unchanged",
		`{"hooks": {"E": [1, ` + same + `, 2, ` + other + `]}}`:        `{"hooks":{"E":[1,2,` + same + `]}}`,
		`{"hooks": {"E": [` + other + `, 1]}}`:                         `{"hooks":{"E":[1,` + same + `]}}`,
	} {
		after, err := putJSON([]byte(before), hook, false)
		if want == "unchanged" {
			want = before
		}
		if generic(json.RawMessage(after)) == nil || !reflect.DeepEqual(generic(json.RawMessage(after)), generic(json.RawMessage(want))) {
			t.Errorf("%v\n got %s\nwant %s", err, after, want)
		}
	}
}

// What is ours can be seen in the file, whoever has written it.
func TestOurs(t *testing.T) {
	for text, want := range map[string]bool{
		`{"command": "/opt/x/pagewire", "args": ["serve", "--launch"], "env": {}}`:     true,
		`{"command": "C:\\Program Files\\pagewire.exe", "args": ["serve"]}`:            true,
		`{"command": ["pagewire", "serve"]}`:                                           true,
		`{"command": "npx", "args": ["-y", "pagewire@0.9.0", "serve"]}`:                true,
		`{"httpUrl": "http://127.0.0.1:7433/mcp"}`:                                     true,
		`{"url": "http://localhost:8000/mcp"}`:                                         true,
		`{"serverUrl": "http://[::1]:8000/mcp"}`:                                       true,
		`{"command": "npx", "args": ["mcp-remote", "http://127.0.0.1:7433/mcp"]}`:      true,
		`{"url": "https://pagewire.example/mcp"}`:                                      false,
		`{"url": "http://127.0.0.1:7433/sse"}`:                                         false,
		`{"command": "sh", "args": ["-c", "exec '/opt/a b/pagewire' serve --launch"]}`: true,
		`{"command": "pagewire serve"}`:                                                true,
		`{"command": "mine", "args": ["serve"]}`:                                       false,
		`{"command": "pagewire", "args": ["ls"]}`:                                      false,
		`{"command": "serve", "args": ["pagewire"]}`:                                   false,
		`{"command": 1, "args": {"serve": 1}}`:                                         false,
		`[]`:                                                                           false,
	} {
		var is any
		testkit.OK(t, json.Unmarshal([]byte(text), &is))
		if ourEntry(is) != want {
			t.Errorf("%s is ours: %t", text, !want)
		}
	}
	for text, want := range map[string]bool{
		`pagewire changes --hook codex`:                                     true,
		`/old/place/pagewire changes --hook codex --inline https://*.a.b`:   true,
		`'/home/o'\''neil/a b/pagewire' changes --hook gemini-cli --forget`: true,
		`& "C:/Program Files/pagewire.exe" changes --hook copilot`:          true,
		`pagewire changes`:                                  true,
		`$HOME/bin/pagewire changes --hook codex`:           true,
		`pagewire changes --hook codex | tee log`:           false,
		`date; pagewire changes --hook codex`:               false,
		`pagewire changes --hook codex && date`:             false,
		`echo pagewire changes`:                             false,
		`pagewire-wrapper changes --hook codex`:             false,
		`pagewire watch`:                                    false,
		`pagewire changes --hook "$(mine)"` + "\n" + `rm x`: false,
	} {
		if ourHook(map[string]any{"command": text}) != want {
			t.Errorf("%s is ours: %t", text, !want)
		}
	}
	if ourHook(map[string]any{"bash": "date", "powershell": "& pagewire changes"}) || ourHook("pagewire changes") {
		t.Error("a hook is ours that a person has changed, or a text")
	}
}

func TestTOMLStringsOfWindows(t *testing.T) {
	e := entry{{"command", `C:\Program Files\pagewire.exe`}, {"args", []string{"serve"}}}
	text, err := putTOML(nil, entryIn("mcp_servers", e), false)
	if err != nil || !strings.Contains(string(text), `command = 'C:\Program Files\pagewire.exe'`) {
		t.Errorf("%s, %v", text, err)
	}
	same := "[mcp_servers.pagewire]\ncommand = \"C:\\\\Program Files\\\\pagewire.exe\"\nargs = [\"serve\"]\n"
	if text, err := putTOML([]byte(same), entryIn("mcp_servers", e), false); err != nil || string(text) != same {
		t.Errorf("%s, %v", text, err)
	}
}

// A part that is put into a text and taken out again leaves the text as it was, but for empty
// objects and lists.
func FuzzTake(f *testing.F) {
	for _, text := range []string{"", "{}", "{\"hooks\": {\"E\": [1,], \"a\": {}}, // x\n}",
		"{\"a\":1,\n\t\"hooks\": {}}", "[a]\nb = [1]\n[hooks.E]\nx = 1\n", "{\"hooks\":{\"E\":[ /* [ */ ]}}",
		"a = 1\n\n\n", "{\"\":0,", "[[]]", "{//0 \n}", "a = \"\"\"x\"\"\"\n", "\xef\xbb\xbf{\"hooks\":{}}"} {
		f.Add([]byte(text))
	}
	list := part{at: []string{"hooks", "E"}, hook: true, value: entry{{"command", "pagewire changes --hook x"}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range []part{list, entryIn("hooks", ours), {file: "x.toml", at: []string{"hooks", serverName}, value: ours}} {
			clean, err := p.take(text, true)
			if err != nil {
				continue
			}
			with, err := p.put(clean, false)
			if err != nil {
				continue
			}
			if again, err := p.put(with, false); err != nil || string(again) != string(with) {
				t.Errorf("%q becomes %q, and then %q, %v", text, with, again, err)
			}
			without, err := p.take(with, false)
			if err != nil {
				t.Fatalf("%q becomes %q, and then %v", text, with, err)
			}
			if p.toml() {
				if rest, ok := bytes.CutPrefix(without, clean); !ok || len(bytes.TrimSpace(rest)) > 0 {
					t.Errorf("%q becomes %q, and then %q", text, with, without)
				}
			} else if got, want := persons(t, without, "hooks"), persons(t, clean, "hooks"); !slices.Equal(got, want) {
				t.Errorf("%q becomes %q, and then %q", text, with, without)
			}
		}
	})
}
