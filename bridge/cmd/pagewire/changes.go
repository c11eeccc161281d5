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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Print what changed in open pages since the agent looked",
		Long: "Prints what changed in open pages since the agent that started this process last\n" +
			"asked: URIs and revisions, and contents that --inline and --uri select. The\n" +
			"first call of a conversation lists what is open.\n\n" +
			"As a hook (--hook) it delays a prompt by at most a second (three while it first\n" +
			"looks at a browser), and prints nothing if no pagewire serve runs.",
		Example: "  pagewire changes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
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
			case asJSON:
				return printJSON(cmd, map[string]string{"text": text})
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
	f.BoolVar(&asJSON, "json", false, "print a JSON object with the text")
	f.Var(choice{&c.program, calls.HookPrograms}, "hook", "be a hook of this `program`: "+
		or(calls.HookPrograms))
	f.StringArrayVar(&c.Inline, "inline", nil,
		"include contents of pages of this `origin`; repeatable")
	f.StringArrayVar(&c.URIs, "uri", nil, "include contents of this `URI`; repeatable")
	f.BoolVar(&c.Forget, "forget", false, "forget what the agent has seen (a cleared conversation)")
	f.StringVar(&c.Session, "session", "", "the conversation's `name`, if the input has none")
	c.hub.add(cmd)
	return cmd
}

type changesAsk struct {
	calls.Ask
	hub     hubFlags
	program string
}

func (c *changesAsk) check() error {
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
