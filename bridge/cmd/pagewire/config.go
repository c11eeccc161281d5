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

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// A configuration is one run of config.
type configuration struct {
	clientconfig.Setup
	cmd *cobra.Command

	write, live, remove, link, skill bool
	noPageTools                      bool
	overHTTP, asJSON                 bool
	part                             bool // of setup, which says the rest
	http, tokenFile                  string
}

func configCommand() *cobra.Command {
	var c configuration
	cmd := &cobra.Command{
		Use:   "config AGENT [-- FLAG...]",
		Short: "Print, write or remove an agent program's settings for Pagewire",
		Long: "Prints the entry with which an agent program starts pagewire serve; flags after\n" +
			"-- go to pagewire serve. --write puts it into the program's settings. --live\n" +
			"also adds hooks or a plugin that tell its model of changes. Programs:\n" +
			oneOf(clientNames(anyClient)) + ".",
		Example:   "  pagewire config claude-desktop --write -- --chrome auto\n  pagewire config codex --live",
		ValidArgs: clientNames(anyClient),
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args = args[:dash]
			}
			return arguments("AGENT", 1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c.cmd, c.Serve, c.overHTTP = cmd, args[1:], cmd.Flags().Changed("http")
			if c.noPageTools && !slices.Contains(c.Serve, noPageTools) {
				c.Serve = slices.Insert(c.Serve, 0, noPageTools)
			}
			if err := c.check(args[0]); err != nil {
				return usageError{cmd, err}
			}
			return cli.Interruptible(cmd.Context(), c.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.write, "write", false, "write the entry, and print the file")
	flags.BoolVar(&c.live, "live", false, "write the entry, and the hooks or plugin")
	flags.StringArrayVar(&c.Inline, "inline", nil, "tell contents of this `origin` too; repeatable")
	flags.BoolVar(&c.noPageTools, noPageTools[2:], false, "its agents look and never act")
	flags.BoolVar(&c.remove, "remove", false, "remove what was written (with --skill, the skills)")
	flags.BoolVar(&c.link, "link", false, "print a link that installs the entry, for "+
		strings.Join(clientNames(clientconfig.Client.HasLink), " and "))
	flags.BoolVar(&c.skill, "skill", false, "write Pagewire's skills, for "+
		or(clientNames(clientconfig.Client.HasSkills)))
	flags.BoolVar(&c.Force, "force", false, "replace or remove an entry that differs")
	flags.BoolVar(&c.asJSON, "json", false, "print JSON: paths, or file and entry")
	flags.StringVar(&c.http, "http", "",
		"connect to the pagewire serve at this `address`, over HTTP with the token")
	flags.StringVar(&c.tokenFile, "token-file", "", "`file` of that token")
	flags.Lookup("http").NoOptDefVal = serve.DefaultHub
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) &&
			serveInto(new(serveFlags)).Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			err = fmt.Errorf(
				"--%s is a flag of serve: put it behind --, as in pagewire config AGENT -- --%[1]s",
				unknown.GetSpecifiedName())
		}
		return usageError{cmd, flagError(err)}
	})
	return cmd
}

// noPageTools is the flag of serve that config has too.
const noPageTools = "--no-page-tools"

func clientNames(wanted func(clientconfig.Client) bool) (names []string) {
	for _, c := range clientconfig.Clients {
		if wanted(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

func anyClient(clientconfig.Client) bool { return true }

// oneOf lists names on two lines.
func oneOf(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

func (c *configuration) check(name string) error {
	i := slices.IndexFunc(clientconfig.Clients,
		func(c clientconfig.Client) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("unknown agent program %q: want one of %s", name,
			strings.Join(clientNames(anyClient), ", "))
	}
	c.Client = clientconfig.Clients[i]
	switch {
	case c.skill && !c.Client.HasSkills():
		return fmt.Errorf("%s has no known place for skills: --skill is for %s", c.Client.Title,
			strings.Join(clientNames(clientconfig.Client.HasSkills), ", "))
	case c.skill && (c.write || c.live || c.link || c.overHTTP || len(c.Serve) > 0):
		return errors.New(
			"--skill writes the skills alone: leave the rest out, or run it once more without --skill")
	case c.remove && (c.write || c.link || c.overHTTP || len(c.Inline) > 0 || len(c.Serve) > 0):
		return errors.New("--remove takes out what was written: leave the rest out")
	case c.remove:
		return nil
	case c.link && (c.write || c.live || c.overHTTP):
		return errors.New(
			"--link prints a link, and a link holds no token: leave --write, --live and --http out")
	case c.link && !c.Client.HasLink():
		return fmt.Errorf("%s takes no link that is known: --link is for %s", c.Client.Title,
			strings.Join(clientNames(clientconfig.Client.HasLink), " and "))
	case c.live && !c.Client.IsLive():
		return fmt.Errorf("%s has no known way to be told of changes: --live is for %s",
			c.Client.Title, strings.Join(clientNames(clientconfig.Client.IsLive), ", "))
	case len(c.Inline) > 0 && !c.live:
		return errors.New("--inline says whose contents --live tells: add --live, or leave it out")
	}
	if err := checkInline(c.Inline); err != nil {
		return err
	}
	if c.overHTTP {
		switch _, err := address("http", c.http); {
		case err != nil:
			return err
		case !c.Client.HasURL():
			return fmt.Errorf("%s starts its servers and takes no address: leave --http out",
				c.Client.Title)
		case len(c.Serve) > 0:
			return errors.New(
				"flags of serve are for a server that the client starts: leave them or --http out")
		}
	}
	o, err := parseServe(c.Serve)
	if err != nil {
		return err
	}
	if hub, _ := configuredHub(); o.Hub != hub {
		c.Hub = o.Hub
	}
	return nil
}

func (c *configuration) run() (err error) {
	if c.Places, err = clientconfig.Here(); err != nil {
		return err
	}
	if c.Binary, err = os.Executable(); err != nil {
		return err
	}
	if (c.live || c.write && !c.overHTTP) && !c.remove && !c.skill {
		if err := checkLasts(c.Binary); err != nil {
			return err
		}
	}
	if c.overHTTP {
		c.URL = "http://" + c.http + "/mcp"
		if c.Token, err = access.Token(c.tokenFile); err != nil {
			return err
		}
	}
	ctx, name, file := c.cmd.Context(), c.Client.Title, c.Client.File(c.Places)
	var files []string
	var unchanged string
	switch {
	case c.link:
		_, err := fmt.Fprintln(c.cmd.OutOrStdout(), c.Link())
		return err
	case c.skill && c.remove:
		files, err = c.RemoveSkills(ctx)
		unchanged = name + " has no skill of pagewire"
	case c.skill:
		files, err = c.WriteSkills(ctx)
		unchanged = name + " has them already"
	case c.remove:
		files, err = c.Remove(ctx)
		unchanged = file + " has nothing of pagewire"
	case c.write, c.live:
		files, err = c.Write(ctx, c.live)
		unchanged = file + " has it already"
	default:
		c.say(name + " wants this in " + file + "; --write puts it there")
		text, err := c.Entry()
		if err == nil && c.asJSON {
			err = printJSON(c.cmd, map[string]string{"file": file, "entry": string(text)})
		} else if err == nil {
			_, err = c.cmd.OutOrStdout().Write(text)
		}
		return err
	}
	if c.asJSON {
		_ = printJSON(c.cmd, append([]string{}, files...))
	} else if len(files) > 0 {
		fmt.Fprintln(c.cmd.OutOrStdout(), strings.Join(files, "\n"))
	}
	if err != nil {
		return err
	}
	for _, note := range c.Notes {
		c.say(note)
	}
	if is, err := c.State(); !c.remove && !c.skill && err == nil && is.Gone != "" {
		return cli.Hint(fmt.Errorf("%s starts %s, which is not there", file, is.Gone),
			agentProgram{Client: c.Client}.again())
	}
	if len(files) == 0 {
		c.say(unchanged)
		return nil
	}
	if !c.part {
		c.say("restart " + name + " to have it noticed")
	}
	if c.live && !c.remove {
		if allow := c.Client.Allow(c.Places); allow != "" {
			c.say(allow)
		}
		c.say("to undo this: pagewire config " + c.Client.Name + " --remove")
	}
	return nil
}

// checkLasts returns an error for a program in npx's cache, which npm empties: agents and browsers
// would not find it any more.
func checkLasts(binary string) error {
	if !slices.Contains(strings.Split(filepath.ToSlash(binary), "/"), "_npx") {
		return nil
	}
	return cli.Hint(errors.New("this pagewire is in npx's cache, and npx keeps it only for a time"),
		"nothing was written: npm install -g pagewire, and run that one")
}

func (c *configuration) say(sentence string) {
	fmt.Fprintln(c.cmd.ErrOrStderr(), "pagewire:", sentence)
}

// parseServe parses the flags of the server that a client will start, so that config reports their
// mistakes.
func parseServe(args []string) (*serveFlags, error) {
	o := new(serveFlags)
	cmd := serveInto(o)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, flagError(err)
	}
	if rest := cmd.Flags().Args(); len(rest) > 0 {
		return nil, fmt.Errorf("unexpected argument %q for serve", rest[0])
	}
	return o, checkServe(cmd, o)
}
