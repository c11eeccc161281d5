//go:build !js

// Package delta says what has become of a text that somebody has already: as a JSON patch (RFC 6902) where both are JSON, as a
// unified diff else, or not at all where that would be no shorter; and it takes parts of a text, by pointer, lines or page.
//
// It never decodes: it walks the raw text of both, and goes only into what is different. So a change of 1 MB of JSON costs two
// scans and next to no memory, and numbers are what the page wrote. Time and memory are bounded whatever the texts are; what
// is above a bound has no delta. It keeps nothing, and knows nothing of pages and agents.
package delta

import (
	"bytes"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A Kind says how a delta is written.
type Kind string

const (
	None  Kind = ""
	Patch Kind = "json-patch"   // RFC 6902
	Diff  Kind = "unified-diff" // without its two lines of names
)

const (
	// MaxText is the length above which a text has no delta, in bytes.
	MaxText = 4 << 20
	// maxDepth is how deep JSON may be nested.
	maxDepth = 64
	// maxParts is how many members or elements are looked at of one object or array, and maxLines of a text: a container that is
	// different and has more is replaced as a whole.
	maxParts, maxLines = 1 << 14, 1 << 15
	// context is how many lines a diff has around a change: the model has the rest.
	context = 1
)

// Of returns what makes after of before. It is None where that is not shorter than after. The texts must not be equal.
func Of(before, after string) (Kind, string) {
	if len(before) > MaxText || len(after) > MaxText {
		return None, ""
	}
	kind, text := Diff, ""
	if a, b, ok := documents(before, after); ok {
		kind, text = Patch, patch(a, b, len(after))
	} else {
		text = diff(before, after)
	}
	if text == "" || len(text) >= len(after) {
		return None, ""
	}
	return kind, text
}

// documents reports whether both texts are JSON that has parts.
func documents(before, after string) (a, b wire.Value, ok bool) {
	for i, text := range [2]string{before, after} {
		trimmed := strings.TrimLeft(text, " \t\r\n")
		if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
			return nil, nil, false
		}
		v, err := wire.Parse([]byte(text), maxDepth)
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

// diff is a unified diff, or "".
func diff(before, after string) string {
	if strings.Count(before, "\n") > maxLines || strings.Count(after, "\n") > maxLines {
		return ""
	}
	text, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), context)
	if err != nil {
		return ""
	}
	_, text, _ = strings.Cut(text, "+++ b\n")
	return text
}

// A patcher writes the operations that make one JSON text of another.
type patcher struct {
	out  wire.Text
	at   []byte // the pointer to where it is
	most int    // bytes of out
	lost bool   // there is no patch, or none within most
}

// patch is a JSON patch of at most so many bytes, or "".
func patch(a, b wire.Value, most int) string {
	p := &patcher{most: most}
	p.value(a, b)
	if p.lost || p.out == nil {
		return ""
	}
	return string(p.out.Raw("]"))
}

// op writes an operation at the pointer; value is absent for remove.
func (p *patcher) op(name string, value wire.Value) {
	if len(p.out)+len(p.at)+len(value) > p.most {
		p.lost = true
	}
	if p.lost {
		return
	}
	if p.out == nil {
		p.out = p.out.Raw(`[{"op":"`)
	} else {
		p.out = p.out.Raw(`,{"op":"`)
	}
	p.out = p.out.Raw(name).Raw(`","path":`).Str(string(p.at))
	if value != nil {
		p.out = p.out.Raw(`,"value":`).Bytes(value)
	}
	p.out = p.out.Raw(`}`)
}

// within calls f with the pointer one token longer.
func (p *patcher) within(token string, f func()) {
	before := len(p.at)
	p.at = append(p.at, '/')
	p.at = append(p.at, escape(token)...)
	f()
	p.at = p.at[:before]
}

func (p *patcher) index(i int, f func()) { p.within(wire.Itoa(i), f) }

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

type member struct {
	key   string
	value wire.Value
}

// members lists those of an object by name; ok is false where there are too many, or two of one name: what a patch does to
// those depends on who applies it.
func members(v wire.Value) (list []member, ok bool) {
	v.Members(func(key, value wire.Value) bool {
		name, _ := key.Text()
		list = append(list, member{name, value})
		return len(list) <= maxParts
	})
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(list); i++ {
		if list[i].key == list[i-1].key {
			return nil, false
		}
	}
	return list, len(list) <= maxParts
}

func (p *patcher) object(a, b wire.Value) {
	before, ok := members(a)
	after, fits := members(b)
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
			p.within(after[0].key, func() { p.op("add", after[0].value) })
			after = after[1:]
		default:
			if !bytes.Equal(before[0].value, after[0].value) {
				p.within(after[0].key, func() { p.value(before[0].value, after[0].value) })
			}
			before, after = before[1:], after[1:]
		}
	}
}

// whole replaces what the pointer points to. Of the whole document that is no patch.
func (p *patcher) whole(b wire.Value) {
	p.lost = p.lost || len(p.at) == 0
	p.op("replace", b)
}

func elements(v wire.Value) (list []wire.Value, ok bool) {
	for e := range v.Elements {
		if list = append(list, e); len(list) > maxParts {
			return nil, false
		}
	}
	return list, true
}

func (p *patcher) array(a, b wire.Value) {
	before, ok := elements(a)
	after, fits := elements(b)
	if !ok || !fits {
		p.whole(b)
		return
	}
	from := 0
	for from < min(len(before), len(after)) && bytes.Equal(before[from], after[from]) {
		from++
	}
	end := 0
	for end < min(len(before), len(after))-from && bytes.Equal(before[len(before)-1-end], after[len(after)-1-end]) {
		end++
	}
	before, after = before[from:len(before)-end], after[from:len(after)-end]
	if len(before) == len(after) || len(before) == 0 || len(after) == 0 {
		p.run(from, before, after)
		return
	}
	p.runs(from, before, after)
}

// run makes elements of others that are in their place, of which the first has that index.
func (p *patcher) run(at int, before, after []wire.Value) {
	same := min(len(before), len(after))
	for i := range same {
		p.index(at+i, func() { p.value(before[i], after[i]) })
	}
	for i := len(before) - 1; i >= same; i-- {
		p.index(at+i, func() { p.op("remove", nil) })
	}
	for i := same; i < len(after); i++ {
		p.index(at+i, func() { p.op("add", after[i]) })
	}
}

// runs is run for elements of which some are the same: it finds those as lines of a text, of which each element is one.
func (p *patcher) runs(at int, before, after []wire.Value) {
	old, starts, ok := asLines(before)
	young, _, fits := asLines(after)
	if !ok || !fits {
		p.run(at, before, after)
		return
	}
	edits := udiff.Lines(old, young)
	udiff.SortEdits(edits)
	// The last first: then those before it are where they were. next is the end, in after, of what has not been looked at.
	next, tail := len(after), len(before)
	for _, e := range slices.Backward(edits) {
		first, _ := slices.BinarySearch(starts, e.Start)
		last, _ := slices.BinarySearch(starts, e.End)
		next -= tail - last // what is the same behind it
		count := strings.Count(e.New, "\n")
		p.run(at+first, before[first:last], after[next-count:next])
		next, tail = next-count, first
	}
}

// asLines is a text with a line for each element, and where each begins, and the last one ends. An element that has a line end
// in it, which JSON has only between its tokens, does not fit.
func asLines(list []wire.Value) (text string, starts []int, ok bool) {
	var b strings.Builder
	for _, e := range list {
		if bytes.IndexByte(e, '\n') >= 0 {
			return "", nil, false
		}
		starts = append(starts, b.Len())
		b.Write(e)
		b.WriteByte('\n')
	}
	return b.String(), append(starts, b.Len()), true
}
