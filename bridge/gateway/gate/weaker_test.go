package gate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// A grower makes schemas and values at random.
type grower struct {
	*rand.Rand
	apart bool // without references, which might lead to themselves without an end
}

func (g grower) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g grower) name() string { return g.pick("a", "b", "c[d]", "c{d}", "e f") }

// schema is a subschema, without the values that agents' schemas refuse on purpose: "" and __proto__.
func (g grower) schema(depth int) string {
	if depth == 0 && g.apart {
		return g.pick(`{}`, `true`, `{"type":"string"}`, `{"type":"integer"}`)
	}
	if depth == 0 {
		return g.pick(`{}`, `true`, `{"type":"string"}`, `{"type":"integer"}`, `{"$ref":"#/$defs/x"}`, `{"$ref":"#"}`)
	}
	sub := func() string { return g.schema(depth - 1) }
	members := map[string]string{}
	for range 1 + g.IntN(3) {
		switch g.IntN(17) {
		case 0:
			members["type"] = g.pick(`"object"`, `"array"`, `"string"`, `["string","null"]`, `["array","object"]`)
		case 1:
			members["enum"] = g.pick(`["x",1,null]`, `[{"a":1},[1],"x"]`)
		case 2:
			members["const"] = g.pick(`"x"`, `1`, `{"a":1}`)
		case 3, 4, 5:
			members["properties"] = fmt.Sprintf(`{%q:%s,%q:%s}`, "a", sub(), g.name(), sub())
		case 6:
			members["required"] = fmt.Sprintf(`[%q]`, g.name())
		case 7:
			members["additionalProperties"] = g.pick(`false`, `true`, sub())
		case 8:
			members["items"] = g.pick(`false`, sub())
		case 9:
			members["prefixItems"] = `[` + sub() + `]`
		case 10:
			members["patternProperties"] = `{"^[a-c]":` + sub() + `}`
		case 11:
			members[g.pick("anyOf", "oneOf", "allOf")] = `[` + sub() + `,` + sub() + `]`
		case 12:
			members["not"] = sub()
		case 13:
			members["if"], members[g.pick("then", "else")] = sub(), sub()
		case 14:
			if g.apart {
				continue
			}
			members["$ref"] = g.pick(`"#/$defs/x"`, `"#/$defs/y"`)
		case 15:
			members[g.pick("minimum", "minLength", "minItems", "minProperties")] = "1"
		case 16:
			members["dependentRequired"] = fmt.Sprintf(`{%q:[%q]}`, g.name(), g.name())
		}
	}
	var list []string
	for key, value := range members {
		list = append(list, fmt.Sprintf("%q:%s", key, value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (g grower) value(depth int) any {
	switch n := g.IntN(8); {
	case depth == 0 || n < 3:
		return []any{"x", "yy", 1.0, 5.0, nil, true}[g.IntN(6)]
	case n == 3:
		return []any{g.value(depth - 1), g.value(depth - 1)}
	default:
		return map[string]any{g.name(): g.value(depth - 1), g.name(): g.value(depth - 1)}
	}
}

// What a page's schema admits, the agents' schema admits, by the agents' names and by Output's check.
func TestSchemasAdmitWhatThePagesDo(t *testing.T) {
	admitted, checked := 0, 0
	for seed := range uint64(500) {
		g := grower{rand.New(rand.NewPCG(seed, 48)), false}
		defs := grower{g.Rand, true}
		text := `{"type":"object","properties":{"a":` + g.schema(3) + `,"c[d]":` + g.schema(2) + `},"$defs":{"x":` + defs.schema(2) +
			`,"y":` + defs.schema(1) + `}}`
		of := func(text string) *jsonschema.Resolved {
			var s jsonschema.Schema
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				t.Fatal(text, err)
			}
			resolved, err := s.Resolve(nil)
			if err != nil {
				t.Fatal(text, err)
			}
			return resolved
		}
		tool := toolOf(t, `,"inputSchema":`+text+`,"outputSchema":`+text)
		if tool.Left() {
			t.Fatalf("%s is left out: %s", text, tool.Told())
		}
		page, agent := of(text), of(string(tool.Input))
		for range 20 {
			v := map[string]any{"a": g.value(3), "c[d]": g.value(2)}
			if !admits(page, v) {
				continue
			}
			admitted++
			if err := agent.Validate(tool.renamed(v)); err != nil {
				t.Fatalf("seed %d:\n%s\nbecomes\n%s\nwhich refuses %v: %v", seed, text, tool.Input, v, err)
			}
			if tool.Output == nil {
				continue
			}
			checked++
			value, _ := json.Marshal(v)
			if err := checks(t, tool.Output, `{"structuredContent":`+string(value)+`}`); err != nil {
				t.Fatalf("seed %d:\n%s\nbecomes\n%s\nwhich refuses the result %s: %v", seed, text, tool.Output.text, value, err)
			}
			if err := of(string(tool.Output.text)).Validate(v); err != nil {
				t.Fatalf("seed %d: the check and the schema differ: %v", seed, err)
			}
		}
	}
	if admitted < 1000 || checked < 1000 {
		t.Errorf("only %d values are admitted, and %d checked", admitted, checked)
	}
}

// admits is false, too, for a schema that leads to itself without an end.
func admits(s *jsonschema.Resolved, v any) bool { return s.Validate(v) == nil }

// renamed is a value by the names for agents.
func (t *Tool) renamed(v map[string]any) any {
	var walk func(v any, path string) any
	walk = func(v any, path string) any {
		switch v := v.(type) {
		case []any:
			all := make([]any, len(v))
			for i := range v {
				all[i] = walk(v[i], path+separator+"items")
			}
			return all
		case map[string]any:
			all := map[string]any{}
			for page, value := range v {
				name, at := page, path+separator+"properties"+separator
				for key, of := range t.Names {
					if of == page && key != at+page && strings.HasPrefix(key, at) && !strings.Contains(key[len(at):], separator) {
						name = key[len(at):]
					}
				}
				all[name] = walk(value, at+page)
			}
			return all
		}
		return v
	}
	return walk(v, "")
}
