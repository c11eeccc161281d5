package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A Tool is a page's tool. Nothing else of the page's description reaches agents.
type Tool struct {
	Name               string // the page's own
	Title, Description string
	// Input is the JSON Schema of the arguments for agents; nil if the tool cannot be served. Names
	// leads from its names to the page's.
	Input []byte
	Names Names
	// Output is nil without an outputSchema that can be served.
	Output *Output
	Hints  Hints
	// Navigates means that another document may answer a call. Fresh is what the tool depends on,
	// or nil.
	Navigates bool
	Fresh     *Freshness
	// ReadOnly is the page's claim that the tool changes nothing.
	ReadOnly bool
	// Faults are the parts that agents do not get as they are.
	Faults Faults

	claims      []string // of its annotations, in words
	destructive bool
	meta        wire.Text // the other members of its _meta, each after a comma
}

// ownMeta is what agents get under keys of Pagewire's in a tool's _meta. A page may set all but its
// origin.
type ownMeta struct {
	Fresh     *Freshness `json:"pagewire/freshState,omitempty"`
	Hints     Hints      `json:"pagewire/hints,omitzero"`
	Navigates bool       `json:"pagewire/navigates,omitempty"`
	Origin    string     `json:"pagewire/origin"`
}

// Hints are the hints that WebMCP has and MCP's annotations lack. A page sends them in _meta, as an
// object of booleans. They cannot be annotations, since MCP's typed SDKs drop unknown members
// there.
type Hints struct {
	// Consequential means that a call may not be undone: it buys, sends or deletes.
	Consequential bool `json:"consequentialHint,omitempty"`
	// UntrustedContent means that results hold text that the page did not write.
	UntrustedContent bool `json:"untrustedContentHint,omitempty"`
	// Debugging means that the tool is for developers of the page.
	Debugging bool `json:"debugging,omitempty"`
}

// A Freshness lists the resources that a tool depends on.
type Freshness struct {
	URIs []string `json:"uris"` // the page's own
	// "tell": the tool runs, and its result says what was older
	OnStale string `json:"onStale,omitempty"`
}

// maxFresh is how many URIs a tool may depend on.
const maxFresh = 32

// toolMembers are the members of MCP's Tool that a page gives, with their kinds.
var toolMembers = map[string]wire.Kind{"name": wire.String, "title": wire.String,
	"description": wire.String,
	"inputSchema": wire.Object, "outputSchema": wire.Object, "annotations": wire.Object,
	"_meta": wire.Object}

// NewTool reads a page's description of a tool, which is valid JSON. It keeps no part of it.
func NewTool(name string, description wire.Value) *Tool {
	t := &Tool{Name: strings.Clone(name)}
	m := map[string]wire.Value{}
	description.Members(func(key, v wire.Value) bool {
		member, _ := key.Text()
		kind, known := toolMembers[member]
		schema := known && strings.HasSuffix(member, "Schema")
		if v.Kind() > wire.Null && v.Kind() != kind && !schema {
			t.Faults.leaveOut(member, "agents get no such member")
		} else {
			m[member] = v
		}
		return true
	})
	a := m["annotations"]
	t.Title, _ = m["title"].Text()
	if t.Title == "" {
		t.Title, _ = a.Get("title").Text()
	}
	t.Description, _ = m["description"].Text()
	claim := func(name, yes, no string) bool {
		v := a.Get(name)
		words := map[string]string{"true": yes, "false": no}[string(v)]
		if words != "" {
			t.claims = append(t.claims, words)
		} else if v.Kind() > wire.Null && v.Kind() != wire.Bool {
			t.Faults.leaveOut("annotations."+name, "it is no boolean")
		}
		return v.True()
	}
	t.ReadOnly = claim("readOnlyHint", "read-only", "")
	t.destructive = claim("destructiveHint", "destructive", "not destructive")
	claim("idempotentHint", "idempotent", "")
	claim("openWorldHint", "", "closed world")
	t.readMeta(m["_meta"])
	var faults, others Faults
	t.Input, t.Names, faults = normalise(m["inputSchema"], "inputSchema", false)
	if output := m["outputSchema"]; output.Kind() > wire.Null {
		var text []byte
		if text, _, others = normalise(output, "outputSchema", true); text != nil {
			t.Output = &Output{text: text}
			_ = json.Unmarshal(text, &t.Output.schema) // it is what normalise wrote
		}
	}
	t.Faults = slices.Concat(t.Faults, others, faults)
	return t
}

// readMeta reads _meta. A hint that is no boolean counts as true, which is the safe side: each hint
// only makes a client ask more, or show less.
func (t *Tool) readMeta(meta wire.Value) {
	says := func(name string) bool {
		v := meta.Get("pagewire/hints").Get(name)
		return v.Kind() > wire.Null && string(v) != "false"
	}
	t.Hints = Hints{says("consequentialHint"), says("untrustedContentHint"), says("debugging")}
	t.Navigates = meta.Get("pagewire/navigates").True()
	if v := meta.Get("pagewire/freshState"); v.Kind() > wire.Null {
		uris, valid := textsOf(v.Get("uris"))
		if t.Fresh = (&Freshness{URIs: uris}); !valid || uris == nil || len(uris) > maxFresh {
			t.Fresh = nil
			t.Faults.leaveOut("_meta.pagewire/freshState", "it has no list of 1 to 32 uris")
		} else {
			t.Fresh.OnStale, _ = v.Get("onStale").Text()
		}
	}
	last := map[string]wire.Value{} // of two members with one name
	meta.Members(func(key, v wire.Value) bool {
		name, _ := key.Text()
		last[name] = v
		return true
	})
	var o object
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if resource.Reserved(name) == "" {
			o.Raw(",").Str(name).Raw(":").data(last[name])
		}
	}
	t.meta = o.t
}

// Left reports whether the tool cannot be served. The last fault says why.
func (t *Tool) Left() bool { return t.Input == nil }

// Told is what the page's developer is to know of the faults, or "".
func (t *Tool) Told() string {
	if len(t.Faults) == 0 {
		return ""
	}
	var all []string
	for _, f := range t.Faults {
		all = append(all, f.String())
	}
	how := " differs for agents: "
	if t.Left() {
		how = " is left out: "
	}
	return "the tool " + cut(t.Name, 200) + how + strings.Join(all, "; ") +
		". Correct its description where that matters, or say it in words"
}

// maxDescription bounds a description in UTF-16 code units: one API refuses a request for a longer
// one.
const maxDescription = 1024

// Shown returns the tool as agents see it, under a name, at a place that the description ends with.
// The page's annotations become words in the description, as its own claims: clients skip questions
// for a tool with readOnlyHint, and a page may claim anything. Only a destructiveHint, for which
// clients ask more, is an annotation too.
func (t *Tool) Shown(name, place, origin string) []byte {
	o := object{t: wire.Text("{")}
	o.key("name").Str(name)
	if t.Title != "" {
		o.key("title").Str(t.Title)
	}
	o.key("description").Str(t.described(place))
	o.key("inputSchema").Bytes(t.Input)
	if t.Output != nil && !t.Navigates { // another document answers
		o.key("outputSchema").Bytes(t.Output.text)
	}
	if t.destructive || t.Hints.Consequential {
		o.key("annotations").Raw(
			`{"destructiveHint":true,"idempotentHint":false,"readOnlyHint":false}`)
	}
	meta, _ := json.Marshal(ownMeta{t.Fresh, t.Hints, t.Navigates, origin})
	return o.key("_meta").Bytes(meta[:len(meta)-1]).Bytes(t.meta).Raw("}}").t
}

func (t *Tool) described(place string) string {
	var ours string
	if len(t.claims) > 0 {
		ours += "The page says: " + strings.Join(t.claims, ", ") + ". "
	}
	if t.Hints.Consequential {
		ours += "The page says that this may not be undone. "
	}
	if t.Hints.UntrustedContent {
		ours += "Its results hold text that the page did not write. "
	}
	ours = cut(ours+"[tool of the page "+place, maxDescription-1) + "]"
	room := maxDescription - 1 - len(utf16.Encode([]rune(ours)))
	text := strings.TrimSpace(cut(t.Description, room)) + " " + ours
	// mcp-context-forge before 0.7.0 refuses a semicolon.
	return strings.ReplaceAll(strings.TrimSpace(text), ";", ",")
}

// An Output checks results against an outputSchema that normalise has written.
type Output struct {
	text   []byte
	schema any
}

// maxChecked bounds structuredContent, in bytes, and maxSteps the work of a check: about 0.1 s.
const maxChecked, maxSteps = 1 << 20, 1 << 20

// Check returns an error if a result has no structuredContent that fits the schema, or if ctx ends.
// A tool's error needs none.
func (o *Output) Check(ctx context.Context, r *Result) error {
	switch n := len(r.Structured); {
	case n == 0 && r.IsError:
		return nil
	case r.Structured.Kind() != wire.Object:
		return errors.New("it is no object")
	case n > maxChecked:
		return fmt.Errorf("it has %d bytes; the limit is %d", n, maxChecked)
	}
	var v any
	if err := json.Unmarshal(r.Structured, &v); err != nil {
		return err
	}
	c := checker{ctx, maxSteps}
	why := c.wrong(o.schema, v)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.left <= 0:
		return errors.New(
			"it takes too long to check: the schema has too many alternatives for this result")
	case why != "":
		return errors.New(why)
	}
	return nil
}

// A checker checks a value against the keywords that normalise writes for results.
type checker struct {
	ctx  context.Context
	left int
}

// wrong says what is wrong with a value, or returns "".
func (c *checker) wrong(schema, v any) string {
	s, _ := schema.(map[string]any)
	if c.ctx.Err() != nil {
		c.left = 0
	}
	if c.left--; c.left <= 0 || len(s) == 0 {
		return ""
	}
	if kinds := s["type"]; kinds != nil &&
		!c.any(kinds, func(kind any) bool { return isKind(kind, v) }) {
		return fmt.Sprintf("a value is not of type %v", kinds)
	}
	if enum, is := s["enum"].([]any); is && !c.any(enum, func(e any) bool { return e == v }) {
		return "a value is not in the enum"
	}
	if want, is := s["const"]; is && want != v {
		return "a value is not the const"
	}
	why := ""
	switch v := v.(type) {
	case float64:
		why = c.bounds(s, "minimum", "maximum", v)
	case string:
		c.left -= len(v) >> 6
		why = c.bounds(s, "minLength", "maxLength", float64(utf8.RuneCountInString(v)))
	case []any:
		why = c.bounds(s, "minItems", "maxItems", float64(len(v)))
		for i := 0; s["items"] != nil && i < len(v) && why == "" && c.left > 0; i++ {
			why = c.wrong(s["items"], v[i])
		}
	case map[string]any:
		why = c.members(s, v)
	}
	all, _ := s["allOf"].([]any)
	for i := 0; i < len(all) && why == "" && c.left > 0; i++ {
		why = c.wrong(all[i], v)
	}
	if some, is := s["anyOf"].([]any); is && why == "" &&
		!c.any(some, func(s any) bool { return c.wrong(s, v) == "" }) {
		why = "a value fits none of the alternatives"
	}
	return why
}

func (c *checker) members(s, v map[string]any) (why string) {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, is := v[name.(string)]; !is {
			return "the member " + name.(string) + " is missing"
		}
	}
	c.left -= len(required)
	properties, _ := s["properties"].(map[string]any)
	for name, member := range v {
		of, known := properties[name]
		if !known {
			of = s["additionalProperties"]
		}
		if of == false {
			return "the member " + name + " is not in the schema"
		}
		if why = c.wrong(of, member); why != "" || c.left <= 0 {
			return why
		}
	}
	return ""
}

func (c *checker) bounds(s map[string]any, low, high string, n float64) string {
	if least, is := s[low].(float64); is && n < least {
		return "a value is below its " + low
	}
	if most, is := s[high].(float64); is && n > most {
		return "a value is above its " + high
	}
	return ""
}

// any reports whether f holds for an element of a list, or for a value that is no list.
func (c *checker) any(list any, f func(any) bool) bool {
	all, is := list.([]any)
	if !is {
		all = []any{list}
	}
	c.left -= len(all)
	return slices.ContainsFunc(all, f)
}

func isKind(kind, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	}
	return kind == "object"
}
