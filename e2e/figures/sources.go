package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// take brings the book up to date with what other targets have left below root. What was not run since is kept as it
// is, with its date.
func (b *book) take(root string) error {
	sources := []func(root string) error{b.sizes, b.bench, b.models, b.fleet, b.tests, b.engines, b.agents}
	for _, source := range sources {
		if err := source(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sizes are of dist/sizes.json (make size). They are the same for the same code, and their date is that of their last
// change.
func (b *book) sizes(root string) error {
	var file struct {
		Core    string
		Weights []struct {
			Name                      string
			Raw, Gzip, Brotli, Budget float64
		}
	}
	path := filepath.Join(root, "dist/sizes.json")
	if err := read(path, &file); err != nil {
		return err
	}
	var figures []entry
	for _, w := range file.Weights {
		for _, form := range []struct {
			name  string
			value float64
		}{{"raw", w.Raw}, {"gzip", w.Gzip}, {"brotli", w.Brotli}, {"budget", w.Budget}} {
			if form.value > 0 {
				figures = append(figures, entry{Name: w.Name + ", " + form.name, Value: form.value, Unit: "B",
					Run: "size"})
			}
		}
	}
	commit := figure.Commit()
	was, dirty := strings.CutSuffix(b.Runs["size"].Commit, "+")
	replaced := dirty && was != "" && !strings.HasSuffix(commit, "+")
	if !replaced && b.Runs["size"].Core == file.Core && reflect.DeepEqual(b.of("size"), figures) {
		return nil
	}
	b.replace("size", measurement{Command: "make size", Date: modified(path), Machine: figure.Machine(),
		Commit: commit, Core: file.Core}, figures)
	return nil
}

// A report is what e2e/bench writes.
type report struct {
	Began           time.Time
	Rounds          int
	Short           bool
	Machine         string
	Commit, Command string
	Rows            []struct {
		Name, Unit, Goal, Of string
		Ratio                float64
		Met                  *bool
		Curve                bool
		Who                  []struct {
			Name   string
			Median float64
			Absent bool
			Failed string
		}
	}
}

func (b *book) bench(root string) error { return b.measured(root, "bench", "dist/bench/bench.json") }

func (b *book) models(root string) error {
	return b.measured(root, "models", "dist/bench/models/bench.json")
}

// measured takes a report of e2e/bench, unless the book has it, or a later one, already. A short run does not take the
// place of a full one.
func (b *book) measured(root, name, file string) error {
	var r report
	if err := read(filepath.Join(root, file), &r); err != nil {
		return err
	}
	have := b.Runs[name]
	r.Began = r.Began.UTC().Truncate(time.Second)
	if !r.Began.After(have.Date) || r.Short && !have.Short && len(b.of(name)) > 0 {
		return nil
	}
	var figures []entry
	for _, row := range r.Rows {
		us := row.Who[0]
		if row.Curve || us.Absent || us.Failed != "" {
			continue
		}
		e := entry{Name: row.Name, Value: us.Median, Unit: row.Unit, Goal: row.Goal, Met: row.Met, Ratio: row.Ratio,
			Of: row.Of}
		for _, other := range row.Who[1:] {
			if other.Absent || other.Failed != "" {
				continue
			}
			if e.Others == nil {
				e.Others = map[string]float64{}
			}
			e.Others[other.Name] = other.Median
		}
		figures = append(figures, e)
	}
	b.replace(name, measurement{Command: r.Command, Date: r.Began, Machine: r.Machine, Commit: r.Commit,
		Rounds: r.Rounds, Short: r.Short}, figures)
	return nil
}

// fleet takes the rows of make bench FLEET=1, which are text.
func (b *book) fleet(root string) error {
	var r struct {
		Began                    time.Time
		Machine, Commit, Command string
		Rows                     []struct{ What, Figure, Beside, Ratio string }
	}
	if err := read(filepath.Join(root, "dist/bench/fleet.json"), &r); err != nil {
		return err
	}
	if !r.Began.After(b.Runs["fleet"].Date) {
		return nil
	}
	var figures []entry
	for _, row := range r.Rows {
		figures = append(figures, entry{Name: row.What, Text: row.Figure, Beside: row.Beside, Quotient: row.Ratio})
	}
	b.replace("fleet", measurement{Command: r.Command, Date: r.Began.UTC().Truncate(time.Second), Machine: r.Machine,
		Commit: r.Commit}, figures)
	return nil
}

// levels are those of make test.
var levels = []string{"native", "wasm", "js", "browser"}

// tests are counted by .ci/tally from what the last make test left, if all levels passed.
func (b *book) tests(root string) error {
	last := filepath.Join(root, "bin/test", levels[len(levels)-1]+".status")
	info, err := os.Stat(last)
	if err != nil {
		return err
	}
	if !info.ModTime().After(b.Runs["tests"].Date) {
		return nil
	}
	tally := exec.Command(".ci/tally", append([]string{"bin/test"}, levels...)...)
	tally.Dir = root
	out, err := tally.Output()
	if err != nil {
		fmt.Println("figures: the last make test did not pass, so its counts are not taken")
		return nil
	}
	var figures []entry
	all := 0.0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) != 5 || words[2] != "0" {
			continue
		}
		passed, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return fmt.Errorf("a line of .ci/tally: %q", line)
		}
		all += passed
		figures = append(figures, entry{Name: "tests, " + words[0], Value: passed})
	}
	if len(figures) != len(levels) {
		return fmt.Errorf(".ci/tally has %d levels, want %d:\n%s", len(figures), len(levels), out)
	}
	figures = append(figures, entry{Name: "tests", Value: all})
	b.replace("tests", measurement{Command: "make test", Date: info.ModTime().UTC().Truncate(time.Second),
		Machine: figure.Machine(), Commit: figure.Commit()}, figures)
	return nil
}

// engines counts the tests that passed in each engine, as make test-engines has written them.
func (b *book) engines(root string) error {
	path := filepath.Join(root, "demo/docs/engines.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, rest, ok := strings.Cut(string(text), "| **all** |")
	line, _, _ := strings.Cut(rest, "\n")
	counts := strings.Split(strings.Trim(line, " |"), " | ")
	names := []string{"chromium", "firefox", "webkit"}
	if !ok || len(counts) != len(names) {
		return fmt.Errorf("%s has no line for all engines", path)
	}
	var figures []entry
	for i, count := range counts {
		passed, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
		if err != nil {
			return fmt.Errorf("%s: %q is no number of tests that passed", path, count)
		}
		figures = append(figures, entry{Name: "engines, " + names[i], Value: passed, Run: "engines"})
	}
	return b.written("engines", "make test-engines", path, figures)
}

// agents counts the programs and libraries whose model was told of a change unasked, as make test-agents has written
// them.
func (b *book) agents(root string) error {
	path := filepath.Join(root, "demo/docs/agents.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	told := strings.Count(string(text), "| in the next request |")
	return b.written("agents", "make test-agents", path, []entry{{Name: "agents", Value: float64(told), Run: "agents"}})
}

// written takes what another generator has written into a document: now, or before its last commit.
func (b *book) written(name, command, path string, figures []entry) error {
	if reflect.DeepEqual(b.of(name), figures) {
		return nil
	}
	date, commit := modified(path), figure.Commit()
	git := func(args ...string) string {
		out, _ := exec.Command("git", append(args, "--", path)...).Output() // without git the file says when
		return string(out)
	}
	if git("status", "--porcelain") == "" {
		var when string
		out := git("log", "-1", "--format=%cI %h", "--abbrev=10")
		if n, _ := fmt.Sscan(out, &when, &commit); n == 2 {
			date, _ = time.Parse(time.RFC3339, when)
		}
	}
	b.replace(name, measurement{Command: command, Date: date.UTC(), Commit: commit}, figures)
	return nil
}

func read(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC().Truncate(time.Second)
}
