package clientconfig

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/internal/jsonc"
)

// holder returns the object or the list that is to contain a part, and the indentation of its line.
// If it is missing, holder returns the last object on the way to it, and the names of the members
// that are missing.
func holder(d *jsonc.Document, p part) (at *hujson.Value, indent string, missing []string, err error) {
	at = &d.Root
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
		next, err := jsonc.Find(at, p.at[i])
		if next < 0 || err != nil {
			return at, indent, p.at[i:], err
		}
		heads, values, _ := jsonc.Items(at)
		at, indent, what = values[next], jsonc.IndentOf(heads[next], indent), cli.CompactJSON(p.at[i])
	}
}

// putJSON puts a part into JSON. A hook replaces hooks of ours in the same list, and in the lists
// of events at which this build has none.
func putJSON(text []byte, p part, force bool) ([]byte, error) {
	d, err := jsonc.Parse(text)
	if err != nil {
		return nil, err
	}
	at, indent, missing, err := holder(d, p)
	if err != nil {
		return nil, err
	}
	old := 0
	if p.hook && len(missing) < len(p.at) {
		lists, _, _, _ := holder(d, part{at: p.at}) // no error: it is on the way to the holder
		heads, values, _ := jsonc.Items(lists)
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
		add(d, at, indent, missing[0], value)
		return d.Text(), nil
	}
	heads, values, _ := jsonc.Items(at)
	if p.hook {
		there := func(v *hujson.Value) bool { return includes(jsonc.Decoded(v), generic(p.value)) }
		if has := slices.ContainsFunc(values, there); sweep(at, 3) == 1 && has && old == 0 {
			return text, nil
		}
		add(d, at, indent, "", p.value)
		return d.Text(), nil
	}
	name := p.at[len(p.at)-1]
	switch i, err := jsonc.Find(at, name); {
	case err != nil:
		return nil, err
	case i < 0:
		add(d, at, indent, name, p.value)
	case includes(jsonc.Decoded(values[i]), generic(p.value)):
		return text, nil
	case !force:
		return nil, errOther
	default:
		values[i].Value = parsed(d, p.value, jsonc.IndentOf(heads[i], indent)).Value
	}
	return d.Text(), nil
}

// takeJSON takes a part out of JSON: an entry, or all our hooks.
func takeJSON(text []byte, p part, force bool) ([]byte, error) {
	d, err := jsonc.Parse(text)
	if err != nil {
		return nil, err
	}
	hooks := p.hook
	p.hook = false // the holder is then that of all lists of hooks
	at, _, missing, err := holder(d, p)
	if err != nil || len(missing) > 0 {
		return text, err
	}
	if hooks {
		sweep(at, 4)
		return d.Text(), nil
	}
	i, err := jsonc.Find(at, p.at[len(p.at)-1])
	if err != nil || i < 0 {
		return text, err
	}
	if _, values, _ := jsonc.Items(at); !force && !ourEntry(jsonc.Decoded(values[i])) {
		return nil, errNotOurs
	}
	jsonc.Cut(at, i)
	return d.Text(), nil
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
	d, err := jsonc.Parse(text)
	if err != nil {
		return nil
	}
	at, _, missing, err := holder(d, p)
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
	i, _ := jsonc.Find(at, p.at[len(p.at)-1])
	if i < 0 {
		return nil
	}
	_, values, _ := jsonc.Items(at)
	return values[i]
}

// sweep takes our hooks out of lists, and groups that have nothing but hooks of ours. It returns
// how many hooks it found. Below the member "hooks" there are four levels: events, the groups of
// one, "hooks" of a group, and the hooks.
func sweep(v *hujson.Value, levels int) (found int) {
	_, values, _ := jsonc.Items(v)
	for i, value := range slices.Backward(values) {
		n := 0
		if levels > 1 {
			n = sweep(value, levels-1)
		}
		if v.Value.Kind() == '[' && value.Value.Kind() == '{' {
			if ours := ourHook(jsonc.Decoded(value)); ours || n > 0 && emptyGroup(value) {
				jsonc.Cut(v, i)
				n = max(n, 1)
			}
		}
		found += n
	}
	return found
}

// emptyGroup reports whether a group has no hooks any more, and nothing that a person has added.
func emptyGroup(v *hujson.Value) bool {
	group, _ := jsonc.Decoded(v).(map[string]any)
	hooks, _ := group["hooks"].([]any)
	delete(group, "matcher")
	return v.IsStandard() && len(group) == 1 && hooks != nil && len(hooks) == 0
}

// saysNothing matches a text that has objects and lists alone, and no comment.
var saysNothing = regexp.MustCompile(`^(?:\s|[{}\[\],]|"\w+"\s*:)*$`)

// add puts a member or an element after the last one (jsonc.Document.Add).
func add(d *jsonc.Document, at *hujson.Value, indent, name string, value any) {
	d.Add(at, indent, name, parsed(d, value, indent+d.Unit))
}

// parsed returns a value as it is written in a line with this indentation.
func parsed(d *jsonc.Document, value any, indent string) hujson.Value {
	text := jsonValue(value, indent, d.Unit, d.Newline)
	v, _ := hujson.Parse([]byte(text)) // no error: we have just made it
	v.AfterExtra = nil
	return v
}
