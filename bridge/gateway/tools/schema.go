//go:build !js

package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pagewire/pagewire/bridge/wire"
)

const (
	// maxSelf is how often a reference is written out within itself, and maxDeep how many are within each other.
	maxSelf, maxDeep = 2, 8
	// maxInlined bounds, in bytes, what references of one schema are written out to.
	maxInlined = 64 << 10
)

// Inlined is a page's JSON Schema, decoded, with references written out: Gemini CLI refuses a list with a $ref. A
// reference that leads elsewhere, or into itself again and again, becomes a schema that admits everything, and so does
// what is above 64 KiB.
func Inlined(schema any) any {
	text, err := json.Marshal(schema)
	if err != nil || !strings.Contains(string(text), `"$`) {
		return schema
	}
	w := inliner{root: schema, open: map[string]int{}, left: maxInlined}
	return w.schema(schema)
}

type inliner struct {
	root any
	open map[string]int // how often each reference is being written out
	deep int            // the sum of open
	left int
}

// What a schema has by these keywords is no schema.
var dataKeywords = []string{"enum", "const", "default", "examples", "required"}

// What a schema has by these keywords has schemas by names.
var namedKeywords = []string{"properties", "patternProperties", "dependentSchemas"}

// What becomes meaningless without references.
var referenceKeywords = []string{"$ref", "$defs", "definitions", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id"}

// Keywords that explain and check nothing: beside a reference they replace those of its target.
var annotationKeywords = []string{"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}

func (w *inliner) schema(v any) any {
	of, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		value := of[key]
		w.count(key, value)
		switch {
		case slices.Contains(referenceKeywords, key):
			continue
		case slices.Contains(namedKeywords, key):
			value = w.each(value)
		case !slices.Contains(dataKeywords, key):
			value = w.schemas(value)
		}
		out[key] = value
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := of[key].(string); ok {
			out = join(out, w.target(ref))
		}
	}
	return out
}

// count counts a member of what a reference leads to, without the schemas in it.
func (w *inliner) count(key string, value any) {
	if w.deep == 0 {
		return
	}
	w.left -= len(key)
	if _, nested := value.(map[string]any); !nested || slices.Contains(dataKeywords, key) {
		text, _ := json.Marshal(value)
		w.left -= len(text)
	}
}

// schemas is a schema, or those of an array.
func (w *inliner) schemas(v any) any {
	list, ok := v.([]any)
	if !ok {
		return w.schema(v)
	}
	out := make([]any, len(list))
	for i := range list {
		out[i] = w.schema(list[i])
	}
	return out
}

func (w *inliner) each(v any) any {
	of, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		w.count(name, nil)
		out[name] = w.schema(of[name])
	}
	return out
}

// target is what a reference leads to, written out; empty if it cannot be.
func (w *inliner) target(ref string) map[string]any {
	at, ok := w.find(ref)
	if !ok || w.open[ref] == maxSelf || w.deep == maxDeep || w.left <= 0 {
		return nil
	}
	w.open[ref]++
	w.deep++
	out, _ := w.schema(at).(map[string]any)
	w.open[ref]--
	w.deep--
	if w.left <= 0 {
		return nil
	}
	return out
}

// find follows a reference of the form #, or # with a JSON Pointer.
func (w *inliner) find(ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(path)
	if !ok || err != nil || path != "" && path[0] != '/' {
		return nil, false
	}
	at := w.root
	for _, step := range strings.Split(path, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch of := at.(type) {
		case map[string]any:
			if at, ok = of[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(of) {
				return nil, false
			}
			at = of[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// join is a schema that demands what two demand.
func join(schema, target map[string]any) map[string]any {
	for key := range target {
		if _, both := schema[key]; both && !slices.Contains(annotationKeywords, key) {
			all, _ := schema["allOf"].([]any)
			schema["allOf"] = append(slices.Clip(all), target)
			return schema
		}
	}
	out := map[string]any{}
	maps.Copy(out, target)
	maps.Copy(out, schema)
	return out
}

// An Output checks results against a page's outputSchema.
type Output struct{ schema *jsonschema.Resolved }

// NewOutput makes an Output of a decoded schema without references. The schema must be of type object: JetBrains' client
// drops a whole list for another.
func NewOutput(schema any) (*Output, error) {
	of, _ := schema.(map[string]any)
	if of["type"] != "object" {
		return nil, errors.New("it is not of type object")
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var decoded jsonschema.Schema
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, err
	}
	resolved, err := decoded.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &Output{resolved}, nil
}

// maxChecked bounds, in bytes, the structuredContent that is checked.
const maxChecked = 1 << 20

// Check returns an error if a result has no structuredContent of the schema. An error of a tool needs none.
func (o *Output) Check(result wire.Value) error {
	structured := result.Get("structuredContent")
	switch {
	case structured == nil && result.Get("isError").True():
		return nil
	case structured.Kind() != wire.Object:
		return errors.New("it is no object")
	case len(structured) > maxChecked:
		return fmt.Errorf("it has %d bytes; the limit is %d", len(structured), maxChecked)
	}
	var v any
	if err := json.Unmarshal(structured, &v); err != nil {
		return err
	}
	return o.schema.Validate(v)
}
