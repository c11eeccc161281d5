package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
	var to results
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the resources of open pages",
		Long: "Lists what agents can read, tab by tab. In a pipe, and with --wide, each line\n" +
			"has URI, type, tab and title. On a terminal it then names the open tabs that\n" +
			"offer agents nothing. Agents don't learn which these are.",
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
				printTabs(cmd.ErrOrStderr(), cli.IsTerminal(cmd.ErrOrStderr()), is.Tabs,
					widthOf(cmd, to.wide))
			}
			if len(list) == 0 && !to.json {
				fmt.Fprintf(cmd.ErrOrStderr(), "pagewire: no open page offers a resource\n"+
					"pagewire: open one that does, such as http://%s/demo/; pagewire doctor says more\n", h.addr)
				return nil
			}
			rows := byTab(list)
			if widthOf(cmd, to.wide) == 0 {
				rows = [][]string{{"URI", "TYPE", "TAB", "TITLE"}}
				for _, r := range list {
					rows = append(rows, []string{r.URI, cmp.Or(r.MIMEType, "-"), fmt.Sprint(r.Tab),
						cmp.Or(r.Title, r.Name)})
				}
			}
			return to.printList(cmd, list, rows)
		},
	}
	to.add(cmd, "a JSON array")
	cmd.Flags().BoolVar(&to.wide, "wide", false, "cut nothing, and print all columns")
	h.add(cmd)
	return cmd
}

// byTab has a heading for each page, in the order of the tabs.
func byTab(list []listed) (rows [][]string) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b listed) int {
		return cmp.Or(a.Tab-b.Tab, strings.Compare(a.Title[pageAt(a.Title):], b.Title[pageAt(b.Title):]))
	})
	last := ""
	for _, r := range list {
		at := pageAt(r.Title)
		if page := r.Title[at:]; page != last {
			rows, last = append(rows, []string{strings.TrimPrefix(page, " - ")}), page
		}
		rows = append(rows, []string{"  " + r.URI, cmp.Or(r.Title[:at], r.Name)})
	}
	return rows
}

// pageAt is where a title names the page: " - PAGE (tab N, HOST)".
func pageAt(title string) int {
	place := max(strings.LastIndex(title, " (tab "), 0)
	return max(strings.LastIndex(title[:place], " - "), 0)
}

// printTabs names the open tabs that offer agents nothing, if a person reads it at a terminal.
// Agents run commands too, and get only the number.
func printTabs(to io.Writer, terminal bool, tabs []serve.Tab, width int) {
	if len(tabs) > 0 && !terminal {
		fmt.Fprintf(to,
			"pagewire: open tabs that offer agents nothing: %d; on a terminal this says which\n",
			len(tabs))
		return
	}
	for i, tab := range tabs {
		if i == 0 {
			fmt.Fprintln(to,
				"pagewire: these open tabs offer agents nothing. To let agents read what a site's\n"+
					"pages show, use the extension's popup, or pagewire serve --shown ORIGIN:")
		}
		fmt.Fprintln(to, cut("  "+cli.Plain(tab.URL)+"  "+cli.Plain(tab.Title), width))
	}
}

func tabOf(meta mcp.Meta) int {
	n, _ := meta["pagewire/tab"].(float64)
	return int(n)
}

func readCommand() *cobra.Command {
	var h hubFlags
	var to results
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Print the contents of a resource",
		Long: "Prints the contents of a resource unchanged. Binary contents need --output or a\n" +
			"pipe.",
		Example: "  pagewire read https://shop.example/state/cart",
		Args:    arguments("URI", 1, 1),

		ValidArgsFunction: complete(1, "URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := h.connect(cmd.Context(), &mcp.ClientOptions{})
			if err != nil {
				return err
			}
			defer session.Close()
			r, err := session.ReadResource(cmd.Context(), &mcp.ReadResourceParams{URI: args[0]})
			if err != nil {
				return askError(args[0], err, "ls")
			}
			if to.json {
				_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()),
					cli.JSON(map[string]any{"contents": r.Contents}))
				return err
			}
			content, binary := joined(r.Contents)
			return show(cmd.OutOrStdout(), cli.IsTerminal(cmd.OutOrStdout()), args[0], content,
				binary)
		},
	}
	to.add(cmd, "the contents as MCP has them, on one line")
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
		return cli.Hint(fmt.Errorf("%s isn't text (%s bytes)", cli.Plain(uri),
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
	var to results
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that agents have",
		Long: "Lists Pagewire's own tools and those of open pages: name, page, and the first\n" +
			"sentence of the description. --json prints them as agents get them.",
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
				about, _, _ := strings.Cut(t.Description, ". ")
				rows = append(rows, []string{t.Name, cmp.Or(page, "-"), about})
			}
			return to.printList(cmd, list, rows)
		},
	}
	to.add(cmd, "a JSON array")
	cmd.Flags().BoolVar(&to.wide, "wide", false, "cut nothing")
	h.add(cmd)
	return cmd
}

func callCommand() *cobra.Command {
	var h hubFlags
	var to results
	cmd := &cobra.Command{
		Use:   "call NAME [JSON]",
		Short: "Call a tool as an agent would",
		Long: "Calls a tool that pagewire tools lists, and prints the text of its result. JSON\n" +
			"is an object with the arguments; - reads it from standard input. A page's tool\n" +
			"acts at once, as the page's user. Nothing asks you to confirm.",
		Example: `  pagewire call list_page_resources '{"contains": "cart"}'`,
		Args:    arguments("NAME", 1, 2),

		ValidArgsFunction: complete(1, "tool"),
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
			if err := printResult(cmd, r, to.json); err != nil || !r.IsError {
				return err
			}
			return fmt.Errorf("%s failed: its result says why", cli.Plain(args[0]))
		},
	}
	to.add(cmd, "the result as MCP has it, on one line")
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
				"pagewire: part of the result isn't text: --json prints it")
		}
	}
	return show(cmd.OutOrStdout(), cli.IsTerminal(cmd.OutOrStdout()), "", text, false)
}
