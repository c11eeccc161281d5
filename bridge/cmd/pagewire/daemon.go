package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// daemonCommand is hidden, since only serve starts it.
func daemonCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:     "daemon",
		Short:   "Be the one process of this user that has the pages (started by serve)",
		Long:    "Has the pages for all agents, which are served through pagewire serve, and ends with the last of them.",
		Example: "  pagewire serve",
		Hidden:  true,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			daemon.Umask()
			boundGarbage()
			o := serve.Options{Version: versionName(), Hub: addr, LogLevel: new(slog.LevelVar)}
			var err error
			if o.LogFile, err = daemon.LogPath(addr); err == nil {
				var file io.Writer
				if file, err = daemon.OpenLog(o.LogFile); err == nil {
					o.Log = slog.New(slog.NewTextHandler(file,
						&slog.HandlerOptions{Level: o.LogLevel}))
				}
			}
			if err == nil {
				err = serve.Daemon(cmd.Context(), o,
					func() { daemon.SayStarted(cmd.OutOrStdout()) })
			}
			if err != nil {
				daemon.SayFailed(cmd.OutOrStdout(), err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&addr, "hub", serve.DefaultHub, "`address` where pages find it")
	return cmd
}
