//go:build !js

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build to what js/package.json says. Under go install it is empty, and the module's version
// is told instead.
var version string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain",
		Example: "  pagewire version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			module, commit := "unknown", "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				module = info.Main.Version
				for _, setting := range info.Settings {
					switch {
					case setting.Key == "vcs.revision":
						commit = setting.Value
					case setting.Key == "vcs.modified" && setting.Value == "true":
						commit += ", modified"
					}
				}
			}
			if version != "" {
				module = version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "pagewire %s\ncommit    %s\ntoolchain %s %s/%s\n",
				module, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
