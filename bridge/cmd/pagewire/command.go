package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// version is set by the build, from js/package.json. go install leaves it empty: then the module's
// version counts.
var version string

func versionName() string { return cli.Version(version) }

// unknownCommand returns the error for a name that is no command. It suggests similar names.
func unknownCommand(cmd *cobra.Command, name string) error {
	err := fmt.Errorf("unknown command %q", name)
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(name); len(like) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(like, " or "))
	}
	return usageError{cmd, err}
}

// usageError is a mistake in the command line: exit status 2, and a pointer to the help.
type usageError struct {
	cmd *cobra.Command
	error
}

func (e usageError) Unwrap() error { return e.error }

var noArguments = arguments("", 0, 0)

// arguments is cobra.RangeArgs with this program's messages and exit status.
func arguments(name string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError{cmd, errors.New(name + " is missing")}
		case len(args) <= most:
			return nil
		case cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		}
		return usageError{cmd, fmt.Errorf("unexpected argument %q", args[most])}
	}
}

// helpWidth is the width of help texts, in columns.
const helpWidth = 80

// help replaces cobra's help: it has groups, and the example comes last. It avoids text/template,
// with which the linker keeps every exported method: 2.5 MB.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", about)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s <command>\n", cmd.CommandPath())
		for _, group := range cmd.Groups() {
			writeCommands(w, cmd, group.Title, group.ID)
		}
		if len(cmd.Groups()) == 0 {
			writeCommands(w, cmd, "Commands", "")
		}
	} else {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(helpWidth), "\n"))
	}
	if cmd.HasParent() && cmd.Example == "" { // cobra's completion, whose text has its examples
		return
	}
	if !cmd.HasParent() {
		fmt.Fprintf(w, "\nEnvironment:\n%s\nManual: %s\n", environment, manual)
	}
	fmt.Fprintf(w, "\nExample:\n%s\n", cmd.Example)
}

func writeCommands(w io.Writer, cmd *cobra.Command, title, id string) {
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.GroupID == id {
			fmt.Fprintf(w, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
}

const (
	environment = `  XDG_CONFIG_HOME       directory of pagewire/: configuration, token and logs
  PAGEWIRE_BROWSER      the browser of --launch
  PAGEWIRE_TOKEN_FILE   file of the token for agents on HTTP
  NO_COLOR              no colors
`
	manual = "https://github.com/pagewire/pagewire/tree/main/demo/docs"
)
