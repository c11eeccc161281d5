//go:build !js

package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// What a session of 40 turns adds to a model's context of what a page shows: a cart of 6 KB and a text of 40 KB, of which one or the
// other changes a little in 25 of the turns. The model has work of its own, a call of a page's tool in each turn.
//
//	polling    it reads both in each turn
//	since      it reads both in each turn, and gets all of what has changed, as before there were deltas
//	reminders  it reads both once, and asks no more
func BenchmarkSession(b *testing.B) {
	for b.Loop() {
		s := newSession(b)
		for turn := range 40 {
			s.turn(turn)
		}
		b.ReportMetric(float64(s.polled), "polling-B")
		b.ReportMetric(float64(s.since), "since-B")
		b.ReportMetric(float64(s.added), "reminders-B")
		b.ReportMetric(float64(s.added)/float64(s.polled), "of-polling")
		b.ReportMetric(float64(s.added)/float64(s.since), "of-since")
		b.ReportMetric(100*float64(s.told)/25, "%told")
	}
}

type session struct {
	b                    testing.TB
	g                    *Gateway
	page                 *testkit.Page
	agent                *mcp.ClientSession
	state                map[string]string
	polled, since, added int
	told                 int // changes that were in the next result
}

const text40 = app + "/text"

func newSession(b *testing.B) *session {
	s := &session{b: b, g: New(Options{}), state: map[string]string{cart: longCart(0), text40: longText(0)}}
	b.Cleanup(s.g.Close)
	s.page = testkit.NewPage(b, s.state)
	s.page.SetTool("work", testkit.Tool{})
	s.page.Attach(func(send func([]byte)) (testkit.Receiver, error) { return s.g.Attach(tabInfo("a"), send) })
	port, err := s.g.Connect("test")
	if err != nil {
		b.Fatal(err)
	}
	s.agent = testkit.Connect(b, mcpconn.Transport(port), testkit.Legacy).ClientSession
	for _, uri := range []string{cart, text40} {
		n := len(strings.Join(s.call(toolRead, map[string]any{"uri": uri, "max_chars": 100_000}), ""))
		s.added, s.since = s.added+n, s.since+n
	}
	return s
}

func (s *session) call(name string, args map[string]any) (texts []string) {
	r, err := s.agent.CallTool(s.b.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		s.b.Fatal(err)
	}
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return texts
}

// turn is one: in 25 of 40 something has changed before it, in 15 of these the cart.
func (s *session) turn(turn int) {
	const head = 60 // of the first line of a read that gives nothing new
	word := ""
	changes := turn%8 < 5
	for _, uri := range []string{cart, text40} {
		if changes && (uri == cart) == (turn%8 < 3) {
			word = fmt.Sprintf("change-%d", turn+1)
			s.state[uri] = longCart(turn + 1)
			if uri == text40 {
				s.state[uri] = longText(turn + 1)
			}
			before := s.revision(uri)
			s.page.Set(uri, s.state[uri])
			testkit.Eventually(s.b, "the gateway knows", func() bool { return s.revision(uri) > before })
			s.since += len(s.state[uri])
		}
		s.polled += len(s.state[uri]) + head
		s.since += head
	}
	texts := s.call("work", map[string]any{})
	for _, text := range texts[1:] {
		s.added += len(text)
		if word != "" && strings.Contains(text, word) {
			s.told++
		}
	}
}

func (s *session) revision(uri string) int64 {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	return s.g.tools.revision(uri)
}

func longCart(n int) string {
	var items []string
	for i := range 60 {
		note := ""
		if i == n%60 {
			note = fmt.Sprintf("change-%d", n)
		}
		items = append(items, fmt.Sprintf(`{"sku":"sku-%d","quantity":%d,"price":12.50,"title":"a thing that is in the cart","note":%q}`, i, i+1, note))
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

func longText(n int) string {
	var b strings.Builder
	for i := range 800 {
		if i == n*17%800 {
			fmt.Fprintf(&b, "change-%d\n", n)
		}
		fmt.Fprintf(&b, "line %d of a text that somebody is writing just now\n", i)
	}
	return b.String()
}
