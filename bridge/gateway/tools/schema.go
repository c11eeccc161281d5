package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pagewire/pagewire/bridge/wire"
)

// An Output checks results against a page's outputSchema.
type Output struct{ schema *jsonschema.Resolved }

// NewOutput makes an Output of a decoded schema. The schema must be of type object, since JetBrains' client drops the
// whole list for any other. It must have no references, since a check against a recursive one might never end.
func NewOutput(schema any) (*Output, error) {
	of, _ := schema.(map[string]any)
	if of["type"] != "object" {
		return nil, errors.New("it is not of type object")
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	if strings.Contains(string(text), `Ref":`) || strings.Contains(string(text), `"$ref"`) {
		return nil, errors.New("it has references")
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

// maxChecked bounds structuredContent, in bytes.
const maxChecked = 1 << 20

// Check returns an error if a result has no structuredContent that fits the schema. A tool's error needs none.
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
