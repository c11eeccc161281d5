// Command pagewire is the native side of Pagewire.
//
// The rules of its command line, which its tests check:
//
//   - Results go to standard output and can be piped. Messages to a person go to standard error: they begin with
//     "pagewire:", without a capital, and have no final period.
//   - An error is one line. A second line says what to do, if a remedy is known.
//   - Exit status 0: success. 1: failure. 2: a mistake in the command line. A program's hook (changes --hook) always
//     ends with 0.
//   - Each help text ends in an example that works unchanged.
//   - Only --force overwrites a file. There is no configuration file.
//   - Texts of pages and of programs at a port are data: a terminal shows their control characters without effect.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
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

// pagewire runs a command line until ctx ends, and returns its exit status.
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
	var hint interface{ Hint() string }
	if errors.As(err, &hint) {
		fmt.Fprintln(stderr, "pagewire:", hint.Hint())
	}
	return exitFailed
}

func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "pagewire",
		Short: "Live page state for AI agents",
		Long: "Pagewire wires live page state to AI agents: a page says what it can show and when that changes,\n" +
			"and any MCP agent can list it and read it, and is told of changes.",
		Example:       "  pagewire config claude-desktop --write\n  pagewire ls",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
	}
	showVersion := root.Flags().BoolP("version", "v", false, "print version, commit and toolchain")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *showVersion {
			return writeVersion(cmd.OutOrStdout(), false)
		}
		return cmd.Help()
	}
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
		return usageError{cmd, err}
	})
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
		return []*cobra.Command{configCommand(), extensionCommand(), doctorCommand()}
	}},
	{"Look at open pages", func() []*cobra.Command {
		return []*cobra.Command{lsCommand(), readCommand(), watchCommand(), pickCommand(), inspectCommand()}
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

// hintError adds a remedy to an error.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }
func (e hintError) Hint() string  { return e.hint }

// interruptible runs a function that reads and writes files. It returns at most one second after the end of ctx, even
// if the system still waits for a file, which can be on the other side of a network.
func interruptible(ctx context.Context, run func() error) error {
	over, hangs := make(chan error, 1), make(chan struct{})
	go func() { over <- run() }()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { close(hangs) }) })()
	select {
	case err := <-over:
		return err
	case <-hangs:
		return hintError{errors.New("interrupted: the system has not answered for a file"),
			"look whether the disk or the network that it is on hangs"}
	}
}

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

// help replaces cobra's help: it has groups, and the example comes last. It avoids text/template, with which the linker
// keeps every exported method: 2.5 MB.
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
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsages(), "\n"))
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
	environment = `  XDG_CONFIG_HOME       directory of pagewire/, with socket, token and logs (default: the user's own)
  PAGEWIRE_BROWSER      the browser of --launch
  PAGEWIRE_TOKEN_FILE   file of the token for agents on HTTP
`
	manual = "https://github.com/pagewire/pagewire/tree/main/demo/docs"
)

// version is set by the build, from js/package.json. go install leaves it empty: then the module's version counts.
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

// writeVersion writes the versions that a report of a fault needs.
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

func versionName() string { return cli.Version(version) }

// nodeProgram is a separate program, since its NATS server would take 1.8 MB of memory in each agent's process.
const nodeProgram = "pagewire-node"

func nodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "node",
		Short: "Serve a service's open pages to its own agents, on several machines",
		Long: "Runs " + nodeProgram + ", the program beside this one. A node is one process of a fleet: the\n" +
			"pages of a service connect to it, and so do the agents of the service, over HTTP. All arguments are\n" +
			"passed on to it.",
		Example:            "  pagewire node --help",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := besideThis(nodeProgram)
			if err != nil {
				return hintError{err, "install it: go install github.com/pagewire/pagewire/bridge/cmd/" + nodeProgram}
			}
			return replaceBy(cmd, program, args)
		},
	}
}

// besideThis finds a program in this program's directory or on PATH.
func besideThis(name string) (string, error) {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), name)
			if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
				return beside, nil
			}
		}
	}
	found, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is neither beside this program nor on PATH", name)
	}
	return found, err
}
