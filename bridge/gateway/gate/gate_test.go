package gate

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

const app = "https://app.example"

func own(uri string) bool { return strings.HasPrefix(uri, app+"/") }

// A vector is what a page answers, and what agents get: = for the same text. The official clients get each, too
// (TestClientsTakeAnswers).
type vector struct{ name, page, agent, note string }

func vectors(t testing.TB, file string) (list []vector) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "# ") {
		v := vector{}
		for line := range strings.Lines(part) {
			key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch {
			case ok && key == "page":
				v.page = value
			case ok && key == "agent":
				v.agent = value
			case ok && key == "note":
				v.note = value
			case v.page == "":
				v.name = strings.TrimSpace(line)
			}
		}
		if v.agent == "=" {
			v.agent = v.page
		}
		if v.name != "" {
			list = append(list, v)
		}
	}
	return list
}

// Results of tools, and what agents get of them. A result that needs no mending passes byte by byte.
func TestToolResult(t *testing.T) {
	list := vectors(t, "results.txt")
	if len(list) < 70 {
		t.Fatalf("there are %d vectors", len(list))
	}
	for _, v := range list {
		r, err := ToolResult([]byte(v.page), own)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
			continue
		}
		got := string(r.JSON(false))
		if !strings.Contains(fmt.Sprint(r.Faults), v.note) || got != v.agent || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s\nwant %s\nnotes %q", v.name, got, v.agent, r.Faults)
		}
		if again, err := ToolResult([]byte(got), own); err != nil || string(again.JSON(false)) != got || len(again.Faults) > 0 {
			t.Errorf("%s: what passes is mended again: %+v, %v", v.name, again, err)
		}
	}
}

// Contents of reads, and what agents get of them.
func TestContents(t *testing.T) {
	list := vectors(t, "contents.txt")
	if len(list) < 35 {
		t.Fatalf("there are %d vectors", len(list))
	}
	for _, v := range list {
		c, err := ReadContents([]byte(v.page), own)
		if err != nil || string(c.JSON)+c.Why != v.agent {
			t.Errorf("%s: %+v, %v\nwant %s", v.name, c, err, v.agent)
		}
		if c.Why != "" {
			continue
		}
		if again, _ := ReadContents(c.JSON, own); string(again.JSON) != string(c.JSON) || len(again.Faults) > 0 {
			t.Errorf("%s: what passes is mended again: %+v, first %+v", v.name, again, c)
		}
		var parts []Part
		for part := range c.JSON.Elements {
			parts = append(parts, Part{part.Get("uri"), part.Get("mimeType"), part.Get("text"), part.Get("blob")})
		}
		if got, want := fmt.Sprintf("%s", c.Parts), fmt.Sprintf("%s", parts); got != want {
			t.Errorf("%s: its parts are %s, want %s", v.name, got, want)
		}
	}
}

func TestWhatIsNoJSON(t *testing.T) {
	for _, none := range []string{"", " ", "x", `{"content":[}`, `{"content":[]} x`, "{\"content\":\"\xff\"}", `["a" "b"]`,
		`{"content":[{"type":"text","text":"` + "\n" + `"}]}`, strings.Repeat("[", 2000), "\"\x01", `{"content":"`} {
		if _, err := ToolResult([]byte(none), own); err == nil {
			t.Errorf("%.40q is a result", none)
		}
		if _, err := ReadContents([]byte(none), own); err == nil {
			t.Errorf("%.40q is contents", none)
		}
	}
}

// The keys of _meta that pass are the page's own data. Those that MCP, its extensions or Pagewire define are not.
func TestMeta(t *testing.T) {
	for meta, want := range map[string]string{
		`{}`: "{}",
		`{"x":1,"com.example/y":{"a":[1]},"example.com/ui":2,"uix":3,"modelcontextprotocol":4}`: `{"x":1,"com.example/y":{"a":[1]},"example.com/ui":2,"uix":3}`,
		`{"x":1,"\u0078":2}`: `{"x":2}`,
		`{"PageWire/x":1,"IO.ModelContextProtocol/x":1,"a.mcp.b/x":1,"mcp/x":1,"mcp":1,"ui/y":1}`: "",
		`{"mcp.example/x":1}`:                                "",
		`{"progressToken":1,"progress\u0054oken":2}`:         "",
		`{"traceparent":1,"tracestate":1,"baggage":1}`:       "",
		`{"x":"` + strings.Repeat("y", maxMeta) + `","z":1}`: `{"z":1}`,
		`[]`: "", `null`: "", `5`: "",
	} {
		g := passage{}
		got := string(g.meta(wire.Value(meta)))
		if got != want || got != meta && got != "" && len(g.Faults) == 0 {
			t.Errorf("%.80s: %s, left out %q", meta, got, g.Faults)
		}
	}
	for _, key := range []string{"mcp/x", "modelcontextprotocol/x", "ui", "pagewire/x", "progressToken", "__proto__", "traceparent",
		"tracestate", "baggage"} {
		if label := resource.Reserved(key); notThePages[label] == "" {
			t.Errorf("%s is reserved for %q, without a reason", key, label)
		}
	}
	many := wire.Text("{")
	for i := range 10_000 {
		many = many.Str("k" + wire.Itoa(i)).Raw(":1,")
	}
	g := passage{}
	if n := strings.Count(string(g.meta(wire.Value(many.Raw(`"z":1}`)))), ":"); n != maxKeys {
		t.Errorf("%d keys pass", n)
	}
}

// What a page answers has 16 MB at most. Its parts are bounded, whatever they are.
func TestAnswersAreBounded(t *testing.T) {
	const size = 16 << 20
	long := strings.Repeat("x", size)
	r, err := ToolResult([]byte(`{"content":[{"type":"text","text":"`+long+`"}],"inputRequests":{}}`), own)
	if err != nil || len(r.Content) != 1 || len(r.JSON(false)) != size+len(`{"content":[{"type":"text","text":""}]}`) || len(r.Faults) != 1 {
		t.Errorf("a bad member at the end: %v, %q", err, r.Faults)
	}
	r, err = ToolResult([]byte(`{"content":[{"type":"text","text":"`+long+`\ud83c"}]}`), own)
	if err != nil || !strings.HasSuffix(string(r.JSON(false)), "x\uFFFD\"}]}") {
		t.Errorf("half a character at the end: %v, %q", err, r.Faults)
	}
	for name, text := range map[string]string{
		"blocks":  `{"content":[{"type":"text","text":""}` + strings.Repeat(`,0`, size/2) + `]}`,
		"content": `{"content":[{"type":"text","text":""}]` + strings.Repeat(`,"content":[]`, size/16) + `,"content":[{"type":"text","text":""}]}`,
		"members": `{"content":[]` + strings.Repeat(`,"a":0`, size/8) + `}`,
		"images":  `{"content":[` + strings.Repeat(`{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAAN"},`, 1000) + `{"type":"text","text":""}]}`,
	} {
		r, err := ToolResult([]byte(text), own)
		if err != nil || len(r.Content) > maxBlocks || len(r.Faults) > maxFaults ||
			strings.Count(string(r.JSON(false)), `"image"`) > 20 {
			t.Errorf("%s: %d blocks, %d notes, %v", name, len(r.Content), len(r.Faults), err)
		}
	}
	if c, err := ReadContents([]byte(`[`+strings.Repeat(`{"uri":"`+app+`/a","text":""},`, maxBlocks)+`{"uri":"`+app+`/a","text":""}]`), own); err != nil || c.Why != NoContents {
		t.Errorf("more contents than pass: %s, %v", c.Why, err)
	}
}

// Base64 is checked in parts, and as a whole.
func TestBase64(t *testing.T) {
	for n := 4 << 10; n >= 0; n -= 1 << 10 {
		before := strings.Repeat("AAAA", n/4)
		for end, want := range map[string]bool{"": true, "AA==": true, "AAA=": true, "ab+/": true, "AA==AAAA": false, "=": false,
			"AAAAA": false, "A===": false, "AA-_": false, "AA\\n": false, "AA=A": false, "AAA==": false, "é==": false} {
			if got := isBase64([]byte(before + end)); got != want {
				t.Errorf("%q after %d: %t", end, n, got)
			}
			if n > 0 && end != "" && isBase64([]byte(before[4:]+"AA=="+end)) {
				t.Errorf("%q after padding at %d is taken", end, n)
			}
		}
	}
}

// The parts of a result that a tool's schema needs stay, and texts of ours come last.
func TestResultJSON(t *testing.T) {
	const text = `{"structuredContent":{"n":1},"content":[{"type":"text","text":"a"}],"_meta":{"k":{"x":1}},"isError":true}`
	r, err := ToolResult([]byte(text), own)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		string(r.Meta):                        `"k":{"x":1}`,
		string(r.JSON(true)):                  `{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1},"isError":true}`,
		string(r.JSON(true, "", "b")):         `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"n":1},"isError":true}`,
		string(r.JSON(false, "b")):            `{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"n\":1}"},{"type":"text","text":"b"}],"isError":true}`,
		string(Texts(false).JSON(false, "x")): `{"content":[{"type":"text","text":"x"}]}`,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if r, _ := ToolResult([]byte(`{"_meta":{"pagewire/continues":true}}`), own); !r.Continues || len(r.Faults)+len(r.Meta) > 0 {
		t.Errorf("%+v", r)
	}
}

func FuzzToolResult(f *testing.F) {
	for _, file := range []string{"results.txt", "contents.txt"} {
		for _, v := range vectors(f, file) {
			f.Add([]byte(v.page))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ToolResult(text, own); err == nil {
			got := r.JSON(false)
			again, err := ToolResult(got, own)
			if err != nil || string(again.JSON(false)) != string(got) {
				t.Errorf("%s: %v", got, err)
			}
			var known struct {
				Content []struct{ Type string } `json:"content"`
				IsError bool                    `json:"isError"`
			}
			if d := json.NewDecoder(strings.NewReader(string(got))); d.Decode(&known) != nil || known.Content == nil {
				t.Errorf("%s is no result", got)
			}
		}
		if c, err := ReadContents(text, own); err == nil && c.Why == "" {
			if again, err := ReadContents(c.JSON, own); err != nil || string(again.JSON) != string(c.JSON) {
				t.Errorf("%s: %v", c.JSON, err)
			}
		}
	})
}
