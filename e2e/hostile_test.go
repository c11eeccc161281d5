package e2e

import (
	"fmt"
	"testing"
)

// Pages that attack the code below them. Each does its worst. The well-behaved resource of the page
// is listed, read and announced as usual, to a client that connected before (it has the core) and
// to one that connects after.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	const beside = `
		let value = "first";
		const at = (name) => location.origin + "/" + name, context = document.modelContext;
		context.registerResource({ uri: at("good"), name: "good", mimeType: "text/plain", read: async () => ({ text: value }) });`
	cases := []struct{ name, attack, want string }{
		// Every prototype that a library could touch, replaced by functions that throw. The
		// functions that the test needs are spared: the client is a library of the page as well.
		{"patched intrinsics", `
			const bomb = function () { throw new Error("patched"); };
			const kept = {};
			for (const [owner, names] of [
				[JSON, ["parse", "stringify"]], [Reflect, ["apply", "construct", "defineProperty", "ownKeys"]],
				[Map.prototype, ["get", "set", "has", "delete", "forEach", "clear"]], [WeakMap.prototype, ["get", "set", "has"]], [Set.prototype, ["add", "has"]],
				[Array.prototype, ["push", "map", "forEach", "slice", "indexOf", "filter", Symbol.iterator]], [Array, ["isArray"]],
				[String.prototype, ["slice", "split", "indexOf", "startsWith", "replace", "toWellFormed", Symbol.iterator]], [RegExp.prototype, ["exec", "test"]],
				[Promise.prototype, ["then", "catch", "finally"]], [Promise, ["resolve", "race", "all"]], [Function.prototype, ["call", "apply", "bind"]],
				[EventTarget.prototype, ["addEventListener", "removeEventListener", "dispatchEvent"]], [MessagePort.prototype, ["postMessage", "start", "close"]],
				[AbortController.prototype, ["abort"]], [Object, ["assign", "entries", "defineProperty"]], [globalThis, ["queueMicrotask", "URL", "AbortController", "CustomEvent", "DOMException", "Map", "postMessage"]],
			]) for (const name of names) { const d = Object.getOwnPropertyDescriptor(owner, name); if (d) (kept[String(name)] ??= []).push([owner, name, d]); }
			const define = Object.defineProperty, all = Object.values(kept).flat();
			const swap = (on) => { for (let i = 0; i < all.length; i++) define(all[i][0], all[i][1], on ? { value: bomb, configurable: true, writable: true } : all[i][2]); };
			globalThis.attack = () => {
				const heard = [];
				swap(true);
				try {
					context.registerResource({ uri: at("second"), name: "second", read: () => "two" });
					context.notifyResourceUpdated(at("good"));
					context.unregisterResource(at("second"));
					try { context.registerResource({ uri: "nonsense", name: "n", read() {} }); } catch (error) { heard[0] = error.name; }
					try { context.registerResource({ uri: at("good"), name: "n", read() {} }); } catch (error) { heard[1] = error.name; }
					heard[2] = typeof pagewire.stats().resources;
				} catch (error) { heard[3] = error.message; }
				swap(false);
				return heard.join();
			};`, "TypeError,InvalidStateError,number"},
		{"poisoned Object.prototype", `
			globalThis.attack = () => {
				for (const [name, value] of [["toJSON", () => "?"], ["text", "?"], ["signal", 5], ["contents", []], ["mimeType", "?/?"]]) Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true });
				const out = agent.thrown(() => context.registerResource({ uri: at("p"), name: "p", read: () => ({ text: "own" }) })).split(":")[0];
				for (const name of ["toJSON", "text", "signal", "contents", "mimeType"]) delete Object.prototype[name];
				return out; // what is not passed is not looked for on a prototype
			};`, ""},
		{"proxies", `
			const trap = new Proxy({}, { get() { throw new EvalError("trap"); } });
			const { proxy, revoke } = Proxy.revocable({}, {}); revoke();
			const endless = { [Symbol.iterator]: () => ({ next: () => { throw new EvalError("iterator"); } }) };
			globalThis.attack = () => [
				() => context.registerResource(trap), () => context.registerResource(proxy), () => context.registerResource({ uri: at("p"), name: "p", read() {}, icons: endless }),
				() => context.registerResource.call(new Proxy(context, {}), { uri: at("p"), name: "p", read() {} }),
				() => context.registerResource({ uri: at("p"), name: { toString: () => { context.unregisterResource(at("absent")); } }, read() {} }),
				() => context.registerResource({ uri: at("callable"), name: "p", read: new Proxy(() => "", {}) }),
			].map((call) => agent.thrown(call).split(":")[0]).join();`, "EvalError,TypeError,EvalError,TypeError,NotFoundError,"},
		{"huge strings", `
			const huge = "x".repeat(1 << 25);
			globalThis.attack = async () => {
				context.registerResource({ uri: at("huge"), name: "huge", read: () => huge });
				const read = (await agent.refusal(a.client.readResource({ uri: at("huge") }))).slice(0, 1).join();
				return [() => context.registerResource({ uri: at(huge), name: "n", read() {} }), () => context.registerResource({ uri: at("h"), name: huge, read() {} }),
					() => context.notifyResourceUpdated(huge), () => context.registerResource({ uri: at("h"), name: "h", uriSchema: { type: "object", description: huge }, read() {} })]
					.map((call) => agent.thrown(call).split(":")[0]).concat(read).join();
			};`, "QuotaExceededError,QuotaExceededError,QuotaExceededError,QuotaExceededError,-32603"},
		{"re-entrance", `
			context.registerResource({ uri: at("again"), name: "again", read: async (uri) => {
				for (let i = 0; i < 1000; i++) context.notifyResourceUpdated(uri);
				context.registerResource({ uri: at("made"), name: "made", read: () => "" });
				context.unregisterResource(at("made"));
				const inner = await agent.connect("modern");
				const text = await inner.read(at("good"));
				await inner.client.close();
				return "inside: " + text;
			} });
			globalThis.attack = async () => { await a.subscribe(at("again")); return a.read(at("again")); };`, "inside: first"},
		{"a read that uninstalls its client", `
			context.registerResource({ uri: at("closes"), name: "closes", read: async () => { await globalThis.victim.client.close(); return "late"; } });
			globalThis.attack = async () => { globalThis.victim = await agent.connect("legacy"); return (await agent.refusal(victim.client.readResource({ uri: at("closes") })))[0] !== "resolved" ? "ended" : "answered"; };`, "ended"},
		{"100,000 registrations, each withdrawn", `
			globalThis.attack = () => {
				for (let i = 0; i < 100_000; i++) { context.registerResource({ uri: at("many"), name: "n" + i, read() {} }); context.unregisterResource(at("many")); }
				return "done";
			};`, "done"},
	}
	// with the browser's own model context, if any: more depends on the attacked functions
	m := modes[len(modes)-1]
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			open(t, m, serve(t, page{script: beside + c.attack})).expectations(fmt.Sprintf(`
				globalThis.a = await agent.connect("legacy");
				await a.subscribe(at("good"));
				expect("how the attack ended", await globalThis.attack(), %q);
				await agent.sleep(150);
				a.updated.length = 0;
				value = "second";
				context.notifyResourceUpdated(at("good"));
				await agent.until(() => a.updated.includes(at("good")));
				const later = await agent.connect("modern"), good = (list) => list.filter((u) => u === at("good")).length;
				expect("beside it", [await a.read(at("good")), good(a.updated), await later.read(at("good")), good(await later.list()), pagewire.stats().deaths],
					["second", 1, "second", 1, 0]);
			`, c.want))
		})
	}
}

// Tools and envelopes of a hostile page.
func TestHostileTools(t *testing.T) {
	t.Parallel()
	each(t, toolModes(t), func(t *testing.T, m toolMode) {
		open(t, m.mode, serve(t, page{head: m.head, script: tooling + `
			const context = document.modelContext;
			context.registerResource({ uri: at("good"), name: "good", read: () => "fine" });
			context.registerResource({ uri: at("throws"), name: "throws", read: () => { throw new Error("secret"); } });
			context.registerResource({ uri: at("large"), name: "large", read: () => "x".repeat(2 << 20) });
			context.registerResource({ uri: at("gone"), name: "gone", read: (uri) => { context.unregisterResource(uri); return "late"; } });`})).expectations(`
			const read = async (name) => JSON.stringify(await call("resources_read", { uri: at(name) }));
			const throws = await read("throws");
			expect("throws", [throws.includes("isError"), throws.includes("secret")], [true, false]);
			expectPart("large", await read("large"), "larger than");
			expectPart("gone", await read("gone"), "late");
			expectPart("good", await read("good"), "fine");
			let refused = 0;
			const many = Array.from({ length: 80 }, () => call("resources_wait").then((r) => { if (r.isError) refused++; }));
			await agent.until(() => refused === 16);
			context.notifyResourceUpdated(at("good"));
			await Promise.all(many);
			expect("refused", refused, 16);
			expectPart("good after that", await read("good"), "fine");
			for (const [tool, bad] of Object.entries({
				resources_read: [{}, { uri: 5 }, { uri: "x" }, { uri: at("#f") }],
				resources_wait: [{ uris: "x" }, { uris: [5] }, { uris: Array(101).fill(at("good")) }, { timeoutMs: -1 }, { since: 5 }],
				resources_list: [{ cursor: "x" }, { cursor: "-1" }, { cursor: 5 }],
			})) for (const input of bad) expect(tool + JSON.stringify(input).slice(0, 20), (await call(tool, input)).isError, true);
		`)
	})
}
