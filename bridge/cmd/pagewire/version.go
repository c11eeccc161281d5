//go:build !js

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the build, from js/package.json. Under go install it is empty, and the module's version is used.
var version string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain",
		Example: "  pagewire version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			commit := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					switch {
					case setting.Key == "vcs.revision":
						commit = setting.Value
					case setting.Key == "vcs.modified" && setting.Value == "true":
						commit += ", modified"
					}
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "pagewire %s\ncommit    %s\ntoolchain %s %s/%s\n",
				versionName(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
