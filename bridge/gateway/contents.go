//go:build !js

package gateway

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Contents go to agents as the page wrote them, but not before they have been looked at, in the pass in which they are found: an
// agent goes by the URI that they name, which must be the page's own to name, and clients stumble over members of wrong types.

// What agents are told of contents that are refused.
const (
	foreignContents = "the page answered with contents of another origin, which were refused"
	noContents      = "the page's answer is not resource contents"
)

// maxContents bounds the contents of one read, and maxURI a URI that a page names, in bytes, as its own engine does.
const maxContents, maxURI = 10_000, 8192

// A shape is what was seen of contents: whether they are a list of objects, each with a URI, and with a text or a blob, which are
// strings, as mimeType is if it is there, and _meta an object; and which URIs.
type shape struct {
	sound bool
	uris  []string
}

// read passes the contents. It reports false for what is no JSON.
func (s *shape) read(d *jsontext.Decoder) bool {
	if d.PeekKind() != '[' {
		return d.SkipValue() == nil
	}
	s.sound = true
	_, _ = d.ReadToken() // it is there
	for d.PeekKind() != ']' {
		if !s.one(d) {
			return false
		}
	}
	_, err := d.ReadToken()
	s.sound = s.sound && len(s.uris) <= maxContents
	return err == nil
}

// one passes one of the contents.
func (s *shape) one(d *jsontext.Decoder) bool {
	if d.PeekKind() != '{' {
		s.sound = false
		return d.SkipValue() == nil
	}
	_, _ = d.ReadToken() // it is there
	named, filled := 0, false
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		member := name.String() // before anything else is read: a token is the decoder's
		if member == "uri" && d.PeekKind() == '"' && len(s.uris) <= maxContents {
			uri, err := d.ReadToken()
			if err != nil {
				return false
			}
			named++
			s.uris = append(s.uris, uri.String())
			continue
		}
		switch member {
		case "text", "blob", "mimeType", "uri":
			s.sound = s.sound && d.PeekKind() == '"'
		case "_meta":
			s.sound = s.sound && d.PeekKind() == '{'
		}
		filled = filled || member == "text" || member == "blob"
		if d.SkipValue() != nil {
			return false
		}
	}
	_, err := d.ReadToken()
	s.sound = s.sound && named == 1 && filled
	return err == nil
}

// wrongContents says what is wrong with the contents that a page gave, or "".
func (p *Page) wrongContents(s shape) string {
	switch {
	case p.Hub: // the gateway that had them from a page has looked
		return ""
	case !s.sound:
		return noContents
	}
	for _, uri := range s.uris {
		if !p.owns(uri) {
			return foreignContents
		}
	}
	return ""
}

// owns reports whether a URI is at the page's origin.
func (p *Page) owns(uri string) bool {
	if len(uri) > maxURI {
		return false
	}
	if strings.HasPrefix(uri, p.Origin+"/") {
		return true
	}
	return p.g.opt.AnyScheme && !strings.HasPrefix(uri, "http:") && !strings.HasPrefix(uri, "https:")
}
