package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/demo/ci"
	"github.com/pagewire/pagewire/demo/step"
)

const (
	// startDeadline bounds the time until the agent has subscribed. It takes 0.2 s; a busy machine
	// that compiles the core for the first time needs more.
	startDeadline = 20 * time.Second
	// stepDeadline bounds the time until the agent is notified of a change and has read it.
	stepDeadline = 5 * time.Second
)

// A teller plays the story in one tab and writes the transcript. A step that does not happen ends
// the story (step.Tell).
type teller struct {
	ctx context.Context // chromedp's, of the tab
	out io.Writer
}

// runStory plays the story in a browser: with any page and an agent outside of it; then with a page
// that takes part, in full with the client's default version, and in short with the protocol's
// newest version. Each line describes an event that happened.
func runStory(ctx context.Context, out io.Writer, base, site string, run *ci.Run) {
	b := step.Must(launched.Start(ctx, launched.Options{DebugPort: "0"}))
	defer b.Close()
	allocator, detach := remote.NewAllocator(ctx, b.URL)
	defer detach()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	// Otherwise the tab would end with the first step's context.
	step.Check(chromedp.Do(tab), "open a tab")
	t := &teller{tab, out}

	version, err := chromedp.CallBrowser(tab, cdpbrowser.GetVersion, cdp.Empty{})
	step.Check(err, "ask the browser for its version")
	t.line("browser", "%s, headless", version.Product)
	t.anyPage(b, site, run)
	fmt.Fprintln(out)
	t.full(base + page)
	t.short(base + page + "?era=modern")
}

// full tells the story, step by step.
func (t *teller) full(url string) {
	s := t.open(url)
	t.line("person", "opens %s", url)
	t.line("agent", "%s", lower(s.Steps["connected"]))
	t.line("agent", "%s", lower(s.Steps["listed"]))
	for _, r := range s.Resources {
		t.line("agent", "read %-12s %s", brief(r.URI), quote(r.Text, 60))
	}
	t.line("agent", "%s", lower(s.Steps["subscribed"]))

	const words, word = " and milk", "milk"
	for _, d := range []deed{
		{fmt.Sprintf("types %q, key by key", words), t.types(words), "input", "document", words},
		{fmt.Sprintf("selects %q", word), t.selectsBack(len(word)), "selectionchange",
			"selection", word},
		{"wants one portion more", t.press("#order-portions", kb.ArrowUp), "input", "order",
			`"portions":13`},
	} {
		t.turn(d)
	}
	t.withdraw("order")
}

// short tells the same with the other protocol version, in two lines.
func (t *teller) short(url string) {
	s := t.open(url)
	connected, listed, read := lower(s.Steps["connected"]), len(s.Resources), s.read()
	const words = " and honey"
	quiet := &teller{t.ctx, io.Discard}
	heard, r := quiet.turn(deed{"", t.types(words), "input", "document", words})
	fmt.Fprintln(t.out)
	t.line("again", "%s: listed %d, read %d, %s,", connected, listed, read,
		lower(s.Steps["subscribed"]))
	t.line("", "was told of %s (%s), read again %s", brief(r.URI), heard, quoteEnd(r.Text, 32))
}

// open loads the page, and returns its state once the agent has subscribed.
func (t *teller) open(url string) state {
	t.act("open the page", chromedp.Navigate(url))
	return t.wait("the agent subscribes", startDeadline,
		func(s state) bool { return s.Agent == "subscribed" })
}

// A deed is an action of the person, and its result.
type deed struct {
	says     string // in the transcript, after "person"
	action   chromedp.Action[chromedp.Void]
	event    string // the event at the page
	resource string // name of the resource that changes
	want     string // text that the resource then contains
}

// heard counts notifications, and events of the page. after is from the first event to the first
// notification.
type heard struct {
	times  int
	events int
	after  float64 // milliseconds
}

func (h heard) String() string {
	if h.events == 1 {
		return fmt.Sprintf("after %.1f ms", h.after)
	}
	return fmt.Sprintf("after %.1f ms; told %d× for %d events", h.after, h.times, h.events)
}

// turn does a deed, and waits until the agent was notified of the change and has read it.
func (t *teller) turn(d deed) (heard, resource) {
	before := step.Must(t.look())
	t.act("change the "+d.resource, chromedp.Steps(evaluate(`globalThis.events = {}`), d.action))
	t.line("person", "%s", d.says)
	uri := before.resource(d.resource).URI
	t.wait("the agent is told that the "+d.resource+" changed", stepDeadline, func(s state) bool {
		return len(s.since(before, uri)) > 0
	})
	s := t.wait(fmt.Sprintf("the agent reads %q in the %s", d.want, d.resource), stepDeadline,
		func(s state) bool { return strings.Contains(s.resource(d.resource).Text, d.want) })
	told, r, e := s.since(before, uri), s.resource(d.resource), s.Events[d.event]
	h := heard{len(told), e.Count, told[len(told)-1].At - e.First}
	t.line("agent", "was told %s changed (%s)", brief(uri), h)
	t.line("agent", "read again    %s", quoteEnd(r.Text, 60))
	return h, r
}

// withdraw unticks the box that shares the order, and waits until the agent no longer lists it.
func (t *teller) withdraw(name string) {
	before := step.Must(t.look())
	t.act("withdraw "+name, chromedp.Click(chromedp.CSS("#order-shared")))
	s := t.wait("the agent no longer lists "+name, stepDeadline, func(s state) bool {
		return s.resource(name).URI == "" && len(s.since(before, "")) > 0
	})
	t.line("person", "no longer shares the %s", name)
	t.line("agent", "was told that the list changed, and %s", lower(s.Steps["listed"]))
}

// The person's actions. All use real input events, which the page cannot tell from a person's.

// types puts the caret at the end of the text, and types there.
func (t *teller) types(words string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.Click(chromedp.CSS("#document-text")),
		evaluate(`document.activeElement.setSelectionRange(1e9, 1e9)`),
		chromedp.KeyEvent(words),
	)
}

// selectsBack selects n characters before the caret.
func (t *teller) selectsBack(n int) chromedp.Action[chromedp.Void] {
	// The command makes the key work on macOS, too, where the system, not the browser, gives keys a
	// meaning.
	left := func(p *input.DispatchKeyEventParams) {
		p.Commands = []string{"MoveLeftAndModifySelection"}
	}
	return chromedp.KeyEvent(strings.Repeat(kb.ArrowLeft, n),
		chromedp.KeyModifiers(chromedp.ModifierShift), left)
}

// press clicks on a field and presses a key in it.
func (t *teller) press(field, key string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.Click(chromedp.CSS(field)), chromedp.KeyEvent(key))
}

func evaluate(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](script)
}

// act does a step of the person, within stepDeadline.
func (t *teller) act(what string, action chromedp.Action[chromedp.Void]) {
	ctx, cancel := context.WithTimeout(t.ctx, stepDeadline)
	defer cancel()
	step.Check(chromedp.Do(ctx, action), what)
}

func (t *teller) line(who, format string, args ...any) { step.Line(t.out, who, format, args...) }

// lower makes a sentence of the page part of another sentence.
func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// brief returns the end of a URI, as the page shows it.
func brief(uri string) string {
	return "…" + uri[strings.LastIndexByte(uri, '/'):]
}

// quote shortens text to n characters, keeping its beginning.
func quote(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// quoteEnd shortens text to n characters, keeping its end.
func quoteEnd(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return text
}
