package live

import (
	"bytes"
	"encoding/json"
	"strings"
)

// TextContent is MCP's TextContent of a tool's result.
type TextContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ImageContent is MCP's ImageContent of a tool's result. Data is base64.
type ImageContent struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

// AsText returns s as a TextContent.
func AsText(s string) TextContent { return TextContent{"text", s} }

// AsJSON returns v as a TextContent of one line of JSON.
func AsJSON(v any) TextContent { return AsText(Line(v)) }

// breaks are characters that some readers take for line ends, each with its escape. JSON allows
// them unescaped in strings. One strings.Replacer for the three would take ten times as long for an
// image.
var breaks = [...][2]string{{"\u0085", `\u0085`}, {"\u2028", `\u2028`}, {"\u2029", `\u2029`}}

// Line returns a value as JSON text on one line, or "" if it cannot be encoded. It leaves out
// HTML's escapes, which would cost a model tokens.
func Line(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	line := strings.TrimSuffix(b.String(), "\n")
	for _, c := range breaks {
		line = strings.ReplaceAll(line, c[0], c[1])
	}
	return line
}
