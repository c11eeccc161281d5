package gateway_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// A page sends frames of its link, an agent messages of MCP; the caller transports both.
func Example() {
	g := gateway.New(gateway.Options{})
	defer g.Close()

	page, err := g.Attach(gateway.PageInfo{Tab: "1", Origin: "https://shop.example", Title: "Shop"},
		func(frame []byte) {
			// to the page
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, frame := range []string{
		`[["hello",1,"0",{"epoch":"e1"}]]`,
		`[["register","{\"uri\":\"https://shop.example/cart\",\"name\":\"Cart\"}"]]`,
	} {
		if err := page.Receive([]byte(frame)); err != nil {
			fmt.Println(err)
		}
	}

	agent, err := g.Connect("example")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(ctx, mcpconn.Transport(agent), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	list, err := session.ListResources(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range list.Resources {
		fmt.Println(r.URI, "-", r.Title)
	}
	// Output: https://shop.example/cart - Cart - Shop (tab 1, shop.example)
}
