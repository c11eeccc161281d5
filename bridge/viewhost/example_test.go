//go:build !js

package viewhost_test

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/viewhost"
)

// A host in Go gives its client's Views subscriptions. What a View sends goes through Receive first: what that does not
// take is the host's own business, as before.
func Example() {
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	host := viewhost.New(client, viewhost.Options{MaxSubscriptions: 5})
	defer host.Close()
	// session, err := client.Connect(...); host.Connected(session)

	view, err := host.Open(func(text []byte) { /* to the View's window */ })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.Receive([]byte(`{"jsonrpc":"2.0","method":"ui/notifications/size-changed","params":{}}`)))
	view.Close()
	fmt.Println(host.Stats().Views)
	// Output:
	// false
	// 0
}
