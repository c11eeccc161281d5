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

// A tomlTable is the place of a part's table in a text.
type tomlTable struct {
	says      any  // its value; nil if there is no table
	header    int  // the line of its header, or -1
	body, end int  // the ends of that line and of its last key's line
	deeper    bool // it has subtables
}

// findTOML finds a table. It refuses a table in another notation, since a header for it would then be an error.
func findTOML(text []byte, at []string) (*tomlTable, error) {
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
	tables, _ := all[at[0]].(map[string]any)
	t := &tomlTable{says: tables[at[1]], header: -1}
	var p unstable.Parser
	p.Reset(body)
	var in []string // the table of the expression
	for mark := len(text) - len(body); p.NextExpression(); {
		e := p.Expression()
		var key []string
		behind := 0
		for parts := e.Key(); parts.Next(); {
			name := parts.Node()
			key, behind = append(key, string(name.Data)), mark+int(name.Raw.Offset+name.Raw.Length)
		}
		switch {
		case e.Kind == unstable.KeyValue && slices.Equal(in, at):
			t.end = lineEnd(text, mark+int(e.Raw.Offset+e.Raw.Length))
		case e.Kind != unstable.KeyValue:
			if in = key; slices.Equal(in, at) {
				t.header, t.body = bytes.LastIndexByte(text[:behind], '\n')+1, lineEnd(text, behind)
				t.end = t.body
			}
			t.deeper = t.deeper || len(in) > len(at) && slices.Equal(in[:len(at)], at)
		}
	}
	if _, isTable := t.says.(map[string]any); t.says != nil && (!isTable || t.header < 0 && !t.deeper) {
		return nil, fmt.Errorf("%s is not written as a table [%[1]s]", strings.Join(at, "."))
	}
	return t, nil
}

// putTOML puts a part into its table. All other bytes stay as they are.
func putTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.At)
	if err != nil {
		return nil, err
	}
	newline, name := newlineOf(text), "["+strings.Join(p.At, ".")+"]"
	var keys strings.Builder
	for _, m := range p.Value.(entry) {
		keys.WriteString(m.name + " = " + tomlValue(m.value) + newline)
	}
	from, to, with := len(text), len(text), name+newline+keys.String()
	switch {
	case table.header >= 0 && includes(table.says, generic(p.Value)):
		return text, nil
	case table.header >= 0 && !force:
		return nil, errOther
	case table.header >= 0:
		if from, to, with = table.body, table.end, keys.String(); !bytes.HasSuffix(text[:from], []byte("\n")) {
			with = newline + with
		}
	case len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")):
		with = newline + newline + with
	case len(text) > 0:
		with = newline + with
	}
	out := splice(text, from, to, with)
	if _, err := findTOML(out, p.At); err != nil {
		return nil, fmt.Errorf("%s cannot be put there: %w", name, err)
	}
	return out, nil
}

// takeTOML removes the table of a part, with the empty line before it.
func takeTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.At)
	switch {
	case err != nil || table.header < 0:
		return text, err
	case table.deeper:
		return nil, fmt.Errorf("[%s] has tables of its own, which would be left without it", strings.Join(p.At, "."))
	case !includes(table.says, generic(p.Value)) && !force:
		return nil, errEdited
	}
	from, newline := table.header, newlineOf(text)
	if bytes.HasSuffix(text[:from], []byte(newline+newline)) {
		from -= len(newline)
	}
	return splice(text, from, table.end, ""), nil
}

// foundTOML returns the text of a part's table, or "" if it is missing.
func foundTOML(text []byte, p part) string {
	table, err := findTOML(text, p.At)
	if err != nil || table.header < 0 {
		return ""
	}
	return string(text[table.header:table.end])
}

// lineEnd returns the offset after the line of an offset.
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
	return quotedJSON(s) // TOML has the same escapes
}
