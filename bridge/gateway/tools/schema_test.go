//go:build !js

package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/wire"
)

func inlined(t *testing.T, schema string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(schema), &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(Inlined(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInlined(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: `{"type":"object"}`,
		`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`: `{"properties":{"a":{"type":"string"}}}`,
		// What is beside a reference explains it, or is demanded too.
		`{"items":{"$ref":"#/definitions/a","title":"A"},"definitions":{"a":{"type":"string","title":"B"}}}`:                                  `{"items":{"title":"A","type":"string"}}`,
		`{"items":{"$ref":"#/$defs/a","type":"object"},"$defs":{"a":{"type":["object","null"],"minItems":1}}}`:                                `{"items":{"allOf":[{"minItems":1,"type":["object","null"]}],"type":"object"}}`,
		`{"properties":{"$ref":{"type":"string"},"a/b":{"type":"null"},"c":{"$ref":"#/properties/a~1b"},"d":{"$ref":"#/properties/a%7E1b"}}}`: `{"properties":{"$ref":{"type":"string"},"a/b":{"type":"null"},"c":{"type":"null"},"d":{"type":"null"}}}`,
		`{"enum":[{"$ref":"#"}],"anyOf":[{"$ref":"#/anyOf/1"},{"const":{"$id":1}}]}`:                                                          `{"anyOf":[{"const":{"$id":1}},{"const":{"$id":1}}],"enum":[{"$ref":"#"}]}`,
		// What cannot be written out admits everything.
		`{"items":[{"$ref":"https://a.test/x"},{"$ref":"#name"},{"$ref":"#/none"},{"$ref":"#/items/9"},{"$ref":"#/%zz"},{"$ref":5},{"$dynamicRef":"#x"}]}`: `{"items":[{},{},{},{},{},{},{}]}`,
		`{"$ref":"#"}`: `{}`,
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`: `{"properties":{"next":{"properties":{"next":{"properties":{"next":{}},"type":"object"}},"type":"object"}},"type":"object"}`,
		`true`: `true`, `["$ref"]`: `["$ref"]`,
	} {
		if got := inlined(t, schema); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// References that lead to each other do not make a long schema of a short one.
func TestInlinedIsBounded(t *testing.T) {
	defs := `"z":{"type":"string","description":"` + strings.Repeat("x", 1000) + `"}`
	for c := 'y'; c >= 'a'; c-- {
		ref := `{"$ref":"#/$defs/` + string(c+1) + `"}`
		defs += `,"` + string(c) + `":{"anyOf":[` + strings.Repeat(ref+",", 9) + ref + `]}`
	}
	for _, first := range []string{"a", "t", "w"} { // of 10 to the power of 25, 6 and 3 leaves
		got := inlined(t, `{"type":"object","items":{"$ref":"#/$defs/`+first+`"},"$defs":{`+defs+`}}`)
		if len(got) > 2*maxInlined || strings.Contains(got, "$ref") {
			t.Errorf("from %s it is %d bytes", first, len(got))
		}
	}
}

func TestOutput(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	output := func(schema string) (*Output, error) {
		var v any
		_ = json.Unmarshal([]byte(schema), &v)
		return NewOutput(v)
	}
	for _, bad := range []string{`{}`, `true`, `{"type":"array"}`, `{"type":["object"]}`, `{"type":"object","pattern":"("}`,
		`{"type":"object","properties":5}`} {
		if _, err := output(bad); err == nil {
			t.Errorf("%s is an output schema", bad)
		}
	}
	o, err := output(schema)
	if err != nil {
		t.Fatal(err)
	}
	for result, fits := range map[string]bool{
		`{"structuredContent":{"n":1}}`: true, `{"structuredContent":{"n":1,"m":2}}`: true,
		`{"isError":true}`: true, `{"isError":true,"structuredContent":{"n":"1"}}`: false,
		`{"structuredContent":{"n":1.5}}`: false, `{"structuredContent":{}}`: false, `{"structuredContent":[1]}`: false,
		`{"structuredContent":null}`: false, `{"content":[]}`: false,
		`{"structuredContent":{"n":1,"m":"` + strings.Repeat("x", maxChecked) + `"}}`: false,
	} {
		if err := o.Check(wire.Value(result)); (err == nil) != fits {
			t.Errorf("%.60s: %v", result, err)
		}
	}
}
