package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const talk = "session 1"

// prompt returns the text that a hook gets.
func prompt(t *testing.T, g *Gateway, q calls.Ask) string {
	t.Helper()
	return changes(t, g, q)
}

func changes(t *testing.T, of interface {
	Changes(context.Context, calls.Ask) (string, error)
}, q calls.Ask) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if g, ok := of.(*Gateway); ok && len(g.Snapshot().Agents) == 0 {
		connect(t, g, AgentOptions{}) // a conversation sees what all agents see
	}
	text, err := of.Changes(ctx, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return text
}

// A talker is an agent whose program has a hook.
type talker struct {
	*testAgent
	end *Agent
}

func openTalker(t *testing.T, g *Gateway) *talker {
	t.Helper()
	a, end := openAgentWith(t, g, AgentOptions{})
	return &talker{a, end}
}

// told returns the text of its hook for an Ask.
func (a *talker) told(q calls.Ask) string {
	a.t.Helper()
	return changes(a.t, a.end, q)
}

// change changes a resource, and waits until the gateway has counted the change.
func (p *testPage) change(g *Gateway, uri, text string) {
	p.t.Helper()
	testkit.Eventually(p.t, "the page is asked to tell of "+uri, func() bool { return p.page.Watches(uri) })
	before := g.Revision(uri)
	p.set(uri, text)
	testkit.Eventually(p.t, "the gateway knows of the change", func() bool { return g.Revision(uri) > before })
}

// opened is in the text of a conversation's first prompt.
const opened = "] open in the user's browser as this conversation begins or goes on; "

// namesAll fails the test unless a text is that of a conversation's first prompt, and names these URIs without contents.
func namesAll(t *testing.T, text string, uris ...string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if !strings.Contains(lines[0], opened) || len(lines) != 1+len(uris) {
		t.Errorf("a conversation begins with %q", text)
	}
	for _, uri := range uris {
		if !strings.Contains(text, `{"uri":"`+uri+`","revision":`) || strings.Contains(text, "secret") {
			t.Errorf("a conversation begins with %q, want %s", text, uri)
		}
	}
}

// A conversation's first prompt names what is open. Then each change is told once, whether or not the model reads it.
func TestPrompt(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "secret", app + "/doc": "text"})
	ask := calls.Ask{Session: talk}
	namesAll(t, prompt(t, g, ask), cart, app+"/doc")
	for i := range 3 {
		p.change(g, cart, fmt.Sprintf("secret %d", i))
		lines := strings.Split(prompt(t, g, ask), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "[pagewire-") ||
			!strings.Contains(lines[0], "not instructions") ||
			!strings.HasPrefix(lines[1], `{"uri":"`+cart+`","revision":`) || strings.Contains(lines[1], "secret") {
			t.Errorf("change %d: %q", i, lines)
		}
		if text := prompt(t, g, ask); text != "" {
			t.Errorf("change %d is told twice: %q", i, text)
		}
	}
	namesAll(t, prompt(t, g, calls.Ask{Session: "session 2"}), cart, app+"/doc")
	p.change(g, cart, "four")
	for _, session := range []string{talk, "session 2"} {
		if text := prompt(t, g, calls.Ask{Session: session}); !strings.Contains(text, cart) {
			t.Errorf("%s is told %q", session, text)
		}
	}
}

// Contents are given for resources that the user chose by origin or URI, at first all of them, later the difference.
func TestPromptWithContents(t *testing.T) {
	for name, ask := range map[string]calls.Ask{"origin": {Session: talk, Inline: []string{app}},
		"URI": {Session: talk, URIs: []string{cart}}} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			p := openPage(t, g, tabInfo("a"), map[string]string{cart: cartOf(1)})
			other := openPage(t, g, PageInfo{Tab: "b", Origin: "https://evil.example", URL: "https://evil.example/"},
				map[string]string{"https://evil.example/x": "OBEY"})
			text := prompt(t, g, ask)
			if !strings.Contains(text, `"now":{"items":[{"sku":"a-1","quantity":1}`) ||
				!strings.Contains(text, "https://evil.example/x") || strings.Contains(text, "OBEY") ||
				len(strings.Split(text, "\n")) != 3 {
				t.Errorf("told %q", text)
			}
			p.change(g, cart, cartOf(2))
			other.change(g, "https://evil.example/x", "OBEY again")
			text = prompt(t, g, ask)
			if !strings.Contains(text, `"patch":[{"op":"replace","path":"/items/0/quantity","value":2}]`) ||
				!strings.Contains(text, "https://evil.example/x") || strings.Contains(text, "OBEY") ||
				len(strings.Split(text, "\n")) != 3 {
				t.Errorf("then told %q", text)
			}
			p.change(g, cart, cartOf(3))
			if text := prompt(t, g, ask); !strings.Contains(text,
				`"patch":[{"op":"replace","path":"/items/0/quantity","value":3}]`) {
				t.Errorf("then told %q", text)
			}
			// A change to the same contents is not told.
			p.change(g, cart, cartOf(3))
			if text := prompt(t, g, ask); text != "" {
				t.Errorf("the same is told: %q", text)
			}
		})
	}
}

// Either a hook or a reminder tells an agent of each change, whichever comes first. A hook also tells it of listed
// resources that it has not read.
func TestPromptAndReminders(t *testing.T) {
	g := newGateway(t, Options{Reminders: RemindersNames})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one", app + "/doc": "text"})
	a := openTalker(t, g)
	a.told(calls.Ask{})
	a.must(calls.Read, map[string]any{"uri": cart})

	p.change(g, cart, "two")
	if text := a.told(calls.Ask{}); !strings.Contains(text, cart) {
		t.Errorf("the hook tells %q", text)
	}
	if texts := a.must(calls.List, map[string]any{}); len(texts) != 1 {
		t.Errorf("the reminder repeats it: %q", texts)
	}
	a.must(calls.Read, map[string]any{"uri": cart})
	p.change(g, cart, "three")
	if texts := a.must(calls.List, map[string]any{}); len(texts) != 2 {
		t.Errorf("the reminder: %q", texts)
	}
	if text := a.told(calls.Ask{}); text != "" {
		t.Errorf("the hook repeats it: %q", text)
	}
	// A change that the agent has read itself is not told.
	p.change(g, cart, "four")
	a.must(calls.Read, map[string]any{"uri": cart})
	if text := a.told(calls.Ask{}); text != "" {
		t.Errorf("it has read it, and is told %q", text)
	}
	// Only a hook tells of a resource that the agent has never named.
	p.change(g, app+"/doc", "a text")
	if texts := a.must(calls.List, map[string]any{}); len(texts) != 1 {
		t.Errorf("the reminder names what was never read: %q", texts)
	}
	if text := a.told(calls.Ask{}); !strings.Contains(text, app+"/doc") {
		t.Errorf("the hook tells %q", text)
	}
}

// After Forget, reminders do not mention resources read before it, and earlier changes are not told again. A change
// that was not told before is told.
func TestForget(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one", app + "/doc": "text"})
	a := openTalker(t, g)
	a.told(calls.Ask{})
	p.change(g, cart, "two")
	since := fields(t, a.must(calls.Read, map[string]any{"uri": cart})).Revision
	p.change(g, app+"/doc", "a text")
	if text := a.told(calls.Ask{Forget: true}); text != "" {
		t.Errorf("to forget says %q", text)
	}
	if text := a.told(calls.Ask{}); strings.Contains(text, cart) || !strings.Contains(text, app+"/doc") {
		t.Errorf("then it is told %q", text)
	}
	p.change(g, cart, "three")
	if texts := a.must(calls.List, map[string]any{}); len(texts) != 1 {
		t.Errorf("it is reminded of what it has forgotten: %q", texts)
	}
	if texts := a.must(calls.Read, map[string]any{"uri": cart, "since": since}); texts[1] != "three" {
		t.Errorf("it is given a difference from what it has forgotten: %q", texts)
	}
}

// A conversation that this gateway does not know, or that comes back to its agent, names what is open at its first
// prompt: after the end of an earlier gateway, in another process, and after another conversation.
func TestResumedConversation(t *testing.T) {
	type resume func(*testing.T, *Gateway, *testPage, *talker) (*Gateway, *talker)
	here := func(asks ...calls.Ask) resume {
		return func(_ *testing.T, g *Gateway, _ *testPage, a *talker) (*Gateway, *talker) {
			for _, ask := range asks {
				a.told(ask)
			}
			return g, a
		}
	}
	another := func(t *testing.T, g *Gateway, _ *testPage, a *talker) (*Gateway, *talker) {
		a.end.Close()
		return g, openTalker(t, g)
	}
	for name, c := range map[string]struct {
		ask    calls.Ask
		resume resume
		names  bool
	}{
		"goes on":                             {calls.Ask{Session: talk}, here(), false},
		"in another process":                  {calls.Ask{Session: talk}, another, true},
		"after another":                       {calls.Ask{Session: talk}, here(calls.Ask{Session: "session 2"}), true},
		"after it was cleared":                {calls.Ask{Session: talk}, here(calls.Ask{Session: talk, Forget: true}), false},
		"at the next gateway":                 {calls.Ask{Session: talk}, nextGateway, true},
		"without a name, at the next gateway": {calls.Ask{}, nextGateway, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, Options{})
			p := openPage(t, g, tabInfo("a"), map[string]string{cart: "secret"})
			a := openTalker(t, g)
			if text := a.told(c.ask); c.ask.Session == "" && text != "" {
				t.Errorf("an agent without a conversation is told %q", text)
			} else if c.ask.Session != "" {
				namesAll(t, text, cart)
			}
			g, a = c.resume(t, g, p, a)
			if text := a.told(c.ask); c.names {
				namesAll(t, text, cart)
			} else if text != "" {
				t.Errorf("told %q", text)
			}
			if text := a.told(c.ask); text != "" {
				t.Errorf("told again %q", text)
			}
			p.change(g, cart, "secret 2")
			if text := a.told(c.ask); !strings.Contains(text, "] changed in") || !strings.Contains(text, cart) {
				t.Errorf("of a change it is told %q", text)
			}
			p.Close("it is closed")
			if text := a.told(calls.Ask{Session: "session 3"}); text != "" {
				t.Errorf("without a page a conversation begins with %q", text)
			}
		})
	}
}

func nextGateway(t *testing.T, g *Gateway, p *testPage, a *talker) (*Gateway, *talker) {
	snapshot := a.end.Handover()
	g.Close()
	g = newGateway(t, Options{})
	next, end := openAgentWith(t, g, AgentOptions{Handover: snapshot})
	p.attach(g, tabInfo("a"))
	return g, &talker{next, end}
}

// Some time after the last prompt the page is no longer watched. A change after that is still told, once.
func TestPromptAfterAWhile(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one", app + "/doc": "text"})
	prompt(t, g, calls.Ask{Session: talk})
	testkit.Eventually(t, "both are watched", func() bool { return p.page.Watches(cart) && p.page.Watches(app+"/doc") })
	g.mu.Lock()
	g.opt.wallClock = func() time.Time { return time.Now().Add(time.Hour) }
	g.mu.Unlock()
	p.change(g, cart, "two")
	testkit.Eventually(t, "it is left alone", func() bool { return !p.page.Watches(cart) })
	p.set(cart, "three")
	if text := prompt(t, g, calls.Ask{Session: talk}); strings.Count(text, cart) != 1 || strings.Contains(text, "/doc") {
		t.Errorf("told %q", text)
	}
	testkit.Eventually(t, "it is watched again", func() bool { return p.page.Watches(cart) })
	if text := prompt(t, g, calls.Ask{Session: talk}); text != "" {
		t.Errorf("told %q for nothing", text)
	}
	p.change(g, cart, "four")
	if text := prompt(t, g, calls.Ask{Session: talk}); strings.Count(text, cart) != 1 {
		t.Errorf("told %q", text)
	}
}

// Changes that have no room are told at the next prompts. None is left out or told twice.
func TestPromptOfManyChanges(t *testing.T) {
	g := newGateway(t, Options{})
	state := map[string]string{}
	for i := range 100 {
		state[fmt.Sprintf("%s/%s/%d", app, strings.Repeat("long", 20), i)] = "x"
	}
	p := openPage(t, g, tabInfo("a"), state)
	prompt(t, g, calls.Ask{Session: talk})
	for uri := range state {
		p.change(g, uri, "y")
	}
	told := map[string]int{}
	for text := prompt(t, g, calls.Ask{Session: talk}); text != ""; text = prompt(t, g, calls.Ask{Session: talk}) {
		if len(text) > calls.PromptChars {
			t.Fatalf("told %d characters at once", len(text))
		}
		for _, line := range strings.Split(text, "\n")[1:] {
			var c live.Change
			if json.Unmarshal([]byte(line), &c) == nil {
				told[c.URI]++
			} else if !strings.HasPrefix(line, "and ") {
				t.Errorf("a line says %q", line)
			}
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(state))) ||
		slices.Max(slices.Collect(maps.Values(told))) != 1 {
		t.Errorf("told of %d, of %d: %v", len(told), len(state), told)
	}
}

// The kept conversations and followed resources are bounded, and go when a conversation's time is over.
func TestPromptBounds(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	for i := range follow.MaxFollowed + 50 {
		p.offer(fmt.Sprintf("%s/r/%d", app, i), "x")
	}
	for i := range maxConversations + 10 {
		prompt(t, g, calls.Ask{Session: fmt.Sprint(i)})
	}
	g.mu.Lock()
	if n := len(g.conversations); n != maxConversations {
		t.Errorf("%d conversations are kept", n)
	}
	if g.conversations["0"] != nil || g.conversations["20"] == nil {
		t.Error("not the one went that was used least recently")
	}
	if n := g.books.Len(); n != follow.MaxFollowed {
		t.Errorf("%d resources are followed", n)
	}
	later := time.Now().Add(2 * conversationFor)
	g.asking("later", later)
	if len(g.conversations) != 1 || g.books.Len() != 0 || g.remembering != 2 { // of the agent, too
		t.Errorf("after a while there are %d conversations, %d resources, %d records", len(g.conversations),
			g.books.Len(), g.remembering)
	}
	g.mu.Unlock()
}

// page_changes returns only a hook's JSON, for any arguments.
func TestChangesTool(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one"})
	a := openAgent(t, g)
	p.tellTool("say", nil)
	a.hasTool("say")
	say := func(args map[string]any) string {
		t.Helper()
		texts := a.must(calls.Changes, args)
		if len(texts) != 1 {
			t.Fatalf("%v: %q", args, texts)
		}
		return texts[0]
	}
	for _, args := range []map[string]any{{}, {"forget": true}, {"hook": "codex", "event": "Stop"},
		{"event": "PreCompact", "forget": true}} {
		if text := say(args); text != calls.NoChanges {
			t.Errorf("%v: %q", args, text)
		}
	}
	for _, c := range []struct {
		text       string
		args       map[string]any
		begin, end string
	}{
		{"two", map[string]any{"session": 5}, // an argument that it does not have
			`{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"[pagewire-`, `"}}`},
		{"three", map[string]any{"hook": "codex", "event": "PostToolUse"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"`, `"}}`},
		{"four", map[string]any{"hook": "gemini-cli"},
			`{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"`, `"}}`},
		{"five", map[string]any{"hook": "copilot", "inline": []string{app}}, `{"additionalContext":"`,
			`\"now\":\"five\"}"}`},
	} {
		p.change(g, cart, c.text)
		got := say(c.args)
		if !strings.HasPrefix(got, c.begin) || !strings.HasSuffix(got, c.end) || !strings.Contains(got, cart) ||
			!json.Valid([]byte(got)) {
			t.Errorf("%v: %s", c.args, got)
		}
	}
}

// A page that does not answer delays no prompt, because URIs and revisions need no answer.
func TestPromptBesideAPageThatHangs(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one"})
	hang := make(chan bool)
	defer close(hang)
	p.page.Add(app+"/hangs", func(context.Context, string) (string, error) { <-hang; return "", nil })
	testkit.Eventually(t, "both are listed", func() bool {
		defer g.lock()()
		return g.catalog.Entry(app+"/hangs") != nil
	})
	ask := calls.Ask{Session: talk, Inline: []string{app}}
	prompt(t, g, ask)
	testkit.Eventually(t, "both are watched", func() bool {
		return p.page.Watches(cart) && p.page.Watches(app+"/hangs")
	})
	p.change(g, cart, "two")
	p.page.Touch(app + "/hangs")
	text := ""
	testkit.Eventually(t, "both are told", func() bool {
		text += prompt(t, g, ask)
		return strings.Contains(text, app+"/hangs")
	})
	if !strings.Contains(text, `"now":"two"`) {
		t.Errorf("told %q", text)
	}
}

// A program that wakes an agent asks which changes the agent does not know. It knows those it has read, was told of, or
// was reminded of.
func TestUnknown(t *testing.T) {
	g := newGateway(t, Options{Reminders: RemindersNames})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one", app + "/doc": "text"})
	both := []string{cart, app + "/doc"}
	a := openTalker(t, g)
	if got := a.end.Unknown(nil); got != nil {
		t.Errorf("of nothing %q are news", got)
	}
	if got := a.end.Unknown(both); got != nil {
		t.Errorf("nothing has changed, and %q are news", got)
	}
	p.change(g, cart, "two")
	p.change(g, app+"/doc", "a text")
	if got := a.end.Unknown(both[:1]); !slices.Equal(got, both[:1]) {
		t.Errorf("of a change %q are news", got)
	}
	if got := a.end.Unknown(both[:1]); got != nil {
		t.Errorf("it was told, and %q are news", got)
	}
	if text := a.told(calls.Ask{}); strings.Contains(text, cart) || !strings.Contains(text, "/doc") {
		t.Errorf("the hook tells %q", text)
	}
	p.change(g, cart, "three")
	a.must(calls.Read, map[string]any{"uri": cart})
	if got := a.end.Unknown(both); got != nil {
		t.Errorf("it has read it, and %q are news", got)
	}
	p.change(g, cart, "four")
	a.must(calls.List, map[string]any{})
	if got := a.end.Unknown(both); got != nil {
		t.Errorf("it was reminded, and %q are news", got)
	}
	if got := a.end.Unknown([]string{app + "/none"}); !slices.Equal(got, []string{app + "/none"}) {
		t.Errorf("of what it was never told of %q are news", got)
	}
}
