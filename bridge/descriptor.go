package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Resource is a resource that a host offers.
type Resource = resource.Resource

// A Rule sets which URIs a host admits.
type Rule = resource.Rule

// GatewayPath is the prefix of the paths that belong to a gateway at every origin: no page has a
// URI there.
const GatewayPath = resource.GatewayPath

// DecodeResource decodes a Resource from the JSON text of its members, which are named as in the
// IDL. It keeps no part of text. The error is a *resource.Error, or a *wire.Error if text is not
// JSON.
func DecodeResource(text []byte) (Resource, error) {
	r := given{Resource{Size: -1}}
	v, err := wire.Parse(text, 64)
	if err != nil {
		return r.Resource, err
	}
	bad := ""
	v.Members(func(key, m wire.Value) bool {
		ok := true
		switch {
		case key.Is("uri"):
			r.URI, ok = m.Text()
		case key.Is("name"):
			r.Name, ok = m.Text()
		case key.Is("title"):
			r.Title, ok = m.Text()
		case key.Is("description"):
			r.Description, ok = m.Text()
		case key.Is("mimeType"):
			r.MIMEType, ok = m.Text()
		case key.Is("size"):
			r.Size, ok = m.Int()
			ok = ok && r.Size >= 0
		case key.Is("minUpdateInterval"):
			r.MinInterval, ok = count(m, resource.MaxInterval)
		case key.Is("icons"):
			r.Icons, ok = r.icons(m)
		case key.Is("annotations"):
			r.Annotations, ok = r.annotations(m)
		case key.Is("_meta"):
			r.Meta, ok = r.known("_meta", m, func(key, m wire.Value) (wire.Value, bool) {
				if name, _ := key.Text(); resource.Reserved(name) != "" {
					m = nil
				}
				return m, true
			})
		case key.Is("contentSchema"):
			r.Meta, ok = wire.Text(`{"pagewire/schema":`).Sound(m).Raw(`}`), m.Kind() == wire.Object
		case key.Is("uriSchema"):
			r.Schema, ok = r.decodeSchema(m), m.Kind() == wire.Object
		}
		if !ok {
			bad, _ = key.Text()
			bad = "member " + bad + " has the wrong type or is out of range"
		}
		return bad == ""
	})
	if v.Kind() != wire.Object {
		bad = "a resource must be an object"
	}
	if bad != "" {
		return r.Resource, &resource.Error{Reason: resource.Invalid, Message: bad}
	}
	return r.Resource, nil
}

// A given is a resource as a page gives it. Agents get the members that MCP defines, and no others:
// a strict client refuses the list of all pages for one "audience":5.
type given struct{ Resource }

// mended notes what agents do not get.
func (r *given) mended(member, why string) {
	if len(r.Mended) > 500 {
		return
	}
	if r.Mended != "" {
		r.Mended += "; "
	}
	r.Mended += member + why
}

// known writes the members of an object that as returns: nil is for one that is unknown. Of two
// with one name it writes the last. It reports whether all are valid.
func (r *given) known(of string, v wire.Value,
	as func(key, m wire.Value) (wire.Value, bool)) (t wire.Text, ok bool) {
	ok = v.Kind() == wire.Object
	last := map[string]wire.Value{}
	v.Members(func(key, m wire.Value) bool {
		name, _ := key.Text()
		last[name] = m
		return true
	})
	t = t.Raw("{")
	v.Members(func(key, m wire.Value) bool {
		name, _ := key.Text()
		if &last[name][0] != &m[0] {
			return true
		}
		value, valid := as(key, m)
		if ok = ok && valid; len(value) > 0 {
			t = t.Next().Sound(key).Raw(":").Sound(value)
		} else if value == nil && valid {
			r.mended(of+"."+name, " is left out: agents get no such member")
		}
		return ok
	})
	return t.Raw("}"), ok
}

func (r *given) icons(v wire.Value) (t wire.Text, ok bool) {
	t = t.Raw("[")
	ok = isArrayOf(v, func(icon wire.Value) bool {
		_, valid := icon.Get("src").Text()
		text, known := r.known("icons", icon, func(key, m wire.Value) (wire.Value, bool) {
			switch {
			case key.Is("src"), key.Is("mimeType"):
				return m, isText(m)
			case key.Is("sizes"):
				return m, isArrayOf(m, isText)
			case key.Is("theme"):
				return m, m.Is("light") || m.Is("dark")
			}
			return nil, true
		})
		t = t.Next().Bytes(text)
		return valid && known
	})
	return t.Raw("]"), ok
}

func (r *given) annotations(v wire.Value) (wire.Text, bool) {
	return r.known("annotations", v, func(key, m wire.Value) (wire.Value, bool) {
		switch {
		case key.Is("audience"):
			return m, isArrayOf(m, func(who wire.Value) bool {
				return who.Is("user") || who.Is("assistant")
			})
		case key.Is("priority"):
			return m, m.Kind() == wire.Number && resource.Within(string(m), "0", "1")
		case key.Is("lastModified"):
			text, ok := m.Text()
			time := resource.DateTime(text)
			if time == "" {
				if ok {
					r.mended("annotations.lastModified",
						" is left out: write a time with its offset, such as new Date().toISOString()")
				}
				return wire.Value{}, ok
			}
			return wire.Value(wire.Text(nil).Str(time)), ok
		case key.Is("subscribeHint"):
			return m, m.Kind() == wire.Bool
		}
		return nil, true
	})
}

func isText(v wire.Value) bool {
	_, ok := v.Text()
	return ok
}

// isArrayOf reports whether v is an array whose elements all satisfy is.
func isArrayOf(v wire.Value, is func(wire.Value) bool) bool {
	ok := v.Kind() == wire.Array
	v.Elements(func(element wire.Value) bool {
		ok = ok && is(element)
		return ok
	})
	return ok
}

func clone(v wire.Value) []byte { return append([]byte(nil), v...) }

// count reads an integer of 0 to most.
func count(v wire.Value, most int) (n int, ok bool) {
	i, ok := v.Int()
	if !ok || i < 0 || i > int64(most) {
		return 0, false
	}
	return int(i), true
}

// decodeSchema decodes a uriSchema. It may have properties of type string, number, integer,
// boolean, or array of one of these, with enum, const, minimum, maximum, minLength, maxLength,
// minItems and maxItems, and required and additionalProperties (a boolean). Values are not checked
// against anything else, and the page is told: it must check them itself. A resource that nobody
// sees would help nobody.
func (r *given) decodeSchema(v wire.Value) *resource.Schema {
	s := &resource.Schema{}
	v.Members(func(key, m wire.Value) bool {
		k, _ := key.Text()
		ok := true
		switch k {
		case "type":
			ok = m.Is("object")
		case "properties":
			ok = m.Kind() == wire.Object
			m.Members(func(name, definition wire.Value) bool {
				p := resource.Property{MaxLength: -1, MaxItems: -1}
				p.Name, _ = name.Text()
				r.decodeProperty(&p, definition)
				s.Properties = append(s.Properties, p)
				return true
			})
		case "additionalProperties":
			ok = m.Kind() == wire.Bool
			s.Closed = ok && !m.True()
		case "required": // below, when all properties are known
			ok = isArrayOf(m, isText)
		default:
			ok = annotation(k)
		}
		if !ok {
			r.unchecked("", k)
		}
		return true
	})
	v.Get("required").Elements(func(e wire.Value) bool {
		name, ok := e.Text()
		for i := range s.Properties {
			if s.Properties[i].Name == name {
				s.Properties[i].Required, ok = true, false
			}
		}
		if ok {
			s.Properties = append(s.Properties,
				resource.Property{Name: name, Required: true, MaxLength: -1, MaxItems: -1})
		}
		return true
	})
	return s
}

// unchecked notes a keyword that values are not checked against.
func (r *given) unchecked(property, keyword string) {
	if property != "" {
		keyword = property + "." + keyword
	}
	r.mended("uriSchema: "+keyword, ": values are not checked against it, so check them in read")
}

func (r *given) decodeProperty(p *resource.Property, v wire.Value) {
	if v.Kind() != wire.Object && !v.True() {
		r.unchecked(p.Name, "schema")
	}
	v.Members(func(key, m wire.Value) bool {
		ok := true
		k, _ := key.Text()
		switch k {
		case "type":
			ok = decodeType(p, m)
		case "items":
			item := resource.Property{Name: p.Name, MaxLength: -1}
			r.decodeProperty(&item, m)
			ok = !item.List
			item.Required, item.List = p.Required, p.List
			item.MinItems, item.MaxItems = p.MinItems, p.MaxItems
			*p = item
		case "enum", "const":
			list := m
			if k == "const" {
				list = wire.Value(wire.Text("[").Bytes(m).Raw("]"))
			}
			if ok = list.Kind() == wire.Array; !ok {
				break
			}
			p.Enum = []string{}
			list.Elements(func(e wire.Value) bool {
				text, isString := e.Text()
				if !isString {
					text = string(e)
				}
				p.Enum = append(p.Enum, text)
				return true
			})
		case "minimum":
			p.Minimum, ok = bound(m)
		case "maximum":
			p.Maximum, ok = bound(m)
		case "minLength":
			p.MinLength, ok = count(m, 1<<30)
		case "maxLength":
			if p.MaxLength, ok = count(m, 1<<30); !ok {
				p.MaxLength = -1
			}
		case "minItems":
			p.MinItems, ok = count(m, 1<<30)
		case "maxItems":
			if p.MaxItems, ok = count(m, 1<<30); !ok {
				p.MaxItems = -1
			}
		default:
			ok = annotation(k)
		}
		if !ok {
			r.unchecked(p.Name, k)
		}
		return true
	})
}

// decodeType decodes the keyword "type" into a property.
func decodeType(p *resource.Property, v wire.Value) (ok bool) {
	switch t, _ := v.Text(); t {
	case "array":
		p.List = true
	case "string":
		p.Kind = resource.String
	case "number":
		p.Kind = resource.Number
	case "integer":
		p.Kind = resource.Integer
	case "boolean":
		p.Kind = resource.Boolean
	default:
		return false
	}
	return true
}

// annotation reports whether a JSON Schema keyword constrains nothing.
func annotation(keyword string) bool {
	switch keyword {
	case "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated",
		"readOnly", "format":
		return true
	}
	return false
}

// bound returns a number's text: bounds are compared as text.
func bound(v wire.Value) (string, bool) {
	if v.Kind() != wire.Number {
		return "", false
	}
	return string(v), true
}

// describe appends the entry of a resource in resources/list or, if key is "uriTemplate", in
// resources/templates/list.
func describe(t wire.Text, key, uri string, r *Resource) wire.Text {
	t = t.Raw(`{"`).Raw(key).Raw(`":`).Str(uri).Raw(`,"name":`).Str(r.Name)
	text := func(key, s string) {
		if s != "" {
			t = t.Raw(key).Str(s)
		}
	}
	raw := func(key string, json []byte) {
		if len(json) > 0 {
			t = t.Raw(key).Bytes(json)
		}
	}
	text(`,"title":`, r.Title)
	text(`,"description":`, r.Description)
	text(`,"mimeType":`, r.MIMEType)
	if r.Size >= 0 && key == "uri" {
		t = t.Raw(`,"size":`).Int64(r.Size)
	}
	raw(`,"icons":`, r.Icons)
	raw(`,"annotations":`, r.Annotations)
	raw(`,"_meta":`, r.Meta)
	return t.Raw(`}`)
}

// paramsJSON is the JSON text of an object of parameters, each with the type from its schema.
func paramsJSON(params []resource.Param) string {
	t := wire.Text(`{`)
	for _, p := range params {
		t = t.Next().Str(p.Name).Raw(`:`)
		if p.List {
			t = t.Raw(`[`)
		}
		for _, v := range p.Values {
			if t = t.Next(); p.Kind == resource.String {
				t = t.Str(v)
			} else {
				t = t.Raw(v)
			}
		}
		if p.List {
			t = t.Raw(`]`)
		}
	}
	return string(t.Raw(`}`))
}
