package gateway

import (
	"cmp"
	"maps"
	"slices"
)

// maxNumbers is how many tabs' numbers are kept. A tab that comes back has its earlier number, and no other tab ever
// has that. But a page may come in a new tab each time, and a key and its number take 150 bytes.
const maxNumbers = 10_000

// trimNumbers limits the numbers to maxNumbers: it forgets the oldest half of those whose tabs are gone. The greatest
// number ever given is kept apart.
func (c *catalog) trimNumbers() {
	if len(c.numbers) <= maxNumbers {
		return
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(c.numbers)), func(key string) bool { return c.tabs[key] != nil })
	slices.SortFunc(gone, func(a, b string) int { return cmp.Compare(c.numbers[a], c.numbers[b]) })
	for _, key := range gone[:len(gone)/2] {
		delete(c.numbers, key)
	}
}
