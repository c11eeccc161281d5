package live

import (
	"bytes"
	"encoding/json"
	"strings"
)

// TextContent is text in a tool's result, as MCP has it.
type TextContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ImageContent is an image in a tool's result, as MCP has it: its bytes in base64.
type ImageContent struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

// AsText makes a text content.
func AsText(s string) TextContent { return TextContent{"text", s} }

// AsJSON makes a value content: one line of JSON.
func AsJSON(v any) TextContent { return AsText(Line(v)) }

// breaks are line ends for some readers, and JSON text may hold them unescaped: only within its strings.
var breaks = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// Line is a value as JSON text on one line, without HTML's escapes: a model pays for them. It is "" if the value has no
// JSON.
func Line(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return breaks.Replace(strings.TrimSuffix(b.String(), "\n"))
}
