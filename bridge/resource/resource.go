package resource

// A Resource is a resource or template of a host.
type Resource struct {
	// URI is the canonical URI, or a template (RFC 6570, of the expressions {var} and {?a,b} only)
	// if it has a "{".
	URI string
	// Name, Title, Description and MIMEType are MCP's. Name may be empty.
	Name, Title, Description, MIMEType string
	// Size is the size of the contents in bytes; negative if it is unknown.
	Size int64
	// Icons, Annotations and Meta are the JSON text of MCP's icons, annotations and _meta, each
	// empty if absent.
	Icons, Annotations, Meta []byte
	// Schema defines the query parameters of URI, or the types of a template's variables. nil means
	// no parameters, and variables that are strings.
	Schema *Schema
	// MinInterval is the least time between two updates, in milliseconds: 0 to MaxInterval. If the
	// engine's own is longer, that one counts.
	MinInterval int
	// Coalesced means that its changes are coalesced already: the engine announces each.
	Coalesced bool
	// Unlisted keeps the resource out of the listings. It still answers agents that have its URI
	// from an earlier listing.
	Unlisted bool
	// Mended says what of a page's description agents do not get as it is, or "". It is for the
	// page's developer.
	Mended string
	// PerPort means that its contents differ among ports: no two share a read of it. A page's core
	// ignores it.
	PerPort bool
}

func (r *Resource) bytes() int {
	return len(r.URI) + len(r.Name) + len(r.Title) + len(r.Description) + len(r.MIMEType) +
		len(r.Icons) + len(r.Annotations) + len(r.Meta)
}

// listsAs reports whether listings show r as they show o.
func (r *Resource) listsAs(o *Resource) bool {
	return r.Unlisted == o.Unlisted && r.Name == o.Name && r.Title == o.Title &&
		r.Description == o.Description && r.MIMEType == o.MIMEType && r.Size == o.Size &&
		string(r.Icons) == string(o.Icons) && string(r.Annotations) == string(o.Annotations) &&
		string(r.Meta) == string(o.Meta)
}

// MaxInterval bounds Resource.MinInterval: a day, in milliseconds.
const MaxInterval = 24 * 60 * 60 * 1000
