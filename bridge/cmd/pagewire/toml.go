//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A tomlTable is where the table of a part is in a text, as far as it is there.
type tomlTable struct {
	says      any                  // what it says, as the decoder has it
	header    int                  // where its header's line begins, or -1
	body, end int                  // behind that line, and behind its last one
	keys      map[string]statement // by their names
	deeper    bool                 // it has tables of its own
}

// A statement is a key with its value: it begins at begin, its value at from.
type statement struct{ begin, from, to int }

// findTOML finds the table of a part. It refuses a text that says the same in another way than by a header: putting
// one there would take it apart.
func findTOML(text []byte, ours []string) (*tomlTable, error) {
	body := bytes.TrimPrefix(text, byteOrderMark)
	var all map[string]any
	if err := toml.Unmarshal(body, &all); err != nil {
		var wrong *toml.DecodeError
		if errors.As(err, &wrong) {
			line, column := wrong.Position()
			err = fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		return nil, fmt.Errorf("it is no TOML: %w", err)
	}
	tables, _ := all[ours[0]].(map[string]any)
	t := &tomlTable{says: tables[ours[1]], header: -1, keys: map[string]statement{}}
	var p unstable.Parser
	p.Reset(body)
	var in []string // the table that an expression is in
	for mark := len(text) - len(body); p.NextExpression(); {
		e := p.Expression()
		var key []string
		var name unstable.Range
		for parts := e.Key(); parts.Next(); {
			key, name = append(key, string(parts.Node().Data)), parts.Node().Raw
		}
		behind := mark + int(name.Offset+name.Length)
		switch {
		case e.Kind != unstable.KeyValue:
			if in = key; slices.Equal(in, ours) {
				t.header = bytes.LastIndexByte(text[:behind], '\n') + 1
				t.body = lineEnd(text, behind)
				t.end = t.body
			}
			t.deeper = t.deeper || len(in) > len(ours) && slices.Equal(in[:len(ours)], ours)
		case slices.Equal(in, ours):
			s := statement{begin: mark + int(e.Raw.Offset), to: mark + int(e.Raw.Offset+e.Raw.Length)}
			value := bytes.TrimLeft(text[behind:s.to], " \t=")
			s.from = s.to - len(value)
			t.keys[strings.Join(key, ".")], t.end = s, lineEnd(text, s.to)
		}
	}
	if _, isTable := t.says.(map[string]any); t.says != nil && (!isTable || t.header < 0 && !t.deeper) {
		return nil, fmt.Errorf("%s is not written as a table [%[1]s]", strings.Join(ours, "."))
	}
	return t, nil
}

// putTOML puts a part into its table of a TOML text. All bytes but those of the part's own keys stay as they are.
func putTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.at)
	if err != nil {
		return nil, err
	}
	e, newline, out := p.value.(entry), tomlNewline(text), text
	switch {
	case table.header >= 0 && within(generic(e), table.says):
		return text, nil
	case table.header >= 0 && !force:
		return nil, errOther
	case table.header >= 0:
		out = table.replace(text, e)
	default:
		if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
			out = slices.Concat(out, []byte(newline))
		}
		if len(text) > 0 {
			out = slices.Concat(out, []byte(newline))
		}
		out = slices.Concat(out, []byte("["+strings.Join(p.at, ".")+"]"+newline))
		for _, m := range e {
			out = append(out, m.name+" = "+tomlValue(m.value)+newline...)
		}
	}
	if _, err := findTOML(out, p.at); err != nil {
		return nil, fmt.Errorf("[%s] cannot be put there: %w", strings.Join(p.at, "."), err)
	}
	return out, nil
}

func tomlNewline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// replace gives the table the keys of an entry, and takes out those of a server that is reached in another way.
func (t *tomlTable) replace(text []byte, e entry) []byte {
	type edit struct {
		from, to int
		with     string
	}
	insert := edit{from: t.body, to: t.body}
	if !bytes.HasSuffix(text[:t.body], []byte("\n")) {
		insert.with = "\n"
	}
	edits := []edit{}
	for _, m := range e {
		if s, ok := t.keys[m.name]; ok {
			edits = append(edits, edit{s.from, s.to, tomlValue(m.value)})
		} else {
			insert.with += m.name + " = " + tomlValue(m.value) + tomlNewline(text)
		}
	}
	for _, name := range []string{"command", "args", "url", "http_headers"} {
		s, ok := t.keys[name]
		if ok && !slices.ContainsFunc(e, func(m member) bool { return m.name == name }) {
			edits = append(edits, edit{bytes.LastIndexByte(text[:s.begin], '\n') + 1, lineEnd(text, s.to), ""})
		}
	}
	// From the last to the first, so that offsets stay true.
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, one := range append(edits, insert) {
		text = splice(text, one.from, one.to, one.with)
	}
	return text
}

// takeTOML takes the table of a part out again, with the empty line before it.
func takeTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.at)
	switch {
	case err != nil || table.header < 0:
		return text, err
	case table.deeper:
		return nil, fmt.Errorf("[%s] has tables of its own, which would be left without it", strings.Join(p.at, "."))
	case !within(generic(p.value), table.says) && !force:
		return nil, errEdited
	}
	from, newline := table.header, tomlNewline(text)
	if bytes.HasSuffix(text[:from], []byte(newline+newline)) {
		from -= len(newline)
	}
	return splice(text, from, table.end, ""), nil
}

// lineEnd is behind the line that an offset is in.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

func tomlValue(v any) string {
	if h, ok := v.(header); ok {
		return "{ " + h.name + " = " + quotedJSON(h.value) + " }"
	}
	if list, ok := v.([]string); ok {
		var all []string
		for _, s := range list {
			all = append(all, tomlValue(s))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	s := v.(string)
	if strings.Contains(s, `\`) && !strings.ContainsAny(s, "'\n\r\t") {
		return "'" + s + "'" // as a person would write a path of Windows
	}
	return quotedJSON(s) // whose escapes are TOML's as well
}

// splice replaces a part of a text. What it makes is empty at the least, and never nil.
func splice(text []byte, from, to int, with string) []byte {
	return append(append(append(make([]byte, 0, len(text)+len(with)), text[:from]...), with...), text[to:]...)
}
