// Package resource keeps what a host offers: the registry of resources and templates, the rules that say which
// URIs it may hold, the matching of a URI that an agent sends against them, and the pages of a listing.
//
// It compares canonical strings and never parses a URL: the browser's own parser has decided what a URI is before
// it comes here, and a second parser's opinion on origins would be a security hole (net/url also costs 168 KB of
// wasm). It never calls a host, knows no ports and no subscriptions, and neither reads nor writes JSON.
package resource
