//go:build !js

package gateway

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// Our own tools. Clients that put tools off show a model their names first, and some models see no instructions: each
// name and description stands alone. All that they say is text.

const (
	toolList = "list_page_resources"
	toolRead = "read_page_resource"
	toolWait = "wait_for_page_update"
)

var ownTools = []*mcp.Tool{
	{
		Name: toolList,
		Description: "List the live state of the web pages that are open in the user's browser (such as a cart, a " +
			"document, a form): " +
			"URI, title, type and tab of each resource. Read one with " + toolRead + ".",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"contains":{"type":"string","description":"Only resources whose URI, title or description contains this text"},` +
			`"tab":{"type":"integer","minimum":1,"description":"Only resources of this tab"}},"additionalProperties":false}`),
		Annotations: readOnly("List page resources"),
	},
	{
		Name: toolRead,
		Description: "Read what an open web page shows now: the current state of one of its live resources. The " +
			"first line gives a revision; " +
			"with that as since only what has changed comes back, as a JSON patch or a diff. Long texts come in pages.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"uri":{"type":"string","description":"As ` + toolList + ` gives it"},` +
			`"since":{"type":"integer","minimum":0,"description":"A revision whose contents you still have: only the difference is given"},` +
			`"pointer":{"type":"string","description":"JSON Pointer to a part, such as /items/0"},` +
			`"lines":{"type":"string","description":"Lines of a text, such as 10-20"},` +
			`"cursor":{"type":"string","description":"Where to go on in a long text, as the page before says"},` +
			`"max_chars":{"type":"integer","minimum":2000,"maximum":100000,"description":"Longest result; default 8000"}` +
			`},"required":["uri"],"additionalProperties":false}`),
		Annotations: readOnly("Read a page resource"),
	},
	{
		Name: toolWait,
		Description: "Wait until live state of an open web page changes, and get what it is then: instead of reading " +
			"it again and again. " +
			"Returns at once if it has changed since you read it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"uris":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Default: all that you have read"},` +
			`"since":{"type":"integer","minimum":0,"description":"The last revision that you were given, if you still have what you read: then only the difference is given"},` +
			`"timeout_ms":{"type":"integer","minimum":0,"maximum":25000,"description":"How long to wait at most; default 20000"}},"additionalProperties":false}`),
		Annotations: readOnly("Wait for a page to change"),
	},
	changesTool,
}

func readOnly(title string) *mcp.ToolAnnotations {
	open := true
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, OpenWorldHint: &open}
}

// fail completes a call of one of our tools that could not be done, with a sentence.
func (g *Gateway) fail(c *call, why string) { g.say(c, "", true, live.AsText(why)) }

// say completes a call of one of our tools that was about pages of an origin, or with "" of any, and says what else has
// changed.
func (g *Gateway) say(c *call, origin string, failed bool, content ...any) {
	g.remind(c, origin, func(block string) {
		if block != "" {
			content = append(content, live.AsText(block))
		}
		text, err := json.Marshal(struct {
			Content []any `json:"content"`
			IsError bool  `json:"isError,omitempty"`
		}{content, failed})
		if err != nil {
			text = []byte(`{"content":[],"isError":true}`)
		}
		g.engine.Complete(g.now(), c.id, bridge.Result{Contents: text})
	})
}

func (g *Gateway) list(c *call, args []byte) {
	var in struct {
		Contains string
		Tab      int
	}
	if err := json.Unmarshal(args, &in); err != nil {
		g.fail(c, toolList+": "+err.Error())
		return
	}
	type item struct {
		URI         string `json:"uri"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		MIMEType    string `json:"mimeType,omitempty"`
	}
	out := struct {
		Resources []item `json:"resources"`
		Templates []item `json:"templates,omitempty"`
		Note      string `json:"note,omitempty"`
	}{Resources: []item{}}
	const most = 200
	for _, key := range slices.SortedFunc(maps.Keys(g.catalog.routes), taburi.Compare) {
		r := g.catalog.routes[key]
		s := &r.shown
		if s.Unlisted || in.Tab != 0 && r.tab() != in.Tab ||
			in.Contains != "" && !strings.Contains(strings.ToLower(key+"\n"+s.Title+"\n"+s.Description),
				strings.ToLower(in.Contains)) {
			continue
		}
		if len(out.Resources)+len(out.Templates) == most {
			out.Note = "There are more: narrow the list with contains or tab."
			break
		}
		i := item{key, s.Title, s.Description, s.MIMEType}
		if strings.Contains(key, "{") {
			out.Templates = append(out.Templates, i)
		} else {
			out.Resources = append(out.Resources, i)
		}
	}
	if len(out.Resources)+len(out.Templates) == 0 {
		out.Note = "No open page offers a resource that fits."
	}
	for _, about := range slices.Sorted(maps.Keys(g.notices)) {
		out.Note = strings.TrimSpace(out.Note + " " + g.notices[about])
	}
	g.say(c, "", false, live.AsJSON(out))
}

// tab is the number of the tab that a route leads to.
func (r *route) tab() int {
	if !r.page.Hub {
		return r.page.tab.number
	}
	var meta struct {
		Tab int `json:"pagewire/tab"`
	}
	_ = json.Unmarshal(r.shown.Meta, &meta)
	return meta.Tab
}
