// Package resource keeps a host's resources and templates: their registry, the rules for their
// URIs, the matching of an agent's URI against them, and the pages of a listing.
//
// It compares canonical strings and never parses a URL: the browser's own parser has already
// checked a URI, and a second parser's opinion on origins would be a security hole (net/url also
// costs 168 KB of wasm). It never calls a host, knows no ports and no subscriptions, and neither
// reads nor writes JSON.
package resource

// A Reason is a kind of fault.
type Reason string

// The reasons. Agents see their texts in the data of an error.
const (
	Invalid   Reason = "invalid_resource" // a member is missing or wrong
	BadURI    Reason = "invalid_uri"      // it does not parse, or has credentials or a fragment
	Foreign   Reason = "foreign_origin"   // not at the host's origin
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
