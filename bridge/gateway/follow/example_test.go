package follow_test

import (
	"fmt"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A page that reports all its changes.
type page struct{ revisions *follow.Revisions }

func (page) Watch(_ string, then func(string)) { then("") }
func (page) Unwatch(string)                    {}
func (page) Changed()                          {}
func (page) Now() time.Time                    { return time.Now() }

func Example() {
	const cart = "https://shop.example/cart"
	p := &page{}
	p.revisions = follow.New(p)
	agent := p.revisions.NewMemory(seen.Limits{})

	p.revisions.Track([]string{cart}, func(failed map[string]string) { fmt.Println("failed:", len(failed)) })
	l := live.DecodeContents(cart, []byte(`[{"uri":"`+cart+`","text":"a cup"}]`))
	l.Revision = p.revisions.Revision(cart)
	agent.Given(l, "")
	fmt.Println("news:", len(agent.News("")))

	p.revisions.Updated(cart)
	fmt.Println("news:", agent.News("")[0].URI)
	// Output:
	// failed: 0
	// news: 0
	// news: https://shop.example/cart
}
