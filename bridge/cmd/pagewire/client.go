package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/gateway"
)

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
				list = append(list,
					listed{r.URI, r.Name, r.Title, r.Description, r.MIMEType, tabOf(r.Meta), false})
			}
			for r, err := range session.ResourceTemplates(cmd.Context(), nil) {
				if err != nil {
					return err
				}
				list = append(list,
					listed{r.URITemplate, r.Name, r.Title, r.Description, r.MIMEType, tabOf(r.Meta),
						true})
			}
			if is, err := serve.AskTabs(cmd.Context(), h.addr, versionName()); err == nil {
				for _, notice := range is.Notices {
					fmt.Fprintln(cmd.ErrOrStderr(), "pagewire:", cli.Plain(notice))
				}
				printTabs(cmd.ErrOrStderr(), cli.IsTerminal(cmd.ErrOrStderr()), is.Tabs)
			}
			if len(list) == 0 && !asJSON {
				fmt.Fprintln(cmd.ErrOrStderr(), "pagewire: no open page offers a resource")
				return nil
			}
			rows := [][]string{{"URI", "TYPE", "TAB", "TITLE"}}
			for _, r := range list {
				rows = append(rows, []string{r.URI, cmp.Or(r.MIMEType, "-"), fmt.Sprint(r.Tab),
					cmp.Or(r.Title, r.Name)})
			}
			return printList(cmd, asJSON, list, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	h.add(cmd)
	return cmd
}

// printList prints a list as JSON, or as a table of its rows.
func printList(cmd *cobra.Command, asJSON bool, list any, rows [][]string) error {
	if asJSON {
		_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()), cli.IndentedJSON(list))
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, text := range row {
			row[i] = cli.Plain(text)
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// printTabs names the open tabs that offer agents nothing, if a person reads it at a terminal.
// Agents run commands too, and get only the number.
func printTabs(to io.Writer, terminal bool, tabs []serve.Tab) {
	if len(tabs) > 0 && !terminal {
		fmt.Fprintf(to,
			"pagewire: open tabs that offer agents nothing: %d; on a terminal this says which\n",
			len(tabs))
		return
	}
	for i, tab := range tabs {
		if i == 0 {
			fmt.Fprintln(to,
				"pagewire: these open tabs offer agents nothing; the popup of the extension, "+
					"or pagewire serve --shown ORIGIN, lets agents read what the pages of a site show:")
		}
		fmt.Fprintf(to, "  %s  %s\n", cli.Plain(tab.URL), cli.Plain(tab.Title))
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

		ValidArgsFunction: h.complete(1, false),
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
				return askError(args[0], err, "ls")
			}
			if asJSON {
				_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()),
					cli.JSON(map[string]any{"contents": r.Contents}))
				return err
			}
			content, binary := joined(r.Contents)
			if output != "" {
				return writeNew(output, content, force)
			}
			return show(cmd.OutOrStdout(), cli.IsTerminal(cmd.OutOrStdout()), args[0], content,
				binary)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false,
		"print the contents as MCP has them, in one line of JSON")
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

// show prints contents: unchanged into a pipe or file, and without control characters on a
// terminal.
func show(to io.Writer, terminal bool, uri string, content []byte, binary bool) error {
	switch {
	case terminal && binary:
		return cli.Hint(fmt.Errorf("%s is no text (%s bytes)", cli.Plain(uri),
			grouped(len(content))),
			"--output FILE writes it to a file")
	case terminal:
		content = []byte(cli.Harmless(string(content)))
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
		return cli.Hint(fmt.Errorf("%s is there already", path),
			"nothing was written; --force overwrites")
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

func toolsCommand() *cobra.Command {
	var h hubFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that agents have",
		Long: "Lists Pagewire's own tools and those of open pages: name, origin of the page,\n" +
			"and the beginning of the description. --json prints them whole, as agents get them.",
		Example: "  pagewire tools",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := h.connect(cmd.Context(), &mcp.ClientOptions{})
			if err != nil {
				return err
			}
			defer session.Close()
			list, rows := []*mcp.Tool{}, [][]string{{"NAME", "PAGE", "DESCRIPTION"}}
			for t, err := range session.Tools(cmd.Context(), nil) {
				if err != nil {
					return err
				}
				page, _ := t.Meta["pagewire/origin"].(string) // Pagewire's own tools have none
				list = append(list, t)
				rows = append(rows,
					[]string{t.Name, cmp.Or(page, "-"), gateway.Shorten(t.Description, 100)})
			}
			return printList(cmd, asJSON, list, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	h.add(cmd)
	return cmd
}

func callCommand() *cobra.Command {
	var h hubFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call NAME [JSON]",
		Short: "Call a tool as an agent would",
		Long: "Calls one of the tools that pagewire tools lists, and prints the text of its\n" +
			"result. JSON is an object with the arguments, or - to read it from standard input.\n" +
			"A tool of a page acts at once, as the user of the page, and nobody asks again.",
		Example: `  pagewire call list_page_resources '{"contains": "cart"}'`,
		Args:    arguments("NAME", 1, 2),

		ValidArgsFunction: h.complete(1, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := argumentsOf(cmd, append(args, "{}")[1])
			if err != nil {
				return err
			}
			session, err := h.connect(cmd.Context(), &mcp.ClientOptions{})
			if err != nil {
				return err
			}
			defer session.Close()
			r, err := session.CallTool(cmd.Context(),
				&mcp.CallToolParams{Name: args[0], Arguments: given})
			if err != nil && !errors.As(err, new(*jsonrpc.Error)) {
				return cli.Hint(err, "it may have run: look at its page before you call it again")
			} else if err != nil {
				return askError(args[0], err, "tools")
			}
			if err := printResult(cmd, r, asJSON); err != nil || !r.IsError {
				return err
			}
			return fmt.Errorf("%s has failed: its result says why", cli.Plain(args[0]))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as MCP has it, in one line of JSON")
	h.add(cmd)
	return cmd
}

// argumentsOf returns the arguments for a tool: a text, or standard input for -.
func argumentsOf(cmd *cobra.Command, given string) (text json.RawMessage, err error) {
	text = json.RawMessage(given)
	if given == "-" {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), gateway.MaxMessageBytes))
	}
	var object map[string]any
	if err == nil && (json.Unmarshal(text, &object) != nil || object == nil) {
		err = usageError{cmd, fmt.Errorf("arguments %.60q: want a JSON object of at most 4 MiB, "+
			`such as {"uri": "https://shop.example/state/cart"}`, text)}
	}
	return text, err
}

// printResult prints a result's texts, or with asJSON all of it.
func printResult(cmd *cobra.Command, r *mcp.CallToolResult, asJSON bool) error {
	if asJSON {
		_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()), cli.JSON(r))
		return err
	}
	var text []byte
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text = fmt.Appendln(text, strings.TrimSuffix(t.Text, "\n"))
		} else {
			fmt.Fprintln(cmd.ErrOrStderr(),
				"pagewire: a part of the result is no text: --json prints it")
		}
	}
	return show(cmd.OutOrStdout(), cli.IsTerminal(cmd.OutOrStdout()), "", text, false)
}
