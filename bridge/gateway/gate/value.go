package gate

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/pagewire/pagewire/bridge/wire"
)

// An object is the text of a JSON object, or of another list, that is being written.
type object struct{ t wire.Text }

// next begins an element.
func (o *object) next() *object { o.t = o.t.Next(); return o }

// key begins a member.
func (o *object) key(name string) *object { return o.next().Str(name).Raw(":") }

func (o *object) Raw(s string) *object   { o.t = o.t.Raw(s); return o }
func (o *object) Bytes(b []byte) *object { o.t = o.t.Bytes(b); return o }
func (o *object) Str(s string) *object   { o.t = o.t.Str(s); return o }

// array writes a whole array.
func (o *object) array(list []wire.Value) *object {
	o.Raw("[")
	for _, v := range list {
		o.next().Bytes(v)
	}
	return o.Raw("]")
}

func (o *object) list(texts []string) {
	o.Raw("[")
	for _, s := range texts {
		o.next().Str(s)
	}
	o.Raw("]")
}

// data writes any value of a page as JavaScript reads it: of two members with one name the last, no
// half of a surrogate pair, and null for a number that is infinite.
func (o *object) data(v wire.Value) {
	if k := v.Kind(); k < wire.String && is("number", v) || k < wire.Number {
		o.Bytes(v)
		return
	}
	var x any
	if json.Unmarshal(v, &x) != nil {
		x = nil
	}
	text, _ := json.Marshal(x)
	o.t = o.t.Sound(text)
}

// cut shortens a text to most UTF-16 code units, between characters.
func cut(text string, most int) string {
	for i, r := range text {
		if len(text) <= most+i {
			break
		}
		if most -= max(1, utf16.RuneLen(r)); most < 0 {
			return text[:i]
		}
	}
	return text
}

// nesting bounds the nesting of what passes. A result that is nested deeper becomes text, up to
// maxNesting.
const nesting, maxNesting = 64, 1000

// A pair is a member of a page's object.
type pair struct{ key, value wire.Value }

// pairs takes an object with at most so many members, of which the last of each name counts. same
// reports that there were no others.
func pairs(w *wire.Walk, most int) (list []pair, same bool, err error) {
	list, same = make([]pair, 0, 6), true
	err = w.Object(func(key wire.Value) error {
		v, err := w.Value()
		i := slices.IndexFunc(list, func(p pair) bool { return p.key.Equal(key) })
		if i < 0 && len(list) < most {
			list = append(list, pair{key, v})
			return err
		}
		if same = false; i >= 0 {
			list[i].value = v
		}
		return err
	})
	return list, same, err
}

func valueOf(list []pair, name string) wire.Value {
	for _, p := range list {
		if p.key.Is(name) {
			return p.value
		}
	}
	return nil
}

func only(ok bool, v wire.Value) wire.Value {
	if ok {
		return v
	}
	return nil
}

// words is the text of a string, or the JSON text of any other value.
func words(v wire.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	return string(v)
}

// each calls f with the elements of an array, or with any other value that is there.
func each(v wire.Value, f func(wire.Value)) {
	if v.Kind() == wire.Array {
		v.Elements(func(e wire.Value) bool { f(e); return true })
	} else if v != nil {
		f(v)
	}
}

// textsOf are the different texts of an array. valid is false for any other value that is there.
func textsOf(v wire.Value) (texts []string, valid bool) {
	seen := map[string]bool{}
	valid = v == nil || v.Kind() == wire.Array
	v.Elements(func(e wire.Value) bool {
		text, ok := e.Text()
		if valid = valid && ok; valid && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
		return valid
	})
	if !valid {
		return nil, false
	}
	return texts, true
}

var formats = strings.Fields(`date-time date time duration email idn-email hostname idn-hostname ipv4
	ipv6 uri uri-reference iri iri-reference uuid uri-template json-pointer relative-json-pointer regex`)

// is reports whether a value is of a kind of keywords.
func is(kind string, v wire.Value) bool {
	text, isText := v.Text()
	number, err := strconv.ParseFloat(string(v), 64)
	isNumber := v.Kind() == wire.Number && err == nil
	switch kind {
	case "text":
		return isText
	case "list":
		return v.Kind() == wire.Array
	case "bool":
		return v.Kind() == wire.Bool
	case "number":
		return isNumber
	case "positive":
		return isNumber && number > 0
	case "count":
		n, ok := v.Int()
		return ok && n >= 0
	case "format":
		return isText && slices.Contains(formats, text)
	case "pattern":
		return isText && len(text) <= 500 && simple.MatchString(text) && !slices.ContainsFunc(
			repeated.FindAllStringSubmatch(text, -1), func(m []string) bool {
				return len(m[1]) > len(m[2]) || len(m[1]) == len(m[2]) && m[1] > m[2] // {3,1}
			})
	}
	return true
}

const (
	escape = `\\[dDwWsStnr.^$*+?()\[\]{}|/\\]`
	times  = `(?:(?:[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\})\??)?`
	class  = `\[\^?-?(?:` + escape + `|a-z|A-Z|0-9|a-f|A-F|[^\\\]\[\-^\x00-\x1f])+-?\]`
	one    = `(?:` + escape + `|` + class + `|[^\\\[\](){}*+?|\x00-\x1f])`
	group  = `(?:` + one + `|\((?:\?:)?(?:` + one + times + `|\|)*\))`
)

var (
	// simple matches patterns that mean the same in JavaScript's mode u and elsewhere. Programs
	// compile patterns, and some drop the list for one that their engine refuses.
	simple   = regexp.MustCompile(`^(?:` + group + times + `|\|)*$`)
	repeated = regexp.MustCompile(`\{0*([0-9]+),0*([0-9]+)\}`)
	token    = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$") // RFC 9110
)
