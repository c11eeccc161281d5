package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// A number that somebody has typed over, and a figure that has changed since the document was written, both fail here.
func TestDocumentsHaveTheNumbersOfTheBook(t *testing.T) {
	b, err := open(filepath.Join(root, bookFile))
	if err != nil {
		t.Fatal(err)
	}
	files, err := documents(root)
	if err != nil || len(files) < 3 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		after, err := b.rewrite(string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if after != string(text) {
			t.Errorf("%s: make figures would change %s", file, firstDifference(string(text), after))
		}
	}
}

// What the tests of engines and agents have written is what the figures say of them.
func TestTheBookHasWhatOtherGeneratorsHaveWritten(t *testing.T) {
	b, err := open(filepath.Join(root, bookFile))
	if err != nil {
		t.Fatal(err)
	}
	engines, agents := b.of("engines"), b.of("agents")
	if err := errors.Join(b.engines(root), b.agents(root)); err != nil {
		t.Fatal(err)
	}
	if now := b.of("engines"); !reflect.DeepEqual(now, engines) {
		t.Errorf("figures.json has %v, engines.md %v: run make figures", engines, now)
	}
	if now := b.of("agents"); !reflect.DeepEqual(now, agents) {
		t.Errorf("figures.json has %v, agents.md %v: run make figures", agents, now)
	}
}

func firstDifference(before, after string) string {
	b := strings.Split(after, "\n")
	for i, line := range strings.Split(before, "\n") {
		if i >= len(b) || line != b[i] {
			return "the line " + line
		}
	}
	return "its end"
}

// README's numbers are measured or limits: there is no third kind.
func TestReadmeHasNoNumberOfItsOwn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !partMarker.Match(text) {
		t.Error("README.md has no figures")
	}
	for _, line := range unmarked(string(text)) {
		t.Errorf("README.md has a number that nothing keeps up to date, at the end of %q: mark it with <!-- figure: "+
			"NAME -->, or with %s", line, limitMark)
	}
}

// aBook has a figure of each kind.
func aBook() *book {
	met := false
	return &book{
		Runs: map[string]measurement{"bench": {Command: "make bench", Date: time.Unix(0, 0).UTC(), Rounds: 7}},
		Figures: []entry{
			{Name: "pagewire.js, brotli", Value: 6078, Unit: "B", Run: "size"},
			{Name: "read, p50", Value: 82, Unit: "us", Run: "bench", Goal: "<= 0.6 x best", Met: &met, Ratio: 1.04,
				Of: "other 1", Others: map[string]float64{"other 1": 78.5, "floor: echo": 54}},
		},
	}
}

func TestRewriteKeepsUnitAndDecimals(t *testing.T) {
	for before, after := range map[string]string{
		"1 bytes<!-- figure: pagewire.js, brotli -->.":     "6,078 bytes<!-- figure: pagewire.js, brotli -->.",
		"**9.9 KB**<!-- figure: pagewire.js, brotli -->":   "**6.1 KB**<!-- figure: pagewire.js, brotli -->",
		"0.01 ms<!-- figure: read, p50 -->":                "0.08 ms<!-- figure: read, p50 -->",
		"1,000 us<!-- figure: read, p50, floor --> is far": "54 us<!-- figure: read, p50, floor --> is far",
		"0.0<!-- figure: read, p50: other 1 -->":           "78.5<!-- figure: read, p50: other 1 -->",
		"9.99 ×<!-- figure: read, p50, ratio -->":          "1.04 ×<!-- figure: read, p50, ratio -->",
		"9.99×<!-- figure: read, p50, times -->":           "0.96×<!-- figure: read, p50, times -->",
		"no figure: 12 ms":                                 "no figure: 12 ms",
	} {
		if got, err := aBook().rewrite(before); err != nil || got != after {
			t.Errorf("%q: got %q, %v; want %q", before, got, err, after)
		}
	}
}

func TestRewriteWritesPartsWhole(t *testing.T) {
	before := "a\n\n<!-- figures: benchmark, written by make figures -->\nold\n<!-- end of figures -->\n\nb\n"
	got, err := aBook().rewrite(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a\n\n<!-- figures",
		"| read, p50 | 82 us | 78.5 us, other 1 | 1.04 | ≤ 0.6 × best, **missed** | 54 us |",
		"\n\n<!-- end of figures -->\n\nb\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if again, err := aBook().rewrite(got); err != nil || again != got {
		t.Errorf("a second time it writes\n%s\n%v", again, err)
	}
}

func TestRewriteRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"5 ms<!-- figure: read, p51 -->":                                           `near it: ["read, p50"`,
		"5 KB<!-- figure: read, p50 -->":                                           "cannot be written in",
		"5 s<!-- figure: read, p50 -->":                                            "nothing of it is left",
		"five<!-- figure: read, p50 -->":                                           "directly behind a number",
		"5 ms <!-- figure: read, p50 -->":                                          "directly behind a number",
		"<!-- figures: costs, written by make figures -->\n":                       "markers of parts",
		"<!-- figures: fees, written by make figures -->\n<!-- end of figures -->": `no part is named "fees"`,
	} {
		if got, err := aBook().rewrite(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %q, %v; want an error with %q", text, got, err, why)
		}
	}
}

func TestUnmarkedNumbers(t *testing.T) {
	text := "It takes 8 ms (15 at p95) and 6.4 KB.\nA read of 1 MiB, at most one per 100 ms<!-- limit -->, `5 ms`,\n" +
		"5 ms<!-- figure: x -->, 30 s, 18 times faster, 4×, 10 tabs.\n```sh\nsleep 3 ms\n```\n" +
		"<!-- figures: costs, written by make figures -->\n| 7 ms |\n<!-- end of figures -->\n"
	got := strings.Join(unmarked(text), "|")
	want := "It takes 8 ms|It takes 8 ms (15 at p95) and 6.4 KB|5 ms, 30 s, 18 times faster|" +
		"5 ms, 30 s, 18 times faster, 4×"
	want = strings.ReplaceAll(want, "5 ms, ", ", ") // the marked number is taken out
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A run is current until code has changed, and not one of code that was never committed.
func TestCurrent(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		who := []string{"-c", "user.name=t", "-c", "user.email=t@t.example"}
		command := exec.Command("git", append(who, args...)...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	change := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-qm", name)
	}
	git("init", "-q")
	for _, name := range []string{"bridge", "wasm", "js", "idl", "e2e", "demo/docs", "go.mod", "go.sum"} {
		change(name+map[bool]string{true: "", false: "/a"}[strings.HasPrefix(name, "go.")], "1")
	}
	b := &book{Runs: map[string]measurement{}}
	for _, name := range runOrder {
		b.Runs[name] = measurement{Command: "make " + name, Commit: git("rev-parse", "--short", "HEAD")}
	}
	change("bridge/doc.md", "1")
	change("demo/docs/a", "2")
	if err := b.current(dir); err != nil {
		t.Errorf("documents have changed: %v", err)
	}
	change("bridge/a", "2")
	if err := b.current(dir); err == nil || !strings.Contains(err.Error(), "make bench was run at ") {
		t.Errorf("code has changed: %v", err)
	}
	b.Runs["bench"] = measurement{Command: "make bench", Commit: git("rev-parse", "HEAD") + "+"}
	if err := b.current(dir); err == nil || !strings.Contains(err.Error(), "make bench was run with changes") {
		t.Errorf("code was not committed: %v", err)
	}
}

// What a run has left is taken once, and a short run does not take the place of a full one.
func TestTakeReports(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dist/bench/bench.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	report := func(began, short, median string) {
		t.Helper()
		text := `{"Began":"` + began + `","Rounds":2,"Short":` + short + `,"Command":"make bench",
			"Rows":[{"Name":"r","Unit":"ms",
			"Who":[{"Name":"Pagewire","Median":` + median + `},{"Name":"other","Absent":true}]},
			{"Name":"curve","Curve":true,"Who":[{"Name":"Pagewire"}]}]}`
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := &book{Runs: map[string]measurement{}}
	for _, step := range []struct {
		began, short, median string
		want                 float64
	}{
		{"2026-01-02T00:00:00Z", "true", "1", 1},
		{"2026-01-03T00:00:00Z", "false", "2", 2},
		{"2026-01-04T00:00:00Z", "true", "3", 2},
		{"2026-01-01T00:00:00Z", "false", "4", 2},
		{"2026-01-05T00:00:00Z", "false", "5", 5},
	} {
		report(step.began, step.short, step.median)
		if err := b.bench(dir); err != nil {
			t.Fatal(err)
		}
		if q, err := b.find("r"); err != nil || q.Value != step.want {
			t.Errorf("after the run of %s: %v, %v; want %v", step.began, q, err, step.want)
		}
	}
	if names := b.names(); len(names) != 1 {
		t.Errorf("%q, want r alone", names)
	}
}
