package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// texts are JSON, or only look like it; they also seed the fuzzers.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `tru`, `nulll`, `0`, `-0`, `01`, `-`, `1.`, `1.5`, `1e`,
	`1e+`, `1E-7`, `.5`,
	`+1`, `9007199254740993`,
	`""`, `"a`, `"\"`, `"\u12"`, `"\uD800"`, `"\uD83D\uDE00"`, `"\ud83dx"`, `"\x"`, "\"\x01\"",
	"\"\xff\"", `"é"`,
	`"\/\b\f\n\r\t"`,
	`[]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `[[[]]]`, `[1, "a", {}, null]`,
	`{}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`,
	`{"\u0061":{"b":[1,{"c":"}"}]}}`,
	`{} {}`, "\t{ \"a\" : [ ] }\r\n",
	`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	`{"jsonrpc":"2.0","id":"\u0031","method":"resources\/read","params":{"uri":"https://x.test/a"}}`,
}

// Parse accepts the texts that encoding/json accepts, if they are valid UTF-8.
func TestParseAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		checkParse(t, []byte(text))
	}
}

func checkParse(t *testing.T, text []byte) {
	t.Helper()
	v, err := Parse(text, 100)
	want := json.Valid(text) && utf8.Valid(text)
	if deep := strings.Count(string(text), "[") + strings.Count(string(text), "{"); want &&
		deep > 100 {
		return
	}
	if (err == nil) != want {
		t.Fatalf("Parse(%q): %v, but encoding/json says %v", text, err, want)
	}
	if err != nil {
		return
	}
	var oracle any
	numbers := json.NewDecoder(bytes.NewReader(text))
	numbers.UseNumber() // valid JSON has numbers that no float64 can hold
	if err := numbers.Decode(&oracle); err != nil {
		t.Fatal(err)
	}
	compare(t, v, oracle)
}

// compare checks every accessor of v against the value that encoding/json decoded from the same
// text.
func compare(t *testing.T, v Value, oracle any) {
	t.Helper()
	switch want := oracle.(type) {
	case nil:
		if v.Kind() != Null {
			t.Fatalf("%s: kind %d, want null", v, v.Kind())
		}
	case bool:
		if v.Kind() != Bool || v.True() != want {
			t.Fatalf("%s: want %v", v, want)
		}
	case json.Number:
		if v.Kind() != Number || string(v) != string(want) {
			t.Fatalf("%s: want the number %s", v, want)
		}
		exact, err := want.Int64()
		if n, ok := v.Int(); ok && (err != nil || n != exact) {
			t.Fatalf("%s: Int is %d, want %d, %v", v, n, exact, err)
		}
	case string:
		if got, ok := v.Text(); !ok || got != want || !v.Is(want) || !v.Equal(v) {
			t.Fatalf("%s: Text is %q, want %q", v, got, want)
		}
		if again, err := Parse(Text(nil).Str(want), 0); err != nil || !again.Is(want) {
			t.Fatalf("Str(%q) does not read back: %s", want, again)
		}
	case []any:
		i := 0
		v.Elements(func(e Value) bool {
			compare(t, e, want[i])
			i++
			return true
		})
		if v.Kind() != Array || i != len(want) {
			t.Fatalf("%s: %d elements, want %d", v, i, len(want))
		}
	case map[string]any:
		for key, member := range want {
			compare(t, v.Get(key), member)
		}
		if v.Kind() != Object {
			t.Fatalf("%s: kind %d, want object", v, v.Kind())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(checkParse)
}

// FuzzDecode checks that encoding/json finds the same id and method in each message that Decode
// accepts.
func FuzzDecode(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(checkDecode)
}

func checkDecode(t *testing.T, text []byte) {
	m, failure := Decode(text, 100)
	PeekID(text) // these must not fail on anything
	LastID(text)
	if failure != nil {
		if failure.Code == ParseError && json.Valid(text) && utf8.Valid(text) &&
			bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) < 100 {
			t.Fatalf("Decode(%q): %v", text, failure)
		}
		return
	}
	var oracle map[string]json.RawMessage
	if err := json.Unmarshal(text, &oracle); err != nil {
		t.Fatalf("Decode took %q for a message: %v", text, err)
	}
	var version string
	if json.Unmarshal(oracle["jsonrpc"], &version); version != "2.0" {
		t.Fatalf("Decode took %q for JSON-RPC 2.0", text)
	}
	if id, there := oracle["id"]; there && !Value(id).Equal(m.ID) {
		t.Fatalf("Decode(%q): id %s, want %s", text, m.ID, id)
	}
	var method string
	if raw, there := oracle["method"]; there {
		if err := json.Unmarshal(raw, &method); err != nil || method != m.Method {
			t.Fatalf("Decode(%q): method %q, want %q", text, m.Method, method)
		}
	}
	if peeked := PeekID(text); len(m.ID) > 0 && !peeked.Equal(m.ID) {
		t.Fatalf("PeekID(%q): %s, want %s", text, peeked, m.ID)
	}
}

func TestDecodeAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		checkDecode(t, []byte(text))
	}
}

// Any string reads back as it was written; bytes that are not UTF-8 become U+FFFD.
func TestStr(t *testing.T) {
	for _, s := range []string{"", "a", `"\/`, "\x00\x1f\x7f", "\b\f\n\r\t", "é😀\u2028", "a\xffb",
		"\xed\xa0\x80"} {
		var got string
		text := Text(nil).Str(s)
		if err := json.Unmarshal(text, &got); err != nil ||
			got != strings.ToValidUTF8(s, "\uFFFD") && len(s) != 3 {
			t.Errorf("Str(%q) = %s, which reads back as %q, %v", s, text, got, err)
		}
	}
}

func TestInt(t *testing.T) {
	for _, n := range []int{0, 1, -1, 10, -32602, math.MaxInt, math.MinInt} {
		want, _ := json.Marshal(n)
		if got := Text(nil).Int(n); string(got) != string(want) {
			t.Errorf("Int(%d) = %s", n, got)
		}
	}
	for text, want := range map[string]bool{"0": true, "-5": true, "9007199254740991": true, "9007199254740992": false,
		"-9007199254740992": false, "99999999999999999999": false, "1.0": false, "1e3": false, `"1"`: false,
		"": false} {
		if _, ok := Value(text).Int(); ok != want {
			t.Errorf("Value(%s).Int() ok is %v", text, ok)
		}
	}
}

// Numbers are the same id by their text, strings by their content.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{`1`, `1`, true}, {`1`, `"1"`, false}, {`"a"`, `"\u0061"`, true}, {`"\u0061"`, `"a"`, true},
		{`"a"`, `"b"`, false}, {``, ``, true}, {``, `1`, false}} {
		if Value(c.a).Equal(Value(c.b)) != c.want {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.want)
		}
	}
}

func TestDepth(t *testing.T) {
	deep := strings.Repeat("[", 10) + strings.Repeat("]", 10)
	if _, err := Parse([]byte(deep), 10); err != nil {
		t.Errorf("ten deep of ten: %v", err)
	}
	if _, err := Parse([]byte(deep), 9); err == nil {
		t.Error("ten deep of nine was accepted")
	}
	// A million brackets must fail at the limit, not exhaust the stack.
	if _, err := Parse([]byte(strings.Repeat("[", 1_000_000)), 64); err == nil {
		t.Error("a million brackets were accepted")
	}
}

// PeekID finds an id in a message whose rest is cut off.
func TestPeekID(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"aaaa`: `7`,
		`{"id":"x"`:               `"x"`,
		`{"method":"x","id":1.5,`: ``,
		`{"params":{"id":9`:       ``,
		`{"i`:                     ``,
		`[`:                       ``,
	} {
		if got := PeekID([]byte(text)); string(got) != want {
			t.Errorf("PeekID(%s) = %s, want %s", text, got, want)
		}
	}
}

// LastID finds an id in the end of a message whose beginning is missing.
func TestLastID(t *testing.T) {
	for text, want := range map[string]string{
		`x"},"jsonrpc":"2.0","id":7}`:              `7`,
		`,"id" : "a\"id\":1"  } ` + "\r\n":         `"a\"id\":1"`,
		`1,"id":-3, "jsonrpc" : "2.0" }`:           `-3`,
		`a,","id":"id"}`:                           `"id"`,
		`a,\",","b":",","id":5}`:                   `5`,
		`{"a":1,"id":9}}`:                          ``,
		`[{},"id",{"b":1,"id":9}]}`:                ``,
		`,"\"id":7}`:                               ``,
		`,"id":7.5}`:                               ``,
		`"id":7}`:                                  ``,
		`,"id":7`:                                  ``,
		`,"id":[7]}`:                               ``,
		`,"id":null}`:                              ``,
		`,"id":7` + strings.Repeat(" ", 600) + `}`: ``,
		``:  ``,
		`}`: ``,
	} {
		if got := LastID([]byte(text)); string(got) != want {
			t.Errorf("LastID(%s) = %s, want %s", text, got, want)
		}
	}
}

var request = []byte(
	`{"jsonrpc":"2.0","id":1234,"method":"resources/read","params":{"uri":"https://example.com/app/resources/selection","_meta":{"progressToken":12}}}`)

func BenchmarkDecode(b *testing.B) {
	b.SetBytes(int64(len(request)))
	b.ReportAllocs()
	for b.Loop() {
		if m, err := Decode(request, 64); err != nil || m.Method != ResourcesRead {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	text := make(Text, 0, 256)
	for b.Loop() {
		text = text[:0].Result(Value("1234")).Raw(`{"contents":[{"uri":`).Str(
			"https://example.com/app/resources/selection").Raw(`,"text":""}]}}`)
	}
}

// A Walk reads what Parse reads, and in the same pass hands over the members and the elements.
func TestWalk(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,{"b":2}],"c":"d"}`:    `{"a":[1 {"b":2} ]"c":"d" }`,
		" [ [ ] , { } ] ":              `[[]{ } ]`,
		`{"a":{"a":{}},"\u0061":null}`: `{"a":{"a":{}} "\u0061":null }`,
		`5`:                            `5 `, `"x"`: `"x" `, `{"a":}`: "", `[1 2]`: "", `[]]`: "", ``: "", `{"a" 1}`: "", `[1,`: "", `{"a":1`: "",
	} {
		w := NewWalk([]byte(text), 3)
		got := ""
		depth := 0
		var value func() error
		value = func() error {
			switch kind := w.Kind(); {
			case kind == Object && depth == 0:
				got += "{"
				depth++
				err := w.Object(func(key Value) error {
					got += string(key) + ":"
					return value()
				})
				got += "}"
				return err
			case kind == Array && depth < 2:
				got += "["
				depth++
				err := w.Array(value)
				depth--
				got += "]"
				return err
			}
			v, err := w.Value()
			got += string(v) + " "
			return err
		}
		err := value()
		if err == nil {
			err = w.End()
		}
		if _, parsed := Parse([]byte(text), 3); (parsed == nil) != (err == nil) || err == nil && got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestOdd(t *testing.T) {
	for text, want := range map[string]bool{`{"a":"\u00e9\\ud83c\ncafé"}`: false, `"\ud83c"`: true, `"\uDF55"`: true,
		`{"\uD83C":1}`: true, "\"\u2028\"": true, "\"\u2029\"": true, "\"\u0085\"": true, "\"\u2027\u0086\"": false,
		`1e99`: false, `[1e+100]`: true, strings.Repeat("1", 301): true, strings.Repeat("1", 250) + "e99": true, `1.5`: false} {
		w := NewWalk([]byte(text), 5)
		if _, err := w.Value(); err != nil || w.Odd() != want {
			t.Errorf("%.50s: %v, %v", text, w.Odd(), err)
		}
	}
}

// No line separator is written into a string as it is.
func TestLineSeparators(t *testing.T) {
	got := string(Text(nil).Str("a\u2028b\u2029c\u0085d\u2027"))
	if got != `"a\u2028b\u2029c\u0085d`+"\u2027"+`"` {
		t.Error(got)
	}
}

func TestNext(t *testing.T) {
	for text, want := range map[string]string{"": "", "[": "[", "{": "{", `{"a":`: `{"a":`, `{"a":1`: `{"a":1,`, `["[` + `"`: `["[",`,
		`{"a":{}`: `{"a":{},`, `[[]`: `[[],`, "null": "null,"} {
		if got := string(Text(text).Next()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
