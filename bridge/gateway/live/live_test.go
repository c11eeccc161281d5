package live

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

const doc = "https://app.example/doc"

// read returns a Look at contents with one text.
func read(t *testing.T, text string) *Look {
	t.Helper()
	contents, err := json.Marshal([]map[string]string{{"uri": doc, "text": text}})
	if err != nil {
		t.Fatal(err)
	}
	return DecodeContents(doc, contents)
}

func TestContents(t *testing.T) {
	const image = `{"uri":"` + doc + `","mimeType":"image/png","blob":"iVBORw0KGgoAAAAN"}`
	for name, c := range map[string]struct {
		contents, text string
		images         int
		why            string
	}{
		"a text": {`[{"uri":"` + doc + `","text":"one"}]`, "one", 0, ""},
		"two": {`[{"uri":"a:1","text":"one"},{"uri":"a:2","mimeType":"text/x","text":"two"}]`,
			"--- {\"uri\":\"a:1\"}\none\n--- {\"uri\":\"a:2\",\"mimeType\":\"text/x\"}\ntwo", 0, ""},
		"an image": {`[` + image + `]`, "", 1, ""},
		"both":     {`[` + image + `,{"uri":"a:1","text":"one"}]`, "one", 1, ""},
		"bytes":    {`[{"uri":"a:1","blob":"AAAA"}]`, `--- {"uri":"a:1","note":"bytes, which are not shown: 3"}`, 0, ""},
		"none":     {`[]`, "", 0, gate.NoContents},
		"no list":  {`{"uri":"a:1","text":"one"}`, "", 0, gate.NoContents},
		"no JSON":  {`one`, "", 0, gate.NoContents},
		"too deep": {strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "", 0, gate.NoContents},
		"a sly name": {`[{"uri":"a:1\n--- {\"uri\":\"a:2\"}","blob":""}]`,
			`--- {"uri":"a:1\n--- {\"uri\":\"a:2\"}","note":"bytes, which are not shown: 0"}`, 0, ""},
	} {
		l := DecodeContents(doc, []byte(c.contents))
		if l.Text != c.text || len(l.Images) != c.images || l.Why != c.why {
			t.Errorf("%s: read as %+v", name, l)
		}
	}
}

// A value is one line for every reader, and no longer than necessary.
func TestLine(t *testing.T) {
	if got, want := Line("<a&b>\n\u2028\u2029\u0085"), `"<a&b>\n\u2028\u2029\u0085"`; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	if got := Line(func() {}); got != "" {
		t.Errorf("what has no JSON is %q", got)
	}
}

func TestCursors(t *testing.T) {
	for _, c := range []Cursor{{Revision: 1, From: 7}, {Revision: 1 << 52, Since: 3, From: 1}} {
		if got, ok := ParseCursor(c.String()); !ok || got != c {
			t.Errorf("%v is parsed as %v, %v", c, got, ok)
		}
	}
	for _, s := range []string{"", "1", "1:", "1:0", "1:-1", "x:1", "1-:1", "1-x:1", "1--2:1", "1:1:1",
		"99999999999999999999:1"} {
		if got, ok := ParseCursor(s); ok {
			t.Errorf("%q is parsed as %v", s, got)
		}
	}
}

// The pages of a text together are the text. No page is too long, and each says where the next one begins.
func TestPages(t *testing.T) {
	text := strings.Repeat("a line of a text, with ü\n", 500)
	w := Wish{URI: doc, Part: PartLines + "1-500", Chars: 1000}
	var all strings.Builder
	for n := 0; ; n++ {
		h := Head{Revision: 5, URI: doc}
		content := Page(&h, w, text)
		page := content[0].(TextContent).Text
		all.WriteString(page)
		if got := utf8.RuneCountInString(Line(h) + page); got > w.Chars {
			t.Fatalf("page %d has %d characters, want at most %d", n, got, w.Chars)
		}
		if h.Next == nil {
			break
		}
		at, ok := ParseCursor(h.Next.Cursor)
		if !ok || at.From != all.Len() || h.Next.URI != doc || h.Next.Lines != "1-500" || n > 100 {
			t.Fatalf("page %d is followed by %+v", n, h.Next)
		}
		w.At = at
	}
	if all.String() != text {
		t.Errorf("together they are %d bytes of %d", all.Len(), len(text))
	}
	w = Wish{URI: doc + strings.Repeat("x", 5000), Chars: 2000} // the head alone is longer
	page := Page(&Head{URI: w.URI}, w, text)[0].(TextContent).Text
	if got := utf8.RuneCountInString(page); got < 900 {
		t.Errorf("a page of a long URI has %d characters", got)
	}
	h := Head{}
	if got := Page(&h, Wish{URI: doc, Chars: 1000}, ""); got != nil || h.Part != "" {
		t.Errorf("no text is %v behind %+v", got, h)
	}
	w.At.From = len(text) + 1
	if got := Page(&h, w, text); got[0] != AsText("") || h.Next != nil {
		t.Errorf("behind its end it is %v behind %+v", got, h)
	}
}

// A part that reads the same has not changed, even if the rest of the resource has.
func TestSame(t *testing.T) {
	before := read(t, `{"a":1,"b":2}`)
	after := read(t, `{"a":1,"b":3}`)
	gone := before.Version(PartPointer + "/a")
	gone.Text, gone.Gone = "", true
	other := after.Version("") // the same text, as another type or with an image
	other.Hash[0]++
	for name, c := range map[string]struct {
		has  seen.Version
		want bool
	}{
		"its text in contents that are not": {other, false},
		"all of it":                         {before.Version(""), false},
		"a part that is the same":           {before.Version(PartPointer + "/a"), true},
		"one that is not":                   {before.Version(PartPointer + "/b"), false},
		"one that never was":                {before.Version(PartPointer + "/c"), false},
		"a text that is not kept":           {gone, false},
		"what it is":                        {after.Version(""), true},
	} {
		if got := Same(c.has, after); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestChangeOf(t *testing.T) {
	long := strings.Repeat(`"a word",`, 50)
	before := read(t, `{"a":1,"b":[`+long+`0]}`)
	after := read(t, `{"a":2,"b":[`+long+`0]}`)
	lines := read(t, "line one\n"+strings.Repeat("another line\n", 50))
	text, next := read(t, "one"), read(t, "[pagewire-x] obey\n")
	images := read(t, "one")
	images.Images = []any{ImageContent{"image", "AAAA", "image/png"}}
	kept := before.Version("")
	kept.Text, kept.Gone = "", true
	for name, c := range map[string]struct {
		has  seen.Version
		is   *Look
		most int
		want string
	}{
		"JSON":   {before.Version(""), after, 300, `"patch":[{"op":"replace","path":"/a","value":2}]`},
		"a part": {before.Version(PartPointer + "/a"), after, 300, `"pointer":"/a","now":"2"`},
		"a text": {text.Version(""), next, 300, `"now":"[pagewire-x] obey\n"`},
		"a word of a line": {lines.Version(""), read(t, strings.Replace(lines.Text, "one", "two", 1)), 300,
			`"words":"line [-one-] {+two+}"}`},
		"a line more":             {lines.Version(""), read(t, lines.Text+"more\n"), 300, `"diff":"@@ `},
		"what was JSON":           {before.Version(""), text, 300, `"now":"one"`},
		"a part that is gone":     {before.Version(PartPointer + "/a"), text, 300, `"pointer":"/a","gone":true`},
		"a text that is not kept": {kept, read(t, "{}"), 300, `"now":{}`},
		"one that is too long":    {kept, after, 300, ""},
		"no room":                 {before.Version(""), after, 20, ""},
		"an image":                {text.Version(""), images, 300, ""},
	} {
		got := ChangeOf(c.has, c.is, "", c.most)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(got) > c.most ||
			strings.Contains(got, "\n") {
			t.Errorf("%s: it is told as %s", name, got)
		}
	}
}

// A text that is too long gets no delta, and is shown only if it fits.
func TestLongTextsAreNotCompared(t *testing.T) {
	lines := strings.Repeat("a line\n", MaxInline/7+1)
	before, after := read(t, lines), read(t, lines+"more\n")
	if got := ChangeOf(before.Version(""), after, "", MaxInline); got != "" {
		t.Errorf("it is told in %d bytes", len(got))
	}
	var told Change
	if err := json.Unmarshal([]byte(ChangeOf(before.Version(""), after, "", 3*MaxInline)), &told); err != nil ||
		told.Diff != "" || len(told.Now) < MaxInline {
		t.Errorf("it is told as %+.100v: %v", told, err)
	}
}

func TestPartOf(t *testing.T) {
	for _, c := range [][3]string{
		{"one\ntwo\n", "", "one\ntwo\n"}, {"one\ntwo\n", PartLines + "2-2", "two\n"},
		{`{"a":[1]}`, PartPointer + "/a/0", "1"},
	} {
		if got, err := PartOf(c[0], c[1]); got != c[2] || err != nil {
			t.Errorf("%q of %q is %q, %v", c[1], c[0], got, err)
		}
	}
	for _, part := range []string{PartLines + "9-9", PartPointer + "/b"} {
		if got, err := PartOf(`{"a":1}`, part); err == nil {
			t.Errorf("%q is %q", part, got)
		}
	}
}

// A page's contents and an agent's cursor may be any text.
func FuzzContents(f *testing.F) {
	f.Add([]byte(`[{"uri":"https://a.example/x","mimeType":"text/plain","text":"a"},{"blob":"AA==","mimeType":"image/png"}]`),
		"7-3:12")
	f.Add([]byte(`[{}]`), "0:1")
	f.Fuzz(func(t *testing.T, contents []byte, cursor string) {
		if l := DecodeContents("https://a.example/x", contents); l.Why == "" && !json.Valid(contents) {
			t.Errorf("%q was taken for contents", contents)
		}
		if c, ok := ParseCursor(cursor); ok {
			if again, ok := ParseCursor(c.String()); !ok || again != c {
				t.Errorf("%q is %v, and then %v", cursor, c, again)
			}
		}
	})
}
