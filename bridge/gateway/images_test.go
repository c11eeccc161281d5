package gateway

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An image reaches a model if it is one for a model, whatever its mimeType says.
func TestImagesOfReads(t *testing.T) {
	const png, jpeg = "iVBORw0KGgoAAAAN", "/9j/4AAQSkZJRgAB"
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), map[string]string{app + "/image": ""})
	a := openAgent(t, g)
	item := func(mime, blob string) string {
		return `{"uri":"` + app + `/image","mimeType":"` + mime + `","blob":"` + blob + `"}`
	}
	for name, c := range map[string]struct {
		contents string
		args     map[string]any
		images   []string
		text     string
	}{
		"PNG":                  {contents: item("image/png", png), images: []string{"image/png"}},
		"JPEG as PNG":          {contents: item("image/png", jpeg), images: []string{"image/jpeg"}},
		"no type":              {contents: item("application/octet-stream", png), images: []string{"image/png"}},
		"SVG":                  {contents: item("image/svg+xml", "PHN2Zy8+PHN2Zy8+"), text: "GIF and WebP"},
		"JSON as PNG":          {contents: item("image/png", "eyJlcnJvciI6MX0K"), text: "bytes, which are not shown: 12"},
		"empty":                {contents: item("image/png", ""), text: "bytes, which are not shown: 0"},
		"21 of them":           {contents: strings.TrimSuffix(strings.Repeat(item("image/png", png)+",", 21), ","), images: strings.Fields(strings.Repeat("image/png ", 20)), text: "not shown: 12"},
		"too long":             {contents: item("image/png", png+strings.Repeat("AAAA", 1_250_000)), text: "not shown: 3750012"},
		"long":                 {contents: item("image/png", png+strings.Repeat("AAAA", 1_249_996)), images: []string{"image/png"}},
		"long, with max_chars": {contents: item("image/png", png+strings.Repeat("AAAA", 500)), args: map[string]any{"max_chars": 2000}, text: "leave max_chars out"},
	} {
		p.page.Contents(func(string) string { return "[" + c.contents + "]" })
		args := map[string]any{"uri": app + "/image"}
		for k, v := range c.args {
			args[k] = v
		}
		r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_page_resource", Arguments: args})
		if err != nil {
			t.Fatal(name, err)
		}
		var images []string
		text := ""
		for _, c := range r.Content {
			switch c := c.(type) {
			case *mcp.ImageContent:
				images = append(images, c.MIMEType)
			case *mcp.TextContent:
				text += c.Text
			}
		}
		if strings.Join(images, " ") != strings.Join(c.images, " ") || !strings.Contains(text, c.text) {
			t.Errorf("%s: images %v, %.400s", name, images, text)
		}
	}
}
