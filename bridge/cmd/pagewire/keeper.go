//go:build !js

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/browser/keeper"
)

// keeperCommand is for serve, and hidden: who starts it by hand is expected to say what to launch, in JSON.
func keeperCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "keeper",
		Short:   "Keep a launched browser for all gateways (started by serve)",
		Long:    "Launches a browser for serve --launch, and ends it with the last serve that runs on this machine.",
		Example: "  pagewire serve --launch",
		Hidden:  true,
		Args:    noArguments,
		Run: func(*cobra.Command, []string) {
			os.Exit(keeper.Main(os.Stdin, os.Stdout))
		},
	}
}
