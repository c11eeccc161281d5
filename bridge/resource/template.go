package resource

// A template is a parsed URI template: literals and variables in turn, and the names of the query.
type template struct {
	parts   []part
	query   []string // names of {?a,b}, each optional
	gateway bool     // it is under GatewayPath itself; others match nothing there
}

// A part is a literal, or a variable whose value runs up to the next literal within one path
// segment.
type part struct {
	text     string // the literal, or the variable's name
	variable bool
}

// A pair is one parameter of a URI, decoded.
type pair struct{ name, value string }

// parseTemplate parses a URI template with the expressions {var} and, once and last, {?a,b}.
func parseTemplate(uri string) (t template, err error) {
	bad := func(why string) (template, error) {
		return template{}, &Error{Reason: BadURI, Message: "Invalid URI template: " + why}
	}
	t.gateway = atGateway(uri)
	for from := 0; from < len(uri); {
		open := from
		for open < len(uri) && uri[open] != '{' {
			if uri[open] == '}' {
				return bad("} without {")
			}
			open++
		}
		if open > from {
			if t.query != nil {
				return bad("text after {?...}")
			}
			t.parts = append(t.parts, part{text: uri[from:open]})
		}
		if open == len(uri) {
			break
		}
		end := open + 1
		for end < len(uri) && uri[end] != '}' {
			end++
		}
		if end == len(uri) {
			return bad("{ without }")
		}
		expr := uri[open+1 : end]
		from = end + 1
		if len(expr) > 0 && expr[0] == '?' {
			if t.query != nil {
				return bad("more than one {?...}")
			}
			if !t.addQuery(expr[1:]) {
				return bad("{" + expr + "}")
			}
			continue
		}
		if !isVarName(expr) || t.query != nil || t.names(expr) {
			return bad("{" + expr + "}")
		}
		if n := len(t.parts); n == 0 || t.parts[n-1].variable {
			return bad("two variables with nothing between")
		}
		t.parts = append(t.parts, part{text: expr, variable: true})
	}
	return t, nil
}

// addQuery adds the names of {?name,name}, and reports whether they are valid.
func (t *template) addQuery(names string) bool {
	for {
		name := names
		comma := indexByte(names, ',')
		if comma >= 0 {
			name = names[:comma]
		}
		if !isVarName(name) || t.names(name) {
			return false
		}
		t.query = append(t.query, name)
		if comma < 0 {
			return true
		}
		names = names[comma+1:]
	}
}

// names reports whether the template has a variable with a name already.
func (t *template) names(name string) bool {
	for _, p := range t.parts {
		if p.variable && p.text == name {
			return true
		}
	}
	for _, q := range t.query {
		if q == name {
			return true
		}
	}
	return false
}

// match returns the parameters for which the template expands to uri.
func (t *template) match(uri string) (params []pair, ok bool) {
	if atGateway(uri) && !t.gateway {
		return nil, false
	}
	path := uri
	if t.query != nil {
		if indexByte(uri, '#') >= 0 {
			return nil, false
		}
		if i := indexByte(uri, '?'); i >= 0 {
			path = uri[:i]
			if params, ok = parseQuery(uri[i+1:]); !ok {
				return nil, false
			}
			for i, p := range params {
				for _, q := range params[:i] {
					if p.name == q.name {
						return nil, false
					}
				}
				known := false
				for _, name := range t.query {
					known = known || name == p.name
				}
				if !known {
					return nil, false
				}
			}
		}
	}
	return matchParts(t.parts, path, params)
}

func matchParts(parts []part, path string, params []pair) ([]pair, bool) {
	if len(parts) == 0 {
		return params, path == ""
	}
	p := parts[0]
	if !p.variable {
		if len(path) < len(p.text) || path[:len(p.text)] != p.text {
			return nil, false
		}
		return matchParts(parts[1:], path[len(p.text):], params)
	}
	// A value is as short as the rest of the template allows, has at least one character, and stays
	// within its segment. A literal or the end follows each variable, so the first place that fits
	// is taken: no exponential search.
	for end := 1; end <= len(path); end++ {
		c := path[end-1]
		if c == '/' || c == '?' || c == '#' || c == '&' {
			break
		}
		if c == '%' && end+2 <= len(path) {
			end += 2 // no literal begins within an escape
		}
		next := parts[1:]
		if len(next) == 0 {
			if end < len(path) {
				continue
			}
		} else if lit := next[0].text; len(path)-end < len(lit) || path[end:end+len(lit)] != lit ||
			len(next) == 1 && len(path)-end > len(lit) {
			continue
		}
		value, ok := unescape(path[:end], false)
		if !ok {
			return nil, false
		}
		return matchParts(next, path[end:], append(params, pair{p.text, value}))
	}
	return nil, false
}

// parseQuery splits and decodes a query in the encoding of forms, which includes RFC 6570
// expansions.
func parseQuery(query string) (params []pair, ok bool) {
	for query != "" {
		item := query
		if i := indexByte(query, '&'); i >= 0 {
			item, query = query[:i], query[i+1:]
		} else {
			query = ""
		}
		if item == "" {
			continue
		}
		name, value := item, ""
		if i := indexByte(item, '='); i >= 0 {
			name, value = item[:i], item[i+1:]
		}
		if name, ok = unescape(name, true); !ok {
			return nil, false
		}
		if value, ok = unescape(value, true); !ok {
			return nil, false
		}
		params = append(params, pair{name, value})
	}
	return params, true
}

// unescape decodes percent-encoding, and "+" as a space in a form. It refuses a "%" that is not
// followed by two hexadecimal digits.
func unescape(s string, form bool) (string, bool) {
	i := 0
	for i < len(s) && s[i] != '%' && (!form || s[i] != '+') {
		i++
	}
	if i == len(s) {
		return s, true
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for ; i < len(s); i++ {
		c := s[i]
		if c == '+' && form {
			c = ' '
		} else if c == '%' {
			if i+2 >= len(s) {
				return "", false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi > 15 || lo > 15 {
				return "", false
			}
			c = hi<<4 | lo
			i += 2
		}
		out = append(out, c)
	}
	return string(out), true
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

func isVarName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
