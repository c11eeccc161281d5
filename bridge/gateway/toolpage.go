//go:build !js

package gateway

import (
	"github.com/pagewire/pagewire/bridge"
)

// A ToolRunner runs the tools of a page that has no page layer.
type ToolRunner interface {
	// RunTool runs a tool with the JSON text of an object. It must not block, nor call the Gateway. done is to be
	// called once, later, with the JSON text of MCP's CallToolResult, unless cancel was called before.
	RunTool(name string, args []byte, done func(result []byte)) (cancel func())
}

// AttachTools takes on a page that has tools and no page layer: SetTools says which. It fails with ErrDenied or
// ErrClosed.
func (g *Gateway) AttachTools(info PageInfo, runner ToolRunner) (*Page, error) {
	return g.attach(info, func(p *Page) { p.runner = runner })
}

// SetTools says what tools a page has that was attached by AttachTools, in place of what was said before.
func (p *Page) SetTools(tools []bridge.Tool) error {
	p.g.mu.Lock()
	defer p.g.unlock()
	return p.setTools(tools)
}

// callTool has a tool run for a call of the engine, which is told of its progress, unless something has changed: then
// the reply's failure is link.Stale. done is called once, unless end was called before; end is called once.
func (p *Page) callTool(id bridge.CallID, name string, args []byte, unless []condition, done func(reply)) (end func()) {
	if p.link != nil {
		return p.link.callTool(id, name, args, unless, done)
	}
	return p.runner.RunTool(name, args, func(result []byte) {
		p.g.mu.Lock()
		defer p.g.unlock()
		done(reply{contents: result})
	})
}
