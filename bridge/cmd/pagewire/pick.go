package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/internal/parts"
)

func pickCommand() *cobra.Command {
	var h hubFlags
	var file string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "pick NAME",
		Short: "Pick a part of a page, for serve --parts",
		Long: "Click on a part of a page in the browser of a running pagewire serve. You see\n" +
			"the rule that finds it, and what agents will read. If you confirm, the rule goes\n" +
			"into the file. The page must be shown (serve --shown), and notices nothing.",
		Example: "  pagewire pick jobs --parts parts.json",
		Args:    arguments("NAME", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !parts.IsName(name) {
				return usageError{cmd,
					fmt.Errorf("%q: want a name of 1 to 64 letters, digits, - and _", name)}
			}
			if _, err := parts.Read(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			out := cli.Visible(cmd.ErrOrStderr())
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			fmt.Fprintln(out, "pagewire: click on the part in the browser; Ctrl+C leaves")
			picked, err := serve.Pick(ctx, h.addr, versionName())
			stop() // from now on Ctrl+C ends the process
			switch {
			case errors.Is(err, daemon.ErrNone):
				return cli.Hint(err, startOne)
			case errors.Is(err, context.Canceled):
				return errors.New("nothing was picked")
			case err != nil:
				return err
			}
			fmt.Fprintf(out,
				"pagewire: %s of %s is found by %s\npagewire: agents will read these %d bytes:\n",
				name, picked.Origin, cli.CompactJSON(picked.Rule), len(picked.Text))
			if asJSON {
				if err := printJSON(cmd, picked); err != nil {
					return err
				}
			} else {
				fmt.Fprintln(cli.Visible(cmd.OutOrStdout()), strings.TrimSuffix(picked.Text, "\n"))
			}
			if !yes {
				fmt.Fprintf(out, "pagewire: add it to %s? [y/N] ", file)
				answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
				if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" &&
					answer != "yes" {
					return fmt.Errorf("nothing was added to %s", file)
				}
			}
			if err := parts.Add(cmd.Context(), file, picked.Origin, name, picked.Rule); err != nil {
				return err
			}
			path, err := filepath.Abs(file)
			if err != nil {
				return err
			}
			used, err := serve.RereadParts(cmd.Context(), h.addr, versionName(), path)
			if err == nil && used {
				fmt.Fprintln(out, "pagewire: agents have it now")
			} else {
				fmt.Fprintf(out, "pagewire: it is for agents that start with --parts %s\n", file)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "parts", "parts.json", "add the part to this `file`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print origin, rule and text as a JSON object")
	cmd.Flags().BoolVar(&yes, "yes", false, "add it without asking")
	h.add(cmd)
	return cmd
}
