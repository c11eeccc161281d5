package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// units is the length of a text in UTF-16 code units.
func units(text string) int { return len(utf16.Encode([]rune(text))) }

// shownAs is a tool as agents see it.
type shownAs struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               json.RawMessage
	Meta                      map[string]json.RawMessage `json:"_meta"`
}

func shown(t *testing.T, tool *Tool) (s shownAs) {
	t.Helper()
	text := tool.Shown("do_tab1", "P at https://x.example, tab 1", "https://x.example")
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err, string(text))
	}
	return s
}

func TestClaimed(t *testing.T) {
	const asks = `{"destructiveHint":true,"idempotentHint":false,"readOnlyHint":false}`
	const undone = " The page says that this may not be undone."
	const others = " Its results hold text that the page did not write."
	for given, want := range map[string][3]string{ // annotations, description, hints
		`"x":1`:                               {``, "Does it.", ``},
		`"annotations":{"readOnlyHint":true}`: {``, "Does it. The page says: read-only.", ``},
		`"_meta":{"pagewire/hints":{"consequentialHint":true}}`:      {asks, "Does it." + undone, `{"consequentialHint":true}`},
		`"_meta":{"pagewire/hints":{"untrustedContentHint":true}}`:   {``, "Does it." + others, `{"untrustedContentHint":true}`},
		`"_meta":{"pagewire/hints":{"debugging":true}}`:              {``, "Does it.", `{"debugging":true}`},
		`"annotations":{"destructiveHint":true,"readOnlyHint":true}`: {asks, "Does it. The page says: read-only, destructive.", ``},
		`"annotations":{"destructiveHint":false}`:                    {``, "Does it. The page says: not destructive.", ``},
		`"annotations":{"idempotentHint":true,"openWorldHint":false}`: {``,
			"Does it. The page says: idempotent, closed world.", ``},
		`"annotations":{"openWorldHint":true}`: {``, "Does it.", ``},
		`"annotations":{"readOnlyHint":true,"destructiveHint":false},"_meta":{"pagewire/hints":{"consequentialHint":true,"untrustedContentHint":true}}`: {
			asks, "Does it. The page says: read-only, not destructive." + undone + others,
			`{"consequentialHint":true,"untrustedContentHint":true}`},
		// A value that is no boolean makes clients ask more, and not less.
		`"_meta":{"pagewire/hints":{"consequentialHint":"no","untrustedContentHint":0,"debugging":[]}}`: {
			asks, "Does it." + undone + others,
			`{"consequentialHint":true,"untrustedContentHint":true,"debugging":true}`},
		`"_meta":{"pagewire/hints":{"consequentialHint":null,"untrustedContentHint":false,"more":true}}`: {``, "Does it.", ``},
		`"_meta":{"pagewire/hints":["consequentialHint"]}`:                                               {``, "Does it.", ``},
		`"annotations":{"readOnlyHint":"yes"}`:                                                           {``, "Does it.", ``},
	} {
		s := shown(t, toolOf(t, ","+given))
		description := strings.TrimSuffix(s.Description, " [tool of the page P at https://x.example, tab 1]")
		if got := [3]string{string(s.Annotations), description, string(s.Meta["pagewire/hints"])}; got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
	if got := shown(t, toolOf(t, `,"annotations":{"title":"Look"}`)).Title; got != "Look" {
		t.Errorf("its title is %q", got)
	}
}

// Of _meta agents get the keys of others, and what Pagewire makes of its own.
func TestMetaOfTools(t *testing.T) {
	tool := toolOf(t, `,"_meta":{"a/b":[1,{"x":"\ud800"}],"plain":true,"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://x",
		"pagewire/origin":"https://bank.example","pagewire/navigates":true,"pagewire/freshState":{"uris":["u"],"more":1},
		"pagewire/tab":3,"io.modelcontextprotocol/related-task":{},"com.mcp.x/y":1,"MCP/y":1,"__proto__":{"x":1},
		"plain":1,"traceparent":"00","tracestate":"a","baggage":"b","pagewire":{},"mcp":{},"progressToken":1,"pl\u0061in":true}`)
	got, _ := json.Marshal(shown(t, tool).Meta)
	want := `{"a/b":[1,{"x":"` + "\uFFFD" + `"}],"pagewire/freshState":{"uris":["u"]},"pagewire/navigates":true,` +
		`"pagewire/origin":"https://x.example","plain":true}`
	if string(got) != want {
		t.Errorf("_meta is %s, want %s", got, want)
	}
	many := `{"uris":["u"`
	for i := range 32 {
		many += fmt.Sprintf(`,"u%d"`, i)
	}
	for given, told := range map[string]string{`{"uris":5}`: "no list", `5`: "no list",
		`{"uris":["u",5]}`: "no list", many + `]}`: "no list"} {
		if tool := toolOf(t, `,"_meta":{"pagewire/freshState":`+given+`}`); tool.Fresh != nil || !strings.Contains(tool.Told(), told) {
			t.Errorf("%s: %v, %q", given, tool.Fresh, tool.Told())
		}
	}
}

// The page's part of a description is cut, between characters, so that ours fits below the bound of models' APIs.
func TestDescriptionsFit(t *testing.T) {
	for _, letter := range []string{"x", "é", "語", "😀", "e\u0301"} {
		for _, n := range []int{10, 900, 1000, 1024, 5000} {
			tool := toolOf(t, `,"description":"`+strings.Repeat(letter, n)+`"`)
			description := shown(t, tool).Description
			if units(description) > maxDescription || !strings.HasSuffix(description, " [tool of the page P at https://x.example, tab 1]") ||
				strings.Contains(description, "\uFFFD") {
				t.Errorf("%d times %s: %d units, %q", n, letter, units(description), description)
			}
		}
	}
	text := toolOf(t, "").Shown("n", strings.Repeat("p", 5000), "o")
	var s shownAs
	if err := json.Unmarshal(text, &s); err != nil || units(s.Description) > maxDescription {
		t.Errorf("%v, %d units at a place with a long name", err, units(s.Description))
	}
}

// checks is what Check says of the JSON text of a result.
func checks(t *testing.T, o *Output, result string) error {
	t.Helper()
	r, err := ToolResult([]byte(result), own)
	if err != nil {
		t.Fatal(err)
	}
	return o.Check(t.Context(), r)
}

func TestOutput(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	output := func(schema string) *Output { return toolOf(t, `,"outputSchema":`+schema).Output }
	for _, bad := range []string{`{}`, `true`, `{"type":"array"}`, `{"type":["object"]}`, `{"type":"object","properties":5}`,
		`{"type":"object","properties":{"a":"b"}}`, `{"type":"object","required":true}`, `null`} {
		if output(bad) != nil {
			t.Errorf("%s is an output schema", bad)
		}
	}
	for given, want := range map[string]string{ // keywords that are not checked are not listed
		`{"type":"object","pattern":"(","properties":{"a b":{"type":"string","format":"email","pattern":"^a$"}}}`:           `{"type":"object","properties":{"a b":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"enum":[{}]},"b":{"enum":["",1]},"c":{"const":[]}}}`:                           `{"type":"object","properties":{"a":{},"b":{"enum":["",1]},"c":{}}}`,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"null"},{"type":"string","minLength":1}]}}}`:                  `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"string","minLength":1}]}}}`,
		`{"type":"object","properties":{"constructor":{"type":"object"},"valueOf":{"type":"null"}},"required":["valueOf"]}`: `{"type":"object","properties":{"constructor":{},"valueOf":{}},"required":["valueOf"]}`,
		`{"type":"object","patternProperties":{"a":{"type":"null"}},"required":["x"]}`:                                      `{"type":"object","required":["x"]}`,
	} {
		if o := output(given); o == nil || string(o.text) != want {
			t.Errorf("%s\n   becomes %v\n   want    %s", given, o, want)
		}
	}
	for result, fits := range map[string]bool{
		`{"structuredContent":{"n":1}}`: true, `{"structuredContent":{"n":1,"m":2}}`: true,
		`{"isError":true}`: true, `{"isError":true,"structuredContent":{"n":"1"}}`: false,
		`{"structuredContent":{"n":1.5}}`: false, `{"structuredContent":{}}`: false, `{"structuredContent":[1]}`: false,
		`{"structuredContent":null}`: false, `{"content":[]}`: false,
		`{"structuredContent":{"n":1,"m":"` + strings.Repeat("x", maxChecked) + `"}}`: false,
	} {
		if err := checks(t, output(schema), result); (err == nil) != fits {
			t.Errorf("%.60s: %v", result, err)
		}
	}
	for property, c := range map[string][2]string{ // values that fit, and values that do not
		`{"type":["null","boolean"]}`:                          {`null true`, `1 "a" {} []`},
		`{"type":"number"}`:                                    {`1 1.5 -1e3`, `"1" null`},
		`{"type":"array","items":{"type":"string"}}`:           {`[] ["a","b"]`, `["a",1] {}`},
		`{"enum":["a",1,null,true]}`:                           {`"a" 1 1.0 null true`, `"b" 2 false [] {}`},
		`{"const":"a"}`:                                        {`"a"`, `"b" [] null`},
		`{"minimum":1,"maximum":2}`:                            {`1 2 "a"`, `0 3`},
		`{"minLength":1,"maxLength":2}`:                        {`"a" "😀😀" 5`, `"" "abc"`},
		`{"minItems":1,"maxItems":2}`:                          {`[1] [1,2] 5`, `[] [1,2,3]`},
		`{"additionalProperties":false,"properties":{"a":{}}}`: {`{} {"a":1}`, `{"b":1}`},
		`{"additionalProperties":{"type":"null"}}`:             {`{"a":null} {}`, `{"a":1}`},
		`{"anyOf":[{"type":"string"},{"minimum":5}]}`:          {`"a" 5 []`, `1`},
		`{"allOf":[{"type":"integer"},{"minimum":5}]}`:         {`5`, `1 "a"`},
	} {
		o := output(`{"type":"object","properties":{"v":` + property + `}}`)
		for i, fits := range []bool{true, false} {
			for _, v := range strings.Fields(c[i]) {
				if err := checks(t, o, `{"structuredContent":{"v":`+v+`}}`); (err == nil) != fits {
					t.Errorf("%s by %s: %v", v, property, err)
				}
			}
		}
	}
}

// A check ends, whatever the schema and the result are.
func TestChecksAreBounded(t *testing.T) {
	var branches, levels []string
	for i := range 500 {
		branches = append(branches, fmt.Sprintf(`{"type":"array","items":{"type":"array","items":{"const":%d}}}`, i))
	}
	list := "[" + strings.TrimSuffix(strings.Repeat(`[0,0,0],`, 40_000), ",") + "]"
	for i := range 20 {
		levels = append(levels, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	for name, schema := range map[string]string{
		"many alternatives": `{"type":"object","properties":{"v":{"allOf":[` + strings.Join(branches, ",") + `]}}}`,
		"deep alternatives": `{"type":"object","properties":{"v":{"items":{"$ref":"#/$defs/d0"}}},"$defs":{` + strings.Join(levels, ",") +
			`,"d20":{"items":{"const":1}}}}`,
	} {
		o := toolOf(t, `,"outputSchema":`+schema).Output
		if o == nil {
			continue // it is too long
		}
		c := checker{t.Context(), maxSteps}
		var v any
		_ = json.Unmarshal([]byte(`{"v":`+list+`}`), &v)
		c.wrong(o.schema, v)
		if c.left < -maxSteps/8 {
			t.Errorf("%s: %d steps", name, maxSteps-c.left)
		}
		if err := checks(t, o, `{"structuredContent":{"v":`+strings.ReplaceAll(list, "0", "1")+`}}`); err == nil {
			t.Errorf("%s: it fits", name)
		}
	}
}

// endsSoon is a context that has ended when it was asked so many times.
type endsSoon struct {
	context.Context
	left *int
}

func (c endsSoon) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

// The check of a result ends with its call.
func TestCheckEndsWithItsCall(t *testing.T) {
	left := 1000
	o := toolOf(t, `,"outputSchema":{"type":"object","properties":{"v":{"type":"array","items":{"type":"integer"}}}}`).Output
	r, _ := ToolResult([]byte(`{"structuredContent":{"v":[0`+strings.Repeat(",0", 100_000)+`]}}`), own)
	if err := o.Check(endsSoon{t.Context(), &left}, r); err != context.Canceled || left < -10 {
		t.Errorf("it ends with %v, and asks %d times after the end", err, -left)
	}
}
