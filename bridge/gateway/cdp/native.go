//go:build !js

package cdp

import (
	"encoding/json"

	"github.com/chromedp/cdproto/webmcp"

	"github.com/pagewire/pagewire/bridge"
)

// A native is the server of a document without Pagewire in a browser with WebMCP: the document's tools, and no resources. They
// are run by the browser, which tells us of them and of what they give (its WebMCP domain).
type native struct {
	home
	d     *document
	calls map[bridge.CallID]*invocation
}

var _ bridge.ToolHost = (*native)(nil)

// offer says what tools there are, as MCP describes tools.
func (n *native) offer(tools map[string]*webmcp.Tool) {
	list := make([]bridge.Tool, 0, len(tools))
	for name, t := range tools {
		var schema map[string]any
		json.Unmarshal(t.InputSchema, &schema)
		if schema == nil {
			schema = map[string]any{}
		}
		if kind, ok := schema["type"]; !ok {
			schema["type"] = "object"
		} else if kind != "object" {
			n.d.b.log.Warn("a tool is not served: its inputSchema is not of type object", "tool", name, "origin", n.d.origin)
			continue
		}
		described := map[string]any{"name": name, "description": t.Description, "inputSchema": schema}
		if t.Annotations != nil {
			described["annotations"] = map[string]any{"readOnlyHint": t.Annotations.ReadOnly}
		}
		text, err := json.Marshal(described)
		if err != nil {
			continue
		}
		list = append(list, bridge.Tool{Name: name, JSON: text})
	}
	n.mu.Lock()
	defer n.unlock()
	if err := n.engine.SetTools(n.now(), list); err != nil {
		n.d.b.log.Warn("a page's tools are not served", "origin", n.d.origin, "error", err)
	}
}

func (n *native) Send(_ bridge.PortID, m bridge.Message) {
	if n.conn.in.push(m.AppendTo(make([]byte, 0, len(m.Head)+len(m.Contents)+len(m.Tail)))) > maxUnread {
		go n.d.overrun() // not from here: the document's lock comes before ours
	}
}

// Read is never called: there are no resources.
func (n *native) Read(call bridge.CallID, _ bridge.Request) {
	n.engine.Complete(n.now(), call, bridge.Result{Failure: bridge.ReadFailed})
}

func (n *native) Watched(string, bool) {}

func (n *native) CallTool(call bridge.CallID, t bridge.ToolCall) {
	i, err := n.d.s.runner.invoke(n.d.frameID, t.Name, t.Arguments, func(r ran) {
		n.mu.Lock()
		defer n.unlock()
		if n.calls[call] != nil && !n.over {
			n.engine.Complete(n.now(), call, bridge.Result{Contents: r.result})
		}
	})
	if err != nil {
		n.engine.Complete(n.now(), call, bridge.Result{Contents: failed("The browser is gone.").result})
		return
	}
	n.calls[call] = i
	if !n.flushes {
		n.link.signal()
	}
}

// close ends the tools that run, too: of those of a document that has gone the browser says nothing more.
func (n *native) close() {
	n.home.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	for call := range n.calls {
		n.End(call)
	}
}

func (n *native) End(call bridge.CallID) {
	if i := n.calls[call]; i != nil {
		delete(n.calls, call)
		n.d.s.runner.cancel(i)
	}
}
