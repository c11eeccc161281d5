package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
)

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
				_, err := io.WriteString(cmd.OutOrStdout(), encodedJSON(map[string]any{"contents": r.Contents}, ""))
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

// joined concatenates contents; each text begins on a new line.
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

// show prints contents: unchanged into a pipe, and without control characters on a terminal.
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

// grouped writes a number with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
