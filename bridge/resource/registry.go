package resource

import "github.com/pagewire/pagewire/bridge/wire"

// An Entry is a registered resource.
type Entry struct {
	Resource

	// Wide says that the entry answers for more URIs than its own: it is a template, or takes query parameters.
	Wide bool

	seq      uint64 // position in listings; grows with each registration and is never used twice
	template template
	schema   *schema
	listing  wire.Text // its JSON in resources/list; nil if it is not there
	pattern  wire.Text // its JSON in resources/templates/list; nil if it is not there
}

// Template reports whether the entry was registered by a template.
func (e *Entry) Template() bool { return e.template.parts != nil }

// A Registry holds the entries of one home. Create it with NewRegistry.
type Registry struct {
	rule    Rule
	max     int // entries; 0 or less is no bound
	maxURI  int // bytes; 0 or less is no bound
	seq     uint64
	byURI   map[string]*Entry
	ordered []*Entry // by seq
	wide    []*Entry // templates, by seq
}

// NewRegistry returns an empty registry that admits what rule does, up to max entries with URIs of up to maxURI
// bytes; a bound of 0 or less is none.
func NewRegistry(rule Rule, max, maxURI int) *Registry {
	return &Registry{rule: rule, max: max, maxURI: maxURI, byURI: map[string]*Entry{}}
}

// Len is the number of entries.
func (g *Registry) Len() int { return len(g.ordered) }

// Check returns an *Error where a URI of an agent is one that could not be registered here.
func (g *Registry) Check(uri string) error {
	if g.maxURI > 0 && len(uri) > g.maxURI {
		return &Error{Reason: BadURI, Message: "Invalid URI: longer than " + wire.Itoa(g.maxURI) + " bytes"}
	}
	return g.rule.Check(uri)
}

// Add registers r, or returns an *Error.
func (g *Registry) Add(r Resource) (*Entry, error) {
	if err := g.Check(r.URI); err != nil {
		return nil, err
	}
	e := &Entry{Resource: r}
	if r.Name == "" {
		return nil, &Error{Reason: Invalid, Message: "name is missing"}
	}
	brace := indexByte(r.URI, '{')
	if brace >= 0 {
		var err error
		if e.template, err = parseTemplate(r.URI); err != nil {
			return nil, err
		}
		// What precedes the first variable must settle the origin.
		if err = g.rule.Check(r.URI[:brace]); err != nil {
			return nil, err
		}
	} else if indexByte(r.URI, '}') >= 0 {
		return nil, &Error{Reason: BadURI, Message: "Invalid URI: } without {"}
	}
	if len(r.Schema) > 0 {
		var err error
		if e.schema, err = parseSchema(r.Schema); err != nil {
			return nil, err
		}
	}
	e.Wide = e.Template() || e.schema != nil
	switch {
	case g.byURI[r.URI] != nil:
		return nil, &Error{Reason: Duplicate, Message: "a resource with the URI " + r.URI + " is registered"}
	case g.max > 0 && len(g.ordered) >= g.max:
		return nil, &Error{Reason: Full, Message: "more than " + wire.Itoa(g.max) + " resources"}
	}
	if e.Template() {
		e.pattern = r.json(r.URI, true)
		g.wide = append(g.wide, e)
	} else {
		e.listing = r.json(r.URI, false)
		if e.schema != nil && len(e.schema.props) > 0 {
			e.pattern = r.json(r.URI+e.schema.expression(), true)
		}
	}
	g.seq++
	e.seq = g.seq
	g.byURI[r.URI] = e
	g.ordered = append(g.ordered, e)
	return e, nil
}

// expression is the RFC 6570 expression of the schema's parameters.
func (s *schema) expression() string {
	x := "{?"
	for i, p := range s.props {
		if i > 0 {
			x += ","
		}
		x += p.name
	}
	return x + "}"
}

// Remove takes out the entry registered under uri and returns it, or nil if there is none.
func (g *Registry) Remove(uri string) *Entry {
	e := g.byURI[uri]
	if e == nil {
		return nil
	}
	delete(g.byURI, uri)
	g.ordered = without(g.ordered, e)
	if e.Template() {
		g.wide = without(g.wide, e)
	}
	return e
}

// without removes e from a list that is ordered by seq.
func without(list []*Entry, e *Entry) []*Entry {
	i := after(list, e.seq-1)
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

// after returns the index of the first entry whose seq is greater than seq.
func after(list []*Entry, seq uint64) int {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := (lo + hi) / 2
		if list[mid].seq <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Get returns the entry registered under exactly uri, or nil.
func (g *Registry) Get(uri string) *Entry { return g.byURI[uri] }

// Find returns the entry that answers for a URI, or nil: the one registered under it, else the one registered under
// the part before its "?" if that takes parameters, else the first template that matches it.
func (g *Registry) Find(uri string) *Entry {
	e, _ := g.find(uri)
	return e
}

func (g *Registry) find(uri string) (*Entry, []param) {
	if indexByte(uri, '{') >= 0 {
		return nil, nil // a template is no URI, and matches none
	}
	if e := g.byURI[uri]; e != nil {
		return e, nil
	}
	if i := indexByte(uri, '?'); i >= 0 {
		if e := g.byURI[uri[:i]]; e != nil && e.schema != nil {
			params, ok := parseQuery(uri[i+1:])
			if !ok {
				return nil, nil
			}
			return e, params
		}
	}
	for _, e := range g.wide {
		if params, ok := e.template.match(uri); ok {
			return e, params
		}
	}
	return nil, nil
}

// Resolve is Find with the URI's parameters, as the JSON text of an object, or "" for an entry that takes none. It
// returns an *Error of reason Unknown, or BadParams for what the entry's schema refuses.
func (g *Registry) Resolve(uri string) (e *Entry, params string, err error) {
	e, list := g.find(uri)
	if e == nil {
		return nil, "", &Error{Reason: Unknown, Message: "Resource not found"}
	}
	if !e.Wide {
		return e, "", nil
	}
	if e.schema == nil {
		return e, string(jsonParams(list)), nil
	}
	text, err := e.schema.json(list)
	if err != nil {
		return nil, "", err
	}
	return e, string(text), nil
}

// Page appends one page of the listing of resources, or of templates: at most size entries as a JSON array,
// beginning behind cursor ("" for the first page). next is the cursor of the page behind this one, or "" at the
// end. A cursor stays good while entries come and go: it names a place in the order of registration. The error is
// an *Error of reason BadCursor.
func (g *Registry) Page(t wire.Text, templates bool, cursor string, size int) (_ wire.Text, next string, err error) {
	from := 0
	if cursor != "" {
		seq, ok := parseCursor(cursor, templates)
		if !ok {
			return t, "", &Error{Reason: BadCursor, Message: "Invalid cursor"}
		}
		from = after(g.ordered, seq)
	}
	t = t.Raw(`[`)
	var last *Entry
	n := 0
	for _, e := range g.ordered[from:] {
		text := e.listing
		if templates {
			text = e.pattern
		}
		if text == nil {
			continue
		}
		if n == size {
			next = appendCursor(last.seq, templates)
			break
		}
		if n > 0 {
			t = t.Raw(`,`)
		}
		t = t.Bytes(text)
		n++
		last = e
	}
	return t.Raw(`]`), next, nil
}

// A cursor is a letter for the listing that it belongs to and a seq in base 36.
func appendCursor(seq uint64, templates bool) string {
	var b [14]byte
	i := len(b)
	for ; seq > 0; seq /= 36 {
		i--
		b[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[seq%36]
	}
	i--
	b[i] = cursorLetter(templates)
	return string(b[i:])
}

func parseCursor(cursor string, templates bool) (seq uint64, ok bool) {
	if len(cursor) < 2 || len(cursor) > 13 || cursor[0] != cursorLetter(templates) {
		return 0, false
	}
	for i := 1; i < len(cursor); i++ {
		c := cursor[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'z':
			c -= 'a' - 10
		default:
			return 0, false
		}
		seq = seq*36 + uint64(c)
	}
	return seq, true
}

func cursorLetter(templates bool) byte {
	if templates {
		return 't'
	}
	return 'r'
}
