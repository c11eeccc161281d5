// Command pagewire is the native side of Pagewire.
//
// The rules of its command line, which its tests check:
//
//   - Results go to standard output and can be piped. Messages to a person go to standard error: they begin with
//     "pagewire:", without a capital, and have no final period.
//   - An error is one line. A second line says what to do, if a remedy is known.
//   - Exit status 0: success. 1: failure. 2: a mistake in the command line. A program's hook (changes --hook) always
//     ends with 0.
//   - Each help text ends in an example that works unchanged, and fits 80 columns.
//   - Lines fit the terminal, unless --wide is given. A pipe gets all of each line, and no color.
//   - Only --force overwrites a file. pagewire.toml has defaults for the flags of serve (configfile.go).
//   - Errors of Go's libraries are said in plain words (plain.go).
//   - Texts of pages and of programs at a port are data: a terminal shows their control characters without effect.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

func main() {
	log.SetOutput(io.Discard) // where net/http's client reports what it ignores
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // under nohup SIGHUP is ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(pagewire(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// pagewire runs a command line until ctx ends, and returns its exit status.
func pagewire(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = cli.Visible(stderr)
	root := commands()
	if startedByBrowser(args) {
		args = []string{"native-host"}
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	says := err.Error()
	if !errors.As(err, new(inWords)) {
		says = plain(says)
	}
	fmt.Fprintln(stderr, "pagewire:", says)
	if isHook(args) {
		return exitDone
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "pagewire: see %s --help\n", usage.cmd.CommandPath())
		return exitUsage
	}
	if remedy := cli.Remedy(err); remedy != "" {
		fmt.Fprintln(stderr, "pagewire:", remedy)
	}
	return exitFailed
}

func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "pagewire",
		Short: "Connect live web pages to AI agents",
		Long: "Pagewire lets AI agents see the web pages that you have open, and tells them\n" +
			"when a page changes. Begin with pagewire setup: it connects your agent programs\n" +
			"and your browser.",
		Example:       "  pagewire setup\n  pagewire ls",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
	}
	showVersion := root.Flags().BoolP("version", "v", false, "print version, commit and toolchain")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *showVersion {
			return writeVersion(cmd, false)
		}
		return cmd.Help()
	}
	// Why does the command line print its own help? Cobra's SetHelpTemplate links text/template,
	// which looks up methods by name, so the linker keeps every exported method: 20.3 MB with 10
	// tabs instead of 25, 1.5 of it by the build without cgo.
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand())
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands() {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.SetCompletionCommandGroupID(otherGroup)
	root.AddCommand(nativeHostCommand(), daemonCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{cmd, flagError(err)}
	})
	color := "auto"
	root.PersistentFlags().Var(choice{&color, []string{"auto", "always", "never"}}, "color",
		"`when` to color the output: auto, always or never; NO_COLOR turns auto off")
	for _, cmd := range append(root.Commands(), root) {
		completeFlags(cmd)
		for _, below := range cmd.Commands() {
			completeFlags(below)
		}
	}
	return root
}

// otherGroup is the title of the last group, to which cobra adds its completion.
const otherGroup = "Other commands"

// groups are the commands by use, in the order of the help.
var groups = []struct {
	title    string
	commands func() []*cobra.Command
}{
	{"Set up", func() []*cobra.Command {
		return []*cobra.Command{setupCommand(), configCommand(), extensionCommand(), doctorCommand()}
	}},
	{"Look at open pages", func() []*cobra.Command {
		return []*cobra.Command{lsCommand(), readCommand(), watchCommand(), toolsCommand(),
			callCommand(), pickCommand(), inspectCommand()}
	}},
	{"Run by programs", func() []*cobra.Command {
		return []*cobra.Command{serveInto(new(serveFlags)), changesCommand(), nodeCommand()}
	}},
	{otherGroup, func() []*cobra.Command {
		return []*cobra.Command{assetsCommand(), versionCommand()}
	}},
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND...]",
		Short:  "Print the help of a command",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			named, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(named, rest[0])
			}
			if err != nil {
				return err
			}
			named.InitDefaultHelpFlag()
			return named.Help()
		},
	}
}

func versionCommand() *cobra.Command {
	var to results
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain",
		Example: "  pagewire version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeVersion(cmd, to.json)
		},
	}
	to.add(cmd, "a JSON object")
	return cmd
}

// writeVersion writes the versions that a bug report needs.
func writeVersion(cmd *cobra.Command, asJSON bool) error {
	is := struct {
		Version   string `json:"version"`
		Commit    string `json:"commit"`
		Toolchain string `json:"toolchain"`
		Core      string `json:"core"`
	}{versionName(), "unknown", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		assets.Core()}
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
		return printJSON(cmd, is)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "pagewire %s\ncommit    %s\ntoolchain %s\ncore      %s\n", is.Version,
		is.Commit,
		is.Toolchain, is.Core)
	return err
}
