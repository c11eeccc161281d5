package resource

// A Rule sets which URIs a host admits. The zero Rule admits none.
type Rule struct {
	// Origin is a page's origin, as self.origin gives it: URIs at that origin are admitted. "null",
	// the opaque origin, admits none.
	Origin string
	// Any admits URIs of every scheme and origin, also those under GatewayPath and with fragments:
	// for a host that has checked them itself.
	Any bool
	// Web is for a gateway with Any, all of whose pages are at web origins: URIs have no fragments.
	Web bool
}

// GatewayPath is the prefix of the paths that belong to a gateway at every origin: the gateway
// lists URIs there that several tabs share. No page has a URI there, and no variable of a page's
// template matches a part of it.
const GatewayPath = "/.pagewire/"

// atGateway reports whether the path of a URI, or of a template, begins with GatewayPath.
func atGateway(uri string) bool {
	from := indexByte(uri, ':') + 1
	if len(uri) >= from+2 && uri[from] == '/' && uri[from+1] == '/' {
		from += 2
		for from < len(uri) && uri[from] != '/' && uri[from] != '?' && uri[from] != '#' {
			from++
		}
	}
	return len(uri) >= from+len(GatewayPath) && uri[from:from+len(GatewayPath)] == GatewayPath
}

// Check returns an *Error of reason BadURI or Foreign if uri, canonical or a template, is not
// admitted.
func (r Rule) Check(uri string) error {
	if err := r.checkURI(uri); err != nil || r.Any {
		return err
	}
	// This compares the text up to and including the "/" after the authority, so credentials, other
	// ports and longer hosts ("https://x.test.evil/") all differ.
	n := len(r.Origin)
	if atGateway(uri) {
		return &Error{Reason: Foreign,
			Message: "URI is under " + GatewayPath + ", which is the gateway's"}
	}
	if r.Origin != "null" && n > 0 && len(uri) > n && uri[:n] == r.Origin && uri[n] == '/' {
		return nil
	}
	return &Error{Reason: Foreign, Message: "URI is not at the origin " + r.Origin}
}

// checkURI returns an *Error of reason BadURI if uri is not an absolute URI (RFC 3986, or a
// template of one) in its canonical, all-ASCII spelling, or has credentials or a fragment.
func (r Rule) checkURI(uri string) error {
	bad := func(why string) error { return &Error{Reason: BadURI, Message: "Invalid URI: " + why} }
	scheme := 0
	for scheme < len(uri) && isSchemeByte(uri[scheme], scheme == 0) {
		scheme++
	}
	if scheme == 0 || scheme == len(uri) || uri[scheme] != ':' || scheme+1 == len(uri) {
		return bad("not an absolute URI")
	}
	rest := uri[scheme+1:]
	authority := len(rest) > 2 && rest[0] == '/' && rest[1] == '/'
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c <= ' ' || c >= 0x7F || c == '"' || c == '<' || c == '>':
			return bad("a character that must be percent-encoded")
		case c == '#' && (!r.Any || r.Web):
			return bad("it has a fragment")
		case c == '@' && authority:
			return bad("it has credentials")
		case i >= 2 && (c == '/' || c == '?'):
			authority = false
		}
	}
	return nil
}

// ofSomePage reports whether some page could have a URI that Check admits: it is at a web origin in
// its canonical spelling, and under GatewayPath only where a gateway lists the URIs of a tab, or
// what a page shows.
func ofSomePage(uri string) bool {
	at := indexByte(uri, ':') + len("://")
	if at > len(uri) || uri[:at] != "https://" && uri[:at] != "http://" {
		return false
	}
	path := at
	for path < len(uri) && uri[path] != '/' {
		if c := uri[path]; c == '?' || 'A' <= c && c <= 'Z' {
			return false
		}
		path++
	}
	return at < path && path < len(uri) &&
		(!atGateway(uri) || ofGateway(uri[path+len(GatewayPath):]))
}

// ofGateway reports whether a gateway may list a URI by what follows GatewayPath: that of a tab, or
// of what it shows.
func ofGateway(rest string) bool {
	after := func(prefix string) string {
		if len(rest) <= len(prefix) || rest[:len(prefix)] != prefix {
			return ""
		}
		return rest[len(prefix):]
	}
	tab := after("tab/")
	if tab == "" {
		tab = after("shown/tab/")
	}
	return tab != "" && '1' <= tab[0] && tab[0] <= '9' || rest == "shown" ||
		after("shown?") != "" || after("parts/") != ""
}

func isSchemeByte(c byte, first bool) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		!first && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')
}

func indexByte(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == c {
			return i
		}
	}
	return -1
}
