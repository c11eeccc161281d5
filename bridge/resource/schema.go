package resource

import "unicode/utf8"

// A Schema defines the parameters of a URI (uriSchema, as platformatic/mcp#96 proposes it): the
// part of JSON Schema for flat parameters.
type Schema struct {
	Properties []Property
	// Closed refuses parameters without a property. Otherwise they are strings.
	Closed bool
}

// A Property is one parameter of a Schema.
type Property struct {
	Name     string
	Required bool
	// Kind is the type of the value, or of each value of a List.
	Kind Kind
	// List allows the parameter more than once: MinItems to MaxItems times, if MaxItems is not
	// negative.
	List               bool
	MinItems, MaxItems int
	// Enum, if it is not nil, has all allowed values, as decoded from a URI.
	Enum []string
	// Minimum and Maximum bound a number, unless they are empty. They are texts of JSON numbers.
	Minimum, Maximum string
	// MinLength and MaxLength bound a string, in code points, if MaxLength is not negative.
	MinLength, MaxLength int
}

// A Kind is the type of a parameter's value.
type Kind byte

// The kinds.
const (
	String Kind = iota
	Number
	Integer
	Boolean
)

// A Param is a parameter that a URI carries: one value, or any number if it is a List.
type Param struct {
	Name   string
	Values []string // decoded; for a number or a boolean also its JSON text
	Kind   Kind
	List   bool
}

// params types and checks a URI's parameters, or fails with reason BadParams. A nil schema takes
// every pair as a string.
func (s *Schema) params(pairs []pair) ([]Param, error) {
	refuse := func(name, why string) ([]Param, error) {
		return nil, &Error{Reason: BadParams, Message: "Invalid params: " + name + " " + why}
	}
	if s == nil {
		s = &Schema{}
	}
	var params []Param
	for i := range s.Properties {
		p := &s.Properties[i]
		var values []string
		for _, q := range pairs {
			if q.name == p.Name {
				if why := p.refuses(q.value); why != "" {
					return refuse(p.Name, why)
				}
				values = append(values, q.value)
			}
		}
		n := len(values)
		switch {
		case n == 0 && p.Required:
			return refuse(p.Name, "is required")
		case n == 0:
			continue
		case n > 1 && !p.List:
			return refuse(p.Name, "is given more than once")
		case p.List && n < p.MinItems:
			return refuse(p.Name, "has too few items")
		case p.List && p.MaxItems >= 0 && n > p.MaxItems:
			return refuse(p.Name, "has too many items")
		}
		params = append(params, Param{p.Name, values, p.Kind, p.List})
	}
	known := len(params)
	for _, q := range pairs {
		if s.property(q.name) != nil {
			continue
		}
		if s.Closed {
			return refuse(q.name, "is not a parameter")
		}
		for _, other := range params[known:] {
			if other.Name == q.name {
				return refuse(q.name, "is given more than once")
			}
		}
		params = append(params, Param{Name: q.name, Values: []string{q.value}})
	}
	return params, nil
}

func (s *Schema) property(name string) *Property {
	for i := range s.Properties {
		if s.Properties[i].Name == name {
			return &s.Properties[i]
		}
	}
	return nil
}

// expression is the RFC 6570 expression of the parameters whose names it can have, or "".
func (s *Schema) expression() string {
	x := ""
	for _, p := range s.Properties {
		if isVarName(p.Name) {
			x += "," + p.Name
		}
	}
	if x == "" {
		return ""
	}
	return "{?" + x[1:] + "}"
}

// refuses returns the fault of a value, or "".
func (p *Property) refuses(value string) string {
	switch p.Kind {
	case Number, Integer:
		switch {
		case p.Kind == Integer && !isNumber(value, true):
			return "must be an integer"
		case !isNumber(value, false) || parseDecimal(value).huge():
			return "must be a number"
		case p.Minimum != "" && compare(value, p.Minimum) < 0:
			return "is below its minimum"
		case p.Maximum != "" && compare(value, p.Maximum) > 0:
			return "is above its maximum"
		}
	case Boolean:
		if value != "true" && value != "false" {
			return "must be true or false"
		}
	default:
		if n := utf8.RuneCountInString(value); n < p.MinLength ||
			p.MaxLength >= 0 && n > p.MaxLength {
			return "has a length that is out of bounds"
		}
	}
	if p.Enum == nil {
		return ""
	}
	for _, e := range p.Enum {
		if value == e {
			return ""
		}
	}
	return "is not one of the values allowed"
}

// isNumber reports whether s is a JSON number, so that it can be passed on as one.
func isNumber(s string, integer bool) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	if s != "" && s[0] == '0' {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if !integer && s != "" && s[0] == '.' {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if !integer && s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}
