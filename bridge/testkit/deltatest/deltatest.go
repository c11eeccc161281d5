// Package deltatest has the documents for the tests and measurements of deltas. It never
// makes a delta.
package deltatest

import (
	"fmt"
	"strconv"
	"strings"
)

// Cart returns a JSON document of about size bytes. Only the quantity of its middle item varies.
func Cart(size, quantity int) string {
	var b strings.Builder
	b.WriteString(`{"currency":"EUR","items":[`)
	n := size / 130
	for i := range n {
		q := 1
		if i == n/2 {
			q = quantity
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"id":%d,"sku":"SKU-%06d","title":"A product with a title","quantity":%d,"price":{"amount":12.5,"currency":"EUR"},"tags":["a","b"]}`, i, i, q)
	}
	return b.String() + `]}`
}

// Hostile returns, by name, pairs of documents of about 1 MB that make patches expensive: with more
// parts than delta.maxParts, with one less than that, and with deep nesting.
func Hostile() map[string][2]string {
	const mb, most = 1 << 20, 1<<14 - 1 // one below delta.maxParts
	pad := strings.Repeat("x", 55)
	some := func(open string, n int, f func(i int) string, end string) string {
		var b strings.Builder
		b.WriteString(open)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(f(i))
		}
		return b.String() + end
	}
	list := func(n int, f func(i int) string) string { return some("[", n, f, "]") }
	object := func(n int, f func(i int) string) string { return some("{", n, f, "}") }
	lists := func(size, more int) string {
		return list(mb/3/size, func(j int) string {
			return list(size+more,
				func(i int) string { return strconv.Itoa((i*7 + j + more*i) % 97) })
		})
	}
	deep := func(inner string) string {
		return strings.Repeat(`{"a":`, 60) + inner +
			strings.Repeat("}", 60)
	}
	small := list(130_000, func(int) string { return "[1,2,3]" })
	numbers := func(
		add int) string {
		return list(150_000, func(i int) string { return strconv.Itoa(i + add) })
	}
	return map[string][2]string{
		"nothing alike": {numbers(0),
			list(150_000, func(i int) string { return strconv.Itoa(-i - 1) })},
		"reversed": {numbers(0),
			list(150_000, func(i int) string { return strconv.Itoa(150_000 - i) })},
		"shifted by one": {numbers(0), numbers(1)},
		"many of two": {list(most, func(i int) string { return fmt.Sprintf(`"%s%d"`, pad, i%2) }),
			list(most-1, func(i int) string { return fmt.Sprintf(`"%s%d"`, pad, i/2%2) })},
		"short ones of two": {list(most, func(i int) string { return strconv.Itoa(i % 3) }),
			list(most-1, func(i int) string { return strconv.Itoa(i * i % 3) })},
		"long ones of two": {
			list(100,
				func(i int) string {
					return fmt.Sprintf(`"%s%d"`, strings.Repeat("x", 10_000),
						i%2)
				}),
			list(99, func(
				i int) string {
				return fmt.Sprintf(`"%s%d"`, strings.Repeat("x", 10_000), i/2%2)
			})},
		"lists of 10":     {lists(10, 0), lists(10, 1)},
		"lists of 200":    {lists(200, 0), lists(200, 1)},
		"lists of 16,000": {lists(most, 0), lists(most, -1)},
		"each a little": {list(most,
			func(i int) string { return fmt.Sprintf(`{"a":%d,"b":"%s"}`, i, pad) }),
			list(most, func(i int) string { return fmt.Sprintf(`{"a":%d,"b":"%s"}`, i+1, pad) })},
		"other names": {object(most, func(i int) string { return fmt.Sprintf(`"%s%d":1`, pad, i) }),
			object(most, func(i int) string { return fmt.Sprintf(`"%s%d":2`, pad, most-i) })},
		"many names": {object(100_000, func(i int) string { return fmt.Sprintf(`"a%d":1`, i) }),
			object(100_000, func(i int) string { return fmt.Sprintf(`"b%d":1`, i) })},
		"one name": {object(100_000, func(int) string { return `"abcd":1` }),
			object(100_000, func(int) string { return `"abcd":2` })},
		"a long name": {`{"` + strings.Repeat(`\u0061`, mb/6) + `":1}`, `{"` +
			strings.Repeat(`\u0061`, mb/6) +
			`":2}`},
		"deep, one string": {deep(`"` + strings.Repeat("x", mb) + `a"`),
			deep(`"` + strings.Repeat("x", mb) + `b"`)},
		"deep, many small": {deep(`[1,` + small + `]`), deep(`[2,` + small + `]`)},
		"too deep": {strings.Repeat("[", mb/2) + strings.Repeat("]", mb/2),
			strings.Repeat("[", mb/2) + "1" +
				strings.Repeat("]", mb/2)},
		"lines": {strings.Repeat("a\nb\n", mb/4), strings.Repeat("b\na\nb\n", mb/6)},
		"long lines of two": {strings.Repeat(pad+"0\n"+pad+"1\n", most/2),
			strings.Repeat(pad+"0\n"+pad+"0\n"+pad+"1\n", most/3)},
		"lines unlike":    {strings.Repeat("a\n", mb/2), strings.Repeat("b\n", mb/2)},
		"one line":        {strings.Repeat("a", mb), strings.Repeat("b", mb)},
		"no JSON at last": {numbers(0) + ",", numbers(1)},
	}
}
