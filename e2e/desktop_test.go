package e2e

// Pages whose agents are on the desktop: they need no core of their own, and fetch none.

import (
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// desktopApp is a page's script: a resource that the page's tool changes.
const desktopApp = `
let value = "one";
const uri = location.origin + "/doc", context = navigator.modelContext ?? document.modelContext;
context.registerResource({ uri, name: "doc", read: () => value });
context.registerTool({ name: "set_doc", description: "Sets the doc", inputSchema: { type: "object", properties: { to: { type: "string" } } },
	execute: ({ to }) => { value = to; context.notifyResourceUpdated(uri); return { content: [{ type: "text", text: "set" }] }; } });`

// servesDesktop asserts that an agent lists the page's resource, reads it, calls its tool, and is told of the change.
func servesDesktop(t *testing.T, a *started, uri string) {
	t.Helper()
	testkit.Eventually(t, "the page's resource and tool are listed", func() bool {
		return a.Offers(uri) && slices.Contains(a.ToolNames(), "set_doc")
	})
	a.Watch(uri)
	if got := a.Text(uri); got != "one" {
		t.Errorf("read %q", got)
	}
	r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: "set_doc", Arguments: map[string]string{"to": "two"}})
	if err != nil || r.IsError {
		t.Fatalf("the tool: %+v, %v", r, err)
	}
	a.Told(uri)
	if got := a.Text(uri); got != "two" {
		t.Errorf("read %q after the change", got)
	}
}

// A page that may connect to the gateway and run its own scripts, and nothing else: no eval, no wasm, no worker, no
// fetch.
func TestDesktopAgentsUnderStrictPolicy(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			a := h.serve(t)
			s := serve(t, page{
				headers: map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'; " +
					"connect-src ws://" + h.hub},
				tag: `<script src="/pagewire.js" data-gateway="ws://` + h.hub +
					`"></script><script src="/app.js"></script>`,
				scripts: map[string]string{"/app.js": desktopApp},
			})
			open(t, m, s)
			servesDesktop(t, a, s.URL+"/doc")
		})
	}
}
