package gateway

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/tools/own"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// records are Conversations in memory.
type records struct {
	mu     sync.Mutex
	byName map[string][]byte
}

func (r *records) Load(name string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}

func (r *records) Save(name string, record []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[name] = record
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
func (a *talker) told(q Ask) string {
	a.t.Helper()
	return changes(a.t, a.end, q)
}

// A conversation that goes on in another process is told at its first prompt of the changes since its last prompt: at
// the same daemon, and at the next.
func TestConversationGoesOn(t *testing.T) {
	const doc = app + "/doc"
	for name, c := range map[string]struct {
		gap  func(*testPage) // between the two processes
		want []string        // the URIs that are told
	}{
		"unchanged":          {func(*testPage) {}, nil},
		"changed":            {func(p *testPage) { p.page.Set(cart, "secret 2") }, []string{cart}},
		"changed, and back":  {func(p *testPage) { p.page.Set(cart, "secret 1") }, nil},
		"what was not read":  {func(p *testPage) { p.page.Set(doc, "secret 2") }, []string{doc}},
		"reloaded":           {func(p *testPage) { p.page.Epoch("another document") }, []string{doc}},
		"reloaded, and both": {func(p *testPage) { p.page.Epoch("another"); p.page.Edit(cart, "secret 3") }, []string{cart, doc}},
	} {
		for _, daemon := range []string{"the same daemon", "the next daemon", "the next daemon, to which the page comes later"} {
			t.Run(name+", "+daemon, func(t *testing.T) {
				if strings.HasPrefix(name, "reloaded") && daemon == "the same daemon" {
					t.Skip("there a reload is a change as any other") // TestPrompt
				}
				kept := &records{byName: map[string][]byte{}}
				g := newGateway(t, Options{Conversations: kept, Reminders: RemindersOff})
				p := openPage(t, g, tabInfo("a"), map[string]string{cart: "secret 1", doc: "secret 1"})
				a := openTalker(t, g)
				ask := Ask{Session: talk}
				a.told(ask)
				a.must(own.Read, map[string]any{"uri": cart})
				testkit.Eventually(t, "the page is asked to tell of its resources", func() bool {
					return p.page.Watches(cart) && p.page.Watches(doc)
				})
				a.end.Close()
				if record := string(kept.Load(talk)); !strings.Contains(record, cart) || strings.Contains(record, "secret") {
					t.Fatalf("kept: %s", record)
				}
				if daemon != "the same daemon" {
					g.Close()
				}
				c.gap(p)
				switch daemon {
				case "the next daemon":
					g = newGateway(t, Options{Conversations: kept})
					p.attach(g, tabInfo("a"))
					a = openTalker(t, g)
				case "the same daemon":
					a = openTalker(t, g)
				default:
					g = newGateway(t, Options{Conversations: kept})
					a = openTalker(t, g)
				}
				answer := make(chan string, 1)
				go func() {
					text, _ := a.end.Changes(t.Context(), ask) // "" is reported below
					answer <- text
				}()
				if strings.HasSuffix(daemon, "later") {
					p.attach(g, tabInfo("a"))
				}
				text := <-answer
				for _, uri := range []string{cart, doc} {
					if strings.Contains(text, `"`+uri+`"`) != slices.Contains(c.want, uri) {
						t.Errorf("told %q, want %q", text, c.want)
					}
				}
				if strings.Contains(text, "secret") {
					t.Errorf("contents that nobody chose: %q", text)
				}
				if text := a.told(ask); text != "" {
					t.Errorf("told twice: %q", text)
				}
				p.change(g, cart, "secret 4")
				if text := a.told(ask); !strings.Contains(text, cart) {
					t.Errorf("then told %q", text)
				}
			})
		}
	}
}

// A conversation's record is not used for another one in another process, nor for itself after Forget. In one process
// it stays in use while the program is in another conversation.
func TestConversationsAreApart(t *testing.T) {
	kept := &records{byName: map[string][]byte{}}
	g := newGateway(t, Options{Conversations: kept})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one"})
	a := openTalker(t, g)
	a.told(Ask{Session: talk})
	a.must(own.Read, map[string]any{"uri": cart})
	if text := a.told(Ask{Session: "session 2"}); text != "" {
		t.Errorf("another conversation begins with %q", text)
	}
	p.change(g, cart, "two")
	if text := a.told(Ask{Session: talk}); !strings.Contains(text, cart) {
		t.Errorf("the first goes on with %q", text)
	}
	p.change(g, cart, "three")
	a.told(Ask{Session: talk, Forget: true})
	a.end.Close()
	b := openTalker(t, g)
	if text := b.told(Ask{Session: "session 3"}); text != "" {
		t.Errorf("in another process another conversation begins with %q", text)
	}
	if !strings.Contains(string(kept.Load(talk)), `"seen":[]`) {
		t.Errorf("what was forgotten is kept: %s", kept.Load(talk))
	}
	// Invalid records are left out.
	for _, record := range []string{"", "{", `{"v":2}`, `{"v":1,"agent":{"seen":[{"u":"` + cart + `"}],"told":[{}]}}`} {
		kept.Save("session 4", []byte(record))
		if text := openTalker(t, g).told(Ask{Session: "session 4"}); text != "" {
			t.Errorf("%s: told %q", record, text)
		}
	}
}

// A hook whose agent has no session is told of the changes since an earlier daemon's last answer.
func TestConversationAtTheNextDaemon(t *testing.T) {
	kept := &records{byName: map[string][]byte{}}
	g := newGateway(t, Options{Conversations: kept})
	p := openPage(t, g, tabInfo("a"), map[string]string{cart: "one"})
	prompt(t, g, Ask{Session: talk})
	testkit.Eventually(t, "the page is asked to tell of the cart", func() bool { return p.page.Watches(cart) })
	prompt(t, g, Ask{Session: talk})
	g.Close()
	p.page.Set(cart, "two")
	g = newGateway(t, Options{Conversations: kept})
	p.attach(g, tabInfo("a"))
	if text := prompt(t, g, Ask{Session: talk}); !strings.Contains(text, cart) {
		t.Errorf("told %q", text)
	}
	if text := prompt(t, g, Ask{Session: talk}); text != "" {
		t.Errorf("told twice: %q", text)
	}
}
