package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
)

// ls, read and watch are clients of a running daemon. They never start one.

type hubFlags struct{ addr string }

func (h *hubFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&h.addr, "hub", serve.DefaultHub, "`address` with which the pagewire serve that runs was "+
		"started")
}

// client returns a client for the daemon's HTTP server for processes of this user.
func (h *hubFlags) client() *http.Client { return serve.Client(h.addr, versionName()) }

// startOne is the hint if no daemon runs.
const startOne = "start one: pagewire serve --launch, or --chrome auto, in another terminal"

// connect opens a session with the daemon. Its errors have hints.
func (h *hubFlags) connect(ctx context.Context, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	conn, err := daemon.Dialer{Hub: h.addr}.Dial(ctx, daemon.Hello{Version: versionName(), As: daemon.AsCommand})
	if errors.Is(err, daemon.ErrNone) {
		return nil, hintError{err, startOne}
	} else if err != nil {
		return nil, err
	}
	o.Capabilities = &mcp.ClientCapabilities{}
	client := mcp.NewClient(&mcp.Implementation{Name: "pagewire", Version: versionName()}, o)
	// In this version of MCP a subscription is one request and lasts as long as the session.
	lines := &mcp.IOTransport{Reader: conn.Messages(), Writer: conn}
	session, err := client.Connect(ctx, lines, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return session, nil
}

// resourceError returns the error to print when a request for a resource has failed.
func resourceError(uri string, err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) {
		return err
	}
	err = errors.New(plain(uri + ": " + wire.Message))
	if wire.Code == -32002 || wire.Code == -32602 {
		return hintError{err, "pagewire ls lists what there is"}
	}
	return err
}

// isAbsent reports whether an error says that no page offers a resource.
func isAbsent(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code == -32002
}

// listed is a resource or template in the output of ls --json.
type listed struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Tab         int    `json:"tab"`
	Template    bool   `json:"template"`
}

func lsCommand() *cobra.Command {
	var h hubFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the resources of open pages",
		Long: "Lists the resources and templates that agents see: URI, type, tab and title of each. Then it names the\n" +
			"open tabs that offer agents nothing, on a terminal alone. No agent is told which these are.",
		Example: "  pagewire ls",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := h.connect(cmd.Context(), &mcp.ClientOptions{})
			if err != nil {
				return err
			}
			defer session.Close()
			list := []listed{}
			for r, err := range session.Resources(cmd.Context(), nil) {
				if err != nil {
					return err
				}
				list = append(list, listed{r.URI, r.Name, r.Title, r.Description, r.MIMEType, tabOf(r.Meta), false})
			}
			for r, err := range session.ResourceTemplates(cmd.Context(), nil) {
				if err != nil {
					return err
				}
				list = append(list, listed{r.URITemplate, r.Name, r.Title, r.Description, r.MIMEType, tabOf(r.Meta),
					true})
			}
			if is, err := serve.AskTabs(cmd.Context(), h.addr, versionName()); err == nil {
				for _, notice := range is.Notices {
					fmt.Fprintln(cmd.ErrOrStderr(), "pagewire:", plain(notice))
				}
				printTabs(cmd.ErrOrStderr(), isTerminal(cmd.ErrOrStderr()), is.Tabs)
			}
			if asJSON {
				_, err := io.WriteString(visible{cmd.OutOrStdout()}, indentedJSON(list))
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "pagewire: no open page offers a resource")
				return nil
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "URI\tTYPE\tTAB\tTITLE")
			for _, r := range list {
				kind := r.MIMEType
				if kind == "" {
					kind = "-"
				}
				if r.Title == "" {
					r.Title = r.Name
				}
				fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", plain(r.URI), plain(kind), r.Tab, plain(r.Title))
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	h.add(cmd)
	return cmd
}

// printTabs names the open tabs that offer agents nothing, if a person reads it at a terminal. Agents run commands
// too, and get only the number.
func printTabs(to io.Writer, terminal bool, tabs []serve.Tab) {
	if len(tabs) > 0 && !terminal {
		fmt.Fprintf(to, "pagewire: open tabs that offer agents nothing: %d; on a terminal this says which\n", len(tabs))
		return
	}
	for i, tab := range tabs {
		if i == 0 {
			fmt.Fprintln(to, "pagewire: these open tabs offer agents nothing; the popup of the extension, "+
				"or pagewire serve --shown ORIGIN, lets agents read what the pages of a site show:")
		}
		fmt.Fprintf(to, "  %s  %s\n", plain(tab.URL), plain(tab.Title))
	}
}

func tabOf(meta mcp.Meta) int {
	n, _ := meta["pagewire/tab"].(float64)
	return int(n)
}

func readCommand() *cobra.Command {
	var h hubFlags
	var asJSON, force bool
	var output string
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Print the contents of a resource",
		Long: "Reads a resource and prints its contents unchanged. Binary contents go to a file or a pipe, never to a\n" +
			"terminal.",
		Example: "  pagewire read https://shop.example/state/cart",
		Args:    arguments("URI", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && output != "" {
				return usageError{cmd, errors.New("--json and --output: choose one")}
			}
			session, err := h.connect(cmd.Context(), &mcp.ClientOptions{})
			if err != nil {
				return err
			}
			defer session.Close()
			r, err := session.ReadResource(cmd.Context(), &mcp.ReadResourceParams{URI: args[0]})
			if err != nil {
				return resourceError(args[0], err)
			}
			if asJSON {
				_, err := io.WriteString(visible{cmd.OutOrStdout()}, encodedJSON(map[string]any{"contents": r.Contents}, ""))
				return err
			}
			content, binary := joined(r.Contents)
			if output != "" {
				return writeNew(output, content, force)
			}
			return show(cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout()), args[0], content, binary)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the contents as MCP has them, in one line of JSON")
	cmd.Flags().StringVar(&output, "output", "", "write to this `file`")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	h.add(cmd)
	return cmd
}

// joined concatenates contents. Until the first binary part, each part begins on a new line.
func joined(parts []*mcp.ResourceContents) (content []byte, binary bool) {
	for i, part := range parts {
		if i > 0 && !binary && len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
			content = append(content, '\n')
		}
		content = append(append(content, part.Text...), part.Blob...)
		binary = binary || len(part.Blob) > 0
	}
	return content, binary
}

// show prints contents: unchanged into a pipe or file, and without control characters on a terminal.
func show(to io.Writer, terminal bool, uri string, content []byte, binary bool) error {
	switch {
	case terminal && binary:
		return hintError{fmt.Errorf("%s is no text (%s bytes)", plain(uri), grouped(len(content))),
			"--output FILE writes it to a file"}
	case terminal:
		content = []byte(harmless(string(content)))
		if !bytes.HasSuffix(content, []byte("\n")) {
			content = append(content, '\n')
		}
	}
	_, err := to.Write(content)
	return err
}

// writeNew writes a file. Without force it must not exist.
func writeNew(path string, content []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return hintError{fmt.Errorf("%s is there already", path), "nothing was written; --force overwrites"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func inspectCommand() *cobra.Command {
	var h hubFlags
	var noOpen bool
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Open the inspector in a browser",
		Long: "Opens the inspector of the pagewire serve that runs: pages, resources with their values, agents and\n" +
			"messages. The browser opens a file that only you can read. The file has a ticket that works once, within a\n" +
			"minute, and is removed after use. Where no browser can be started, its path is printed.",
		Example: "  pagewire inspect",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd, h, !noOpen)
		},
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "start no browser, print the file's path")
	h.add(cmd)
	return cmd
}

func inspect(cmd *cobra.Command, h hubFlags, start bool) error {
	is, err := serve.Ask(cmd.Context(), h.addr, versionName())
	if err != nil {
		return hintError{err, "pagewire doctor says what is there"}
	}
	switch {
	case is.Addr == "" && !listening(cmd.Context(), h.addr):
		return hintError{fmt.Errorf("the daemon cannot listen on %s, where the inspector would be", h.addr),
			"its log says why, and pagewire doctor what to do"}
	case is.Addr == "":
		return hintError{fmt.Errorf("another program has %s, where the inspector would be", h.addr),
			"stop it: the daemon takes the port as soon as it is free"}
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
			fmt.Fprintln(cmd.ErrOrStderr(), "pagewire: open this file in a browser within a minute:")
			fmt.Fprintln(cmd.OutOrStdout(), page)
		}
		err = <-opened
	}
	switch {
	case errors.Is(cmd.Context().Err(), context.Canceled):
		return nil // a signal ended it
	case err != nil:
		return hintError{errors.New("no browser has opened the inspector within a minute"),
			"run it again, or with --no-open and open the file yourself"}
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
	_, err = fmt.Fprintf(f, "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Pagewire</title>\n<meta "+
		"name=\"referrer\" content=\"no-referrer\">\n"+
		"<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n", html.EscapeString(url))
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// startBrowser opens a file in the default browser. It fails if there is no screen or no browser, which often only the
// opener finds out. It returns when the opener has ended; some openers end only with the browser.
func startBrowser(path string) error {
	var args []string
	switch {
	case runtime.GOOS == "darwin":
		args = []string{"open", path}
	case runtime.GOOS == "windows":
		args = []string{"rundll32", "url.dll,FileProtocolHandler", path}
	case strings.TrimSpace(os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY")) == "":
		return errors.New("there is no screen")
	default:
		args = []string{"xdg-open", path}
	}
	return exec.Command(args[0], args[1:]...).Run()
}
