package figure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Docs is the directory of the page and its data, from the top of the repository.
const Docs = "e2e/bench"

// A Run is the result of one command.
type Run struct {
	Command string
	Began   time.Time
	Machine string
	Commit  string `json:",omitempty"` // a final "+" means uncommitted changes
	How     string `json:",omitempty"`
	Rows    []Row  `json:",omitempty"`
}

// A Row is a line of the page, with the texts of the page.
type Row struct {
	Name   string
	Figure string // Pagewire's
	Beside string `json:",omitempty"` // of the best other, or of the bare wire if the goal names it
	Ratio  string `json:",omitempty"` // Figure to Beside
	Goal   string `json:",omitempty"`
	Missed bool   `json:",omitempty"`
	All    string `json:",omitempty"` // every contender's median, with the least and the most
}

// parts are the runs of the page, in its order.
var parts = []struct{ name, title string }{
	{"size", "Bytes"}, {"bench", "Pages and the gateway"}, {"models", "What a model pays"},
	{"stale", "Yesterday's page"}, {"growth", "Growth"},
}

// limits names the cause that keeps a row from its goal, by the beginning of the row's name.
var limits = []struct{ row, factor string }{
	{"first agent: connect to first list",
		"the client's own work sets the pace: a core that is compiled 2 ms earlier gives no earlier list"},
	{"first visit: connect to first list", "as the row above"},
	{"second visit: connect to first list",
		"three fetches from the browser's cache, and the core's start"},
	{"read over window.postMessage, mean",
		"the browser compiles the core's functions during the first reads"},
	{"read over window.postMessage, p99",
		"not known: the echo's own p99 is 115 to 1,565 us, and the browser's collector is not it"},
	{"read over window.postMessage",
		"of 104 us the two posts take 36, and the core with its imports 22"},
	{"read of 1 MB",
		"code that is not compiled yet in 23 reads: after 1,500 small ones it is 1.04 of the echo"},
	{"read over a MessagePort",
		"the engine; text both ways and a callback alone are 1.3 of the wire"},
	{"gateway: read", "the daemon's and the page layer's work: trace.md"},
	{"gateway: tool call",
		"the browser passes it on twice or three times, and the page says that it has begun: trace.md"},
	{"visible after reload",
		"two scripts are fetched one after the other, 10 ms each"},
	{"renderer memory",
		"the early part is over half of it; any script alone takes 0.26 MB, and by CDP the check of the focus 0.2"},
	{"bytes in all, with an agent",
		"the core's wasm is two thirds; the gateway's and WebMCP's parts of the late script are 8,000"},
	{"daemon stopped until", "1.6 s of silence count as a hang, and then a probe may take 0.7 s"},
	{"model: first look",
		"the declared cart is JSON with the names of its values; a snapshot has the values alone"},
	{"look when told: bytes, beside",
		"the first look at each page, which all take, is 0.7 of it"},
	{"shown: first look at 10,000",
		"the browser's own share, the styles and boxes of all, is in the row"},
	{"growth with resources: processor time of a page",
		"a list has at most 24 pages, so that of 100,000 resources has 4,167 of them"},
	{"growth with", "the collector looks at a heap that grows, again and again"},
	{"10,000 changes: main thread",
		"the loop, and the page's first read behind it, before they are compiled"},
}

func limit(row string) string {
	for _, l := range limits {
		if strings.HasPrefix(row, l.row) {
			return l.factor
		}
	}
	return "not known"
}

// Open reads the runs of a directory's bench.json, by part. Without such a file it returns an empty
// map.
func Open(dir string) (map[string]Run, error) {
	runs := map[string]Run{}
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return runs, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("%s/bench.json: %w", dir, err)
	}
	return runs, nil
}

// Keep replaces a part's last run in bench.json and bench.md of a directory.
func Keep(dir, part string, run Run) error {
	runs, err := Open(dir)
	if err != nil {
		return err
	}
	run.Began = run.Began.UTC().Truncate(time.Second)
	runs[part] = run
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), data(runs), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.md"), page(runs), 0o644)
}

// data returns bench.json, with one line for each row.
func data(runs map[string]Run) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // the encoder ends each value with a line break
	encoder.SetEscapeHTML(false)
	before := "{"
	for _, part := range parts {
		run, ok := runs[part.name]
		if !ok {
			continue
		}
		rows := run.Rows
		run.Rows = nil
		fmt.Fprintf(&out, "%s%q:", before, part.name)
		encoder.Encode(run)
		out.Truncate(out.Len() - len("}\n"))
		out.WriteString(",\"Rows\":[")
		between := "\n"
		for _, row := range rows {
			out.WriteString(between)
			encoder.Encode(row)
			between = ","
		}
		out.WriteString("]}\n")
		before = ","
	}
	out.WriteString("}\n")
	return out.Bytes()
}

func page(runs map[string]Run) []byte {
	var out bytes.Buffer
	line := func(cells ...string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	head := func(cells ...string) {
		line(cells...)
		line(strings.Split(strings.Repeat("---,", len(cells)-1)+"---", ",")...)
	}
	out.WriteString(
		"# Benchmark\n\n<!-- Written by make bench. -->\n\nFor people who want every figure, and how it was " +
			"measured. [Costs](../../demo/docs/costs.md) explains the main ones.\n\nRatios are Pagewire to the figure beside it: on a busy " +
			"machine they say more than milliseconds.\n\n## Goals that are missed\n\n")
	head("what", "Pagewire", "beside", "ratio", "goal", "limiting factor")
	for _, part := range parts {
		for _, r := range runs[part.name].Rows {
			if r.Missed {
				line(r.Name, r.Figure, r.Beside, r.Ratio, r.Goal, limit(r.Name))
			}
		}
	}
	for _, part := range parts {
		run, ok := runs[part.name]
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "\n## %s\n\n`%s` of %s at commit %s; %s%s.\n\n", part.title, run.Command,
			run.Began.Format(time.DateOnly), run.Commit, run.Machine, run.How)
		head("what", "Pagewire", "beside", "ratio", "goal",
			"every contender: median (least to most)")
		for _, r := range run.Rows {
			line(r.Name, "**"+r.Figure+"**", r.Beside, r.Ratio, r.Goal, r.All)
		}
	}
	return out.Bytes()
}
