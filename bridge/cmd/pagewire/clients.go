package main

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A client is a program with agents in it, and where it looks for MCP servers.
type client struct {
	name, title string
	// file is the path of its configuration.
	file func(p places) string
	// key is the member that holds servers by name. For TOML it is a table.
	key string
	// kind is the member "type" of a server that the client starts; "": the client wants none. remote is the one of a
	// server on HTTP; "": "http".
	kind, remote string
	// url is the member with the address of a server on HTTP; "": none. headers is the one with its requests' headers.
	url, headers string
	// words says that the command and its arguments are one list. more are further members of each entry.
	words bool
	more  entry
	// skills is the directory of the user's skills for it; nil: none is known.
	skills func(places) string
	// link is an install link with an entry; nil: none is known.
	link func(entry) string
	// notifier is how a change reaches its model without a tool call; nil: no way is known.
	notifier *notifier
}

// places are the values that paths depend on.
type places struct {
	goos, home string
	env        func(string) string
}

// here returns the places of this process.
func here() (places, error) {
	home, err := os.UserHomeDir()
	return places{runtime.GOOS, absolute(home), os.Getenv}, err
}

// config is the directory with the settings of the user's programs.
func (p places) config() string {
	switch p.goos {
	case "windows":
		if dir := p.env("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(p.home, "AppData", "Roaming")
	case "darwin":
		return filepath.Join(p.home, "Library", "Application Support")
	}
	return p.xdg()
}

func (p places) xdg() string {
	if dir := p.env("XDG_CONFIG_HOME"); dir != "" {
		return absolute(dir)
	}
	return filepath.Join(p.home, ".config")
}

// or is the directory in an environment variable, or else one below the home directory.
func (p places) or(variable, below string) string {
	if dir := p.env(variable); dir != "" {
		return absolute(dir)
	}
	return filepath.Join(p.home, below)
}

// absolute makes a path independent of the working directory: it goes on record.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// Directories with several files that config writes.
func claudeDir(p places) string   { return p.or("CLAUDE_CONFIG_DIR", ".claude") }
func codexDir(p places) string    { return p.or("CODEX_HOME", ".codex") }
func copilotDir(p places) string  { return p.or("COPILOT_HOME", ".copilot") }
func opencodeDir(p places) string { return filepath.Join(p.xdg(), "opencode") }

func geminiSettings(p places) string { return filepath.Join(p.home, ".gemini", "settings.json") }
func qwenSettings(p places) string   { return filepath.Join(p.home, ".qwen", "settings.json") }

// in is a file in a directory.
func in(dir func(places) string, name ...string) func(places) string {
	return func(p places) string { return filepath.Join(append([]string{dir(p)}, name...)...) }
}

var clients = []client{
	{name: "claude-desktop", title: "Claude Desktop", key: "mcpServers",
		file: func(p places) string { return filepath.Join(p.config(), "Claude", "claude_desktop_config.json") }},
	{name: "claude-code", title: "Claude Code", key: "mcpServers", kind: "stdio", url: "url", headers: "headers",
		file:     func(p places) string { return filepath.Join(p.or("CLAUDE_CONFIG_DIR", ""), ".claude.json") },
		notifier: &claudeNotifier, skills: in(claudeDir, "skills")},
	{name: "cursor", title: "Cursor", key: "mcpServers", url: "url", headers: "headers",
		file: func(p places) string { return filepath.Join(p.home, ".cursor", "mcp.json") }, link: cursorLink},
	{name: "vscode", title: "VS Code", key: "servers", kind: "stdio", url: "url", headers: "headers",
		file: func(p places) string { return filepath.Join(p.config(), "Code", "User", "mcp.json") }, link: vscodeLink},
	{name: "codex", title: "Codex", key: "mcp_servers", url: "url", headers: "http_headers",
		file: in(codexDir, "config.toml"), notifier: &codexNotifier,
		skills: func(p places) string { return filepath.Join(p.home, ".agents", "skills") }},
	{name: "windsurf", title: "Windsurf", key: "mcpServers", url: "serverUrl", headers: "headers",
		file: func(p places) string { return filepath.Join(p.home, ".codeium", "windsurf", "mcp_config.json") }},
	{name: "zed", title: "Zed", key: "context_servers", url: "url", headers: "headers", file: func(p places) string {
		if p.goos == "windows" {
			return filepath.Join(p.config(), "Zed", "settings.json")
		}
		return filepath.Join(p.xdg(), "zed", "settings.json")
	}},
	{name: "gemini-cli", title: "Gemini CLI", key: "mcpServers", url: "httpUrl", headers: "headers",
		file: geminiSettings, notifier: &geminiNotifier},
	{name: "copilot", title: "Copilot CLI", key: "mcpServers", kind: "local", url: "url", headers: "headers",
		more: entry{{"tools", []string{"*"}}}, file: in(copilotDir, "mcp-config.json"), notifier: &copilotNotifier},
	{name: "opencode", title: "opencode", key: "mcp", kind: "local", remote: "remote", url: "url", headers: "headers",
		words: true, more: entry{{"enabled", true}}, file: in(opencodeDir, "opencode.json"),
		notifier: &opencodeNotifier},
	{name: "qwen-code", title: "Qwen Code", key: "mcpServers", url: "httpUrl", headers: "headers", file: qwenSettings,
		notifier: &qwenNotifier, skills: func(p places) string { return filepath.Join(p.home, ".qwen", "skills") }},
}

// clientNames are the names of the clients for which wanted is true.
func clientNames(wanted func(client) bool) (names []string) {
	for _, c := range clients {
		if wanted(c) {
			names = append(names, c.name)
		}
	}
	return names
}

func hasSkills(c client) bool { return c.skills != nil }
func isLive(c client) bool    { return c.notifier != nil }
func anyClient(client) bool   { return true }

// An entry is an object of a configuration, with its members in order.
type entry []member

type member struct {
	name  string
	value any // a string, a bool, a number, a []string, a header, an entry or a []any of these
}

// A header is one that a client sends with each request.
type header struct{ name, value string }

// entry is the entry of our server: its command, or its address and the header with the token.
func (c client) entry(command string, args []string, url, token string) entry {
	kind, e := c.kind, entry{{"command", command}, {"args", args}}
	switch {
	case url != "":
		if e = (entry{{c.url, url}, {c.headers, header{"Authorization", "Bearer " + token}}}); kind != "" {
			if kind = c.remote; kind == "" {
				kind = "http"
			}
		}
	case c.words:
		e = entry{{"command", slices.Concat([]string{command}, args)}}
	}
	if kind != "" {
		e = slices.Insert(e, 0, member{"type", kind})
	}
	return append(e, c.more...)
}

// generic is a value as encoding/json decodes it, for comparisons with decoded values.
func generic(value any) (is any) {
	_ = json.Unmarshal([]byte(jsonText(value)), &is) // it has just been written
	return is
}

// serverName is the name under which clients know us.
const serverName = "pagewire"

// oneOf lists names on two lines.
func oneOf(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// An install link has a client ask its user whether it may add our server. It holds the entry and never a token.

// cursorLink is Cursor's: the entry alone, in base64.
func cursorLink(e entry) string {
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + serverName + "&config=" +
		escapeComponent(base64.StdEncoding.EncodeToString([]byte(compactJSON(e))))
}

// vscodeLink is VS Code's: the entry with its name, as JSON.
func vscodeLink(e entry) string {
	e = append(entry{{"name", serverName}}, e...)
	return "vscode:mcp/install?" + escapeComponent(compactJSON(e))
}

// escapeComponent is JavaScript's encodeURIComponent, as far as our entries need it.
func escapeComponent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// compactJSON is an entry on one line.
func compactJSON(e entry) string { return jsonValue(e, "", "", "") }

func hasLink(c client) bool { return c.link != nil }
