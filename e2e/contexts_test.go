package e2e

import (
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/engine"
)

// A document that gives up its origin-keyed agent cluster: the browser refuses it tools, so agents that know only those
// miss the resources, and the developer is told. All others find them.
func TestOriginAgentCluster(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, m,
				serve(t, page{headers: map[string]string{"Origin-Agent-Cluster": "?0"}, script: field.script}))
			if keyed := run[bool](b, `return globalThis.originAgentCluster ?? false`); keyed {
				t.Fatal("the agent cluster is origin-keyed: this test would prove nothing")
			}
			if text := run[string](b, `
				const a = await agent.connect("legacy");
				await a.subscribe(uri);
				document.getElementById("field").value = "typed";
				navigator.modelContext.notifyResourceUpdated(uri);
				await agent.until(() => a.updated.length);
				return a.read(uri);
			`); text != "typed" {
				t.Errorf("read %q", text)
			}
			if told := b.said("pagewire: no tool resources_list: SecurityError"); told != (m.name == native.name) {
				t.Errorf("the developer was told: %v", told)
			}
		})
	}
}

// Without a secure context there is no WebMCP: nothing is installed, connecting says why, and so does the console of a page
// that has a gateway.
func TestInsecureContext(t *testing.T) {
	t.Parallel()
	insecure := mode{name: "a host of its own", flags: []string{"--host-resolver-rules=MAP " + engine.InsecureHost +
		" 127.0.0.1", "--enable-features=WebMCP"}}
	s := serve(t,
		page{tag: `<script src="/pagewire.js" data-gateway="ws://127.0.0.1:1"></script>`,
			script: `let thrown = ""; try { pagewire.connect(); } catch (error) { thrown = error.message; }`})
	b := open(t, insecure, s)
	b.navigate(strings.Replace(s.URL, "127.0.0.1", engine.InsecureHost, 1))
	got := run[struct {
		Secure  bool
		Context bool
		Thrown  string
	}](b, `return { secure: isSecureContext, context: "modelContext" in document || "modelContext" in navigator, thrown }`)
	if got.Secure {
		t.Fatal("the context is secure: this test would prove nothing")
	}
	if got.Context || !strings.Contains(got.Thrown, "secure context") {
		t.Errorf("%+v", got)
	}
	testkit.Eventually(t, "the page with a gateway is told", func() bool { return b.said("a page needs a secure context") })
}

// A model context that is there, the browser's or a polyfill's, is
// extended, on its prototype, and stays what it was.
func TestPolyfillIsExtended(t *testing.T) {
	t.Parallel()
	for _, m := range toolModes(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, m.mode, serve(t, page{
				head: m.head +
					`<script>const before = document.modelContext, prototype = Object.getPrototypeOf(before), register = prototype.registerTool;</script>`,
				script: field.script,
			}))
			got := run[map[string]bool](b, `
				const out = {
					same: document.modelContext === before, prototype: Object.getPrototypeOf(before) === prototype, tool: prototype.registerTool === register,
					own: !Object.hasOwn(before, "registerResource"), there: Object.hasOwn(prototype, "registerResource"), alias: navigator.modelContext === before,
				};
				pagewire.uninstall();
				out.restored = !("registerResource" in before) && document.modelContext === before;
				return out;
			`)
			for what, holds := range got {
				if !holds {
					t.Errorf("%s: false", what)
				}
			}
			if len(got) != 7 {
				t.Errorf("%v", got)
			}
		})
	}
}
