package wire_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/wire"
)

func ExampleDecode() {
	text := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"https://shop.example/cart"}}`
	m, failure := wire.Decode([]byte(text), 64)
	if failure != nil {
		fmt.Println(failure)
		return
	}
	uri, _ := m.Params.Get("uri").Text()
	fmt.Println(m.Method, uri)

	answer := wire.Text(nil).Result(m.ID).Raw(`{"contents":[`).Raw(`{"uri":`).Str(uri).
		Raw(`,"text":"1 apple"}]}}`)
	fmt.Println(string(answer))
	// Output:
	// resources/read https://shop.example/cart
	// {"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"https://shop.example/cart","text":"1 apple"}]}}
}
