// Package delta makes the difference between two texts: a JSON patch (RFC 6902) if both texts are
// JSON and their lines do not differ in fewer bytes, otherwise a unified diff, and nothing if that
// would not be shorter. It also takes parts of a text, by pointer, lines or page.
//
// It never decodes: it walks the raw text of both, and enters only parts that differ. So a change
// of 1 MB of JSON costs a few scans and little memory, and numbers stay as the page wrote them.
// Time and memory are bounded for any texts (budget.go): above a bound a part is replaced as a
// whole, or the text has no delta. The package keeps no state, and knows no page or agent.
package delta

import (
	"bytes"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A Kind is the format of a delta.
type Kind string

const (
	None  Kind = ""
	Patch Kind = "json-patch"   // RFC 6902
	Diff  Kind = "unified-diff" // without its two lines of names
)

const (
	// MaxText is the maximum length in bytes of a text that has a delta.
	MaxText = 4 << 20
	// maxDepth bounds the nesting of JSON.
	maxDepth = 64
	// maxParts bounds the members of one object, and the elements or lines between the first and
	// the last difference. A container with more is replaced as a whole.
	maxParts = 1 << 14
	// maxPointer bounds a pointer, in bytes.
	maxPointer = 1 << 12
)

// Of returns the delta from before to after, or None if that is not shorter than after. The texts
// must differ.
func Of(before, after string) (Kind, string) {
	if len(before) > MaxText || len(after) > MaxText {
		return None, ""
	}
	left := budgetFor(before, after)
	kind, text := Diff, ""
	if a, b, ok := documents(before, after); ok {
		kind, text = Patch, patch(a, b, len(after), left)
		// Rows that move by one are replaced by a patch, each of them, and are two lines.
		if strings.Contains(after, "\n") {
			if lines := diff(before, after, left); lines != "" &&
				(text == "" || len(lines) < len(text)) {
				kind, text = Diff, lines
			}
		}
	} else {
		text = diff(before, after, left)
	}
	if text == "" || len(text) >= len(after) {
		return None, ""
	}
	return kind, text
}

// documents parses both texts. ok is false unless both are JSON objects or both are JSON arrays.
func documents(before, after string) (a, b wire.Value, ok bool) {
	for i, text := range [2]string{before, after} {
		trimmed := strings.TrimLeft(text, " \t\r\n")
		if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
			return nil, nil, false
		}
		v, err := wire.Parse(raw(text), maxDepth)
		if err != nil {
			return nil, nil, false
		}
		if i == 0 {
			a = v
		}
		b = v
	}
	return a, b, a.Kind() == b.Kind()
}

// A patcher writes the operations that turn one JSON text into another.
//
// Why is the delta made on the text, and not by a library on decoded JSON? 1 MB with one change
// takes 6.3 ms and 1 KB besides the patch. wI2L/jsondiff takes 61 ms and 15.4 MB, and reads numbers
// as floats, so a patch would change digits that the page wrote. A page can make each step
// expensive, so a delta has a budget of bytes scanned and allocated, and a part above it is
// replaced as a whole: at worst 26 ms and 3 MB for each MB.
type patcher struct {
	out  wire.Text
	at   []byte // the pointer to the current part
	most int    // bytes of out
	lost bool   // there is no patch, or none within most
	left *budget
	// The members and elements of the containers that are being compared, the outer ones first.
	members  []member
	elements []string
}

// patch returns a JSON patch, or "" if it has more than most bytes or replaces the whole document.
func patch(a, b wire.Value, most int, left *budget) string {
	p := &patcher{most: most, left: left}
	p.value(a, b)
	if p.lost || p.out == nil {
		return ""
	}
	return str(p.out.Raw("]"))
}

// op writes an operation at the pointer. value is nil for remove.
func (p *patcher) op(name string, value wire.Value) {
	if len(p.out)+len(p.at)+len(value) > p.most || len(p.at) > maxPointer {
		p.lost = true
	}
	if p.lost {
		return
	}
	p.out = room(p.out, len(p.at)+len(value)+64, p.most)
	if len(p.out) == 0 {
		p.out = p.out.Raw(`[{"op":"`)
	} else {
		p.out = p.out.Raw(`,{"op":"`)
	}
	p.out = p.out.Raw(name).Raw(`","path":`).Str(str(p.at))
	if value != nil {
		p.out = p.out.Raw(`,"value":`).Bytes(value)
	}
	p.out = p.out.Raw(`}`)
}

// within calls f with the pointer extended by a token.
func (p *patcher) within(token string, f func()) {
	if len(p.at)+len(token) > maxPointer {
		p.lost = true
		return
	}
	p.under(append(append(p.at, '/'), escape(token)...), f)
}

func (p *patcher) index(i int, f func()) { p.under(wire.Text(append(p.at, '/')).Int(i), f) }

func (p *patcher) under(pointer []byte, f func()) {
	before := len(p.at)
	p.at = pointer
	f()
	p.at = p.at[:before]
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

func escape(token string) string { return escaper.Replace(token) }

func (p *patcher) value(a, b wire.Value) {
	switch {
	case p.lost || bytes.Equal(a, b):
	case a.Kind() == wire.Object && b.Kind() == wire.Object:
		p.object(a, b)
	case a.Kind() == wire.Array && b.Kind() == wire.Array:
		p.array(a, b)
	default:
		p.op("replace", b)
	}
}

type member struct{ key, value string }

// membersOf lists an object's members, sorted by name. ok is false if there are too many, or if two
// have the same name: programs patch these differently.
func (p *patcher) membersOf(v wire.Value) (list []member, ok bool) {
	from := len(p.members)
	for key, value := range v.Members {
		n := len(p.members) - from
		if p.members, ok = grown(p.members, n, v, key, p.left); !ok {
			return nil, false
		}
		name := str(key[1 : len(key)-1])
		if strings.IndexByte(name, '\\') >= 0 {
			if !p.left.memory(len(name)) {
				return nil, false
			}
			name, _ = key.Text()
		}
		p.members = append(p.members, member{name, str(value)})
	}
	list = p.members[from:len(p.members):len(p.members)]
	if !p.left.time(64 * len(list)) {
		return nil, false
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(list); i++ {
		if list[i].key == list[i-1].key {
			return nil, false
		}
	}
	return list, true
}

func (p *patcher) object(a, b wire.Value) {
	if !p.left.time(len(a) + len(b)) {
		p.whole(b)
		return
	}
	defer func(n int) { p.members = p.members[:n] }(len(p.members))
	before, ok := p.membersOf(a)
	after, fits := p.membersOf(b)
	if !ok || !fits {
		p.whole(b)
		return
	}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].key < after[0].key:
			p.within(before[0].key, func() { p.op("remove", nil) })
			before = before[1:]
		case len(before) == 0 || after[0].key < before[0].key:
			p.within(after[0].key, func() { p.op("add", raw(after[0].value)) })
			after = after[1:]
		default:
			if before[0].value != after[0].value {
				p.within(after[0].key,
					func() { p.value(raw(before[0].value), raw(after[0].value)) })
			}
			before, after = before[1:], after[1:]
		}
	}
}

// whole replaces the value at the pointer. If that is the whole document, there is no patch.
func (p *patcher) whole(b wire.Value) {
	p.lost = p.lost || len(p.at) == 0
	p.op("replace", b)
}

// elementsOf lists an array's elements outside the bytes that it shares with another array. before
// is the number of elements that precede them. ok is false if there are too many.
func (p *patcher) elementsOf(v wire.Value, same [2]int) (list []string, before int, ok bool) {
	from := len(p.elements)
	for e := range v.Elements {
		start := cap(v) - cap(e)
		if start+len(e) < same[0] {
			before++
		} else if start <= len(v)-same[1] {
			n := len(p.elements) - from
			if p.elements, ok = grown(p.elements, n, v, e, p.left); !ok {
				return nil, 0, false
			}
			p.elements = append(p.elements, str(e))
		}
	}
	return p.elements[from:len(p.elements):len(p.elements)], before, true
}

func (p *patcher) array(a, b wire.Value) {
	if !p.left.time(len(a) + len(b)) {
		p.whole(b)
		return
	}
	same := commonBytes(a, b)
	defer func(n int) { p.elements = p.elements[:n] }(len(p.elements))
	before, from, ok := p.elementsOf(a, same)
	after, _, fits := p.elementsOf(b, same)
	if !ok || !fits {
		p.whole(b)
		return
	}
	ends := common(before, after)
	from += ends[0]
	before, after = before[ends[0]:len(before)-ends[1]], after[ends[0]:len(after)-ends[1]]
	switch {
	case len(before) == len(after) || len(before) == 0 || len(after) == 0:
		p.run(from, before, after)
	case !p.left.compare(len(before)+len(after), len(a)+len(b)):
		p.whole(b)
	default:
		// In reverse order, so that indices before a change stay valid.
		for _, d := range slices.Backward(lcs.DiffLines(before, after)) {
			p.run(from+d.Start, before[d.Start:d.End], after[d.ReplStart:d.ReplEnd])
		}
	}
}

// run replaces elements by others from index at on.
func (p *patcher) run(at int, before, after []string) {
	same := min(len(before), len(after))
	for i := range same {
		p.index(at+i, func() { p.value(raw(before[i]), raw(after[i])) })
	}
	for i := len(before) - 1; i >= same; i-- {
		p.index(at+i, func() { p.op("remove", nil) })
	}
	for i := same; i < len(after); i++ {
		p.index(at+i, func() { p.op("add", raw(after[i])) })
	}
}
