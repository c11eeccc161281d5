//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// putJSON puts a part into the JSON text of a configuration. Comments and trailing commas are accepted, and all bytes
// but those of the part stay as they are.
func putJSON(text []byte, p part, force bool) ([]byte, error) {
	d, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	chain, rest, err := d.walk(p)
	if err != nil {
		return nil, err
	}
	c := chain[len(chain)-1]
	if len(rest) > 0 {
		d.add(c, rest[0], nested(rest[1:], p.leaf()))
		return d.pack(), nil
	}
	found, same, err := d.look(c, p)
	switch {
	case err != nil:
		return nil, err
	case same:
		return text, nil
	case found < 0:
		d.add(c, p.name(), p.value)
	case !force:
		return nil, errOther
	default:
		indent := d.indentOf(c) + d.unit()
		c.value(found).Value = hujson.Literal(jsonValue(p.value, indent, d.unit(), d.newline()))
	}
	return d.pack(), nil
}

// takeJSON takes a part out again, and with it the objects and lists that are empty then and were not there before: in
// base, the text as it was then, or by what the part says.
func takeJSON(text, base []byte, p part, force bool) ([]byte, error) {
	d, err := parseJSON(text)
	if err != nil {
		return nil, err
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
	for ; at > had && chain[at].len() == 1; at-- {
		found, _ = chain[at-1].find(p.at[at-1]) // walk has found it
	}
	chain[at].cut(found)
	return d.pack(), nil
}

// depth is how many of the objects and lists that lead to a part a text has.
func depth(text []byte, p part) int {
	d, err := parseJSON(text)
	if err != nil {
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
func (d *document) walk(p part) (chain []container, rest []string, err error) {
	at, what, names := &d.root, "the file", p.holders()
	for i := 0; ; i++ {
		kind, kindName := hujson.Kind('{'), "object"
		if p.list && i == len(names) {
			kind, kindName = '[', "list"
		}
		if at.Value.Kind() != kind {
			return nil, nil, fmt.Errorf("%s holds no %s", what, kindName)
		}
		c := container{at}
		if chain = append(chain, c); i == len(names) {
			return chain, nil, nil
		}
		next, err := c.find(names[i])
		if err != nil {
			return nil, nil, err
		}
		if next < 0 {
			return chain, p.at[i:], nil
		}
		at, what = c.value(next), quotedJSON(names[i])
	}
}

// look finds a part in what holds it: where, or -1, and whether it says the same. It may say more: a client's own
// settings for the server.
func (d *document) look(c container, p part) (at int, same bool, err error) {
	want := generic(p.value)
	if !p.list {
		if at, err = c.find(p.name()); at < 0 || err != nil {
			return at, false, err
		}
		return at, within(want, decoded(*c.value(at))), nil
	}
	at = -1
	for i := range c.len() {
		if v := c.value(i); within(want, decoded(*v)) {
			return i, true, nil
		} else if p.ours(d.source(v)) {
			at = i
		}
	}
	return at, false, nil
}

// decoded is what a value says.
func decoded(v hujson.Value) (value any) {
	v = v.Clone()
	v.Standardize()
	_ = json.Unmarshal(v.Pack(), &value) // it has been parsed
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

// A document is a JSON text with comments, behind a byte order mark if it has one.
type document struct {
	mark, text []byte
	root       hujson.Value
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON parses a text. One that is blank is an object without members.
func parseJSON(text []byte) (*document, error) {
	d := &document{text: bytes.TrimPrefix(text, byteOrderMark)}
	d.mark = text[:len(text)-len(d.text)]
	if len(bytes.TrimSpace(d.text)) == 0 {
		d.text = []byte("{}\n")
	}
	var err error
	// hujson wants a line's end behind each comment, and the last one may have none.
	if d.root, err = hujson.Parse(append(slices.Clip(d.text), '\n')); err != nil {
		return nil, fmt.Errorf("it is no JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	return d, nil
}

func (d *document) pack() []byte {
	return slices.Concat(d.mark, bytes.TrimSuffix(d.root.Pack(), []byte("\n")))
}

// source is a value as the text has it.
func (d *document) source(v *hujson.Value) []byte { return d.text[v.StartOffset:v.EndOffset] }

// add puts a member, or with the name "" an element, behind the last one, and behind the comments there.
func (d *document) add(c container, name string, v any) {
	indent := d.indentOf(c)
	inner := d.newline() + indent + d.unit()
	value := hujson.Value{Value: hujson.Literal(jsonValue(v, indent+d.unit(), d.unit(), d.newline()))}
	trails := c.len() > 0 && c.value(c.len()-1).AfterExtra != nil
	if trails { // as the others have it
		value.AfterExtra = hujson.Extra{}
	}
	end := c.before(c.len())
	comments := bytes.TrimRight(*end, " \t\r\n")
	space := (*end)[len(comments):]
	if !bytes.Contains(space, []byte("\n")) { // all of it was in one line
		comments, space = *end, hujson.Extra(d.newline()+indent)
	}
	before := append(slices.Clip(comments), inner...)
	switch in := c.Value.Value.(type) {
	case *hujson.Object:
		key := hujson.Value{BeforeExtra: before, Value: hujson.Literal(quotedJSON(name))}
		value.BeforeExtra = hujson.Extra(" ")
		in.Members = append(in.Members, hujson.ObjectMember{Name: key, Value: value})
	case *hujson.Array:
		value.BeforeExtra = before
		in.Elements = append(in.Elements, value)
	}
	*c.before(c.len()) = space
}

// A container is an object or a list.
type container struct{ *hujson.Value }

func (c container) len() int {
	if in, ok := c.Value.Value.(*hujson.Array); ok {
		return len(in.Elements)
	}
	return len(c.Value.Value.(*hujson.Object).Members)
}

func (c container) value(i int) *hujson.Value {
	if in, ok := c.Value.Value.(*hujson.Array); ok {
		return &in.Elements[i]
	}
	return &c.Value.Value.(*hujson.Object).Members[i].Value
}

// before is what stands before a member or an element, or behind the last one.
func (c container) before(i int) *hujson.Extra {
	switch in := c.Value.Value.(type) {
	case *hujson.Array:
		if i == len(in.Elements) {
			return &in.AfterExtra
		}
		return &in.Elements[i].BeforeExtra
	case *hujson.Object:
		if i < len(in.Members) {
			return &in.Members[i].Name.BeforeExtra
		}
		return &in.AfterExtra
	}
	return nil
}

// find is the index of a member, or -1.
func (c container) find(name string) (at int, err error) {
	at = -1
	for i, m := range c.Value.Value.(*hujson.Object).Members {
		if m.Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("%s is there twice", quotedJSON(name))
		}
		at = i
	}
	return at, nil
}

// cut takes a member or an element out, with its comma and the line that it leaves empty: what add has put there is
// gone.
func (c container) cut(i int) {
	last, kept, behind := c.len()-1, *c.before(i), c.before(i+1)
	if bytes.HasPrefix(bytes.TrimLeft(*behind, " \t\r"), []byte("\n")) {
		kept = bytes.TrimSuffix(bytes.TrimSuffix(bytes.TrimRight(kept, " \t"), []byte("\n")), []byte("\r"))
	}
	if i == last && i > 0 { // the comma before it is the trailing one, or none
		before := c.value(i - 1)
		if c.value(i).AfterExtra == nil {
			kept, before.AfterExtra = slices.Concat(before.AfterExtra, kept), nil
		} else if before.AfterExtra == nil {
			before.AfterExtra = hujson.Extra{}
		}
	}
	*behind = slices.Concat(kept, *behind)
	switch in := c.Value.Value.(type) {
	case *hujson.Object:
		in.Members = slices.Delete(in.Members, i, i+1)
	case *hujson.Array:
		in.Elements = slices.Delete(in.Elements, i, i+1)
	}
}

// indentOf is what stands before the line in which an object or a list begins.
func (d *document) indentOf(c container) string {
	line := d.text[bytes.LastIndexByte(d.text[:c.StartOffset], '\n')+1 : c.StartOffset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is one step of indentation, as the first member has it.
func (d *document) unit() string {
	before := *container{&d.root}.before(0)
	indent := before[bytes.LastIndexByte(before, '\n')+1:]
	if len(indent) == len(before) || len(indent) == 0 || len(bytes.TrimSpace(indent)) > 0 {
		return "  "
	}
	return string(indent)
}

func (d *document) newline() string {
	if bytes.Contains(d.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
