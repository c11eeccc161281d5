//go:build !js

// Command reference writes demo/docs/cli.md, the reference of the command line: what pagewire, pagewire-node and each
// of their commands say at --help. It builds both and asks them, so that the page says what a user would see.
//
//	go run ./demo/reference    from the root of the repository; make generate does
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// file is what is written, below the repository's root.
const file = "demo/docs/cli.md"

const head = `<!-- Written by ` + "`make generate`" + ` from what the commands say at --help. Do not edit. -->

# Command line

For whoever types ` + "`pagewire`" + ` or writes it into a configuration: every command and every option.

Each command has ` + "`--help`" + `. It ends with status 0 if it did what it was asked, with 1 if not, and with 2 if it
was asked wrongly. What it prints for programs goes to standard output, all else to standard error.

`

func main() {
	text, err := reference(".")
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// reference makes the page for the repository at root.
func reference(root string) ([]byte, error) {
	bin, err := os.MkdirTemp("", "pagewire-reference-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./bridge/cmd/pagewire",
		"./bridge/cmd/pagewire-node")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the commands: %w\n%s", err, out)
	}
	var page bytes.Buffer
	page.WriteString(head)
	for _, name := range []string{"pagewire", "pagewire-node"} {
		if err := describe(&page, bin, []string{name}); err != nil {
			return nil, err
		}
	}
	return append(bytes.TrimRight(page.Bytes(), "\n"), '\n'), nil
}

// A help is what a command says of itself, cut at its headings.
type help struct {
	about                  string
	usage, flags, examples []string
	commands               []string
}

var (
	section = regexp.MustCompile(`^(Usage|Commands|Flags|Examples?):$`)
	option  = regexp.MustCompile(`^\s+(?:(-\w), )?(--[\w-]+)(\S*(?: \S+)?)\s{2,}(.+)$`)
)

// describe writes a command, and then those below it.
func describe(page *bytes.Buffer, bin string, command []string) error {
	cmd := exec.Command(filepath.Join(bin, command[0]), append(command[1:len(command):len(command)], "--help")...)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s --help: %w", strings.Join(command, " "), err)
	}
	h := cut(string(out))
	fmt.Fprintf(page, "## %s\n\n%s", strings.Join(command, " "), prose(h.about))
	if len(h.usage) > 0 {
		fmt.Fprintf(page, "```text\n%s\n```\n\n", strings.Join(h.usage, "\n"))
	}
	if err := table(page, command, h.flags); err != nil {
		return err
	}
	if len(h.examples) > 0 {
		fmt.Fprintf(page, "```sh no-run=\"an example out of --help\"\n%s\n```\n\n", strings.Join(h.examples, "\n"))
	}
	for _, name := range h.commands {
		if err := describe(page, bin, append(command[:len(command):len(command)], name)); err != nil {
			return err
		}
	}
	return nil
}

func cut(text string) help {
	h, at := help{}, "about"
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if m := section.FindStringSubmatch(line); m != nil {
			at = strings.TrimSuffix(m[1], "s")
			continue
		}
		words := strings.Fields(line)
		switch {
		case at == "about":
			h.about += line + "\n"
		case len(words) == 0:
		case at == "Usage":
			h.usage = append(h.usage, strings.TrimSpace(line))
		case at == "Flag":
			h.flags = append(h.flags, line)
		case at == "Example":
			h.examples = append(h.examples, strings.TrimSpace(line))
		case at == "Command":
			h.commands = append(h.commands, words[0])
		}
	}
	return h
}

// prose keeps lines that are indented, as of a list, as they are.
func prose(about string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(strings.TrimSpace(about) + "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != fenced {
			if fenced = indented; fenced {
				b.WriteString("\n```text\n")
			} else {
				b.WriteString("```\n\n")
			}
		}
		if fenced {
			b.WriteString(line[2:])
		} else {
			b.WriteString(escape(line))
		}
	}
	return b.String() + "\n"
}

func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "|", `\|`).Replace(text)
}

func table(page *bytes.Buffer, command, flags []string) error {
	var rows []string
	for _, line := range flags {
		m := option.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("%s --help: no rule for the line %q", strings.Join(command, " "), line)
		}
		if m[2] == "--help" {
			continue
		}
		name := "`" + strings.TrimSpace(m[2]+m[3]) + "`"
		if m[1] != "" {
			name = "`" + m[1] + "`, " + name
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |", name, escape(m[4])))
	}
	if len(rows) > 0 {
		fmt.Fprintf(page, "| option | |\n|---|---|\n%s\n\n", strings.Join(rows, "\n"))
	}
	return nil
}
