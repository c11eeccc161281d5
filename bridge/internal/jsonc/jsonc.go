// Package jsonc edits JSON texts that people write, with comments and trailing commas: what nobody
// has edited is written as it was read, byte for byte. It never reads or writes a file.
package jsonc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A Document is a JSON text with comments and trailing commas, and perhaps a byte order mark. It
// writes what nobody has edited as it was read, byte for byte.
type Document struct {
	Root          hujson.Value
	Newline, Unit string // a line's end, and one step of indentation

	mark []byte
}

// ByteOrderMark is what a text in UTF-8 may begin with.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// Parse parses a text. A blank text is an object without members.
func Parse(text []byte) (d *Document, err error) {
	body := bytes.TrimPrefix(text, ByteOrderMark)
	d = &Document{mark: text[:len(text)-len(body)], Newline: NewlineOf(text), Unit: "  "}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	// hujson needs a line end after each comment, and the last comment may lack it.
	if d.Root, err = hujson.Parse(append(slices.Clip(body), '\n')); err != nil {
		return nil, fmt.Errorf("it is no JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if heads, _, _ := Items(&d.Root); len(heads) > 0 && IndentOf(heads[0], "") != "" {
		d.Unit = IndentOf(heads[0], "")
	}
	return d, nil
}

// Text returns the text as it is now.
func (d *Document) Text() []byte {
	text := d.Root.Pack()
	return slices.Concat(d.mark, text[:len(text)-1])
}

// IndentOf returns the indentation of an item that has a line of its own, and otherwise that of the
// line around it.
func IndentOf(head *hujson.Value, around string) string {
	line := head.BeforeExtra[bytes.LastIndexByte(head.BeforeExtra, '\n')+1:]
	if len(line) == len(head.BeforeExtra) || len(bytes.TrimSpace(line)) > 0 {
		return around
	}
	return string(line)
}

// Items returns what an object or a list contains, and the space before its last bracket. An item
// begins with its head, which is a member's name, or the element itself.
func Items(v *hujson.Value) (heads, values []*hujson.Value, end *hujson.Extra) {
	switch in := v.Value.(type) {
	case *hujson.Object:
		for i := range in.Members {
			heads, values = append(heads, &in.Members[i].Name), append(values, &in.Members[i].Value)
		}
		end = &in.AfterExtra
	case *hujson.Array:
		for i := range in.Elements {
			heads = append(heads, &in.Elements[i])
		}
		values, end = heads, &in.AfterExtra
	}
	return heads, values, end
}

// Find returns the index of a member, or -1. A name that is there twice is an error.
func Find(v *hujson.Value, name string) (at int, err error) {
	at = -1
	heads, _, _ := Items(v)
	for i, head := range heads {
		if head.Value.(hujson.Literal).String() != name {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("%q is there twice", name)
		}
		at = i
	}
	return at, nil
}

// Decoded decodes a value as encoding/json does.
func Decoded(v *hujson.Value) (value any) {
	copied := v.Clone()
	copied.Standardize()
	_ = json.Unmarshal(copied.Pack(), &value) // it has been parsed
	return value
}

// Add puts a member, or an element of a list if name is "", after the last one and its comments, in a
// line of its own. The line of the object or list has the indentation.
func (d *Document) Add(v *hujson.Value, indent, name string, item hujson.Value) {
	_, values, end := Items(v)
	if last := len(values) - 1; last >= 0 && values[last].AfterExtra != nil {
		item.AfterExtra = hujson.Extra{} // the user prefers a trailing comma
	}
	comments := commentsOf(*end)
	before := hujson.Extra(slices.Concat(comments, []byte(d.Newline+indent+d.Unit)))
	if *end = (*end)[len(comments):]; !bytes.Contains(*end, []byte("\n")) {
		*end = hujson.Extra(d.Newline + indent) // the bracket was on the same line
	}
	switch in := v.Value.(type) {
	case *hujson.Object:
		item.BeforeExtra = hujson.Extra(" ")
		in.Members = append(in.Members, hujson.ObjectMember{
			Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: item})
	case *hujson.Array:
		item.BeforeExtra = before
		in.Elements = append(in.Elements, item)
	}
}

// commentsOf returns an extra without the space after its last comment. Space at the end of a line
// is the comment's.
func commentsOf(extra hujson.Extra) hujson.Extra {
	end := len(bytes.TrimRight(extra, " \t\r\n"))
	line := extra[bytes.LastIndexByte(extra[:end], '\n')+1:]
	if i := bytes.IndexByte(line, '\n'); i > 0 && bytes.Contains(line[:i], []byte("//")) {
		return bytes.TrimSuffix(extra[:len(extra)-len(line)+i], []byte("\r"))
	}
	return extra[:end]
}

// Cut removes an item, with its comma and the line that it leaves empty. Comments around it stay.
func Cut(v *hujson.Value, i int) {
	heads, values, end := Items(v)
	next, before, after := end, heads[i].BeforeExtra, values[i].AfterExtra
	if len(bytes.TrimSpace(after)) > 0 {
		before = slices.Concat(before, after)
	}
	if i+1 < len(heads) {
		next = &heads[i+1].BeforeExtra
	}
	rest := bytes.TrimLeft(*next, " \t")
	if bytes.HasPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n")) {
		before = commentsOf(before)
	}
	if *next = slices.Concat(before, rest); len(heads) == 1 && len(bytes.TrimSpace(*end)) == 0 {
		*end = nil
	}
	if i > 0 && next == end { // then the item before it is the last one, and needs no comma
		switch last := values[i-1]; {
		case after == nil:
			*end, last.AfterExtra = slices.Concat(last.AfterExtra, *end), nil
		case last.AfterExtra == nil:
			last.AfterExtra = hujson.Extra{}
		}
	}
	switch in := v.Value.(type) {
	case *hujson.Object:
		in.Members = slices.Delete(in.Members, i, i+1)
	case *hujson.Array:
		in.Elements = slices.Delete(in.Elements, i, i+1)
	}
}

// NewlineOf returns the line end that a text uses.
func NewlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
