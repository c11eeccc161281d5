package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/internal/jsonc"
)

// findTOML returns the value at a path, or nil, and the lines that say it: those of its table, of
// the tables below it, and of its keys elsewhere. The lines of each span follow one another.
func findTOML(text []byte, at []string) (is any, spans [][2]int, err error) {
	body := bytes.TrimPrefix(text, jsonc.ByteOrderMark)
	var all map[string]any
	if err := toml.Unmarshal(body, &all); err != nil {
		var wrong *toml.DecodeError
		if errors.As(err, &wrong) {
			line, column := wrong.Position()
			reason := strings.TrimPrefix(wrong.Error(), "toml: ")
			err = fmt.Errorf("line %d, column %d: %s", line, column, reason)
		}
		return nil, nil, fmt.Errorf("it is no TOML: %w", err)
	}
	tables, _ := all[at[0]].(map[string]any)
	is = tables[at[1]]
	var p unstable.Parser
	p.Reset(body)
	var table []string
	follows := false
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		if e.Kind == unstable.KeyValue {
			key = slices.Clone(table)
		}
		from, to := -1, 0
		for parts := e.Key(); parts.Next(); {
			raw := parts.Node().Raw
			key = append(key, string(parts.Node().Data))
			if to = int(raw.Offset + raw.Length); from < 0 {
				from = int(raw.Offset)
			}
		}
		if e.Kind == unstable.KeyValue {
			to = int(e.Raw.Offset + e.Raw.Length)
		} else {
			table = key
		}
		inside := len(key) >= len(at) && slices.Equal(key[:len(at)], at)
		if mark := len(text) - len(body); inside {
			from, to = bytes.LastIndexByte(body[:from], '\n')+1+mark, lineEnd(text, to+mark)
			if follows {
				spans[len(spans)-1][1] = to
			} else {
				spans = append(spans, [2]int{from, to})
			}
		}
		follows = inside
	}
	if is != nil && len(spans) == 0 {
		return nil, nil, fmt.Errorf("%s is not written as a table [%[1]s]", strings.Join(at, "."))
	}
	return is, spans, nil
}

// putTOML puts an entry into TOML, as a table at the end.
func putTOML(text []byte, p part, force bool) ([]byte, error) {
	is, _, err := findTOML(text, p.at)
	switch {
	case err != nil:
		return nil, err
	case is != nil && includes(is, generic(p.value)):
		return text, nil
	case is != nil && !force:
		return nil, errOther
	case is != nil:
		if text, err = takeTOML(text, p, true); err != nil {
			return nil, err
		}
	}
	newline, name := jsonc.NewlineOf(text), "["+strings.Join(p.at, ".")+"]"
	out := slices.Clip(text)
	if body := bytes.TrimPrefix(text, jsonc.ByteOrderMark); len(body) > 0 {
		if !bytes.HasSuffix(body, []byte("\n")) {
			out = append(out, newline...)
		}
		out = append(out, newline...)
	}
	out = append(out, name+newline...)
	for _, m := range p.value.(entry) {
		out = append(out, m.name+" = "+tomlValue(m.value)+newline...)
	}
	if _, _, err := findTOML(out, p.at); err != nil {
		return nil, fmt.Errorf("%s cannot be put there: %w", name, err)
	}
	return out, nil
}

// takeTOML takes an entry out of TOML, with the empty line before it.
func takeTOML(text []byte, p part, force bool) ([]byte, error) {
	is, spans, err := findTOML(text, p.at)
	switch {
	case err != nil || is == nil:
		return text, err
	case !force && !ourEntry(is):
		return nil, errNotOurs
	}
	newline := jsonc.NewlineOf(text)
	for _, span := range slices.Backward(spans) {
		from := span[0]
		if bytes.HasSuffix(text[:from], []byte(newline+newline)) {
			from -= len(newline)
		}
		text = append(append([]byte{}, text[:from]...), text[span[1]:]...) // nil would be no file
	}
	if _, _, err := findTOML(text, p.at); err != nil {
		return nil, fmt.Errorf("[%s] cannot go: without it %w", strings.Join(p.at, "."), err)
	}
	return text, nil
}

// lineEnd returns the offset after the line of an offset.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

func tomlValue(v any) string {
	switch v := v.(type) {
	case header:
		return "{ " + v.name + " = " + cli.CompactJSON(v.value) + " }"
	case []string:
		var all []string
		for _, s := range v {
			all = append(all, tomlValue(s))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case string:
		if strings.Contains(v, `\`) && !strings.ContainsAny(v, "'\n\r\t") {
			return "'" + v + "'" // as a person would write a path of Windows
		}
	}
	return cli.CompactJSON(v) // TOML has the same escapes
}
