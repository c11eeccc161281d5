package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
)

// results has the flags of a command that prints a result.
type results struct {
	json, wide, force bool
	file              string
}

// add adds the flags to a command that has its RunE. With --output, what it prints goes into a file,
// which is checked before the command runs, since a tool acts.
func (r *results) add(cmd *cobra.Command, json string) {
	f, run := cmd.Flags(), cmd.RunE
	f.BoolVar(&r.json, "json", false, "print "+json)
	f.StringVarP(&r.file, "output", "o", "", "write the result to this `file`")
	f.BoolVar(&r.force, "force", false, "let --output replace a file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.file == "" || r.file == "-" {
			return run(cmd, args)
		}
		change := files.Change{Title: "the program that writes it"}
		file, err := change.File(r.file)
		if err == nil && file.Is != nil && !r.force {
			return exists(r.file)
		} else if err != nil {
			return cli.Hint(err, cmp.Or(cli.Remedy(err), "nothing was written to "+r.file))
		}
		text, err := printed(cmd, args, run)
		if len(text) == 0 && err != nil {
			return err
		}
		file.Is = append([]byte{}, text...)
		if _, failed := change.Do(cmd.Context()); failed != nil {
			_, _ = cmd.OutOrStdout().Write(text) // a tool's result exists nowhere else
			return failed
		}
		return err
	}
}

func exists(path string) error {
	return cli.Hint(fmt.Errorf("%s already exists", path), "nothing was written; --force replaces it")
}

// printed runs a command and returns what it prints.
func printed(cmd *cobra.Command, args []string,
	run func(*cobra.Command, []string) error) (text []byte, err error) {
	to, b := cmd.OutOrStdout(), new(bytes.Buffer)
	cmd.SetOut(b)
	defer cmd.SetOut(to)
	err = run(cmd, args)
	return b.Bytes(), err
}

// pathsAsJSON adds --json to a command that prints paths, one on each line.
func pathsAsJSON(cmd *cobra.Command) {
	asJSON, run := cmd.Flags().Bool("json", false, "print the paths as a JSON array"), cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*asJSON {
			return run(cmd, args)
		}
		text, err := printed(cmd, args, run)
		paths := strings.Split(string(text), "\n")
		return cmp.Or(printJSON(cmd, paths[:len(paths)-1]), err)
	}
}

func printJSON(cmd *cobra.Command, v any) error {
	_, err := io.WriteString(cli.Visible(cmd.OutOrStdout()), cli.IndentedJSON(v))
	return err
}

// printList prints a list as JSON, or as a table of its rows.
func (r *results) printList(cmd *cobra.Command, list any, rows [][]string) error {
	if r.json {
		return printJSON(cmd, list)
	}
	return writeTable(cmd.OutOrStdout(), rows, widthOf(cmd, r.wide), isColored(cmd))
}

// widthOf is the number of columns that lines may have. 0 means any: --wide, or no terminal.
func widthOf(cmd *cobra.Command, wide bool) int {
	to, _ := cmd.OutOrStdout().(*os.File)
	if wide || !cli.IsTerminal(to) {
		return 0
	}
	columns, _, _ := term.GetSize(int(to.Fd()))
	return cmp.Or(columns, 80)
}

// isColored follows --color, and NO_COLOR (no-color.org).
func isColored(cmd *cobra.Command) bool {
	when := cmd.Flag("color").Value.String()
	return when == "always" || when == "auto" && os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb" && cli.IsTerminal(cmd.OutOrStdout())
}

// least is what a cell leaves of a line for the next ones, in columns, to be aligned.
const least = 16

// writeTable writes rows in columns, and cuts lines to a width. A cell that takes all of a line is
// not aligned. The first row, and a row of one cell, is a heading.
func writeTable(to io.Writer, rows [][]string, width int, color bool) error {
	var columns [8]int
	for _, row := range rows {
		for i := range row {
			row[i] = cli.Plain(row[i])
			if n := runewidth.StringWidth(row[i]); len(row) > 1 && (width == 0 || n <= width-least) {
				columns[i] = max(columns[i], n)
			}
		}
	}
	for i, row := range rows {
		line := ""
		for j, cell := range row {
			line += runewidth.FillRight(cell, columns[j]) + "  "
		}
		if line = cut(strings.TrimRight(line, " "), width); color && (len(row) == 1 || i == 0) {
			line = bold + line + plainly
		}
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
	}
	return nil
}

// cut shortens a text to a width in columns; 0 means any.
func cut(text string, width int) string {
	if width <= 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// A choice is the value of a flag that takes one of a few words.
type choice struct {
	word *string
	of   []string
}

func (c choice) String() string { return *cmp.Or(c.word, new(string)) }
func (c choice) Type() string   { return "string" }
func (c choice) Set(word string) error {
	if *c.word = word; !slices.Contains(c.of, word) {
		return errors.New("want " + or(c.of))
	}
	return nil
}

func or(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
