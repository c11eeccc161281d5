//go:build !js

package live

import (
	"crypto/sha256"
	"net/url"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Look is what a URI reads as, and as of when, for an agent that is given it by a tool.
type Look struct {
	URI      string
	Revision int64  // of the last change before it was read
	Contents []byte // as the page wrote them
	Text     string // all of it that is text
	Images   []any  // the rest, as content of a result
	Hash     [32]byte
	Why      string // it could not be read
	Epoch    string // with Count, the page's own revision; "" where that is not known
	Count    int64
}

// Version is what an agent that is given a part of it, or with "" all, has then.
func (l *Look) Version(part string) seen.Version {
	return seen.Version{Revision: l.Revision, Part: part, Text: l.Text, Hash: l.Hash, Epoch: l.Epoch, Count: l.Count}
}

// MaxDepth is how deep contents, and results of tools, may be nested.
const MaxDepth = 64

// DecodeContents reads the JSON text of MCP's contents. What is several parts, or bytes, is one text all the same, in
// which each part has a line of its own before it. What is no contents is a Look with the reason alone.
func DecodeContents(uri string, contents []byte) *Look {
	v, err := wire.Parse(contents, MaxDepth)
	if err != nil || v.Kind() != wire.Array {
		return &Look{Why: link.NoContents}
	}
	l := &Look{URI: uri, Contents: contents, Hash: sha256.Sum256(v)}
	var texts []string
	alone := true
	for part := range v.Elements {
		text, isText := part.Get("text").Text()
		mime, _ := part.Get("mimeType").Text()
		blob, _ := part.Get("blob").Text()
		own, _ := part.Get("uri").Text()
		switch {
		case isText:
			texts = append(texts, partLine(own, mime, "")+"\n"+text)
			if alone = alone && len(texts) == 1; alone {
				l.Text = text
			}
		case strings.HasPrefix(mime, "image/"):
			l.Images = append(l.Images, ImageContent{"image", blob, mime})
		default:
			alone = false
			texts = append(texts, partLine(own, mime, "bytes, which are not shown: "+wire.Itoa(len(blob)*3/4)))
		}
	}
	if !alone {
		l.Text = strings.Join(texts, "\n")
	}
	return l
}

// partLine is the line before one of several parts.
func partLine(uri, mime, note string) string {
	return "--- " + Line(struct {
		URI  string `json:"uri"`
		MIME string `json:"mimeType,omitempty"`
		Note string `json:"note,omitempty"`
	}{uri, mime, note})
}

// What names of parts begin with: a JSON Pointer (RFC 6901), or lines such as 10-20.
const PartPointer, PartLines = "pointer ", "lines "

// PartOf is the part of a text that a name stands for: "" for all of it, a JSON Pointer, or lines. The error is a
// sentence that says what is there instead.
func PartOf(text, name string) (string, error) {
	switch {
	case name == "":
		return text, nil
	case strings.HasPrefix(name, PartLines):
		return delta.Lines(text, strings.TrimPrefix(name, PartLines))
	}
	return delta.At(text, strings.TrimPrefix(name, PartPointer))
}

// partNames is the pointer or the lines that a part is.
func partNames(part string) (pointer, lines string) {
	if name, ok := strings.CutPrefix(part, PartPointer); ok {
		return name, ""
	}
	return "", strings.TrimPrefix(part, PartLines)
}

// Same reports whether what an agent has of a URI is what it reads as now.
func Same(v seen.Version, l *Look) bool {
	if v.Hash == l.Hash {
		return true
	}
	if v.Part == "" || v.Gone {
		return false
	}
	before, err := PartOf(v.Text, v.Part)
	if err != nil {
		return false
	}
	after, err := PartOf(l.Text, v.Part)
	return err == nil && before == after
}

// OriginOf is a URI's; "" for one that has none.
func OriginOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
