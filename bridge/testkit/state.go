package testkit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A test that fails prints what its parts of the product last said: their logs, their pages, their
// agents. LogOf, NewPage and Connect register these; State registers others.

const (
	// maxState bounds what one part prints, in bytes, and maxParts the parts of one test that
	// print.
	maxState, maxParts = 32 << 10, 20
	// stateTime bounds the wait for a part that is asked for its state: it may be what hangs.
	stateTime = 5 * time.Second
)

// A part is a part of the product that a test uses.
type part struct {
	name  string
	state func() string
	shown bool
}

var parts = struct {
	sync.Mutex
	of map[string][]*part // by the name of the test
}{of: map[string][]*part{}}

// State adds a part of the product to what the test, or a subtest, prints if it fails. state is
// called at that moment, on another goroutine.
func State(t testing.TB, name string, state func() string) {
	p := &part{name: name, state: state}
	parts.Lock()
	defer parts.Unlock()
	parts.of[t.Name()] = append(parts.of[t.Name()], p)
	t.Cleanup(func() {
		parts.Lock()
		all := parts.of[t.Name()]
		for i := len(all) - 1; i >= 0; i-- { // the last one ends first
			if all[i] == p {
				all = slices.Delete(all, i, i+1)
				break
			}
		}
		if parts.of[t.Name()] = all; len(all) == 0 {
			delete(parts.of, t.Name())
		}
		show := t.Failed() && !p.shown && len(all) < maxParts
		parts.Unlock()
		if show {
			t.Log(p.text())
		}
	})
}

// text asks a part for its state.
func (p *part) text() string {
	said := make(chan string, 1)
	go func() { said <- p.state() }()
	text := ""
	select {
	case text = <-said:
	case <-time.After(stateTime):
		text = "(it has not answered for " + stateTime.String() + ")"
	}
	if cut := len(text) - maxState; cut > 0 {
		text = fmt.Sprintf("(%d bytes before)\n%s", cut, strings.ToValidUTF8(text[cut:], ""))
	}
	text = cmp.Or(strings.TrimSpace(text), "(nothing)")
	return p.name + ":\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}

// states returns the present state of all parts of a test, once for each part.
func states(test string) string {
	parts.Lock()
	var now []*part
	for name, list := range parts.of {
		if name == test || strings.HasPrefix(test, name+"/") {
			for _, p := range slices.Backward(list) {
				if !p.shown && len(now) < maxParts {
					now = append(now, p)
				}
				p.shown = true
			}
		}
	}
	parts.Unlock()
	var all strings.Builder
	for _, p := range now {
		all.WriteString("\n" + p.text())
	}
	return all.String()
}

// Unmet ends a test because a condition has not come true within Patience. It prints the state of
// the test's parts.
func Unmet(t testing.TB, what string) {
	t.Helper()
	t.Fatalf("after %v still not so: %s%s", Patience, what, states(t.Name()))
}

// A recent keeps the last lines of what a part has said and heard. Equal lines in a row are one.
type recent struct {
	mu    sync.Mutex
	lines []string
	times int // that the last one has come
}

// maxLines and maxLine bound a recent.
const maxLines, maxLine = 30, 300

func (r *recent) add(line string) {
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + fmt.Sprintf(" ... (%d bytes)", len(line))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.lines) - 1
	if last >= 0 && r.lines[last] == line {
		r.times++
		return
	}
	r.close()
	if r.lines = append(r.lines, line); len(r.lines) > maxLines {
		r.lines = slices.Delete(r.lines, 0, 1)
	}
	r.times = 1
}

// close notes how often the last line has come. The lock is held.
func (r *recent) close() {
	if last := len(r.lines) - 1; r.times > 1 {
		r.lines[last] += fmt.Sprintf(" (%d times)", r.times)
		r.times = 1
	}
}

func (r *recent) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close()
	return strings.Join(r.lines, "\n")
}
