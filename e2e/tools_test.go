package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// polyfill is @mcp-b's of WebMCP's own API, without its server: it has registerTool, and no resources.
func polyfill(t *testing.T) string { return inline(t, "webmcp-polyfill") }

// inline is a script of @mcp-b's, in the page.
func inline(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../js/node_modules/@mcp-b/" + name + "/dist/index.iife.js")
	if err != nil {
		t.Fatal(err)
	}
	// Written as the HTML parser wants it: neither may end the script, or begin one inside it.
	return "<script>" + strings.NewReplacer("</script", "<\\/script", "<script", "<\\script").Replace(string(text)) +
		"</script>"
}

// toolMode is a way to have registerTool.
type toolMode struct {
	mode
	head, tag string
}

// toolModes are those in which somebody else has it.
func toolModes(t *testing.T) []toolMode {
	return inThisEngine([]toolMode{{native, "", ""}, {mode{name: "polyfill"}, polyfill(t), ""}},
		func(m toolMode) mode { return m.mode })
}

// allToolModes has those besides in which Pagewire brings it: it came first, and polyfills step aside.
func allToolModes(t *testing.T) []toolMode {
	const tag = `<script src="/pagewire.js"></script>`
	return append(toolModes(t),
		toolMode{noFlag, "", tag},
		toolMode{mode{name: "polyfill after"}, "", tag + polyfill(t)},
		toolMode{mode{name: "mcp-b after"}, "", tag + globalServer(t)})
}

// tooling calls the tools of the page as an agent of the browser does: executeTool, whose input was a string in the
// draft that the polyfill follows.
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
	for _, m := range allToolModes(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, page{head: m.head, tag: m.tag, script: tooling + `
				let n = 1;
				const context = document.modelContext, add = (name, more) => context.registerResource({ uri: at(name), name, mimeType: "text/plain", read: () => "n is " + n, ...more });`})
			b := open(t, m.mode, s)
			got := run[struct {
				None, First, After, Last []string
				Schemas                  string
				Changes                  int
				Listed, Read, Again      string
				Unknown, Foreign, Bad    string
				Part, Nothing            string
				Wasm                     bool
			}](b, `
				const out = { none: await names() };
				let changes = 0;
				context.addEventListener("toolchange", () => changes++);
				add("a");
				await agent.until(() => changes >= 3);
				out.first = await names();
				out.schemas = JSON.stringify((await context.getTools()).map((t) => [t.inputSchema, t.annotations, t.description]));
				add("b");
				out.listed = JSON.stringify(await call("resources_list"));
				out.read = JSON.stringify(await call("resources_read", { uri: at("a") }));
				const { revision } = JSON.parse(out.read);
				context.notifyResourceUpdated(at("a"));
				const changed = await call("resources_read", { uri: at("a"), since: revision });
				out.again = changed.contents.length + JSON.stringify(await call("resources_read", { uri: at("a"), since: changed.revision }));
				add("json", { read: () => '{"items":[{"sku":"A"},{"sku":"B"}]}' });
				out.part = JSON.stringify((await call("resources_read", { uri: at("json"), pointer: "/items/1" })).contents);
				out.nothing = JSON.stringify(await call("resources_read", { uri: at("json"), pointer: "/items/2" }));
				context.unregisterResource(at("json"));
				out.unknown = JSON.stringify(await call("resources_read", { uri: at("unknown") }));
				out.foreign = JSON.stringify(await call("resources_read", { uri: "https://evil.example/x" }));
				out.bad = JSON.stringify(await call("resources_wait", { timeoutMs: "soon" }));
				changes = 0;
				// As React does it: the last one goes, and another comes within the turn.
				context.unregisterResource(at("a"));
				context.unregisterResource(at("b"));
				add("c");
				await agent.sleep(50);
				out.after = await names();
				out.changes = changes;
				context.unregisterResource(at("c"));
				await agent.until(() => changes);
				await agent.sleep(20);
				out.last = await names();
				return out;
			`)
			all := []string{"resources_list", "resources_read", "resources_wait"}
			if len(got.None) != 0 || !slices.Equal(got.First, all) || !slices.Equal(got.After, all) ||
				len(got.Last) != 0 {
				t.Errorf("tools before %q, with a resource %q, with another %q, at the end %q", got.None, got.First,
					got.After, got.Last)
			}
			if got.Changes != 0 {
				t.Errorf("%d changes of the tools though there was a resource at each turn's end", got.Changes)
			}
			for what, want := range map[string][2]string{
				"list":    {got.Listed, `"resources":[{"uri":"` + s.URL + `/a","mimeType":"text/plain","name":"a"},`},
				"read":    {got.Read, `"contents":[{"uri":"` + s.URL + `/a","mimeType":"text/plain","text":"n is 1"}]`},
				"again":   {got.Again, `"unchanged":true`},
				"part":    {got.Part, `"text":"{\"sku\":\"B\"}"`},
				"nothing": {got.Nothing, `"isError":true`},
				"unknown": {got.Unknown, `"isError":true`},
				"foreign": {got.Foreign, "is not at the page's origin"},
				"bad":     {got.Bad, "'timeoutMs' is not a number"},
			} {
				if !strings.Contains(want[0], want[1]) {
					t.Errorf("%s: %s, want %s in it", what, want[0], want[1])
				}
			}
			for _, keyword := range []string{"$ref", "format", "anyOf", "pattern", "items"} {
				if strings.Contains(got.Schemas, `"`+keyword) {
					t.Errorf("a schema uses %s: %s", keyword, got.Schemas)
				}
			}
			if strings.ContainsFunc(got.Schemas, func(r rune) bool { return r == ';' || r > '~' }) {
				t.Errorf("mcp-context-forge refuses %s", got.Schemas)
			}
			if s.fetched("/pagewire.wasm") {
				t.Error("the wasm was fetched for it")
			}
		})
	}
}

// Waiting: woken by the change, by what changed since the revision given, at the timeout, and by its signal. Whose
// registerTool it is does not matter to the tool: see TestProjectedTools.
func TestWaitTool(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{script: tooling + `
		const context = document.modelContext;
		for (const name of ["a", "b", "t/{id}"]) context.registerResource({ uri: at(name), name, read: (uri, { params }) => "text " + (params.id ?? "") });`}))
	got := run[map[string]any](b, `
		const out = {};
		const { revision } = await call("resources_list");
		// The clock starts before what it measures: a page may rest between two statements.
		const time = async (what, begin) => { const start = performance.now(); const { revision: _, ...rest } = await begin(); out[what] = JSON.stringify(rest).replaceAll(location.origin, ""); out[what + " ms"] = performance.now() - start; };
		const soon = (f) => setTimeout(f, 100);
		await time("woken", () => { soon(() => context.notifyResourceUpdated(at("a"))); return call("resources_wait", { uris: [at("a")], since: revision }); });
		await time("missed", () => call("resources_wait", { since: revision }));
		await time("other", () => call("resources_wait", { uris: [at("b")], since: revision, timeoutMs: 150 }));
		await time("since now", () => call("resources_wait", { timeoutMs: 150 }));
		await time("another page's", () => call("resources_wait", { uris: [at("b")], since: "old-7", timeoutMs: 150 }));
		// A wait from now on is not told of earlier changes, and the call may take longer than any time to
		// get there.
		const meanwhile = async (f, what, begin) => { let again; await time(what, () => { again = setInterval(f, 100); return begin(); }); clearInterval(again); };
		const burst = () => { for (let i = 0; i < 1000; i++) context.notifyResourceUpdated(at(i % 2 ? "a" : "b")); };
		await meanwhile(burst, "burst", () => call("resources_wait", {}));
		await meanwhile(() => context.notifyResourceUpdated(at("t/5")), "template", () => call("resources_wait", { uris: [at("t/5")] }));
		await time("unknown", () => call("resources_wait", { uris: [at("x")] }));
		out.expansion = JSON.stringify((await call("resources_read", { uri: at("t/5") })).contents).replaceAll(location.origin, "");
		const stop = new AbortController();
		const start = performance.now();
		soon(() => stop.abort());
		out.aborted = await call("resources_wait", {}, { signal: stop.signal }).then(JSON.stringify, (e) => e.name);
		out["aborted ms"] = performance.now() - start;
		return out;
	`)
	for what, want := range map[string]string{
		"woken": `{"updated":["/a"]}`, "missed": `{"updated":["/a"]}`, "other": `{"updated":[]}`,
		"since now":      `{"updated":[]}`,
		"another page's": `{"updated":["/b"]}`, "template": `{"updated":["/t/5"]}`,
		"expansion": `[{"uri":"/t/5","text":"text 5"}]`, "aborted": "AbortError",
	} {
		if got[what] != want {
			t.Errorf("%s: %v, want %s", what, got[what], want)
		}
	}
	// None may answer before there is a reason to.
	for what, least := range map[string]float64{"woken": 90, "other": 140, "since now": 140, "burst": 90,
		"aborted": 90} {
		if ms := got[what+" ms"].(float64); ms < least {
			t.Errorf("%s took %.0f ms, want at least %.0f", what, ms, least)
		}
	}
	if burst := fmt.Sprint(got["burst"]); !strings.Contains(burst, `"/a"`) || !strings.Contains(burst, `"/b"`) {
		t.Errorf("burst: %s, want both", burst)
	}
	if unknown := fmt.Sprint(got["unknown"]); !strings.Contains(unknown, "isError") {
		t.Errorf("waiting for what is not registered: %s", unknown)
	}
}

// Content scripts live in another world: what reaches them is an event on document.modelContext, with the URI only.
func TestHint(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, m, serve(t, field))
			got := run[[]string](b, `
				const heard = [];
				document.modelContext.addEventListener("resourceupdated", (e) => heard.push(e.constructor.name + JSON.stringify(e.detail).replace(location.origin, "")));
				for (let i = 0; i < 1000; i++) navigator.modelContext.notifyResourceUpdated(uri);
				navigator.modelContext.notifyResourceUpdated("https://evil.example/x");
				await agent.sleep(20);
				return heard;
			`)
			if fmt.Sprint(got) != `[CustomEvent{"uri":"/state/field"}]` {
				t.Errorf("heard %q", got)
			}
		})
	}
}

// The page's own tools, served over MCP: list, call, list_changed; and never the three that are Pagewire's.
func TestPageTools(t *testing.T) {
	t.Parallel()
	for i, m := range allToolModes(t) {
		era := []string{"legacy", "modern"}[i%2] // the engine's: it does not know the origin of registerTool
		t.Run(m.name+"/"+era, func(t *testing.T) {
			t.Parallel()
			b := open(t, m.mode, serve(t, page{head: m.head, tag: m.tag, script: tooling + field.script + `
				const context = document.modelContext;
				const add = (name, execute, more, options) => context.registerTool({ name, description: "d", inputSchema: { type: "object", properties: { x: { type: "number" } } }, execute, ...more }, options);
				add("double", ({ x }) => ({ twice: 2 * x }), { title: "Double", annotations: { readOnlyHint: true } });
				add("text", () => "plain");
				add("shaped", () => ({ content: [{ type: "text", text: "as MCP has it" }], structuredContent: { n: 1 } }));
				add("throws", () => { throw new Error("secret"); });
				let aborted = false, running = false;
				add("hangs", (input, options) => new Promise(() => {
					running = true;
					options?.signal?.addEventListener("abort", () => { aborted = true; });
				}));`}))
			got := run[map[string]any](b, fmt.Sprintf(`
				const a = await agent.connect(%q);
				let changed = 0;
				a.client.setNotificationHandler("notifications/tools/list_changed", () => void changed++);
				if (a.era === "modern") await a.client.listen({ toolsListChanged: true });
				const out = {};
				const tools = (await a.client.listTools()).tools;
				out.names = tools.map((t) => t.name).sort().join(" ");
				const { execution, ...double } = tools.find((t) => t.name === "double");
				out.double = JSON.stringify(Object.entries(double).sort());
				for (const name of ["double", "text", "shaped", "throws"]) {
					const { content, structuredContent, isError } = await a.client.callTool({ name, arguments: { x: 21 } });
					out["call " + name] = JSON.stringify([content, structuredContent, isError]);
				}
				out.unknown = (await agent.refusal(a.client.callTool({ name: "unknown", arguments: {} })))[0];
				out.projected = (await agent.refusal(a.client.callTool({ name: "resources_list", arguments: {} })))[0];
				const stop = new AbortController();
				const hanging = agent.refusal(a.client.callTool({ name: "hangs", arguments: {} }, { signal: stop.signal }));
				await agent.until(() => running);
				stop.abort();
				await hanging;
				// The polyfill gives its tools no signal.
				if (%t) await agent.until(() => aborted);
				out.aborted = aborted;
				const remove = new AbortController();
				add("late", () => "", {}, { signal: remove.signal });
				await agent.until(() => changed === 1);
				out.with = (await a.client.listTools()).tools.length;
				remove.abort();
				await agent.until(() => changed === 2);
				out.without = (await a.client.listTools()).tools.length;
				out.resources = (await a.list()).length;
				return out;
			`, era, m.name != "polyfill"))
			for what, want := range map[string]any{
				"names":       "double hangs shaped text throws",
				"double":      `[["annotations",{"readOnlyHint":true}],["description","d"],["inputSchema",{"type":"object","properties":{"x":{"type":"number"}}}],["name","double"],["title","Double"]]`,
				"call double": `[[{"type":"text","text":"{\"twice\":42}"}],null,null]`,
				"call text":   `[[{"type":"text","text":"plain"}],null,null]`,
				"call shaped": `[[{"type":"text","text":"as MCP has it"}],{"n":1},null]`,
				"call throws": `[[{"type":"text","text":"The tool failed."}],null,true]`,
				"unknown":     -32602.0, "projected": -32602.0, "aborted": m.name != "polyfill", "with": 6.0,
				"without": 5.0, "resources": 1.0,
			} {
				if got[what] != want {
					t.Errorf("%s: %v, want %v", what, got[what], want)
				}
			}
		})
	}
}

// Where the browser has no registerTool, getTools and executeTool, Pagewire's do what the browser's do.
func TestToolMethods(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"register": "undefined", "duplicate": "InvalidStateError", "bad name": "InvalidStateError",
		"no description": "InvalidStateError",
		"nothing":        "TypeError", "no name": "TypeError", "no execute": "TypeError", "schema is text": "TypeError",
		"schema is circular": "TypeError",
		"aborted":            "the reason", "exposed to http": "SecurityError",
		"listed": `[["double","Double","d",{"type":"object"},true,true,{"readOnlyHint":true}],["throws","","d",null,true,true,null]]`,
		"object": `{"twice":4}`, "no input": `{"twice":null}`, "text is text": "plain", "nothing comes": "undefined",
		"null input": "TypeError", "number input": "TypeError",
		"throws": "UnknownError", "circular": "UnknownError", "unknown tool": "UnknownError",
		"elsewhere": "UnknownError", "text for a tool": "TypeError",
		"aborted call": "the reason", "signal in the tool": "true", "gone": "UnknownError", "again": "undefined",
		"changes": "true", "ontoolchange": "true", "foreign this": "TypeError", "length": "1 1",
	}
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			got := run[map[string]string](open(t, m, serve(t, page{})), `
				const out = {}, context = document.modelContext;
				const tried = async (what, call) => {
					try { out[what] = String(await call()); } catch (e) { out[what] = e?.name ?? String(e); }
				};
				let changes = 0, handled = 0;
				context.addEventListener("toolchange", () => changes++);
				context.ontoolchange = function (event) { handled += this === context && event.type === "toolchange"; };
				const add = (more, options) => context.registerTool({ name: "a" + Math.random(), description: "d", execute() {}, ...more }, options);
				const reused = { name: "double", title: "Double", description: "d", inputSchema: { type: "object" }, annotations: { readOnlyHint: true }, execute: ({ x }) => ({ twice: x * 2 }) };
				const first = context.registerTool(reused);
				reused.name = "another";
				await tried("register", () => first);
				await tried("duplicate", () => add({ name: "double" }));
				await tried("bad name", () => add({ name: "a b" }));
				await tried("no description", () => add({ description: "" }));
				await tried("nothing", () => context.registerTool());
				await tried("no name", () => add({ name: undefined }));
				await tried("no execute", () => add({ execute: 5 }));
				await tried("schema is text", () => add({ inputSchema: "{}" }));
				const circular = {};
				circular.self = circular;
				await tried("schema is circular", () => add({ inputSchema: circular }));
				await tried("aborted", () => add({}, { signal: AbortSignal.abort("the reason") }));
				await tried("exposed to http", () => add({}, { exposedTo: ["http://example.com"] }));
				const stop = new AbortController();
				await context.registerTool({ name: "throws", description: "d", execute() { throw new Error("secret"); } }, { signal: stop.signal });
				const list = await context.getTools();
				out.listed = JSON.stringify(list.map((t) => [t.name, t.title, t.description, t.inputSchema, t.window === window, t.origin === origin, t.annotations && { readOnlyHint: t.annotations.readOnlyHint }]));
				const [double, throws] = list;
				await tried("object", () => context.executeTool(double, { x: 2 }));
				await tried("no input", () => context.executeTool(double));
				await tried("null input", () => context.executeTool(double, null));
				await tried("number input", () => context.executeTool(double, 5));
				await tried("text for a tool", () => context.executeTool("double", {}));
				await tried("unknown tool", () => context.executeTool({ ...double, name: "unknown" }, {}));
				await tried("elsewhere", () => context.executeTool({ ...double, origin: "https://example.com" }, {}));
				await tried("throws", () => context.executeTool(throws, {}));
				stop.abort();
				await tried("gone", () => context.executeTool(throws, {}));
				await tried("again", () => add({ name: "throws" }));
				let inside;
				await add({ name: "hangs", execute: (_, { signal }) => new Promise(() => { inside = signal; }) });
				await add({ name: "text", execute: () => "plain" });
				await add({ name: "circular", execute: () => circular });
				const named = Object.fromEntries((await context.getTools()).map((t) => [t.name, t]));
				await tried("text is text", () => context.executeTool(named.text, {}));
				await tried("nothing comes", () => context.executeTool(named.throws, {}));
				await tried("circular", () => context.executeTool(named.circular, {}));
				const abort = new AbortController();
				const hanging = context.executeTool(named.hangs, {}, { signal: abort.signal });
				await agent.until(() => inside);
				abort.abort("the reason");
				await tried("aborted call", () => hanging);
				await agent.until(() => inside.aborted);
				out["signal in the tool"] = String(inside instanceof AbortSignal);
				await tried("foreign this", () => context.registerTool.call({}, reused));
				out.length = context.registerTool.length + " " + context.executeTool.length;
				await agent.until(() => changes > 5);
				out.changes = "true";
				out.ontoolchange = String(handled === changes);
				return out;
			`)
			for what, want := range want {
				if got[what] != want {
					t.Errorf("%s: %s, want %s", what, got[what], want)
				}
			}
		})
	}
}

// The list of the tools that the page layer makes is whole where it takes several pages: by number, by size, and while
// resources that are listed come and go.
func TestToolListPages(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{script: tooling}))
	got := run[struct {
		Missing, Twice, Cursors, Longest int
		Refused                          []bool
	}](b, `
		const add = (n, description) => document.modelContext.registerResource({ uri: at(n), name: "n", description, read: () => "" });
		for (let n = 0; n < 450; n++) add("small" + n);
		for (let n = 0; n < 12; n++) add("large" + n, "d".repeat(250_000));
		const seen = new Map(), out = { cursors: 0, longest: 0 };
		for (let cursor; ; out.cursors++) {
			const page = await call("resources_list", cursor === undefined ? {} : { cursor });
			for (const { uri } of page.resources) seen.set(uri, (seen.get(uri) ?? 0) + 1);
			out.longest = Math.max(out.longest, JSON.stringify(page).length);
			if ((cursor = page.nextCursor) === undefined) break;
			// Of those that have been listed two go, and one of them comes again; what else is there has to be
			// listed.
			for (const n of [2 * out.cursors, 2 * out.cursors + 1]) document.modelContext.unregisterResource(at("small" + n));
			add("small" + 2 * out.cursors);
		}
		const rest = [...Array(450).keys()].slice(100).map((n) => "small" + n).concat([...Array(12).keys()].map((n) => "large" + n)).map(at);
		out.missing = rest.filter((uri) => !seen.has(uri)).length;
		out.twice = rest.filter((uri) => seen.get(uri) > 1).length;
		out.refused = [];
		for (const cursor of ["1e9", "0.5", "x", "NaN"]) out.refused.push(!!(await call("resources_list", { cursor })).isError);
		return out;
	`)
	if got.Missing != 0 || got.Twice != 0 || got.Cursors != 4 || got.Longest > 1_200_000 {
		t.Errorf("%+v", got)
	}
	if slices.Contains(got.Refused, false) {
		t.Errorf("cursors that were never given: refused %v", got.Refused)
	}
}

// The model context that Pagewire brings has WebMCP's events and their handlers, all hints, outputSchema and exposedTo.
func TestOwnModelContext(t *testing.T) {
	t.Parallel()
	got := run[map[string]string](open(t, noFlag, serve(t, page{})), `
		const out = {}, context = document.modelContext, said = [];
		const tried = async (what, call) => {
			try { out[what] = String(await call()); } catch (e) { out[what] = e?.name ?? String(e); }
		};
		const log = (who) => (event) => void said.push(who + " " + event.type + " " + event.toolName);
		context.ontoolactivated = log("early"); // before anything has used the context
		let inside;
		const circle = {}; circle.self = circle;
		const add = (name, more, options) => context.registerTool({ name, description: "d", execute: (_, { signal }) => { inside = signal; return { n: 1 }; }, ...more }, options);
		await tried("native-agent", () => add("a", { outputSchema: { type: "object", x: [1] }, annotations: { consequentialHint: 1, debugging: "yes", unknown: true } }, { exposedTo: ["native-agent"] }));
		await tried("an origin", () => add("b", {}, { exposedTo: ["https://other.example"] }));
		await tried("every origin", () => add("c", {}, { exposedTo: ["*"] }));
		await tried("no secure origin", () => add("c", {}, { exposedTo: ["http://other.example"] }));
		await tried("a circle", () => add("c", { outputSchema: circle }));
		await tried("a text", () => add("c", { outputSchema: "{}" }));
		const [a, b] = await context.getTools();
		out.listed = JSON.stringify([a.outputSchema, a.annotations, "outputSchema" in b, "annotations" in b]);
		out.handler = typeof context.ontoolactivated + " " + context.ontoolcancel ;
		context.addEventListener("toolactivated", log("first"));
		context.ontoolactivated = log("handler"); // at the place of the early one
		await context.executeTool(a, {});
		context.ontoolactivated = 5;
		out.nothing = String(context.ontoolactivated);
		context.ontoolactivated = log("last");
		context.ontoolcancel = ({ type, toolName, constructor: { name } }) => said.push([type, toolName, name, inside.aborted].join(" "));
		await add("hangs", { execute: (_, { signal }) => new Promise(() => { inside = signal; }) });
		const stop = new AbortController(), hangs = (await context.getTools()).find((tool) => tool.name === "hangs");
		const hanging = context.executeTool(hangs, {}, { signal: stop.signal }).catch(() => {});
		await agent.until(() => said.length >= 4);
		stop.abort();
		await hanging;
		out.said = said.join(", ");
		const event = new ToolActivatedEvent("toolactivated", { toolName: "x", cancelable: true });
		out.event = [event instanceof Event, event.toolName, event.cancelable, new ToolCancelEvent("y").toolName].join(" ");
		const client = (await agent.connect("modern")).client, tool = (await client.listTools()).tools.find((tool) => tool.name === "b");
		out.inThePage = JSON.stringify([tool.outputSchema, (await client.callTool({ name: "b", arguments: {} })).structuredContent]);
		pagewire.uninstall();
		await agent.until(() => !("ToolCancelEvent" in globalThis));
		return out;
	`)
	for what, want := range map[string]string{
		"native-agent": "undefined", "an origin": "undefined", "every origin": "SecurityError",
		"no secure origin": "SecurityError", "a circle": "TypeError", "a text": "TypeError",
		"listed": `[{"type":"object","x":[1]},{"readOnlyHint":false,"untrustedContentHint":false,"consequentialHint":true,` +
			`"debugging":true},false,false]`,
		"handler": "function null", "nothing": "null",
		"said": "handler toolactivated a, first toolactivated a, first toolactivated hangs, last toolactivated hangs, " +
			"toolcancel hangs ToolCancelEvent true",
		"event": "true x true ", "inThePage": `[null,null]`,
	} {
		if got[what] != want {
			t.Errorf("%s: %s, want %s", what, got[what], want)
		}
	}
}
