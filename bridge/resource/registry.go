package resource

// An Entry is a registered resource.
type Entry struct {
	Resource

	// Wide means that the entry answers for other URIs too: it is a template, or takes query
	// parameters.
	Wide bool

	// Pattern is the entry's template in the listing of templates, or "" if it is not there.
	Pattern string

	seq      uint64 // position in listings; grows with each registration and is never used twice
	template template
}

// Template reports whether the entry was registered by a template.
func (e *Entry) Template() bool { return e.template.parts != nil }

// A Registry holds the entries of one host. Create it with NewRegistry. Only Add, Remove and
// Replace change it; it is not safe for concurrent use.
type Registry struct {
	rule   Rule
	max    int // entries; 0 or less is no bound
	maxURI int // bytes; 0 or less is no bound

	// seq is that of the newest entry ever: no two entries have the same.
	seq uint64
	// byURI and ordered have the same entries, ordered by seq. wide has the templates among them,
	// by seq, so the first one that matches is the oldest.
	byURI   map[string]*Entry
	ordered []*Entry
	wide    []*Entry
	bytes   int // of the descriptors of all entries
}

// NewRegistry returns an empty registry for the URIs that rule admits: at most max entries, with
// URIs of at most maxURI bytes. 0 or less means no bound.
func NewRegistry(rule Rule, max, maxURI int) *Registry {
	return &Registry{rule: rule, max: max, maxURI: maxURI, byURI: map[string]*Entry{}}
}

// Len is the number of entries.
func (g *Registry) Len() int { return len(g.ordered) }

// Bytes is the approximate size of all entries' descriptors as JSON text.
func (g *Registry) Bytes() int { return g.bytes }

// Check returns an *Error if a URI of an agent could not be registered here.
func (g *Registry) Check(uri string) error {
	if g.maxURI > 0 && len(uri) > g.maxURI {
		return &Error{Reason: BadURI,
			Message: "Invalid URI: longer than " + decimal(uint64(g.maxURI)) + " bytes"}
	}
	return g.rule.Check(uri)
}

// Awaits reports whether a URI of an agent has a resource, or could have one later.
func (g *Registry) Awaits(uri string) bool {
	return g.Check(uri) == nil && (!g.rule.Web || ofSomePage(uri) || g.Find(uri) != nil)
}

// Add registers r, or returns an *Error.
func (g *Registry) Add(r Resource) (*Entry, error) {
	if err := g.Check(r.URI); err != nil {
		return nil, err
	}
	e := &Entry{Resource: r}
	brace := indexByte(r.URI, '{')
	if brace >= 0 {
		var err error
		if e.template, err = parseTemplate(r.URI); err != nil {
			return nil, err
		}
		// The part before the first variable must determine the origin.
		if err = g.rule.Check(r.URI[:brace]); err != nil {
			return nil, err
		}
	}
	e.Wide = e.Template() || e.Schema != nil
	switch {
	case g.byURI[r.URI] != nil:
		return nil, &Error{Reason: Duplicate,
			Message: "a resource with the URI " + r.URI + " is registered"}
	case g.max > 0 && len(g.ordered) >= g.max:
		return nil, &Error{Reason: Full,
			Message: "more than " + decimal(uint64(g.max)) + " resources"}
	}
	if e.Template() {
		e.Pattern = r.URI
		g.wide = append(g.wide, e)
	} else if e.Schema != nil {
		if x := e.Schema.expression(); x != "" {
			e.Pattern = r.URI + x
		}
	}
	g.seq++
	e.seq = g.seq
	g.byURI[r.URI] = e
	g.ordered = append(g.ordered, e)
	g.bytes += e.bytes()
	return e, nil
}

// Remove takes out the entry registered under uri and returns it, or nil if there is none.
func (g *Registry) Remove(uri string) *Entry {
	e := g.byURI[uri]
	if e == nil {
		return nil
	}
	delete(g.byURI, uri)
	g.ordered = without(g.ordered, e)
	g.bytes -= e.bytes()
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

// Find returns the entry that answers for a URI, or nil. The order is: the entry registered under
// it, the entry that takes parameters and is registered under the part before its "?", the first
// template that matches it.
func (g *Registry) Find(uri string) *Entry {
	e, _ := g.find(uri)
	return e
}

// Answers reports whether e, which is Wide, answers for uri if no earlier entry does.
func (e *Entry) Answers(uri string) bool {
	n := len(e.URI)
	ok := len(uri) >= n && uri[:n] == e.URI &&
		(len(uri) == n || uri[n] == '?' && indexByte(uri, '#') < 0)
	if e.Template() {
		_, ok = e.template.match(uri)
	}
	return ok && indexByte(uri, '{') < 0
}

func (g *Registry) find(uri string) (*Entry, []pair) {
	// A template is not a URI, so no entry answers for it; nor does one for what Check refuses.
	if indexByte(uri, '{') >= 0 || g.maxURI > 0 && len(uri) > g.maxURI {
		return nil, nil
	}
	if e := g.byURI[uri]; e != nil {
		return e, nil
	}
	if i := indexByte(uri, '?'); i >= 0 && indexByte(uri, '#') < 0 {
		if e := g.byURI[uri[:i]]; e != nil && e.Schema != nil {
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

// Resolve is Find with the URI's typed parameters. It returns an *Error of reason Unknown, or
// BadParams if the entry's schema refuses them.
func (g *Registry) Resolve(uri string) (*Entry, []Param, error) {
	e, pairs := g.find(uri)
	if e == nil {
		return nil, nil, &Error{Reason: Unknown, Message: "Resource not found"}
	}
	if !e.Wide {
		return e, nil, nil
	}
	params, err := e.Schema.params(pairs)
	return e, params, err
}

// Replace replaces the description of the entry registered under r.URI. It reports whether there is
// one, and whether listings change. The entry's Schema stays, so it answers for the same URIs.
func (g *Registry) Replace(r Resource) (ok, listed bool) {
	e := g.byURI[r.URI]
	if e == nil {
		return false, false
	}
	listed = !e.listsAs(&r)
	r.Schema = e.Schema
	g.bytes -= e.bytes()
	e.Resource = r
	g.bytes += e.bytes()
	return true, listed
}

// Page passes entries of the listing of resources, or of templates, to take. It begins after cursor
// ("" for the first page), and ends when take refuses an entry, which begins the next page. next is
// the cursor of that page, or "" at the end. A cursor names a place in the order of registration,
// and the end of that order at the first page, so it stays valid while entries come and go. Later
// entries are on no page: if they came as fast as they are listed, the list would be endless. The
// error is an *Error of reason BadCursor: this registry made no such cursor.
func (g *Registry) Page(templates bool, cursor string, take func(*Entry) bool) (
	next string, err error) {
	from, end := 0, g.seq
	if cursor != "" {
		var seq uint64
		var ok bool
		if seq, end, ok = g.parseCursor(cursor, templates); !ok {
			return "", &Error{Reason: BadCursor, Message: "Invalid cursor"}
		}
		from = after(g.ordered, seq)
	}
	last := uint64(0)
	for _, e := range g.ordered[from:after(g.ordered, end)] {
		if templates && e.Pattern == "" || !templates && e.Template() || e.Unlisted {
			continue
		}
		if take(e) {
			last = e.seq
			continue
		}
		if last == 0 {
			return cursor, nil
		}
		return formatCursor(last, end, templates), nil
	}
	return "", nil
}

// A cursor is a letter for its listing and two seqs: of the last entry, and of the list's end.
func formatCursor(seq, end uint64, templates bool) string {
	return string(cursorLetter(templates)) + decimal(seq) + "." + decimal(end)
}

// parseCursor accepts only cursors that formatCursor can have made here. A cursor of another
// registry with more entries would be after the last entry, and look like the end of the list.
func (g *Registry) parseCursor(cursor string, templates bool) (seq, end uint64, ok bool) {
	n := &seq
	for i := 1; i < len(cursor); i++ {
		if c := cursor[i]; c == '.' {
			n = &end
		} else {
			*n = *n*10 + uint64(c-'0') // other characters, and overflows, fail the comparison below
		}
	}
	return seq, end, 0 < seq && seq <= end && end <= g.seq && formatCursor(seq, end, templates) == cursor
}

func cursorLetter(templates bool) rune {
	if templates {
		return 't'
	}
	return 'r'
}
