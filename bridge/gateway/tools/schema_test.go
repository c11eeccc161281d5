package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/wire"
)

func TestOutput(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	output := func(schema string) (*Output, error) {
		var v any
		_ = json.Unmarshal([]byte(schema), &v)
		return NewOutput(v)
	}
	for _, bad := range []string{`{}`, `true`, `{"type":"array"}`, `{"type":["object"]}`, `{"type":"object","pattern":"("}`,
		`{"type":"object","properties":5}`, `{"type":"object","$ref":"#"}`,
		`{"type":"object","items":{"$dynamicRef":"#x"}}`} {
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
