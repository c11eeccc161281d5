package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/parts"
	"github.com/pagewire/pagewire/bridge/node/uplink"
)

// Tests replace these.
var serveAgent, serveForeground = serve.Agent, serve.Foreground

type serveFlags struct {
	serve.Options
	launch, headless bool
	browser          daemon.Launch
	node             uplink.Options
	command, file    string // the sources of the node's tickets
	parts            string // the file
	config           string
}

// serveInto returns the command serve. Its flags set o.
func serveInto(o *serveFlags) *cobra.Command {
	var level, format string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Connect an agent to open pages",
		Long: "An agent program starts this, and speaks MCP with it on standard input and\n" +
			"output. The daemon, one process of yours, has the pages. It ends with the last\n" +
			"agent. With --http this process is the daemon, and agents connect over HTTP with\n" +
			"a token (pagewire config AGENT --http).\n\n" +
			"Pages come from the browser extension, from a browser (--chrome, --launch), or\n" +
			"by themselves (a script tag with data-gateway). All agents with --launch share\n" +
			"one browser; its logins and drafts are lost when the last of them leaves.\n\n" +
			"pagewire.toml sets defaults for these flags.",
		Example: "  pagewire serve --launch --open https://example.com",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkServe(cmd, o); err != nil {
				return usageError{cmd, err}
			}
			if level == "" {
				level = "info"
				if !o.isForeground() { // some programs show a server's log to their users
					level = "warn"
				}
			}
			log, err := cli.Log(cmd.ErrOrStderr(), level, format)
			if err != nil {
				return usageError{cmd, err}
			}
			surviveClosedOutput()
			boundGarbage()
			o.Flags.Debug = level == "debug"
			o.Version, o.Log, o.In, o.Out = versionName(), log, cmd.InOrStdin(), cmd.OutOrStdout()
			if o.Stdio && cli.IsTerminal(o.In) {
				fmt.Fprintf(cmd.ErrOrStderr(),
					"pagewire: waiting for an agent on this terminal; agent programs start this "+
						"(pagewire setup). Ctrl+D ends it\n")
			}
			if f, ok := o.In.(*os.File); ok {
				o.In = pollable(f, os.Stdout, os.Stderr)
			}
			if o.isForeground() {
				err = serveForeground(cmd.Context(), o.Options)
			} else if o.Start, err = daemon.Command("daemon", "--hub", o.Hub); err == nil {
				err = serveAgent(cmd.Context(), o.Options)
			}
			switch {
			case errors.Is(err, context.Canceled) && cmd.Context().Err() != nil:
				return nil // a signal ended it
			case errors.Is(err, serve.ErrUsage):
				return usageError{cmd,
					errors.New(strings.TrimPrefix(err.Error(), serve.ErrUsage.Error()+": "))}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	list := func(to *[]string, name, about string) { f.StringArrayVar(to, name, nil, about+"; repeatable") }
	text := func(to *string, name, about string) { f.StringVar(to, name, "", about) }
	flag := func(to *bool, name, about string) { f.BoolVar(to, name, false, about) }
	f.BoolVar(&o.Stdio, "stdio", true,
		"serve an agent on standard input and output (not with --http or --node)")
	text(&o.Flags.Chrome, "chrome", "attach to a running browser: auto, or its DevTools `URL`")
	flag(&o.launch, "launch", "start a browser with its own profile")
	flag(&o.headless, "headless", "start it without a window")
	list(&o.browser.Open, "open", "open this `address` there")
	text(&o.browser.DebugPort, "debug-port", "let any local process control it at this `port`")
	flag(&o.Flags.Inject, "inject", "add Pagewire to pages that lack it")
	text(&o.Flags.Name, "name", "`name` of its profile, in lists and for --only")
	list(&o.Flags.AllowOrigins, "allow-origin", "also show pages of this `origin`, such as "+
		"https://*.example.com; they may connect, and use /mcp")
	list(&o.Flags.DenyOrigins, "deny-origin", "hide pages of this `origin`")
	list(&o.Flags.OnlyOrigins, "only", "show only pages of this `origin`, or profile=NAME")
	list(&o.Flags.Shown, "shown", "show agent and node the text of all pages of this `origin` "+
		"in the browser of --chrome or --launch")
	text(&o.parts, "parts", "offer parts of them, by rules in this `file` (pagewire pick)")
	f.StringVar(&o.Hub, "hub", serve.DefaultHub, "local `address` where pages find the daemon")
	o.Flags.Reminders = string(gateway.RemindersInline)
	f.Var(choice{&o.Flags.Reminders, []string{"off", "names", "inline"}}, "reminders",
		"`how` tool results say what changed: off, names or inline")
	flag(&o.Flags.DebuggingTools, "debugging-tools", "offer pages' tools for developers")
	flag(&o.Flags.NoPageTools, "no-page-tools", "hide pages' tools: the agent looks and never acts")
	flag(&o.Flags.NoSubscriptions, "no-subscriptions", "offer no resource subscriptions")
	flag(&o.Flags.Front, "front", "show the front tab, at pagewire://front")
	text(&o.HTTP, "http", "serve agents at this `address`, over Streamable HTTP at /mcp")
	list(&o.AllowHosts, "allow-host", "accept requests to this host `name`")
	text(&o.TLSCert, "tls-cert", "certificate `file` for --http, in PEM")
	text(&o.TLSKey, "tls-key", "its key `file`")
	flag(&o.InsecureHTTP, "insecure-http",
		"allow --http without TLS for other machines: anyone between can read it")
	flag(&o.NoToken, "no-token", "admit local programs of yours without token (Linux)")
	most := agents.DefaultShares
	f.IntVar(&o.Shares.Sessions, "max-sessions", most.Sessions, "`sessions` per HTTP agent")
	f.IntVar(&o.Shares.Listens, "max-listens", most.Listens, "`listens` per HTTP agent")
	f.IntVar(&o.Shares.Requests, "max-requests", most.Requests, "unanswered `requests` per HTTP agent")
	text(&o.node.URL, "node", "also send pages to your pagewire-node at this `URL`")
	list(&o.node.Origins, "node-origin", "send it pages of this `origin`")
	text(&o.command, "node-ticket-command",
		"`command` that prints a ticket for the origin after it")
	text(&o.file, "node-ticket-file", "private `file` of tickets, one per line")
	flag(&o.node.Tools, "node-tools", "let its agents call pages' tools")
	text(&o.TokenFile, "token-file", "token `file` for HTTP agents")
	f.Var(choice{&level, []string{"debug", "info", "warn", "error"}}, "log-level", "log this "+
		"`level` and above: debug (the daemon too), info, warn or error")
	format = "text"
	f.Var(choice{&format, []string{"text", "json"}}, "log-format", "log `format`: text or json")
	f.StringVar(&o.config, "config", "auto", "read defaults from this `file`, or none")
	flag(&o.AnyScheme, "any-scheme", "admit URIs at no web origin, for conformance suites")
	_ = f.MarkHidden("any-scheme") // it fails for unknown flags
	return cmd
}

// checkNode finds contradictions between the flags about the node, and sets o.Node.
func checkNode(said func(flag string) bool, o *serveFlags) error {
	if !said("node") {
		return nil
	}
	if len(o.node.Origins) == 0 {
		return errors.New(
			"--node sends no page without --node-origin: name the origins of the pages that are to go there")
	}
	switch command := strings.TrimSpace(o.command); {
	case (command == "") == (o.file == ""):
		return errors.New(
			"--node needs tickets: add --node-ticket-command or --node-ticket-file, one of them")
	case command != "":
		o.node.Ticket = uplink.TicketCommand(command)
	default:
		o.node.Ticket = uplink.TicketFile(o.file)
	}
	o.Node = &o.node
	return checkOrigins("node-origin", o.node.Origins)
}

// owned are flags that have an effect only with another flag.
func (o *serveFlags) owned(said func(flag string) bool) []ownedFlags {
	return []ownedFlags{
		{o.launch, "headless open debug-port", "the browser that --launch starts", "--launch"},
		{said("node"), "node-origin node-ticket-command node-ticket-file node-tools", "a node",
			"--node"},
		{o.HTTP != "" || !o.Stdio || said("http"),
			"token-file no-token allow-host max-sessions max-listens max-requests",
			"agents on HTTP", "--http"},
		{o.HTTP != "", "tls-cert tls-key insecure-http", "the address of --http", "--http"},
		{o.launch || o.Flags.Chrome != "", "inject name", "a browser", "--launch or --chrome auto"},
		{len(o.Flags.Shown)+len(o.browser.Open) > 0, "parts", "pages that are shown",
			"--shown ORIGIN"},
	}
}

type ownedFlags struct {
	there             bool
	flags, about, add string
}

// checkServe adds what the configuration file sets, finds contradictions between the flags, and sets
// the options that depend on several flags.
func checkServe(cmd *cobra.Command, o *serveFlags) error {
	says, err := o.addConfig(cmd)
	if err == nil {
		err = checkFlags(func(name string) bool {
			f := cmd.Flags().Lookup(name)
			return f.Changed && f.Value.String() != "false" // which asks for nothing
		}, o)
	}
	if err != nil && says != "" {
		err = fmt.Errorf("%w%s", err, says)
	}
	return err
}

func (o *serveFlags) owner(said func(flag string) bool, key string) *ownedFlags {
	for _, of := range o.owned(said) {
		if slices.Contains(strings.Fields(of.flags), key) {
			return &of
		}
	}
	return nil
}

func checkFlags(said func(flag string) bool, o *serveFlags) error {
	if (said("http") || said("node")) && !said("stdio") {
		o.Stdio = false
	}
	for _, of := range o.owned(said) {
		for name := range strings.FieldsSeq(of.flags) {
			if said(name) && !of.there {
				return fmt.Errorf("--%s is about %s: add %s", name, of.about, of.add)
			}
		}
	}
	if err := checkBrowserFlags(said, o); err != nil {
		return err
	}
	for name, origins := range map[string][]string{"allow-origin": o.Flags.AllowOrigins,
		"deny-origin": o.Flags.DenyOrigins, "only": o.Flags.OnlyOrigins, "shown": o.Flags.Shown} {
		if err := checkOrigins(name, origins); err != nil {
			return err
		}
	}
	if o.Flags.DebuggingTools && o.Flags.NoPageTools {
		return errors.New("--debugging-tools and --no-page-tools contradict each other: choose one")
	}
	if said("parts") {
		rules, err := parts.Read(o.parts)
		if err != nil {
			return fmt.Errorf("--parts: %w", err)
		}
		o.Flags.Parts = rules
		if o.Flags.PartsFile, err = filepath.Abs(o.parts); err != nil {
			return fmt.Errorf("--parts: %w", err)
		}
	}
	if o.launch {
		o.browser.Window, o.browser.Inject = !o.headless, o.Flags.Inject
		o.Launch = &o.browser
		o.Flags.Inject = false
	}
	if err := checkHTTP(o); err != nil {
		return err
	}
	if err := checkNode(said, o); err != nil {
		return err
	}
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	if said("http") {
		if _, err := address("http", o.HTTP); err != nil {
			return err
		}
	}
	return nil
}

// isForeground reports whether this process is the daemon, since flags about ports hold as long as
// it runs.
func (o *serveFlags) isForeground() bool {
	return o.HTTP != "" || !o.Stdio || o.AnyScheme || o.Node != nil
}

// checkBrowserFlags finds contradictions between the flags about the browser.
func checkBrowserFlags(said func(flag string) bool, o *serveFlags) error {
	if o.Flags.Chrome != "" && o.launch {
		return errors.New("--chrome and --launch are two browsers: choose one")
	}
	if err := checkProfile("name", o.Flags.Name); said("name") && err != nil {
		return err
	}
	if said("debug-port") {
		port, err := strconv.ParseUint(o.browser.DebugPort, 10, 16)
		if err != nil {
			return fmt.Errorf("--debug-port %q: want a port such as 9222, or 0 for any",
				o.browser.DebugPort)
		}
		// as the browser parses it, without leading zeros
		o.browser.DebugPort = strconv.FormatUint(port, 10)
	}
	if o.Flags.Chrome != "" && !serve.IsBrowser(o.Flags.Chrome) {
		return fmt.Errorf("--chrome %q: want auto, or a URL such as http://127.0.0.1:9222",
			o.Flags.Chrome)
	}
	for _, page := range o.browser.Open {
		if u, err := url.Parse(page); err != nil || u.Scheme == "" {
			return fmt.Errorf("--open %q: want a URL with its scheme, such as https://example.com",
				page)
		}
	}
	return nil
}

// checkHTTP finds contradictions between the flags about HTTP.
func checkHTTP(o *serveFlags) error {
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together: add the other one")
	case o.InsecureHTTP && o.TLSCert != "":
		return errors.New("--insecure-http and --tls-cert contradict each other: choose one")
	}
	for _, name := range o.AllowHosts {
		if u, err := url.Parse("http://" + name); err != nil || u.Host != name || name == "" ||
			strings.Contains(name, ":") && net.ParseIP(strings.Trim(name, "[]")) == nil {
			return fmt.Errorf(
				"--allow-host %q: want a name or address without scheme and port, such as box.lan",
				name)
		}
	}
	for name, n := range map[string]int{"max-sessions": o.Shares.Sessions,
		"max-listens":  o.Shares.Listens,
		"max-requests": o.Shares.Requests} {
		if n < 1 {
			return fmt.Errorf("--%s %d: want a number above 0", name, n)
		}
	}
	return nil
}
