package e2e

import (
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/engine"
)

// A document that gives up its origin-keyed agent cluster. The browser refuses it tools, so agents
// that only know tools miss the resources, and the developer is notified. All others find the
// resources.
func TestOriginAgentCluster(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		b := open(t, m,
			serve(t, page{headers: map[string]string{"Origin-Agent-Cluster": "?0"},
				script: field.script}))
		b.expectations(`
			expect("origin-keyed: this test would prove nothing", globalThis.originAgentCluster ?? false, false);
			const a = await agent.connect("legacy");
			await a.subscribe(uri);
			document.getElementById("field").value = "typed";
			navigator.modelContext.notifyResourceUpdated(uri);
			await agent.until(() => a.updated.length);
			expect("read", await a.read(uri), "typed");
		`)
		if told := b.said("pagewire: no tool resources_list: SecurityError"); told != (m.name == native.name) {
			t.Errorf("the developer was told: %v", told)
		}
	})
}

// Without a secure context there is no WebMCP. Nothing is installed. The error of connect() has the
// reason, and so has the console of a page with a gateway.
func TestInsecureContext(t *testing.T) {
	t.Parallel()
	insecure := mode{name: "a host of its own", flags: []string{"--host-resolver-rules=MAP " + engine.InsecureHost +
		" 127.0.0.1", "--enable-features=WebMCP"}}
	s := serve(t, page{tag: `<script src="/pagewire.js" data-gateway="ws://127.0.0.1:1"></script>`,
		script: `let thrown = ""; try { pagewire.connect(); } catch (error) { thrown = error.message; }`})
	b := open(t, insecure, s)
	b.navigate(strings.Replace(s.URL, "127.0.0.1", engine.InsecureHost, 1))
	b.expectations(`
		expect("secure: this test would prove nothing", isSecureContext, false);
		expect("a context", "modelContext" in document || "modelContext" in navigator, false);
		expectPart("thrown", thrown, "secure context");
	`)
	testkit.Eventually(t, "the page with a gateway is told", func() bool { return b.said("a page needs a secure context") })
}

// An existing model context, of the browser or of a polyfill, is extended on its prototype, and
// stays the same object.
func TestPolyfillIsExtended(t *testing.T) {
	t.Parallel()
	each(t, toolModes(t), func(t *testing.T, m toolMode) {
		open(t, m.mode, serve(t, page{
			head: m.head +
				`<script>const before = document.modelContext, prototype = Object.getPrototypeOf(before), register = prototype.registerTool;</script>`,
			script: field.script,
		})).expectations(`
			expect("same", [document.modelContext === before, navigator.modelContext === before], [true, true]);
			expect("prototype", [Object.getPrototypeOf(before) === prototype, prototype.registerTool === register], [true, true]);
			expect("where it is", [Object.hasOwn(before, "registerResource"), Object.hasOwn(prototype, "registerResource")], [false, true]);
			pagewire.uninstall();
			expect("restored", ["registerResource" in before, document.modelContext === before], [false, true]);
		`)
	})
}
