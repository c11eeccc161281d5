package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// polyfill is @mcp-b's polyfill of WebMCP's API, without its server: it has registerTool, and no
// resources.
func polyfill(t *testing.T) string { return inline(t, "webmcp-polyfill") }

// inline returns a script of @mcp-b as an inline script.
func inline(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../js/node_modules/@mcp-b/" + name + "/dist/index.iife.js")
	if err != nil {
		t.Fatal(err)
	}
	// Escaped for the HTML parser: neither tag may end the script, or begin one inside it.
	return "<script>" +
		strings.NewReplacer("</script", "<\\/script", "<script", "<\\script").
			Replace(string(text)) +
		"</script>"
}

type toolMode struct {
	mode
	head, tag string
}

func toolModes(t *testing.T) []toolMode {
	return inThisEngine([]toolMode{{native, "", ""}, {mode{name: "polyfill"}, polyfill(t), ""}},
		func(m toolMode) mode { return m.mode })
}

// allToolModes adds the modes in which Pagewire brings registerTool: it came first, and polyfills
// step aside.
func allToolModes(t *testing.T) []toolMode {
	const tag = `<script src="/pagewire.js"></script>`
	return append(toolModes(t), toolMode{noFlag, "", tag},
		toolMode{mode{name: "polyfill after"}, "", tag + polyfill(t)},
		toolMode{mode{name: "mcp-b after"}, "", tag + globalServer(t)})
}

// tooling calls the tools of the page as an agent of the browser does, by executeTool. Its input
// was a string in the draft that the polyfill follows.
const tooling = `
	const names = async () => (await document.modelContext.getTools()).map((t) => t.name).sort();
	const call = async (name, input = {}, options) => {
		const tool = (await document.modelContext.getTools()).find((t) => t.name === name);
		const text = await document.modelContext.executeTool(tool, document.modelContext.__isWebMCPPolyfill ? JSON.stringify(input) : input, options);
		return JSON.parse(text);
	};
	const at = (name) => location.origin + "/" + name;`

// The tools come with the first resource and go with the last. Calling them needs no wasm.
func TestProjectedTools(t *testing.T) {
	t.Parallel()
	each(t, allToolModes(t), func(t *testing.T, m toolMode) {
		s := serve(t, page{head: m.head, tag: m.tag, script: tooling + `
			let n = 1;
			const context = document.modelContext, add = (name, more) => context.registerResource({ uri: at(name), name, mimeType: "text/plain", read: () => "n is " + n, ...more });`})
		open(t, m.mode, s).expectations(`
			const all = ["resources_list", "resources_read", "resources_wait"];
			expect("before", await names(), []);
			let changes = 0;
			context.addEventListener("toolchange", () => changes++);
			add("a");
			await agent.until(() => changes >= 3);
			expect("with a resource", await names(), all);
			const schemas = JSON.stringify((await context.getTools()).map((t) => [t.inputSchema, t.annotations, t.description]));
			expect("what is in no schema", schemas.match(/"([$]ref|format|anyOf|pattern|items)/), null);
			expect("what mcp-context-forge refuses", schemas.match(/;|[^ -~]/), null);
			add("b");
			expectPart("list", await call("resources_list"), '"resources":[{"uri":"' + at("a") + '","mimeType":"text/plain","name":"a"},');
			const read = await call("resources_read", { uri: at("a") });
			expect("read", read.contents, [{ uri: at("a"), mimeType: "text/plain", text: "n is 1" }]);
			n++;
			context.notifyResourceUpdated(at("a"));
			const changed = await call("resources_read", { uri: at("a"), since: read.revision });
			expect("since a change", changed.contents.length, 1);
			expect("again", (await call("resources_read", { uri: at("a"), since: changed.revision })).unchanged, true);
			add("json", { read: () => '{"items":[{"sku":"A"},{"sku":"B"}]}' });
			expect("part", (await call("resources_read", { uri: at("json"), pointer: "/items/1" })).contents[0].text, '{"sku":"B"}');
			expect("nothing", (await call("resources_read", { uri: at("json"), pointer: "/items/2" })).isError, true);
			context.unregisterResource(at("json"));
			expect("unknown", (await call("resources_read", { uri: at("unknown") })).isError, true);
			expectPart("foreign", await call("resources_read", { uri: "https://evil.example/x" }), "is not at the page's origin");
			expectPart("bad", await call("resources_wait", { timeoutMs: "soon" }), "'timeoutMs' is not a number");
			changes = 0;
			// As React does it: the last one goes, and another comes within the turn.
			context.unregisterResource(at("a"));
			context.unregisterResource(at("b"));
			add("c");
			await agent.sleep(50);
			expect("with another", [await names(), changes], [all, 0]);
			context.unregisterResource(at("c"));
			await agent.until(() => changes);
			await agent.sleep(20);
			expect("at the end", await names(), []);
		`)
		if s.fetched("/pagewire.wasm") {
			t.Error("the wasm was fetched for it")
		}
	})
}

// Waiting: ended by the change, by a change since the given revision, at the timeout, and by its
// signal. The tool does not depend on the provider of registerTool: see TestProjectedTools.
func TestWaitTool(t *testing.T) {
	t.Parallel()
	open(t, noFlag, serve(t, page{script: tooling + `
		const context = document.modelContext;
		for (const name of ["a", "b", "t/{id}"]) context.registerResource({ uri: at(name), name, read: (uri, { params }) => "text " + (params.id ?? "") });`})).expectations(`
		const { revision } = await call("resources_list");
		// The clock starts before what it measures: a page may rest between two statements. None
		// may answer before there is a reason to.
		const takes = async (what, want, least, begin) => {
			const start = performance.now(), { updated, isError } = await begin(), took = performance.now() - start;
			expect(what, isError ? "an error" : updated.map((uri) => uri.slice(location.origin.length)).sort(), want);
			if (took < least) expect(what + " takes", took, least);
		};
		const soon = (f) => setTimeout(f, 100);
		await takes("woken", ["/a"], 90, () => { soon(() => context.notifyResourceUpdated(at("a"))); return call("resources_wait", { uris: [at("a")], since: revision }); });
		await takes("missed", ["/a"], 0, () => call("resources_wait", { since: revision }));
		await takes("other", [], 140, () => call("resources_wait", { uris: [at("b")], since: revision, timeoutMs: 150 }));
		await takes("since now", [], 140, () => call("resources_wait", { timeoutMs: 150 }));
		await takes("another page's", ["/b"], 0, () => call("resources_wait", { uris: [at("b")], since: "old-7", timeoutMs: 150 }));
		// A wait from now on is not told of earlier changes, and the call may take longer than any
		// time to get there.
		const meanwhile = async (f, what, want, least, begin) => { let again; await takes(what, want, least, () => { again = setInterval(f, 100); return begin(); }); clearInterval(again); };
		const burst = () => { for (let i = 0; i < 1000; i++) context.notifyResourceUpdated(at(i % 2 ? "a" : "b")); };
		await meanwhile(burst, "burst", ["/a", "/b"], 90, () => call("resources_wait", {}));
		await meanwhile(() => context.notifyResourceUpdated(at("t/5")), "template", ["/t/5"], 0, () => call("resources_wait", { uris: [at("t/5")] }));
		await takes("unknown", "an error", 0, () => call("resources_wait", { uris: [at("x")] }));
		expect("expansion", (await call("resources_read", { uri: at("t/5") })).contents, [{ uri: at("t/5"), text: "text 5" }]);
		const stop = new AbortController();
		let stopped = false;
		soon(() => { stopped = true; stop.abort(); });
		expect("aborted", [await call("resources_wait", {}, { signal: stop.signal }).then(JSON.stringify, (e) => e.name), stopped], ["AbortError", true]);
	`)
}

// Content scripts have another world: only an event on document.modelContext reaches them, with
// only the URI.
func TestHint(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		open(t, m, serve(t, field)).expectations(`
			const heard = [];
			document.modelContext.addEventListener("resourceupdated", (e) => heard.push(e.constructor.name, e.detail));
			for (let i = 0; i < 1000; i++) navigator.modelContext.notifyResourceUpdated(uri);
			navigator.modelContext.notifyResourceUpdated("https://evil.example/x");
			await agent.sleep(20);
			expect("heard", heard, ["CustomEvent", { uri }]);
		`)
	})
}

// The page's own tools, served over MCP: list, call, list_changed; and never the three of Pagewire.
func TestPageTools(t *testing.T) {
	t.Parallel()
	for i, m := range allToolModes(t) {
		era := eras[i%2] // the engine's era: it does not depend on the origin of registerTool
		t.Run(fmt.Sprint(m, "/", era), func(t *testing.T) {
			t.Parallel()
			open(t, m.mode, serve(t, page{head: m.head, tag: m.tag, script: tooling + field.script + `
				const context = document.modelContext;
				const add = (name, execute, more, options) => context.registerTool({ name, description: "d", inputSchema: { type: "object", properties: { x: { type: "number" } } }, execute, ...more }, options);
				add("double", ({ x }) => ({ twice: 2 * x }), { title: "Double", annotations: { readOnlyHint: true } });
				add("text", () => "plain");
				add("shaped", () => ({ content: [{ type: "text", text: "as MCP has it" }], structuredContent: { n: 1 } }));
				add("paid", () => ({ content: [{ type: "text", text: "paid" }], _meta: null, isError: "no", resultType: "input_required" }));
				add("order", () => ({ content: [{ type: "text", text: 4711 }] }));
				add("throws", () => { throw new Error("secret"); });
				let aborted = false, running = false;
				add("hangs", (input, options) => new Promise(() => {
					running = true;
					options?.signal?.addEventListener("abort", () => { aborted = true; });
				}));`})).expectations(fmt.Sprintf(`
				const a = await agent.connect(%q);
				let changed = 0;
				a.client.setNotificationHandler("notifications/tools/list_changed", () => void changed++);
				if (a.era === "modern") await a.client.listen({ toolsListChanged: true });
				expect("names", await a.toolNames(), "double hangs order paid shaped text throws");
				const { execution, ...double } = (await a.client.listTools()).tools.find((t) => t.name === "double");
				expect("double", Object.entries(double).sort(), [["annotations", { readOnlyHint: true }], ["description", "d"],
					["inputSchema", { type: "object", properties: { x: { type: "number" } } }], ["name", "double"], ["title", "Double"]]);
				for (const [name, text, structured, failed] of [["double", '{"twice":42}'], ["text", "plain"], ["shaped", "as MCP has it", { n: 1 }], ["paid", "paid"],
					["order", '{"content":[{"type":"text","text":4711}]}'], ["throws", "The tool failed.", undefined, true]]) {
					const { content, structuredContent, isError } = await a.client.callTool({ name, arguments: { x: 21 } });
					expect("call " + name, [content, structuredContent, isError], [[{ type: "text", text }], structured, failed]);
				}
				for (const name of ["unknown", "resources_list"]) expect(name, (await agent.refusal(a.use(name)))[0], -32602);
				const stop = new AbortController();
				const hanging = agent.refusal(a.use("hangs", {}, { signal: stop.signal }));
				await agent.until(() => running);
				stop.abort();
				await hanging;
				// The polyfill gives its tools no signal.
				if (%t) await agent.until(() => aborted);
				const remove = new AbortController(), count = async () => (await a.client.listTools()).tools.length;
				add("late", () => "", {}, { signal: remove.signal });
				await agent.until(() => changed === 1);
				expect("with another", await count(), 8);
				remove.abort();
				await agent.until(() => changed === 2);
				expect("without it", [await count(), (await a.list()).length], [7, 1]);
			`, era, m.name != "polyfill"))
		})
	}
}

// If the browser has no registerTool, getTools and executeTool, Pagewire's behave as the browser's
// do.
func TestToolMethods(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		open(t, m, serve(t, page{})).expectations(`
			const context = document.modelContext;
			const tried = async (what, want, call) => {
				let got;
				try { got = String(await call()); } catch (e) { got = e?.name ?? String(e); }
				expect(what, got, want);
			};
			let changes = 0, handled = 0;
			context.addEventListener("toolchange", () => changes++);
			context.ontoolchange = function (event) { handled += this === context && event.type === "toolchange"; };
			const add = (more, options) => context.registerTool({ name: "a" + Math.random(), description: "d", execute() {}, ...more }, options);
			const reused = { name: "double", title: "Double", description: "d", inputSchema: { type: "object" }, annotations: { readOnlyHint: true }, execute: ({ x }) => ({ twice: x * 2 }) };
			const first = context.registerTool(reused);
			reused.name = "another";
			await tried("register", "undefined", () => first);
			await tried("duplicate", "InvalidStateError", () => add({ name: "double" }));
			await tried("bad name", "InvalidStateError", () => add({ name: "a b" }));
			await tried("no description", "InvalidStateError", () => add({ description: "" }));
			await tried("nothing", "TypeError", () => context.registerTool());
			await tried("no name", "TypeError", () => add({ name: undefined }));
			await tried("no execute", "TypeError", () => add({ execute: 5 }));
			await tried("schema is text", "TypeError", () => add({ inputSchema: "{}" }));
			const circular = {};
			circular.self = circular;
			await tried("schema is circular", "TypeError", () => add({ inputSchema: circular }));
			await tried("aborted", "the reason", () => add({}, { signal: AbortSignal.abort("the reason") }));
			await tried("exposed to http", "SecurityError", () => add({}, { exposedTo: ["http://example.com"] }));
			const stop = new AbortController();
			await context.registerTool({ name: "throws", description: "d", execute() { throw new Error("secret"); } }, { signal: stop.signal });
			const list = await context.getTools();
			expect("listed", list.map((t) => [t.name, t.title, t.description, t.inputSchema, t.window === window, t.origin === origin, t.annotations && { readOnlyHint: t.annotations.readOnlyHint }]),
				[["double", "Double", "d", { type: "object" }, true, true, { readOnlyHint: true }], ["throws", "", "d", null, true, true, null]]);
			const [double, throws] = list;
			await tried("object", '{"twice":4}', () => context.executeTool(double, { x: 2 }));
			await tried("no input", '{"twice":null}', () => context.executeTool(double));
			await tried("null input", "TypeError", () => context.executeTool(double, null));
			await tried("number input", "TypeError", () => context.executeTool(double, 5));
			await tried("text for a tool", "TypeError", () => context.executeTool("double", {}));
			await tried("unknown tool", "UnknownError", () => context.executeTool({ ...double, name: "unknown" }, {}));
			await tried("elsewhere", "UnknownError", () => context.executeTool({ ...double, origin: "https://example.com" }, {}));
			await tried("throws", "UnknownError", () => context.executeTool(throws, {}));
			stop.abort();
			await tried("gone", "UnknownError", () => context.executeTool(throws, {}));
			await tried("again", "undefined", () => add({ name: "throws" }));
			let inside;
			await add({ name: "hangs", execute: (_, { signal }) => new Promise(() => { inside = signal; }) });
			await add({ name: "text", execute: () => "plain" });
			await add({ name: "circular", execute: () => circular });
			const named = Object.fromEntries((await context.getTools()).map((t) => [t.name, t]));
			await tried("text is text", "plain", () => context.executeTool(named.text, {}));
			await tried("nothing comes", "undefined", () => context.executeTool(named.throws, {}));
			await tried("circular", "UnknownError", () => context.executeTool(named.circular, {}));
			const abort = new AbortController();
			const hanging = context.executeTool(named.hangs, {}, { signal: abort.signal });
			await agent.until(() => inside);
			abort.abort("the reason");
			await tried("aborted call", "the reason", () => hanging);
			await agent.until(() => inside.aborted);
			expect("signal in the tool", inside instanceof AbortSignal, true);
			await tried("foreign this", "TypeError", () => context.registerTool.call({}, reused));
			expect("length", [context.registerTool.length, context.executeTool.length], [1, 1]);
			await agent.until(() => changes > 5);
			expect("ontoolchange", handled, changes);
		`)
	})
}

// The page layer's list of tools is complete if it needs several pages: by number, by size, and
// while listed resources come and go.
func TestToolListPages(t *testing.T) {
	t.Parallel()
	open(t, noFlag, serve(t, page{script: tooling})).expectations(`
		const add = (n, description) => document.modelContext.registerResource({ uri: at(n), name: "n", description, read: () => "" });
		for (let n = 0; n < 450; n++) add("small" + n);
		for (let n = 0; n < 12; n++) add("large" + n, "d".repeat(250_000));
		const seen = new Map();
		let cursors = 0;
		for (let cursor; ; cursors++) {
			const page = await call("resources_list", cursor === undefined ? {} : { cursor });
			for (const { uri } of page.resources) seen.set(uri, (seen.get(uri) ?? 0) + 1);
			expect("a page above the limit", JSON.stringify(page).length > 1_200_000, false);
			if ((cursor = page.nextCursor) === undefined) break;
			// Of those that have been listed two go, and one of them comes again; what else is
			// there has to be listed.
			for (const n of [2 * cursors, 2 * cursors + 1]) document.modelContext.unregisterResource(at("small" + n));
			add("small" + 2 * cursors);
		}
		const rest = [...Array(450).keys()].slice(100).map((n) => "small" + n).concat([...Array(12).keys()].map((n) => "large" + n)).map(at);
		expect("not listed once", rest.filter((uri) => seen.get(uri) !== 1), []);
		expect("cursors", cursors, 4);
		for (const cursor of ["1e9", "0.5", "x", "NaN"]) expect("cursor " + cursor, (await call("resources_list", { cursor })).isError, true);
	`)
}

// The model context that Pagewire brings has WebMCP's events and their handlers, all hints,
// outputSchema and exposedTo.
func TestOwnModelContext(t *testing.T) {
	t.Parallel()
	open(t, noFlag, serve(t, page{})).expectations(`
		const context = document.modelContext, said = [];
		const tried = async (what, want, call) => {
			let got = "";
			try { await call(); } catch (e) { got = e.name; }
			expect(what, got, want);
		};
		const log = (who) => (event) => void said.push(who + " " + event.type + " " + event.toolName);
		context.ontoolactivated = log("early"); // before anything has used the context
		let inside;
		const circle = {}; circle.self = circle;
		const add = (name, more, options) => context.registerTool({ name, description: "d", execute: (_, { signal }) => { inside = signal; return { n: 1 }; }, ...more }, options);
		await tried("native-agent", "", () => add("a", { outputSchema: { type: "object", x: [1] }, annotations: { consequentialHint: 1, debugging: "yes", unknown: true } }, { exposedTo: ["native-agent"] }));
		await tried("an origin", "", () => add("b", {}, { exposedTo: ["https://other.example"] }));
		await tried("every origin", "SecurityError", () => add("c", {}, { exposedTo: ["*"] }));
		await tried("no secure origin", "SecurityError", () => add("c", {}, { exposedTo: ["http://other.example"] }));
		await tried("a circle", "TypeError", () => add("c", { outputSchema: circle }));
		await tried("a text", "TypeError", () => add("c", { outputSchema: "{}" }));
		const [a, b] = await context.getTools();
		expect("listed", [a.outputSchema, a.annotations, "outputSchema" in b, "annotations" in b],
			[{ type: "object", x: [1] }, { readOnlyHint: false, untrustedContentHint: false, consequentialHint: true, debugging: true }, false, false]);
		expect("handlers", [typeof context.ontoolactivated, context.ontoolcancel], ["function", null]);
		context.addEventListener("toolactivated", log("first"));
		context.ontoolactivated = log("handler"); // at the place of the early one
		await context.executeTool(a, {});
		context.ontoolactivated = 5;
		expect("no handler", context.ontoolactivated, null);
		context.ontoolactivated = log("last");
		context.ontoolcancel = ({ type, toolName, constructor: { name } }) => said.push([type, toolName, name, inside.aborted].join(" "));
		await add("hangs", { execute: (_, { signal }) => new Promise(() => { inside = signal; }) });
		const stop = new AbortController(), hangs = (await context.getTools()).find((tool) => tool.name === "hangs");
		const hanging = context.executeTool(hangs, {}, { signal: stop.signal }).catch(() => {});
		await agent.until(() => said.length >= 4);
		stop.abort();
		await hanging;
		expect("said", said, ["handler toolactivated a", "first toolactivated a", "first toolactivated hangs", "last toolactivated hangs", "toolcancel hangs ToolCancelEvent true"]);
		const event = new ToolActivatedEvent("toolactivated", { toolName: "x", cancelable: true });
		expect("event", [event instanceof Event, event.toolName, event.cancelable, new ToolCancelEvent("y").toolName], [true, "x", true, ""]);
		await add("large", { execute: () => ({ n: 4711n }) });
		await add("circular", { execute: () => circle });
		const client = (await agent.connect("modern")).client, tool = (await client.listTools()).tools.find((tool) => tool.name === "b");
		expect("in the page", [tool.outputSchema, (await client.callTool({ name: "b", arguments: {} })).structuredContent], [undefined, undefined]);
		for (const [name, text] of [["large", '{"n":"4711"}'], ["circular", "The tool has run. Its result cannot be encoded as JSON: look at the page."]]) {
			const { content, isError } = await client.callTool({ name, arguments: {} });
			expect(name, [content[0].text, isError], [text, undefined]);
		}
		pagewire.uninstall();
		await agent.until(() => !("ToolCancelEvent" in globalThis));
	`)
}
