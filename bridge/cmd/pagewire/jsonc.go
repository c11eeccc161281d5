//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// putJSON puts a part into the JSON text of a configuration. Comments and trailing commas are accepted, and all bytes
// but those of the part stay as they are.
func putJSON(text []byte, p part, force bool) ([]byte, error) {
	d := newDocument(text)
	if len(bytes.TrimSpace(d.blank)) == 0 && !bytes.ContainsAny(text, "/") {
		return []byte(jsonText(nested(p.at, p.leaf()))), nil
	}
	chain, rest, err := d.walk(p)
	if err != nil {
		return nil, err
	}
	c := chain[len(chain)-1]
	if len(rest) > 0 {
		return d.add(c, rest[0], nested(rest[1:], p.leaf())), nil
	}
	found, same, err := d.look(c, p)
	switch {
	case err != nil:
		return nil, err
	case same:
		return text, nil
	case found < 0:
		return d.add(c, p.name(), p.value), nil
	case !force:
		return nil, errOther
	}
	indent, s := d.indentOf(c)+d.unit(), c.members[found]
	return splice(text, s.from, s.end, jsonValue(p.value, indent, d.unit(), d.newline())), nil
}

// takeJSON takes a part out again, and with it the objects and lists that are empty then and were not there before: in
// base, the text as it was then, or by what the part says.
func takeJSON(text, base []byte, p part, force bool) ([]byte, error) {
	d := newDocument(text)
	if len(bytes.TrimSpace(d.blank)) == 0 {
		return text, nil
	}
	chain, rest, err := d.walk(p)
	if err != nil || len(rest) > 0 {
		return text, err
	}
	found, same, err := d.look(chain[len(chain)-1], p)
	switch {
	case err != nil || found < 0:
		return text, err
	case !same && !force:
		return nil, errEdited
	}
	had := max(depth(base, p), p.held)
	at := len(chain) - 1
	for ; at > had && len(chain[at].members) == 1; at-- {
		found = chain[at-1].index(p.at[at-1])
	}
	return d.cut(chain[at], found), nil
}

// depth is how many of the objects and lists that lead to a part a text has.
func depth(text []byte, p part) int {
	d := newDocument(text)
	if len(bytes.TrimSpace(d.blank)) == 0 {
		return 0
	}
	chain, _, err := d.walk(p)
	if err != nil {
		return 0
	}
	return len(chain) - 1
}

// nested is a value below names that are not there yet.
func nested(names []string, value any) any {
	for i := len(names) - 1; i >= 0; i-- {
		value = entry{{names[i], value}}
	}
	return value
}

// walk goes from the root to what holds a part, as far as it is there: what it came through, and the names that are
// missing.
func (d *document) walk(p part) (chain []*container, rest []string, err error) {
	root, err := d.container(0, '{', "the file")
	if err != nil {
		return nil, nil, err
	}
	if behind := bytes.TrimSpace(d.blank[root.end:]); len(behind) > 0 {
		at := len(d.blank) - len(bytes.TrimLeft(d.blank[root.end:], " \t\r\n"))
		return nil, nil, fmt.Errorf("line %d: something stands behind the JSON", d.line(at))
	}
	chain, names := []*container{root}, p.holders()
	for i, name := range names {
		c := chain[len(chain)-1]
		at, err := c.find(name)
		if err != nil {
			return nil, nil, err
		}
		if at < 0 {
			return chain, p.at[i:], nil
		}
		open := byte('{')
		if p.list && i == len(names)-1 {
			open = '['
		}
		if c, err = d.container(c.members[at].from, open, quotedJSON(name)); err != nil {
			return nil, nil, err
		}
		chain = append(chain, c)
	}
	return chain, nil, nil
}

// look finds a part in what holds it: where, or -1, and whether it says the same. It may say more: a client's own
// settings for the server.
func (d *document) look(c *container, p part) (at int, same bool, err error) {
	want := generic(p.value)
	if !p.list {
		if at, err = c.find(p.name()); at < 0 || err != nil {
			return at, false, err
		}
		return at, within(want, d.read(c.members[at])), nil
	}
	at = -1
	for i, s := range c.members {
		if within(want, d.read(s)) {
			return i, true, nil
		}
		if p.ours(d.text[s.from:s.end]) {
			at = i
		}
	}
	return at, false, nil
}

func (d *document) read(s span) (value any) {
	_ = json.Unmarshal(d.blank[s.from:s.end], &value) // it has been parsed
	return value
}

// within reports whether a value that is there says what is wanted, or more.
func within(want, is any) bool {
	members, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(want, is)
	}
	has, ok := is.(map[string]any)
	for name, value := range members {
		got, there := has[name]
		if name == "type" && !there {
			continue // it goes without saying
		}
		if !there || !reflect.DeepEqual(value, got) {
			return false
		}
	}
	return ok
}

// jsonText is a value as a file of its own.
func jsonText(v any) string { return jsonValue(v, "", "  ", "\n") + "\n" }

// jsonValue writes a value over several lines, the first of which stands after indent. Lists of words and headers take
// one line.
func jsonValue(v any, indent, unit, newline string) string {
	var items []string
	inner := func(v any) string { return jsonValue(v, indent+unit, unit, newline) }
	switch v := v.(type) {
	case entry:
		for _, m := range v {
			items = append(items, quotedJSON(m.name)+": "+inner(m.value))
		}
		return "{" + lines(items, indent, unit, newline) + "}"
	case []any:
		for _, one := range v {
			items = append(items, inner(one))
		}
		return "[" + lines(items, indent, unit, newline) + "]"
	case []string:
		for _, s := range v {
			items = append(items, quotedJSON(s))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case header:
		return "{ " + quotedJSON(v.name) + ": " + quotedJSON(v.value) + " }"
	}
	return quotedJSON(v)
}

func lines(items []string, indent, unit, newline string) string {
	between := newline + indent + unit
	return between + strings.Join(items, ","+between) + newline + indent
}

func quotedJSON(v any) string {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // a string always can be
	return strings.TrimSuffix(b.String(), "\n")
}

// A document is a JSON text with comments. blank is the same text with spaces for all that JSON does not know, so that
// an offset in one is one in the other.
type document struct {
	text, blank []byte
	trailing    []int // where commas are that JSON does not know
}

func newDocument(text []byte) *document {
	d := &document{text: text, blank: bytes.Clone(text)}
	b := d.blank
	wipe := func(from, to int) {
		for i := from; i < to; i++ {
			if b[i] != '\n' && b[i] != '\r' {
				b[i] = ' '
			}
		}
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		wipe(0, 3)
	}
	comma := -1       // a comma behind a value, with nothing but space and comments behind it so far
	last := byte('{') // what is neither
	for i := 0; i < len(b); i++ {
		at := i
		switch {
		case b[i] == '"':
			comma = -1
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(b[i:], []byte("//")):
			end := bytes.IndexByte(b[i:], '\n')
			if end < 0 {
				end = len(b) - i
			}
			wipe(i, i+end)
			i += end - 1
		case bytes.HasPrefix(b[i:], []byte("/*")):
			end := bytes.Index(b[i+2:], []byte("*/"))
			if end < 0 {
				return d // the decoder stumbles over it, and says where
			}
			wipe(i, i+2+end+2)
			i += 2 + end + 1
		case b[i] == ',':
			if comma = -1; last != '{' && last != '[' && last != ',' {
				comma = i
			}
		case b[i] == '}' || b[i] == ']':
			if comma >= 0 {
				wipe(comma, comma+1)
				d.trailing = append(d.trailing, comma)
			}
			comma = -1
		case b[i] != ' ' && b[i] != '\t' && b[i] != '\r' && b[i] != '\n':
			comma = -1
		}
		if c := b[at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			last = c
		}
	}
	return d
}

func (d *document) line(offset int) int {
	return 1 + bytes.Count(d.text[:min(offset, len(d.text))], []byte("\n"))
}

// A container is where an object or a list is in a document.
type container struct {
	from, end int // of { or [ and behind
	members   []span
}

// A span is where a member or an element is: its name begins at begin, its value at from.
type span struct {
	name             string // "" in a list
	begin, from, end int
}

// find is the index of a member, or -1.
func (c *container) find(name string) (int, error) {
	found := c.index(name)
	if found >= 0 && slices.ContainsFunc(c.members[found+1:], func(s span) bool { return s.name == name }) {
		return -1, fmt.Errorf("%s is there twice", quotedJSON(name))
	}
	return found, nil
}

func (c *container) index(name string) int {
	return slices.IndexFunc(c.members, func(s span) bool { return s.name == name })
}

// container reads the object or list that begins at or behind an offset.
func (d *document) container(offset int, opens byte, what string) (*container, error) {
	in := json.NewDecoder(bytes.NewReader(d.blank[offset:]))
	at := func() int { return offset + int(in.InputOffset()) }
	open, err := in.Token()
	if err != nil {
		return nil, d.wrong(err, offset, at())
	}
	if open != json.Delim(opens) {
		return nil, fmt.Errorf("line %d: %s holds no %s", d.line(at()), what,
			map[byte]string{'{': "object", '[': "list"}[opens])
	}
	c := &container{from: at() - 1}
	for in.More() {
		s := span{begin: at()}
		for s.begin < len(d.blank) && bytes.IndexByte([]byte(" \t\r\n,"), d.blank[s.begin]) >= 0 {
			s.begin++
		}
		if opens == '{' {
			name, err := in.Token()
			if err != nil {
				return nil, d.wrong(err, offset, at())
			}
			s.name = name.(string)
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, d.wrong(err, offset, at())
		}
		s.from, s.end = at()-len(value), at()
		c.members = append(c.members, s)
	}
	if _, err := in.Token(); err != nil {
		return nil, d.wrong(err, offset, at())
	}
	c.end = at()
	return c, nil
}

// wrong says where a text that is read from an offset is no JSON.
func (d *document) wrong(err error, offset, at int) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = offset + int(syntax.Offset)
	}
	return fmt.Errorf("line %d: it is no JSON: %w", d.line(at), err)
}

// add puts a member, or with the name "" an element, behind the last one, and behind the comments there.
func (d *document) add(c *container, name string, v any) []byte {
	indent, brace := d.indentOf(c), c.end-1
	insert := d.newline() + indent + d.unit()
	if name != "" {
		insert += quotedJSON(name) + ": "
	}
	insert += jsonValue(v, indent+d.unit(), d.unit(), d.newline())
	from := len(bytes.TrimRight(d.text[:brace], " \t\r\n"))
	to, behind := from, ""
	if !bytes.Contains(d.text[from:brace], []byte("\n")) {
		to, behind = brace, d.newline()+indent // all of it was in one line
	}
	if len(c.members) == 0 {
		return splice(d.text, from, to, insert+behind)
	}
	end := c.members[len(c.members)-1].end
	if d.trails(end, brace) >= 0 {
		return splice(d.text, from, to, insert+","+behind) // as the others have it
	}
	return splice(splice(d.text, from, to, insert+behind), end, end, ",")
}

// cut takes a member or an element out, with its comma and the line that it leaves empty: what add has put there is
// gone.
func (d *document) cut(c *container, i int) []byte {
	s := c.members[i]
	from, to := s.begin, s.end
	comma := -1 // one before it, which has nothing to part any more
	switch trailing := d.trails(s.end, c.end-1); {
	case i < len(c.members)-1:
		to += bytes.IndexByte(d.blank[to:], ',') + 1
	case trailing >= 0:
		to = trailing + 1
	case i > 0:
		comma = c.members[i-1].end
		comma += bytes.IndexByte(d.blank[comma:], ',')
	}
	if before := bytes.TrimRight(d.text[:from], " \t"); bytes.HasSuffix(before, []byte("\n")) {
		from = len(bytes.TrimSuffix(bytes.TrimSuffix(before, []byte("\n")), []byte("\r")))
	}
	out := splice(d.text, from, to, "")
	if comma >= 0 {
		out = splice(out, comma, comma+1, "")
	}
	return out
}

// trails is where a trailing comma is, or -1.
func (d *document) trails(from, to int) int {
	for _, comma := range d.trailing {
		if comma >= from && comma < to {
			return comma
		}
	}
	return -1
}

// indentOf is what stands before the line in which an object or a list begins.
func (d *document) indentOf(c *container) string {
	line := d.text[bytes.LastIndexByte(d.text[:c.from], '\n')+1 : c.from]
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is one step of indentation, as the first line that is indented has it.
func (d *document) unit() string {
	mark := len(d.text) - len(bytes.TrimPrefix(d.text, []byte("\xef\xbb\xbf")))
	for line := range bytes.Lines(d.blank[mark:]) {
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; len(indent) > 0 &&
			len(bytes.TrimSpace(line)) > 0 {
			return string(indent)
		}
	}
	return "  "
}

func (d *document) newline() string {
	if bytes.Contains(d.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// splice replaces a part of a text.
func splice(text []byte, from, to int, with string) []byte {
	return append(append(append(make([]byte, 0, len(text)+len(with)), text[:from]...), with...), text[to:]...)
}
