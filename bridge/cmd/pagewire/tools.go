package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// maxColumn bounds a description in the output of tools, in bytes.
const maxColumn = 100

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
			list := []*mcp.Tool{}
			for t, err := range session.Tools(cmd.Context(), nil) {
				if err != nil {
					return err
				}
				list = append(list, t)
			}
			if asJSON {
				_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()), cli.IndentedJSON(list))
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tPAGE\tDESCRIPTION")
			for _, t := range list {
				page, ok := t.Meta["pagewire/origin"].(string)
				if !ok {
					page = "-" // it is Pagewire's own
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", cli.Plain(t.Name), cli.Plain(page),
					cli.Plain(gateway.Shorten(t.Description, maxColumn)))
			}
			return table.Flush()
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

		ValidArgsFunction: h.complete(1, toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := argumentsOf(cmd, args[1:])
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
			if wire := (*jsonrpc.Error)(nil); err != nil && !errors.As(err, &wire) {
				return cli.Hint(fmt.Errorf("%s: %w", cli.Plain(args[0]), err),
					"it may have run: look at the page before you call it again")
			} else if err != nil {
				return askError(args[0], err, toolsLists)
			}
			if err := printResult(cmd, r, asJSON); err != nil {
				return err
			}
			if r.IsError {
				return fmt.Errorf("%s has failed: its result says why", cli.Plain(args[0]))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false,
		"print the result as MCP has it, in one line of JSON")
	h.add(cmd)
	return cmd
}

// argumentsOf returns the arguments for a tool: those of the command line, or of standard input.
func argumentsOf(cmd *cobra.Command, given []string) (json.RawMessage, error) {
	text := []byte(strings.Join(given, ""))
	if string(text) == "-" {
		most := io.LimitReader(cmd.InOrStdin(), gateway.MaxMessageBytes)
		var err error
		if text, err = io.ReadAll(most); err != nil {
			return nil, err
		}
	} else if len(given) == 0 {
		text = []byte("{}")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, usageError{cmd, fmt.Errorf("arguments %.60q: want a JSON object of at most "+
			`4 MiB, such as {"uri": "https://shop.example/state/cart"}`, text)}
	}
	return text, nil
}

// printResult prints the texts of a result.
func printResult(cmd *cobra.Command, r *mcp.CallToolResult, asJSON bool) error {
	if asJSON {
		_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()), cli.JSON(r))
		return err
	}
	var text strings.Builder
	others := 0
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			fmt.Fprintln(&text, strings.TrimSuffix(t.Text, "\n"))
		} else {
			others++
		}
	}
	if others > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"pagewire: parts of the result that are no text: %d; --json prints them\n", others)
	}
	return show(cmd.OutOrStdout(), cli.IsTerminal(cmd.OutOrStdout()), "", []byte(text.String()),
		false)
}

// Completion asks the daemon, and is silent if that takes longer than completionTime. At most
// maxCompletions are read.
const completionTime, maxCompletions = 500 * time.Millisecond, 1000

// complete completes up to most arguments with names that the daemon's pages offer.
func (h *hubFlags) complete(most int,
	names func(context.Context, *mcp.ClientSession) iter.Seq[string]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) (found []string,
		_ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		session, err := h.connect(ctx, &mcp.ClientOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer session.Close()
		for name := range names(ctx, session) {
			if strings.HasPrefix(name, begun) && isHarmlessWord(name) {
				found = append(found, name)
			}
			if len(found) == maxCompletions {
				break
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// isHarmlessWord reports whether a shell takes a word as it is. Pages choose URIs and names of
// tools, and the shell would run what is in $(...).
func isHarmlessWord(word string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/@%+,=-"
	return word != "" && word[0] != '-' && strings.Trim(word, safe) == ""
}

func toolNames(ctx context.Context, s *mcp.ClientSession) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t, err := range s.Tools(ctx, nil) {
			if err != nil || !yield(t.Name) {
				return
			}
		}
	}
}

func uris(ctx context.Context, s *mcp.ClientSession) iter.Seq[string] {
	return func(yield func(string) bool) {
		for r, err := range s.Resources(ctx, nil) {
			if err != nil || !yield(r.URI) {
				return
			}
		}
	}
}
