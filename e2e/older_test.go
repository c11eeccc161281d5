package e2e

import (
	"strings"
	"testing"
)

// olderContext is a model context of the same shape as Firefox's, with its testing preference or
// without.
func olderContext(testing bool) string {
	script := `<script>{
		const tools = new Map();
		class ModelContext {
			#own = true;
			registerTool(tool) {
				this.#own;
				const { name, description, execute } = tool;
				if (!description || typeof execute !== "function") throw new TypeError("no tool");
				tools.set(name, { ...tool });
			}
			unregisterTool(name) {
				this.#own;
				if (!tools.delete(name)) throw new DOMException(name + " is not there", "InvalidStateError");
			}
			getTools() { this.#own; return [...tools.values()].map((tool) => ({ ...tool })); }
			invokeTool(name, input, { signal } = {}) {
				this.#own;
				return new Promise((resolve, reject) => {
					signal?.addEventListener("abort", () => reject(signal.reason));
					if (!tools.has(name)) throw new DOMException(name + " is not there", "NotFoundError");
					resolve(tools.get(name).execute(input, { requestUserInteraction: async (callback) => await callback() }));
				});
			}
		}
		const context = new ModelContext();
		Object.defineProperty(Navigator.prototype, "modelContext", { configurable: true, enumerable: true, get: () => context });
		globalThis.toolNames = () => [...tools.keys()].sort().join(" ");
	NOTESTING }</script>`
	without := "delete ModelContext.prototype.getTools; delete ModelContext.prototype.invokeTool;"
	if testing {
		without = ""
	}
	return strings.Replace(script, "NOTESTING", without, 1)
}

// olderPage is a page with such a context: the browser's own, or the one in head.
func olderPage(head string) page {
	return page{head: head +
		`<script>globalThis.original = navigator.modelContext.registerTool;</script><script src="/pagewire.js"></script>`,
		tag: `<script type="module" src="/pagewire.elements.js"></script>`, script: `
		const context = navigator.modelContext, at = (name) => location.origin + "/" + name;
		const add = (name, execute) => context.registerTool({ name, description: "d", inputSchema: { type: "object" }, execute });
		add("early", ({ x }) => ({ twice: 2 * x }));`}
}

// Firefox's own model context, of an older draft: it is extended, its tools are served, and ours go
// when they should.
func TestOlderContext(t *testing.T) {
	t.Parallel()
	open(t, noFlag, serve(t, olderPage(olderContext(true)))).playsOlder()
}

func (b *tab) playsOlder() {
	b.t.Helper()
	b.expectations(`
		const eventually = async (condition) => { while (!(await condition())) await agent.sleep(5); };
		globalThis.toolNames ??= () => context.getTools().map(({ name }) => name).sort().join(" ");
		const ours = "resources_list resources_read resources_wait";
		const register = (name, read = () => "text " + name) => context.registerResource({ uri: at(name), name, read });
		expect("the same at document", document.modelContext === context, true);
		register("a");
		expect("with the first resource", toolNames(), "early " + ours);
		context.unregisterResource(at("a"));
		await agent.until(() => toolNames() === "early");
		register("a");
		expect("again", toolNames(), "early " + ours);
		const tool = (name, input) => context.invokeTool(name, input).then(JSON.stringify);
		const listed = await tool("resources_list", {});
		expect("as a tool", listed.includes('"uri":"' + at("a") + '"'), true);

		const hints = [];
		document.addEventListener("resourceupdated", ({ detail }) => hints.push(detail.uri));
		context.notifyResourceUpdated(at("a"));
		await agent.until(() => hints.length);
		expect("hint", hints, [at("a")]);

		for (const era of ["legacy", "modern"]) {
			const a = await agent.connect(era);
			let changed = 0;
			a.client.setNotificationHandler("notifications/tools/list_changed", () => void changed++);
			if (era === "modern") await a.client.listen({ toolsListChanged: true });
			expect(era + " read", await a.read(at("a")), "text a");
			expect(era + " tools", await a.toolNames(), "early");
			expect(era + " object", await a.use("early", { x: 21 }), '{"twice":42}');
			add("late", () => "plain");
			await agent.until(() => changed === 1);
			expect(era + " with another", [await a.toolNames(), await a.use("late")], ["early late", "plain"]);
			context.unregisterTool("late");
			await agent.until(() => changed === 2);
			let running;
			add("throws", () => { throw new Error("SECRET"); });
			add("hangs", () => new Promise(() => { running = true; }));
			await eventually(async () => (await a.toolNames()) === "early hangs throws");
			expect(era + " throws", await a.use("throws"), "error: The tool failed.");
			const stop = new AbortController(), hanging = agent.refusal(a.use("hangs", { era }, { signal: stop.signal }));
			await agent.until(() => running);
			stop.abort();
			await hanging;
			context.unregisterTool("throws");
			context.unregisterTool("hangs");
			await eventually(async () => (await a.toolNames()) === "early");
		}

		// A form's tool goes with its form, and what it had is free again.
		document.body.insertAdjacentHTML("beforeend", "<form toolname=order tooldescription=Orders.><input name=sku></form>");
		await agent.until(() => toolNames().includes("order"));
		expect("filled in", (await tool("order", { sku: "tea" })).includes("not submitted"), true);
		document.querySelector("form").remove();
		await agent.until(() => !toolNames().includes("order"));

		pagewire.uninstall();
		await agent.until(() => context.registerTool === original);
		expect("left", [toolNames(), "registerResource" in context, "modelContext" in document], ["early", false, false]);
	`)
	if !b.said("the tool throws failed") {
		b.t.Error("the console does not have the page's reason")
	}
}

// Without its testing preference, Firefox's context lists no tools: ours come and go, and resources
// are served.
func TestOlderContextWithoutGetTools(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{head: olderContext(false), script: `
		const context = navigator.modelContext, uri = location.origin + "/a";
		context.registerTool({ name: "early", description: "d", execute() {} });
		context.registerResource({ uri, name: "a", read: () => "text" });`}))
	b.expectations(`
		const a = await agent.connect("legacy");
		expect("read", await a.read(uri), "text");
		expect("tools", "tools" in a.client.getServerCapabilities(), false);
		expect("ours", toolNames(), "early resources_list resources_read resources_wait");
		context.unregisterResource(uri);
		await agent.until(() => toolNames() === "early");
	`)
	b.quiet()
}
