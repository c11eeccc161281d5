package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
)

// version is set by the build, from js/package.json. Under go install it is empty, and the module's version is used.
var version string

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain",
		Example: "  pagewire version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeVersion(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// writeVersion writes what a report of a fault needs.
func writeVersion(w io.Writer, asJSON bool) error {
	is := struct {
		Version   string `json:"version"`
		Commit    string `json:"commit"`
		Toolchain string `json:"toolchain"`
		Core      string `json:"core"`
	}{versionName(), "unknown", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, assets.Core()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				is.Commit = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				is.Commit += ", modified"
			}
		}
	}
	if asJSON {
		_, err := io.WriteString(w, indentedJSON(is))
		return err
	}
	_, err := fmt.Fprintf(w, "pagewire %s\ncommit    %s\ntoolchain %s\ncore      %s\n", is.Version, is.Commit,
		is.Toolchain, is.Core)
	return err
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
