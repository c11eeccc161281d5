// Package resource keeps a host's resources and templates: their registry, the rules for their
// URIs, the matching of an agent's URI against them, and the pages of a listing.
//
// It compares canonical strings and never parses a URL: the browser's own parser has already
// checked a URI, and a second parser's opinion on origins would be a security hole (net/url also
// costs 168 KB of wasm). It never calls a host, knows no ports and no subscriptions, and neither
// reads nor writes JSON.
package resource
