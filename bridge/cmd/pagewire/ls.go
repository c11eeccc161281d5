package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
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
		Use:     "ls",
		Short:   "List the resources of open pages",
		Long:    "Lists the resources and templates that agents see: URI, type, tab and title of each.",
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

// tabOf is the number of a resource's tab.
func tabOf(meta mcp.Meta) int {
	n, _ := meta["pagewire/tab"].(float64)
	return int(n)
}
