//go:build !js

package gateway

import (
	"cmp"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

// What several tabs have under one URI, each has under a path of its own besides: ORIGIN/.pagewire/tab/N/PATH for ORIGIN/PATH,
// with N.FRAME for a frame. It is in the path since agent programs drop a URI's fragment, and some compare no more than the path.

const tabPath = bridge.GatewayPath + "tab/"

// tabURI is a page's URI, or template, under the path of its tab. segment is what stands for the tab there: Page.segment. With ""
// it is the page's own.
func tabURI(own, segment string) string {
	if segment == "" {
		return own
	}
	root, path := splitPath(own)
	if !hasAuthority(root) { // urn:a:b is urn:/.pagewire/tab/N/a:b
		path = "/" + path
	}
	return root + tabPath + segment + path
}

// pageURI takes apart what tabURI has made: the page's own URI, and the segment of its tab, which is "" for any other URI.
func pageURI(uri string) (own, segment string) {
	root, path := splitPath(uri)
	rest, ok := strings.CutPrefix(path, tabPath)
	if !ok {
		return uri, ""
	}
	end := strings.IndexAny(rest+"/", "/?#{")
	segment, path = rest[:end], rest[end:]
	if !hasAuthority(root) {
		path, ok = strings.CutPrefix(path, "/")
	}
	if segment == "" || !ok {
		return uri, ""
	}
	return root + path, segment
}

// compareURIs orders URIs by the pages' own text, each before the same of other tabs.
func compareURIs(a, b string) int {
	own, segment := pageURI(a)
	other, of := pageURI(b)
	return cmp.Or(strings.Compare(own, other), strings.Compare(segment, of))
}

// atGateway reports whether a URI is under the path that is ours, where no page has one.
func atGateway(uri string) bool {
	_, path := splitPath(uri)
	return strings.HasPrefix(path, bridge.GatewayPath)
}

// splitPath cuts a URI, or template, where its path begins, or what follows where it has none. It is no parser, so that both
// halves are the URI's own text: canonical spellings are compared byte by byte.
func splitPath(uri string) (root, path string) {
	from := strings.IndexByte(uri, ':') + 1
	if authority, ok := strings.CutPrefix(uri[from:], "//"); ok {
		from += len("//") + strings.IndexAny(authority+"/", "/?#{")
	}
	return uri[:from], uri[from:]
}

func hasAuthority(root string) bool { return strings.Contains(root, "://") }
