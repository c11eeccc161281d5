//go:build !js

package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/tools"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A page's tool result goes on as the page wrote it, with two changes. Some programs show their model content, others
// structuredContent: without an output schema, which WebMCP does not have, both become text. And a reminder of changes
// follows.

// completeTool answers a call of a page's tool.
func (g *Gateway) completeTool(c *toolCall, o toolOffer, r reply) {
	plain := c.agent == nil || o.tool.OutputSchema != nil || r.failure != ""
	result, err := wire.Parse(r.contents, live.MaxDepth)
	if plain || err != nil || result.Kind() != wire.Object {
		g.complete(c.call, r)
		return
	}
	g.tools.own.Remind(c, o.origin(), func(block string) {
		r.contents = tools.TextOnly(result, block)
		g.complete(c.call, r)
	})
}

// olderFor notes, when a page's tool is called, the URIs at that origin of which the agent has an older state. URIs
// that the tool depends on count even if the agent was told of the change.
func (g *Gateway) olderFor(c *toolCall, o toolOffer) {
	m, origin := c.Memory(), o.origin()
	if m == nil {
		return
	}
	c.older = map[string]bool{}
	for _, n := range m.News(origin) {
		if live.OriginOf(n.URI) == origin {
			c.older[n.URI] = true
		}
	}
	if o.fresh == nil {
		return
	}
	for _, own := range o.fresh.URIs {
		uri := g.knownAs(m, o, own)
		if m.Old(uri) {
			m.Mention(uri, 0) // once more
			c.older[uri] = true
		}
	}
}

// text is a value as JSON text; nil if it is not present or cannot be encoded.
func text(v any, present bool) []byte {
	if !present {
		return nil
	}
	t, err := plainJSON(v)
	if err != nil {
		return nil
	}
	return t
}

// plainJSON is a value as short JSON text: json.Marshal makes six bytes of each "<".
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
