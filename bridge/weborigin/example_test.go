package weborigin_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/weborigin"
)

func ExampleMatch() {
	fmt.Println(weborigin.Match("https://*.shop.example", "https://www.shop.example"))
	fmt.Println(weborigin.Match("https://*.shop.example", "https://shop.example"))
	fmt.Println(weborigin.Match(weborigin.Loopback, "http://localhost:3000"))
	// Output:
	// true
	// false
	// true
}
