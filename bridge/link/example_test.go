package link_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/link"
)

// A listener is a core that prints the page's calls.
type listener struct{}

func (listener) Hello(a link.About) error {
	fmt.Println("hello of", a.Epoch)
	return nil
}
func (listener) Register(r bridge.Resource, _ string) error {
	fmt.Println("offers", r.URI)
	return nil
}
func (listener) Unregister(uri string)            { fmt.Println("withdraws", uri) }
func (listener) Touch(uri string, revision int64) { fmt.Println("changed", uri, revision) }
func (listener) SetTools(tools []bridge.Tool, _ string) error {
	fmt.Println("tools", len(tools))
	return nil
}
func (listener) Note(link.About) {}
func (listener) Bye(gone bool)   { fmt.Println("bye", gone) }

func Example() {
	const uri = "https://shop.example/cart"
	peer := link.New(0, listener{}, "0", link.Limits{})
	hear := func(frame string) {
		if err := peer.Receive(0, []byte(frame)); err != nil {
			fmt.Println(err)
		}
	}
	hear(`[["hello",1,"0",{"epoch":"e1"}]]`)
	hear(`[["register","{\"uri\":\"` + uri + `\",\"name\":\"Cart\"}"]]`)
	peer.Read(uri, uri, "",
		func(a link.Answer) { fmt.Println(string(a.Contents), "at revision", a.Revision) })
	fmt.Println("to the page:", string(peer.Take(0)))
	hear(`=1 4 [{"uri":"` + uri + `","text":"1 apple"}]`)
	// Output:
	// hello of e1
	// offers https://shop.example/cart
	// to the page: [["read",1,"https://shop.example/cart","https://shop.example/cart",""]]
	// [{"uri":"https://shop.example/cart","text":"1 apple"}] at revision 4
}
