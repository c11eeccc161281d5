// Package clientconfig puts Pagewire into the settings of programs with agents, and takes it out
// again.
//
// A program of the table of clients has a file with an entry for each MCP server. Some programs
// also have hooks, or a plugin, that tell a model of changes. The package edits these files in
// place: JSON with comments by hujson, and TOML by the positions of go-toml's parser. Everything
// else in a file stays as it was, byte for byte, and in its order.
//
// What is ours can be seen in the file: the entry named pagewire that runs pagewire serve or has
// the address of a gateway on this machine, hooks that run pagewire changes, and files whose text
// config writes. So the package keeps no record and no copies, and any pagewire can take out what
// another has written.
//
// It never changes a file that does not parse, never replaces what a person has written unless
// Force is set, and never leaves half a file (package files).
package clientconfig

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// A Client is a program with agents, and the places and formats of its settings for MCP servers.
type Client struct {
	Name, Title string
	// File is the path of its configuration.
	File func(p Places) string
	// key is the member that holds servers by name; "": "mcpServers". For TOML it is a table.
	key string
	// kind is the member "type" of a server that the client starts; "": the client needs none.
	// remote is the "type" of a server on HTTP; "": "http".
	kind, remote string
	// url is the member for the address of a server on HTTP; "": the client has no such servers.
	// headers is the member for the headers of its requests; "": "headers".
	url, headers string
	// words means that the command and its arguments are one list. more are further members of each
	// entry, and started those of a server that the client starts.
	words         bool
	more, started entry
	// skills is the directory of the user's skills for it; nil if unknown.
	skills func(Places) string
	// link makes an install link with an entry; nil if the client has no known links.
	link func(entry) string
	// notifier brings a change to its model without a tool call; nil if no way is known.
	notifier *notifier
	// program is its name on the PATH, and calls the beginning of its name for itself, which
	// servers get; "": Name.
	program, calls string
}

// Clients are the programs that config knows.
var Clients = []Client{
	{Name: "claude-desktop", Title: "Claude Desktop",
		File: in(Places.Config, "Claude", "claude_desktop_config.json"), calls: "claude-ai"},
	{Name: "claude-code", Title: "Claude Code", kind: "stdio", url: "url", program: "claude",
		File: in(func(p Places) string { return p.or("CLAUDE_CONFIG_DIR", "") },
			".claude.json"),
		notifier: &claudeNotifier, skills: in(claudeDir, "skills")},
	{Name: "cursor", Title: "Cursor", url: "url",
		File: in(homeDir, ".cursor", "mcp.json"), link: cursorLink},
	{Name: "vscode", Title: "VS Code", key: "servers", kind: "stdio", url: "url",
		File: in(Places.Config, "Code", "User", "mcp.json"), link: vscodeLink,
		program: "code", calls: "visual studio code"},
	{Name: "codex", Title: "Codex", key: "mcp_servers", url: "url", headers: "http_headers",
		File: in(codexDir, "config.toml"), notifier: &codexNotifier,
		skills: in(homeDir, ".agents", "skills"),
		// Without this Codex keeps them from its servers, and so the display of --launch.
		started: entry{{"env_vars", []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
			"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "PAGEWIRE_BROWSER"}}}},
	{Name: "windsurf", Title: "Windsurf", url: "serverUrl",
		File: in(homeDir, ".codeium", "windsurf", "mcp_config.json")},
	{Name: "zed", Title: "Zed", key: "context_servers", url: "url",
		File: in(zedDir, "settings.json")},
	{Name: "gemini-cli", Title: "Gemini CLI", url: "httpUrl",
		File: geminiSettings, notifier: &geminiNotifier, program: "gemini"},
	{Name: "copilot", Title: "Copilot CLI", kind: "local", url: "url",
		more: entry{{"tools", []string{"*"}}}, File: in(copilotDir, "mcp-config.json"),
		notifier: &copilotNotifier, calls: "github-copilot"},
	{Name: "opencode", Title: "opencode", key: "mcp", kind: "local", remote: "remote", url: "url",
		words: true, more: entry{{"enabled", true}}, File: in(opencodeDir, "opencode.json"),
		notifier: &opencodeNotifier},
	{Name: "qwen-code", Title: "Qwen Code", url: "httpUrl",
		File: qwenSettings, notifier: &qwenNotifier, skills: in(homeDir, ".qwen", "skills"),
		program: "qwen", calls: "qwen"},
}

// at returns the path of our entry in the client's file.
func (c Client) at() []string { return []string{cmp.Or(c.key, "mcpServers"), serverName} }

// Is reports whether an agent is the client, by the agent's name for itself.
func (c Client) Is(agent string) bool {
	return strings.HasPrefix(strings.ToLower(agent), cmp.Or(c.calls, c.Name))
}

// IsLive reports whether the client's model can be told of changes.
func (c Client) IsLive() bool { return c.notifier != nil }

// HasSkills reports whether the place of the client's skills is known.
func (c Client) HasSkills() bool { return c.skills != nil }

// HasLink reports whether the client takes links that install an entry.
func (c Client) HasLink() bool { return c.link != nil }

// HasURL reports whether the client can use a server that runs already.
func (c Client) HasURL() bool { return c.url != "" }

// Says tells when the model of a client with IsLive is told of changes.
func (c Client) Says() string { return c.notifier.says }

// Allow returns the user's remaining step after Write with live; "" for none.
func (c Client) Allow(p Places) string {
	if c.notifier.folder == nil {
		return c.notifier.allow
	}
	return strings.ReplaceAll(c.notifier.allow, "DIR", c.notifier.folder(p))
}

// entry returns the entry of our server: its command, or its address and the header with the token.
func (c Client) entry(command string, args []string, url, token string) entry {
	kind, e := c.kind, entry{{"command", command}, {"args", args}}
	switch {
	case url != "":
		sends := header{"Authorization", "Bearer " + token}
		if e = (entry{{c.url, url}, {cmp.Or(c.headers, "headers"), sends}}); kind != "" {
			kind = cmp.Or(c.remote, "http")
		}
	case c.words:
		e = entry{{"command", slices.Concat([]string{command}, args)}}
	default:
		e = append(e, c.started...)
	}
	if kind != "" {
		e = slices.Insert(e, 0, member{"type", kind})
	}
	return append(e, c.more...)
}

// An install link makes a client ask its user whether to add our server. It has the entry and never
// a token.

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
