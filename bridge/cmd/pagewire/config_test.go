package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// ours is our entry in the tables below.
var ours = entry{{"command", "/bin/pagewire"}, {"args", []string{"serve"}}}

func entryIn(key string, e entry) part { return part{At: []string{key, serverName}, Value: e} }

func oursIn(key string) part { return entryIn(key, ours) }

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
	// An object that we have made stays if the user has put a comment into it: a server that is switched off.
	const made = `{"mcpServers": {`
	for before, want := range map[string]string{
		"\n// \"db\": {},\n" + entry + "\n}}": made + "\n// \"db\": {},\n}}",
		entry + ", /* \"db\": {} */ }}":       made + " /* \"db\": {} */ }}",
		entry + ", }}":                        "{}",
	} {
		after, err := takeJSON([]byte(made+before), []byte("{}"), oursIn("mcpServers"), false)
		if err != nil || string(after) != want {
			t.Errorf("%v\n got %q\nwant %q", err, after, want)
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
		want map[string]string // the differences from everywhere
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

// decodeLink returns the server in an install link.
func decodeLink(t *testing.T, link string) map[string]any {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	var text []byte
	switch {
	case u.Scheme == "https" && u.Query().Has("url"): // for sites that drop links with a program's scheme
		return decodeLink(t, u.Query().Get("url"))
	case u.Scheme == "vscode" && u.Opaque == "mcp/install":
		var plain string
		plain, err = url.PathUnescape(u.RawQuery)
		text = []byte(plain)
	case strings.HasSuffix(u.Path, "/install") || strings.HasSuffix(u.Path, "/install-mcp"):
		text, err = base64.StdEncoding.DecodeString(u.Query().Get("config"))
	default:
		t.Fatalf("no client knows %s", link)
	}
	server := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &server)
	}
	if err != nil {
		t.Fatalf("%s: %v", link, err)
	}
	if name := u.Query().Get("name"); name != "" {
		server["name"] = name
	}
	return server
}

func TestLinkHoldsTheEntry(t *testing.T) {
	atHome(t)
	self := testkit.Must(os.Executable())(t)
	flags := []string{"--launch", "--open", "https://a.example/?b=+%20&c=ä"}
	for _, c := range clients {
		if !hasLink(c) {
			continue
		}
		_, out, errs := run(append([]string{"config", c.name, "--link", "--"}, flags...)...)
		want := generic(c.entry(self, append([]string{"serve"}, flags...), "", ""))
		want.(map[string]any)["name"] = "pagewire"
		if got := decodeLink(t, strings.TrimSpace(out)); !reflect.DeepEqual(any(got), want) {
			t.Errorf("%s: the link has %v, want %v (%s)", c.name, got, want, errs)
		}
	}
}

// The manual lists each program that --live sets up, and counts them right.
func TestLiveProgramsOfTheManual(t *testing.T) {
	read := func(file string) string { return string(testkit.Must(os.ReadFile("../../../" + file))(t)) }
	live, count := read("demo/docs/live.md"), 0
	for _, c := range clients {
		if listed := strings.Contains(live, "\n| ["+c.title+"](clients.md#"); listed != (c.notifier != nil) {
			t.Errorf("live.md lists %s: %t", c.title, listed)
		} else if listed {
			count++
		}
	}
	number := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}[count]
	for _, file := range []string{"README.md", "demo/docs/live.md", "demo/docs/faq.md"} {
		if !strings.Contains(strings.ToLower(read(file)), number+" programs ") {
			t.Errorf("%s does not say that %s programs are told of changes", file, number)
		}
	}
}

// The buttons of the manual add a server that npx starts.
func TestLinksOfTheManual(t *testing.T) {
	buttons := map[string]int{}
	for _, page := range []string{"clients.md", "install.md"} {
		text := testkit.Must(os.ReadFile("../../../demo/docs/" + page))(t)
		for _, link := range regexp.MustCompile(`\]\((https://(cursor\.com/install-mcp|insiders\.vscode\.dev)[^)]*)\)`).
			FindAllSubmatch(text, -1) {
			is := decodeLink(t, string(link[1]))
			delete(is, "type")
			want := map[string]any{"name": "pagewire", "command": "npx", "args": []any{"-y", "pagewire", "serve"}}
			if !reflect.DeepEqual(is, want) {
				t.Errorf("%s: a link adds %v, want %v", page, is, want)
			}
			buttons[page+" "+string(link[2])]++
		}
	}
	if len(buttons) < 4 {
		t.Errorf("buttons are in %v, and not one for Cursor and one for VS Code in clients.md and in install.md", buttons)
	}
}
