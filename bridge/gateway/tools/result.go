package tools

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// TextOnly returns a tool's result with its structuredContent as text, and further texts after that. It skips "".
func TextOnly(result wire.Value, more ...string) []byte {
	return withTexts(result, result.Get("structuredContent"), more)
}

// WithTexts returns a tool's result with further texts after its content. It skips "".
func WithTexts(result wire.Value, more ...string) []byte { return withTexts(result, nil, more) }

// withTexts makes a text of structured, unless it is nil. structured must be the result's structuredContent.
func withTexts(result, structured wire.Value, more []string) []byte {
	content := result.Get("content")
	more = slices.DeleteFunc(more, func(text string) bool { return text == "" })
	if structured == nil && len(more) == 0 {
		return result
	}
	var out wire.Text
	result.Members(func(key, value wire.Value) bool {
		if (structured == nil || !key.Is("structuredContent")) && !key.Is("content") {
			out = out.Bytes(key).Raw(":").Bytes(value).Raw(",")
		}
		return true
	})
	list := wire.Text(nil)
	add := func(part []byte) {
		if list != nil {
			list = list.Raw(",")
		}
		list = list.Bytes(part)
	}
	content.Elements(func(part wire.Value) bool {
		add(part)
		return true
	})
	if structured != nil && !says(content, structured) {
		add(textPart(string(structured)))
	}
	for _, text := range more {
		add(textPart(text))
	}
	return wire.Text("{").Bytes(out).Raw(`"content":[`).Bytes(list).Raw("]}")
}

func textPart(text string) []byte { return wire.Text(`{"type":"text","text":`).Str(text).Raw("}") }

// says reports whether a text of content has the same JSON as structured.
func says(content, structured wire.Value) (found bool) {
	want := compact(structured)
	content.Elements(func(part wire.Value) bool {
		text, _ := part.Get("text").Text()
		found = found || bytes.Equal(compact([]byte(text)), want)
		return !found
	})
	return found
}

// compact removes white space from JSON text. Any other text stays unchanged.
func compact(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
