package testkit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A failing is a test that notes what it prints when it ends.
type failing struct {
	testing.TB
	name     string
	failed   bool
	said     []string
	cleanups []func()
}

var errEnded = errors.New("the test has ended")

func (f *failing) Name() string     { return f.name }
func (f *failing) Helper()          {}
func (f *failing) Failed() bool     { return f.failed }
func (f *failing) Log(args ...any)  { f.said = append(f.said, fmt.Sprint(args...)) }
func (f *failing) Cleanup(g func()) { f.cleanups = append(f.cleanups, g) }
func (f *failing) Fatalf(format string, args ...any) {
	f.failed = true
	f.Log(fmt.Sprintf(format, args...))
	panic(errEnded)
}

// ends runs what a test does until it fails, and then its cleanups, and returns what was printed.
func (f *failing) ends(does func()) string {
	func() {
		defer func() {
			if failure := recover(); failure != nil && failure != errEnded {
				panic(failure)
			}
		}()
		does()
	}()
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	return strings.Join(f.said, "\n")
}

// A condition that does not come true prints the end of what each part of the test said, once, and
// no goroutine.
func TestUnmetConditionPrintsTheProduct(t *testing.T) {
	parent, f := &failing{name: "TestX"}, &failing{name: "TestX/case"}
	other := &failing{name: "TestXY"}
	log, page := LogOf(parent, "the daemon"),
		NewPage(f, map[string]string{"https://app.example/doc": "0"})
	State(other, "another test", func() string { return "nothing to do with it" })
	defer other.ends(func() {})
	State(f, "what hangs", func() string { select {} })
	fmt.Fprintf(log, "%s the last word", strings.Repeat("x", maxState))
	page.Connect(func([]byte) {}, nil)
	for range 3 {
		page.Hear([]byte(`[["report","a sentence"]]`))
	}
	said := f.ends(func() { Unmet(f, "it rains") })
	for _, want := range []string{"still not so: it rains", "the daemon said:", "the last word",
		"bytes before",
		`it offers ["https://app.example/doc"]`, `core: [["report","a sentence"]] (3 times)`,
		`page: [["hello",1`,
		"what hangs:\n    (it has not answered for 5s)"} {
		if strings.Count(said, want) != 1 {
			t.Errorf("%q is printed %d times", want, strings.Count(said, want))
		}
	}
	for _, never := range []string{"goroutine ", "another test"} {
		if strings.Contains(said, never) {
			t.Errorf("%q is printed", never)
		}
	}
	parent.failed = true // as its subtest has failed
	if said := parent.ends(func() {}); said != "" {
		t.Errorf("the parent prints again: %.200q", said)
	}
}

// A test that fails in another way prints the same. One that does not fail prints nothing.
func TestFailedTestPrintsTheProduct(t *testing.T) {
	for _, failed := range []bool{true, false} {
		f := &failing{name: "TestY", failed: failed}
		fmt.Fprint(LogOf(f, "a node"), "a line")
		if said := f.ends(func() {}); strings.Contains(said,
			"a node said:\n    a line") != failed || !failed && said != "" {
			t.Errorf("failed %v, and it prints %q", failed, said)
		}
	}
	if len(parts.of["TestY"]) != 0 {
		t.Error("parts are left")
	}
}

// What comes again and again is one line, so that the last lines cover what was before.
func TestRecentLines(t *testing.T) {
	var r recent
	for i := range 2 * maxLines {
		r.add(fmt.Sprint("line ", i))
	}
	for range 1000 {
		r.add(strings.Repeat("again", maxLine))
	}
	lines := strings.Split(r.String(), "\n")
	if len(lines) != maxLines || lines[0] != fmt.Sprint("line ", maxLines+1) ||
		!strings.HasSuffix(lines[maxLines-1], "(1500 bytes) (1000 times)") {
		t.Errorf("%d lines from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
}
