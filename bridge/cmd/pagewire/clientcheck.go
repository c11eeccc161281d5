//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// client-check answers for one client what the table of the docs answers for those that our tests run: it plays an MCP
// server with a page that changes, and reports what of it the client asked for, and, by the words that its model gives
// back, what the model was shown. A report is no more than that: what a model did not give back it may have been shown
// all the same.

// checkPrompt has a model try all that there is.
const checkPrompt = "Call each tool of the MCP server " + checkName + " whose name begins with check_ once, " +
	"check_report last. Read its resource first if you can, and once more at the end. Give check_report every word " +
	"that " +
	"begins with pw- that you have seen: in results of tools, in what they carry, in the resource and in instructions."

func clientCheckCommand() *cobra.Command {
	var report string
	cmd := &cobra.Command{
		Use:   "client-check [-- COMMAND [ARG...]]",
		Short: "Report what a client and its model receive from an MCP server",
		Long: "Acts as an MCP server with a page that changes, and reports in Markdown what a client asked for and what\n" +
			"its model was shown. COMMAND starts an agent program. These words in its arguments are replaced:\n" +
			"  {config}   a file with the server as {\"mcpServers\": ...}\n" +
			"  {command}  the server's command, {args} its arguments as a JSON array, {words} both in one\n" +
			"  {prompt}   what to ask the model\n" +
			"Without COMMAND it is that server, on standard input and output, for a client that is set up by hand. It\n" +
			"writes the report to the file of --report, and updates it after each thing that the client does.",
		Example: "  pagewire client-check -- claude -p {prompt} --mcp-config {config} --allowedTools " +
			"mcp__pagewire-check\n" +
			"  pagewire client-check -- codex exec -c " +
			"'mcp_servers.pagewire-check={command=\"{command}\",args={args}}' {prompt}",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.ArgsLenAtDash() > 0 || cmd.ArgsLenAtDash() < 0 && len(args) > 0:
				return usageError{cmd, fmt.Errorf("unexpected argument %s: COMMAND comes after --", quoted(args[0]))}
			case len(args) > 0 && report != "":
				return usageError{cmd,
					errors.New("with COMMAND the report goes to standard output: leave --report out")}
			case len(args) > 0:
				return checkProgram(cmd, args)
			case report == "":
				return usageError{cmd, errors.New("COMMAND is missing; to be the server, give --report FILE")}
			}
			return serveCheck(cmd, report)
		},
	}
	cmd.Flags().StringVar(&report, "report", "",
		"be the server, and write the report to this `file`; * in its name is the process id")
	return cmd
}

// serveCheck is the server until the client goes.
func serveCheck(cmd *cobra.Command, report string) error {
	report = strings.ReplaceAll(report, "*", fmt.Sprint(os.Getpid()))
	c := newCheck(func(text string) error {
		// Whoever reads it meanwhile finds all of one report.
		if err := os.WriteFile(report+".new", []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(report+".new", report)
	})
	if err := c.save(); err != nil {
		return err
	}
	return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
}

// checkProgram runs an agent program with the server, and prints what each process of the server reports.
func checkProgram(cmd *cobra.Command, args []string) error {
	dir, err := os.MkdirTemp("", "pagewire-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	serve := []string{"client-check", "--report", filepath.Join(dir, "*.md")}
	config := filepath.Join(dir, "config.json")
	entry := jsonText(nested([]string{"mcpServers", checkName}, entry{{"command", self}, {"args", serve}}))
	if err := os.WriteFile(config, []byte(entry), 0o600); err != nil {
		return err
	}
	fill := strings.NewReplacer("{config}", config, "{command}", self, "{prompt}", checkPrompt,
		"{args}", quotedJSON(serve), "{words}", quotedJSON(append([]string{self}, serve...)))
	for i, arg := range args {
		args[i] = fill.Replace(arg)
	}
	ends := runProgram(cmd, args)
	reports, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	if len(reports) == 0 {
		return hintError{errors.Join(fmt.Errorf("%s started no server of that name", plain(args[0])), ends),
			"say in its arguments where the server is: {config}, or {command} and {args}; see pagewire client-check " +
				"--help"}
	}
	for _, path := range reports {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return err
		}
	}
	return ends
}

// runProgram runs a program until it ends, or until this command does. What it prints is no part of the report.
func runProgram(cmd *cobra.Command, args []string) error {
	run := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.ErrOrStderr(), cmd.ErrOrStderr()
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 5 * time.Second
	err := run.Run()
	if cmd.Context().Err() != nil && errors.Is(cmd.Context().Err(), context.Canceled) {
		return nil // a person has seen enough
	}
	if err != nil {
		return fmt.Errorf("%s: %w", plain(args[0]), err)
	}
	return nil
}
