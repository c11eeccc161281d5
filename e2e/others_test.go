package e2e

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the README says that others do not do: each says so itself. A new version that does makes this test fail, and
// the table's cell with it.
func TestWhatOthersDoNot(t *testing.T) {
	t.Parallel()
	t.Run("@mcp-b/global", func(t *testing.T) {
		t.Parallel()
		got := run[struct {
			Before, After, Refused, Foreign string
			Notify                          bool
			Updated                         []string
		}](open(t, noFlag, serve(t, page{tag: globalServer(t) + `<script src="/agent.js"></script>`, script: `
			let text = "before";
			const uri = location.origin + "/state/field";
			document.modelContext.registerResource({ uri, name: "Field", read: () => ({ contents: [{ uri, text }] }) });
		`})), `
			const a = await agent.connect("legacy", agent.tab());
			const before = await a.read(uri);
			const refused = await a.subscribe(uri).then(() => "", String);
			text = "after";
			const foreign = await Promise.resolve().then(() => document.modelContext.registerResource({
				uri: "https://evil.example/x", name: "Of another", read: () => ({ contents: [] }) })).then(() => "taken", String);
			return { before, after: await a.read(uri), refused, foreign, updated: a.updated,
				notify: "notifyResourceUpdated" in document.modelContext };
		`)
		if got.Before != "before" || got.After != "after" || got.Foreign != "taken" {
			t.Errorf("%+v: its resources are not read as they were: this test proves nothing", got)
		}
		if got.Notify || len(got.Updated) > 0 || got.Refused == "" {
			t.Errorf("%+v: it tells of changes", got)
		}
	})
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			a := connectPeer(t, p, "http://127.0.0.1:1") // a browser is looked for with the first tool call
			if caps := a.session.InitializeResult().Capabilities; caps.Resources != nil {
				t.Errorf("it has resources: %+v", caps.Resources)
			}
			if _, err := a.session.ListResources(t.Context(), nil); err == nil {
				t.Error("it lists resources")
			}
			err := a.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "https://shop.example/state/cart"})
			if err == nil || !strings.Contains(err.Error(), "ethod not found") {
				t.Errorf("subscribed: %v", err)
			}
		})
	}
}
