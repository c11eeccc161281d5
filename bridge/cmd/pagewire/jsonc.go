//go:build !js

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// mergeJSON puts an entry under key in the JSON text of a configuration. Comments and trailing commas are accepted, and all bytes but
// those of the entry stay as they are.
func mergeJSON(text []byte, key string, e entry, force bool) ([]byte, error) {
	d := newDocument(text)
	if len(bytes.TrimSpace(d.blank)) == 0 && !bytes.ContainsAny(text, "/") {
		return []byte("{\n  " + quotedJSON(key) + ": {\n    " + quotedJSON(serverName) + ": " + e.json("    ", "  ", "\n") + "\n  }\n}\n"), nil
	}
	root, err := d.object(0, "the file")
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(d.blank[root.end:]); len(rest) > 0 {
		return nil, fmt.Errorf("line %d: something stands behind the JSON", d.line(len(d.blank)-len(bytes.TrimLeft(d.blank[root.end:], " \t\r\n"))))
	}
	at, err := root.find(key)
	if err != nil {
		return nil, err
	}
	if at == nil {
		inner := d.indentOf(root) + d.unit()
		value := "{" + d.newline() + inner + d.unit() + quotedJSON(serverName) + ": " + e.json(inner+d.unit(), d.unit(), d.newline()) + d.newline() + inner + "}"
		return d.add(root, key, value), nil
	}
	servers, err := d.object(at.from, quotedJSON(key))
	if err != nil {
		return nil, err
	}
	at, err = servers.find(serverName)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return d.add(servers, serverName, e.json(d.indentOf(servers)+d.unit(), d.unit(), d.newline())), nil
	}
	var is map[string]any
	if json.Unmarshal(d.blank[at.from:at.end], &is) == nil && e.in(is) {
		return text, nil
	}
	if !force {
		return nil, errOther
	}
	indent := d.indentOf(servers) + d.unit()
	return splice(text, at.from, at.end, e.json(indent, d.unit(), d.newline())), nil
}

// in reports whether an entry that is there says the same. It may say more: a client's own settings for the server.
func (e entry) in(is map[string]any) bool {
	for _, m := range e {
		value := m.value
		if h, ok := value.(header); ok {
			value = map[string]string{h.name: h.value}
		}
		text, _ := json.Marshal(value) // strings always can be
		var want any
		_ = json.Unmarshal(text, &want)
		got, ok := is[m.name]
		if m.name == "type" && !ok {
			continue // it goes without saying
		}
		if !reflect.DeepEqual(got, want) {
			return false
		}
	}
	return true
}

// json writes the entry over several lines, the first of which stands after indent.
func (e entry) json(indent, unit, newline string) string {
	var b strings.Builder
	b.WriteString("{")
	for i, m := range e {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(newline + indent + unit + quotedJSON(m.name) + ": ")
		switch value := m.value.(type) {
		case []string:
			var quotes []string
			for _, s := range value {
				quotes = append(quotes, quotedJSON(s))
			}
			b.WriteString("[" + strings.Join(quotes, ", ") + "]")
		case header:
			b.WriteString("{ " + quotedJSON(value.name) + ": " + quotedJSON(value.value) + " }")
		default:
			b.WriteString(quotedJSON(value))
		}
	}
	b.WriteString(newline + indent + "}")
	return b.String()
}

func quotedJSON(v any) string {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // a string always can be
	return strings.TrimSuffix(b.String(), "\n")
}

// A document is a JSON text with comments. blank is the same text with spaces for all that JSON does not know, so that an offset in
// one is one in the other.
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

// An object is where one is in a document.
type object struct {
	from, end int // of { and behind }
	members   []span
}

// A span is where a member's value is.
type span struct {
	name      string
	from, end int
}

func (o *object) find(name string) (*span, error) {
	var found *span
	for i := range o.members {
		if o.members[i].name == name {
			if found != nil {
				return nil, fmt.Errorf("%s is there twice", quotedJSON(name))
			}
			found = &o.members[i]
		}
	}
	return found, nil
}

// object reads the object that begins at or behind an offset.
func (d *document) object(offset int, what string) (*object, error) {
	in := json.NewDecoder(bytes.NewReader(d.blank[offset:]))
	fail := func(err error) error {
		var syntax *json.SyntaxError
		at := offset + int(in.InputOffset())
		if errors.As(err, &syntax) {
			at = offset + int(syntax.Offset)
		}
		return fmt.Errorf("line %d: it is no JSON: %w", d.line(at), err)
	}
	open, err := in.Token()
	if err != nil {
		return nil, fail(err)
	}
	if open != json.Delim('{') {
		return nil, fmt.Errorf("line %d: %s holds no object", d.line(offset+int(in.InputOffset())), what)
	}
	o := &object{from: offset + int(in.InputOffset()) - 1}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, fail(err)
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, fail(err)
		}
		end := offset + int(in.InputOffset())
		o.members = append(o.members, span{name.(string), end - len(value), end})
	}
	if _, err := in.Token(); err != nil {
		return nil, fail(err)
	}
	o.end = offset + int(in.InputOffset())
	return o, nil
}

// add puts a member behind the last one of an object, and behind the comments there.
func (d *document) add(o *object, name, value string) []byte {
	indent, brace := d.indentOf(o), o.end-1
	insert := d.newline() + indent + d.unit() + quotedJSON(name) + ": " + value
	from := len(bytes.TrimRight(d.text[:brace], " \t\r\n"))
	to, behind := from, ""
	if !bytes.Contains(d.text[from:brace], []byte("\n")) {
		to, behind = brace, d.newline()+indent // all of the object was in one line
	}
	if len(o.members) == 0 {
		return splice(d.text, from, to, insert+behind)
	}
	end := o.members[len(o.members)-1].end
	for _, comma := range d.trailing {
		if comma >= end && comma < brace {
			return splice(d.text, from, to, insert+","+behind) // as the others have it
		}
	}
	return splice(splice(d.text, from, to, insert+behind), end, end, ",")
}

// indentOf is what stands before the line in which an object begins.
func (d *document) indentOf(o *object) string {
	line := d.text[bytes.LastIndexByte(d.text[:o.from], '\n')+1 : o.from]
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is one step of indentation, as the first line that is indented has it.
func (d *document) unit() string {
	mark := len(d.text) - len(bytes.TrimPrefix(d.text, []byte("\xef\xbb\xbf")))
	for line := range bytes.Lines(d.blank[mark:]) {
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; len(indent) > 0 && len(bytes.TrimSpace(line)) > 0 {
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
