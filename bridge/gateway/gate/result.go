package gate

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// A Result is a page's result of a tool: MCP's CallToolResult. It has no resultType and no
// inputRequests: only the server says that a call is complete.
type Result struct {
	Content    []wire.Value // content blocks as MCP has them
	Structured wire.Value   // structuredContent, or absent
	IsError    bool
	Meta       []byte // the members of _meta that pass, or nil
	Continues  bool   // pagewire/continues: the next document adds its own content
	Faults     Faults // what was mended or left out

	// whole is the page's text, if it is this result unchanged and without _meta.
	whole wire.Value
}

// Texts returns a result of texts.
func Texts(failed bool, texts ...string) *Result {
	r := &Result{IsError: failed}
	for _, text := range texts {
		r.Content = append(r.Content, textBlock(text))
	}
	return r
}

// ToolResult decodes the JSON text of a page's result. own reports whether the page has a URI. The
// error means that text is no JSON. Text that is no CallToolResult becomes a text block: the tool
// has run, and an agent that gets a failure calls again.
func ToolResult(text []byte, own func(uri string) bool) (*Result, error) {
	g := passage{text: text, own: own}
	r, err := g.toolResult()
	if err == nil && g.mend() {
		r, err = g.toolResult()
	}
	if err != nil { // perhaps it is nested too deep
		v, err := wire.Parse(text, maxNesting)
		if err != nil {
			return nil, err
		}
		g.Faults = Faults{{"content",
			"a result that is nested deeper than 64 levels is served as text"}}
		r = Texts(false, string(v))
	}
	r.Faults = g.Faults
	return r, nil
}

func (g *passage) toolResult() (*Result, error) {
	w := wire.NewWalk(g.text, nesting)
	if w.Kind() != wire.Object {
		v, err := w.Value()
		return Texts(false, words(v)), g.end(w, err)
	}
	r := &Result{}
	var content, structured, isError, meta wire.Value
	known, same, others := 0, true, false
	faults := len(g.Faults)
	at := w.Pos()
	err := w.Object(func(key wire.Value) (err error) {
		name, _ := key.Text()
		from := w.Pos()
		to := &content
		switch name {
		case "content":
		case "structuredContent":
			to = &structured
		case "isError":
			to = &isError
		case "_meta":
			to = &meta
		default:
			same, others = false, true
			g.unknown(name)
			_, err := w.Value()
			return err
		}
		if same = same && *to == nil; to == &content && w.Kind() == wire.Array {
			known, g.media = 0, Media{}
			whole := false
			r.Content, whole, err = g.list(w, func() (wire.Value, error) {
				block, ours, err := g.block(w)
				if ours {
					known++
				}
				return block, err
			})
			same = same && whole
		} else {
			_, err = w.Value()
		}
		*to = w.Since(from)
		return err
	})
	whole := w.Since(at)
	err = g.end(w, err)
	// An app's own object may have a member content, too, such as an editor's document.
	isResult := content.Kind() == wire.Array && (known > 0 || content.Empty()) ||
		content == nil && (structured.Kind() == wire.Object || !others && len(whole) > len("{}"))
	if err != nil {
		return nil, err
	}
	if !isResult {
		g.Faults = g.Faults[:faults]
		g.add("content", "a result that is no CallToolResult is served as text")
		return Texts(isError.True(), string(whole)), nil
	}
	r.IsError = isError.True() || isError.Is("true")
	if isError != nil && isError.Kind() != wire.Bool {
		same = false
		g.leaveOut("isError", "it is no boolean")
	}
	if structured.Kind() > wire.Null {
		r.Structured = structured
	}
	r.Continues = meta.Get(continues).True()
	if passes := g.meta(meta); passes != nil {
		r.Meta = passes[1 : len(passes)-1]
	} else if meta != nil && meta.Kind() != wire.Object {
		g.leaveOut("_meta", "it is no object")
	}
	if same && content != nil && meta == nil && string(structured) == string(r.Structured) {
		r.whole = whole
	}
	return r, nil
}

// JSON is the text of the result without its _meta, with further texts after its content; "" is
// skipped. Some programs show their model content, others structuredContent: without typed, the
// latter becomes text, unless content has it.
func (r *Result) JSON(typed bool, more ...string) []byte {
	more = slices.DeleteFunc(more, func(text string) bool { return text == "" })
	if r.whole != nil && len(more) == 0 && (typed || r.Structured == nil) {
		return r.whole
	}
	content := slices.Clip(r.Content)
	if !typed && r.Structured != nil && !r.says(r.Structured) {
		content = append(content, textBlock(string(r.Structured)))
	}
	for _, text := range more {
		content = append(content, textBlock(text))
	}
	o := object{t: wire.Text("{")}
	o.key("content").array(content)
	if typed && r.Structured != nil {
		o.key("structuredContent").Bytes(r.Structured)
	}
	if r.IsError {
		o.key("isError").Raw("true")
	}
	return o.Raw("}").t
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
