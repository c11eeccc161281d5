//go:build !js

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A tomlTable is where the table of a part is in a text, as far as it is there.
type tomlTable struct {
	newline string
	header  *statement
	keys    map[string]statement
	end     int  // behind its last statement
	deeper  bool // it has tables of its own
}

// findTOML finds the table of a part. It refuses a text that says the same in another way than by a header: putting
// one there would take it apart.
func findTOML(text []byte, ours []string) (*tomlTable, error) {
	statements, err := parseTOML(text)
	if err != nil {
		return nil, err
	}
	found := &tomlTable{newline: "\n", keys: map[string]statement{}}
	if bytes.Contains(text, []byte("\r\n")) {
		found.newline = "\r\n"
	}
	var table []string // that the statement is in
	for i, s := range statements {
		full := s.path
		if s.header {
			table = s.path
		} else {
			full = slices.Concat(table, s.path)
		}
		inside := len(table) >= len(ours) && slices.Equal(table[:len(ours)], ours)
		switch mine := inside && len(table) == len(ours); {
		case mine && s.header && (found.header != nil || s.array):
			return nil, fmt.Errorf("line %d: [%s] is there twice", s.line, strings.Join(ours, "."))
		case mine && s.header:
			found.header, found.end = &statements[i], s.to
		case mine:
			found.keys[strings.Join(s.path, ".")], found.end = s, s.to
		case inside:
			found.deeper = true
		case !s.header && (slices.Equal(full, ours[:1]) || len(full) >= 2 && slices.Equal(full[:2], ours)):
			return nil, fmt.Errorf("line %d: %s is not written as a table [%s]", s.line, strings.Join(full, "."),
				strings.Join(ours, "."))
		}
	}
	return found, nil
}

// putTOML puts a part into its table of a TOML text. All bytes but those of the part's own keys stay as they are.
func putTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.at)
	if err != nil {
		return nil, err
	}
	e := p.value.(entry)
	if table.header == nil {
		out := bytes.Clone(text)
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, table.newline...)
		}
		if len(out) > 0 {
			out = append(out, table.newline...)
		}
		out = append(out, "["+strings.Join(p.at, ".")+"]"+table.newline...)
		for _, m := range e {
			out = append(out, m.name+" = "+tomlValue(m.value)+table.newline...)
		}
		return out, nil
	}
	switch {
	case table.says(text, generic(e)):
		return text, nil
	case !force:
		return nil, errOther
	}
	return table.replace(text, e), nil
}

// says reports whether the table has what is wanted.
func (t *tomlTable) says(text []byte, want any) bool {
	members, _ := want.(map[string]any)
	for name, value := range members {
		s, ok := t.keys[name]
		if !ok || !tomlEqual(string(text[s.from:s.to]), value) {
			return false
		}
	}
	return true
}

// replace gives the table the keys of an entry, and takes out those of a server that is reached in another way.
func (t *tomlTable) replace(text []byte, e entry) []byte {
	type edit struct {
		from, to int
		with     string
	}
	var edits []edit
	insert := ""
	for _, m := range e {
		if s, ok := t.keys[m.name]; ok {
			edits = append(edits, edit{s.from, s.to, tomlValue(m.value)})
		} else {
			insert += t.newline + m.name + " = " + tomlValue(m.value)
		}
	}
	for _, name := range []string{"command", "args", "url", "http_headers"} {
		s, ok := t.keys[name]
		if ok && !slices.ContainsFunc(e, func(m member) bool { return m.name == name }) {
			edits = append(edits, edit{bytes.LastIndexByte(text[:s.begin], '\n') + 1, lineEnd(text, s.to), ""})
		}
	}
	if insert != "" {
		edits = append(edits, edit{t.header.to, t.header.to, insert})
	}
	// From the last to the first, so that offsets stay true.
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, one := range edits {
		text = splice(text, one.from, one.to, one.with)
	}
	return text
}

// takeTOML takes the table of a part out again, with the empty line before it.
func takeTOML(text []byte, p part, force bool) ([]byte, error) {
	table, err := findTOML(text, p.at)
	switch {
	case err != nil || table.header == nil:
		return text, err
	case table.deeper:
		return nil, fmt.Errorf("[%s] has tables of its own, which would be left without it", strings.Join(p.at, "."))
	case !table.says(text, generic(p.value)) && !force:
		return nil, errEdited
	}
	from := bytes.LastIndexByte(text[:table.header.begin], '\n') + 1
	if empty := table.newline + table.newline; bytes.HasSuffix(text[:from], []byte(empty)) {
		from -= len(table.newline)
	}
	return splice(text, from, lineEnd(text, table.end), ""), nil
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

// tomlEqual reports whether a value's text stands for v, as generic has it.
func tomlEqual(text string, v any) bool {
	switch v := v.(type) {
	case map[string]any: // a header, as we write it, whatever the blanks
		blanks := func(s string) string { return strings.Join(strings.Fields(s), "") }
		return slices.ContainsFunc(slices.Collect(maps.Keys(v)), func(name string) bool {
			return blanks(text) == blanks(tomlValue(header{name, fmt.Sprint(v[name])}))
		})
	case []any:
		items, ok := tomlItems(text)
		return ok && slices.EqualFunc(items, v, tomlEqual)
	case string:
		s, ok := tomlString(text)
		return ok && s == v
	}
	return false
}

// tomlItems splits an array of strings.
func tomlItems(text string) (items []string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return nil, false
	}
	p := tomlParser{text: []byte(text), at: 1}
	for {
		p.space(true)
		if p.peek() == ']' {
			return items, true
		}
		from := p.at
		if p.value() != nil {
			return nil, false
		}
		items = append(items, text[from:p.at])
		p.space(true)
		if p.peek() == ',' {
			p.at++
		}
	}
}

func tomlString(text string) (string, bool) {
	if len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'' && !strings.HasPrefix(text, "'''") {
		return text[1 : len(text)-1], true
	}
	if strings.HasPrefix(text, `"""`) {
		return "", false // nobody writes a path so
	}
	s, err := strconv.Unquote(text)
	return s, err == nil && strings.HasPrefix(text, `"`)
}

// A statement of a TOML text is a table's header, or a key with its value.
type statement struct {
	header, array bool
	path          []string // the key, or the table's name, by its parts
	line          int
	begin         int // where the statement begins
	from, to      int // the value; of a header, to is behind it
}

// parseTOML finds a text's statements. It reads as much of TOML as it takes to know where each begins and ends, and
// refuses what no reader would accept up to there; what numbers and dates look like is not its business.
func parseTOML(text []byte) ([]statement, error) {
	p := tomlParser{text: text}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		p.at = 3
	}
	var all []statement
	seen := map[string]bool{}
	table := ""
	for {
		p.space(true)
		if p.at == len(text) {
			return all, nil
		}
		s := statement{line: p.line(), begin: p.at}
		var err error
		if p.peek() == '[' {
			table, err = p.header(&s, seen)
		} else {
			err = p.pair(&s, table, seen)
		}
		if err != nil {
			return nil, err
		}
		s.to = p.at
		p.space(false)
		if c := p.peek(); c != '\n' && c != '#' && p.at != len(text) {
			what := map[bool]string{true: "header", false: "value"}[s.header]
			return nil, p.wrong("something stands behind a " + what)
		}
		all = append(all, s)
	}
}

// header takes a table's header, and gives the table's path as one text. seen are the tables and keys there are, by
// that.
func (p *tomlParser) header(s *statement, seen map[string]bool) (table string, err error) {
	s.header = true
	p.at++
	if s.array = p.peek() == '['; s.array {
		p.at++
	}
	if s.path, err = p.key(); err != nil {
		return "", err
	}
	end := "]"
	if s.array {
		end = "]]"
	}
	if !bytes.HasPrefix(p.text[p.at:], []byte(end)) {
		return "", p.wrong("a table's header has no " + end)
	}
	p.at += len(end)
	table = strings.Join(s.path, "\x00")
	if !s.array && seen[table] {
		return "", fmt.Errorf("line %d: it is no TOML: the table [%s] is there twice", s.line,
			strings.Join(s.path, "."))
	}
	if s.array { // each is a table of its own
		for k := range seen {
			if strings.HasPrefix(k, table+"\x00") {
				delete(seen, k)
			}
		}
	}
	seen[table] = true
	return table, nil
}

// pair takes a key and its value in a table.
func (p *tomlParser) pair(s *statement, table string, seen map[string]bool) (err error) {
	if s.path, err = p.key(); err != nil {
		return err
	}
	if p.peek() != '=' {
		return p.wrong("a key has no =")
	}
	p.at++
	p.space(false)
	s.from = p.at
	if err := p.value(); err != nil {
		return err
	}
	full := table + "\x00" + strings.Join(s.path, "\x00")
	if seen[full] {
		return fmt.Errorf("line %d: it is no TOML: the key %s is there twice", s.line,
			strings.Join(s.path, "."))
	}
	seen[full] = true
	return nil
}

type tomlParser struct {
	text []byte
	at   int
}

func (p *tomlParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *tomlParser) line() int { return 1 + bytes.Count(p.text[:p.at], []byte("\n")) }

func (p *tomlParser) wrong(what string) error {
	return fmt.Errorf("line %d: it is no TOML: %s", p.line(), what)
}

// space skips blanks and, over lines, comments and line ends.
func (p *tomlParser) space(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || c == '\r':
		case lines && c == '\n':
		case lines && c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
			continue
		default:
			return
		}
		p.at++
	}
}

// key reads a dotted key and the blanks behind it.
func (p *tomlParser) key() (path []string, err error) {
	for {
		p.space(false)
		from := p.at
		switch c := p.peek(); {
		case c == '"' || c == '\'':
			if err := p.quoted(); err != nil {
				return nil, err
			}
			part, ok := tomlString(string(p.text[from:p.at]))
			if !ok {
				return nil, p.wrong("a key in quotes cannot be read")
			}
			path = append(path, part)
		default:
			for c := p.peek(); c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' &&
				c <= 'z'; c = p.peek() {
				p.at++
			}
			if from == p.at {
				return nil, p.wrong("a key is expected")
			}
			path = append(path, string(p.text[from:p.at]))
		}
		p.space(false)
		if p.peek() != '.' {
			return path, nil
		}
		p.at++
	}
}

// quoted passes a string of any of the four kinds.
func (p *tomlParser) quoted() error {
	quote := p.text[p.at]
	rest := p.text[p.at:]
	if three := bytes.Repeat([]byte{quote}, 3); bytes.HasPrefix(rest, three) {
		for i := 3; i < len(rest); i++ {
			if quote == '"' && rest[i] == '\\' {
				i++
			} else if bytes.HasPrefix(rest[i:], three) {
				for i += 3; i < len(rest) && rest[i] == quote; i++ { // up to two quotes may stand before the end
				}
				p.at += i
				return nil
			}
		}
		return p.wrong("a string has no end")
	}
	for i := 1; i < len(rest) && rest[i] != '\n'; i++ {
		if quote == '"' && rest[i] == '\\' {
			i++
		} else if rest[i] == quote {
			p.at += i + 1
			return nil
		}
	}
	return p.wrong("a string has no end")
}

// value passes a value.
func (p *tomlParser) value() error {
	switch c := p.peek(); c {
	case '"', '\'':
		return p.quoted()
	case '[', '{':
		line := p.line()
		p.at++
		for {
			p.space(true)
			switch next := p.peek(); {
			case p.at >= len(p.text):
				return errors.New("line " + strconv.Itoa(line) + ": it is no TOML: what " + string(c) +
					" opens has no end")
			case c == '[' && next == ']' || c == '{' && next == '}':
				p.at++
				return nil
			case next == ',':
				p.at++
				continue
			}
			if c == '{' {
				if _, err := p.key(); err != nil {
					return err
				}
				if p.peek() != '=' {
					return p.wrong("a key has no =")
				}
				p.at++
				p.space(false)
			}
			if err := p.value(); err != nil {
				return err
			}
			p.space(true)
			if next := p.peek(); next != ',' && next != ']' && next != '}' && p.at < len(p.text) {
				return p.wrong("a comma is missing")
			}
		}
	}
	from := p.at
	for p.at < len(p.text) && !bytes.ContainsRune([]byte(",]}#\r\n \t\"'[{="), rune(p.text[p.at])) {
		p.at++
	}
	// A date and its time may be parted by a space.
	if d := p.text[from:p.at]; len(d) == 10 && d[4] == '-' && p.peek() == ' ' && p.at+1 < len(p.text) &&
		p.text[p.at+1] >= '0' && p.text[p.at+1] <= '9' {
		p.at++
		for p.at < len(p.text) && !bytes.ContainsRune([]byte(",]}#\r\n \t"), rune(p.text[p.at])) {
			p.at++
		}
	}
	if from == p.at {
		return p.wrong("a value is expected")
	}
	return nil
}
