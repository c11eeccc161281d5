package clientconfig

import (
	"bytes"
	"encoding/json"
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

// TestEdits plays the conversations of testdata. Words are quoted as in Go.
//
//	json TEXT, toml TEXT   the text with our server put into it, or the error; json! and toml! use --force
//	take-json TEXT, take-toml TEXT   the text without our server
//	hook TEXT              JSON with our hook put into the list hooks.E; take-hook TEXT: without all our hooks
//	entry TEXT, run TEXT   whether an entry in JSON, or a hook that runs this command, is ours
func TestEdits(t *testing.T) {
	entries := map[string]part{"json": entryIn("mcpServers", ours),
		"toml": {file: "x.toml", at: []string{"mcp_servers", serverName}, value: ours},
		"hook": {at: []string{"hooks", "E"}, hook: true, events: []string{"E"},
			value: inGroup(1)(moment{}, "/b/pagewire changes --hook x")}}
	say := func(s *script.Script, verb, text string) {
		var is any
		switch p, known := entries[strings.Trim(verb, "!")]; {
		case verb == "entry":
			testkit.OK(t, json.Unmarshal([]byte(text), &is))
			s.Say("ours: %t", ourEntry(is))
		case verb == "run":
			s.Say("ours: %t", ourHook(map[string]any{"command": text}))
		case known:
			after, err := p.put([]byte(text), strings.HasSuffix(verb, "!"))
			if again, err2 := p.put(after, false); err == nil && (err2 != nil || string(again) != string(after)) {
				t.Errorf("%q is %q, and not the same a second time: %v", text, again, err2)
			}
			sayText(s, text, string(after), err)
		default:
			after, err := entries[strings.TrimPrefix(verb, "take-")].take([]byte(text), false)
			sayText(s, text, string(after), err)
		}
	}
	script.Each(t, func(t *testing.T, file string) {
		script.Play(t, file, func(s *script.Script) func(string) {
			return func(line string) {
				verb, quoted, _ := strings.Cut(line, " ")
				say(s, verb, testkit.Must(strconv.Unquote(quoted))(t))
			}
		})
	})
}

func sayText(s *script.Script, was, is string, err error) {
	if err != nil {
		s.Say("error: %v", err)
		return
	}
	if is == was {
		s.Say("unchanged")
		return
	}
	for line := range strings.Lines(is) {
		quoted := strconv.Quote(line)
		quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		shown, whole := strings.CutSuffix(quoted, `\n`)
		if !whole {
			shown += " (no newline)"
		}
		s.Say("| %s", shown)
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
