package tools_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/gateway/tools"
)

// Two origins have a tool of the same name. The second one gets its host as a suffix, for good.
func ExampleNames() {
	names := tools.NewNames("read_page_resource")
	fmt.Println(names.Of("https://shop.example", "search"))
	fmt.Println(names.Of("https://news.example", "search"))
	fmt.Println(names.LookLikeOurs("Read-Page-Resource"))
	// Output:
	// search
	// search_news_example
	// true
}
