package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
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
}

// serveInto returns the command serve. Its flags set o.
func serveInto(o *serveFlags) *cobra.Command {
	var level, format string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the pages that are open to an agent",
		Long: "Serves the resources and tools of open pages over MCP. The agent that started this process uses its\n" +
			"standard input and output. It is a pipe to one process of this user that has the pages, the daemon, which\n" +
			"it starts where none runs, and which ends with the last agent. With --http any number of agents connect\n" +
			"over HTTP, and this process is the daemon. pagewire inspect shows what there is.\n\n" +
			"Agents on HTTP send the token, on this machine too (pagewire config CLIENT --http writes it).\n" +
			"Pages come from a browser (--chrome, --launch), or connect by themselves if their script tag has\n" +
			"data-gateway. A browser that --launch starts listens on no port. All agents with --launch\n" +
			"share it. It ends with the last of them, or with the daemon; its logins and drafts are\n" +
			"lost then.\n\n" +
			"--allow-origin, --deny-origin, --only, --shown, --parts, --reminders, --debugging-tools,\n" +
			"--no-page-tools, --no-subscriptions and --front are this agent's alone.",
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
					"pagewire: waiting for an agent on this terminal; Ctrl+D ends. An "+
						"agent's configuration: pagewire config\n")
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
	f.BoolVar(&o.Stdio, "stdio", true,
		"serve one agent on standard input and output, and end with it; off by "+
			"default where --http or --node is given")
	f.StringVar(&o.Flags.Chrome, "chrome", "",
		"attach to a running browser: its DevTools `URL`, or auto")
	f.BoolVar(&o.launch, "launch", false, "launch a browser, with a profile of its own")
	f.BoolVar(&o.headless, "headless", false, "launch it without a window")
	f.StringArrayVar(&o.browser.Open, "open", nil,
		"open this `URL` in the launched browser; may be repeated")
	f.StringVar(&o.browser.DebugPort, "debug-port", "",
		"let every process of this machine control the launched browser at "+
			"this TCP `port`; 0 picks one")
	f.BoolVar(&o.Flags.Inject, "inject", false,
		"add the page layer to pages of that browser that lack it")
	f.StringVar(&o.Flags.Name, "name", "",
		"call the profile of that browser by this `name`, in lists and in --only")
	f.StringArrayVar(&o.Flags.AllowOrigins, "allow-origin", nil,
		"show this agent pages of this machine and of this "+
			"`origin` (https://*.example.com for all subdomains), which may connect by themselves, and whose scripts may "+
			"use /mcp, with the token; may be repeated")
	f.StringArrayVar(&o.Flags.DenyOrigins, "deny-origin", nil,
		"hide pages of this `origin` from this agent; may be "+
			"repeated")
	f.StringArrayVar(&o.Flags.OnlyOrigins, "only", nil,
		"show this agent pages of this `origin` alone, or with "+
			"profile=NAME of this profile; may be repeated")
	f.StringArrayVar(&o.Flags.Shown, "shown", nil,
		"show this agent also what pages of this `origin` show, line by "+
			"line, without their help, in browsers of --chrome and --launch; with --launch the origins of --open are "+
			"shown there anyway, and with --node those of --node-origin go there, too; may be repeated")
	f.StringVar(&o.parts, "parts", "",
		"offer this agent also parts of what these pages show, by the rules "+
			"in this `file`: the text of an element, the rows of a table, the values of a form")
	f.StringVar(&o.Hub, "hub", serve.DefaultHub,
		"`address` on this machine where pages find the daemon; processes "+
			"with different addresses share nothing")
	f.StringVar(&o.Flags.Reminders, "reminders", string(gateway.RemindersInline),
		"`what` results of tools say about changes since the agent looked: off, names, inline")
	f.BoolVar(&o.Flags.DebuggingTools, "debugging-tools", false,
		"show this agent also the tools that pages have for "+
			"their developers")
	f.BoolVar(&o.Flags.NoPageTools, "no-page-tools", false,
		"let this agent look and never act: no tool of a page exists for it")
	f.BoolVar(&o.Flags.NoSubscriptions, "no-subscriptions", false,
		"offer this agent no subscriptions to resources: it gets method not found")
	f.BoolVar(&o.Flags.Front, "front", false,
		"show this agent which tab is in front, at pagewire://front")
	httpFlags(cmd, o)
	nodeFlags(cmd, o)
	f.StringVar(&o.TokenFile, "token-file", "",
		"`file` of the token for agents on HTTP (default in the user's "+
			"configuration directory)")
	f.StringVar(&level, "log-level", "",
		"log to standard error from this `level` on: debug, info, warn, error "+
			"(default warn, or info with --http); with debug the daemon's log has as much")
	f.StringVar(&format, "log-format", "text", "log as text or json")
	f.BoolVar(&o.AnyScheme, "any-scheme", false,
		"admit URIs at no web origin, for conformance suites")
	_ = f.MarkHidden("any-scheme") // it fails for unknown flags
	return cmd
}

// httpFlags adds the flags about the ports.
func httpFlags(cmd *cobra.Command, o *serveFlags) {
	f := cmd.Flags()
	f.StringVar(&o.HTTP, "http", "",
		"serve agents on this `address` too, over Streamable HTTP at /mcp")
	f.StringArrayVar(&o.AllowHosts, "allow-host", nil,
		"answer requests that call this machine by this `name` too; "+
			"may be repeated")
	f.StringVar(&o.TLSCert, "tls-cert", "",
		"`file` of the certificate for --http, in PEM; it is read again when it "+
			"changes")
	f.StringVar(&o.TLSKey, "tls-key", "", "`file` of its key")
	f.BoolVar(&o.InsecureHTTP, "insecure-http", false,
		"let --http be reached from other machines without TLS: "+
			"anybody on the network path can read everything")
	f.BoolVar(&o.NoToken, "no-token", false,
		"admit your own programs on this machine without the token (Linux "+
			"only: elsewhere the kernel does not name their user)")
	f.IntVar(&o.Shares.Sessions, "max-sessions", agents.DefaultShares.Sessions,
		"`number` of sessions that one agent on HTTP may have")
	f.IntVar(&o.Shares.Listens, "max-listens", agents.DefaultShares.Listens,
		"`number` of listens that it may have")
	f.IntVar(&o.Shares.Requests, "max-requests", agents.DefaultShares.Requests,
		"`number` of unanswered requests that it may have")
}

// nodeFlags adds the flags about the user's own node.
func nodeFlags(cmd *cobra.Command, o *serveFlags) {
	f := cmd.Flags()
	f.StringVar(&o.node.URL, "node", "",
		"send pages to your own pagewire-node too, at this `URL` (wss://...)")
	f.StringArrayVar(&o.node.Origins, "node-origin", nil,
		"send it pages of this `origin`, and no others "+
			"(https://*.example.com for all subdomains); may be repeated")
	f.StringVar(&o.command, "node-ticket-command", "",
		"`command` that prints a ticket; its last argument is the "+
			"page's origin")
	f.StringVar(&o.file, "node-ticket-file", "",
		"`file` of tickets, one a line; only you may be able to read it")
	f.BoolVar(&o.node.Tools, "node-tools", false,
		"let the node's agents call the tools of these pages")
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

// checkServe finds contradictions between the flags, and sets the options that depend on several
// flags.
func checkServe(cmd *cobra.Command, o *serveFlags) error {
	said := cmd.Flags().Changed
	if (said("http") || said("node")) && !said("stdio") {
		o.Stdio = false
	}
	for _, of := range []struct {
		there             bool
		flags, about, add string
	}{
		{o.launch, "headless open debug-port", "the browser that --launch starts", "--launch"},
		{said("node"), "node-origin node-ticket-command node-ticket-file node-tools", "a node",
			"--node"},
		{o.HTTP != "" || !o.Stdio || said("http"),
			"token-file no-token allow-host max-sessions max-listens max-requests",
			"agents on HTTP", "--http"},
		{o.HTTP != "", "tls-cert insecure-http", "the address of --http", "--http"},
	} {
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
		return errors.New(
			"--debugging-tools and --no-page-tools contradict each other: choose one")
	}
	if said("parts") {
		if len(o.Flags.Shown)+len(o.browser.Open) == 0 {
			return errors.New("--parts is about pages that are shown: add --shown ORIGIN")
		}
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
	switch gateway.Reminders(o.Flags.Reminders) {
	case "", gateway.RemindersOff, gateway.RemindersNames, gateway.RemindersInline:
	default:
		return fmt.Errorf("--reminders %q: want off, names or inline", o.Flags.Reminders)
	}
	if err := checkHTTP(o); err != nil {
		return err
	}
	if err := checkNode(said, o); err != nil {
		return err
	}
	if local, err := address("hub", o.Hub); err != nil {
		return err
	} else if !local {
		return fmt.Errorf("--hub %q: it must be an address of this machine, such as %s", o.Hub,
			serve.DefaultHub)
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
	if o.Flags.Name != "" && !o.launch && o.Flags.Chrome == "" {
		return errors.New(
			"--name needs a browser: add --launch or --chrome auto; the extension's options have its name")
	}
	if err := checkProfile("name", o.Flags.Name); said("name") && err != nil {
		return err
	}
	if o.Flags.Inject && !o.launch && o.Flags.Chrome == "" {
		return errors.New("--inject needs a browser: add --launch or --chrome auto")
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
