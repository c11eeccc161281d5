package follow_test

import (
	"fmt"
	"time"

	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A page that reports all its changes.
type page struct{ at *follow.Page }

func (p *page) Lead(uri string) (*follow.Page, string, string) { return p.at, uri, uri }
func (*page) Sees(string) bool                                 { return true }
func (*page) Refuses(string, int) string                       { return "" }
func (*page) Pace(string) (coalesce.Pace, bool)                { return coalesce.Pace{}, true }
func (*page) Moved(string)                                     {}
func (*page) Changed()                                         {}
func (*page) Time() coalesce.Time                              { return 0 }
func (*page) Now() time.Time                                   { return time.Now() }

func Example() {
	const cart = "https://shop.example/cart"
	p := &page{}
	p.at = follow.NewPage(func(uri string, on bool) {
		if on {
			p.at.Confirm(uri)
		}
	})
	books := follow.New(p)
	agent := books.NewMemory(seen.Limits{})

	books.Track([]string{cart}, func(uri, why string) { fmt.Printf("%s is watched: %v\n", uri, why == "") })
	l := live.DecodeContents(cart, []byte(`[{"uri":"`+cart+`","text":"a cup"}]`))
	l.Revision = books.Revision(cart)
	agent.Given(l, "")
	fmt.Println("news:", len(agent.News("")))

	books.Updated(cart)
	fmt.Println("news:", agent.News("")[0].URI)
	// Output:
	// https://shop.example/cart is watched: true
	// news: 0
	// news: https://shop.example/cart
}
