package live

import (
	"encoding/json"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Change describes one URI's change to an agent. It holds the new state, or the difference, if
// that fits.
type Change struct {
	URI      string          `json:"uri"`
	Revision int64           `json:"revision"`
	Since    int64           `json:"since,omitempty"`
	Pointer  string          `json:"pointer,omitempty"`
	Lines    string          `json:"lines,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"` // RFC 6902
	Words    string          `json:"words,omitempty"` // lines with [-old-] {+new+} words
	Diff     string          `json:"diff,omitempty"`  // unified
	// a JSON document, or any other text as a string
	Now  json.RawMessage `json:"now,omitempty"`
	Gone bool            `json:"gone,omitempty"` // the part no longer exists
	When string          `json:"when,omitempty"`
}

// MaxInline is the longest text in bytes that a reminder compares. The gateway's lock is held
// during the comparison.
const MaxInline = 64 << 10

// ChangeOf describes the change from an agent's version to the current one, in one line of JSON. It
// returns "" if that is longer than most bytes, or if the contents have images. Texts longer than
// MaxInline get no delta.
func ChangeOf(v seen.Version, l *Look, when string, most int) string {
	c := Change{URI: l.URI, Revision: l.Revision, When: when}
	after, err := PartOf(l.Text, v.Part)
	c.Pointer, c.Lines = partNames(v.Part)
	before, gone := PartOf(v.Text, v.Part)
	switch {
	case err != nil:
		c.Gone = true
		return Fitting(c, most)
	case len(l.Images) > 0:
		return ""
	case v.Gone || gone != nil || max(len(before), len(after)) > MaxInline:
	default:
		kind, text := delta.Of(before, after)
		switch kind {
		case delta.Patch:
			c.Patch = json.RawMessage(text)
		case delta.Diff:
			if c.Words = delta.Words(text); c.Words == "" {
				c.Diff = text
			}
		}
		if kind != delta.None {
			c.Since = v.Revision
			return Fitting(c, most)
		}
	}
	if len(after) > most {
		return ""
	}
	c.Now = json.RawMessage(Line(after))
	if doc, err := wire.Parse([]byte(after), MaxDepth); err == nil &&
		(doc.Kind() == wire.Object || doc.Kind() == wire.Array) {
		c.Now = json.RawMessage(doc)
	}
	return Fitting(c, most)
}

// BeginningOf describes the current state of an agent's part of a resource by its beginning, in one
// line of JSON. It returns "" if that is longer than most bytes, or if the contents have images.
func BeginningOf(part string, l *Look, when string, most int) string {
	text, err := PartOf(l.Text, part)
	if err != nil || len(l.Images) > 0 {
		return ""
	}
	c := Change{URI: l.URI, Revision: l.Revision, When: when}
	c.Pointer, c.Lines = partNames(part)
	// JSON has more characters for some of the text
	for n := min(most, len(text)); n > 8; n -= n / 8 {
		c.Now = json.RawMessage(Line(strings.ToValidUTF8(text[:n], "")))
		if line := Fitting(c, most); line != "" {
			return line
		}
	}
	return ""
}

// Fitting returns a change as one line of JSON, or "" if that has more than most bytes.
func Fitting(c Change, most int) string {
	if text := Line(c); len(text) <= most {
		return text
	}
	return ""
}
