package coalesce_test

import (
	"fmt"

	"github.com/pagewire/pagewire/bridge/coalesce"
)

// A cart changes every 10 ms for 150 ms. Subscribers are notified immediately, then once in 100 ms, and after the end.
func Example() {
	var queue coalesce.Queue[string]
	cart := &coalesce.Item[string]{Value: "cart"}
	pace := coalesce.Pace{Interval: 100, Burst: 1}

	for now := coalesce.Time(0); now < 150; now += 10 {
		if queue.Touch(now, cart, pace) {
			fmt.Println(now, cart.Value)
		}
		if it := queue.Pop(now, func(string) coalesce.Pace { return pace }); it != nil {
			fmt.Println(now, it.Value)
		}
	}
	due, _ := queue.Next()
	fmt.Println(due, queue.Pop(due, func(string) coalesce.Pace { return pace }).Value)
	// Output:
	// 0 cart
	// 100 cart
	// 200 cart
}
