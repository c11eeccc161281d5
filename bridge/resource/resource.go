// Package resource keeps what a home offers: the registry of resources and templates, the rules that say which
// URIs it may hold, the matching of a URI that an agent sends against them, and the pages of a listing.
//
// It compares canonical strings and never parses a URL: the browser's own parser has decided what a URI is before
// it comes here, and a second parser's opinion on origins would be a security hole (net/url also costs 168 KB of
// wasm). It never calls a home, knows no ports and no subscriptions.
package resource

import "github.com/pagewire/pagewire/bridge/wire"

// A Resource is what a home offers to agents.
type Resource struct {
	// URI is the canonical URI, or a template (RFC 6570, of the expressions {var} and {?a,b} only) if it has a "{".
	URI string
	// Name, Title, Description and MIMEType are MCP's. Name is required.
	Name, Title, Description, MIMEType string
	// Size is that of the contents in bytes, or negative where it is not known.
	Size int64
	// Icons is the JSON text of MCP's icons, an array, or absent.
	Icons wire.Value
	// Annotations is the JSON text of MCP's annotations, an object, or absent.
	Annotations wire.Value
	// Meta is the JSON text of MCP's _meta, an object, or absent.
	Meta wire.Value
	// Schema is the JSON text of uriSchema, or absent: a JSON Schema object of the query parameters that URI takes,
	// or of a template's variables. See Schema for what it may say.
	Schema wire.Value
	// MinInterval is the least time between two updates, in milliseconds, where it is more than the engine's own.
	MinInterval int
}

// Decode reads a Resource from the JSON text of its members, which are named as in the IDL. The Resource keeps
// nothing of text.
func Decode(text []byte, depth int) (Resource, error) {
	r := Resource{Size: -1}
	v, err := wire.Parse(text, depth)
	if err != nil {
		return r, err
	}
	bad := ""
	v.Members(func(key, m wire.Value) bool {
		ok := true
		var n int64
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
			n, ok = m.Int()
			r.MinInterval, ok = int(n), ok && 0 <= n && n <= MaxInterval
		case key.Is("icons"):
			r.Icons, ok = clone(m), m.Kind() == wire.Array
		case key.Is("annotations"):
			r.Annotations, ok = clone(m), m.Kind() == wire.Object
		case key.Is("_meta"):
			r.Meta, ok = clone(m), m.Kind() == wire.Object
		case key.Is("uriSchema"):
			r.Schema, ok = clone(m), m.Kind() == wire.Object
		}
		if !ok {
			bad, _ = key.Text()
		}
		return ok
	})
	switch {
	case v.Kind() != wire.Object:
		return r, &Error{Reason: Invalid, Message: "a resource must be an object"}
	case bad != "":
		return r, &Error{Reason: Invalid, Message: "member " + bad + " has the wrong type or is out of range"}
	}
	return r, nil
}

// MaxInterval bounds Resource.MinInterval: a day, in milliseconds.
const MaxInterval = 24 * 60 * 60 * 1000

func clone(v wire.Value) wire.Value { return append(wire.Value(nil), v...) }

// A Reason says what kind of thing is wrong.
type Reason string

// The reasons. Their texts are what agents see in the data of an error.
const (
	Invalid   Reason = "invalid_resource" // a member is missing or wrong
	BadURI    Reason = "invalid_uri"      // it does not parse, or has credentials or a fragment
	Foreign   Reason = "foreign_origin"   // not at the home's origin
	Duplicate Reason = "duplicate_uri"
	Full      Reason = "resource_limit"
	Unknown   Reason = "not_found"
	BadParams Reason = "invalid_params" // the schema refuses a URI's parameters
	BadCursor Reason = "invalid_cursor"
)

// An Error is a refusal by this package.
type Error struct {
	Reason  Reason
	Message string
}

func (e *Error) Error() string { return e.Message }

// json is the resource as resources/list shows it, or resources/templates/list if template is set.
func (r *Resource) json(uri string, template bool) wire.Text {
	t := wire.Text(`{"uri":`)
	if template {
		t = wire.Text(`{"uriTemplate":`)
	}
	t = t.Str(uri).Raw(`,"name":`).Str(r.Name)
	for _, m := range [...]struct{ key, text string }{
		{`,"title":`, r.Title}, {`,"description":`, r.Description}, {`,"mimeType":`, r.MIMEType},
	} {
		if m.text != "" {
			t = t.Raw(m.key).Str(m.text)
		}
	}
	if r.Size >= 0 && !template {
		t = t.Raw(`,"size":`).Int(int(r.Size))
	}
	for _, m := range [...]struct {
		key string
		raw wire.Value
	}{{`,"icons":`, r.Icons}, {`,"annotations":`, r.Annotations}, {`,"_meta":`, r.Meta}} {
		if len(m.raw) > 0 {
			t = t.Raw(m.key).Bytes(m.raw)
		}
	}
	return t.Raw(`}`)
}
