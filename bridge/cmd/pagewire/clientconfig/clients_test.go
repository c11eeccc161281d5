package clientconfig

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/skills"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/script"
)

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
		p := Places{c.goos, "/h", func(name string) string { return c.env[name] }}
		for _, client := range Clients {
			want := cmp.Or(c.want[client.Name], everywhere[client.Name])
			if got := filepath.ToSlash(client.File(p)); got != want {
				t.Errorf("%s on %s with %v: %s, want %s", client.Name, c.goos, c.env, got, want)
			}
		}
	}
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
	p := Places{"linux", "/h", func(string) string { return "" }}
	for _, c := range Clients {
		if !c.HasLink() {
			continue
		}
		s := Setup{Client: c, Places: p, Binary: "/bin/pagewire",
			Serve: []string{"--launch", "--open", "https://a.example/?b=+%20&c=ä"}}
		want := generic(s.entry().value)
		want.(map[string]any)["name"] = "pagewire"
		if got := decodeLink(t, s.Link()); !reflect.DeepEqual(any(got), want) {
			t.Errorf("%s: the link has %v, want %v", c.Name, got, want)
		}
	}
}

// The manual lists each program that --live sets up, and counts them right.
func TestLiveProgramsOfTheManual(t *testing.T) {
	read := func(file string) string { return string(testkit.Must(os.ReadFile("../../../../" + file))(t)) }
	live, count := read("demo/docs/live.md"), 0
	for _, c := range Clients {
		if listed := strings.Contains(live, "\n| ["+c.Title+"](clients.md#"); listed != (c.notifier != nil) {
			t.Errorf("live.md lists %s: %t", c.Title, listed)
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
	text := testkit.Must(os.ReadFile("../../../../demo/docs/install.md"))(t)
	for _, link := range regexp.MustCompile(`\]\((https://(cursor\.com/install-mcp|insiders\.vscode\.dev)[^)]*)\)`).
		FindAllSubmatch(text, -1) {
		is := decodeLink(t, string(link[1]))
		delete(is, "type")
		want := map[string]any{"name": "pagewire", "command": "npx", "args": []any{"-y", "pagewire", "serve"}}
		if !reflect.DeepEqual(is, want) {
			t.Errorf("a link adds %v, want %v", is, want)
		}
		buttons[string(link[2])]++
	}
	if len(buttons) != 2 {
		t.Errorf("install.md has buttons for %v, and not one for Cursor and one for VS Code", buttons)
	}
}

const plugin = "../../../../js/claude-plugin"

// The plugin of the repository's marketplace and the extension of Gemini CLI equal the output of
// config --live, with the program from PATH. make generate writes them.
func TestReferencePlugin(t *testing.T) {
	p := Places{"linux", t.TempDir(), func(string) string { return "" }}
	extension := in(claudeDir, "extension")
	gemini := geminiNotifier
	gemini.hooksFile, gemini.server, gemini.folder = in(extension, "hooks", "hooks.json"),
		in(extension, "gemini-extension.json"), extension
	version := npmVersion(t)
	for _, of := range []struct {
		dir, client string
		notifier    *notifier
		base        string // the server's file without the server
	}{
		{plugin, "claude-code", &claudeNotifier, ""},
		{"../../../../js/gemini-extension", "gemini-cli", &gemini, jsonText(entry{{"name", serverName},
			{"version", version}, {"description", "Live state of the web pages that are open"}})},
	} {
		s := Setup{Client: named(of.client), Places: p, Binary: "pagewire"}
		s.Client.notifier = of.notifier
		want := map[string]string{filepath.Base(of.notifier.server(p)): of.base}
		for _, part := range s.parts(true) {
			name := testkit.Must(filepath.Rel(of.notifier.folder(p), part.file))(t)
			want[name] = string(testkit.Must(part.put([]byte(want[name]), false))(t))
		}
		if of.dir == plugin { // the extension has a link to its skills
			for _, name := range skills.Names {
				want[filepath.Join("skills", name, "SKILL.md")] = skills.Text(name)
			}
		}
		checkGenerated(t, of.dir, want)
	}
	var market struct {
		Name    string
		Plugins []struct{ Name, Source, Version string }
	}
	readInto(t, "../../../../.claude-plugin/marketplace.json", &market)
	if market.Name != serverName || len(market.Plugins) != 1 || market.Plugins[0].Name != serverName ||
		market.Plugins[0].Version != version || // without a version each commit would be an update
		!strings.HasSuffix(plugin, strings.TrimPrefix(market.Plugins[0].Source, "./")) {
		t.Errorf("the marketplace is %+v, and the version is %s", market, version)
	}
}

func named(name string) Client {
	return Clients[slices.IndexFunc(Clients, func(c Client) bool { return c.Name == name })]
}

// checkGenerated compares the files of a directory with the wanted ones. With -update it writes
// them.
func checkGenerated(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if *script.Update {
		for name, text := range want {
			path := filepath.Join(dir, name)
			testkit.OK(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
		}
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if string(text) != want[name] {
			t.Errorf("%s/%s is not what config --live writes: run make generate", dir, name)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("%s lacks %d files (%v): run make generate", dir, len(want), err)
	}
}

func npmVersion(t *testing.T) string {
	t.Helper()
	var npm struct{ Version string }
	readInto(t, "../../../../js/package.json", &npm)
	return npm.Version
}

func readInto(t *testing.T, file string, value any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Gemini CLI was seen to call itself so; the names of the others are as documented.
func TestClientsByTheirNames(t *testing.T) {
	for agent, want := range map[string]string{"claude-ai": "claude-desktop", "claude-code": "claude-code",
		"cursor-vscode": "cursor", "Visual Studio Code": "vscode", "codex-mcp-client": "codex", "windsurf-client": "windsurf",
		"Zed": "zed", "gemini-cli-mcp-client-pagewire": "gemini-cli", "github-copilot-developer": "copilot",
		"opencode": "opencode", "qwen-cli-mcp-client-pagewire": "qwen-code", "": "", "agent": "", "my-codex": ""} {
		got := ""
		for _, c := range Clients {
			if c.Is(agent) {
				got += c.Name
			}
		}
		if got != want {
			t.Errorf("%q is %q, want %q", agent, got, want)
		}
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
