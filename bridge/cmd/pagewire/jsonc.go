package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// putJSON puts a part into JSON with comments and trailing commas. All other bytes stay unchanged.
func putJSON(text []byte, p part, force bool) ([]byte, error) {
	l, err := locate(text, p)
	if err != nil {
		return nil, err
	}
	c := l.chain[len(l.chain)-1]
	switch {
	case len(l.missing) > 0:
		value := p.Value
		if p.List {
			value = []any{value}
		}
		for _, name := range slices.Backward(l.missing[1:]) {
			value = entry{{name, value}}
		}
		return l.add(c, l.missing[0], value), nil
	case l.same:
		return text, nil
	case l.at < 0 && p.List:
		return l.add(c, "", p.Value), nil
	case l.at < 0:
		return l.add(c, p.At[len(p.At)-1], p.Value), nil
	case !force:
		return nil, errOther
	}
	return l.splice(c.items[l.at].value.StartOffset, c.items[l.at].value.EndOffset, l.write(c, p.Value)), nil
}

// takeJSON removes a part. It also removes objects and lists that then have neither an item nor a comment, if base does
// not have them.
func takeJSON(text, base []byte, p part, force bool) ([]byte, error) {
	l, err := locate(text, p)
	if err != nil || l.at < 0 {
		return text, err
	}
	if !l.same && !force {
		return nil, errEdited
	}
	i, at := l.at, len(l.chain)-1
	for had := depth(base, p); at > had && l.alone(l.chain[at]); at-- {
		i, _ = l.chain[at-1].find(p.At[at-1]) // no error: walk has found it
	}
	return l.cut(l.chain[at], i), nil
}

// alone reports whether a container has one item, and no comment.
func (d *document) alone(c container) bool {
	return len(c.items) == 1 && len(bytes.Trim(d.text[c.StartOffset+1:c.items[0].begin], " \t\r\n")) == 0 &&
		len(bytes.Trim(d.text[c.items[0].value.EndOffset:c.EndOffset-1], ", \t\r\n")) == 0
}

// foundJSON returns the text of a part, or "" if it is missing.
func foundJSON(text []byte, p part) string {
	l, err := locate(text, p)
	if err != nil || l.at < 0 {
		return ""
	}
	return l.source(l.chain[len(l.chain)-1].items[l.at].value)
}

// depth returns the number of existing objects and lists, without the root, that contain a part.
func depth(text []byte, p part) int {
	l, _ := locate(text, p) // after an error there is no chain
	return max(len(l.chain), 1) - 1
}

// A location is the place of a part in a document, even if the part is missing.
type location struct {
	*document
	chain   []container // the existing containers of the part, from the root on
	missing []string    // the names of the missing containers, and of the part
	at      int         // the part's index in its container, or -1
	same    bool        // it has the wanted value
}

func locate(text []byte, p part) (l location, err error) {
	l.at = -1
	if l.document, err = parseJSON(text); err == nil {
		l.chain, l.missing, err = l.walk(p)
	}
	if err == nil && len(l.missing) == 0 {
		l.at, l.same, err = l.look(l.chain[len(l.chain)-1], p)
	}
	return l, err
}

// A document is a JSON text with comments. mark is its byte order mark, if it has one.
type document struct {
	mark, text []byte
	root       hujson.Value
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON parses a text. A blank text is an object without members.
func parseJSON(text []byte) (*document, error) {
	d := &document{text: bytes.TrimPrefix(text, byteOrderMark)}
	d.mark = text[:len(text)-len(d.text)]
	if len(bytes.TrimSpace(d.text)) == 0 {
		d.text = []byte("{}\n")
	}
	var err error
	// hujson needs a line end after each comment, and the last comment may lack it.
	if d.root, err = hujson.Parse(append(slices.Clip(d.text), '\n')); err != nil {
		return nil, fmt.Errorf("it is no JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return d, nil
}

func (d *document) source(v hujson.Value) string { return string(d.text[v.StartOffset:v.EndOffset]) }

func (d *document) splice(from, to int, with string) []byte {
	return slices.Concat(d.mark, splice(d.text, from, to, with))
}

// A container is an object or a list.
type container struct {
	hujson.Value
	items []item
}

// An item is a member of an object or an element of a list.
type item struct {
	name  string
	begin int // of the name, or of the element
	value hujson.Value
}

// comma returns the offset of the comma after an item, or -1 if the last item has none.
func (c container) comma(i int) int {
	if i < 0 || i == len(c.items)-1 && c.items[i].value.AfterExtra == nil {
		return -1
	}
	return c.items[i].value.EndOffset + len(c.items[i].value.AfterExtra)
}

func contain(v hujson.Value) (c container) {
	c.Value = v
	switch in := v.Value.(type) {
	case *hujson.Object:
		for _, m := range in.Members {
			c.items = append(c.items, item{m.Name.Value.(hujson.Literal).String(), m.Name.StartOffset, m.Value})
		}
	case *hujson.Array:
		for _, v := range in.Elements {
			c.items = append(c.items, item{"", v.StartOffset, v})
		}
	}
	return c
}

// find returns the index of a member, or -1.
func (c container) find(name string) (at int, err error) {
	at = -1
	for i, m := range c.items {
		if m.name == name && at >= 0 {
			return -1, fmt.Errorf("%s is there twice", quotedJSON(name))
		} else if m.name == name {
			at = i
		}
	}
	return at, nil
}

// walk goes from the root to a part. chain has the existing containers, and missing the names of the rest of the path.
func (d *document) walk(p part) (chain []container, missing []string, err error) {
	at, what, names := d.root, "the file", p.holders()
	for i := 0; ; i++ {
		kind, kindName := hujson.Kind('{'), "object"
		if p.List && i == len(names) {
			kind, kindName = '[', "list"
		}
		if at.Value.Kind() != kind {
			return nil, nil, fmt.Errorf("%s holds no %s", what, kindName)
		}
		c := contain(at)
		if chain = append(chain, c); i == len(names) {
			return chain, nil, nil
		}
		next, err := c.find(names[i])
		if err != nil {
			return nil, nil, err
		}
		if next < 0 {
			return chain, p.At[i:], nil
		}
		at, what = c.items[next].value, quotedJSON(names[i])
	}
}

// look finds a part in its container. at is its index or -1; same means that it has the wanted value.
func (d *document) look(c container, p part) (at int, same bool, err error) {
	want := generic(p.Value)
	if !p.List {
		if at, err = c.find(p.At[len(p.At)-1]); at < 0 || err != nil {
			return at, false, err
		}
		return at, includes(decoded(c.items[at].value), want), nil
	}
	at = -1
	for i, element := range c.items {
		if includes(decoded(element.value), want) {
			return i, true, nil
		} else if p.ours([]byte(d.source(element.value))) {
			at = i
		}
	}
	return at, false, nil
}

// decoded decodes a value as encoding/json does.
func decoded(v hujson.Value) (value any) {
	v = v.Clone()
	v.Standardize()
	_ = json.Unmarshal(v.Pack(), &value) // it has been parsed
	return value
}

// add puts a member, or an element if name is "", after the last one and its comments.
func (d *document) add(c container, name string, v any) []byte {
	text, last := d.write(c, v), len(c.items)-1
	if name != "" {
		text = quotedJSON(name) + ": " + text
	}
	end := c.EndOffset - 1 // of the bracket
	at := len(bytes.TrimRight(d.text[:end], " \t\r\n"))
	text = newlineOf(d.text) + d.indentOf(c) + d.unit() + text
	if c.comma(last) >= 0 { // the user prefers a trailing comma
		text += ","
	}
	if !bytes.Contains(d.text[at:end], []byte("\n")) { // the bracket was on the same line
		at = end
		text += newlineOf(d.text) + d.indentOf(c)
	}
	if last >= 0 && c.comma(last) < 0 {
		comma := c.items[last].value.EndOffset
		text = "," + string(d.text[comma:at]) + text
		return d.splice(comma, at, text)
	}
	return d.splice(at, at, text)
}

// cut removes an item, with its comma and the line that it leaves empty.
func (d *document) cut(c container, i int) []byte {
	from, to := c.items[i].begin, c.items[i].value.EndOffset
	comma := c.comma(i)
	if comma >= 0 {
		to = comma + 1
	}
	line := len(bytes.TrimRight(d.text[:from], " \t"))
	if rest := bytes.TrimLeft(d.text[to:], " \t\r"); bytes.HasPrefix(rest, []byte("\n")) {
		from = len(bytes.TrimSuffix(bytes.TrimSuffix(d.text[:line], []byte("\n")), []byte("\r")))
		to = len(d.text) - len(rest)
		if bytes.HasSuffix(d.text[:to], []byte("\r")) {
			to--
		}
	}
	if before := c.comma(i - 1); comma < 0 && before >= 0 {
		return d.splice(before, to, string(d.text[before+1:from]))
	}
	return d.splice(from, to, "")
}

// indentOf returns the indentation of the line where a container begins.
func (d *document) indentOf(c container) string {
	line := d.text[bytes.LastIndexByte(d.text[:c.StartOffset], '\n')+1 : c.StartOffset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit returns one step of indentation, which is that of the first member.
func (d *document) unit() string {
	root := contain(d.root)
	end := d.root.EndOffset - 1
	if len(root.items) > 0 {
		end = root.items[0].begin
	}
	before := d.text[d.root.StartOffset+1 : end]
	indent := before[bytes.LastIndexByte(before, '\n')+1:]
	if len(indent) == len(before) || len(indent) == 0 || len(bytes.TrimSpace(indent)) > 0 {
		return "  "
	}
	return string(indent)
}

// write returns the text of a value for an item of c.
func (d *document) write(c container, v any) string {
	return jsonValue(v, d.indentOf(c)+d.unit(), d.unit(), newlineOf(d.text))
}

// jsonText returns the text of a file with a value.
func jsonText(v any) string { return jsonValue(v, "", "  ", "\n") + "\n" }

// jsonValue writes a value on several lines; indent is that of the first. A list of strings and a header take one line.
func jsonValue(v any, indent, unit, newline string) string {
	var items []string
	inner := func(v any) string { return jsonValue(v, indent+unit, unit, newline) }
	between := newline + indent + unit
	over := func(open, end string) string {
		return open + between + strings.Join(items, ","+between) + newline + indent + end
	}
	switch v := v.(type) {
	case entry:
		for _, m := range v {
			items = append(items, quotedJSON(m.name)+": "+inner(m.value))
		}
		return over("{", "}")
	case []any:
		for _, one := range v {
			items = append(items, inner(one))
		}
		return over("[", "]")
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

func quotedJSON(v any) string {
	return strings.TrimSuffix(encodedJSON(v, ""), "\n")
}
