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

// A client is a program with agents, and the places and formats of its settings for MCP servers.
type client struct {
	name, title string
	// file is the path of its configuration.
	file func(p places) string
	// key is the member that holds servers by name. For TOML it is a table.
	key string
	// kind is the member "type" of a server that the client starts; "": the client needs none. remote is the "type" of
	// a server on HTTP; "": "http".
	kind, remote string
	// url is the member for the address of a server on HTTP; "": the client has no such servers. headers is the member
	// for the headers of its requests.
	url, headers string
	// words means that the command and its arguments are one list. more are further members of each entry.
	words bool
	more  entry
	// skills is the directory of the user's skills for it; nil if unknown.
	skills func(places) string
	// link makes an install link with an entry; nil if the client has no known links.
	link func(entry) string
	// notifier brings a change to its model without a tool call; nil if no way is known.
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

// config returns the directory with the settings of the user's programs.
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

// or returns the directory that an environment variable names, or, without it, one below the home directory.
func (p places) or(variable, below string) string {
	if dir := p.env(variable); dir != "" {
		return absolute(dir)
	}
	return filepath.Join(p.home, below)
}

// absolute makes a path independent of the working directory, since the record keeps it.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// config writes several files in each of these directories.
func claudeDir(p places) string   { return p.or("CLAUDE_CONFIG_DIR", ".claude") }
func codexDir(p places) string    { return p.or("CODEX_HOME", ".codex") }
func copilotDir(p places) string  { return p.or("COPILOT_HOME", ".copilot") }
func opencodeDir(p places) string { return filepath.Join(p.xdg(), "opencode") }

func geminiSettings(p places) string { return filepath.Join(p.home, ".gemini", "settings.json") }
func qwenSettings(p places) string   { return filepath.Join(p.home, ".qwen", "settings.json") }

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

// A header is an HTTP header that a client sends with each request.
type header struct{ name, value string }

// entry returns the entry of our server: its command, or its address and the header with the token.
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

// generic converts a value to the types of encoding/json, for comparisons with decoded values.
func generic(value any) (is any) {
	_ = json.Unmarshal([]byte(jsonText(value)), &is) // jsonText has just made it
	return is
}

// serverName is the name of our server in clients.
const serverName = "pagewire"

// oneOf lists names on two lines.
func oneOf(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// An install link makes a client ask its user whether to add our server. It has the entry and never a token.

// cursorLink returns Cursor's link, with only the entry in base64.
func cursorLink(e entry) string {
	return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + serverName + "&config=" +
		escapeComponent(base64.StdEncoding.EncodeToString([]byte(compactJSON(e))))
}

// vscodeLink returns VS Code's link, with the entry and its name as JSON.
func vscodeLink(e entry) string {
	e = append(entry{{"name", serverName}}, e...)
	return "vscode:mcp/install?" + escapeComponent(compactJSON(e))
}

// escapeComponent is JavaScript's encodeURIComponent, as far as our entries need it.
func escapeComponent(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func compactJSON(e entry) string { return jsonValue(e, "", "", "") }

func hasLink(c client) bool { return c.link != nil }
