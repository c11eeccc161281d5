package live_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/gateway/live"
)

func Example() {
	const uri = "https://shop.example/cart"
	before := live.DecodeContents(uri, []byte(`[{"uri":"`+uri+`","text":"{\"items\":[\"a cup\"],\"total\":1}"}]`))
	after := live.DecodeContents(uri, []byte(`[{"uri":"`+uri+`","text":"{\"items\":[\"a cup\"],\"total\":2}"}]`))
	before.Revision, after.Revision = 41, 42

	has := before.Version("") // the version of an agent that was given it
	fmt.Println(live.Same(has, after))
	fmt.Println(live.ChangeOf(has, after, "", 600))
	// Output:
	// false
	// {"uri":"https://shop.example/cart","revision":42,"now":{"items":["a cup"],"total":2}}
}
