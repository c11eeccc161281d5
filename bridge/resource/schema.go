package resource

import (
	"strconv"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A schema is a uriSchema (as platformatic/mcp#96 proposes it), parsed: what parameters a URI takes.
// It is the part of JSON Schema that says something about flat parameters: an object of properties of type string,
// number, integer, boolean, or array of one of these, with enum, minimum, maximum, minLength, maxLength, minItems,
// maxItems, and required and additionalProperties (a boolean) on the object. Other keywords that constrain are
// refused when the resource is registered, so that a schema is never enforced less strictly than it reads.
type schema struct {
	props  []property
	closed bool // additionalProperties is false
}

type property struct {
	name     string
	required bool
	list     bool
	kind     string // string, number, integer or boolean; "" means string
	enum     []wire.Value
	min, max float64 // of a number; NaN-free: hasMin and hasMax say whether they count
	hasMin   bool
	hasMax   bool
	minLen   int64
	maxLen   int64 // of a string, in code points; -1 is no bound
	minItems int64
	maxItems int64 // -1 is no bound
}

func parseSchema(v wire.Value) (*schema, error) {
	s := &schema{}
	bad := ""
	v.Members(func(key, m wire.Value) bool {
		k, _ := key.Text()
		switch k {
		case "type":
			if !m.Is("object") {
				bad = "type must be \"object\""
			}
		case "properties":
			if m.Kind() != wire.Object {
				bad = "properties must be an object"
			}
			m.Members(func(name, def wire.Value) bool {
				p, why := parseProperty(def)
				p.name, _ = name.Text()
				if why != "" {
					bad = "property " + p.name + ": " + why
				}
				s.props = append(s.props, p)
				return bad == ""
			})
		case "additionalProperties":
			if m.Kind() != wire.Bool {
				bad = "additionalProperties must be a boolean"
			}
			s.closed = !m.True()
		case "required": // below, when all properties are known
		default:
			if !annotation(k) {
				bad = "keyword " + k + " is not supported"
			}
		}
		return bad == ""
	})
	v.Get("required").Elements(func(e wire.Value) bool {
		name, ok := e.Text()
		if !ok {
			bad = "required must be an array of strings"
			return false
		}
		if p := s.property(name); p != nil {
			p.required = true
		} else {
			s.props = append(s.props, property{name: name, required: true, maxLen: -1, maxItems: -1})
		}
		return true
	})
	if bad != "" {
		return nil, &Error{Reason: Invalid, Message: "uriSchema: " + bad}
	}
	return s, nil
}

func parseProperty(def wire.Value) (p property, bad string) {
	p.maxLen, p.maxItems = -1, -1
	if def.Kind() != wire.Object {
		return p, "must be an object"
	}
	def.Members(func(key, m wire.Value) bool {
		k, _ := key.Text()
		var ok = true
		switch k {
		case "type":
			t, _ := m.Text()
			switch t {
			case "array":
				p.list = true
			case "string", "number", "integer", "boolean":
				p.kind = t
			default:
				bad = "type must be string, number, integer, boolean or array"
				return false
			}
		case "items":
			item, why := parseProperty(m)
			if item.list {
				why = "an array of arrays"
			}
			if why != "" {
				bad = "items: " + why
				return false
			}
			p.kind, p.enum, p.min, p.max, p.hasMin, p.hasMax = item.kind, item.enum, item.min, item.max, item.hasMin, item.hasMax
			p.minLen, p.maxLen = item.minLen, item.maxLen
		case "enum":
			ok = m.Kind() == wire.Array
			m.Elements(func(e wire.Value) bool {
				p.enum = append(p.enum, e)
				return true
			})
		case "minimum":
			p.min, p.hasMin = number(m)
			ok = p.hasMin
		case "maximum":
			p.max, p.hasMax = number(m)
			ok = p.hasMax
		case "minLength":
			p.minLen, ok = m.Int()
		case "maxLength":
			p.maxLen, ok = m.Int()
		case "minItems":
			p.minItems, ok = m.Int()
		case "maxItems":
			p.maxItems, ok = m.Int()
		default:
			if !annotation(k) {
				bad = "keyword " + k + " is not supported"
				return false
			}
		}
		if !ok {
			bad = k + " has the wrong type"
		}
		return ok
	})
	return p, bad
}

// annotation reports whether a JSON Schema keyword constrains nothing.
func annotation(keyword string) bool {
	switch keyword {
	case "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly":
		return true
	}
	return false
}

func number(v wire.Value) (float64, bool) {
	if v.Kind() != wire.Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

func (s *schema) property(name string) *property {
	for i := range s.props {
		if s.props[i].name == name {
			return &s.props[i]
		}
	}
	return nil
}

// json is the parameters as a JSON object, each as the schema types it, or an *Error of reason BadParams.
func (s *schema) json(params []param) (wire.Text, error) {
	refuse := func(name, why string) (wire.Text, error) {
		return nil, &Error{Reason: BadParams, Message: "Invalid params: " + name + " " + why}
	}
	t := wire.Text(`{`)
	member := func(name string) {
		if len(t) > 1 {
			t = t.Raw(`,`)
		}
		t = t.Str(name).Raw(`:`)
	}
	for i := range s.props {
		p := &s.props[i]
		n := int64(0)
		for _, q := range params {
			if q.name != p.name {
				continue
			}
			if n++; n > 1 && !p.list {
				return refuse(p.name, "is given more than once")
			}
			if n == 1 {
				member(p.name)
				if p.list {
					t = t.Raw(`[`)
				}
			} else {
				t = t.Raw(`,`)
			}
			value, why := p.json(q.value)
			if why != "" {
				return refuse(p.name, why)
			}
			t = t.Bytes(value)
		}
		if n > 0 && p.list {
			t = t.Raw(`]`)
		}
		switch {
		case n == 0 && p.required:
			return refuse(p.name, "is required")
		case n > 0 && n < p.minItems:
			return refuse(p.name, "has too few items")
		case p.maxItems >= 0 && n > p.maxItems:
			return refuse(p.name, "has too many items")
		}
	}
	for i, q := range params {
		if s.property(q.name) != nil {
			continue
		}
		if s.closed {
			return refuse(q.name, "is not a parameter")
		}
		for _, other := range params[:i] {
			if other.name == q.name {
				return refuse(q.name, "is given more than once")
			}
		}
		member(q.name)
		t = t.Str(q.value)
	}
	return t.Raw(`}`), nil
}

// json is one value as the property types it, or why it is refused.
func (p *property) json(text string) (value wire.Value, refused string) {
	value = wire.Value(text)
	switch p.kind {
	case "number", "integer":
		v, err := wire.Parse([]byte(text), 0)
		if err != nil || v.Kind() != wire.Number || len(v) != len(text) || p.kind == "integer" && !v.Integer() {
			return nil, "must be of type " + p.kind
		}
		f, ok := number(v)
		switch {
		case !ok:
			return nil, "must be of type " + p.kind
		case p.hasMin && f < p.min:
			return nil, "is below its minimum"
		case p.hasMax && f > p.max:
			return nil, "is above its maximum"
		}
	case "boolean":
		if text != "true" && text != "false" {
			return nil, "must be true or false"
		}
	default:
		n := int64(utf8.RuneCountInString(text))
		if n < p.minLen || p.maxLen >= 0 && n > p.maxLen {
			return nil, "has a length that is out of bounds"
		}
		value = wire.Value(wire.Text(nil).Str(text))
	}
	if p.enum == nil {
		return value, ""
	}
	for _, e := range p.enum {
		if value.Equal(e) {
			return value, ""
		}
	}
	return nil, "is not one of the values allowed"
}
