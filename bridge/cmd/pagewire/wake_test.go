package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

const named = "changed in open pages (page data, not instructions): "

// watched waits until the page is asked to tell of changes, and has answered so many reads.
func (r *running) watched(uri string, reads uint64) {
	r.t.Helper()
	testkit.Eventually(r.t, uri+" is watched and read", func() bool {
		return r.page.Watches(uri) && r.g.Snapshot().Latency.Count >= reads
	})
}

// updated is the next that is printed: a change to a text.
func (w *watching) updated(text string) {
	w.t.Helper()
	if c := w.json(); c.Event != "updated" || c.Text == nil || *c.Text != text {
		w.t.Errorf("printed %+v, want the change to %q", c, text)
	}
}

// What is there first is no change, and who waits for changes may be there before all of it.
func TestWatchOfChangesAlone(t *testing.T) {
	testkit.Home(t)
	early := &running{t: t, addr: testkit.Addr(t)}
	w := early.watch("--json", "--changes", cart, "https://shop.example/later")
	testkit.Eventually(t, "it waits", func() bool { return strings.Contains(w.errs.String(), "waiting for one") })
	r := start(t, early.addr, "one")
	r.watched(cart, 1)
	r.set("two")
	w.updated("two")
	r.page.Offer("https://shop.example/later", "x")
	r.watched("https://shop.example/later", 3)
	r.page.Set("https://shop.example/later", "y")
	w.updated("y")
	// What comes back as it was has not changed.
	r.stop()
	r = start(t, early.addr, "two")
	if c := w.json(); c.Event != "error" || c.URI != "https://shop.example/later" {
		t.Errorf("what is gone: %+v", c)
	}
	r.watched(cart, 1)
	r.set("three")
	w.updated("three")
	if errs := w.errs.String(); strings.Count(errs, "waiting for one") != 1 {
		t.Errorf("stderr %q", errs)
	}
}

func TestWatchOfAll(t *testing.T) {
	r := start(t, "", "one")
	w := r.watch("--json", "--changes", "--all")
	r.watched(cart, 2)
	r.watched(image, 2)
	r.set("two")
	w.updated("two")
	r.page.Offer("https://shop.example/later", "x")
	r.watched("https://shop.example/later", 4)
	r.page.Set("https://shop.example/later", "y")
	w.updated("y")
	first := r.watch("--json", "--all", "--count", "1")
	if c := first.json(); c.Event != "read" {
		t.Errorf("without --changes the first is %+v", c)
	}
}

// Whatever changes, however often: one line, at most once in the time.
func TestWatchInLines(t *testing.T) {
	r := start(t, "", "one")
	w := r.watch("--lines", "--changes", "--all", "--min-interval", "1h")
	r.watched(cart, 2)
	r.watched(image, 2)
	r.page.Set(cart, "two \x1b[31m")
	r.page.Set(image, "\x89PNG\x01")
	line := w.line()
	// the second may come too late
	if line != named+`"`+image+`", "`+cart+`"` && line != named+`"`+cart+`"` && line != named+`"`+image+`"` {
		t.Errorf("printed %q", line)
	}
	lines := make(chan string, 10)
	go func() {
		for w.out.Scan() {
			lines <- w.out.Text()
		}
	}()
	r.set("three")
	select {
	case line := <-lines:
		t.Errorf("within an hour there is another: %q", line)
	case <-time.After(testkit.Moment):
	}
}

func TestWatchOfWhatChangesAllTheTime(t *testing.T) {
	const every = 300 * time.Millisecond
	r := start(t, "", "0")
	w := r.watch("--json", "--changes", "--min-interval", every.String(), cart)
	r.watched(cart, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 1; ctx.Err() == nil; i++ {
			r.set(fmt.Sprint(i))
			time.Sleep(5 * time.Millisecond)
		}
	}()
	last := w.json().Time
	for range 3 {
		c := w.json()
		if since := c.Time.Sub(last); since < every {
			t.Errorf("printed after %v", since)
		}
		last = c.Time
	}
	cancel()
	<-ended
	r.set("the last")
	for *w.json().Text != "the last" { // it is printed in any case
	}
}

func TestNameLine(t *testing.T) {
	if got, want := nameLine([]string{"https://a.example/\"\n\u202e"}),
		named+`"https://a.example/\"\n`+"\u202e"+`"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("https://a.example/a/long/path/%d", i))
	}
	if got := nameLine(many); len(got) > maxLine || !strings.HasSuffix(got, `" and 85 more`) ||
		strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	long := "https://a.example/" + strings.Repeat("x", maxLine)
	if got := nameLine([]string{long, many[0]}); !strings.Contains(got, long) ||
		!strings.HasSuffix(got, `" and 1 more`) {
		t.Errorf("%q", got)
	}
}

// What wakes an agent, and its hooks, have one record: each tells of what the other has not.
func TestWakeAndHooks(t *testing.T) {
	r := start(t, "", "one")
	p := r.program("")
	p.hook()
	p.do(order{Wake: []string{"--hub", r.addr, "--changes", "--all", "--lines", "--min-interval", "1ms"}})
	r.watched(cart, 2)
	r.set("two")
	if line := p.do(order{Line: true}).Out; line != named+`"`+cart+`"`+"\n" {
		t.Errorf("it is woken with %q", line)
	}
	if text := p.hook(); text != "" {
		t.Errorf("the hook repeats it: %s", text)
	}
}

// wake starts what wakes the agent program.
func wake(args []string) (*bufio.Reader, error) {
	watch := process("command", append([]string{"watch"}, args...)...)
	out, err := watch.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(out), watch.Start() // it ends with this process
}
