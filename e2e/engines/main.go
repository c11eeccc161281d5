// Command engines lists the tests that run in every browser engine, and writes their results into
// the tables of e2e/engines/results.md. It never runs the tests itself: make test-engines does.
//
//	engines -list firefox    prints the tests of an engine, as a pattern for go test -run
//	engines DIR              reads DIR/engines-*.json, the events of go test -json, and writes the page
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const page = "e2e/engines/results.md"

func main() {
	list := flag.String("list", "", "print the tests of an `engine`")
	flag.Parse()
	if *list != "" {
		fmt.Println(runs(*list))
		return
	}
	if err := write(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	came := map[string]outcomes{}
	names := []string{"what is tested"}
	for _, engine := range engineNames {
		file, err := os.Open(filepath.Join(dir, "engines-"+engine+".json"))
		if err != nil {
			return err
		}
		came[engine], err = read(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		names = append(names, version(engine))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	results := "| " + strings.Join(names, " | ") + " |\n|---|---|---|---|\n" + table(came)
	for head, table := range map[string]string{"what is tested": results, "tests": exclusions()} {
		old := regexp.MustCompile(`(?m)^\| ` + head + ` \|.*\n(?:\|.*\n)+`)
		if !old.Match(text) {
			return fmt.Errorf("%s has no table of %q", page, head)
		}
		text = old.ReplaceAllLiteral(text, []byte(table))
	}
	return os.WriteFile(page, text, 0o644)
}

// outcomes are the results of tests, by name: pass, fail or skip.
type outcomes map[string]string

func read(from io.Reader) (outcomes, error) {
	came := outcomes{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		if event.Test != "" && slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			came[event.Test] = event.Action
		}
	}
	// A test that only runs others is not counted.
	for name := range came {
		for parent := name; strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			delete(came, parent)
		}
	}
	return came, lines.Err()
}

// counted returns the number of a row's tests that passed in an engine, with the number that ran if
// some did not pass.
func (o outcomes) counted(tests []string) string {
	ran, passed := 0, 0
	for name, how := range o {
		first, _, _ := strings.Cut(name, "/")
		if slices.Contains(tests, first) {
			ran++
			if how == "pass" {
				passed++
			}
		}
	}
	switch ran {
	case 0:
		return "–"
	case passed:
		return fmt.Sprint(ran)
	}
	return fmt.Sprintf("%d of %d", passed, ran)
}

// table has a line for each row, and one for all rows.
func table(came map[string]outcomes) string {
	var text strings.Builder
	line := func(what string, tests func(engine string) []string) {
		fmt.Fprintf(&text, "| %s |", what)
		for _, engine := range engineNames {
			fmt.Fprintf(&text, " %s |", came[engine].counted(tests(engine)))
		}
		text.WriteString("\n")
	}
	for _, r := range rows {
		line(r.what, r.of)
	}
	line("**all**", func(engine string) (all []string) {
		for _, r := range rows {
			all = append(all, r.of(engine)...)
		}
		return all
	})
	return text.String()
}

func version(engine string) string {
	chromium, _ := browser.Find()
	command := map[string][]string{
		"chromium": {chromium, "--version"},
		"firefox":  {"firefox-esr", "--version"},
		"webkit": {"dpkg-query", "-W", "-f", "WebKitGTK ${source:Upstream-Version}",
			"webkit2gtk-driver"},
	}[engine]
	out, err := testcmd.CommandContext(context.Background(), command[0], command[1:]...).Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) == 0 {
		return engine
	}
	for i, word := range words {
		if strings.ContainsAny(word, "0123456789") {
			return strings.TrimPrefix(strings.Join(words[:i+1], " "), "Mozilla ")
		}
	}
	return engine
}

func exclusions() string {
	var text strings.Builder
	text.WriteString("| tests | why |\n|---|---|\n")
	for _, e := range leftOut {
		fmt.Fprintf(&text, "| %d | %s |\n", len(strings.Fields(e.tests)), e.why)
	}
	return text.String()
}
