// Package script plays conversations: files of testdata whose lines an engine executes. The output
// of a line follows it, indented. A test fails if the output differs; the flag -update writes the
// new output into the file.
//
// The package knows neither the engines nor their lines. It is apart from testkit, because tests
// under js/wasm do not link testkit's MCP client.
package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Update is the flag -update.
var Update = flag.Bool("update", false,
	"rewrite the conversations in testdata with what is said now")

// A Script is a conversation that is played.
type Script struct {
	T testing.TB
	// Options are the lines of the section with that name.
	Options []Option
	out     strings.Builder
}

// An Option is a line such as "UpdateInterval 50". Number is 0 if the value is not a number.
type Option struct {
	Name, Value string
	Number      int
}

// Each runs a test for each file of testdata that ends in .txtar. There must be one.
func Each(t *testing.T, test func(t *testing.T, file string)) {
	t.Helper()
	EachIn(t, "testdata", test)
}

// EachIn is Each for another directory.
func EachIn(t *testing.T, dir string, test func(t *testing.T, file string)) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"),
			func(t *testing.T) { test(t, file) })
	}
}

// Play plays the conversation of a file. begin returns the function that executes its lines.
func Play(t testing.TB, file string, begin func(*Script) func(line string)) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &Script{T: t}
	for i, f := range archive.Files {
		switch f.Name {
		case "options":
			for line := range strings.Lines(string(f.Data)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				n, _ := strconv.Atoi(value)
				s.Options = append(s.Options, Option{name, value, n})
			}
		case "conversation":
			got := s.play(string(f.Data), begin(s))
			if *Update {
				archive.Files[i].Data = []byte(got)
			} else if got != string(f.Data) {
				t.Errorf("something else is said (-update rewrites %s):\n%s", file,
					firstDifference(string(f.Data), got))
			}
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
	}
	if *Update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *Script) play(script string, do func(line string)) string {
	s.out.Reset()
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "    ") {
			continue // the earlier output
		}
		s.out.WriteString(line)
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			do(line)
		}
	}
	return s.out.String()
}

// Say adds to the output of a line.
func (s *Script) Say(format string, args ...any) {
	fmt.Fprintf(&s.out, "    "+format+"\n", args...)
}

// Hidden returns the output of do, and leaves it out of the conversation.
func (s *Script) Hidden(do func()) string {
	before := s.out.String()
	do()
	said := s.out.String()[len(before):]
	s.out.Reset()
	s.out.WriteString(before)
	return said
}

// Number is a number in a line.
func (s *Script) Number(text string) int {
	s.T.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.T.Fatalf("%q is no number", text)
	}
	return n
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range w {
		if i >= len(g) || w[i] != g[i] {
			g = append(g, "(end)")
			return fmt.Sprintf("line %d\n  want %s\n  got  %s", i+1, w[i], g[min(i, len(g)-1)])
		}
	}
	return "extra line: " + g[len(w)]
}
