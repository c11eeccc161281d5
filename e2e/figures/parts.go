package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pagewire/pagewire/e2e/bench/figure"
)

// part writes one of the parts that a document can have.
func (b *book) part(name string) (string, error) {
	parts := map[string]func() (string, error){
		"costs": b.costs, "sizes": b.sizesTable, "benchmark": b.benchmark, "models": b.modelsTable,
		"missed": b.missed, "worse": b.worse, "fleet": b.fleetTable, "tests": b.testsTable, "measured": b.measuredWhen,
	}
	write, ok := parts[name]
	if !ok {
		return "", fmt.Errorf("no part is named %q", name)
	}
	return write()
}

// A table is Markdown's.
type table struct{ strings.Builder }

func newTable(heads ...string) *table {
	t := &table{}
	t.row(heads...)
	t.row(slices.Repeat([]string{"---"}, len(heads))...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

// A cost is a row of the short table: what one pays, in the words of who pays it, the figure, and the row of the
// benchmark that has others beside it, where that is another one.
type cost struct{ what, row, beside string }

var costsRows = []cost{
	{"every page: script to download, brotli",
		"pagewire.js, brotli", "bytes before the API exists, brotli"},
	{"every page: from the script's start until the API is there",
		"start of the script to API there", ""},
	{"the first agent in the page: wasm to download, brotli",
		"pagewire.wasm, brotli", ""},
	{"a page whose agents are on the desktop: wasm to download",
		"wasm fetched for agents of the desktop, by WebSocket", ""},
	{"the same page: memory of its renderer, above a plain page",
		"renderer memory added per tab, by WebSocket", ""},
	{"the gateway: memory with 10 tabs",
		"gateway: resident memory with 10 tabs, by WebSocket", ""},
	{"an agent's read through the gateway, p50",
		"gateway: read by WebSocket, p50", ""},
	{"a change until the agent holds the new state, p50",
		"last change of a burst of 3 until the reader holds it, p50", ""},
	{"10,000 changes in a loop: messages to a subscriber",
		"10,000 changes: messages to a subscriber", ""},
	{"a model's context: page state added in 40 turns",
		"model: page state added in 40 turns, beside snapshots", ""},
}

// costs is the short table: bytes, time, memory, and what a model pays.
func (b *book) costs() (string, error) {
	t := newTable("what it costs", "Pagewire", "the best other", "measured by")
	for _, c := range costsRows {
		e, err := b.row(c.row)
		if err != nil {
			return "", err
		}
		other, err := b.row(cmp.Or(c.beside, c.row))
		if err != nil {
			return "", err
		}
		t.row(c.what, "**"+figure.Quantity(e.Value, e.Unit)+"**", other.against(), b.commands(e, other))
	}
	return t.String(), nil
}

// commands are those that have measured two rows.
func (b *book) commands(x, y entry) string {
	first, second := "`"+b.Runs[x.Run].Command+"`", "`"+b.Runs[y.Run].Command+"`"
	if first == second {
		return first
	}
	return first + ", " + second
}

// against is the best other, with its figure.
func (e entry) against() string {
	other, ok := e.Others[e.Of]
	if !ok || strings.HasPrefix(e.Of, floorPrefix) {
		return ""
	}
	return figure.Quantity(other, e.Unit) + ", " + e.Of
}

func (b *book) sizesTable() (string, error) {
	t := newTable("file", "raw", "gzip", "brotli", "budget")
	whole := func(name string) string {
		e, err := b.row(name)
		if err != nil {
			return ""
		}
		return figure.Grouped(fmt.Sprint(int(e.Value)))
	}
	for _, e := range b.of("size") {
		file, form, _ := strings.Cut(e.Name, ", ")
		if form == "raw" {
			t.row("`"+file+"`", whole(e.Name), whole(file+", gzip"), "**"+whole(file+", brotli")+"**",
				whole(file+", budget"))
		}
	}
	return t.String(), nil
}

// goal is a goal with whether it was missed.
func (e entry) goal() string {
	text := strings.NewReplacer("<=", "≤", ">=", "≥", " x ", " × ").Replace(e.Goal)
	if e.Met != nil && !*e.Met {
		text += ", **missed**"
	}
	return text
}

// benchmark is a row for each goal.
func (b *book) benchmark() (string, error) {
	t := newTable("what", "Pagewire", "best other", "ratio", "goal", "bare wire")
	for _, e := range b.of("bench") {
		if e.Goal == "" {
			continue
		}
		ratio, floor := "", ""
		if e.Ratio > 0 {
			ratio = figure.Ratio(e.Ratio)
		}
		if least, ok := e.floor(); ok && least > 0 {
			floor = figure.Quantity(least, e.Unit)
		}
		t.row(e.Name, figure.Quantity(e.Value, e.Unit), e.against(), ratio, e.goal(), floor)
	}
	return t.String(), nil
}

// missed lists the goals that were not met.
func (b *book) missed() (string, error) {
	var text strings.Builder
	for _, e := range slices.Concat(b.of("bench"), b.of("models")) {
		if e.Met == nil || *e.Met {
			continue
		}
		is := figure.Quantity(e.Value, e.Unit)
		if strings.Contains(e.Goal, " x ") {
			is = fmt.Sprintf("%s × that of %s", figure.Ratio(e.Ratio), strings.TrimPrefix(e.Of, floorPrefix))
		}
		fmt.Fprintf(&text, "* %s: %s; the goal is %s\n", e.Name, is,
			strings.NewReplacer("<=", "≤", ">=", "≥", " x ", " × ").Replace(e.Goal))
	}
	if text.Len() == 0 {
		return "Every goal was met.", nil
	}
	return wrapped(text.String()), nil
}

// worse lists what has no goal, and is worse than the best other.
func (b *book) worse() (string, error) {
	var text strings.Builder
	for _, e := range b.of("bench") {
		if e.Goal == "" && e.Ratio > 1 && e.against() != "" {
			fmt.Fprintf(&text, "* %s: %s; %s\n", e.Name, figure.Quantity(e.Value, e.Unit), e.against())
		}
	}
	if text.Len() == 0 {
		return "There is nothing of that kind.", nil
	}
	return wrapped(text.String()), nil
}

// wrapped breaks items of a list where lines have to end.
func wrapped(list string) string {
	const columns = 120
	var text strings.Builder
	for line := range strings.Lines(list) {
		for utf8.RuneCountInString(line) > columns {
			end := strings.LastIndexByte(line[:columns], ' ')
			text.WriteString(line[:end] + "\n")
			line = "  " + line[end+1:]
		}
		text.WriteString(line)
	}
	return text.String()
}

// Rows of a session, in each of which others are measured too.
const (
	contextRow = "model: page state added in 40 turns, beside "
	askingRow  = "model: turns spent on asking"
)

// modelsTable is what of a page's state comes into a model's context, by the way to know it.
func (b *book) modelsTable() (string, error) {
	asking, err := b.row(askingRow)
	if err != nil {
		return "", err
	}
	bytes := map[string]float64{}
	for _, e := range b.of("models") {
		if !strings.HasPrefix(e.Name, contextRow) {
			continue
		}
		bytes["Pagewire, reminders"] = e.Value
		for name, v := range e.Others {
			bytes[name] = v
		}
	}
	names := slices.SortedFunc(func(yield func(string) bool) {
		for name := range bytes {
			if !yield(name) {
				return
			}
		}
	}, func(x, y string) int { return int(bytes[x] - bytes[y]) })
	t := newTable("way to know it", "bytes into the context", "turns spent on asking")
	for _, name := range names {
		turns := asking.Value
		if v, ok := asking.Others[name]; ok {
			turns = v
		}
		t.row(name, figure.Quantity(bytes[name], ""), figure.Number(turns))
	}
	return t.String(), nil
}

func (b *book) fleetTable() (string, error) {
	if len(b.of("fleet")) == 0 {
		return "Not measured yet: `make bench FLEET=1`.", nil
	}
	t := newTable("what", "fleet", "beside", "ratio")
	for _, e := range b.of("fleet") {
		t.row(e.Name, e.Text, e.Beside, e.Quotient)
	}
	return t.String(), nil
}

func (b *book) testsTable() (string, error) {
	if len(b.of("tests")) == 0 {
		return "Not counted yet: `make test`, and then `make figures`.", nil
	}
	t := newTable("level", "tests that passed")
	for _, e := range b.of("tests") {
		_, level, ok := strings.Cut(e.Name, ", ")
		if !ok {
			level = "**all**"
		}
		t.row(level, figure.Number(e.Value))
	}
	return t.String(), nil
}

// measuredWhen is a line for each run: the command, the date, the commit, the machine.
func (b *book) measuredWhen() (string, error) {
	t := newTable("command", "when", "commit", "where")
	for _, name := range runOrder {
		r, ok := b.Runs[name]
		if !ok {
			continue
		}
		where := []string{}
		for _, part := range []string{r.Machine, core(r), rounds(r)} {
			if part != "" {
				where = append(where, part)
			}
		}
		t.row("`"+r.Command+"`", r.Date.Format("2006-01-02"), r.Commit, strings.Join(where, "; "))
	}
	return t.String(), nil
}

func core(r measurement) string {
	if r.Core == "" {
		return ""
	}
	return "core compiled by " + r.Core
}

func rounds(r measurement) string {
	switch {
	case r.Rounds == 0:
		return ""
	case r.Short:
		return fmt.Sprintf("a short run: medians of %d rounds, with less of everything", r.Rounds)
	}
	return fmt.Sprintf("medians of %d rounds that take turns", r.Rounds)
}
