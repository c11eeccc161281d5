//go:build !js

// Command clientcheck finds out what an agent program and its model receive from an MCP server. It
// plays a server with a page that changes. Each place that a program may show its model has a word
// that cannot be guessed. The report, in Markdown, says which words came back. A model may have
// been shown a word that it did not give back.
//
//	go run ./e2e/agents/clientcheck claude -p {prompt} --mcp-config {config} --allowedTools mcp__pagewire-check
//	go run ./e2e/agents/clientcheck codex exec -c \
//		'mcp_servers.pagewire-check={command="{command}",args={args}}' {prompt}
//
// The arguments start the program. {config} in them is replaced by a file with the server as
// {"mcpServers": ...}, {command} by the server's command, {args} by its arguments as a JSON array,
// {words} by both in one, and {prompt} by the question to the model. With --report FILE in place of
// arguments it is that server, on standard input and output, for a program that is set up by hand,
// and keeps the report in FILE; * in its name is the process id.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// checkPrompt asks a model to try each tool and the resource.
const checkPrompt = "Call each tool of the MCP server " + checkName +
	" whose name begins with check_ once, " +
	"check_report last. Read its resource first if you can, and once more at the end. Give check_report every word " +
	"that begins with pw- that you have seen: in results of tools, in what they carry, in the resource and in " +
	"instructions."

func main() {
	report := flag.String("report", "", "be the server, and write the report to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *report != "":
		err = serve(ctx, *report, os.Stdin, os.Stdout)
	case flag.NArg() > 0:
		err = check(ctx, flag.Args(), os.Stdout)
	default:
		err = errors.New(
			"give the command that starts an agent program, or --report FILE to be the server")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientcheck:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, report string, in io.Reader, out io.Writer) error {
	report = strings.ReplaceAll(report, "*", fmt.Sprint(os.Getpid()))
	c := newChecker(func(text string) error {
		// With a rename, a reader finds one whole report.
		if err := os.WriteFile(report+".new", []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(report+".new", report)
	})
	if err := c.save(); err != nil {
		return err
	}
	return c.run(ctx, in, out)
}

// check runs an agent program with the server, and prints the report of each process of the server.
// The program's own output goes to standard error.
func check(ctx context.Context, args []string, out io.Writer) error {
	dir, err := os.MkdirTemp("", "pagewire-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	type object = map[string]any
	serve := []string{"--report", filepath.Join(dir, "*.md")}
	config := filepath.Join(dir, "config.json")
	entry := object{"mcpServers": object{checkName: object{"command": self, "args": serve}}}
	if err := os.WriteFile(config, []byte(asJSON(entry)), 0o600); err != nil {
		return err
	}
	fill := strings.NewReplacer("{config}", config, "{command}", self, "{prompt}", checkPrompt,
		"{args}", asJSON(serve), "{words}", asJSON(append([]string{self}, serve...)))
	for i, arg := range args {
		args[i] = fill.Replace(arg)
	}
	run := testcmd.CommandContext(ctx, args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stderr, os.Stderr
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 5 * time.Second
	ended := run.Run()
	if ctx.Err() != nil {
		ended = nil // the user has ended it
	}
	reports, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	if len(reports) == 0 {
		return errors.Join(
			fmt.Errorf("%s started no server: its arguments must say where it is, by {config}, or "+
				"{command} and {args}", args[0]), ended)
	}
	for _, path := range reports {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return ended
}

func asJSON(v any) string {
	text, _ := json.Marshal(v) // strings can always be encoded
	return string(text)
}
