package gate

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A passage is one answer of a page on its way.
type passage struct {
	text   []byte
	own    func(uri string) bool
	notes  []string
	last   [2]string // member and reason of the last note, which may come a million times
	odd    bool      // text is to be mended
	mended bool

	media Media // of the result until now
}

// maxNotes bounds the notes about one answer.
const maxNotes = 8

// note adds a sentence for the page's developer: the member, the reason and the remedy.
func (g *passage) note(member, reason, remedy string) {
	if len(g.notes) == maxNotes || g.last == [2]string{member, reason} {
		return
	}
	g.last = [2]string{member, reason}
	sentence := shorten(member) + " " + reason + ": " + remedy
	for _, n := range g.notes {
		if n == sentence {
			return
		}
	}
	g.notes = append(g.notes, sentence)
}

// leaveOut notes a member that does not pass.
func (g *passage) leaveOut(name, of string) {
	why := notThePages[name]
	if why == "" {
		why = "MCP does not have it there"
	}
	g.note(name, "is left out of "+of, why)
}

func shorten(name string) string { return strings.ToValidUTF8(name[:min(len(name), 64)], "") }

// members takes an object with members of some names, of which the last of each counts, into values. same reports that
// it has no other members, and none twice.
func members(w *wire.Walk, names []string, values []wire.Value, left func(name string)) (same bool, err error) {
	same = true
	err = w.Object(func(key wire.Value) (err error) {
		v, err := w.Value()
		for i, name := range names {
			if key.Is(name) {
				same = same && values[i] == nil
				values[i] = v
				return err
			}
		}
		same = false
		name, _ := key.Text()
		left(name)
		return err
	})
	return same, err
}

// The members that MCP defines: of content blocks of all types, of a resource's contents, and of annotations. Icons do
// not pass: a client would fetch them from where the page says.
var (
	blockNames = []string{"type", "text", "data", "mimeType", "resource", "uri", "name", "title", "description", "size",
		"annotations", "_meta"}
	itemNames       = []string{"uri", "mimeType", "text", "blob", "_meta"}
	annotationNames = []string{"audience", "priority", "lastModified"}
)

// A shape is an object that is written from known members.
type shape struct {
	out  wire.Text
	used int  // members of the page's
	same bool // they are unchanged
}

func (s *shape) put(name string, value, was wire.Value) {
	if value == nil {
		s.same = s.same && was == nil
		return
	}
	if len(s.out) > 1 {
		s.out = s.out.Raw(",")
	}
	s.out = s.out.Raw(`"`).Raw(name).Raw(`":`).Bytes(value)
	s.used++
	s.same = s.same && string(value) == string(was)
}

// raw puts a member that passes as the page wrote it, if it is of a kind.
func (s *shape) raw(name string, value wire.Value, kind wire.Kind) {
	if value.Kind() == kind {
		s.put(name, value, value)
	} else {
		s.put(name, nil, value)
	}
}

// block takes a content block. known reports whether its type is MCP's, same whether it passes unchanged. A block that
// clients or models refuse becomes text.
func (g *passage) block(w *wire.Walk) (block wire.Value, known, same bool, err error) {
	at := w.Pos()
	var m [12]wire.Value
	s := shape{out: wire.Text(`{`), same: true}
	why, instead := "is no object", ""
	if w.Kind() == wire.Object {
		s.same, err = members(w, blockNames, m[:], func(name string) {
			g.leaveOut(name, "a content block")
		})
		s.raw("type", m[0], wire.String)
		why, instead = "has a type that MCP does not have", ""
		switch kind, _ := m[0].Text(); {
		case err != nil:
		case kind == "text":
			s.raw("text", m[1], wire.String)
			if why = ""; m[1].Kind() != wire.String {
				why, instead = "has a text that is no string", string(m[1])
			}
			known = true
		case kind == "image" || kind == "audio":
			why, instead = g.picture(&s, kind, m[2], m[3])
			known = true
		case kind == "resource":
			why, instead, err = g.embedded(&s, m[4])
			known = true
		case kind == "resource_link":
			why, instead = g.link(&s, m[:])
			known = true
		}
	} else if _, err = w.Value(); err == nil {
		v := wire.Value(g.text[at:w.Pos()])
		instead, _ = v.Text()
	}
	given := wire.Value(g.text[at:w.Pos()])
	if err != nil {
		return nil, known, false, err
	}
	if why != "" {
		g.note("a content block", why, "it is served as text")
		if instead == "" {
			instead = string(given)
		}
		return textBlock(instead), known, false, nil
	}
	s.put("annotations", g.annotations(m[10]), m[10])
	meta, _ := g.meta(m[11], false)
	s.put("_meta", meta, m[11])
	for _, v := range m { // of another type
		if v != nil {
			s.used--
		}
	}
	if s.same && s.used == 0 {
		return given, known, true, nil
	}
	return wire.Value(s.out.Raw("}")), known, false, nil
}

// embedded puts a resource of the page's own. The text of another one is the page's, and its URI is not.
func (g *passage) embedded(s *shape, resource wire.Value) (why, instead string, err error) {
	if resource.Kind() != wire.Object {
		return "has a resource that is no object", "", nil
	}
	it, same, why, err := g.item(wire.NewWalk(resource, nesting))
	if err != nil || why != "" {
		if instead, _ = it.text.Text(); instead == "" {
			instead = notShown(it.mimeType, it.blob, "the page cannot give it")
		}
		return "has a resource that is not this page's, or no contents", instead, err
	}
	if same {
		it.out = resource
	}
	s.put("resource", it.out, resource)
	return "", "", nil
}

func (g *passage) link(s *shape, m []wire.Value) (why, instead string) {
	uri, ok := m[5].Text()
	if !ok || len(uri) > maxURI || !g.own(uri) {
		if instead, _ = m[7].Text(); instead == "" {
			instead, _ = m[6].Text()
		}
		return "links to a resource that is not this page's", instead
	}
	s.raw("uri", m[5], wire.String)
	if m[6].Kind() == wire.String {
		s.raw("name", m[6], wire.String)
	} else { // clients need one
		s.put("name", m[5], m[6])
	}
	s.raw("title", m[7], wire.String)
	s.raw("description", m[8], wire.String)
	s.raw("mimeType", m[3], wire.String)
	if n, ok := m[9].Int(); ok && n >= 0 {
		s.raw("size", m[9], wire.Number)
	}
	return "", ""
}

// ImagesOnly is the reason why other data are not shown.
const ImagesOnly = "a model takes 20 images of PNG, JPEG, GIF or WebP with 5,000,000 characters of base64 together"

// Media counts the images and sounds of one result. A request to a model with more of them, or with an image of another
// type, fails, and so does every later one of the conversation.
type Media struct{ count, chars int }

// room reports whether there is room for data in base64, and counts them.
func (m *Media) room(data string) bool {
	if m.count == 20 || m.chars+len(data) > 5_000_000 {
		return false
	}
	m.count++
	m.chars += len(data)
	return true
}

// Takes reports whether a model takes an image in base64, and counts it.
func (m *Media) Takes(data string) bool { return ImageType(data) != "" && m.room(data) }

// picture puts an image or a sound.
func (g *passage) picture(s *shape, kind string, data, mimeType wire.Value) (why, instead string) {
	sound, ok := base64Of(data)
	text, _ := sound.Text()
	mime := mimeType
	switch real := ImageType(text); {
	case !ok:
		return "has data that is no base64", notShown(mimeType, nil, "its data is no base64")
	case kind == "image" && real != "" && !mimeType.Is(real):
		mime = wire.Value(wire.Text(nil).Str(real))
		g.note("mimeType", "of an image is not what its data are", "it is corrected")
	case kind == "audio" && mimeType.Kind() != wire.String:
		return "has no mimeType", notShown(nil, sound, "it has no mimeType")
	}
	if kind == "image" && !g.media.Takes(text) || kind == "audio" && !g.media.room(text) {
		return "is not shown: " + ImagesOnly, notShown(mimeType, sound, ImagesOnly)
	}
	s.put("data", sound, data)
	s.put("mimeType", mime, mimeType)
	return "", ""
}

// notShown is the text in place of data that are not shown. The page's words are quoted.
func notShown(mimeType, base64 wire.Value, note string) string {
	out := wire.Text(`{`)
	if mime, ok := mimeType.Text(); ok {
		out = out.Raw(`"mimeType":`).Str(shorten(mime)).Raw(",")
	}
	return string(out.Raw(`"bytes":`).Int(max(0, len(base64)-2) * 3 / 4).Raw(`,"note":`).Str("not shown: " + note).Raw("}"))
}

// ImageType is the media type of an image in base64 that models take, by its first bytes; "" for anything else. The
// name that a page gives the image does not count: a model's API refuses a request for one image that is another type.
func ImageType(data string) string {
	var b [12]byte
	if len(data) < 16 {
		return ""
	}
	base64.StdEncoding.Decode(b[:], []byte(data[:16]))
	for _, of := range [...][2]string{{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"},
		{"GIF87a", "image/gif"}, {"GIF89a", "image/gif"}} {
		if strings.HasPrefix(string(b[:]), of[0]) {
			return of[1]
		}
	}
	if string(b[:4]) == "RIFF" && string(b[8:]) == "WEBP" {
		return "image/webp"
	}
	return ""
}

// base64Of is v as a string of standard base64. It also takes base64 without padding, with white space, and of URLs.
func base64Of(v wire.Value) (wire.Value, bool) {
	if v.Kind() != wire.String {
		return nil, false
	}
	if isBase64(v[1 : len(v)-1]) {
		return v, true
	}
	text, _ := v.Text()
	text = strings.NewReplacer("-", "+", "_", "/", " ", "", "\n", "", "\r", "", "\t", "").Replace(text)
	text = strings.TrimRight(text, "=")
	text += strings.Repeat("=", -len(text)&3)
	return wire.Value(wire.Text(nil).Str(text)), isBase64([]byte(text))
}

// notBase64 marks the bytes that are not in the alphabet.
var notBase64 = func() (t [256]uint8) {
	for c := range t {
		t[c] = 1
	}
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = 0
	}
	return t
}()

func isBase64(data []byte) bool {
	n := len(data)
	if n%4 != 0 {
		return false
	}
	for range 2 {
		if n > 0 && data[n-1] == '=' {
			n--
		}
	}
	bad := uint8(0)
	for ; n >= 4 && bad == 0; n -= 4 {
		four := data[n-4 : n : n]
		bad = notBase64[four[0]] | notBase64[four[1]] | notBase64[four[2]] | notBase64[four[3]]
	}
	for _, c := range data[:n] {
		bad |= notBase64[c]
	}
	return bad == 0
}

// annotations returns the annotations that clients take, or nil.
func (g *passage) annotations(v wire.Value) wire.Value {
	var m [3]wire.Value
	s := shape{out: wire.Text(`{`)}
	if v.Kind() == wire.Object {
		s.same, _ = members(wire.NewWalk(v, nesting), annotationNames, m[:], func(string) {})
	}
	if audience := rolesOf(m[0]); len(audience) > 2 {
		s.put(annotationNames[0], audience, m[0])
	}
	if n, err := strconv.ParseFloat(string(m[1]), 64); err == nil && n >= 0 && n <= 1 {
		s.raw(annotationNames[1], m[1], wire.Number)
	}
	text, _ := m[2].Text()
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		s.put(annotationNames[2], wire.Value(wire.Text(nil).Str(at.UTC().Format(time.RFC3339Nano))), m[2])
	}
	for _, given := range m {
		if given != nil {
			s.used--
		}
	}
	if s.same && s.used == 0 {
		return v
	}
	if v != nil {
		g.note("annotations", "have a member or a value that clients refuse", "it is left out")
	}
	if len(s.out) == 1 {
		return nil
	}
	return wire.Value(s.out.Raw("}"))
}

// rolesOf is an audience without the roles that MCP does not have.
func rolesOf(v wire.Value) wire.Value {
	roles := wire.Text("[")
	for _, role := range [...]string{"user", "assistant"} {
		v.Elements(func(e wire.Value) bool {
			if !e.Is(role) {
				return true
			}
			if len(roles) > 1 {
				roles = roles.Raw(",")
			}
			roles = roles.Str(role)
			return false
		})
	}
	return wire.Value(roles.Raw("]"))
}

// An item is the contents of one resource.
type item struct{ out, mimeType, text, blob wire.Value }

// item takes contents: a uri of the page's, and a text or a blob. why is NoContents or ForeignContents, or "".
func (g *passage) item(w *wire.Walk) (it item, same bool, why string, err error) {
	if w.Kind() != wire.Object {
		_, err = w.Value()
		return it, false, NoContents, err
	}
	var m [5]wire.Value
	s := shape{out: wire.Text(`{`)}
	s.same, err = members(w, itemNames, m[:], func(name string) {
		g.leaveOut(name, "contents")
	})
	if err != nil {
		return it, false, "", err
	}
	it.mimeType, it.text, it.blob = m[1], m[2], m[3]
	uri, named := m[0].Text()
	s.raw("uri", m[0], wire.String)
	s.raw("mimeType", m[1], wire.String)
	switch {
	case !named:
		why = NoContents
	case m[2].Kind() == wire.String && m[3].Kind() <= wire.Null:
		s.raw("text", m[2], wire.String)
	case m[3].Kind() == wire.String && m[2].Kind() <= wire.Null:
		blob, ok := base64Of(m[3])
		if s.put("blob", blob, m[3]); !ok {
			why = NoBase64
		}
	default:
		why = NoContents
	}
	if why == "" && (len(uri) > maxURI || !g.own(uri)) {
		why = ForeignContents
	}
	meta, _ := g.meta(m[4], false)
	s.put("_meta", meta, m[4])
	it.out = wire.Value(s.out.Raw("}"))
	return it, s.same && m[2].Kind() != wire.Null && m[3].Kind() != wire.Null, why, nil
}

// Reasons why the contents of a read do not pass. Agents see them.
const (
	ForeignContents = "the page answered with contents of another origin, which were refused"
	NoContents      = "the page's answer is not resource contents"
	NoBase64        = "the page's answer has a blob that is no base64"
)

// maxURI bounds a URI in contents, in bytes.
const maxURI = 8192

// Contents checks the JSON text of a read's contents, and returns what passes of it, with notes for the page's
// developer. why is the reason if nothing does. own reports whether the page may use a URI: agents rely on it. The
// error means that text is no JSON.
func Contents(text []byte, own func(uri string) bool) (contents wire.Value, notes []string, why string, err error) {
	g := passage{text: text, own: own}
	if contents, why, err = g.contents(); err == nil && g.odd {
		g.mend()
		contents, why, err = g.contents()
	}
	if err != nil {
		if _, err := wire.Parse(text, maxNesting); err != nil {
			return nil, nil, "", err
		}
		why = NoContents
	}
	return contents, g.notes, why, nil
}

func (g *passage) contents() (contents wire.Value, why string, err error) {
	w := wire.NewWalk(g.text, nesting)
	if w.Kind() != wire.Array {
		if _, err = w.Value(); err == nil {
			err = w.End()
		}
		return nil, NoContents, err
	}
	at, n, same := w.Pos(), 0, true
	var list []wire.Value
	err = w.Array(func() error {
		if n++; n > maxBlocks || why != "" {
			_, err := w.Value()
			return err
		}
		from := w.Pos()
		it, whole, fault, err := g.item(w)
		if whole {
			it.out = g.text[from:w.Pos()]
		}
		same, why = same && whole, fault
		list = append(list, it.out)
		return err
	})
	given := wire.Value(g.text[at:w.Pos()])
	if err == nil {
		err = w.End()
	}
	switch g.odd = w.Odd() && !g.mended; {
	case err != nil || why != "":
		return nil, why, err
	case n == 0 || n > maxBlocks:
		return nil, NoContents, nil
	case same:
		return given, "", nil
	}
	out := wire.Text("[")
	for i, it := range list {
		if i > 0 {
			out = out.Raw(",")
		}
		out = out.Bytes(it)
	}
	return wire.Value(out.Raw("]")), "", nil
}
