package generated

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// What agents may get, written once more and apart from the gate: by place, the members of MCP that
// a page gives, and the few that the gateway adds. Data of the page pass where MCP has data: in
// structuredContent, under keys of _meta that nobody has reserved, and in values that a schema
// quotes.

// A said is JSON that an agent gets, with the members in their order.
type said struct {
	kind byte // '{', '[', '"', 'n' for a number, 't' for true and false, and '0' for null
	text string
	num  float64
	keys []string
	list []*said
}

func heard(text string) (*said, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var next func() (*said, error)
	next = func() (*said, error) {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case json.Delim:
			n := &said{kind: byte(t)}
			for d.More() {
				if t == '{' {
					key, err := d.Token()
					if err != nil {
						return nil, err
					}
					n.keys = append(n.keys, key.(string))
				}
				e, err := next()
				if err != nil {
					return nil, err
				}
				n.list = append(n.list, e)
			}
			_, err := d.Token()
			return n, err
		case string:
			return &said{kind: '"', text: t}, nil
		case json.Number:
			f, err := t.Float64()
			if err != nil {
				f = math.Inf(1)
			}
			return &said{kind: 'n', text: string(t), num: f}, nil
		case bool:
			return &said{kind: 't', text: fmt.Sprint(t)}, nil
		}
		return &said{kind: '0'}, nil
	}
	return next()
}

func (n *said) get(key string) *said {
	if n != nil && n.kind == '{' {
		if i := slices.Index(n.keys, key); i >= 0 {
			return n.list[i]
		}
	}
	return nil
}

// An oracle collects what an agent must not get.
type oracle struct{ wrong []string }

// A Message is one of a server's.
type Message struct {
	IsResult, IsError bool
	// Listed are the names of tools and the URIs of resources in it.
	Listed []string
	// Wrong is what an agent must not get.
	Wrong []string
}

// Judge looks at the text of a message.
func Judge(text string) (m Message) {
	o := &oracle{}
	n := o.message(text)
	m.IsResult, m.IsError = n.get("result") != nil, n.get("error") != nil
	for member, key := range map[string]string{"tools": "name", "resources": "uri",
		"resourceTemplates": "uriTemplate"} {
		for _, e := range n.get("result").get(member).elements() {
			if name := e.get(key); name != nil {
				m.Listed = append(m.Listed, name.text)
			}
		}
	}
	m.Wrong = o.wrong
	return m
}

func (o *oracle) bad(at, format string, args ...any) {
	o.wrong = append(o.wrong, at+" "+fmt.Sprintf(format, args...))
}

// A rule is what may be at a place. A name of a member ends with "!" if it must be there.
type rule func(o *oracle, at string, n *said)

func of(kinds string) rule {
	return func(o *oracle, at string, n *said) {
		if !strings.ContainsRune(kinds, rune(n.kind)) {
			o.bad(at, "is of kind %c", n.kind)
		}
		if n.kind == 'n' && math.IsInf(n.num, 0) {
			o.bad(at, "is %s, beyond a double", n.text)
		}
	}
}

var (
	texts, numbers, booleans = of(`"`), of("n"), of("t")
	serverOwn                = func(*oracle, string, *said) {}
)

func members(rules map[string]rule) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != '{' {
			o.bad(at, "is no object")
			return
		}
		seen := map[string]bool{}
		for i, key := range n.keys {
			r, known := rules[key]
			if !known {
				r, known = rules[key+"!"]
			}
			if !known {
				o.bad(at, "has the member %q", key)
			} else {
				r(o, at+"."+key, n.list[i])
			}
			if seen[key] {
				o.bad(at, "has %q twice", key)
			}
			seen[key] = true
		}
		for key := range rules {
			if need, ok := strings.CutSuffix(key, "!"); ok && !seen[need] {
				o.bad(at, "has no %s", need)
			}
		}
	}
}

func list(each rule) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != '[' {
			o.bad(at, "is no list")
		}
		for i, e := range n.list {
			each(o, fmt.Sprintf("%s[%d]", at, i), e)
		}
	}
}

func oneOf(texts ...string) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != '"' || !slices.Contains(texts, n.text) {
			o.bad(at, "is %q", n.text)
		}
	}
}

// data is whatever a page says, as far as every reader can hold it.
func data(o *oracle, at string, n *said) {
	of(`{["nt0`)(o, at, n)
	for i, e := range n.list {
		if n.kind == '{' {
			data(o, at+"."+n.keys[i], e)
		} else {
			data(o, at, e)
		}
	}
}

var reservedKey = regexp.MustCompile(`(?i)^(ui|pagewire|mcp|modelcontextprotocol|progressToken)$|` +
	`^(traceparent|tracestate|baggage|__proto__)$|` +
	`^(ui|pagewire)/|^([^/]*\.)?(mcp|modelcontextprotocol)(\.[^/]*)?/`)

// metaWith has data of the page, and keys of the gateway.
func metaWith(own map[string]rule) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != '{' {
			o.bad(at, "is no object")
		}
		for i, key := range n.keys {
			switch r := own[key]; {
			case r != nil:
				r(o, at+"."+key, n.list[i])
			case reservedKey.MatchString(key):
				o.bad(at, "has the key %q", key)
			default:
				data(o, at+"."+key, n.list[i])
			}
			if slices.Contains(n.keys[:i], key) {
				o.bad(at, "has %q twice", key)
			}
		}
	}
}

func within(low, high float64) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != 'n' || n.num < low || n.num > high {
			o.bad(at, "is %q", n.text)
		}
	}
}

var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

func matches(pattern *regexp.Regexp) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != '"' || !pattern.MatchString(n.text) {
			o.bad(at, "is %q", n.text)
		}
	}
}

var (
	ofPage     = matches(regexp.MustCompile(`^https://(odd\.example/|honest\.example/cart$)`))
	annotation = members(map[string]rule{"audience": list(oneOf("user", "assistant")),
		"priority":     within(0, 1),
		"lastModified": matches(dateTime)})
	pageMeta = metaWith(map[string]rule{"io.modelcontextprotocol/serverInfo": serverInfo})
	base64s  = matches(
		regexp.MustCompile(`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==|[A-Za-z0-9+/]=))?$`))
	item = func(o *oracle, at string, n *said) {
		as := map[string]rule{"uri!": ofPage, "mimeType": texts, "text!": texts, "_meta": pageMeta}
		if n.get("blob") != nil {
			as = map[string]rule{"uri!": ofPage, "mimeType": texts, "blob!": base64s,
				"_meta": pageMeta}
		}
		members(as)(o, at, n)
	}
	blockRules = map[string]map[string]rule{
		"text": {"text!": texts},
		"image": {"data!": base64s,
			"mimeType!": oneOf("image/png", "image/jpeg", "image/gif", "image/webp")},
		"audio":    {"data!": base64s, "mimeType!": texts},
		"resource": {"resource!": item},
		"resource_link": {"uri!": ofPage, "name!": texts, "mimeType": texts, "title": texts,
			"description": texts,
			"size":        within(0, math.Inf(1))},
	}
)

// serverInfo is the gateway's own, in answers of the modern era.
func serverInfo(o *oracle, at string, n *said) {
	if name := n.get("name"); name == nil || name.text != "pagewire" {
		o.bad(at, "is not the gateway's: %+v", n)
	}
}

func block(o *oracle, at string, n *said) {
	kind := n.get("type")
	if kind == nil || blockRules[kind.text] == nil {
		o.bad(at, "has no type of MCP's")
		return
	}
	as := map[string]rule{"type!": texts, "annotations": annotation, "_meta": metaWith(nil)}
	for key, r := range blockRules[kind.text] {
		as[key] = r
	}
	members(as)(o, at, n)
}

// ofServer are the members of a result that the server alone says.
func ofServer(more map[string]rule) rule {
	as := map[string]rule{"resultType": oneOf("complete"), "ttlMs": numbers,
		"cacheScope": oneOf("private",
			"public"), "nextCursor": texts,
		"_meta": pageMeta}
	for key, r := range more {
		as[key] = r
	}
	return members(as)
}

// A schema's keywords, with their values. That of an output has those alone that results are
// checked against.
var outputKeywords = map[string]rule{
	"title": texts, "description": texts, "default": data, "examples": data, "deprecated": booleans,
	"readOnly": booleans, "writeOnly": booleans,
	"minimum": numbers, "maximum": numbers, "minLength": counts, "maxLength": counts,
	"minItems":        counts,
	"maxItems":        counts,
	"contentEncoding": texts, "contentMediaType": texts, "type": types, "enum": enum, "const": data,
	"required": list(texts)}

var inputKeywords = map[string]rule{"pattern": pattern, "format": texts, "multipleOf": positive,
	"uniqueItems":      booleans,
	"exclusiveMinimum": numbers, "exclusiveMaximum": numbers, "minProperties": counts,
	"maxProperties": counts,
	"x-mcp-header":  texts,
	"dependentRequired": func(o *oracle, at string, n *said) {
		of("{")(o, at, n)
		for _, e := range n.list {
			list(texts)(o, at, e)
		}
	}}

func counts(o *oracle, at string, n *said) {
	if n.kind != 'n' || n.num < 0 || n.num != math.Trunc(n.num) || n.num > 1<<53 {
		o.bad(at, "is %q", n.text)
	}
}

func positive(o *oracle, at string, n *said) {
	if n.kind != 'n' || n.num <= 0 || math.IsInf(n.num, 0) {
		o.bad(at, "is %q", n.text)
	}
}

func types(o *oracle, at string, n *said) {
	is := oneOf("string", "number", "integer", "boolean", "object", "array", "null")
	if n.kind == '[' {
		list(is)(o, at, n)
	} else {
		is(o, at, n)
	}
}

func enum(o *oracle, at string, n *said) {
	list(data)(o, at, n)
	if len(n.list) == 0 {
		o.bad(at, "has no members")
	}
}

// pattern is one that engines agree on: at most without look-around, and without nested repetition.
func pattern(o *oracle, at string, n *said) {
	if _,
		err := regexp.Compile(n.text); n.kind != '"' || err != nil || len(n.text) > 500 ||
		strings.Contains(n.text, "(?!") {
		o.bad(at, "is %q", n.text)
	}
}

var argument = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// schema is for models' APIs, too: they refuse names of arguments, an empty text among choices,
// alternatives at the root, and arrays without items.
func schema(output, root bool) rule {
	return func(o *oracle, at string, n *said) {
		sub := func(o *oracle, at string, n *said) { schema(output, false)(o, at, n) }
		as := map[string]rule{"items": sub,
			"additionalProperties": func(o *oracle, at string, n *said) {
				if n.kind != 't' {
					sub(o, at, n)
				}
			}, "properties": func(o *oracle, at string, n *said) {
				of("{")(o, at, n)
				for i, e := range n.list {
					if key := n.keys[i]; key == "__proto__" ||
						!output && !argument.MatchString(key) || slices.Contains(n.keys[:i],
						key) {
						o.bad(at, "has the name %q", key)
					}
					sub(o, at+"."+n.keys[i], e)
				}
			}}
		for key, r := range outputKeywords {
			as[key] = r
		}
		if root {
			as["type!"] = oneOf("object")
			delete(as, "type")
		} else {
			as["allOf"], as["anyOf"] = list(sub), list(sub)
		}
		if !output {
			for key, r := range inputKeywords {
				as[key] = r
			}
			for _, e := range n.get("enum").elements() {
				if e.kind == '"' && e.text == "" {
					o.bad(at, "has an enum with an empty text")
				}
			}
		}
		members(as)(o, at, n)
		if kind := n.get("type"); kind != nil && kind.text == "array" && n.get("items") == nil {
			o.bad(at, "is an array without items")
		}
	}
}

func (n *said) elements() []*said {
	if n == nil {
		return nil
	}
	return n.list
}

// tool is a page's. Of our own tools only the members are looked at.
func tool(o *oracle, at string, n *said) {
	name := n.get("name")
	if name == nil || !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name.text) {
		o.bad(at, "has the name %+v", name)
		return
	}
	at += "(" + name.text + ")"
	origin := n.get("_meta").get("pagewire/origin")
	if origin == nil {
		members(map[string]rule{"name!": texts, "title": texts, "description!": texts,
			"inputSchema!": data,
			"annotations":  data, "_meta": data})(o, at, n)
		return
	}
	hint := booleans
	members(map[string]rule{"name!": texts, "title": texts,
		"description!": func(o *oracle, at string, n *said) {
			if texts(o, at, n); len(utf16.Encode([]rune(n.text))) > 1024 || strings.Contains(n.text,
				";") || !strings.Contains(n.text, "[tool of the page ") {
				o.bad(at, "is %.200q", n.text)
			}
		}, "inputSchema!": schema(false, true), "outputSchema": schema(true, true),
		"annotations": members(map[string]rule{"destructiveHint!": hint, "idempotentHint!": hint,
			"readOnlyHint!": oneOfBools("false")}),
		"_meta!": metaWith(
			map[string]rule{"pagewire/origin": oneOf("https://odd.example",
				"https://honest.example"),
				"pagewire/hints": members(map[string]rule{"consequentialHint": hint,
					"untrustedContentHint": hint,
					"debugging":            hint}),
				"pagewire/navigates": hint,
				"pagewire/freshState": members(map[string]rule{"uris!": list(ofPage),
					"onStale": texts})})})(o, at, n)
}

func oneOfBools(text string) rule {
	return func(o *oracle, at string, n *said) {
		if n.kind != 't' || n.text != text {
			o.bad(at, "is %q", n.text)
		}
	}
}

var listedAnnotation = members(map[string]rule{"audience": list(oneOf("user", "assistant")),
	"priority":     within(0, 1),
	"lastModified": matches(dateTime), "subscribeHint": booleans})

func listed(uri string) rule {
	return func(o *oracle, at string, n *said) {
		if u := n.get(uri); u != nil {
			at += "(" + u.text + ")"
		}
		members(map[string]rule{uri + "!": texts, "name!": texts, "title": texts,
			"description": texts,
			"mimeType":    texts,
			"size":        within(0, 1<<53), "annotations": listedAnnotation,
			"icons": list(
				members(map[string]rule{"src!": texts, "mimeType": texts, "sizes": list(texts),
					"theme": oneOf("light", "dark")})),
			"_meta": metaWith(map[string]rule{"pagewire/tab": numbers, "pagewire/tabKey": texts,
				"pagewire/tabSegment": texts,
				"pagewire/schema":     data})})(o, at, n)
	}
}

// results are the answers to each kind of request, by the member that each has.
var results = map[string]rule{
	"tools":     ofServer(map[string]rule{"tools!": list(tool)}),
	"resources": ofServer(map[string]rule{"resources!": list(listed("uri"))}),
	"resourceTemplates": ofServer(
		map[string]rule{"resourceTemplates!": list(listed("uriTemplate"))}),
	"contents": ofServer(map[string]rule{"contents!": list(item)}),
	"content": ofServer(map[string]rule{"content!": list(block), "structuredContent": data,
		"isError": booleans}),
}

var progressed = members(map[string]rule{"progressToken!": of(`"n`), "progress!": numbers,
	"total":   numbers,
	"message": texts})

// message checks a message to an agent, and returns it.
func (o *oracle) message(text string) *said {
	n, err := heard(text)
	if err != nil || strings.ContainsAny(text, "\u2028\u2029\u0085") {
		o.bad("a message", "cannot be read by all: %v: %.300q", err, text)
		return nil
	}
	members(map[string]rule{"jsonrpc!": oneOf("2.0"), "id": of(`"n`),
		"result": func(o *oracle, at string, n *said) {
			for _, key := range []string{"tools", "resources", "resourceTemplates", "contents",
				"content"} {
				if n.get(key) != nil {
					results[key](o, at, n)
					return
				}
			}
			if n.get("supportedVersions") == nil && n.get("protocolVersion") == nil &&
				len(n.list) > 0 {
				o.bad(at, "is no result of MCP's: %.300q", text)
			}
		}, "error": members(map[string]rule{"code!": numbers, "message!": texts,
			"data": serverOwn}),
		"method": texts, "params": func(o *oracle, at string, p *said) {
			if method := n.get("method"); method != nil && method.text == "notifications/progress" {
				progressed(o, at, p)
			}
		}})(o, "a message", n)
	return n
}
