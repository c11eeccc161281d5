package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// The README says that others lack these features, and each confirms it. When a new version has
// one, this test fails, and the cell of the README's table is wrong.
func TestWhatOthersDoNot(t *testing.T) {
	t.Parallel()
	t.Run("@mcp-b/global", func(t *testing.T) {
		t.Parallel()
		open(t, noFlag, serve(t, page{tag: globalServer(t) + `<script src="/agent.js"></script>`, script: `
			let text = "before";
			const uri = location.origin + "/state/field";
			document.modelContext.registerResource({ uri, name: "Field", read: () => ({ contents: [{ uri, text }] }) });
		`})).expectations(`
			const a = await agent.connect("legacy", agent.tab());
			expect("before, or this test proves nothing", await a.read(uri), "before");
			expect("it takes subscriptions", await a.subscribe(uri).then(() => true, () => false), false);
			text = "after";
			const foreign = await Promise.resolve().then(() => document.modelContext.registerResource({
				uri: "https://evil.example/x", name: "Of another", read: () => ({ contents: [] }) })).then(() => "taken", String);
			expect("read as it is, and another origin's taken, or this test proves nothing", [await a.read(uri), foreign], ["after", "taken"]);
			expect("told of changes", [a.updated, "notifyResourceUpdated" in document.modelContext], [[], false]);
		`)
	})
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			// it looks for a browser at the first tool call
			a := connectPeer(t, p, "http://127.0.0.1:1")
			if caps := a.session.InitializeResult().Capabilities; caps.Resources != nil {
				t.Errorf("it has resources: %+v", caps.Resources)
			}
			if _, err := a.session.ListResources(t.Context(), nil); err == nil {
				t.Error("it lists resources")
			}
			var waits []string
			for tool, err := range a.session.Tools(t.Context(), nil) {
				testkit.OK(t, err)
				if schema, is := tool.InputSchema.(map[string]any); is &&
					strings.Contains(tool.Name, "wait") {
					for name := range schema["properties"].(map[string]any) {
						waits = append(waits, name)
					}
				}
			}
			known := []string{"pageId", "text", "textGone", "time", "timeout"}
			if !slices.Contains(waits, "text") ||
				slices.ContainsFunc(waits, func(name string) bool {
					return !slices.Contains(known, name)
				}) {
				t.Errorf("it waits for a given text, and for nothing else: %q", waits)
			}
			err := a.session.Subscribe(t.Context(),
				&mcp.SubscribeParams{URI: "https://shop.example/state/cart"})
			if err == nil || !strings.Contains(err.Error(), "ethod not found") {
				t.Errorf("subscribed: %v", err)
			}
		})
	}
}
