package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// The command has three outputs: text for a person, JSON for a script (--json), and lines that wake
// an agent (--lines). They share the watcher, which follows resources (watcher.go).

func watchCommand() *cobra.Command {
	var h hubFlags
	var o watchFlags
	cmd := &cobra.Command{
		Use:   "watch URI...",
		Short: "Show changes of resources as they happen",
		Long: "Subscribes to resources and prints each change: the time, the time since the last change, the new size,\n" +
			"updates per second, and the difference in the text. It waits for pages that are not open yet, and\n" +
			"continues when the daemon is restarted. Ctrl+C ends it.\n\n" +
			"--changes --all --lines is for programs that wake an agent. Each line names the changed resources that the\n" +
			"agent that started this process has not seen. Nothing else is printed. It waits for pagewire serve, and\n" +
			"ends with the program that started it.",
		Example: "  pagewire watch https://shop.example/state/cart",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return nil
			}
			return arguments("URI", 1, math.MaxInt)(cmd, args)
		},
		ValidArgsFunction: h.complete(math.MaxInt, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{cmd, err}
			}
			ctx, done := context.WithCancel(cmd.Context())
			defer done()
			// Under nohup it must continue.
			if o.lines && !cli.IsTerminal(cmd.OutOrStdout()) && !signal.Ignored(syscall.SIGHUP) {
				var stop context.CancelFunc
				ctx, stop = agents.Orphaned(ctx)
				defer stop()
			}
			w := newWatcher(ctx, done, cmd, h, o, args)
			err := w.run()
			return cmp.Or(err, w.failed)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	f.IntVar(&o.count, "count", 0, "exit after this `number` of changes")
	f.BoolVar(&o.changes, "changes", false,
		"print only changes, not the first contents, and wait for a daemon and "+
			"resources that do not exist yet")
	f.BoolVar(&o.all, "all", false,
		"watch all resources that pages list, also later ones; 1,000 at most. What a page "+
			"shows (--shown of serve) is watched by its URI alone")
	f.BoolVar(&o.lines, "lines", false, "print the URIs of changed resources on one short line")
	f.DurationVar(&o.every, "min-interval", 0, "print changes at most once in this `time`, "+
		"such as 30s (default with --lines 30s, on a terminal none)")
	h.add(cmd)
	return cmd
}

// check finds contradictions between the flags, and sets defaults that depend on other flags.
func (o *watchFlags) check(cmd *cobra.Command) error {
	switch {
	case o.count < 0:
		return fmt.Errorf("--count %d: want a number of changes", o.count)
	case o.every < 0:
		return fmt.Errorf("--min-interval %v: want a time such as 30s", o.every)
	case o.json && o.lines:
		return errors.New("--json and --lines: choose one")
	}
	if o.lines && !cmd.Flags().Changed("min-interval") && !cli.IsTerminal(cmd.OutOrStdout()) {
		o.every = wakeEvery
	}
	return nil
}
