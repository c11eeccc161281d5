package view_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/view"
)

// A screen is a home that prints the messages that it should send.
type screen struct{}

func (screen) ToView(id view.ID, m bridge.Message) {
	fmt.Printf("to View %d: %s%s%s\n", id, m.Head, m.Contents, m.Tail)
}

func (screen) ToServer(text []byte) { fmt.Printf("to the server: %s\n", text) }

// A View subscribes to a resource of its server: the Host subscribes there, once for all Views.
func Example() {
	host := view.New(view.Options{}, screen{})
	host.Back(0, view.Legacy)
	host.Learn(0, "shop://cart")
	if err := host.Open(0, 1); err != nil {
		fmt.Println(err)
	}
	host.Receive(0, 1, []byte(`{"jsonrpc":"2.0","method":"ui/notifications/initialized"}`))
	subscribe := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"shop://cart"}}`
	host.Receive(0, 1, []byte(subscribe))
	host.FromServer(0, []byte(`{"jsonrpc":"2.0","id":"pagewire:1","result":{}}`))
	updated := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://cart"}}`
	host.FromServer(0, []byte(updated))
	// Output:
	// to the server: {"jsonrpc":"2.0","id":"pagewire:1","method":"resources/subscribe","params":{"uri":"shop://cart"}}
	// to View 1: {"jsonrpc":"2.0","id":1,"result":{}}
	// to View 1: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"shop://cart"}}
}
