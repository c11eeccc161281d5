package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/testkit/script"
)

// reference is the page of the manual. It has the commands from its first group on; make generate writes that.
const reference = "../../../demo/docs/cli.md"

var flagName = regexp.MustCompile(`--[a-z][a-z-]*`)

func TestReference(t *testing.T) {
	is, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(is), "## "+groups[0].title+"\n")
	var out strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&out, "## %s\n\n", g.title)
		for _, c := range commands().Commands() {
			if c.GroupID == g.title && c.Name() != "completion" { // cobra's
				writeReference(&out, c)
			}
		}
	}
	want := head + strings.TrimRight(out.String(), "\n") + "\n"
	if *script.Update {
		err = os.WriteFile(reference, []byte(want), 0o644)
	}
	if err != nil || !*script.Update && string(is) != want {
		t.Errorf("%s is not what the commands say (%v): run make generate", reference, err)
	}
	if n := len(strings.Fields(want)); n > 2000 {
		t.Errorf("%s has %d words, and may have 2,000", reference, n)
	}
}

// writeReference writes what help says of a command, in fewer words: the flags of many commands are described once, in
// the page's head.
func writeReference(out *strings.Builder, c *cobra.Command) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(out, "### %s\n\n%s\n\n", c.CommandPath(), flagName.ReplaceAllString(about, "`$0`"))
	if !c.HasSubCommands() || c.Flags().HasFlags() {
		fmt.Fprintf(out, "```text\n%s", strings.TrimSuffix(c.UseLine(), " [flags]"))
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		own.SortFlags = false
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden && !isCommon(c, f) {
				own.AddFlag(f)
			}
		})
		fmt.Fprintf(out, "\n%s```\n\n", own.FlagUsages())
	}
	example := strings.ReplaceAll(c.Example[2:], "\n  ", "\n")
	if !c.HasSubCommands() && example != c.CommandPath() {
		fmt.Fprintf(out, "```sh no-run=\"example\"\n%s\n```\n\n", example)
	}
	for _, below := range c.Commands() {
		writeReference(out, below)
	}
}

// isCommon reports whether the page's head describes a flag.
func isCommon(c *cobra.Command, f *pflag.Flag) bool {
	return f.Name == "color" || f.Name == "json" || f.Name == "output" || f.Name == "wide" || f.Name == "hub" && c.Name() != "serve" ||
		f.Name == "force" && c.Flags().Lookup("output") != nil
}
