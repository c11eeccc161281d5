package gate

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A passage is one answer of a page on its way.
type passage struct {
	Faults
	parts []Part // of contents
	text  []byte
	own   func(uri string) bool
	odd   bool   // text is to be mended
	media Media  // of the result until now
	image string // the media type of the block's data
}

// maxBlocks bounds the content of a result, and the contents of a read.
const maxBlocks = 10_000

// unknown leaves out a member that MCP does not have.
func (g *passage) unknown(name string) {
	g.leaveOut(name, cmp.Or(notThePages[name], notMCPs))
}

const notMCPs = "it is not what MCP has there"

// A member is a member that an agent gets. pass returns what passes of the page's value, or nil. It
// is called without a value for a member that is needed.
type member struct {
	name string
	need bool
	pass func(g *passage, v wire.Value) wire.Value
}

// The shapes that MCP defines: of contents, of annotations, and of content blocks by type. Icons do
// not pass: a client would fetch them from where the page says.
var (
	uri, mime = member{"uri", true, owned}, member{"mimeType", false, text}
	name      = member{"name", true, text}
	meta      = member{"_meta", false, (*passage).meta}

	texts       = []member{uri, mime, {"text", true, text}, meta}
	blobs       = []member{uri, mime, {"blob", true, base64Of}, meta}
	annotations = []member{{"audience", false, roles}, {"priority", false, priority},
		{"lastModified", false, date}}
	blocks = map[string][]member{
		"text":     shape(member{"text", true, text}),
		"image":    shape(member{"data", true, picture}, member{"mimeType", true, realType}),
		"audio":    shape(member{"data", true, sound}, member{"mimeType", true, text}),
		"resource": shape(member{"resource", true, embedded}),
		"resource_link": shape(uri, name, mime, member{"title", false, text},
			member{"description", false, text}, member{"size", false, size}),
	}
)

// shape has the members of a content block of one type.
func shape(members ...member) []member {
	last := []member{{"annotations", false, annotated}, meta}
	return slices.Concat([]member{{"type", true, text}}, members, last)
}

// object returns the members that pass, and their values: given if that is all of it. missing is
// the first one that is needed and does not pass.
func (g *passage) object(given wire.Value, list []pair, same bool, as []member) (
	out wire.Value, passed []wire.Value, missing string) {
	passed = make([]wire.Value, 0, 8)
	found := 0
	for _, m := range as {
		value := valueOf(list, m.name)
		if value != nil {
			found++
		}
		var passes wire.Value
		if value != nil || m.need {
			passes = m.pass(g, value)
		}
		if passes == nil && m.need {
			return nil, nil, m.name
		}
		if same = same && string(passes) == string(value); passes == nil && value != nil {
			g.leaveOut(m.name, notMCPs)
		}
		passed = append(passed, passes)
	}
	if same && found == len(list) {
		return given, passed, ""
	}
	for _, p := range list {
		if !slices.ContainsFunc(as, func(m member) bool { return p.key.Is(m.name) }) {
			g.unknown(words(p.key))
		}
	}
	o := object{t: wire.Text("{")}
	for i, v := range passed {
		if v != nil {
			o.key(as[i].name).Bytes(v)
		}
	}
	return wire.Value(o.Raw("}").t), passed, ""
}

func text(_ *passage, v wire.Value) wire.Value { return only(v.Kind() == wire.String, v) }

func size(_ *passage, v wire.Value) wire.Value {
	return only(is("count", v), v)
}

// maxURI bounds a URI in an answer, in bytes.
const maxURI = 8192

func owned(g *passage, v wire.Value) wire.Value {
	uri, ok := v.Text()
	return only(ok && len(uri) <= maxURI && g.own(uri), v)
}

func roles(_ *passage, v wire.Value) wire.Value {
	ok := v.Kind() == wire.Array && !v.Empty()
	v.Elements(func(role wire.Value) bool {
		ok = ok && (role.Is("user") || role.Is("assistant"))
		return ok
	})
	return only(ok, v)
}

func priority(_ *passage, v wire.Value) wire.Value {
	n, err := strconv.ParseFloat(string(v), 64)
	return only(err == nil && n >= 0 && n <= 1, v)
}

func date(_ *passage, v wire.Value) wire.Value {
	at := resource.DateTime(words(v))
	return only(at != "", wire.Value(wire.Text(nil).Str(at)))
}

func annotated(g *passage, v wire.Value) wire.Value {
	if v.Kind() != wire.Object {
		return nil
	}
	list, same, _ := pairs(wire.NewWalk(v, nesting), maxMembers)
	out, _, _ := g.object(v, list, same, annotations)
	return only(len(out) > len("{}"), out)
}

// maxMembers bounds the members of an object that are looked at: MCP has 12 at most.
const maxMembers = 32

// embedded passes a resource of the page's own.
func embedded(g *passage, v wire.Value) wire.Value {
	out, why, err := g.item(wire.NewWalk(v, nesting))
	return only(err == nil && why == "", out)
}

// base64Of passes standard base64. It also takes base64 without padding, with white space, and of
// URLs.
func base64Of(_ *passage, v wire.Value) wire.Value {
	if v.Kind() != wire.String {
		return nil
	}
	if isBase64(v[1 : len(v)-1]) {
		return v
	}
	text, _ := v.Text()
	text = strings.NewReplacer("-", "+", "_", "/", " ", "", "\n", "", "\r", "").Replace(text)
	text = strings.TrimRight(text, "=")
	text += strings.Repeat("=", -len(text)&3)
	return only(isBase64([]byte(text)), wire.Value(wire.Text(nil).Str(text)))
}

func isBase64(data []byte) bool {
	n := len(data)
	for n > 0 && data[n-1] == '=' && n > len(data)-2 {
		n--
	}
	bad := uint8(len(data) % 4)
	for ; n >= 4 && bad == 0; n -= 4 { // four at once: a blob may have 16 MiB
		four := data[n-4 : n : n]
		bad = notBase64[four[0]] | notBase64[four[1]] | notBase64[four[2]] | notBase64[four[3]]
	}
	for _, c := range data[:n] {
		bad |= notBase64[c]
	}
	return bad == 0
}

var notBase64 = func() (t [256]uint8) {
	for c := range t {
		r := rune(c)
		if c != '+' && c != '/' && (c >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r)) {
			t[c] = 1
		}
	}
	return t
}()

// Media counts the images and sounds of one result. A request to a model with more of them, or with
// an image of another type, fails, and so does every later one of the conversation.
type Media struct{ count, chars int }

// ImagesOnly is the reason why other data are not shown.
const ImagesOnly = "models take PNG, JPEG, GIF and WebP, 20 at once, 5,000,000 characters in base64"

// Takes reports whether a model takes data in base64 with the others, and counts them.
func (m *Media) Takes(chars int) bool {
	if m.count == 20 || m.chars+chars > 5_000_000 {
		return false
	}
	m.count++
	m.chars += chars
	return true
}

func sound(g *passage, v wire.Value) wire.Value {
	v = base64Of(g, v)
	return only(v != nil && g.media.Takes(len(v)-len(`""`)), v)
}

func picture(g *passage, v wire.Value) wire.Value {
	g.image = ImageType(words(base64Of(g, v)))
	if g.image == "" {
		return nil
	}
	return sound(g, v)
}

// realType corrects the media type of an image: an API refuses one that is not what its data are.
func realType(g *passage, v wire.Value) wire.Value {
	if v.Is(g.image) {
		return v
	}
	g.add("mimeType", "corrected, because the data of the image are "+g.image)
	return wire.Value(wire.Text(nil).Str(g.image))
}

// ImageType is the media type of an image in base64 that models take, by its first bytes; "" for
// anything else.
func ImageType(data string) string {
	first, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 20)])
	switch kind := http.DetectContentType(first); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// block takes a content block. known reports whether its type is MCP's. A block that clients or
// models refuse becomes text: of a resource or a link of another origin only the page's own words.
func (g *passage) block(w *wire.Walk) (block wire.Value, known bool, err error) {
	at := w.Pos()
	if w.Kind() != wire.Object {
		v, err := w.Value()
		g.add("content", "a block that is no object is served as text")
		return textBlock(words(v)), false, err
	}
	list, same, err := pairs(w, maxMembers)
	given := w.Since(at)
	kind, _ := valueOf(list, "type").Text()
	as, known := blocks[kind]
	if err != nil || !known {
		g.add("content", "a block of a type that MCP does not have is served as text")
		return textBlock(string(given)), false, err
	}
	out, _, missing := g.object(given, list, same, as)
	if missing == "" {
		return out, true, nil
	}
	instead := words(given)
	switch v := valueOf(list, missing); {
	case missing == "text" && v != nil:
		instead = words(v)
	case missing == "data" || missing == "mimeType":
		instead = notShown(valueOf(list, "mimeType"), valueOf(list, "data"), ImagesOnly)
	case missing == "resource" && v.Get("text").Kind() == wire.String:
		instead = words(v.Get("text"))
	case missing == "resource" && v.Kind() == wire.Object:
		instead = notShown(v.Get("mimeType"), v.Get("blob"), "the page cannot give it")
	case missing == "uri":
		instead = words(valueOf(list, "name"))
	}
	g.add("content", "a block is served as text, because "+refusals[missing])
	return textBlock(instead), true, nil
}

func textBlock(text string) wire.Value {
	return wire.Value(wire.Text(`{"type":"text","text":`).Str(text).Raw("}"))
}

// refusals are the reasons why a block becomes text, by the member that it needs.
var refusals = map[string]string{
	"text": "its text is no string", "data": ImagesOnly, "mimeType": "it has no mimeType",
	"resource": "its resource is not at the page's origin, or is no contents",
	"uri":      "it links to a resource that is not at the page's origin", "name": "it has no name",
}

// notShown is the text in place of data that are not shown. The page's words are quoted.
func notShown(mimeType, data wire.Value, why string) string {
	out := wire.Text(`{"mimeType":`).Str(words(mimeType)).Raw(`,"bytes":`)
	out = out.Int(max(0, len(data)-len(`""`)) * 3 / 4)
	return string(out.Raw(`,"note":`).Str("not shown: " + why).Raw("}"))
}

// Reasons why the contents of a read do not pass. Agents see them.
const (
	ForeignContents = "the page answered with contents of another origin, which were refused"
	NoContents      = "the page's answer is not resource contents"
)

// item takes the contents of one resource: a uri of the page's, and a text or a blob.
func (g *passage) item(w *wire.Walk) (out wire.Value, why string, err error) {
	at := w.Pos()
	if w.Kind() != wire.Object {
		_, err = w.Value()
		return nil, NoContents, err
	}
	list, same, err := pairs(w, maxMembers)
	as := texts
	if valueOf(list, "blob").Kind() == wire.String && valueOf(list, "text").Kind() != wire.String {
		as = blobs
	}
	out, passed, missing := g.object(w.Since(at), list, same, as)
	if missing != "" {
		g.add("contents."+missing, "refused, because it is not MCP's, or not at the page's origin")
	}
	switch {
	case missing == "uri" && valueOf(list, "uri").Kind() == wire.String:
		return nil, ForeignContents, err
	case missing != "":
		return nil, NoContents, err
	}
	part := Part{passed[0], passed[1], passed[2], nil}
	if as[2].name == "blob" {
		part.Text, part.Blob = nil, passed[2]
	}
	g.parts = append(g.parts, part)
	return out, "", err
}

// end takes the end of the text, unless there was an error.
func (g *passage) end(w *wire.Walk, err error) error {
	if g.odd = w.Odd(); err != nil {
		return err
	}
	return w.End()
}

// Contents are what a page gives of a resource.
type Contents struct {
	JSON   wire.Value // MCP's contents, as they pass
	Parts  []Part
	Why    string // why nothing passes, or ""
	Faults Faults
}

// A Part is one of MCP's contents: strings of JSON, or absent.
type Part struct{ URI, MIMEType, Text, Blob wire.Value }

// ReadContents checks the JSON text of a read's contents. own reports whether the page may use a
// URI: agents rely on it. The error means that text is no JSON.
func ReadContents(text []byte, own func(uri string) bool) (*Contents, error) {
	g := passage{text: text, own: own}
	contents, why, err := g.contents()
	if err == nil && g.mend() {
		contents, why, err = g.contents()
	}
	if err != nil { // perhaps it is nested too deep
		why = NoContents
		_, err = wire.Parse(text, maxNesting)
	}
	return &Contents{contents, g.parts, why, g.Faults}, err
}

func (g *passage) contents() (out wire.Value, why string, err error) {
	g.parts = nil
	w := wire.NewWalk(g.text, nesting)
	if w.Kind() != wire.Array {
		_, err = w.Value()
		return nil, NoContents, g.end(w, err)
	}
	at := w.Pos()
	list, same, err := g.list(w, func() (item wire.Value, err error) {
		if why == "" {
			item, why, err = g.item(w)
		} else {
			item, err = w.Value()
		}
		return item, err
	})
	whole := w.Since(at)
	// Of a read, a part would be taken for all.
	if err = g.end(w, err); why == "" && (len(list) == 0 || len(list) == maxBlocks) {
		why = NoContents
	}
	if why != "" || err != nil {
		return nil, why, err
	}
	if same {
		return whole, "", nil
	}
	var o object
	return wire.Value(o.array(list).t), "", nil
}

// list takes an array, whose elements take returns. same reports that they are the page's. Others
// than the first maxBlocks are left out.
func (g *passage) list(w *wire.Walk, take func() (wire.Value, error)) (
	list []wire.Value, same bool, err error) {
	same = true
	err = w.Array(func() error {
		from := w.Pos()
		if len(list) == maxBlocks {
			same = false
			_, err := w.Value()
			g.leaveOut("content", "there are 10,000 parts before it")
			return err
		}
		v, err := take()
		list = append(list, v)
		same = same && string(v) == string(w.Since(from))
		return err
	})
	return list, same, err
}
