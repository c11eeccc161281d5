package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

var fence = regexp.MustCompile("(?ms)^```\n(.*?)^```$")

// The manual's reference is cobra's Markdown for the commands, after first lines of its own. make generate writes it.
func TestReference(t *testing.T) {
	const file = "../../../demo/docs/cli.md"
	root := commands()
	is, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(is), "## "+root.Name()+"\n")
	var out bytes.Buffer
	if err := writeReference(&out, root); err != nil {
		t.Fatal(err)
	}
	text := fence.ReplaceAllString(out.String(), "```text\n$1```")
	text = strings.ReplaceAll(text, "### Examples\n\n```text", "```sh no-run=\"an example out of --help\"")
	want := head + strings.TrimRight(text, "\n") + "\n"
	if *script.Update {
		err = os.WriteFile(file, []byte(want), 0o644)
	}
	if err != nil || !*script.Update && string(is) != want {
		t.Errorf("%s is not what the commands say (%v): run make generate", file, err)
	}
}

func writeReference(out *bytes.Buffer, c *cobra.Command) error {
	c.DisableAutoGenTag = true
	c.Flags().SortFlags = false
	link := func(file string) string { return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-") }
	if err := doc.GenMarkdownCustom(c, out, link); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			if err := writeReference(out, below); err != nil {
				return err
			}
		}
	}
	return nil
}
