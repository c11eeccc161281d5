package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

func inspectCommand() *cobra.Command {
	var h hubFlags
	var noOpen, asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Open the inspector in a browser",
		Long: "Opens the inspector of the running pagewire serve: pages, resources with their\n" +
			"values, agents and messages. If no browser starts, it prints the path of a file\n" +
			"to open within a minute. Only you can read that file; it works once.",
		Example: "  pagewire inspect",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd, h, !noOpen, asJSON)
		},
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the file's path, and start no browser")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the path as JSON")
	h.add(cmd)
	return cmd
}

func inspect(cmd *cobra.Command, h hubFlags, start, asJSON bool) error {
	is, err := serve.Ask(cmd.Context(), h.addr, versionName())
	if err != nil {
		return cli.Hint(err, "pagewire doctor says what is there")
	}
	switch {
	case is.Addr == "" && !listening(cmd.Context(), h.addr):
		return cli.Hint(fmt.Errorf("the daemon cannot listen on %s, where the inspector would be",
			h.addr),
			"its log says why, and pagewire doctor what to do")
	case is.Addr == "":
		return cli.Hint(fmt.Errorf("another program has %s, where the inspector would be", h.addr),
			"stop it: the daemon takes the port as soon as it is free")
	}
	file, err := access.TokenFile() // its directory is private to this user
	if err != nil {
		return err
	}
	ticket, err := access.Ask(cmd.Context(), h.client(), is.Addr)
	if err != nil {
		return err
	}
	defer ticket.Close()
	page, err := writeTicket(filepath.Dir(file), ticket.URL)
	if err != nil {
		return err
	}
	defer os.Remove(page)
	opened := make(chan error, 1)
	go func() { opened <- ticket.Opened() }()
	failed := make(chan error, 1)
	if start {
		go func() { failed <- startBrowser(page) }()
	} else {
		failed <- errors.New("no browser is to be started")
	}
	select {
	case err = <-opened:
	case why := <-failed:
		if why != nil {
			fmt.Fprintln(cmd.ErrOrStderr(),
				"pagewire: open this file in a browser within a minute:")
			text := page + "\n"
			if asJSON {
				text = cli.JSON(page)
			}
			_, _ = io.WriteString(cmd.OutOrStdout(), text)
		}
		err = <-opened
	}
	switch {
	case errors.Is(cmd.Context().Err(), context.Canceled):
		return nil // a signal ended it
	case err != nil:
		return cli.Hint(errors.New("no browser has opened the inspector within a minute"),
			"run it again, or with --no-open and open the file yourself")
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "pagewire: the inspector is open")
	return nil
}

// writeTicket writes the file that leads a browser to the inspector. Only this user can read it.
func writeTicket(dir, url string) (path string, err error) {
	f, err := os.CreateTemp(dir, "inspect-*.html") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f,
		"<!doctype html>\n<meta charset=\"utf-8\">\n<title>Pagewire</title>\n<meta "+
			"name=\"referrer\" content=\"no-referrer\">\n"+
			"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", html.EscapeString(url))
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// startBrowser opens a file in the default browser. It fails if there is no screen or no browser,
// which often only the opener finds out. It returns when the opener has ended; some openers end
// only with the browser.
func startBrowser(path string) error {
	var args []string
	switch {
	case !launched.HasDisplay():
		return errors.New("there is no screen")
	case runtime.GOOS == "darwin":
		args = []string{"open", path}
	case runtime.GOOS == "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler", path}
	default:
		args = []string{"xdg-open", path}
	}
	return exec.Command(args[0], args[1:]...).Run()
}
