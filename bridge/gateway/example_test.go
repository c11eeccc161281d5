package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pagewire/pagewire/bridge/gateway"
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
	defer agent.Close()
	ctx := context.Background()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"agent","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`,
	} {
		if err := agent.Write(ctx, []byte(message)); err != nil {
			fmt.Println(err)
		}
	}
	agent.Read(ctx) // the answer to initialize
	answer, err := agent.Read(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var list struct {
		Result struct{ Resources []struct{ URI, Title string } }
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		fmt.Println(err)
	}
	for _, r := range list.Result.Resources {
		fmt.Println(r.URI, "-", r.Title)
	}
	// Output: https://shop.example/cart - Cart - Shop (tab 1, shop.example)
}
