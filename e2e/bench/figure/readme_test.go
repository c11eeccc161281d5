package figure

import (
	"os"
	"strings"
	"testing"
)

const root = "../../.."

// quoted are the rows of the manual's table, each with two rows of bench.json: the row with
// Pagewire's figure, and the row with the best other's figure if the manual names it.
var quoted = map[string][2]string{
	"every page: script to download, brotli": {"pagewire.js, brotli",
		"bytes before the API exists, brotli"},
	"every page: from the script's start until the API is there": {"start of the script to API there", "start of the script to API there"},
	"the first agent in the page: wasm to download, brotli":      {"pagewire.wasm, brotli"},
	"the gateway: memory with 10 tabs":                           {"gateway: resident memory with 10 tabs, by WebSocket"},
	"an agent's read through the gateway, p50":                   {"gateway: read by WebSocket, p50", "gateway: read by WebSocket, p50"},
	"a model's context: page state added in 40 turns": {"model: page state added in 40 turns, text as lines",
		"model: page state added in 40 turns, text as lines"},
	"the same, of a page whose text is one `<pre>`": {"model: page state added in 40 turns, text as one `<pre>`",
		"model: page state added in 40 turns, text as one `<pre>`"},
}

// inReadme are rows of README's table, likewise. TestToolsListsOfTheReadme measures the other row.
var inReadme = map[string][2]string{
	"in the model's context: page state of 40 turns": {"model: page state added in 40 turns, text as lines",
		"model: page state added in 40 turns, text as lines"},
	"in every page: the script, brotli": {"pagewire.js, brotli", "bytes before the API exists, brotli"},
}

func TestTheManualQuotesTheBenchmark(t *testing.T) {
	for what, names := range quoted {
		figures, beside := rowsOf(t, names)
		want := strings.Join([]string{"|", what, "| **" + figures + "** |", beside}, " ")
		has(t, "demo/docs/costs.md", strings.TrimRight(want, " ")+" |")
	}
	for what, names := range inReadme {
		figures, beside := rowsOf(t, names)
		number, other, _ := strings.Cut(beside, ", ")
		name, _, _ := strings.Cut(other, " ")
		has(t, "README.md", "| "+what+" | "+figures+" | "+name+" "+number+" |")
	}
}

func TestThePageHasTheFiguresOfItsData(t *testing.T) {
	runs, err := Open(root + "/" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile(root + "/" + Docs + "/bench.md")
	if err != nil || string(is) != string(page(runs)) {
		t.Errorf("bench.md is not the page of bench.json (%v): run make bench", err)
	}
}

// A run of a few of a part's measurements may have no row.
func TestARunWithoutRowsIsRead(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := Keep(dir, "growth", Run{Command: "make bench"}); err != nil {
			t.Fatal(err)
		}
	}
}

// rowsOf returns Pagewire's figure of a row of bench.json, and the best other's of another.
func rowsOf(t *testing.T, names [2]string) (figures, beside string) {
	t.Helper()
	runs, err := Open(root + "/" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		for _, row := range run.Rows {
			if row.Name == names[0] {
				figures = row.Figure
			}
			if row.Name == names[1] {
				beside = row.Beside
			}
		}
	}
	return figures, beside
}

func has(t *testing.T, file, line string) {
	t.Helper()
	text, err := os.ReadFile(root + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n"+line+"\n") {
		t.Errorf("%s lacks what bench.json has: %s", file, line)
	}
}
