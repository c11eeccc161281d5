package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const (
	turns, changes = 40, 25

	reminded     = "Pagewire, reminders"
	polling      = "Pagewire, both read in each turn"
	agentBrowser = "agent-browser 0.41.2"
)

// models are the families that measure a model's cost of knowing a page's state: -agents measures
// only these.
//
// Each contender plays one script in its own browser. A page shows a cart of 6 KB and a text of 40
// KB. The model looks once. Then it has other work in 40 turns, and before 25 of these one item or
// one line changes, and stays so. With reminders it calls the page's tool; of any page its
// program's hook tells; the others ask in each turn. The count is the part of the page's state that
// is added to the model's context.
func (b *bench) models() []family {
	lines, pre := b.sessions("lines", "<div id=text></div>"),
		b.sessions("one `<pre>`", "<pre id=text></pre>")
	lines.rows = append(lines.rows,
		row{"bytes", "model: page state added in 40 turns, beside reading all each time", "B",
			goal{most: 0.1, of: polling}, reminded})
	return []family{lines, pre}
}

// sessions are of a page whose content is as short as possible in a snapshot: each item is one
// text, and so is each line, or the whole text.
func (b *bench) sessions(shape, text string) family {
	page := func(tag string) string { return "<div id=cart></div>" + text + tag + inline("shop") }
	f := family{name: "model: text as " + shape, rounds: 1, limit: 4 * time.Minute, rows: []row{
		{"first", "model: first look, text as " + shape, "B", goal{most: 1, of: best}, reminded},
		{"later", "model: 25 changes in the 40 turns behind it, text as " + shape, "B",
			goal{most: 1, of: best}, reminded},
		{"bytes", "model: page state added in 40 turns, text as " + shape, "B",
			goal{most: 1, of: best}, reminded},
		{"first", "model: first look at any page, text as " + shape, "B", goal{most: 1, of: best},
			anyPage},
		{"later", "model: 25 changes of any page in the 40 turns behind it, text as " + shape, "B",
			goal{most: 1, of: best}, anyPage},
		{"told", "model: changes older than 1 s that are in the next result, text as " + shape,
			"%", goal{most: 100, least: true}, ""},
		{"asking", "model: turns spent on asking, text as " + shape, "", goal{exact: true}, ""},
	}}
	for _, r := range readers {
		switch {
		case r.name == anyPage:
			r.html = page("")
		case r.kind == ours:
			r.html = page(gatewayTag)
		default:
			r.html = page(pagewireTag)
		}
		f.contenders = append(f.contenders,
			contender{r.name, r.kind, func(ctx context.Context) (figures, error) {
				s := &session{rig: &rig{rival: r.rival, b: b, changes: make(chan string)}}
				if err := s.openOnce(ctx); err != nil {
					return nil, err
				}
				return s.play(ctx, r)
			}})
	}
	return f
}

// A reader is a way to know a page's state. begin looks before the first turn, and look in each
// turn: they return the part of the page's state that is added to the context. Without begin, look
// looks before the first turn, too.
type reader struct {
	rival
	begin, look func(context.Context, *session) (text string, err error)
}

var readers = []reader{
	{rival: shopper(reminded), begin: readBoth, look: work},
	{rival: shopper(polling), look: readBoth},
	{rival: shows(""), begin: readShown, look: hear},
	{rival: snapshots(devtools), look: snapshot("take_snapshot")},
	{rival: snapshots(playwrite), look: snapshot("browser_snapshot")},
	{rival: rival{name: agentBrowser, kind: peer, ready: findsTab},
		look: func(ctx context.Context, s *session) (string, error) {
			return s.cli(ctx, "snapshot", "--delta")
		}},
}

func shopper(name string) rival {
	return rival{name: name, kind: ours, serve: overSocket.serve, ready: offers("work")}
}

func snapshots(name string) rival {
	for _, r := range rivals {
		if r.name == name {
			r.read, r.call = nil, nil
			return r
		}
	}
	panic("no rival " + name)
}

type session struct {
	*rig
	n     int         // of the last change
	notes [60]string  // of the cart's items
	marks [800]string // at the ends of the text's lines
}

// change makes the page show another state, and waits until it does.
func (s *session) change(ctx context.Context, n int) error {
	s.n = n
	var items, lines []string
	for i, note := range s.notes {
		items = append(items,
			fmt.Sprintf(
				`{"sku":"sku-%d","quantity":%d,"price":12.50,"title":"a thing that is in the cart","note":%q}`,
				i, i+1, note))
	}
	for i, mark := range s.marks {
		lines = append(lines,
			fmt.Sprintf("line %d of a text that somebody is writing just now%s", i, mark))
	}
	state, err := json.Marshal(map[string]any{"n": n, "cart": `{"items":[` +
		strings.Join(items, ",") + `]}`,
		"text": strings.Join(lines, "\n")})
	if err != nil {
		return err
	}
	select {
	case s.changes <- string(state):
	case <-ctx.Done():
		return fmt.Errorf("the page does not ask for changes: %w", ctx.Err())
	}
	return until(ctx, time.Millisecond, func() error {
		if s.done.Load() != int64(n) {
			return fmt.Errorf("the page has not shown change %d", n)
		}
		return nil
	})
}

func (s *session) play(ctx context.Context, r reader) (figures, error) {
	if err := s.change(ctx, 1); err != nil {
		return nil, err
	}
	begin, asking := r.begin, 0
	if begin == nil {
		begin, asking = r.look, turns
	}
	text, err := begin(ctx, s)
	if err != nil {
		return nil, err
	}
	first, later, told := len(text), 0, 0
	for turn := range turns {
		word := ""
		if part := turn % 8; part < 5 {
			word = fmt.Sprintf("change-%d-", turn+1)
			if part < 3 {
				s.notes[turn+1] = word
			} else {
				s.marks[(turn+1)*17%len(s.marks)] = " " + word
			}
			if err := s.change(ctx, turn+2); err != nil {
				return nil, err
			}
			if asking == 0 {
				time.Sleep(time.Second) // the maximum age of a change
			}
		}
		text, err := r.look(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", turn+1, err)
		}
		later += len(text)
		if word != "" && strings.Contains(text, word) {
			told++
		}
	}
	return figures{"first": float64(first), "later": float64(later),
		"bytes": float64(first + later),
		"told":  100 * float64(told) / changes, "asking": float64(asking)}, nil
}

func work(ctx context.Context, s *session) (string, error) {
	text, err := s.agent.tool(ctx, "work", map[string]any{})
	return strings.TrimPrefix(text, "done"), err
}

func readBoth(ctx context.Context, s *session) (all string, err error) {
	for _, name := range []string{"/cart", "/text"} {
		text, err := s.reads(ctx, s.site.URL+name)
		if err != nil {
			return "", err
		}
		all += text
	}
	return all, nil
}

func readShown(ctx context.Context, s *session) (string, error) { return s.reads(ctx, s.shown()) }

func (s *session) reads(ctx context.Context, uri string) (string, error) {
	return s.agent.tool(ctx, "read_page_resource", map[string]any{"uri": uri, "max_chars": 100_000})
}

// hear is what the hook of an agent's program adds to a prompt.
func hear(ctx context.Context, s *session) (string, error) {
	cmd := testcmd.CommandContext(ctx, s.b.program(), "changes", "--hub", local(s.port), "--uri",
		s.shown())
	cmd.Env = s.env()
	text, err := cmd.Output()
	return string(text), err
}

// snapshot returns a look at the whole page by a tool.
func snapshot(tool string) func(context.Context, *session) (string, error) {
	return func(ctx context.Context, s *session) (string, error) {
		arguments := map[string]any{}
		if s.name == devtools {
			arguments["pageId"] = s.page
		}
		return s.agent.tool(ctx, tool, arguments)
	}
}

// findsTab makes the page agent-browser's tab.
func findsTab(ctx context.Context, r *rig) error {
	list, err := r.cli(ctx, "tab", "list")
	if err != nil {
		return err
	}
	tab := regexp.MustCompile(`\[(t\d+)\].*` + regexp.QuoteMeta(r.site.URL+"/page")).
		FindStringSubmatch(list)
	if tab == nil {
		return fmt.Errorf("agent-browser lists %q", list)
	}
	r.b.onClose(func() { _, _ = r.cli(context.Background(), "close") }) // it ends the process
	_, err = r.cli(ctx, "tab", tab[1])
	return err
}

// cli runs agent-browser's command, which connects to the rig's browser. Its first one starts a
// process that later ones find by their home directory. It is a native program, which no guard can
// limit to this machine: it connects only to the browser, and works where there is no network.
func (r *rig) cli(ctx context.Context, args ...string) (string, error) {
	cmd := testcmd.CommandContext(ctx, "e2e/peers/node_modules/.bin/agent-browser", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, r.entry(),
		"AGENT_BROWSER_CDP=" + r.browser.URL}
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("agent-browser %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return string(text), nil
}
