package dial

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A page that reads nothing is given up when too much waits for it. Other pages of its user go on.
func TestPageThatTakesNothing(t *testing.T) {
	p := openPlaceWith(t, node.Options{}, 1<<20)
	slow := p.dialBy(app, testkit.TakesLittle(t)).begin(p.login.Ticket("alice", app), "tab-slow", nil)
	slow.SetTool("take", testkit.Tool{})
	page := p.dial(app).run(p.login.Ticket("alice", app), "tab-quick", map[string]string{app + "/doc": "one"})
	a, told := p.agent("alice"), p.agent("alice")
	told.Shows(app + "/doc")
	told.Watch(app + "/doc")
	testkit.Eventually(t, "the tool is there", func() bool { return slices.Contains(a.ToolNames(), "take") })
	large := map[string]any{"x": strings.Repeat("x", 1<<20)}
	ended := make(chan bool, 8)
	for range cap(ended) {
		go func() {
			r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: "take", Arguments: large})
			ended <- err != nil || r.IsError
		}()
	}
	page.Set(app+"/doc", "two")
	told.Told(app + "/doc")
	testkit.Eventually(t, "the page is given up", func() bool { return p.node.Stats().Pages == 1 })
	for range cap(ended) {
		if !testkit.Receive(t, "a call ends", ended) {
			t.Error("a call that nobody has taken has a result")
		}
	}
	page.Set(app+"/doc", "three")
	told.Told(app + "/doc")
}

// A page above its user's budget is paused by its WebSocket, and no message is lost. Another user's page goes on
// meanwhile.
func TestPageThatSaysTooMuch(t *testing.T) {
	p := openPlaceWith(t, node.Options{UserMessages: 100}, 0)
	loud := p.dial(app)
	loud.run(p.login.Ticket("alice", app), "tab-loud", map[string]string{app + "/doc": "one"})
	quiet := p.dial(app).run(p.login.Ticket("bob", app), "tab-quiet", map[string]string{app + "/doc": "one"})
	a, b := p.agent("alice"), p.agent("bob")
	a.Shows(app + "/doc")
	b.Shows(app + "/doc")
	b.Watch(app + "/doc")
	const notes = 600 // 500 at once, and then 100 a second
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range notes {
			loud.say(fmt.Sprintf(`[["note",{"title":"title %d"}]]`, i))
		}
		loud.say(`[["register","{\"uri\":\"` + app + `/last\",\"name\":\"last\"}"]]`)
	}()
	testkit.Eventually(t, "the page is not heard for a while", func() bool { return p.node.Stats().Pauses > 0 })
	quiet.Set(app+"/doc", "two")
	b.Told(app + "/doc")
	testkit.Ends(t, "it has said all", done)
	a.Shows(app+"/doc", app+"/last")
	if got := p.node.Stats(); len(got.Refused) != 0 || got.Pages != 2 {
		t.Errorf("there is %+v", got)
	}
}
