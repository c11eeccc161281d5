package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/gateway/access"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
	"github.com/pagewire/pagewire/bridge/gateway/skills"
)

// A configuration is one run of config.
type configuration struct {
	cmd    *cobra.Command
	client client
	places places
	serve  []string // the flags of serve

	write, live, remove, force, link, skill bool
	inline                                  []string
	overHTTP                                bool
	http, tokenFile                         string
}

func configCommand() *cobra.Command {
	var c configuration
	cmd := &cobra.Command{
		Use:   "config CLIENT [-- FLAG...]",
		Short: "Print, write or remove what an MCP client needs",
		Long: "Prints the entry with which a client starts pagewire serve; flags after -- are for pagewire serve. With\n" +
			"--write it puts the entry into the client's file and leaves the rest of the file alone. With --live it\n" +
			"also writes hooks or a plugin that tell the client's model when a page has changed: by name, and with\n" +
			"contents for the origins of --inline. --remove takes back what was written. Clients:\n" +
			oneOf(clientNames(anyClient)) + ".\n" +
			"With --live: " + strings.Join(clientNames(isLive), ", ") + ".",
		Example:   "  pagewire config claude-desktop --write -- --chrome auto\n  pagewire config codex --live",
		ValidArgs: clientNames(anyClient),
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args = args[:dash]
			}
			return arguments("CLIENT", 1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.cmd, c.serve, c.overHTTP = cmd, args[1:], cmd.Flags().Changed("http")
			if err := c.check(args[0]); err != nil {
				return usageError{cmd, err}
			}
			return interruptible(cmd.Context(), c.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.write, "write", false, "put the entry into the client's file, and print the path")
	flags.BoolVar(&c.live, "live", false, "write the entry and the hooks or the plugin, and print the paths")
	flags.StringArrayVar(&c.inline, "inline", nil, "with --live: include contents of this `origin`; may be repeated")
	flags.BoolVar(&c.remove, "remove", false, "take back what --live wrote, or else the entry; with --skill the skills")
	flags.BoolVar(&c.link, "link", false, "print a link that installs the entry: for "+
		strings.Join(clientNames(hasLink), " and "))
	flags.BoolVar(&c.skill, "skill", false, "write Pagewire's skills where the client's models find them: for "+
		strings.Join(clientNames(hasSkills), ", "))
	flags.BoolVar(&c.force, "force", false, "replace or remove a different entry of the same name")
	flags.StringVar(&c.http, "http", "",
		"the client connects over HTTP to a pagewire serve that runs, with the token (default `address` "+serve.DefaultHub+")")
	flags.StringVar(&c.tokenFile, "token-file", "",
		"`file` of the token that the client sends (default in the user's configuration directory)")
	flags.Lookup("http").NoOptDefVal = serve.DefaultHub
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && serveInto(new(serveFlags)).Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			err = fmt.Errorf("--%s is a flag of serve: put it behind --, as in pagewire config CLIENT -- --%[1]s",
				unknown.GetSpecifiedName())
		}
		return usageError{cmd, err}
	})
	return cmd
}

func (c *configuration) check(name string) error {
	i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
	if i < 0 {
		return fmt.Errorf("unknown client %q: want one of %s", name, strings.Join(clientNames(anyClient), ", "))
	}
	c.client = clients[i]
	switch {
	case c.skill && !hasSkills(c.client):
		return fmt.Errorf("%s has no known place for skills: --skill is for %s", c.client.title,
			strings.Join(clientNames(hasSkills), ", "))
	case c.skill && (c.write || c.live || c.link || c.overHTTP || len(c.serve) > 0):
		return errors.New("--skill writes the skills alone: leave the rest out, or run it once more without --skill")
	case c.remove && (c.write || c.link || c.overHTTP || len(c.inline) > 0 || len(c.serve) > 0):
		return errors.New("--remove takes back what was written: leave the rest out")
	case c.remove:
		return nil
	case c.link && (c.write || c.live || c.overHTTP):
		return errors.New("--link prints a link, and a link holds no token: leave --write, --live and --http out")
	case c.link && !hasLink(c.client):
		return fmt.Errorf("%s takes no link that is known: --link is for %s", c.client.title,
			strings.Join(clientNames(hasLink), " and "))
	case c.live && c.client.notifier == nil:
		return fmt.Errorf("%s has no known way to be told of changes: --live is for %s", c.client.title,
			strings.Join(clientNames(isLive), ", "))
	case len(c.inline) > 0 && !c.live:
		return errors.New("--inline says whose contents --live tells: add --live, or leave it out")
	}
	if err := checkInline(c.inline); err != nil {
		return err
	}
	if c.overHTTP {
		if err := c.client.checkHTTP(c.http, c.serve); err != nil {
			return err
		}
	}
	_, err := parseServe(c.serve)
	return err
}

func (c *configuration) run() (err error) {
	if c.places, err = here(); err != nil {
		return err
	}
	var server part
	if !c.remove {
		if server, err = c.server(); err != nil {
			return err
		}
	}
	if c.link {
		_, err := fmt.Fprintln(c.cmd.OutOrStdout(), c.client.link(server.Value.(entry)))
		return err
	}
	if !c.write && !c.live && !c.remove && !c.skill {
		fmt.Fprintf(c.cmd.ErrOrStderr(), "pagewire: %s wants this in %s; --write puts it there\n", c.client.title,
			server.file)
		text, err := server.put(nil, false)
		if err == nil {
			_, err = c.cmd.OutOrStdout().Write(text)
		}
		return err
	}
	defer takeTurn(c.cmd.Context(), c.places.home)()
	s, err := newSetup(c.client, c.places)
	switch {
	case err != nil:
		return err
	case c.skill:
		return c.writeSkills(s)
	case c.remove:
		return c.takeBack(s)
	case c.live:
		return c.writeLive(s, server)
	}
	return c.writeServer(s, server)
}

// server returns the entry that the client needs.
func (c *configuration) server() (part, error) {
	address, token := "", ""
	if c.overHTTP {
		address = "http://" + c.http + "/mcp"
		var err error
		if token, err = access.Token(c.tokenFile); err != nil {
			return part{}, err
		}
	}
	binary, err := os.Executable()
	e := c.client.entry(binary, append([]string{"serve"}, c.serve...), address, token)
	return part{file: c.client.file(c.places), At: []string{c.client.key, serverName}, Value: e}, err
}

// writeServer merges the entry into the client's file. An entry that --live has written stays under --live's key.
func (c *configuration) writeServer(s *setup, server part) error {
	key := c.client.entryKey()
	if w := s.on(c.client.liveKey(), server.file); w != nil && slices.ContainsFunc(w.Parts, server.sameAs) {
		key = c.client.liveKey()
	}
	if err := s.put(key, server, c.force); err != nil {
		return err
	}
	_, err := c.do(s, -1)
	return err
}

// writeLive writes the entry and the notifier. First it takes back the parts of an earlier --live.
func (c *configuration) writeLive(s *setup, server part) error {
	if err := s.undo(c.client.liveKey(), c.force); err != nil {
		return err
	}
	parts, err := c.parts(s, server)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := s.put(c.client.liveKey(), p, c.force); err != nil {
			return err
		}
	}
	if changed, err := c.do(s, -1); err != nil || !changed {
		return err
	}
	if allow := c.client.notifier.allowed(c.places); allow != "" {
		fmt.Fprintln(c.cmd.ErrOrStderr(), "pagewire:", allow)
	}
	fmt.Fprintf(c.cmd.ErrOrStderr(), "pagewire: what was there is kept in %s; pagewire config %s --remove takes it "+
		"back\n", s.dir, c.client.name)
	return nil
}

// writeSkills writes each skill into a directory of its name, or, with --remove, takes the skills back.
func (c *configuration) writeSkills(s *setup) error {
	if c.remove {
		dirs := s.record.Dirs
		if err := s.undo(c.client.skillKey(), c.force); err != nil {
			return err
		}
		_, err := c.do(s, 1)
		removeEmpty(dirs)
		return err
	}
	for _, name := range skills.Names {
		file := filepath.Join(c.client.skills(c.places), name, "SKILL.md")
		if err := s.put(c.client.skillKey(), part{file: file, Value: skills.Text(name)}, c.force); err != nil {
			return err
		}
	}
	_, err := c.do(s, -1)
	return err
}

// parts returns the parts of --live: the server's entry and the notifier. The entry goes into the plugin, if the
// program has one for it and the client's file has no entry.
func (c *configuration) parts(s *setup, server part) ([]part, error) {
	if c.client.notifier.server != nil {
		f, err := s.files.file(server.file)
		if err != nil {
			return nil, err
		}
		if server.found(f.is) == "" {
			server.file = c.client.notifier.server(c.places)
		}
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	run := command{goos: c.places.goos, binary: binary, inline: c.inline}
	if o, err := parseServe(c.serve); err == nil && o.Hub != serve.DefaultHub {
		run.hub = o.Hub
	}
	return append([]part{server}, c.client.notifier.parts(c.client.name, c.places, run)...), nil
}

// takeBack takes back the parts of --live, or, if there are none, the entry.
func (c *configuration) takeBack(s *setup) error {
	server := part{file: c.client.file(c.places), At: []string{c.client.key, serverName}}
	key, dirs := c.client.liveKey(), s.record.Dirs
	if len(s.record.Written[key]) == 0 {
		key = c.client.entryKey()
	}
	var err error
	if len(s.record.Written[key]) > 0 {
		err = s.undo(key, c.force)
	} else {
		err = c.takeServer(s.files, server)
	}
	if err != nil {
		return err
	}
	f, err := s.files.file(server.file)
	if err != nil {
		return err
	}
	entryIsLeft := server.found(f.is) != ""
	if !entryIsLeft { // then another --remove would have nothing to do
		if err := s.undo(c.client.entryKey(), c.force); err != nil {
			return err
		}
	}
	if _, err := c.do(s, 1); err != nil {
		return err
	}
	removeEmpty(dirs)
	if entryIsLeft {
		fmt.Fprintf(c.cmd.ErrOrStderr(), "pagewire: %s has had its entry before --live, and keeps it; "+
			"--remove once more takes it out\n", server.file)
	}
	return nil
}

// takeServer removes an entry that is not on record. The entry is ours if it starts serve or has its address.
func (c *configuration) takeServer(files *fileChange, server part) error {
	f, err := files.file(server.file)
	if err != nil || f.is == nil {
		return err
	}
	is := server.found(f.is)
	if !c.force && is != "" && !strings.Contains(is, "serve") && !strings.Contains(is, "/mcp") {
		return server.explain(errEdited, c.client.name)
	}
	if f.is, err = server.remove(f.is, nil, true); err != nil {
		return server.explain(err, c.client.name)
	}
	return nil
}

// do changes the files and the record. order is the record's place. It reports whether a file of the client has
// changed.
func (c *configuration) do(s *setup, order int) (changed bool, err error) {
	var names []string
	for _, f := range s.files.changed() {
		if filepath.Dir(f.name) != s.dir {
			names = append(names, f.name)
		}
	}
	if len(names) > 0 || order > 0 {
		if err := s.save(order); err != nil {
			return false, err
		}
		if err := s.files.do(c.cmd.Context()); err != nil {
			return false, err
		}
	}
	for _, name := range names {
		fmt.Fprintln(c.cmd.OutOrStdout(), name)
	}
	for _, sentence := range s.kept {
		fmt.Fprintln(c.cmd.ErrOrStderr(), "pagewire:", sentence)
	}
	if len(names) > 0 && !c.remove && !c.skill {
		fmt.Fprintln(c.cmd.ErrOrStderr(), "pagewire:", c.pages())
	}
	last := "restart " + c.client.title + " to have it noticed"
	if len(names) == 0 && c.skill {
		last = c.client.title + " has them already"
		if c.remove {
			last = c.client.title + " has no skill of pagewire"
		}
	} else if len(names) == 0 {
		last = c.client.file(c.places) + " has it already"
		if c.remove {
			last = c.client.file(c.places) + " has nothing of pagewire"
		}
	}
	_, err = fmt.Fprintln(c.cmd.ErrOrStderr(), "pagewire:", last)
	return len(names) > 0, err
}

// pages tells how pages will come to the agents of the client.
func (c *configuration) pages() string {
	o, err := parseServe(c.serve)
	switch {
	case c.overHTTP || err != nil:
		return "its agents see the pages of the pagewire serve that runs"
	case o.launch:
		return "its agents see the pages of a browser that pagewire serve launches"
	case o.Flags.Chrome != "":
		return "its agents see the pages of your running browser"
	}
	return "its agents see pages whose script tag has data-gateway, and what the extension allows (pagewire extension); " +
		"-- --launch or -- --chrome auto adds a browser"
}

// checkHTTP checks --http for a client. Flags of serve contradict it.
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

// parseServe parses the flags of the server that a client will start, so that config reports their mistakes.
func parseServe(args []string) (*serveFlags, error) {
	o := new(serveFlags)
	cmd := serveInto(o)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	if rest := cmd.Flags().Args(); len(rest) > 0 {
		return nil, fmt.Errorf("unexpected argument %q for serve", rest[0])
	}
	return o, checkServe(cmd, o)
}
