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
	return w.copy(schema, false)
}

type inliner struct {
	root any
	open map[string]int // how often each reference is being written out
	deep int            // the sum of open
	left int            // bytes
}

var (
	// What a schema has by these keywords is data, or has schemas by names.
	dataKeywords  = []string{"enum", "const", "default", "examples", "required"}
	namedKeywords = []string{"properties", "patternProperties", "dependentSchemas"}
	// These have no meaning without references.
	referenceKeywords = []string{"$ref", "$defs", "definitions", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id"}
	// Beside a reference these replace those of its target. Others are demanded too.
	annotationKeywords = []string{"title", "description", "default", "examples"}
)

// copy copies a part of a schema, with references written out. named means that the keys of v are names and no keywords.
func (w *inliner) copy(v any, named bool) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.copy(v[i], false)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			w.count(key)
			switch {
			case !named && slices.Contains(referenceKeywords, key):
			case !named && slices.Contains(dataKeywords, key):
				w.count(v[key])
				out[key] = v[key]
			default:
				out[key] = w.copy(v[key], !named && slices.Contains(namedKeywords, key))
			}
		}
		if ref, ok := v["$ref"].(string); ok && !named {
			return join(out, w.target(ref))
		}
		return out
	}
	w.count(v)
	return v
}

// count counts what is written out.
func (w *inliner) count(v any) {
	if w.deep > 0 {
		text, _ := json.Marshal(v)
		w.left -= len(text)
	}
}

// target is what a reference leads to, written out; empty if it cannot be.
func (w *inliner) target(ref string) map[string]any {
	at := w.find(ref)
	if w.open[ref] == maxSelf || w.deep == maxDeep || w.left <= 0 {
		return nil
	}
	w.open[ref]++
	w.deep++
	out, _ := w.copy(at, false).(map[string]any)
	w.open[ref]--
	w.deep--
	if w.left <= 0 {
		return nil
	}
	return out
}

// find follows a reference of the form #, or # with a JSON Pointer. It is nil for any other.
func (w *inliner) find(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(path)
	if !ok || err != nil || path != "" && path[0] != '/' {
		return nil
	}
	at := w.root
	for _, step := range strings.Split(path, "/")[1:] {
		switch of := at.(type) {
		case map[string]any:
			at = of[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			i, err := strconv.ParseUint(step, 10, 31)
			if err != nil || i >= uint64(len(of)) {
				return nil
			}
			at = of[i]
		default:
			return nil
		}
	}
	return at
}

// join is a schema that demands what two demand.
func join(schema, target map[string]any) map[string]any {
	out := maps.Clone(schema)
	for key, value := range target {
		_, both := schema[key]
		switch {
		case !both:
			out[key] = value
		case !slices.Contains(annotationKeywords, key):
			all, _ := schema["allOf"].([]any)
			out = maps.Clone(schema)
			out["allOf"] = append(slices.Clip(all), target)
			return out
		}
	}
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
