package calls_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A page has one resource, and reports all its changes.
type page struct {
	*follow.Books
	at   *follow.Page
	text string
	deaf string // the URI whose watch it does not confirm
}

// open opens the page.
func (p *page) open() *page {
	p.at = follow.NewPage(func(uri string, on bool) {
		if on && uri != p.deaf {
			p.at.Confirm(uri)
		}
	})
	p.Books = follow.New(p)
	return p
}

func (p *page) Lead(uri string) (*follow.Page, string, string) { return p.at, uri, uri }
func (*page) Sees(string) bool                                 { return true }
func (*page) Refuses(string, int) string                       { return "" }
func (*page) Pace(string) (coalesce.Pace, bool)                { return coalesce.Pace{}, true }
func (*page) Moved(string)                                     {}
func (*page) Changed()                                         {}
func (*page) Time() coalesce.Time                              { return 0 }
func (*page) Now() time.Time                                   { return time.Unix(1800000000, 0) }

// A call whose reads answer at once.
type call struct {
	*calls.Turn
	page   *page
	memory *follow.Memory
}

func (call) Sees(string) bool             { return true }
func (call) Reminds() (told, inline bool) { return false, false }

func (call) Party() string { return "agent" }

func (c call) Memory() *follow.Memory { return c.memory }
func (call) Older() map[string]bool   { return nil }
func (c call) Look(_ context.Context, uris ...string) map[string]*live.Look {
	found := map[string]*live.Look{}
	for _, uri := range uris {
		c.page.Track([]string{uri}, func(string, string) {})
		l := live.DecodeContents(uri, fmt.Appendf(nil, `[{"uri":%q,"text":%q}]`, uri, c.page.text))
		l.URI, l.Revision = uri, c.page.Found(uri, c.page.Revision(uri), l.Hash)
		found[uri] = l
	}
	return found
}
func (call) Apart(ctx context.Context, _ string, work func(context.Context)) { work(ctx) }
func (call) Holds() bool                                                     { return true }
func (call) Progress(int, int, string)                                       {}
func (call) Complete(result []byte) {
	var r struct{ Content []live.TextContent }
	json.Unmarshal(result, &r)
	for _, c := range r.Content {
		fmt.Println(c.Text)
	}
}

func Example() {
	p := (&page{text: `{"cups":1,"saucers":0,"note":"for the table in the garden"}`}).open()
	tools := calls.New(calls.Options{Revisions: p.Books, PageChars: 8000})
	turn := calls.Begin(&sync.Mutex{})
	defer turn.End()
	agent := call{turn, p, p.NewMemory(seen.Limits{})}

	const args = `{"uri":"https://shop.example/cart"`
	tools.Run(context.Background(), agent, calls.Read, []byte(args+`}`))
	p.text = `{"cups":2,"saucers":0,"note":"for the table in the garden"}`
	tools.Run(context.Background(), agent, calls.Read, []byte(args+`,"since":1800000000000001}`))
	// Output: {"revision":1800000000000001,"uri":"https://shop.example/cart"}
	// {"cups":1,"saucers":0,"note":"for the table in the garden"}
	// {"revision":1800000000000002,"uri":"https://shop.example/cart","since":1800000000000001,"delta":"json-patch"}
	// [{"op":"replace","path":"/cups","value":2}]
}
