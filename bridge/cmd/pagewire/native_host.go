package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/nativehost"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

// hubEnv names the environment variable that replaces --hub, since the browser chooses the
// arguments of a native host.
const hubEnv = "PAGEWIRE_HUB"

// startedByBrowser reports whether a browser gave these arguments to a native host. They are the
// extension's origin, and on Windows a window. From Firefox they are the manifest's file and the
// extension's id.
func startedByBrowser(args []string) bool {
	return len(args) > 0 && args[0] == extension.ExtensionOrigin+"/" ||
		len(args) == 2 && args[1] == extension.FirefoxID &&
			filepath.Base(args[0]) == nativehost.FileName
}

// nativeHostCommand is hidden, since only browsers start it, and its messages are binary.
func nativeHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "native-host",
		Short: "Serve the pages of the browser extension (started by the browser)",
		Long: "A browser starts this for the extension, and speaks with it on standard input\n" +
			"and output. " + hubEnv + " and " + access.TokenFileEnv + " stand for flags.",
		Example: "  pagewire extension install",
		Hidden:  true,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			surviveClosedOutput()
			err := runNativeHost(cmd)
			if err != nil && !errors.Is(err, context.Canceled) {
				extension.Fail(cmd.OutOrStdout(), err.Error())
				return err
			}
			return nil
		},
	}
}

// runNativeHost serves until the browser closes its input, or exits.
func runNativeHost(cmd *cobra.Command) error {
	addr := os.Getenv(hubEnv)
	if addr == "" {
		addr, _ = configuredHub() // serve says what is wrong with the file
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	secret := ""
	file, err := access.TokenFile()
	if err == nil {
		// install has made it, unless an older version was installed
		secret, err = extension.MakeSecret(file)
	}
	if err != nil {
		log.Warn("the extension is told no secret, and cannot do without this process", "error",
			err)
	}
	ctx, stop := agents.Orphaned(cmd.Context())
	defer stop()
	return extension.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), extension.Options{
		Connect: func(ctx context.Context) (net.Conn, error) {
			return serve.Connect(ctx, addr, versionName())
		},
		Wait:    func(ctx context.Context) error { return daemon.Wait(ctx, addr) },
		Version: versionName(), Secret: secret, Log: log,
	})
}
