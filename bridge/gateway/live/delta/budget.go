package delta

import (
	"bytes"
	"unsafe"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A budget bounds the cost of one delta, since a hostile page can make both texts as expensive as
// possible. Steps above the budget are left out.
type budget struct{ ns, bytes int }

const (
	// Two texts of 1 MB may take 16 ms after the first scan, and short texts 2 ms.
	perByte, leastTime = 8, 2_000_000
	// Together with the output this is less than 4 MB for texts of 1 MB.
	leastBytes = 3 << 18
)

func budgetFor(before, after string) *budget {
	return &budget{ns: perByte*(len(before)+len(after)) + leastTime,
		bytes: leastBytes + max(len(before), len(after))}
}

// time takes the cost of a scan. It returns false if the budget is spent, like memory and compare.
func (b *budget) time(bytes int) bool { return spend(&b.ns, bytes*5/4) }

func (b *budget) memory(bytes int) bool { return spend(&b.bytes, bytes) }

// compare takes the cost of comparing two lists; parts and bytes are the sums of both. Each part
// may be compared 100 times, since the search gives up after 50 differences from either side.
func (b *budget) compare(parts, bytes int) bool {
	d := min(parts, 50)
	return spend(&b.ns, 2*d*(parts+bytes/16)) && b.memory(16*d*d+2400)
}

func spend(from *int, n int) bool {
	*from -= n
	return *from >= 0
}

// grown makes room for one more part in a list that has n of a value's parts. From these it
// estimates the number of parts in the rest of the value. It returns false if the list would have
// too many parts or cost too much.
func grown[T any](list []T, n int, v, part wire.Value, left *budget) ([]T, bool) {
	if n == maxParts {
		return list, false
	}
	if len(list) < cap(list) {
		return list, true
	}
	done := max(cap(v)-cap(part), 1)
	list = with(list, min(n*(len(v)-done)/done+16, maxParts))
	return list, left.memory(cap(list) * int(unsafe.Sizeof(list[:1][0])))
}

// room makes room for more bytes in a text; most bounds the text. Above an eighth of most it makes
// room for all of it, since growing step by step takes twice the memory.
func room(t wire.Text, more, most int) wire.Text {
	if len(t)+more > cap(t) && len(t)+more > most/8 {
		return with(t, max(more, most+64-len(t)))
	}
	return t
}

// with copies a list and leaves room for the number more of entries, and no others.
func with[S ~[]T, T any](list S, more int) S { return append(make(S, 0, len(list)+more), list...) }

// raw and str convert without a copy, so the bytes must not be changed. Copies would be half of a
// delta's cost.
func raw(s string) wire.Value { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func str[T ~[]byte](b T) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// common counts the entries that two lists share at the beginning, and the further ones that they
// share at the end.
func common(a, b []string) (same [2]int) {
	n := min(len(a), len(b))
	for same[0] < n && a[same[0]] == b[same[0]] {
		same[0]++
	}
	for n -= same[0]; same[1] < n && a[len(a)-1-same[1]] == b[len(b)-1-same[1]]; {
		same[1]++
	}
	return same
}

// commonBytes is common for bytes.
func commonBytes(a, b []byte) (same [2]int) {
	const step = 256
	n := min(len(a), len(b))
	for same[0]+step <= n && bytes.Equal(a[same[0]:same[0]+step], b[same[0]:same[0]+step]) {
		same[0] += step
	}
	for same[0] < n && a[same[0]] == b[same[0]] {
		same[0]++
	}
	a, b = a[same[0]:], b[same[0]:]
	n -= same[0]
	for same[1]+step <= n &&
		bytes.Equal(a[len(a)-same[1]-step:len(a)-same[1]], b[len(b)-same[1]-step:len(b)-same[1]]) {
		same[1] += step
	}
	for same[1] < n && a[len(a)-1-same[1]] == b[len(b)-1-same[1]] {
		same[1]++
	}
	return same
}
