// Package taburi makes and splits the URIs by which agents tell tabs apart.
//
// If several tabs have the same URI, each tab also has it under a path of its own:
// ORIGIN/.pagewire/tab/N/PATH for ORIGIN/PATH, with N.FRAME for a frame. The tab is in the path,
// because agent programs drop a URI's fragment, and some compare the path alone. Templates are
// treated like URIs. What the user offers is under our path already, and has the tab behind it:
// ORIGIN/.pagewire/shown/tab/N. There no template of a page matches it. The package parses neither,
// and knows no pages.
package taburi

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

const tabPath = bridge.GatewayPath + "tab/"

// Segment is the path segment of a tab, or of one of its frames if frame is not "".
func Segment(number int, frame string) string {
	s := strconv.Itoa(number)
	if frame != "" {
		s += "." + frame
	}
	return s
}

// Of returns a page's URI or template under the path of its tab. segment comes from Segment; with
// "", Of returns own.
func Of(own, segment string) string {
	if segment == "" {
		return own
	}
	root, path := splitPath(own)
	if Shown(own) {
		end := strings.IndexAny(path+"?", "?#{")
		return root + path[:end] + shownTab + segment + path[end:]
	}
	if !hasAuthority(root) { // urn:a:b is urn:/.pagewire/tab/N/a:b
		path = "/" + path
	}
	return root + tabPath + segment + path
}

// Split undoes Of: it returns the page's own URI and the segment of its tab. For any other URI,
// segment is "".
func Split(uri string) (own, segment string) {
	root, path := splitPath(uri)
	if Shown(uri) {
		end := strings.IndexAny(path+"?", "?#{")
		if i := strings.LastIndex(path[:end], shownTab); i >= 0 && i+len(shownTab) < end {
			return root + path[:i] + path[end:], path[i+len(shownTab) : end]
		}
		return uri, ""
	}
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

// Sorted sorts URIs by the pages' own URIs, each before its forms under tabs. It splits each URI
// once: splitting in each comparison took 30 ms for the 8,000 URIs of 200 tabs.
func Sorted(uris iter.Seq[string]) []string {
	type parts struct{ own, segment, uri string }
	var all []parts
	for uri := range uris {
		own, segment := Split(uri)
		all = append(all, parts{own, segment, uri})
	}
	slices.SortFunc(all, func(a, b parts) int {
		return cmp.Or(strings.Compare(a.own, b.own), strings.Compare(a.segment, b.segment))
	})
	sorted := make([]string, len(all))
	for i := range all {
		sorted[i] = all[i].uri
	}
	return sorted
}

// shownTab comes before the segment of the tab, in URIs of what the user offers.
const shownTab = "/tab/"

// Shown reports whether a URI can only be one of what the user offers: what a page shows, or a part
// of it.
func Shown(uri string) bool {
	_, path := splitPath(uri)
	rest, ours := strings.CutPrefix(path, bridge.GatewayPath)
	return ours && (strings.HasPrefix(rest, "shown") || strings.HasPrefix(rest, "parts"))
}

// Reserved reports whether a URI is under our path, also by percent-encoding, which a reader takes
// for it. Pages may not have such URIs.
func Reserved(uri string) bool {
	_, path := splitPath(uri)
	for want := bridge.GatewayPath; want != ""; want = want[1:] {
		encoded := "%" + strconv.FormatUint(uint64(want[0]), 16)
		switch {
		case strings.HasPrefix(path, want[:1]):
			path = path[1:]
		case len(path) >= len(encoded) && strings.EqualFold(path[:len(encoded)], encoded):
			path = path[len(encoded):]
		default:
			return false
		}
	}
	return true
}

// splitPath cuts a URI or template before its path; without a path, before its query, fragment or
// template expression. Both halves are unchanged text, because canonical spellings are compared
// byte by byte.
func splitPath(uri string) (root, path string) {
	from := strings.IndexByte(uri, ':') + 1
	if authority, ok := strings.CutPrefix(uri[from:], "//"); ok {
		from += len("//") + strings.IndexAny(authority+"/", "/?#{")
	}
	return uri[:from], uri[from:]
}

func hasAuthority(root string) bool { return strings.Contains(root, "://") }
