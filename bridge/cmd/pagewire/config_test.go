package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ours is the entry of the tables below.
var ours = entry{{"command", "/bin/pagewire"}, {"args", []string{"serve"}}}

func entryIn(key string, e entry) part { return part{At: []string{key, serverName}, Value: e} }

func oursIn(key string) part { return entryIn(key, ours) }

func TestMergeJSONKeepsWhatIsThere(t *testing.T) {
	const put = `"pagewire": {
      "command": "/bin/pagewire",
      "args": ["serve"]
    }`
	for _, c := range []struct{ name, before, after string }{
		{"no file", "", "{\n  \"mcpServers\": {\n    " + put + "\n  }\n}\n"},
		{"only space", " \n", "{\n  \"mcpServers\": {\n    " + put + "\n  }\n}\n"},
		{"empty object", "{}", "{\n  \"mcpServers\": {\n    " + put + "\n  }\n}"},
		{"empty object over lines", "{\n}\n", "{\n  \"mcpServers\": {\n    " + put + "\n  }\n}\n"},
		{"other settings", "{\n  \"theme\": \"dark\"\n}\n", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    " +
			put + "\n  }\n}\n"},
		{"other servers", "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"n\": 1.50\n}\n",
			"{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"},\n    " + put + "\n  },\n  \"n\": 1.50\n}\n"},
		{"no servers yet", "{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {\n    " + put + "\n  }\n}\n"},
		{"a comment in place of servers", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    // none yet\n    " + put + "\n  }\n}\n"},
		{"comments", "// mine\n{\n  /* a, b */\n  \"mcpServers\": {\n    \"other\": {} // \"keep\", this\n    // and " +
			"} this\n  } // end\n}\n",
			"// mine\n{\n  /* a, b */\n  \"mcpServers\": {\n    \"other\": {}, // \"keep\", this\n    // and } " +
				"this\n    " + put + "\n  } // end\n}\n"},
		{"trailing commas", "{\n  \"mcpServers\": {\n    \"other\": {\"args\": [1,],}, // x\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"other\": {\"args\": [1,],}, // x\n    " + put + ",\n  },\n}\n"},
		{"marks in strings", `{"a": "// no, comment }", "b\"": "/*", "mcpServers": {"x": {}}}`,
			`{"a": "// no, comment }", "b\"": "/*", "mcpServers": {"x": {},` + "\n  " + strings.ReplaceAll(put, "\n  ",
				"\n") + "\n}}"},
		{"tabs", "{\n\t\"mcpServers\": {\n\t\t\"other\": {}\n\t}\n}\n",
			"{\n\t\"mcpServers\": {\n\t\t\"other\": {},\n\t\t\"pagewire\": {\n\t\t\t\"command\": " +
				"\"/bin/pagewire\",\n\t\t\t\"args\": [\"serve\"]\n\t\t}\n\t}\n}\n"},
		{"four spaces and CRLF", "{\r\n    \"mcpServers\": {\r\n    }\r\n}\r\n",
			"{\r\n    \"mcpServers\": {\r\n        \"pagewire\": {\r\n            \"command\": " +
				"\"/bin/pagewire\",\r\n            \"args\": [\"serve\"]\r\n        }\r\n    }\r\n}\r\n"},
		{"byte order mark", "\xef\xbb\xbf{\n  \"mcpServers\": {}\n}", "\xef\xbb\xbf{\n  \"mcpServers\": {\n    " + put +
			"\n  }\n}"},
		{"the same", "{\"mcpServers\": {\"pagewire\": {\"args\":[\"serve\"], \"command\": \"/bin/pagewire\", }}}", ""},
		{"the same and more", "{\"mcpServers\": {\"pagewire\": {\"args\":[\"serve\"], \"command\": " +
			"\"/bin/pagewire\", \"disabled\": true}}}", ""},
	} {
		after, err := putJSON([]byte(c.before), oursIn("mcpServers"), false)
		want := c.after
		if want == "" {
			want = c.before
		}
		if err != nil || string(after) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, after, want)
			continue
		}
		again, err := putJSON(after, oursIn("mcpServers"), false)
		if err != nil || string(again) != want {
			t.Errorf("%s: not the same a second time: %v\n%s", c.name, err, again)
		}
		var all struct {
			MCPServers map[string]map[string]any `json:"mcpServers"`
		}
		if err := json.Unmarshal(standard(after), &all); err != nil ||
			all.MCPServers["pagewire"]["command"] != "/bin/pagewire" {
			t.Errorf("%s: the result cannot be read: %v\n%s", c.name, err, after)
		}
	}
}

func TestMergeJSONReplacesOnlyByForce(t *testing.T) {
	const before = "{\n  \"mcpServers\": {\n    \"pagewire\": {\"command\": \"old\"}, // mine\n    \"z\": {}\n  }\n}\n"
	if _, err := putJSON([]byte(before), oursIn("mcpServers"), false); !errors.Is(err, errOther) {
		t.Errorf("without force: %v", err)
	}
	after, err := putJSON([]byte(before), oursIn("mcpServers"), true)
	want := "{\n  \"mcpServers\": {\n    \"pagewire\": {\n      \"command\": \"/bin/pagewire\",\n      \"args\": " +
		"[\"serve\"]\n    }, // mine\n    \"z\": {}\n  }\n}\n"
	if err != nil || string(after) != want {
		t.Errorf("with force: %v\n got %q\nwant %q", err, after, want)
	}
}

func TestTakeJSONKeepsTheCommentsAroundIt(t *testing.T) {
	const entry = `"pagewire": {"command": "/bin/pagewire", "args": ["serve"]}`
	for before, want := range map[string]string{
		"1, // x\n" + entry + `, "z": 1}}`:          "1, // x\n" + ` "z": 1}}`,
		"1 /* x */,\n" + entry + " // y\n}}":        "1 /* x */\n // y\n}}",
		"1,\n" + entry + "\n, /* y */ \"z\": 1, }}": "1,\n /* y */ \"z\": 1, }}",
		"1,\n" + entry + ",\n}}":                    "1,\n}}",
	} {
		const start = `{"mcpServers": {"a": `
		after, err := takeJSON([]byte(start+before), []byte(start+"1}}"), oursIn("mcpServers"), false)
		if err != nil || string(after) != start+want {
			t.Errorf("%v\n got %q\nwant %q", err, after, start+want)
		}
	}
}

func TestMergeJSONRefusesWhatItCannotRead(t *testing.T) {
	for before, want := range map[string]string{
		"[]":                                    "the file holds no object",
		"nonsense":                              "it is no JSON: line 1, column 1: ",
		"{\n  \"a\": 1\n  \"b\": 2\n}":          "it is no JSON: line 3, column 3: ",
		"{\"a\": 1":                             "it is no JSON",
		"{} {}":                                 "after top-level value",
		"{\"mcpServers\": []}":                  `"mcpServers" holds no object`,
		"{\"mcpServers\": null}":                `"mcpServers" holds no object`,
		"{\"mcpServers\":{},\"mcpServers\":{}}": `"mcpServers" is there twice`,
		"{\"mcpServers\":{\"pagewire\":{},\"pagewire\":{}}}": `"pagewire" is there twice`,
		"/* no end {}": "it is no JSON",
		"// nothing":   "it is no JSON",
	} {
		for _, force := range []bool{false, true} {
			if after, err := putJSON([]byte(before), oursIn("mcpServers"), force); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q; result %q", before, err, want, after)
			}
		}
	}
}

func TestMergeTOMLKeepsWhatIsThere(t *testing.T) {
	const put = "[mcp_servers.pagewire]\ncommand = \"/bin/pagewire\"\nargs = [\"serve\"]\n"
	for _, c := range []struct{ name, before, after string }{
		{"no file", "", put},
		{"other settings", "model = \"x\" # mine\n", "model = \"x\" # mine\n\n" + put},
		{"no newline at the end", "a = 1", "a = 1\n\n" + put},
		{"other servers", "[mcp_servers.other]\ncommand = \"x\"\n", "[mcp_servers.other]\ncommand = \"x\"\n\n" + put},
		{"CRLF", "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(put, "\n", "\r\n")},
		{"all kinds of values", "a = '''\n[mcp_servers.pagewire]\n'''\nb = \"\"\"x\\\"\"\"\"\"\nc = [1, [2,\n # no " +
			"]\n 'x'],]\nd = {e = 1, \"f g\".h = [1]}\ni = 1979-05-27 07:32:00Z\nj.k = true\n[[l]]\nm = 1\n[[l]]\nm " +
			"= 2\n",
			"*" + "\n" + put},
		{"the same", put + "\n[x]\na = 1\n", ""},
		{"the same in other words", "[ mcp_servers . \"pagewire\" ] # us\nargs = [ 'serve', ] # " +
			"x\nstartup_timeout_sec = 20\ncommand = '/bin/pagewire'\n", ""},
		{"with a table of its own", put + "[mcp_servers.pagewire.env]\nA = \"1\"\n", ""},
	} {
		after, err := putTOML([]byte(c.before), oursIn("mcp_servers"), false)
		want := c.after
		if want == "" {
			want = c.before
		}
		want = strings.Replace(want, "*", c.before, 1)
		if err != nil || string(after) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, after, want)
			continue
		}
		if again, err := putTOML(after, oursIn("mcp_servers"), false); err != nil || string(again) != want {
			t.Errorf("%s: not the same a second time: %v\n%s", c.name, err, again)
		}
	}
}

func TestMergeTOMLReplacesOnlyByForce(t *testing.T) {
	const before = "# mine\n[mcp_servers.pagewire] # us\nurl = \"http://old\" # old\nargs = ['x'] # " +
		"keep\ntool_timeout_sec = 9\n\n[other]\ncommand = 1\n"
	if _, err := putTOML([]byte(before), oursIn("mcp_servers"), false); !errors.Is(err, errOther) {
		t.Errorf("without force: %v", err)
	}
	after, err := putTOML([]byte(before), oursIn("mcp_servers"), true)
	want := "# mine\n[mcp_servers.pagewire] # us\ncommand = \"/bin/pagewire\"\nargs = [\"serve\"]\n\n[other]\n" +
		"command = 1\n"
	if err != nil || string(after) != want {
		t.Errorf("with force: %v\n got %q\nwant %q", err, after, want)
	}
}

func TestMergeTOMLRefusesWhatItCannotRead(t *testing.T) {
	for before, want := range map[string]string{
		"a":                                     "it is no TOML: line 1, column 1: ",
		"\na = [1, 2\nb = 3":                    "it is no TOML: line 3, column 1: ",
		"[a]\n[a]":                              "it is no TOML: line 2, column 2: ",
		"mcp_servers = {}":                      "[mcp_servers.pagewire] cannot be put there: ",
		"mcp_servers.pagewire.command = 'x'":    "is not written as a table [mcp_servers.pagewire]",
		"[mcp_servers]\npagewire = {args = []}": "is not written as a table [mcp_servers.pagewire]",
		"[mcp_servers.pagewire]\nurl = 'x'\n[mcp_servers.pagewire.args]\n": "cannot be put there: it is no TOML",
		"[[mcp_servers.pagewire]]": "is not written as a table [mcp_servers.pagewire]",
	} {
		for _, force := range []bool{false, true} {
			after, err := putTOML([]byte(before), oursIn("mcp_servers"), force)
			if !force && errors.Is(err, errOther) {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q; result %q", before, err, want, after)
			}
		}
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

func TestConfigKnowsWhereClientsLook(t *testing.T) {
	everywhere := map[string]string{"claude-code": "/h/.claude.json", "cursor": "/h/.cursor/mcp.json",
		"codex": "/h/.codex/config.toml", "windsurf": "/h/.codeium/windsurf/mcp_config.json",
		"gemini-cli": "/h/.gemini/settings.json", "copilot": "/h/.copilot/mcp-config.json",
		"opencode": "/h/.config/opencode/opencode.json", "qwen-code": "/h/.qwen/settings.json", "zed": "/h/.config/zed/settings.json"}
	for _, c := range []struct {
		goos string
		env  map[string]string
		want map[string]string // where it differs
	}{
		{"linux", nil, map[string]string{"claude-desktop": "/h/.config/Claude/claude_desktop_config.json",
			"vscode": "/h/.config/Code/User/mcp.json"}},
		{"darwin", nil, map[string]string{
			"claude-desktop": "/h/Library/Application Support/Claude/claude_desktop_config.json",
			"vscode":         "/h/Library/Application Support/Code/User/mcp.json"}},
		{"windows", map[string]string{"APPDATA": "/roaming"}, map[string]string{
			"claude-desktop": "/roaming/Claude/claude_desktop_config.json", "vscode": "/roaming/Code/User/mcp.json",
			"zed": "/roaming/Zed/settings.json"}},
		{"linux", map[string]string{"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "XDG_CONFIG_HOME": "/x",
			"COPILOT_HOME": "/p"}, map[string]string{"codex": "/c/config.toml", "claude-code": "/d/.claude.json",
			"zed": "/x/zed/settings.json", "opencode": "/x/opencode/opencode.json", "copilot": "/p/mcp-config.json",
			"claude-desktop": "/x/Claude/claude_desktop_config.json", "vscode": "/x/Code/User/mcp.json"}},
	} {
		p := places{c.goos, "/h", func(name string) string { return c.env[name] }}
		for _, client := range clients {
			want := cmp.Or(c.want[client.name], everywhere[client.name])
			if got := filepath.ToSlash(client.file(p)); got != want {
				t.Errorf("%s on %s with %v: %s, want %s", client.name, c.goos, c.env, got, want)
			}
		}
	}
}

// atHome gives the test a home directory of its own.
func atHome(t *testing.T) string {
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

func TestConfigPrintsTheEntryOfEachClient(t *testing.T) {
	home := atHome(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	quoted := quotedJSON(self)
	for _, c := range clients {
		status, out, errs := run("config", c.name, "--", "--chrome", "auto")
		if status != exitDone || !strings.Contains(errs, home) || !strings.Contains(errs, "--write puts it there") {
			t.Errorf("%s: status %d, stderr %q", c.name, status, errs)
		}
		if filepath.Ext(c.file(places{runtime.GOOS, home, os.Getenv})) == ".toml" {
			if want := "[mcp_servers.pagewire]\ncommand = " + tomlValue(self) +
				"\nargs = [\"serve\", \"--chrome\", \"auto\"]\n"; out != want {
				t.Errorf("%s: %q, want %q", c.name, out, want)
			}
			continue
		}
		var got map[string]map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%s: %v in %s", c.name, err, out)
		}
		var e struct {
			Type    string
			Command any
			Args    []string
		}
		err := json.Unmarshal(got[c.key]["pagewire"], &e)
		words := fmt.Sprint(e.Command, " ", strings.Join(e.Args, " "))
		if c.words {
			words = strings.Trim(fmt.Sprint(e.Command), "[]")
		}
		if err != nil || words != self+" serve --chrome auto" || e.Type != c.kind {
			t.Errorf("%s: %v in %s; want the command %s", c.name, err, out, quoted)
		}
	}
	if entries, _ := os.ReadDir(home); len(entries) > 0 {
		t.Errorf("printing wrote %v", entries)
	}
	token := tokenFile(t)
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cursor": `"url": "http://127.0.0.1:7433/mcp"`, "windsurf": `"serverUrl": "http://127.0.0.1:7433/mcp"`,
		"gemini-cli": `"httpUrl": "http://127.0.0.1:7433/mcp"`,
		"qwen-code":  `"httpUrl": "http://127.0.0.1:7433/mcp"`,
		"vscode":     "\"type\": \"http\",\n      \"url\": \"http://127.0.0.1:7433/mcp\"",
		"codex":      `url = "http://127.0.0.1:7433/mcp"`,
	} {
		status, out, errs := run("config", name, "--http", "--token-file", token)
		if status != exitDone || !strings.Contains(out, want) || strings.Contains(out, "command") {
			t.Errorf("%s --http: status %d, %s, %s", name, status, out, errs)
		}
		sent := `"headers": { "Authorization": "Bearer ` + strings.Repeat("t", 43) + `" }`
		if name == "codex" {
			sent = `http_headers = { Authorization = "Bearer ` + strings.Repeat("t", 43) + `" }`
		}
		if !strings.Contains(out, sent) {
			t.Errorf("%s --http: no %s in %s", name, sent, out)
		}
	}
	if _, out, _ := run("config", "cursor", "--http=localhost:8000", "--token-file", token); !strings.Contains(out,
		`"http://localhost:8000/mcp"`) {
		t.Errorf("--http=localhost:8000: %s", out)
	}
}

func TestConfigRefuses(t *testing.T) {
	atHome(t)
	for args, want := range map[string]string{
		"emacs":                            `unknown client "emacs": want one of claude-desktop, claude-code, cursor, vscode, codex, windsurf, zed, gemini-cli, copilot, opencode, qwen-code`,
		"zed --link":                       "Zed takes no link that is known: --link is for cursor and vscode",
		"cursor --link --http":             "--link prints a link, and a link holds no token",
		"zed --skill":                      "Zed has no known place for skills: --skill is for claude-code, codex, qwen-code",
		"codex --skill --live":             "--skill writes the skills alone",
		"claude-desktop --http":            "Claude Desktop starts its servers and takes no address",
		"cursor --http=8000":               `--http "8000": want host and port`,
		"cursor --http -- --inject":        "flags of serve are for a server that the client starts",
		"cursor -- --injekt":               "unknown flag: --injekt",
		"cursor -- --inject":               "--inject needs a browser",
		"cursor -- https://a.example":      `unexpected argument "https://a.example" for serve`,
		"cursor -- --launch --chrome auto": "--chrome and --launch are two browsers",
	} {
		status, out, errs := run(append([]string{"config"}, strings.Fields(args)...)...)
		if status != exitUsage || out != "" || !strings.HasPrefix(errs, "pagewire: "+want) {
			t.Errorf("%s: status %d, stdout %q, stderr %q; want %q", args, status, out, errs, want)
		}
	}
}

// The token gets into no file that others can read, and what is written once is not written again.
func TestConfigKeepsTheToken(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are other ones there")
	}
	for _, c := range []struct{ name, file, text string }{{"cursor", ".cursor/mcp.json", "{}"},
		{"codex", ".codex/config.toml", "# mine\n"}} {
		home := atHome(t)
		path := filepath.Join(home, filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		args := []string{"config", c.name, "--http", "--write", "--token-file", filepath.Join(home, "token")}
		status, _, errs := run(args...)
		if text, _ := os.ReadFile(path); status != exitFailed || string(text) != c.text ||
			!strings.Contains(errs, "chmod 600 "+path) {
			t.Errorf("%s, which others may read: status %d, %q, %s", c.name, status, errs, text)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if status, out, errs := run(args...); status != exitDone || out != path+"\n" {
			t.Errorf("%s: status %d, %q, %q", c.name, status, out, errs)
		}
		first, _ := os.ReadFile(path)
		if status, _, errs := run(args...); status != exitDone || errs != "pagewire: "+path+" has it already\n" {
			t.Errorf("%s, again: status %d, %q", c.name, status, errs)
		}
		// With another token it is another entry, and with a command none of it is left.
		other := append(args[:len(args)-1:len(args)-1], filepath.Join(home, "other"))
		if status, _, _ := run(other...); status != exitFailed {
			t.Errorf("%s, another token: status %d", c.name, status)
		}
		if status, _, errs := run("config", c.name, "--write", "--force"); status != exitDone {
			t.Errorf("%s, a command: status %d, %q", c.name, status, errs)
		}
		if text, _ := os.ReadFile(path); strings.Contains(string(text), "Bearer") ||
			!strings.Contains(string(first), "Bearer") {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}
