//go:build !js

package bridge_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns is how long a line may be; a tab counts as four columns. What cannot be broken without becoming
	// another thing is excused: a text of longText columns, a raw string, a row of a table, an address.
	maxColumns, longText = 120, 60
	// maxLines is how long a function may be: a screen.
	maxLines = 60
)

// long are the functions that are longer than a screen, each with the reason.
var long = map[string]string{
	"bridge/cmd/pagewire/serve.go serveInto": "one flag a line",
	"bridge/gateway/gateway.go New":          "one default and one map a line",
	"e2e/bench/gateway.go gateways":          "one family of measurements after the other",
	"e2e/bench/page.go pages":                "one family of measurements after the other",
	"e2e/bench/scale.go scales":              "one family of measurements after the other",
	"e2e/bench/measure.go measure":           "rounds, their order and what is kept of them belong together",
}

func TestFunctionsFitAScreen(t *testing.T) {
	unused := map[string]bool{}
	for name := range long {
		unused[name] = true
	}
	for dir, files := range sources(t, "..") {
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join("..", dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1
				which := dir + "/" + name + " " + f.Name.Name
				if lines <= maxLines {
					continue
				}
				if delete(unused, which); long[which] == "" {
					t.Errorf("%s has %d lines, and a screen %d: split it, or say in the table why not", which, lines,
						maxLines)
				}
			}
		}
	}
	for which := range unused {
		t.Errorf("%s is excused from its length, and is not there, or no longer than a screen", which)
	}
}

func TestLinesFit(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.go", "*.ts", "*.tsx", "*.mjs", "*.css", "*.md")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Skipf("which files are the project's is known by git, and this is no clone: %v", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkLines(name, text))
	}
}

var (
	generated = regexp.MustCompile(`(?m)^// (Code generated|Generated)`)
	quoted    = regexp.MustCompile(fmt.Sprintf("\"[^\"]{%[1]d,}\"|'[^']{%[1]d,}'|`[^`]{%[1]d,}|[^`]{%[1]d,}`|/[^/ "+
		"]{%[1]d,}/", longText))
	unbroken = regexp.MustCompile(fmt.Sprintf(`\S{%d,}`, longText))
)

// checkLines says which lines of a file are too long.
func checkLines(name string, text []byte) (violations []string) {
	if generated.Match(text[:min(len(text), 1<<10)]) {
		return nil
	}
	var raw map[int]bool // lines whose text is somebody else's: a raw string of Go, a block of Markdown
	switch filepath.Ext(name) {
	case ".go":
		raw = rawLines(text)
	case ".md":
		raw = fencedLines(text)
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		columns := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
		trimmed := bytes.TrimSpace(line)
		if columns <= maxColumns || raw[i+1] || quoted.Match(line) || unbroken.Match(line) ||
			bytes.HasPrefix(trimmed, []byte("|")) && strings.HasSuffix(name, ".md") ||
			bytes.HasPrefix(trimmed, []byte("//go:")) {
			continue
		}
		violations = append(violations, fmt.Sprintf("%s:%d has %d columns, and may have %d", name, i+1, columns,
			maxColumns))
	}
	return violations
}

// fencedLines are the numbers of the lines between fences.
func fencedLines(text []byte) map[int]bool {
	lines, inside := map[int]bool{}, false
	for i, line := range bytes.Split(text, []byte("\n")) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			inside = !inside
		}
		lines[i+1] = inside
	}
	return lines
}

// rawLines are the numbers of the lines on which a raw string stands.
func rawLines(text []byte) map[int]bool {
	lines := map[int]bool{}
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && literal[0] == '`' {
			first := set.Position(pos).Line
			for n := range strings.Count(literal, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}

func TestLineCheckRefuses(t *testing.T) {
	words := strings.Repeat("word ", 25)
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"a.go", "package a\n\n// " + words, true},
		{"a.go", "package a\n\nvar a = `" + words + "`", false},
		{"a.go", "package a\n\nvar a = `\n" + words + "\n`", false},
		{"a.go", "package a\n\nvar a = \"" + words + "\"", false},
		{"a.go", "package a\n\nvar a = []int{" + strings.Repeat("1, ", 40) + "}", true},
		{"a.go", "package a\n\n// https://a.example/" + strings.Repeat("a", 120), false},
		{"a.md", words, true},
		{"a.md", "| " + words + "|", false},
		{"a.ts", "/** " + words + " */", true},
		{"a.ts", "// Generated by idl/generate.mjs\n/** " + words + " */", false},
	} {
		if got := slices.Concat(checkLines(c.name, []byte(c.text))); (len(got) > 0) != c.refused {
			t.Errorf("%s with %q: %q", c.name, c.text, got)
		}
	}
}
