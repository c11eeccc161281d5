package gateway

import (
	"github.com/pagewire/pagewire/bridge"
)

// A ToolRunner runs the tools of a page that has no page layer.
type ToolRunner interface {
	// RunTool runs a tool with the JSON text of an object. It must not block, nor call the Gateway. It calls done once,
	// later, with the JSON text of MCP's CallToolResult, unless cancel is called before. gone says that the page went
	// away before the result came.
	RunTool(name string, args []byte, done func(result []byte, gone bool)) (cancel func())
	// Look looks for the page layer, because a page of this origin has connected in another way, maybe this one. It must
	// not block, nor call the Gateway.
	Look()
}

// AttachTools takes on a page that has tools and no page layer. The caller sets them with SetTools. It fails with
// ErrDenied or ErrClosed.
func (g *Gateway) AttachTools(info PageInfo, runner ToolRunner) (*Page, error) {
	return g.attach(info, func(p *Page) {
		p.runner = runner
		g.arrived(p)
	})
}

// SetTools replaces the tools of a page that AttachTools has attached.
func (p *Page) SetTools(tools []bridge.Tool) error {
	defer p.g.lock()()
	return p.setTools(tools)
}

// callTool makes a page run a tool. The page's progress goes to the engine's call. If one of the conditions has
// changed, the tool does not run and the reply's failure is link.Stale. done is called once, unless end is called
// before; end is called once.
func (p *Page) callTool(id bridge.CallID, name string, args []byte, unless []condition, done func(reply)) (end func()) {
	if p.link != nil {
		return p.link.callTool(id, name, args, unless, done)
	}
	return p.runner.RunTool(name, args, func(result []byte, gone bool) {
		p.g.locked(func() { done(reply{contents: result, gone: gone}) })()
	})
}
