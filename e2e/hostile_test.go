package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// Pages that turn on what is below them. Each does its worst, and the well-behaved resource beside it is listed, read
// and announced as ever, to a client that was there before (it has the core) or comes after.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	const beside = `
		let value = "first";
		const at = (name) => location.origin + "/" + name, context = document.modelContext;
		context.registerResource({ uri: at("good"), name: "good", mimeType: "text/plain", read: async () => ({ text: value }) });`
	cases := []struct{ name, attack, want string }{
		// Every prototype that a library could touch, replaced by functions that throw. What the test itself needs is
		// kept from it: the client is a library of the page as well.
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
	m := modes[len(modes)-1] // with the browser's own model context, where it has one: more stands on what is attacked
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, m, serve(t, page{script: beside + c.attack}))
			got := run[struct {
				Attack       string
				Read, Later  string
				Told, Listed int
				Deaths       int
			}](b, `
				globalThis.a = await agent.connect("legacy");
				await a.subscribe(at("good"));
				const attack = await globalThis.attack();
				await agent.sleep(150);
				a.updated.length = 0;
				value = "second";
				context.notifyResourceUpdated(at("good"));
				await agent.until(() => a.updated.includes(at("good")));
				const later = await agent.connect("modern");
				return { attack, read: await a.read(at("good")), told: a.updated.filter((u) => u === at("good")).length, later: await later.read(at("good")),
					listed: (await later.list()).filter((u) => u === at("good")).length, deaths: pagewire.stats().deaths };
			`)
			if got.Attack != c.want {
				t.Errorf("the attack ended in %q, want %q", got.Attack, c.want)
			}
			if got.Read != "second" || got.Later != "second" || got.Told != 1 || got.Listed != 1 ||
				got.Deaths != 0 {
				t.Errorf("beside it: %+v", got)
			}
		})
	}
}

// Tools and envelopes of a hostile page.
func TestHostileTools(t *testing.T) {
	t.Parallel()
	for _, m := range toolModes(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := open(t, m.mode, serve(t, page{head: m.head, script: tooling + `
				const context = document.modelContext;
				context.registerResource({ uri: at("good"), name: "good", read: () => "fine" });
				context.registerResource({ uri: at("throws"), name: "throws", read: () => { throw new Error("secret"); } });
				context.registerResource({ uri: at("large"), name: "large", read: () => "x".repeat(2 << 20) });
				context.registerResource({ uri: at("gone"), name: "gone", read: (uri) => { context.unregisterResource(uri); return "late"; } });`}))
			got := run[map[string]string](b, `
				const out = {}, read = async (name) => JSON.stringify(await call("resources_read", { uri: at(name) }));
				for (const name of ["throws", "large", "gone", "good"]) out[name] = await read(name);
				const many = await Promise.all(Array.from({ length: 80 }, () => call("resources_wait", { timeoutMs: 300 })));
				out.many = many.filter((r) => r.isError).length + " refused";
				out.after = await read("good");
				for (const bad of [{}, { uri: 5 }, { uri: "x" }, { uri: at("#f") }]) out["bad " + JSON.stringify(bad)] = String((await call("resources_read", bad)).isError);
				for (const bad of [{ uris: "x" }, { uris: [5] }, { uris: Array(101).fill(at("good")) }, { timeoutMs: -1 }, { since: 5 }]) out["bad wait " + JSON.stringify(bad).slice(0, 20)] = String((await call("resources_wait", bad)).isError);
				for (const bad of [{ cursor: "x" }, { cursor: "-1" }, { cursor: 5 }]) out["bad list " + JSON.stringify(bad)] = String((await call("resources_list", bad)).isError);
				return out;
			`)
			for what, text := range got {
				if strings.HasPrefix(what, "bad") && text != "true" {
					t.Errorf("%s: isError %s", what, text)
				}
			}
			if strings.Contains(fmt.Sprint(got), "secret") || !strings.Contains(got["throws"], "isError") ||
				!strings.Contains(got["large"], "larger than") {
				t.Errorf("throws: %s; large: %s", got["throws"], got["large"])
			}
			if !strings.Contains(got["good"], "fine") || !strings.Contains(got["after"], "fine") ||
				got["many"] != "16 refused" {
				t.Errorf("good: %s, then %s; %s", got["good"], got["after"], got["many"])
			}
			if !strings.Contains(got["gone"], "late") {
				t.Errorf("gone: %s", got["gone"])
			}
		})
	}
}
