//go:build !js

package bridge_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge"
)

// A shop is a host with one resource. It answers immediately; a host that cannot do so keeps the CallID, and calls
// Complete later.
type shop struct {
	engine *bridge.Engine
	cart   string
	shaken bool
}

func (s *shop) Send(_ bridge.PortID, m bridge.Message) {
	if s.shaken {
		fmt.Println(string(m.Head) + string(m.Contents) + string(m.Tail))
	}
}

func (s *shop) Read(id bridge.CallID, r bridge.Request) {
	contents := `[{"uri":"` + r.URI + `","text":"` + s.cart + `"}]`
	s.engine.Complete(0, id, bridge.Result{Contents: []byte(contents)})
}

func (s *shop) End(bridge.CallID) {}

func (s *shop) Watched(uri string, on bool) { fmt.Println("watched:", uri, on) }

// An engine is called with the time, and calls its host: it starts nothing of its own.
func Example() {
	host := &shop{cart: "1 apple"}
	host.engine = bridge.New(bridge.Options{Rule: bridge.Rule{Origin: "https://shop.example"}},
		host)

	const uri = "https://shop.example/cart"
	if err := host.engine.Register(0,
		bridge.Resource{URI: uri, Name: "Cart", Size: -1}); err != nil {
		fmt.Println(err)
	}
	const agent = bridge.PortID(1)
	host.engine.Open(0, agent)
	send := func(text string) { host.engine.Receive(0, agent, []byte(text)) }
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"agent","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	host.shaken = true
	send(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`)

	host.cart = "2 apples"
	host.engine.Touch(0, uri)
	send(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"` + uri + `"}}`)
	// Output:
	// watched: https://shop.example/cart true
	// {"jsonrpc":"2.0","id":2,"result":{}}
	// {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"https://shop.example/cart"}}
	// {"jsonrpc":"2.0","id":3,"result":{"contents":[{"uri":"https://shop.example/cart","text":"2 apples"}]}}
}
