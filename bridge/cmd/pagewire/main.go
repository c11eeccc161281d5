//go:build !js

// Command pagewire is the native side of Pagewire.
//
// The rules of its surface, which its tests hold:
//
//   - Results go to standard output and can be piped. Messages to a person go to standard error: they begin with
//     "pagewire:", without a capital, and have no final period.
//   - An error is one line; a second line says what to do where that is known.
//   - Exit status 0: success. 1: failure. 2: a mistake in the command line. A program's hook (changes --hook) always
//     ends with 0.
//   - Each help text ends in an example that works as it stands.
//   - Nothing is overwritten unless --force says so. There is no configuration file.
//   - Texts of pages and of programs at a port are data: on a terminal their control characters are shown and do not
//     act.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
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

// pagewire runs a command line and returns its exit status. The end of ctx ends the command; for serve and watch that
// is success.
func pagewire(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = visible{stderr}
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
	fmt.Fprintln(stderr, "pagewire:", err)
	if isHook(args) {
		return exitDone
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "pagewire: see %s --help\n", usage.cmd.CommandPath())
		return exitUsage
	}
	var hint hintError
	if errors.As(err, &hint) {
		fmt.Fprintln(stderr, "pagewire:", hint.hint)
	}
	return exitFailed
}

// commands returns the root command.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "pagewire",
		Short: "Live page state for AI agents",
		Long: "Pagewire wires live page state to AI agents: a page says what it can show and when that changes,\n" +
			"and any MCP agent can list it, read it, and be told.",
		Example:       "  pagewire config claude-desktop --write\n  pagewire ls",
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmd.Help()
		},
		Args: noArguments,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true}) // --help is the one way
	root.SetHelpFunc(help)
	root.AddCommand(serveCommand(), lsCommand(), readCommand(), watchCommand(), changesCommand(), inspectCommand(),
		configCommand(), doctorCommand(), extensionCommand(), nativeHostCommand(),
		daemonCommand(), nodeCommand(), assetsCommand(), versionCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{cmd, err}
	})
	return root
}

// usageError is a mistake in the command line: exit status 2, and a pointer to the help.
type usageError struct {
	cmd *cobra.Command
	err error
}

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// hintError adds a remedy to an error.
type hintError struct {
	err  error
	hint string
}

func (e hintError) Error() string { return e.err.Error() }
func (e hintError) Unwrap() error { return e.err }

var noArguments = arguments("", 0, 0)

// arguments is cobra.RangeArgs with the messages and the status of this command.
func arguments(name string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError{cmd, errors.New(name + " is missing")}
		case len(args) <= most:
			return nil
		case cmd.HasSubCommands():
			return usageError{cmd, fmt.Errorf("unknown command %q", args[0])}
		}
		return usageError{cmd, fmt.Errorf("unexpected argument %q", args[most])}
	}
}

// help is cobra's, with the example last. It uses no template: with text/template the linker keeps every exported method
// of every package, 2.5 MB.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", about)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s <command>\n\nCommands:\n", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s %s\n", cmd.Commands()[0].NamePadding(), c.Name(), c.Short)
			}
		}
	} else {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsages(), "\n"))
	}
	fmt.Fprintf(w, "\nExample:\n%s\n", cmd.Example)
}
