package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/hook"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
)

// lookTime is what a hook may take in addition while the first look at a browser is under way.
const lookTime = 2 * time.Second

func changesCommand() *cobra.Command {
	var c changesAsk
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Print the changes in open pages that the agent has not seen",
		Long: "Finds the agent that started this process, and prints the changes in the open pages since its last\n" +
			"call: URI and revision of each resource, and the contents of those that --inline and --uri name.\n" +
			"The first call of a conversation names what is open.\n\n" +
			"With --hook it acts as a hook of that program: it reads the program's input for hooks and prints output\n" +
			"in the program's format. It never holds up a prompt: it ends within a second (three while a browser\n" +
			"is looked at for the first time), always with status 0, and prints nothing if no pagewire serve runs.",
		Example: "  pagewire changes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd); err != nil {
				return usageError{cmd, err}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), hookTime+lookTime)
			defer cancel()
			if c.program != "" || c.Forget {
				c.asHook(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
				return nil
			}
			text, err := hook.Changes(ctx, c.hub.client(), c.Ask)
			switch {
			case errors.Is(err, daemon.ErrNone):
				return cli.Hint(daemon.ErrNone, startOne)
			case errors.Is(err, context.DeadlineExceeded):
				return fmt.Errorf("%w (for %v)", daemon.ErrSilent, hookTime)
			case err != nil:
				return err
			case text == "":
				fmt.Fprintln(cmd.ErrOrStderr(),
					"pagewire: no open page has changed since the agent last looked")
				return nil
			}
			_, err = fmt.Fprintln(cli.Visible(cmd.OutOrStdout()), text)
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.program, "hook", "", "be a hook of this `program`: "+
		strings.Join(calls.HookPrograms, ", "))
	f.StringArrayVar(&c.Inline, "inline", nil,
		"include contents of pages of this `origin` (https://*.example.com "+
			"for all subdomains); may be repeated")
	f.StringArrayVar(&c.URIs, "uri", nil, "include contents of this `URI`; may be repeated")
	f.BoolVar(&c.Forget, "forget", false,
		"forget what the agent has seen, and print nothing: for a hook of a "+
			"conversation that was cleared or compacted")
	f.StringVar(&c.Session, "session", "",
		"the program's `name` for the conversation, for a hook whose input has none")
	c.hub.add(cmd)
	return cmd
}

type changesAsk struct {
	calls.Ask
	hub     hubFlags
	program string
}

func (c *changesAsk) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("hook") && !slices.Contains(calls.HookPrograms, c.program) {
		return fmt.Errorf("--hook %q: want %s", c.program, strings.Join(calls.HookPrograms, ", "))
	}
	if err := checkInline(c.Inline); err != nil {
		return err
	}
	for _, uri := range c.URIs {
		if u, err := url.Parse(uri); err != nil || u.Scheme == "" {
			return fmt.Errorf("--uri %q: want a URI as pagewire ls shows it", uri)
		}
	}
	return nil
}

// asHook prints the output of a program's hook. It ignores errors, which must not delay a prompt.
func (c *changesAsk) asHook(ctx context.Context, in io.Reader, out io.Writer) {
	var given hook.Input
	if !cli.IsTerminal(in) { // on a terminal a person tries it
		var err error
		limited, cancel := context.WithTimeout(ctx, hookTime)
		defer cancel()
		if given, err = hook.Read(limited, in); err != nil && !c.Forget {
			return
		}
	}
	if !c.Forget && calls.HookOutput(c.program, given.Event, "x") == "" {
		return // the program takes no text at this event
	}
	if c.Forget && given.Source == "resume" {
		return // Copilot's hook at each start: after a resume the model still has its context
	}
	c.Session = cmp.Or(given.Session, c.Session)
	text, err := hook.Changes(ctx, c.hub.client(), c.Ask)
	if err != nil || text == "" {
		return
	}
	fmt.Fprintln(cli.Visible(out), calls.HookOutput(c.program, given.Event, text))
}

// isHook reports whether a command line is a program's hook. After status 2 of a hook, some
// programs drop the prompt.
func isHook(args []string) bool {
	if len(args) == 0 || args[0] != "changes" {
		return false
	}
	return slices.ContainsFunc(args[1:], func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == "--hook" || name == "--forget"
	})
}
