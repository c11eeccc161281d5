package gate

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

const (
	// nesting bounds the nesting of what passes. A result that is nested deeper becomes text, up to maxNesting.
	nesting, maxNesting = 64, 1000
	// maxBlocks bounds the content of a result, and the contents of a read.
	maxBlocks = 10_000
)

// A Result is a page's result of a tool: MCP's CallToolResult. It has no resultType and no inputRequests: only the
// server says that a call is complete.
type Result struct {
	Content    []wire.Value // content blocks as MCP has them
	Structured wire.Value   // structuredContent, or absent
	IsError    bool
	Meta       []byte // the members of _meta that pass, or nil
	Continues  bool   // pagewire/continues: the next document adds its own content
	// Notes say to the page's developer what was mended or left out, and why.
	Notes []string

	// whole is the page's text, if it is this result unchanged and without _meta.
	whole wire.Value
}

// Texts returns a result in our own words.
func Texts(failed bool, texts ...string) *Result {
	r := &Result{IsError: failed}
	for _, text := range texts {
		r.Content = append(r.Content, textBlock(text))
	}
	return r
}

// ToolResult decodes the JSON text of a page's result. own reports whether the page has a URI. The error means that text
// is no JSON. Text that is no CallToolResult becomes a text block: the tool has run, and an agent that gets a failure
// calls again.
func ToolResult(text []byte, own func(uri string) bool) (*Result, error) {
	g := passage{text: text, own: own}
	r, err := g.toolResult()
	switch {
	case err != nil:
		v, err := wire.Parse(text, maxNesting)
		if err != nil {
			return nil, err
		}
		r = Texts(false, string(v))
		g.note("the result", "is nested deeper than MCP's clients read", "it is served as text")
	case g.odd:
		g.mend()
		if r, err = g.toolResult(); err != nil {
			return nil, err
		}
	}
	r.Notes = g.notes
	return r, nil
}

func (g *passage) toolResult() (r *Result, err error) {
	w := wire.NewWalk(g.text, nesting)
	r = &Result{}
	var content, meta, isError wire.Value
	known := 0 // blocks of a type that MCP has
	same, others := true, false
	if w.Kind() != wire.Object {
		return g.asText(w)
	}
	from := w.Pos()
	before := len(g.notes)
	err = w.Object(func(key wire.Value) (err error) {
		name, _ := key.Text()
		switch {
		case name == "content":
			same = same && content == nil
			at := w.Pos()
			r.Content, known = nil, 0
			g.media = Media{}
			if w.Kind() == wire.Array {
				err = w.Array(func() (err error) {
					known, same, err = g.addBlock(w, r, known, same)
					return err
				})
			} else {
				_, err = w.Value()
			}
			content = g.text[at:w.Pos()]
			return err
		case name == "structuredContent":
			same = same && r.Structured == nil
			r.Structured, err = w.Value()
		case name == "isError":
			same = same && isError == nil
			isError, err = w.Value()
		case name == "_meta":
			meta, err = w.Value()
			same = false
		default:
			same, others = false, true
			_, err = w.Value()
			g.leaveOut(name, "a tool's result")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	whole := wire.Value(g.text[from:w.Pos()])
	if err := w.End(); err != nil {
		return nil, err
	}
	g.odd = w.Odd() && !g.mended
	// An app's own object may have a member content, too, such as an editor's document.
	isResult := content.Kind() == wire.Array && (known > 0 || content.Empty()) ||
		content == nil && (r.Structured.Kind() == wire.Object || !others && len(whole) > len("{}"))
	if !isResult {
		g.notes = g.notes[:before]
		g.note("the result", "is no CallToolResult", "it is served as text")
		return Texts(isError.True(), string(whole)), nil
	}
	if r.IsError = isError.True() || isError.Is("true"); isError != nil && isError.Kind() != wire.Bool {
		same = false
		g.note("isError", "is no boolean", "write true or false")
	}
	if r.Structured.Kind() == wire.Null {
		r.Structured = nil
		same = false
	}
	meta, r.Continues = g.meta(meta, true)
	if len(meta) > 2 {
		r.Meta = meta[1 : len(meta)-1]
	}
	if same && content != nil {
		r.whole = whole
	}
	return r, nil
}

// addBlock takes the next block into a result.
func (g *passage) addBlock(w *wire.Walk, r *Result, known int, same bool) (int, bool, error) {
	if len(r.Content) == maxBlocks {
		_, err := w.Value()
		g.note("content", "has more than 10,000 blocks", "the others are left out")
		return known, false, err
	}
	block, isKnown, whole, err := g.block(w)
	r.Content = append(r.Content, block)
	if isKnown {
		known++
	}
	return known, same && whole, err
}

// asText is the result of a page that gives no object.
func (g *passage) asText(w *wire.Walk) (*Result, error) {
	v, err := w.Value()
	if err == nil {
		err = w.End()
	}
	if err != nil {
		return nil, err
	}
	g.odd = w.Odd() && !g.mended
	text, isText := v.Text()
	if !isText {
		text = string(v)
	}
	return Texts(false, text), nil
}

// JSON is the text of the result without its _meta, with further texts after its content; "" is skipped. Some programs
// show their model content, others structuredContent: without typed, the latter becomes text, unless content has it.
func (r *Result) JSON(typed bool, more ...string) []byte {
	more = slices.DeleteFunc(more, func(text string) bool { return text == "" })
	if r.whole != nil && len(more) == 0 && (typed || r.Structured == nil) {
		return r.whole
	}
	content := r.Content
	if !typed && r.Structured != nil && !r.says(r.Structured) {
		content = append(slices.Clip(content), textBlock(string(r.Structured)))
	}
	out := wire.Text(`{"content":[`)
	for i, block := range content {
		if i > 0 {
			out = out.Raw(",")
		}
		out = out.Bytes(block)
	}
	for _, text := range more {
		if out[len(out)-1] != '[' {
			out = out.Raw(",")
		}
		out = out.Bytes(textBlock(text))
	}
	out = out.Raw("]")
	if typed && r.Structured != nil {
		out = out.Raw(`,"structuredContent":`).Bytes(r.Structured)
	}
	if r.IsError {
		out = out.Raw(`,"isError":true`)
	}
	return out.Raw("}")
}

// says reports whether a text of the content has the same JSON as structured.
func (r *Result) says(structured wire.Value) bool {
	want := compact(structured)
	return slices.ContainsFunc(r.Content, func(block wire.Value) bool {
		text, _ := block.Get("text").Text()
		return bytes.Equal(compact([]byte(text)), want)
	})
}

// compact removes white space from JSON text. Any other text stays unchanged.
func compact(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}

func textBlock(text string) wire.Value {
	return wire.Value(wire.Text(`{"type":"text","text":`).Str(text).Raw("}"))
}
