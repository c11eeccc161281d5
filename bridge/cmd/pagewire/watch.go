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
		Long: "Prints each change: the time, the time since the last one, the new size, updates\n" +
			"per second, and what changed in the text. It waits for missing pages. Ctrl+C\n" +
			"ends it. Programs wake an agent with --changes --all --lines, which names the\n" +
			"resources that the agent that started this process hasn't read since.",
		Example: "  pagewire watch https://shop.example/state/cart",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return nil
			}
			return arguments("URI", 1, math.MaxInt)(cmd, args)
		},
		ValidArgsFunction: complete(math.MaxInt, "URI"),
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
	f.BoolVar(&o.wide, "wide", false, "cut no lines")
	f.IntVar(&o.count, "count", 0, "exit after this `number` of changes")
	f.BoolVar(&o.changes, "changes", false, "print changes alone, and wait for resources and a daemon")
	f.BoolVar(&o.all, "all", false, "watch all listed resources, at most 1,000; what a page shows "+
		"(serve --shown) needs its URI")
	f.BoolVar(&o.lines, "lines", false, "print only URIs, on one line")
	f.DurationVar(&o.every, "min-interval", 0, "print at most once in this `time` (default 30s with --lines "+
		"into a pipe)")
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
