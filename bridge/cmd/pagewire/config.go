//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/hub"
	"github.com/pagewire/pagewire/bridge/gateway/node"
	"github.com/pagewire/pagewire/bridge/gateway/seen"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
)

// A client is a program with agents in it, and where it looks for MCP servers.
type client struct {
	name, title string
	// file is the path of its configuration.
	file func(p places) string
	// key is the member that holds servers by name. For TOML it is a table.
	key string
	// kind is the member "type" of a server that is started, and "" for a client that wants none.
	kind string
	// url is the member with the address of a server on HTTP, and "" for a client that only starts servers; headers that with what
	// requests are to have.
	url, headers string
	toml         bool
}

// places are what paths depend on.
type places struct {
	goos, home string
	env        func(string) string
}

// config is the directory in which programs of a person keep their settings.
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
		return dir
	}
	return filepath.Join(p.home, ".config")
}

// or is the directory that a variable names, else one below the home directory.
func (p places) or(variable, below string) string {
	if dir := p.env(variable); dir != "" {
		return dir
	}
	return filepath.Join(p.home, below)
}

var clients = []client{
	{name: "claude-desktop", title: "Claude Desktop", key: "mcpServers",
		file: func(p places) string { return filepath.Join(p.config(), "Claude", "claude_desktop_config.json") }},
	{name: "claude-code", title: "Claude Code", key: "mcpServers", kind: "stdio", url: "url", headers: "headers",
		file: func(p places) string { return filepath.Join(p.or("CLAUDE_CONFIG_DIR", ""), ".claude.json") }},
	{name: "cursor", title: "Cursor", key: "mcpServers", url: "url", headers: "headers",
		file: func(p places) string { return filepath.Join(p.home, ".cursor", "mcp.json") }},
	{name: "vscode", title: "VS Code", key: "servers", kind: "stdio", url: "url", headers: "headers",
		file: func(p places) string { return filepath.Join(p.config(), "Code", "User", "mcp.json") }},
	{name: "codex", title: "Codex", key: "mcp_servers", url: "url", headers: "http_headers", toml: true,
		file: func(p places) string { return filepath.Join(p.or("CODEX_HOME", ".codex"), "config.toml") }},
	{name: "windsurf", title: "Windsurf", key: "mcpServers", url: "serverUrl", headers: "headers",
		file: func(p places) string { return filepath.Join(p.home, ".codeium", "windsurf", "mcp_config.json") }},
	{name: "zed", title: "Zed", key: "context_servers", url: "url", headers: "headers",
		file: func(p places) string {
			if p.goos == "windows" {
				return filepath.Join(p.config(), "Zed", "settings.json")
			}
			return filepath.Join(p.xdg(), "zed", "settings.json")
		}},
	{name: "gemini-cli", title: "Gemini CLI", key: "mcpServers", url: "httpUrl", headers: "headers",
		file: func(p places) string { return filepath.Join(p.home, ".gemini", "settings.json") }},
}

// An entry is what a client is told of us, in the order in which it is written.
type entry []member

type member struct {
	name  string
	value any // a string, a []string or a header
}

// A header is what a client sends with each request.
type header struct{ name, value string }

// entry says how the client starts us, or where we are and what we want to be sent.
func (c client) entry(command string, args []string, url, token string) entry {
	if url != "" {
		e := entry{{c.url, url}, {c.headers, header{"Authorization", "Bearer " + token}}}
		if c.kind != "" {
			e = slices.Insert(e, 0, member{"type", "http"})
		}
		return e
	}
	e := entry{{"command", command}, {"args", args}}
	if c.kind != "" {
		e = slices.Insert(e, 0, member{"type", c.kind})
	}
	return e
}

// secret is the header of an entry, if it has one.
func (e entry) secret() (h header, ok bool) {
	for _, m := range e {
		if h, ok = m.value.(header); ok {
			return h, true
		}
	}
	return h, false
}

// serverName is the name under which clients know us.
const serverName = "pagewire"

func configCommand() *cobra.Command {
	var write, force bool
	var http, tokenFile string
	var names []string
	for _, c := range clients {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:   "config CLIENT [-- FLAG...]",
		Short: "Print or write the entry for an MCP client",
		Long: "Prints what a client's configuration needs in order to start pagewire serve, with the flags behind --;\n" +
			"with --write it is put there, and all else in that file is left as it is. Clients:\n" +
			strings.Join(names[:len(names)/2], ", ") + ",\n" + strings.Join(names[len(names)/2:], ", ") + ".",
		Example: "  pagewire config claude-desktop --write -- --chrome auto",
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args = args[:dash]
			}
			return oneArgument("CLIENT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.IndexFunc(clients, func(c client) bool { return c.name == args[0] })
			if i < 0 {
				return usageError{cmd, fmt.Errorf("unknown client %q: want one of %s", args[0], strings.Join(names, ", "))}
			}
			c := clients[i]
			url, token := "", ""
			if cmd.Flags().Changed("http") {
				if err := c.checkHTTP(http, args[1:]); err != nil {
					return usageError{cmd, err}
				}
				url = "http://" + http + "/mcp"
				var err error
				if token, err = hub.Token(tokenFile); err != nil {
					return err
				}
			}
			serve := append([]string{"serve"}, args[1:]...)
			if err := checkFlags(serve); err != nil {
				return usageError{cmd, err}
			}
			command, err := os.Executable()
			if err != nil {
				return err
			}
			home, err := os.UserHomeDir()
			if err != nil {
				return err
			}
			path := c.file(places{runtime.GOOS, home, os.Getenv})
			e := c.entry(command, serve, url, token)
			if !write {
				fmt.Fprintf(cmd.ErrOrStderr(), "pagewire: %s wants this in %s; --write puts it there\n", c.title, path)
				text, err := c.merge(nil, e, false)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return c.put(cmd, path, e, force)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "merge it into the client's file, and print the path")
	cmd.Flags().BoolVar(&force, "force", false, "replace an entry of that name that says something else")
	cmd.Flags().StringVar(&http, "http", "", "the client connects over HTTP to a pagewire serve that runs, with the token (default `address` "+hub.DefaultAddr+")")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`file` of the token that it is sent (default in the user's configuration directory)")
	cmd.Flags().Lookup("http").NoOptDefVal = hub.DefaultAddr
	return cmd
}

// checkHTTP finds what is wrong with --http for a client, and with flags of serve beside it.
func (c client) checkHTTP(addr string, flags []string) error {
	switch _, err := address("http", addr); {
	case err != nil:
		return err
	case c.url == "":
		return fmt.Errorf("%s starts its servers and takes no address: leave --http out", c.title)
	case len(flags) > 0:
		return errors.New("flags of serve are for a server that the client starts: leave them or --http out")
	}
	return nil
}

// put writes the entry into a client's file, and says what came of it.
func (c client) put(cmd *cobra.Command, path string, e entry, force bool) error {
	changed, err := c.write(path, e, force)
	if err != nil {
		return err
	}
	if !changed {
		fmt.Fprintf(cmd.ErrOrStderr(), "pagewire: %s has it already\n", path)
		return nil
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
	fmt.Fprintf(cmd.ErrOrStderr(), "pagewire: restart %s to have it noticed\n", c.title)
	return err
}

// checkFlags parses what a client will start: a mistake shows here, and not in that client's log.
func checkFlags(args []string) error {
	cmd := serveCommand()
	if err := cmd.ParseFlags(args[1:]); err != nil {
		return err
	}
	if rest := cmd.Flags().Args(); len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q for serve", rest[0])
	}
	get := func(name string) bool { on, _ := cmd.Flags().GetBool(name); return on }
	text := func(name string) string { s, _ := cmd.Flags().GetString(name); return s }
	list := func(name string) []string { l, _ := cmd.Flags().GetStringArray(name); return l }
	number := func(name string) int { n, _ := cmd.Flags().GetInt(name); return n }
	return checkServe(cmd, &node.Options{
		AllowHosts: list("allow-host"), TLSCert: text("tls-cert"), TLSKey: text("tls-key"), InsecureHTTP: get("insecure-http"), NoToken: get("no-token"),
		Shares: serve.Shares{Sessions: number("max-sessions"), Listens: number("max-listens"), Requests: number("max-requests")},
		Stdio:  get("stdio"), HTTP: text("http"), Hub: text("hub"), Chrome: text("chrome"), Launch: get("launch"), Headless: get("headless"), Open: list("open"),
		BrowserFlags: list("browser-flag"), Inject: get("inject"), AllowOrigins: list("allow-origin"), DenyOrigins: list("deny-origin"),
		Reminders: gateway.Reminders(text("reminders")), ReminderChars: number("reminder-chars"),
		Seen: seen.Limits{URIs: number("seen-uris"), Bytes: number("seen-bytes")},
	})
}

// errOther says that there is an entry of our name, and that it is another one.
var errOther = errors.New("has another entry named " + serverName)

// merge puts the entry into the text of a configuration and returns the new text, which is the old one if the entry is there.
func (c client) merge(text []byte, e entry, force bool) ([]byte, error) {
	if c.toml {
		return mergeTOML(text, c.key, e, force)
	}
	return mergeJSON(text, c.key, e, force)
}

// write merges the entry into a file and reports whether that changed it. The file is replaced as a whole or not at all, keeps its
// permissions, and if it is a link, what it leads to is replaced.
func (c client) write(path string, e entry, force bool) (changed bool, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	missing := err != nil
	after, err := c.merge(before, e, force)
	switch {
	case errors.Is(err, errOther):
		return false, hintError{fmt.Errorf("%s %w", path, err), "nothing was written; --force replaces it"}
	case err != nil:
		return false, hintError{fmt.Errorf("%s: %w", path, err), "nothing was written: mend the file, or put there what pagewire config " + c.name + " prints"}
	case bytes.Equal(before, after):
		return false, nil
	}
	mode := fs.FileMode(0o600) // such files hold other servers' keys
	if !missing {
		info, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		mode = info.Mode().Perm()
		if _, secret := e.secret(); secret && mode&0o077 != 0 && runtime.GOOS != "windows" {
			return false, hintError{fmt.Errorf("others may read %s (its mode is %04o), and the token must not get there", path, mode), "nothing was written: chmod 600 " + path + ", and try again"}
		}
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".pagewire-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name()) // fails when it has been renamed
	_, err = f.Write(after)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return false, err
	}
	// The client may have written it meanwhile: some keep their state there.
	if now, err := os.ReadFile(path); !bytes.Equal(now, before) || missing != errors.Is(err, fs.ErrNotExist) {
		return false, hintError{fmt.Errorf("%s changed while it was merged", path), "nothing was written; quit " + c.title + " and try again"}
	}
	return true, os.Rename(f.Name(), path)
}
