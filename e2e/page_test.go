package e2e

import "testing"

// However a callback fails, the agent gets a defined error without the page's words. Other
// resources still work.
func TestBadReads(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{script: `
		const at = (name) => location.origin + "/" + name;
		const circular = {}; circular.self = circular;
		const reads = {
			throws: () => { throw new Error("secret"); },
			rejects: async () => { throw new Error("secret"); },
			"rejects with nothing": () => Promise.reject(),
			"returns nothing": () => {},
			"returns a throwing getter": () => ({ get text() { throw new Error("secret"); } }),
			"returns a proxy": () => new Proxy({}, { get() { throw new Error("secret"); } }),
			"returns a circle": () => circular,
		};
		for (const [name, read] of Object.entries(reads)) navigator.modelContext.registerResource({ uri: at(encodeURIComponent(name)), name, read });
		navigator.modelContext.registerResource({ uri: at("hangs"), name: "hangs", read: (uri, { signal }) => new Promise(() => { globalThis.hangs = true; signal.onabort = () => { globalThis.aborted = true; }; }) });
		navigator.modelContext.registerResource({ uri: at("unregisters"), name: "u", read: (uri) => { navigator.modelContext.unregisterResource(uri); return "late"; } });
		navigator.modelContext.registerResource({ uri: at("notifies"), name: "n", read: (uri) => { navigator.modelContext.notifyResourceUpdated(uri); return "ok"; } });
		navigator.modelContext.registerResource({ uri: at("fine"), name: "fine", read: () => "fine" });
	`}))
	b.expectations(`
		globalThis.a = await agent.connect("legacy");
		for (const name of Object.keys(reads)) {
			const [code, message, reason] = await agent.refusal(a.client.readResource({ uri: at(encodeURIComponent(name)) }));
			expect(name + ": the code, and the page's words", [code, message.includes("secret")], [-32603, false]);
			// A getter, or a proxy's, may be either.
			if (!/getter|proxy/.test(name)) expect(name, reason, /^(throws|rejects)/.test(name) ? "read_failed" : "invalid_contents");
		}
		const stop = new AbortController();
		const hanging = agent.refusal(a.client.readResource({ uri: at("hangs") }, { signal: stop.signal }));
		await agent.until(() => globalThis.hangs);
		stop.abort();
		await hanging;
		await agent.until(() => globalThis.aborted);
		await a.subscribe(at("notifies"));
		expect("a read that notifies", await a.read(at("notifies")), "ok");
		await agent.until(() => a.updated.length);
		// The client makes -32602 of the legacy era's -32002.
		expect("a read that unregisters itself", (await agent.refusal(a.client.readResource({ uri: at("unregisters") }))).slice(0, 2), [-32602, "Resource not found"]);
		expect("beside them", [await a.read(at("fine")), a.updated.length], ["fine", 1]);
	`)
	if !b.said("secret") {
		t.Error("the developer was not told why a read failed")
	}
}

// uninstall leaves the document as it was.
func TestUninstall(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		open(t, m, serve(t, page{
			head: `<script>
				const look = () => JSON.stringify([Document.prototype, Navigator.prototype, globalThis.ModelContext?.prototype ?? {}, globalThis].map((o) =>
				Reflect.ownKeys(o).filter((k) => /modelcontext|pagewire|resource/i.test(String(k)) && !/performance|Resource(Timing|Progress)/i.test(String(k)))
				.map((k) => { const d = Object.getOwnPropertyDescriptor(o, k); return [String(k), d.enumerable, d.configurable, d.writable, typeof d.get, typeof d.value]; })));
				const before = look();
			</script>`,
			script: `const during = look(); document.modelContext.registerResource({ uri: location.origin + "/a", name: "a", read: () => "" });`,
		})).expectations(`
			expect("there before", before === during, false);
			expect("navigator.modelContext is the document's", navigator.modelContext === document.modelContext, true);
			const a = await agent.connect("legacy"), kept = pagewire;
			kept.uninstall();
			await agent.until(() => a.closed);
			expect("after", look(), before);
			expectPart("connect", agent.thrown(() => kept.connect()), "uninstalled");
		`)
	})
}
