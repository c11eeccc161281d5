package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/wire"
)

func toolOf(t testing.TB, members string) *Tool {
	t.Helper()
	text := `{"name":"do","description":"Does it."` + members + `}`
	v, err := wire.Parse([]byte(text), 64)
	if err != nil {
		t.Fatal(text, err)
	}
	return NewTool("do", v)
}

// A schema is written from the keywords that agents get. "" is a tool that is left out.
func TestInputSchema(t *testing.T) {
	const object = `{"type":"object"}`
	q := func(schema string) string { return `{"type":"object","properties":{"q":` + schema + `}}` }
	for given, c := range map[string]struct{ want, told string }{
		// Honest schemas pass as they are.
		object: {object, ""},
		`{"type":"object","properties":{"q":{"type":"string","description":"d","title":"Q","default":"a","examples":["a"]}},"required":["q"]}`:   {"", ""},
		q(`{"type":["string","null"],"minLength":1,"maxLength":9,"pattern":"^[a-z]{1,9}$","format":"email"}`):                                    {"", ""},
		q(`{"type":"array","minItems":1,"uniqueItems":true,"items":{"type":"integer","minimum":0,"maximum":9007199254740993,"multipleOf":0.5}}`): {"", ""},
		q(`{"enum":[1,"a",null,{"b":[true]}]}`): {"", ""}, q(`{"const":1}`): {"", ""},
		q(`{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{}}}]}`):                                    {"", ""},
		`{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]},"additionalProperties":false}`: {"", ""},
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"x","type":"object"}`:                        {object, ""},
		`null`: {object, ""}, `{}`: {object, ""},
		// Shapes that clients refuse at the list.
		q(`true`): {q(`{}`), ""},
		`{"type":"object","properties":{"q":"string"}}`: {"-", "inputSchema.properties.q: it is no schema"},
		`{"type":"object","properties":{"q":false}}`:    {"-", "inputSchema.properties.q: it is no schema"},
		`{"type":"object","properties":true}`:           {"-", "inputSchema.properties: it is no object"},
		`{"type":"object","properties":["q"]}`:          {"-", "inputSchema.properties: it is no object"},
		`{"type":"object","required":true}`:             {"-", "inputSchema.required: it is no list of names"},
		`{"type":"object","required":["q",1]}`:          {"-", "inputSchema.required: it is no list of names"},
		`{"type":"object","required":null}`:             {"-", "inputSchema.required: it is no list of names"},
		q(`{"enum":[]}`):                                {"-", "inputSchema.properties.q.enum: it is no list of values"},
		q(`{"enum":"a"}`):                               {"-", "inputSchema.properties.q.enum: it is no list of values"},
		`{"type":"string"}`:                             {"-", `inputSchema.type: it is not "object"`},
		`{"type":["object"]}`:                           {"-", `inputSchema.type: it is not "object"`},
		`5`:                                             {"-", "inputSchema: it is no object"},
		`[]`:                                            {"-", "inputSchema: it is no object"},
		q(`{"type":"object","required":true}`):          {q(`{"type":"object"}`), "inputSchema.properties.q.required: left out"},
		q(`{"type":"object","properties":{"a":"b"}}`):   {q(`{"type":"object","properties":{"a":{}}}`), "properties.a: it says nothing"},
		q(`{"type":"file"}`):                            {q(`{}`), "q.type: partly left out"},
		q(`{"minimum":null}`):                           {q(`{}`), "q.minimum: left out, because it is no valid number"},
		q(`{"minimum":1e999}`):                          {q(`{}`), "q.minimum"},
		q(`{"maxLength":-1}`):                           {q(`{}`), "q.maxLength"},
		q(`{"maxLength":"5"}`):                          {q(`{}`), "q.maxLength"},
		q(`{"multipleOf":0}`):                           {q(`{}`), "q.multipleOf"},
		q(`{"format":"credit-card"}`):                   {q(`{}`), "q.format"},
		q(`{"pattern":"\\@"}`):                          {q(`{}`), "q.pattern"},
		q(`{"pattern":"(?<a>b)"}`):                      {q(`{}`), "q.pattern"},
		q(`{"pattern":"[z-a]"}`):                        {q(`{}`), "q.pattern"},
		q(`{"pattern":"a{3,1}"}`):                       {q(`{}`), "q.pattern"},
		q(`{"pattern":"("}`):                            {q(`{}`), "q.pattern"},
		// Models' APIs.
		q(`{"enum":["","a"]}`): {q(`{"enum":["a"]}`), `q.enum: "" is left out`}, q(`{"enum":[""]}`): {q(`{}`), `"" is left out`},
		q(`{"type":"array"}`):                {q(`{"type":"array","items":{}}`), ""},
		q(`{"type":["array","string"]}`):     {q(`{"type":["array","string"],"items":{}}`), ""},
		q(`{"items":[{"type":"string"}]}`):   {q(`{"items":{}}`), "q.prefixItems: left out"},
		`{"type":"object","required":["q"]}`: {`{"type":"object","properties":{"q":{}},"required":["q"]}`, ""},
		`{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"string"}},"required":["b"]},{"properties":{"a":{"type":"null"},"c":{}}}]}`: {
			`{"type":"object","properties":{"a":{},"b":{"type":"string"},"c":{}}}`, "inputSchema.anyOf: its properties are listed"},
		`{"allOf":[{"properties":{"b":{}},"required":["b"]}]}`: {`{"type":"object","properties":{"b":{}}}`, "inputSchema.allOf"},
		`{"type":"object","oneOf":5}`:                          {object, "inputSchema.oneOf"},
		q(`{"not":{}}`):                                        {q(`{}`), "q.not: left out"},
		q(`{"if":{},"then":{}}`):                               {q(`{}`), "q.then: left out"},
		// References.
		`{"type":"object","$defs":{"n":{"type":"number"}},"properties":{"q":{"$ref":"#/$defs/n","title":"T"}}}`:    {q(`{"type":"number","title":"T"}`), ""},
		`{"type":"object","definitions":{"a/b":{"type":"null"}},"properties":{"q":{"$ref":"#/definitions/a~1b"}}}`: {q(`{"type":"null"}`), ""},
		`{"type":"object","properties":{"q":{"$ref":"#"}}}`:                                                        {q(`{"type":"object","properties":{"q":{}}}`), "q.properties.q.$ref: left out, because it leads to itself"},
		`{"type":"object","properties":{"q":{"$ref":"https://x.example/s"}}}`:                                      {q(`{}`), "q.$ref: left out, because it leads to no part"},
		`{"type":"object","properties":{"q":{"$ref":5}}}`:                                                          {q(`{}`), "q.$ref"},
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"q":{}}}}}`:                               {q(`{}`), ""},
		`{"type":"object","properties":{"q":{"$ref":"#/x/1"}},"x":[0,{"type":"null"}]}`:                            {q(`{}`), "q.$ref: left out"},
		// What is left out makes nothing stricter.
		q(`{"prefixItems":[{"type":"string"}],"items":{"type":"null"}}`):                                                                                     {q(`{"items":{}}`), "q.prefixItems: left out"},
		q(`{"properties":{"a":{}},"patternProperties":{"b":{}},"additionalProperties":false}`):                                                               {q(`{"properties":{"a":{}}}`), "q.patternProperties: left out"},
		`{"type":"object","properties":{"q":{"$ref":"#/$defs/n","properties":{"a":{}}}},"$defs":{"n":{"properties":{"b":{}},"additionalProperties":false}}}`: {q(`{"properties":{"a":{}}}`), ""},
		`{"type":"object","properties":{"q":{}},"anyOf":[{"required":["q"]}],"additionalProperties":false}`:                                                  {`{"type":"object","properties":{"q":{}},"additionalProperties":false}`, "inputSchema.anyOf"},
		`{"type":"object","properties":{"q":{}},"anyOf":[{"properties":{"r":{}}}],"additionalProperties":false}`:                                             {`{"type":"object","properties":{"q":{},"r":{}}}`, "inputSchema.anyOf"},
		q(`{"oneOf":[{"minimum":null},{"type":"null"}]}`):                                                                                                    {q(`{"anyOf":[{},{"type":"null"}]}`), "q.anyOf.minimum: left out"},
		// Of two members with one name the last counts. No program gets __proto__.
		`{"type":"string","type":"object","properties":{"q":5,"q":{}}}`: {q(`{}`), ""},
		`{"type":"object","properties":{"__proto__":{"type":"string"},"q":{"default":{"__proto__":1,"a":2}}},"required":["__proto__"]}`: {
			q(`{"default":{"__proto__":1,"a":2}}`), "properties.__proto__: left out"},
		q(`{"default":"\ud83d"}`):                                             {q(`{"default":"` + "\uFFFD" + `"}`), ""},
		q("{\"default\":\"a\u0085\"}"):                                        {q(`{"default":"a\u0085"}`), ""},
		q(`{"default":[1e999]}`):                                              {q(`{"default":null}`), ""},
		q(`{"x-mcp-header":"City","type":"string"}`):                          {q(`{"type":"string","x-mcp-header":"City"}`), ""},
		q(`{"x-mcp-header":"a b","type":"string"}`):                           {q(`{"type":"string"}`), "x-mcp-header"},
		q(`{"x-mcp-header":"City","type":"number"}`):                          {q(`{"type":"number"}`), "x-mcp-header"},
		q(`{"type":"array","items":{"type":"string","x-mcp-header":"City"}}`): {q(`{"type":"array","items":{"type":"string"}}`), "x-mcp-header"},
	} {
		tool := toolOf(t, `,"inputSchema":`+given)
		want := c.want
		if want == "" {
			want = given
		}
		if got := string(tool.Input); got != want && (got != "" || want != "-") {
			t.Errorf("%s\n   becomes %s\n   want    %s", given, got, want)
		}
		if told := tool.Told(); !strings.Contains(told, c.told) || (told == "") != (c.told == "") {
			t.Errorf("%s: the page is told %q", given, told)
		}
	}
}

// Names that models' APIs refuse are changed where arguments can be mapped back, and only there.
func TestRenamedArguments(t *testing.T) {
	long := strings.Repeat("n", 65)
	tool := toolOf(t, `,"inputSchema":{"type":"object","properties":{
		"user[email]":{"type":"string","description":"Mail."},"zip code":{},"":{},"ä":{},"`+long+`":{},
		"a[b]":{},"a{b}":{},"tags[]":{"type":"array","items":{"type":"object","properties":{"x y":{},"z":{}}}},"tags":{},
		"plain":{"properties":{"x y":{"type":"null"}}},
		"other":{"anyOf":[{"properties":{"x y":{}}},{"type":"null"}],"additionalProperties":{"properties":{"x y":{}}}},
		"one":{"oneOf":[{"properties":{"x y":{}}},{"type":"null"}]}},
		"required":["zip code","plain"],"dependentRequired":{"tags[]":["a[b]"]},"dependencies":{"a[b]":["tags"],"plain":{}}}`)
	var s struct {
		Properties        map[string]json.RawMessage
		Required          []string
		DependentRequired map[string][]string
	}
	if err := json.Unmarshal(tool.Input, &s); err != nil {
		t.Fatal(err, string(tool.Input))
	}
	agents := map[string]string{}
	for name := range s.Properties {
		if !accepted.MatchString(name) {
			t.Errorf("the name %q is passed on", name)
		}
		args := tool.Names.Arguments([]byte(`{"` + name + `":1}`))
		var m map[string]int
		if err := json.Unmarshal(args, &m); err != nil || len(m) != 1 {
			t.Fatalf("%s: %v", args, err)
		}
		for page := range m {
			agents[page] = name
		}
	}
	if len(agents) != 12 {
		t.Errorf("%d names lead to the page's: %v", len(agents), agents)
	}
	for page, agent := range map[string]string{"user[email]": "user_email", "zip code": "zip_code", "plain": "plain", "tags": "tags"} {
		if agents[page] != agent {
			t.Errorf("%s is %s", page, agents[page])
		}
	}
	for _, page := range []string{"a[b]", "a{b}", "tags[]"} {
		if !strings.Contains(agents[page], "_") || len(agents[page]) < 9 {
			t.Errorf("%s, which collides, is %s", page, agents[page])
		}
	}
	if want := fmt.Sprint([]string{"zip_code", "plain"}); fmt.Sprint(s.Required) != want {
		t.Errorf("required is %v", s.Required)
	}
	if got := fmt.Sprint(s.DependentRequired); got != fmt.Sprint(map[string][]string{agents["tags[]"]: {agents["a[b]"]}, agents["a[b]"]: {"tags"}}) {
		t.Errorf("dependentRequired is %s", got)
	}
	for name, want := range map[string]string{
		"user_email": `{"type":"string","description":"The page calls it \"user[email]\". Mail."}`,
		"other":      `{"additionalProperties":{},"anyOf":[{},{"type":"null"}]}`,
		"one":        `{"anyOf":[{},{"type":"null"}]}`,
	} {
		if got := string(s.Properties[name]); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	args := `{"user_email":"a","tags":1,"` + agents["tags[]"] + `":[{"x_y":1,"z":{"x_y":2}},5],"plain":{"x_y":null},"other":{"x_y":1},"unknown":[]}`
	want := `{"user[email]":"a","tags":1,"tags[]":[{"x y":1,"z":{"x_y":2}},5],"plain":{"x y":null},"other":{"x_y":1},"unknown":[]}`
	if got := string(tool.Names.Arguments([]byte(args))); got != want {
		t.Errorf("%s\n   becomes %s\n   want    %s", args, got, want)
	}
	if got := string(tool.Names.Arguments([]byte(want))); got != want {
		t.Errorf("the page's own names become %s", got)
	}
	if got := tool.Names.Arguments([]byte(`{ }`)); string(got) != "{}" {
		t.Errorf("no arguments become %s", got)
	}
}

// A name that agents were told stays good while the property exists, unless it means another property now.
func TestEarlierNames(t *testing.T) {
	room := 3
	earlier := Names{}
	of := func(properties string) Names {
		names := toolOf(t, `,"inputSchema":{"type":"object","properties":`+properties+`}`).Names
		names.Adopt(earlier, &room)
		return names
	}
	of(`{"a[b]":{},"o":{"items":{"properties":{"c[d]":{}}}}}`)
	now := of(`{"a[b]":{},"a{b}":{},"o":{"items":{"properties":{"c[d]":{},"c_d":{}}}}}`)
	if got := string(now.Arguments([]byte(`{"a_b":1,"o":[{"c_d":1}]}`))); got != `{"a[b]":1,"o":[{"c_d":1}]}` {
		t.Errorf("an earlier list's arguments become %s", got)
	}
	gone := of(`{"a{b}":{},"a_b":{}}`)
	if got := string(gone.Arguments([]byte(`{"a_b":1}`))); got != `{"a_b":1}` {
		t.Errorf("the name of a property that is gone is %s", got)
	}
	if room != 0 || len(earlier) != 3 {
		t.Errorf("%d places are left, and %d names are known", room, len(earlier))
	}
	of(`{"plain":{}}`)
}

// Work and memory are bounded, whatever the references multiply.
func TestSchemaIsBounded(t *testing.T) {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	bomb := `{"type":"object","$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":{}}}`
	deep := `{"type":"object","properties":{"q":` + strings.Repeat(`{"items":`, 55) + `{}` + strings.Repeat("}", 55) + `}}`
	wide := `{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"p":{"$ref":"#/$defs/big"},`, 1), ",") + `}}`
	var many []string
	for i := range 9000 {
		many = append(many, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/big"}`, i))
	}
	long := `{"type":"object","properties":{` + strings.Join(many, ",") + `},"$defs":{"big":{"unknown":"` + strings.Repeat("x", 50<<10) + `"}}}`
	for name, text := range map[string]string{"a bomb": bomb, "deep": deep, "wide": wide, "long": long} {
		n := &schema{root: wire.Value(text), at: []string{"inputSchema"}, work: 64*len(text) + 1<<16,
			targets: map[string]wire.Value{}, headers: map[string]bool{}, names: Names{}}
		written := n.write(nil, wire.Value(text), "")
		if len(written) > 2*maxInput || n.nodes > 4*maxNodes || len(n.faults) > maxFaults {
			t.Errorf("%s: %d bytes, %d subschemas, %d faults", name, len(written), n.nodes, len(n.faults))
		}
		if !json.Valid(written) {
			t.Errorf("%s: no JSON", name)
		}
		tool := toolOf(t, `,"outputSchema":`+text)
		if tool.Output != nil && len(tool.Output.text) > maxOutput {
			t.Errorf("%s: the outputSchema has %d bytes", name, len(tool.Output.text))
		}
	}
}

func BenchmarkTools(b *testing.B) {
	const schema = `{"type":"object","properties":{"sku":{"type":"string","description":"The article."},"user[email]":{"type":"string"},` +
		`"count":{"type":"integer","minimum":1},"size":{"type":"string","enum":["S","M","L"]}},"required":["sku"],"additionalProperties":false}`
	text := []byte(`{"name":"buy","description":"Buys an article.","inputSchema":` + schema + `,"outputSchema":` + schema + `}`)
	for b.Loop() {
		for range 900 {
			if NewTool("buy", text).Left() {
				b.Fatal("left out")
			}
		}
	}
}
