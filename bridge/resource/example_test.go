package resource_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/resource"
)

func ExampleRegistry() {
	shop := resource.NewRegistry(resource.Rule{Origin: "https://shop.example"}, 100, 8192)
	for _, uri := range []string{"https://shop.example/cart", "https://shop.example/item/{id}",
		"https://b.example/cart"} {
		if _, err := shop.Add(
			resource.Resource{URI: uri, Name: "a resource", Size: -1}); err != nil {
			fmt.Println(err)
		}
	}
	entry, params, err := shop.Resolve("https://shop.example/item/7")
	fmt.Println(entry.Template(), params[0].Name, params[0].Values, err)
	// Output:
	// URI is not at the origin https://shop.example
	// true id [7] <nil>
}
