package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// A document is a JSON text with comments and trailing commas, and perhaps a byte order mark. It
// writes what nobody has edited as it was read, byte for byte.
type document struct {
	mark          []byte
	newline, unit string // a line's end, and one step of indentation
	root          hujson.Value
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON parses a text. A blank text is an object without members.
func parseJSON(text []byte) (d *document, err error) {
	body := bytes.TrimPrefix(text, byteOrderMark)
	d = &document{mark: text[:len(text)-len(body)], newline: newlineOf(text), unit: "  "}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	// hujson needs a line end after each comment, and the last comment may lack it.
	if d.root, err = hujson.Parse(append(slices.Clip(body), '\n')); err != nil {
		return nil, fmt.Errorf("it is no JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if heads, _, _ := items(&d.root); len(heads) > 0 && indentOf(heads[0], "") != "" {
		d.unit = indentOf(heads[0], "")
	}
	return d, nil
}

func (d *document) text() []byte {
	text := d.root.Pack()
	return slices.Concat(d.mark, text[:len(text)-1])
}

// indentOf returns the indentation of an item that has a line of its own, and otherwise that of the
// line around it.
func indentOf(head *hujson.Value, around string) string {
	line := head.BeforeExtra[bytes.LastIndexByte(head.BeforeExtra, '\n')+1:]
	if len(line) == len(head.BeforeExtra) || len(bytes.TrimSpace(line)) > 0 {
		return around
	}
	return string(line)
}

// items returns what an object or a list contains, and the space before its last bracket. An item
// begins with its head, which is a member's name, or the element itself.
func items(v *hujson.Value) (heads, values []*hujson.Value, end *hujson.Extra) {
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

// find returns the index of a member, or -1.
func find(v *hujson.Value, name string) (at int, err error) {
	at = -1
	heads, _, _ := items(v)
	for i, head := range heads {
		if head.Value.(hujson.Literal).String() != name {
			continue
		}
		if at >= 0 {
			return -1, fmt.Errorf("%s is there twice", cli.CompactJSON(name))
		}
		at = i
	}
	return at, nil
}

// holder returns the object or the list that is to contain a part, and the indentation of its line.
// If it is missing, holder returns the last object on the way to it, and the names of the members
// that are missing.
func (d *document) holder(p part) (at *hujson.Value, indent string, missing []string, err error) {
	at = &d.root
	what := "the file"
	for i := 0; ; i++ {
		kind, kindName := hujson.Kind('{'), "object"
		if p.hook && i == len(p.at) {
			kind, kindName = '[', "list"
		}
		if at.Value.Kind() != kind {
			return nil, "", nil, fmt.Errorf("%s holds no %s", what, kindName)
		}
		if i == len(p.at) || !p.hook && i == len(p.at)-1 {
			return at, indent, nil, nil
		}
		next, err := find(at, p.at[i])
		if next < 0 || err != nil {
			return at, indent, p.at[i:], err
		}
		heads, values, _ := items(at)
		at, indent, what = values[next], indentOf(heads[next], indent), cli.CompactJSON(p.at[i])
	}
}

// putJSON puts a part into JSON. A hook replaces hooks of ours in the same list, and in the lists
// of events at which this build has none.
func putJSON(text []byte, p part, force bool) ([]byte, error) {
	d, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	at, indent, missing, err := d.holder(p)
	if err != nil {
		return nil, err
	}
	old := 0
	if p.hook && len(missing) < len(p.at) {
		lists, _, _, _ := d.holder(part{at: p.at}) // no error: it is on the way to the holder
		heads, values, _ := items(lists)
		for i, head := range heads {
			if !slices.Contains(p.events, head.Value.(hujson.Literal).String()) {
				old += sweep(values[i], 3)
			}
		}
	}
	if len(missing) > 0 {
		value := p.value
		if p.hook {
			value = []any{value}
		}
		for _, name := range slices.Backward(missing[1:]) {
			value = entry{{name, value}}
		}
		d.add(at, indent, missing[0], value)
		return d.text(), nil
	}
	heads, values, _ := items(at)
	if p.hook {
		there := func(v *hujson.Value) bool { return includes(decoded(v), generic(p.value)) }
		if has := slices.ContainsFunc(values, there); sweep(at, 3) == 1 && has && old == 0 {
			return text, nil
		}
		d.add(at, indent, "", p.value)
		return d.text(), nil
	}
	name := p.at[len(p.at)-1]
	switch i, err := find(at, name); {
	case err != nil:
		return nil, err
	case i < 0:
		d.add(at, indent, name, p.value)
	case includes(decoded(values[i]), generic(p.value)):
		return text, nil
	case !force:
		return nil, errOther
	default:
		values[i].Value = d.parsed(p.value, indentOf(heads[i], indent)).Value
	}
	return d.text(), nil
}

// takeJSON takes a part out of JSON: an entry, or all our hooks.
func takeJSON(text []byte, p part, force bool) ([]byte, error) {
	d, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	hooks := p.hook
	p.hook = false // the holder is then that of all lists of hooks
	at, _, missing, err := d.holder(p)
	if err != nil || len(missing) > 0 {
		return text, err
	}
	if hooks {
		sweep(at, 4)
		return d.text(), nil
	}
	i, err := find(at, p.at[len(p.at)-1])
	if err != nil || i < 0 {
		return text, err
	}
	if _, values, _ := items(at); !force && !ourEntry(decoded(values[i])) {
		return nil, errNotOurs
	}
	cut(at, i)
	return d.text(), nil
}

// hasJSON reports whether a text has an entry of our name, or a hook of ours in the list of the
// part.
func hasJSON(text []byte, p part) bool {
	if p.hook {
		at := heldJSON(text, p)
		return at != nil && sweep(at, 3) > 0
	}
	return entryJSON(text, p) != nil
}

// heldJSON returns the object or the list that contains a part, or nil.
func heldJSON(text []byte, p part) *hujson.Value {
	d, err := parseJSON(text)
	if err != nil {
		return nil
	}
	at, _, missing, err := d.holder(p)
	if err != nil || len(missing) > 0 {
		return nil
	}
	return at
}

// entryJSON returns the entry of our name in a text, or nil.
func entryJSON(text []byte, p part) *hujson.Value {
	at := heldJSON(text, p)
	if at == nil {
		return nil
	}
	i, _ := find(at, p.at[len(p.at)-1])
	if i < 0 {
		return nil
	}
	_, values, _ := items(at)
	return values[i]
}

// sweep takes our hooks out of lists, and groups that have nothing but hooks of ours. It returns
// how many hooks it found. Below the member "hooks" there are four levels: events, the groups of
// one, "hooks" of a group, and the hooks.
func sweep(v *hujson.Value, levels int) (found int) {
	_, values, _ := items(v)
	for i, value := range slices.Backward(values) {
		n := 0
		if levels > 1 {
			n = sweep(value, levels-1)
		}
		if v.Value.Kind() == '[' && value.Value.Kind() == '{' {
			if ours := ourHook(decoded(value)); ours || n > 0 && emptyGroup(value) {
				cut(v, i)
				n = max(n, 1)
			}
		}
		found += n
	}
	return found
}

// emptyGroup reports whether a group has no hooks any more, and nothing that a person has added.
func emptyGroup(v *hujson.Value) bool {
	group, _ := decoded(v).(map[string]any)
	hooks, _ := group["hooks"].([]any)
	delete(group, "matcher")
	return v.IsStandard() && len(group) == 1 && hooks != nil && len(hooks) == 0
}

// saysNothing matches a text that has objects and lists alone, and no comment.
var saysNothing = regexp.MustCompile(`^(?:\s|[{}\[\],]|"\w+"\s*:)*$`)

// decoded decodes a value as encoding/json does.
func decoded(v *hujson.Value) (value any) {
	copied := v.Clone()
	copied.Standardize()
	_ = json.Unmarshal(copied.Pack(), &value) // it has been parsed
	return value
}

// add puts a member, or an element if name is "", after the last one and its comments.
func (d *document) add(v *hujson.Value, indent, name string, value any) {
	_, values, end := items(v)
	item := d.parsed(value, indent+d.unit)
	if last := len(values) - 1; last >= 0 && values[last].AfterExtra != nil {
		item.AfterExtra = hujson.Extra{} // the user prefers a trailing comma
	}
	comments := commentsOf(*end)
	before := hujson.Extra(slices.Concat(comments, []byte(d.newline+indent+d.unit)))
	if *end = (*end)[len(comments):]; !bytes.Contains(*end, []byte("\n")) {
		*end = hujson.Extra(d.newline + indent) // the bracket was on the same line
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

// cut removes an item, with its comma and the line that it leaves empty. Comments around it stay.
func cut(v *hujson.Value, i int) {
	heads, values, end := items(v)
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

// parsed returns a value as it is written in a line with this indentation.
func (d *document) parsed(value any, indent string) hujson.Value {
	text := jsonValue(value, indent, d.unit, d.newline)
	v, _ := hujson.Parse([]byte(text)) // no error: we have just made it
	v.AfterExtra = nil
	return v
}
