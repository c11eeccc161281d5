package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// models are the families that measure a model's cost of knowing a page's state: -agents measures only these.
func (b *bench) models() []family { return []family{b.sessions()} }

const (
	turns, changes = 40, 25

	reminded = "Pagewire, reminders"
	polling  = "Pagewire, both read in each turn"
)

// sessions play one script, for each contender in its own browser. A page shows a cart of 6 KB and a text of 40 KB. The
// model has other work in 40 turns, and before 25 of these the cart or the text changes a little. With reminders it
// reads both once, and then calls the page's tool. A contender without Pagewire asks for the page's state in each turn.
// The count is the part of the page's state that is added to the model's context.
func (b *bench) sessions() family {
	f := family{
		name: "model", rounds: 1, limit: 4 * time.Minute,
		rows: []row{
			{"bytes", "model: page state added in 40 turns, beside reading all each time", "B",
				goal{most: 0.1, of: polling}, reminded},
			{"bytes", "model: page state added in 40 turns, beside snapshots", "B", goal{}, reminded},
			{"told", "model: changes older than 1 s that are in the next result", "%", goal{most: 100, least: true}, ""},
			{"asking", "model: turns spent on asking", "", goal{exact: true}, ""},
		},
	}
	for _, r := range readers {
		f.contenders = append(f.contenders, contender{r.name, r.kind, func(ctx context.Context) (figures, error) {
			s := &session{rig: &rig{rival: r.rival, b: b, changes: make(chan string)}}
			if err := s.openOnce(ctx); err != nil {
				return nil, err
			}
			return s.play(ctx, r)
		}})
	}
	return f
}

// A reader is a way to know a page's state. begin looks before the first turn, and look in each turn. text is the part
// of the page's state that is added to the context.
type reader struct {
	rival
	begin, look func(context.Context, *session) (text string, err error)
	asks        bool
}

var readers = []reader{
	{rival: shopper(reminded), begin: readBoth, look: work},
	{rival: shopper(polling), look: readBoth, asks: true},
	{rival: snapshots(devtools), look: snapshot("take_snapshot"), asks: true},
	{rival: snapshots(playwrite), look: snapshot("browser_snapshot"), asks: true},
}

// shop is the page. Its content is as short as possible in a snapshot: a line for each item, and one for the text.
func shop(tag string) string { return `<ul id=cart></ul><pre id=text></pre>` + tag + inline("shop") }

func shopper(name string) rival {
	return rival{
		name: name, kind: ours, html: shop(gatewayTag), serve: overSocket.serve,
		ready: offers("work"),
	}
}

func snapshots(name string) rival {
	for _, r := range rivals {
		if r.name == name {
			r.html, r.read, r.call = shop(pagewireTag), nil, nil
			return r
		}
	}
	panic("no rival " + name)
}

type session struct {
	*rig
	n          int // of the last change
	cart, text string
}

// change makes the page show another state, and waits until it does.
func (s *session) change(ctx context.Context, n int, cart, text string) error {
	s.n, s.cart, s.text = n, cart, text
	state, err := json.Marshal(map[string]any{"n": n, "cart": cart, "text": text})
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
	if err := s.change(ctx, 1, cartOf(0), textOf(0)); err != nil {
		return nil, err
	}
	bytes, told, asking := 0, 0, 0
	if r.begin != nil {
		text, err := r.begin(ctx, s)
		if err != nil {
			return nil, err
		}
		bytes += len(text)
	}
	for turn := range turns {
		word := ""
		if part := turn % 8; part < 5 {
			word = fmt.Sprintf("change-%d-", turn+1)
			cart, text := s.cart, textOf(turn+1)
			if part < 3 {
				cart, text = cartOf(turn+1), s.text
			}
			if err := s.change(ctx, turn+2, cart, text); err != nil {
				return nil, err
			}
			if !r.asks {
				time.Sleep(time.Second) // the maximum age of a change
			}
		}
		text, err := r.look(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("turn %d: %w", turn+1, err)
		}
		bytes += len(text)
		if word != "" && strings.Contains(text, word) {
			told++
		}
		if r.asks {
			asking++
		}
	}
	return figures{"bytes": float64(bytes), "told": 100 * float64(told) / changes, "asking": float64(asking)}, nil
}

func work(ctx context.Context, s *session) (string, error) {
	text, err := s.agent.tool(ctx, "work", map[string]any{})
	return strings.TrimPrefix(text, "done"), err
}

func readBoth(ctx context.Context, s *session) (all string, err error) {
	for _, name := range []string{"/cart", "/text"} {
		text, err := s.agent.tool(ctx, "read_page_resource", map[string]any{"uri": s.site.URL + name, "max_chars": 100_000})
		if err != nil {
			return "", err
		}
		all += text
	}
	return all, nil
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

func cartOf(n int) string {
	var items []string
	for i := range 60 {
		note := ""
		if i == n%60 {
			note = fmt.Sprintf("change-%d-", n)
		}
		items = append(items,
			fmt.Sprintf(`{"sku":"sku-%d","quantity":%d,"price":12.50,"title":"a thing that is in the cart","note":%q}`,
				i, i+1, note))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

func textOf(n int) string {
	var b strings.Builder
	for i := range 800 {
		if i == n*17%800 {
			fmt.Fprintf(&b, "change-%d-\n", n)
		}
		fmt.Fprintf(&b, "line %d of a text that somebody is writing just now\n", i)
	}
	return b.String()
}
