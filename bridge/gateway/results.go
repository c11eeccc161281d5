//go:build !js

package gateway

import (
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/tools"
	"github.com/pagewire/pagewire/bridge/wire"
)

// What a page's tool has given goes on as the page wrote it, but for two things. Of content and structuredContent some
// programs show their model one, some the other: without a schema for the second, which WebMCP has not, both are text.
// And behind it is what has changed meanwhile.

// completeTool answers a call of a page's tool.
func (g *Gateway) completeTool(c *call, o toolOffer, r reply) {
	plain := c.agent == nil || c.agent.transport == TransportGateway || o.tool.OutputSchema != nil || r.failure != ""
	result, err := wire.Parse(r.contents, live.MaxDepth)
	if plain || err != nil || result.Kind() != wire.Object {
		g.complete(c, r)
		return
	}
	g.remind(c, o.origin(), func(block string) {
		r.contents = tools.TextOnly(result, block)
		g.complete(c, r)
	})
}
