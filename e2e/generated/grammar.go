// Package generated makes what a hostile page may give, and tells what an agent may get of it. The
// grammar has all members that MCP and WebMCP know; each case has one broken member. The oracle is
// written apart from the gate: it is a second opinion.
//
// It never uses the gate, and never speaks MCP.
package generated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A tree is JSON as a hostile page writes it: of any order, with members that come twice and texts
// that are no Unicode.
type tree struct {
	kind byte     // '{', '[', or 0 for any other value
	keys []string // of an object's members, as JSON text
	list []*tree
	text string // of any other value
}

func value(text string) *tree { return &tree{text: text} }

func (n *tree) String() string {
	if n.kind == 0 {
		return n.text
	}
	var all []string
	for i, e := range n.list {
		text := e.String()
		if n.kind == '{' {
			text = n.keys[i] + ":" + text
		}
		all = append(all, text)
	}
	if n.kind == '{' {
		return "{" + strings.Join(all, ",") + "}"
	}
	return "[" + strings.Join(all, ",") + "]"
}

// insert adds a member, or an element. key may be JSON text.
func (n *tree) insert(i int, key string, e *tree) {
	if n.kind == '{' {
		if !strings.HasPrefix(key, `"`) {
			key = strconv.Quote(key)
		}
		n.keys = slices.Insert(n.keys, i, key)
	}
	n.list = slices.Insert(n.list, i, e)
}

// The kinds of what a page gives.
const (
	Tool     = "tool"
	Resource = "resource"
	Result   = "result"
	Contents = "contents"
	Progress = "progress"
)

// Kinds are all of them.
var Kinds = []string{Tool, Resource, Result, Contents, Progress}

// A Case is one thing that a page gives.
type Case struct {
	N    int
	Kind string
	// Name is the tool's, or the URI of the resource: the one that is described, called or read.
	Name string
	Text string
	// Broken says what is wrong with it; "" if nothing is.
	Broken string
}

func (c Case) String() string {
	return fmt.Sprintf("case %d, %s: %s\n%.3000s", c.N, c.Kind, c.Broken, c.Text)
}

// Origin is the hostile page's.
const Origin = "https://odd.example"

// Cases makes different cases. One in 40 has nothing wrong.
func Cases(seed uint64, count int) (all []Case) {
	m := maker{rand.New(rand.NewPCG(seed, 48))}
	seen := map[string]bool{}
	for n := 0; n < count; {
		c := Case{N: n}
		var root *tree
		switch k := m.IntN(100); {
		case k < 45:
			c.Kind, c.Name = Tool, fmt.Sprint("t", n)
			root = m.tool(c.Name)
		case k < 60:
			c.Kind, c.Name = Resource, fmt.Sprint(Origin, "/", n)
			if m.IntN(4) == 0 {
				c.Name += "/{x}"
			}
			root = m.descriptor(c.Name)
		case k < 80:
			c.Kind, c.Name = Result, fmt.Sprint("r", n)
			root = m.result()
		case k < 93:
			c.Kind, c.Name = Contents, fmt.Sprint(Origin, "/c", n)
			root = m.contents()
		default:
			c.Kind, c.Name = Progress, fmt.Sprint("p", n)
			root = m.progress()
		}
		if m.IntN(40) > 0 {
			c.Broken = m.breaks(root)
		}
		c.Text = root.String()
		// Cases that differ only in their number are the same.
		if key := c.Kind + strings.ReplaceAll(c.Text, c.Name, ""); !seen[key] {
			seen[key] = true
			all = append(all, c)
			n++
		}
	}
	return all
}

// A maker makes all that MCP and WebMCP have, at random, and breaks one member of it.
type maker struct{ *rand.Rand }

func (m maker) pick(of ...string) string { return of[m.IntN(len(of))] }

// object has the given members, of which those with a "?" may be missing: pairs of a key and a
// function.
func (m maker) object(members ...any) *tree {
	n := &tree{kind: '{'}
	for i := 0; i < len(members); i += 2 {
		key, optional := strings.CutSuffix(members[i].(string), "?")
		if !optional || m.IntN(2) == 0 {
			n.insert(len(n.list), key, members[i+1].(func() *tree)())
		}
	}
	return n
}

func (m maker) array(of ...*tree) *tree { return &tree{kind: '[', list: of} }

// one returns a function that picks one of some JSON texts.
func (m maker) one(of ...string) func() *tree {
	return func() *tree { return value(m.pick(of...)) }
}

func (m maker) words() *tree {
	return m.one(`"x"`, `"Adds to the cart"`, `"a; b"`, `"é \ud83c\udf55"`, `""`)()
}

func (m maker) meta(own ...any) func() *tree {
	return func() *tree {
		return m.object(
			append([]any{"shop.example/batch?", m.one(`1`, `{"a":[1]}`), "note?", m.words},
				own...)...)
	}
}

func (m maker) annotations() *tree {
	return m.object("audience?", m.one(`["user"]`, `["user","assistant"]`), "priority?",
		m.one("0", "0.5", "1"),
		"lastModified?", m.one(`"2026-11-28T00:00:00Z"`, `"2026-11-28T00:00:00.123+02:00"`))
}

func (m maker) icons() *tree {
	return m.array(m.object("src", m.one(`"https://odd.example/i.png"`), "mimeType?",
		m.one(`"image/png"`),
		"sizes?", m.one(`["48x48"]`), "theme?", m.one(`"light"`, `"dark"`)))
}

// property makes a subschema. That of an output is checked by clients.
func (m maker) property(depth int) *tree {
	if depth == 0 {
		return m.object("type?", m.one(`"string"`, `"integer"`, `["string","null"]`))
	}
	sub := func() *tree { return m.property(depth - 1) }
	subs := func() *tree { return m.array(sub(), sub()) }
	switch m.IntN(6) {
	case 0:
		return m.object("type", m.one(`"string"`), "description?", m.words, "enum?",
			m.one(`["a","b"]`,
				`["", "a"]`), "default?",
			m.one(`"a"`), "minLength?", m.one("0"), "maxLength?", m.one("100"), "pattern?",
			m.one(`"^[a-z]*$"`,
				`"^(?!x)"`),
			"format?", m.one(`"date"`, `"email"`, `"odd"`), "contentEncoding?", m.one(`"base64"`),
			"x-mcp-header?", m.one(`"H"`))
	case 1:
		return m.object("type", m.one(`"integer"`, `"number"`), "title?", m.words, "minimum?",
			m.one("0", "-1.5"),
			"maximum?", m.one("5", "1e3"), "exclusiveMinimum?", m.one("0"), "multipleOf?",
			m.one("1", "0.5"),
			"const?", m.one("1"))
	case 2:
		return m.object("type", m.one(`"array"`), "items?", sub, "minItems?", m.one("0"),
			"maxItems?", m.one("9"),
			"uniqueItems?", m.one("true"), "prefixItems?", subs, "contains?", sub)
	case 3:
		return m.object("$ref?", m.one(`"#/$defs/d"`, `"#"`), "anyOf?", subs, "oneOf?", subs,
			"allOf?", subs,
			"not?", sub, "if?", sub,
			"then?", sub, "else?", sub, "description?", m.words)
	case 4:
		return m.object("type?", m.one(`"boolean"`, `"null"`), "examples?", m.one(`[true]`),
			"deprecated?",
			m.one("true"),
			"readOnly?", m.one("false"), "$comment?", m.words, "nullable?", m.one("true"))
	}
	return m.members(depth)()
}

// members makes the schema of an object.
func (m maker) members(depth int, more ...any) func() *tree {
	sub := func() *tree { return m.property(depth - 1) }
	return func() *tree {
		return m.object(append([]any{"type", m.one(`"object"`), "properties?", func() *tree {
			return m.object("a?", sub, "n?", m.one(`{"type":"number"}`),
				m.pick("b[c]", "zip code", "é", "b")+"?",
				sub)
		}, "required?", m.one(`["n"]`, `["a"]`, `[]`), "additionalProperties?",
			m.one("true", "false",
				`{"type":"string"}`),
			"dependentRequired?", m.one(`{"a":["n"]}`), "patternProperties?",
			m.one(`{"^x":{"type":"string"}}`),
			"propertyNames?", m.one(`{"pattern":"^[a-z]"}`), "minProperties?", m.one("0")},
			more...)...)
	}
}

func (m maker) schema() *tree {
	return m.members(2, "$schema?", m.one(`"https://json-schema.org/draft/2020-12/schema"`,
		`"http://json-schema.org/draft-07/schema#"`),
		"$defs?", func() *tree { return m.object("d", func() *tree { return m.property(1) }) })()
}

func yes() *tree { return value("true") }

func (m maker) tool(name string) *tree {
	hints := func() *tree {
		return m.object("consequentialHint?", yes, "untrustedContentHint?", yes, "debugging?",
			m.one("false"))
	}
	return m.object("name", m.one(strconv.Quote(name)), "title?", m.words, "description?", m.words,
		"inputSchema?", m.schema,
		"outputSchema?", m.schema, "annotations?", func() *tree {
			return m.object("title?", m.words, "readOnlyHint?", yes, "destructiveHint?", yes,
				"idempotentHint?",
				yes, "openWorldHint?", yes,
				"untrustedContentHint?", yes)
		}, "icons?", m.icons, "execution?", m.one(`{"taskSupport":"optional"}`),
		"_meta?", m.meta("pagewire/hints?", hints, "pagewire/freshState?",
			m.one(`{"uris":["https://odd.example/marker"]}`),
			"pagewire/navigates?", m.one("false")))
}

// descriptor makes a resource's, or a template's.
func (m maker) descriptor(uri string) *tree {
	return m.object("uri", m.one(strconv.Quote(uri)), "name?", m.words, "title?", m.words,
		"description?", m.words,
		"mimeType?", m.one(`"text/plain"`), "size?", m.one("0", "5"), "minUpdateInterval?",
		m.one("100"),
		"icons?", m.icons,
		"annotations?", m.annotations, "_meta?", m.meta(), "contentSchema?", m.schema,
		"uriSchema?", m.one(`{"type":"object","properties":{"q":{"type":"string"}}}`))
}

const pixel = `"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="`

func (m maker) item() *tree {
	const uri = `"https://odd.example/a"`
	if m.IntN(3) == 0 {
		return m.object("uri", m.one(uri), "mimeType?", m.one(`"image/png"`), "blob",
			m.one(`"AAAA"`, pixel),
			"_meta?", m.meta())
	}
	return m.object("uri", m.one(uri), "mimeType?", m.one(`"text/plain"`), "text", m.words,
		"_meta?", m.meta())
}

func (m maker) block() *tree {
	last := []any{"annotations?", m.annotations, "_meta?", m.meta()}
	kind := m.pick("text", "image", "audio", "resource", "resource_link")
	members := map[string][]any{
		"text":     {"text", m.words},
		"image":    {"data", m.one(pixel), "mimeType", m.one(`"image/png"`)},
		"audio":    {"data", m.one(`"AAAA"`), "mimeType", m.one(`"audio/wav"`)},
		"resource": {"resource", m.item},
		"resource_link": {"uri", m.one(`"https://odd.example/a"`), "name", m.words, "title?",
			m.words, "size?",
			m.one("5"), "icons?", m.icons},
	}[kind]
	return m.object(slices.Concat([]any{"type", m.one(strconv.Quote(kind))}, members, last)...)
}

func (m maker) result() *tree {
	return m.object("content", func() *tree {
		list := m.array()
		for range m.IntN(3) {
			list.list = append(list.list, m.block())
		}
		return list
	}, "structuredContent?", m.one(`{"n":1}`, `{"n":1,"more":[null,{}]}`), "isError?",
		m.one("true", "false"),
		"_meta?", m.meta())
}

func (m maker) contents() *tree {
	if m.IntN(3) == 0 {
		return m.array(m.item(), m.item())
	}
	return m.array(m.item())
}

func (m maker) progress() *tree {
	return m.object("progress", m.one("0", "1", "0.5"), "total?", m.one("2", "100"), "message?",
		m.words)
}

// odd are values for any place.
var odd = []string{`null`, `true`, `false`, `0`, `-1`, `1`, `1.5`, `-0`, `1e999`, `-1e999`,
	`1e-400`,
	`1` + strings.Repeat("0", 250) + `e99`, `1e100`, `12345678901234567890`, `9007199254740993`,
	`""`, `"x"`, `"true"`, `"1"`, `"\u0000"`, `"\ud83c"`, `"a \udf55 b"`,
	"\"a\u2028b\u2029c\u0085\"",
	`"__proto__"`, `"object"`, `"null"`,
	`"2026-02-30T10:00:00Z"`, `"2026-11-27"`, `"yesterday"`, `"https://bank.example/"`,
	`"file:///etc/passwd"`,
	`"AA"`, `"*"`, `"("`, `"(a+)+$"`,
	`"\\p{L}"`, `"#/$defs/none"`, `"#/properties/a"`, `"tool_use"`, `"text"`, `"user"`, `[]`, `{}`,
	`[null]`,
	`[[]]`, `[{}]`, `["a",1]`, `["a","a"]`,
	`["user","bot"]`, `[""]`, `[true,{"a":1},"x"]`, `{"a":1}`, `{"a":null}`, `{"a":"string"}`,
	`{"a":[]}`,
	`{"":{}}`, `{"type":"file"}`,
	`{"__proto__":{"polluted":true}}`, `{"constructor":{"prototype":{"polluted":true}}}`,
	`{"$ref":"#"}`,
	`{"toJSON":1}`, `{"a":1,"a":"2"}`,
	`{"then":{}}`, `{"a b":{"type":"string"},"a_b":{},"é":{}}`, `{"\ud83c":{"type":"string"}}`,
	`{"readOnlyHint":"yes"}`, `{"uris":[5]}`,
	`{"uris":["https://bank.example/"],"onStale":5}`, `[{"src":"javascript:alert(1)"}]`,
	`[{"src":"a","theme":"blue"}]`}

// unknown are keys of members that do not belong there: of other parts of MCP, of its extensions,
// of JSON Schema, of JavaScript, and of nobody.
var unknown = []string{"unheardOf", "__proto__", "constructor", "prototype", "toString", "toJSON",
	"then",
	"hasOwnProperty", "", `"\u0000"`, `"\ud83c"`, "\"\u2028\"", "0",
	"resultType", "inputRequests", "requestState", "ttlMs", "cacheScope", "nextCursor", "task",
	"tasks",
	"toolResult", "progressToken",
	"traceparent", "tracestate", "baggage", "ui", "ui/resourceUri", "mcp/x", "com.mcp.x/y",
	"io.modelcontextprotocol/serverInfo",
	"io.modelcontextprotocol/subscriptionId", "io.modelcontextprotocol/related-task",
	"MODELCONTEXTPROTOCOL/a",
	"pagewire", "pagewire/origin",
	"pagewire/x", "pagewire/tab", "pagewire/hints", "icons", "execution", "_meta", "annotations",
	"error", "id",
	"jsonrpc", "method", "params",
	"result", "name", "title", "description", "uri", "uriTemplate", "blob", "text", "data",
	"mimeType", "content",
	"contents", "tools",
	"structuredContent", "isError", "type", "inputSchema", "outputSchema", "InputSchema", "Content",
	"ResultType",
	"$ref", "$dynamicRef",
	"$dynamicAnchor", "$id", "$schema", "$anchor", "not", "if", "patternProperties",
	"unevaluatedProperties",
	"additionalItems", "dependentSchemas",
	"propertyNames", "contains", "x-mcp-header", "x-other", "nullable", "discriminator", "pattern",
	"format",
	"enum", "const", "required",
	"minimum", "exclusiveMinimum", "subscribeHint", "size", "handler", "execute", "inputHint",
	"exposedTo",
	"serverId"}

// large are values that take long to look at.
var large = []string{`"` + strings.Repeat("a", 70<<10) + `"`, `"` + strings.Repeat("é;", 2000) +
	`"`,
	strings.Repeat("[", 40) + strings.Repeat("]", 40),
	`[` + strings.Repeat(`"x",`, 10_001) + `1]`, strings.Repeat(`{"a":`, 50) + `1` +
		strings.Repeat("}", 50),
	`"` + strings.Repeat("(a*)*", 300) + `"`}

// near are values that are wrong for one member alone.
var near = map[string][]string{
	"priority": {`2`, `-0.1`, `1.0000001`, `"1"`},
	"description": {`"` + strings.Repeat("é", 1025) + `"`, `"a;b;"`, `"` +
		strings.Repeat("😀", 600) + `"`},
	"lastModified": {`"2026-02-30T10:00:00Z"`, `"2026-11-27T10:00:00"`,
		`"2026-11-27T10:00:00+0100"`, `"yesterday"`},
	"size":     {`-1`, `1.5`, `1e3`, `9007199254740993`},
	"isError":  {`"true"`, `1`, `null`},
	"data":     {`"PHN2Zy8+PHN2Zy8+PHN2Zy8+"`, `"AA"`, `"-_8="`, `""`},
	"mimeType": {`"image/svg+xml"`, `"image/jpeg"`, `["a"]`},
	"uri": {`"https://bank.example/"`, `"https://odd.example.evil.example/"`,
		`"https://odd.example/.pagewire/x"`},
	"enum":     {`[]`, `[""]`, `["",""]`, `[{}]`, `"a"`},
	"pattern":  {`"^[^\\s\\@]+$"`, `"(a+)+$"`, `"("`, `"\\p{L}"`, `"a{3,1}"`},
	"type":     {`"file"`, `["object","file"]`, `[]`, `"Object"`, `null`},
	"required": {`true`, `["a",1]`, `["none"]`, `[""]`, `["constructor"]`},
	"properties": {`["a"]`, `{"a":"string"}`, `{"user[email]":{},"user_email":{}}`,
		`{"constructor":{"type":"object"}}`,
		`{"` + strings.Repeat("a", 65) + `":{}}`},
	"_meta": {`{"k":1,"progressToken":1}`, `{"io.modelcontextprotocol/serverInfo":{"name":"x"}}`,
		`{"ui":{"resourceUri":"ui://x"}}`,
		`{"pagewire/origin":"https://bank.example"}`, `{"com.mcp.x/y":1}`, `{"traceparent":"00"}`,
		`null`, `[]`},
	"progress": {`"1"`, `1e999`, `null`},
}

// wrongFor is a value for the place of a member.
func (m maker) wrongFor(key string) *tree {
	if of := near[strings.Trim(key, `"`)]; of != nil && m.IntN(2) == 0 {
		return value(m.pick(of...))
	}
	return m.hostile()
}

// hostile is any value for a place.
func (m maker) hostile() *tree {
	if m.IntN(60) == 0 {
		return value(m.pick(large...))
	}
	return value(m.pick(odd...))
}

// breaks breaks one member, and says which and how.
func (m maker) breaks(root *tree) (what string) {
	type place struct {
		of   *tree
		i    int
		path string
	}
	var places, parents []place
	var walk func(n *tree, path string)
	walk = func(n *tree, path string) {
		if n.kind == 0 {
			return
		}
		parents = append(parents, place{n, 0, path})
		for i, e := range n.list {
			at := path + "/" + strconv.Itoa(i)
			if n.kind == '{' {
				at = path + "/" + strings.Trim(n.keys[i], `"`)
			}
			places = append(places, place{n, i, at})
			walk(e, at)
		}
	}
	walk(root, "")
	if len(places) > 0 && m.IntN(3) > 0 {
		p := places[m.IntN(len(places))]
		n, i := p.of, p.i
		switch op := m.IntN(8); {
		case op == 0:
			n.list = slices.Delete(n.list, i, i+1)
			if n.kind == '{' {
				n.keys = slices.Delete(n.keys, i, i+1)
			}
			return p.path + " is missing"
		case op == 1 && n.kind == '{':
			other := m.wrongFor(n.keys[i])
			at := i + m.IntN(2)
			key := n.keys[i]
			n.insert(at, "", other)
			n.keys[at] = key
			return fmt.Sprintf("%s comes twice, as %d with %.60s", p.path, at-i, other)
		case op == 2 && n.kind == '{' && len(n.keys[i]) > 3:
			n.keys[i] = fmt.Sprintf(`"\u%04x%s`, n.keys[i][1], n.keys[i][2:])
			n.list[i] = m.hostile()
			return fmt.Sprintf("%s, escaped, is %.60s", p.path, n.list[i])
		case op == 3:
			n.list[i] = m.array(n.list[i])
			return p.path + " is a list of it"
		}
		key := ""
		if n.kind == '{' {
			key = n.keys[i]
		}
		n.list[i] = m.wrongFor(key)
		return fmt.Sprintf("%s is %.60s", p.path, n.list[i])
	}
	p := parents[m.IntN(len(parents))]
	other, key := m.hostile(), m.pick(unknown...)
	at := m.IntN(len(p.of.list) + 1)
	p.of.insert(at, key, other)
	if p.of.kind == '[' {
		return fmt.Sprintf("%s/%d is %.60s, too", p.path, at, other)
	}
	return fmt.Sprintf("%s has %s: %.60s", p.path, p.of.keys[at], other)
}
