package gate

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A page's schema is written anew, from the keywords that this file knows. The new schema admits at
// least what the page's admits: a tool checks its own arguments, and an outputSchema promises no
// more than Output checks.

const (
	// maxNodes bounds the subschemas of a schema, and maxPath twice their nesting, with all
	// references written out.
	maxNodes, maxPath = 10_000, 64
	// maxInput and maxOutput bound the new schema, in bytes. Clients compile an outputSchema.
	maxInput, maxOutput = 256 << 10, 32 << 10
)

// A schema is one that is being written.
type schema struct {
	root    wire.Value
	output  bool
	at      []string // the path of the current subschema
	nodes   int
	work    int                   // bytes that may still be read: references make a schema longer
	refs    []string              // the references that are being written out
	targets map[string]wire.Value // by reference
	branch  bool                  // in a part that a changed name cannot be mapped back from
	refused string                // a name in the current branch that would have to be changed
	names   Names
	renamed bool
	headers map[string]bool // the headers of arguments, in lower case
	faults  Faults
	fatal   bool // the last fault is that the schema cannot be served
}

// normalise writes a page's schema. It returns nil, and the reason as the last fault, if it cannot.
func normalise(v wire.Value, name string, output bool) ([]byte, Names, Faults) {
	s := &schema{root: v, output: output, at: []string{name}, work: 64*len(v) + 1<<16,
		names:   Names{},
		targets: map[string]wire.Value{}, headers: map[string]bool{}}
	most := maxInput
	if output {
		most = maxOutput
	}
	var text wire.Text
	if k := v.Kind(); k > wire.Null && k != wire.Object {
		s.fail("", "it is no object")
	} else if text = s.write(nil, v, ""); len(text) > most {
		s.fail("", "it is longer than "+strconv.Itoa(most)+
			" bytes, with its references written out")
	}
	if s.fatal {
		return nil, nil, s.faults
	}
	if !s.renamed {
		s.names = nil
	}
	return text, s.names, s.faults
}

// drop notes a part that agents do not get as it is.
func (s *schema) drop(member, reason string) {
	if !s.fatal {
		s.faults.add(strings.TrimSuffix(strings.Join(s.at, ".")+"."+member, "."), reason)
	}
}

func (s *schema) fail(member, reason string) {
	s.faults = s.faults[:min(len(s.faults), maxFaults-1)]
	s.drop(member, reason)
	s.fatal = true
}

// wrong is drop, or fail at the root, where clients refuse the list of all tools.
func (s *schema) wrong(member, reason string) {
	if len(s.at) == 1 {
		s.fail(member, reason)
	} else {
		s.drop(member, "left out, because "+reason)
	}
}

// in writes a part at a member.
func (s *schema) in(members []string, write func()) {
	s.at = append(s.at, members...)
	write()
	s.at = s.at[:len(s.at)-len(members)]
}

// Keywords whose value is no schema, with their kinds. Results are checked against the first ones
// alone, so an outputSchema has no others.
var (
	keywords = strings.Fields(`title text default any examples list deprecated bool readOnly bool
		writeOnly bool minimum number maximum number minLength count maxLength count minItems count
		maxItems count contentEncoding text contentMediaType text
		pattern pattern format format multipleOf positive uniqueItems bool exclusiveMinimum number
		exclusiveMaximum number minProperties count maxProperties count`)
	inputOnly = slices.Index(keywords, "pattern")
	// silent say nothing about a value, or are written out. Those of others have rules below.
	silent = strings.Fields("$schema $id $anchor $comment $vocabulary $defs definitions")
	others = strings.Fields(`type description enum const properties required dependentRequired
		dependencies additionalProperties items anyOf oneOf allOf x-mcp-header`)
	types = strings.Fields("string number integer boolean object array null")
)

// write writes a subschema. page is its property's name in the page, if agents have another one.
func (s *schema) write(t wire.Text, v wire.Value, page string) wire.Text {
	before := len(s.refs)
	m := s.members(v)
	if s.nodes++; s.nodes > maxNodes || len(s.at) > maxPath || s.work < 0 || len(t) > maxInput {
		s.drop("", "too large or too deep: it says nothing here")
		return t.Raw("{}")
	}
	o := object{t: t.Raw("{")}
	of := s.types(m["type"])
	if len(of) == 1 {
		o.key("type").Str(of[0])
	} else if len(of) > 1 {
		o.key("type").list(of)
	}
	description, _ := m["description"].Text()
	if page != "" {
		description = "The page calls it " + strconv.Quote(cut(page, 200)) + ". " + description
	}
	if description != "" {
		o.key("description").Str(strings.TrimSpace(description))
	}
	for i := 0; i < len(keywords); i += 2 {
		switch value, ok := m[keywords[i]]; {
		case !ok:
		case s.output && i >= inputOnly:
			s.drop(keywords[i], "left out, because results are not checked against it")
		case !is(keywords[i+1], value):
			s.drop(keywords[i], "left out, because it is no valid "+keywords[i+1])
		default:
			o.key(keywords[i]).data(value)
		}
	}
	s.values(&o, m)
	s.properties(&o, m)
	// some programs demand it of an array
	if v, ok := m["items"]; ok || slices.Contains(of, "array") {
		s.in([]string{"items"}, func() { o.t = s.sub(o.key("items").t, v, "") })
	}
	s.branches(&o, m)
	s.header(&o, m["x-mcp-header"], of)
	s.refs = s.refs[:before]
	var unknown []string
	for key := range m {
		if i := slices.Index(keywords, key); i%2 != 0 && !slices.Contains(silent, key) &&
			!slices.Contains(others, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		s.drop(cut(key, 100), "left out, because agents get no such keyword")
	}
	return o.t.Raw("}")
}

// members are the members of a schema and of what it refers to. They are without a keyword that
// would refuse more than the page's, because another one is left out.
func (s *schema) members(v wire.Value) map[string]wire.Value {
	m := map[string]wire.Value{}
	s.work -= len(v)
	v.Members(func(key, value wire.Value) bool {
		name, _ := key.Text()
		m[name] = value // the last of two with one name
		return true
	})
	if given, ok := m["$ref"]; ok {
		delete(m, "$ref")
		ref, _ := given.Text()
		if target := s.target(ref); slices.Contains(s.refs, ref) {
			s.drop("$ref", "left out, because it leads to itself")
		} else if target == nil {
			s.drop("$ref", "left out, because it leads to no part of this schema")
		} else {
			s.refs = append(s.refs, ref)
			theirs := s.members(target)
			if m["properties"] != nil || m["additionalProperties"] != nil {
				delete(m, "additionalProperties") // each of the two has properties of its own
				delete(theirs, "additionalProperties")
			}
			for key, value := range theirs {
				if _, ok := m[key]; !ok {
					m[key] = value
				}
			}
		}
	}
	if m["patternProperties"] != nil {
		delete(m, "additionalProperties")
	}
	if m["items"].Kind() == wire.Array {
		m["prefixItems"] = m["items"] // its name today
	}
	if m["prefixItems"] != nil {
		m["items"] = wire.Value("true")
	}
	return m
}

// target is the part of the root that a reference names, or nil.
func (s *schema) target(ref string) (v wire.Value) {
	if v, known := s.targets[ref]; known {
		return v
	}
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if local && err == nil && (pointer == "" || pointer[0] == '/') {
		v = s.root
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		if s.work -= len(v); s.work < 0 {
			return nil
		}
		v = v.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
	}
	if v.Kind() != wire.Object {
		v = nil
	}
	s.targets[ref] = v
	return v
}

// types are the valid types of a schema. That of the root must be object.
func (s *schema) types(v wire.Value) (of []string) {
	each(v, func(e wire.Value) {
		if kind, _ := e.Text(); slices.Contains(types, kind) && !slices.Contains(of, kind) {
			of = append(of, kind)
		} else {
			s.drop("type", "partly left out, because JSON Schema has no such type")
		}
	})
	if len(s.at) > 1 {
		return of
	}
	if v == nil && !s.output {
		return []string{"object"}
	}
	if !v.Is("object") {
		s.fail("type", `it is not "object"`)
	}
	return of
}

// inherited are members of Object.prototype. Clients that check a result find them in each one.
var inherited = strings.Fields(`constructor toString toLocaleString valueOf hasOwnProperty isPrototypeOf
	propertyIsEnumerable __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__`)

// values writes enum and const. Results are checked against values that are no lists and no
// objects.
func (s *schema) values(o *object, m map[string]wire.Value) {
	v, ok := m["enum"]
	if given, is := m["const"]; is && !ok {
		v, ok = wire.Value(wire.Text("[").Bytes(given).Raw("]")), true
	}
	list, simple, empty := object{}, true, false
	v.Elements(func(e wire.Value) bool {
		simple = simple && e.Kind() < wire.Array
		if !s.output && e.Is("") {
			empty = true
		} else {
			list.next().data(e)
		}
		return true
	})
	switch {
	case ok && (v.Kind() != wire.Array || v.Empty()):
		s.fail("enum", "it is no list of values")
	case s.output && !simple:
		s.drop("enum", "left out, because results are checked against simple values alone")
	case list.t != nil && m["enum"] == nil:
		o.key("const").Bytes(list.t)
	case list.t != nil:
		o.key("enum").Raw("[").Bytes(list.t).Raw("]")
	}
	if empty {
		s.drop("enum",
			`"" is left out, because some models refuse it: make the property optional instead`)
	}
}

// properties writes the properties, and the keywords that name them. Some models refuse
// alternatives at the root: their properties are written with its own.
func (s *schema) properties(o *object, m map[string]wire.Value) {
	if v := m["properties"]; v != nil && v.Kind() != wire.Object {
		s.wrong("properties", "it is no object")
	}
	required, valid := textsOf(m["required"])
	if !valid {
		s.wrong("required",
			`it is no list of names: write "required": ["NAME"] beside "properties"`)
	}
	var list []property
	index := map[string]int{}
	add := func(name string, v wire.Value, instead bool) {
		if s.output && slices.Contains(inherited, name) {
			s.drop("properties."+name,
				"it says nothing, because every object in JavaScript has such a member")
			v = wire.Value("{}")
		}
		if i, twice := index[name]; name == "__proto__" {
			s.drop("properties."+name, "left out, because programs in JavaScript lose it")
		} else if !twice {
			index[name] = len(list)
			list = append(list, property{name, name, v})
		} else if instead {
			list[i].schema = v // as JSON.parse does
		}
	}
	all := func(v wire.Value, instead bool) {
		v.Members(func(key, v wire.Value) bool {
			name, _ := key.Text()
			add(name, v, instead)
			return true
		})
	}
	all(m["properties"], true)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if v, ok := m[key]; ok && len(s.at) == 1 {
			s.drop(key,
				"its properties are listed with the others: say in the description which belong together")
			own := len(list)
			each(v, func(e wire.Value) { all(s.members(e)["properties"], false) })
			delete(m, key)
			if len(list) > own {
				delete(m, "additionalProperties") // it does not see those of the alternatives
			}
		}
	}
	for _, name := range required {
		if !s.output {
			// some models refuse a required name without a property
			add(name, wire.Value("{}"), false)
		}
	}
	if !s.output {
		rename(list, index)
	}
	if len(list) > 0 {
		s.each(o.key("properties").Raw("{"), list)
		o.Raw("}")
	}
	named := func(of []string) (told []string) {
		for _, page := range of {
			if i, ok := index[page]; ok {
				told = append(told, list[i].agent)
			} else if s.output && page != "__proto__" {
				told = append(told, page)
			}
		}
		return told
	}
	if required = named(required); len(required) > 0 {
		o.key("required").list(required)
	}
	var needs object
	for _, key := range []string{"dependencies", "dependentRequired"} {
		m[key].Members(func(k, v wire.Value) bool {
			name, _ := k.Text()
			of, _ := textsOf(v)
			if name, of := named([]string{name}), named(of); len(name)*len(of) > 0 && !s.output {
				needs.key(name[0]).list(of)
			}
			return true
		})
	}
	if needs.t != nil {
		o.key("dependentRequired").Raw("{").Bytes(needs.t).Raw("}")
	}
}

// each writes properties by the names for agents.
func (s *schema) each(o *object, list []property) {
	path := strings.Join(append([]string{""}, s.at[1:]...), separator)
	for _, p := range list {
		was := ""
		s.in([]string{"properties", p.page}, func() {
			if p.agent != p.page {
				if was, s.refused, s.renamed = p.page, p.page, true; !s.branch {
					s.drop("", "agents know it as "+p.agent+", because some models refuse the name")
				}
			}
			if k := p.schema.Kind(); len(s.at) == 3 && k != wire.Object && !p.schema.True() {
				s.fail("", "it is no schema")
			}
			o.t = s.sub(o.key(p.agent).t, p.schema, was)
		})
		if !s.branch {
			s.names.add(path, p)
		}
	}
}

// sub writes a value where a schema belongs.
func (s *schema) sub(t wire.Text, v wire.Value, page string) wire.Text {
	if k := v.Kind(); k != wire.Object && k != wire.Absent && !v.True() {
		s.drop("", "it says nothing, because it is no schema that agents know")
	}
	return s.write(t, v, page)
}

// apart writes a part in which no name can be changed. If one would have to be, it says nothing.
func (s *schema) apart(t wire.Text, v wire.Value) wire.Text {
	from, branch, refused, told := len(t), s.branch, s.refused, len(s.faults)
	s.branch, s.refused = !s.output, ""
	if t = s.sub(t, v, ""); s.branch && s.refused != "" && !s.fatal {
		t = t[:from].Raw("{}")
		s.faults = s.faults[:told]
		s.drop("", "it says nothing, because some models refuse the name "+cut(s.refused, 100))
	}
	s.branch, s.refused = branch, refused
	return t
}

// branches writes the keywords with parts in which no name can be changed. Two parts of a oneOf
// that admit more may both fit, so it is an anyOf.
func (s *schema) branches(o *object, m map[string]wire.Value) {
	if v := m["additionalProperties"]; v.Kind() == wire.Bool {
		o.key("additionalProperties").Bytes(v)
	} else if v != nil {
		s.in([]string{"additionalProperties"},
			func() { o.t = s.apart(o.key("additionalProperties").t, v) })
	}
	if m["anyOf"] == nil {
		m["anyOf"] = m["oneOf"]
	}
	for _, key := range []string{"allOf", "anyOf"} {
		var list object
		s.in([]string{key}, func() {
			m[key].Elements(func(e wire.Value) bool {
				list.t = s.apart(list.next().t, e)
				return true
			})
		})
		if list.t != nil {
			o.key(key).Raw("[").Bytes(list.t).Raw("]")
		}
	}
}

// header writes the header in which clients repeat an argument. For a wrong one they leave out the
// tool.
func (s *schema) header(o *object, v wire.Value, of []string) {
	name, _ := v.Text()
	lower := strings.ToLower(name)
	valid := !s.output && !s.branch && len(s.at) > 1 && token.MatchString(name) &&
		!s.headers[lower] &&
		len(of) == 1 && slices.Contains([]string{"string", "integer", "boolean"}, of[0])
	for i := 1; i < len(s.at); i += 2 {
		valid = valid && s.at[i] == "properties"
	}
	if valid {
		s.headers[lower] = true
		o.key("x-mcp-header").Str(name)
	} else if v != nil {
		s.drop("x-mcp-header", "left out, because no header can have this argument")
	}
}
