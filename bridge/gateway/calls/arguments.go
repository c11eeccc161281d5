package calls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// decode decodes a tool's arguments, an object. into has a pointer for each argument: *string,
// *int64, **int64, *bool or *[]string. Models write loosely, so each notation that can mean only
// one value is accepted: 4000.0, 4e3 and "4000" for 4000, "true" for true, and for a list a single
// string, or the list's JSON in a string. null and blank text count as absent. The error is for the
// model: it names the argument, and what it must be.
func decode(tool string, args []byte, into map[string]any) error {
	var given map[string]any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber() // a revision has more digits than a float64 shows
	if err := d.Decode(&given); err != nil {
		return fmt.Errorf("%s: the arguments must be a JSON object", tool)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if wanted := assign(into[strings.ToLower(name)], given[name]); wanted != "" {
			return fmt.Errorf("%s: %s must be %s", tool, name, wanted)
		}
	}
	return nil
}

// assign sets an argument, or returns what the argument must be. Without an argument of that name,
// to is nil.
func assign(to, value any) (wanted string) {
	text := "" // of a string, number or boolean
	switch value.(type) {
	case nil:
		return ""
	case string, json.Number, bool:
		if text = strings.TrimSpace(fmt.Sprint(value)); text == "" {
			return ""
		}
	}
	switch to := to.(type) {
	case *string:
		if text == "" {
			return "a string"
		}
		*to = fmt.Sprint(value)
	case **int64:
		*to = new(int64)
		return assign(*to, value)
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f, err := strconv.ParseFloat(text, 64)
			if n = int64(f); err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
				return "a whole number, such as 4000"
			}
		}
		*to = n
	case *bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return "true or false"
		}
		*to = yes
	case *[]string:
		list, isList := value.([]any)
		if !isList && json.Unmarshal([]byte(text), &list) != nil {
			list = []any{value}
		}
		for _, one := range list {
			s, ok := one.(string)
			if !ok || s == "" {
				return "a list of strings"
			}
			*to = append(*to, s)
		}
	}
	return ""
}
