package live

import (
	"crypto/sha256"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/gateway/live/delta"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Look is the state of a URI at one read for an agent.
type Look struct {
	URI      string
	Revision int64 // of the last change before the read
	Parts    []gate.Part
	Text     string // all text of the contents
	Images   []any  // the images, as content of a result
	Hash     [32]byte
	Why      string // why the read failed; "" if it did not
	Epoch    string // with Count, the page's own revision; "" if unknown
	Count    int64
}

// Version returns the agent's version after it was given a part of the look; a part of "" is all of
// it.
func (l *Look) Version(part string) seen.Version {
	return seen.Version{Revision: l.Revision, Part: part, Text: l.Text, Hash: l.Hash,
		Epoch: l.Epoch, Count: l.Count}
}

// MaxDepth bounds the nesting of contents and of tools' results.
const MaxDepth = 64

// DecodeContents is NewLook for the JSON text of MCP's contents. Invalid contents give a Look that
// has only Why.
func DecodeContents(uri string, contents []byte) *Look {
	c, err := gate.ReadContents(contents, func(string) bool { return true })
	if err != nil || c.Why != "" {
		return &Look{Why: gate.NoContents}
	}
	return NewLook(uri, c.JSON, c.Parts)
}

// NewLook is a look at contents, and their parts. If there are several, or one has bytes, Text has
// a line of JSON before each.
func NewLook(uri string, contents []byte, parts []gate.Part) *Look {
	l := &Look{URI: uri, Parts: parts, Hash: sha256.Sum256(contents)}
	var texts []string
	var images gate.Media
	alone := true
	for _, part := range parts {
		text, isText := part.Text.Text()
		mime, _ := part.MIMEType.Text()
		blob, _ := part.Blob.Text()
		own, _ := part.URI.Text()
		switch {
		case isText:
			texts = append(texts, partLine(own, mime, "")+"\n"+text)
			if alone = alone && len(texts) == 1; alone {
				l.Text = text
			}
		case gate.ImageType(blob) != "" && images.Takes(len(blob)):
			l.Images = append(l.Images, ImageContent{"image", blob, gate.ImageType(blob)})
		default:
			alone = false
			note := "bytes, which are not shown: " + wire.Itoa(len(blob)*3/4)
			if strings.HasPrefix(mime, "image/") {
				note += ", since " + gate.ImagesOnly
			}
			texts = append(texts, partLine(own, mime, note))
		}
	}
	if !alone {
		l.Text = strings.Join(texts, "\n")
	}
	return l
}

// ImagesWithin returns the images if their base64 has at most so many characters, or else a note. 0
// is no bound.
func (l *Look) ImagesWithin(chars int) (images []any, note string) {
	length := 0
	for _, image := range l.Images {
		length += len(image.(ImageContent).Data)
	}
	if chars > 0 && length > chars {
		return nil, "its images have " + wire.Itoa(length) +
			" characters of base64: leave max_chars out to get them"
	}
	return l.Images, ""
}

// partLine is the line before a part.
func partLine(uri, mime, note string) string {
	return "--- " + Line(struct {
		URI  string `json:"uri"`
		MIME string `json:"mimeType,omitempty"`
		Note string `json:"note,omitempty"`
	}{uri, mime, note})
}

// Names of parts begin with these: a JSON Pointer (RFC 6901), or lines such as 10-20.
const PartPointer, PartLines = "pointer ", "lines "

// PartOf returns the part of a text with a name: "" for all of it, a JSON Pointer, or lines. The
// error is a sentence for the agent, and tells it which parts exist.
func PartOf(text, name string) (string, error) {
	switch {
	case name == "":
		return text, nil
	case strings.HasPrefix(name, PartLines):
		return delta.Lines(text, strings.TrimPrefix(name, PartLines))
	}
	return delta.At(text, strings.TrimPrefix(name, PartPointer))
}

func partNames(part string) (pointer, lines string) {
	if name, ok := strings.CutPrefix(part, PartPointer); ok {
		return name, ""
	}
	return "", strings.TrimPrefix(part, PartLines)
}

// Same reports whether an agent's version of a URI is current: the part that the agent was given
// reads the same.
func Same(v seen.Version, l *Look) bool {
	if v.Hash == l.Hash {
		return true
	}
	if v.Part == "" || v.Gone {
		return false
	}
	before, gone := PartOf(v.Text, v.Part)
	after, err := PartOf(l.Text, v.Part)
	return gone == nil && err == nil && before == after
}
