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
	return g.attach(info, func(p *Page) source { return &toolPage{p, runner} })
}

// SetTools says what tools a page has that was attached by AttachTools, in place of what was said before.
func (p *Page) SetTools(tools []bridge.Tool) error {
	p.g.mu.Lock()
	defer p.g.unlock()
	return p.setTools(tools)
}

// toolPage is a source of tools alone.
type toolPage struct {
	p      *Page
	runner ToolRunner
}

func (s *toolPage) callTool(_ bridge.CallID, name string, args []byte, _ []condition, done func(reply)) (end func()) {
	g := s.p.g
	return s.runner.RunTool(name, args, func(result []byte) {
		g.mu.Lock()
		defer g.unlock()
		done(reply{contents: result})
	})
}

// It has no resources.

func (s *toolPage) read(_, _, _ string, done func(reply)) (end func()) {
	done(lost)
	return func() {}
}
func (s *toolPage) watch(_ string, then func(bool)) { then(false) }
func (s *toolPage) unwatch(string)                  {}
func (s *toolPage) close()                          {}
