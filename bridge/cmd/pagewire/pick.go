package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/daemon"
	"github.com/pagewire/pagewire/bridge/gateway/parts"
	"github.com/pagewire/pagewire/bridge/gateway/serve"
)

func pickCommand() *cobra.Command {
	var h hubFlags
	var file string
	cmd := &cobra.Command{
		Use:   "pick NAME",
		Short: "Pick a part of a page, for --parts of serve",
		Long: "Lets you click on a part of a page in the browser of a pagewire serve that runs, and adds the part to a\n" +
			"file of rules, under the name. The browser marks what is below the pointer, and the page sees nothing of\n" +
			"it. Then it prints what agents will read. Agents that start with this file have the part. The page must\n" +
			"be shown already (--shown of serve).",
		Example: "  pagewire pick jobs --parts parts.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !parts.IsName(name) {
				return usageError{cmd, fmt.Errorf("%q: want a name of 1 to 64 letters, digits, - and _", name)}
			}
			if _, err := parts.Read(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			fmt.Fprintln(cmd.ErrOrStderr(), "pagewire: click on the part in the browser; Ctrl+C leaves")
			picked, err := serve.Pick(ctx, h.addr, versionName())
			if errors.Is(err, daemon.ErrNone) {
				return hintError{err, startOne}
			} else if err != nil {
				return err
			}
			if err := parts.Add(file, picked.Origin, name, picked.Rule); err != nil {
				return err
			}
			_, err = fmt.Fprint(visible{cmd.OutOrStdout()}, picked.Text)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "parts", "parts.json", "add the part to this `file`")
	h.add(cmd)
	return cmd
}
