package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A host in the page: chrome-devtools-mcp asks for tools by an event, and keeps the groups that it
// was answered with. Its callers have no identity but the revision that they were given.
const devtools = tooling + `
	const discover = (target = window) => {
		const groups = [];
		target.dispatchEvent(Object.assign(new CustomEvent("devtoolstooldiscovery"), { respondWith: (group) => groups.push(group) }));
		return groups;
	};
	const host = async () => {
		let groups = discover();
		await agent.until(() => (groups = discover()).at(-1)?.name === "Pagewire" && groups.at(-1).tools.length);
		return Object.fromEntries(groups.at(-1).tools.map((tool) => [tool.name, tool]));
	};
	let total = 1, ran = 0;
	const state = () => JSON.stringify({ items: Array.from({ length: 40 }, (_, i) => ({ sku: "article " + i })), total });
	const changed = (now) => { total = now; document.modelContext.notifyResourceUpdated(at("cart")); };
	const cart = () => document.modelContext.registerResource({ uri: at("cart"), name: "Cart", mimeType: "application/json", read: state });
	const tools = async () => {
		pagewire.configure({ freshState: { checkout: [at("cart")] } });
		await document.modelContext.registerTool({ name: "checkout", description: "Pays.", execute: (input) => { ran++; return "paid " + JSON.stringify(input); } });
		await document.modelContext.registerTool({ name: "add", description: "Adds.", inputSchema: { type: "object", properties: { to: { type: "integer" } } }, execute: ({ to }) => { changed(to); return { content: [{ type: "text", text: "added" }] }; } });
	};`

// The tools that a page gives to a host by an event: listed at the second event, with deltas, told
// of changes by the next result, and refused to a caller that does not know the present state.
func TestToolDiscovery(t *testing.T) {
	t.Parallel()
	each(t, allToolModes(t), func(t *testing.T, m toolMode) {
		s := serve(t, page{head: m.head, tag: m.tag, script: devtools})
		open(t, m.mode, s).expectations(`
			cart();
			await tools();
			const { checkout, add, resources_list, resources_read, resources_wait } = await host();
			expect("list", (await resources_list.execute({})).resources.map(({ uri }) => uri), [at("cart")]);
			const first = await resources_read.execute({ uri: at("cart") });
			expect("read", first.contents[0].text, state());
			const since = first.revision;
			expect("unchanged", Object.keys(await resources_read.execute({ uri: at("cart"), since })), ["revision", "unchanged"]);
			const waits = resources_wait.execute({ uris: [at("cart")], since });
			changed(2);
			expect("waited", (await waits).updated, [at("cart")]);
			const second = await resources_read.execute({ uri: at("cart"), since });
			expect("the difference alone", [second.patch, second.contents, JSON.stringify(second).length < 120], [[{ op: "replace", path: "/total", value: 2 }], undefined, true]);
			const third = await resources_read.execute({ uri: at("cart"), since: second.revision + "0" });
			expect("another's revision", [third.contents.length, third.note.length > 9], [1, true]);

			const paid = (pagewire_since) => checkout.execute({ a: 1, pagewire_since });
			const refusal = async (what, since) => {
				const { isError, content } = await paid(since);
				expect(what, [isError, ran], [true, 0]);
				return content[0].text;
			};
			const now = await refusal("without a revision", undefined);
			expectPart("with the state", now, '"total":2}}');
			const stale = await refusal("with an older one", since);
			expectPart("with the difference", stale, '"patch":[{"op":"replace","path":"/total","value":2}]}');
			expect("with one of a list", (await refusal("", (await resources_list.execute({})).revision)).includes('"now":'), true);
			const [, revision] = now.match(/"pagewire_since":"([^"]+)"/);
			expect("with that of the refusal", [await paid(revision), await paid(second.revision), ran], ['paid {"a":1}', 'paid {"a":1}', 2]);
			expect("the page's own", await paid("*"), 'paid {"a":1}');

			const { content } = await add.execute({ to: 3, pagewire_since: revision });
			expect("the tool's result", [content.length, content[0].text], [2, "added"]);
			expectPart("told in it", content[1].text, '\n{"uri":"' + at("cart") + '","patch":[{"op":"replace","path":"/total","value":3}]}');
			const [, told] = content[1].text.match(/revision is now "([^"]+)"/);
			expect("told once", (await checkout.execute({ pagewire_since: told })), "paid {}");
			expect("without a revision as before", await add.execute({ to: 4 }), "added");
		`)
		if s.fetched("/pagewire.wasm") {
			t.Error("the wasm was fetched for it")
		}
	})
}

// What hosts and pages may do to a discovery: the page answers it too, a host's answer function
// throws or is none, a frame has it dispatched, inputs are cyclic, tools throw, Pagewire goes.
func TestToolDiscoveryIsStrict(t *testing.T) {
	t.Parallel()
	open(t, noFlag, serve(t, page{script: devtools})).expectations(`
		expect("before anything", discover(), []);
		await document.modelContext.registerTool({ name: "bad", description: "d", execute: () => { throw new Error("secret"); } });
		const alone = await host();
		expect("a page without resources", Object.keys(alone), ["bad"]);
		const failed = JSON.stringify(await alone.bad.execute({}));
		expect("a tool that throws", [failed.includes('"isError":true'), failed.includes("secret")], [true, false]);
		const circle = {};
		circle.self = circle;
		expect("cyclic input", await alone.bad.execute(circle).catch((e) => e.name), "TypeError");
		const own = { name: "own", tools: [{ name: "bad", description: "d", inputSchema: {}, execute: () => "the page's" }] };
		addEventListener("devtoolstooldiscovery", (event) => { try { event.respondWith(own); } catch {} });
		expect("both answer within the event", discover().map(({ name }) => name).sort(), ["Pagewire", "own"]);
		for (const respondWith of [undefined, 5, () => { throw new Error("no"); }])
			window.dispatchEvent(Object.assign(new CustomEvent("devtoolstooldiscovery"), { respondWith }));
		const frame = document.body.appendChild(document.createElement("iframe"));
		const Foreign = frame.contentWindow.CustomEvent, groups = [];
		window.dispatchEvent(Object.assign(new Foreign("devtoolstooldiscovery"), { respondWith: (group) => groups.push(group.name) }));
		expect("of a frame", groups.sort(), ["Pagewire", "own"]);
		pagewire.configure({ freshState: { bad: 5 } });
		expectPart("a wrong setting", await call("bad"), "freshState is wrong");
		Object.prototype.pagewire_since = "x";
		Array.prototype.toJSON = Array.prototype[Symbol.iterator] = undefined;
		cart();
		await tools();
		await agent.until(() => discover().find(({ name }) => name === "Pagewire")?.tools.length === 6);
		const patched = discover().find(({ name }) => name === "Pagewire").tools.find(({ name }) => name === "checkout");
		expect("patched prototypes", [(await patched.execute({})).isError, ran], [true, 0]);
		delete Object.prototype.pagewire_since;
		pagewire.uninstall();
		await agent.until(() => discover().length === 1);
		expect("gone", discover(), [own]);
	`)
}

// An agent of a gateway has an identity: its calls pass the page's guard, by the browser's own
// WebMCP too, and neither its schema nor the tool's input has a trace of that. A page's own call is
// refused like that of any host.
func TestGuardedToolsOfAgents(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := serve(t, page{tag: `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`,
		script: devtools + `
		cart();
		tools();
		globalThis.own = async () => [(await call("checkout")).isError, ran];`})
	chromium, _ := startChromium(t)
	b := openIn(t, chromium, s)
	a := h.serve(t)
	paid := func() string {
		r, err := a.CallTool(t.Context(),
			&mcp.CallToolParams{Name: "checkout", Arguments: map[string]any{"a": 1}})
		if err != nil {
			return err.Error()
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	testkit.Eventually(t, "it is refused with the state",
		func() bool { return strings.Contains(paid(), `"total":1}}`) })
	if got := paid(); got != `paid {"a":1}` {
		t.Errorf("the tool answers %s", got)
	}
	for tool, err := range a.Tools(t.Context(), nil) {
		if schema, _ := json.Marshal(tool); err != nil || strings.Contains(string(schema), "pagewire_since") {
			t.Errorf("it lists %s, %v", schema, err)
		}
	}
	if got := run[[]any](b, `return await own()`); fmt.Sprint(got) != "[true 1]" {
		t.Errorf("the page's own call: %v", got)
	}
}

// A schema that says as JSON what it is, as an object of a class does, keeps its parameters.
func TestSchemaOfAClass(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		open(t, m, serve(t, page{script: devtools})).expectations(`
			cart();
			class Schema { toJSON() { return { type: "object", properties: { to: { type: "integer" } } }; } }
			await document.modelContext.registerTool({ name: "set", description: "Sets.", inputSchema: new Schema(), execute: () => "set" });
			expectPart("parameters", JSON.stringify((await host()).set.inputSchema), '"to":{"type":"integer"}');`)
	})
}
