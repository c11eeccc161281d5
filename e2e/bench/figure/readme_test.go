package figure

import (
	"os"
	"strings"
	"testing"
)

const root = "../../.."

// quoted are the rows of README's table, each with two rows of bench.json: the row with Pagewire's
// figure, and the row with the best other's figure if README names it.
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

func TestReadmeQuotesTheBenchmark(t *testing.T) {
	runs, err := Open(root + "/" + Docs)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, run := range runs {
		for _, row := range run.Rows {
			rows[row.Name] = row
		}
	}
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, names := range quoted {
		want := strings.Join([]string{"|", what, "| **" + rows[names[0]].Figure + "** |",
			rows[names[1]].Beside}, " ")
		if !strings.Contains(string(readme), "\n"+strings.TrimRight(want, " ")+" |") {
			t.Errorf("README.md lacks what bench.json has: %s |", want)
		}
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
