package mcpconn_test

import (
	"context"
	"fmt"

	"github.com/pagewire/pagewire/bridge/internal/mcpconn"
)

// Push does not block, so the holder of a lock may call it. Only Next waits.
func ExampleOutbox() {
	box := mcpconn.NewOutbox(func(int) {})
	box.Push([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	fmt.Println(box.Size())
	message, err := box.Next(context.Background())
	fmt.Println(string(message), err)
	box.Close(false)
	_, err = box.Next(context.Background())
	fmt.Println(err)
	// Output:
	// 54
	// {"jsonrpc":"2.0","method":"notifications/initialized"} <nil>
	// EOF
}
