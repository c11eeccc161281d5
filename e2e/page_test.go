package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// However a callback goes wrong, the agent gets a defined error without the page's words, and what is beside it works.
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
	got := run[map[string][]any](b, `
		globalThis.a = await agent.connect("legacy");
		const out = {};
		for (const name of Object.keys(reads)) out[name] = await agent.refusal(a.client.readResource({ uri: at(encodeURIComponent(name)) }));
		return out;
	`)
	for name, refusal := range got {
		reason := "invalid_contents"
		if strings.HasPrefix(name, "throws") || strings.HasPrefix(name, "rejects") {
			reason = "read_failed"
		}
		if fmt.Sprint(refusal[0]) != "-32603" || refusal[2] != reason && !strings.Contains(name, "getter") &&
			!strings.Contains(name, "proxy") {
			t.Errorf("%s: %v, want -32603 with reason %s", name, refusal, reason)
		}
		if strings.Contains(fmt.Sprint(refusal), "secret") {
			t.Errorf("%s: the page's words reached the agent: %v", name, refusal)
		}
	}
	if !b.said("secret") {
		t.Error("the developer was not told why a read failed")
	}
	after := run[struct {
		Aborted  bool
		Gone     []any
		Notifies string
		Fine     string
		Updated  []string
	}](b, `
		const stop = new AbortController();
		const hanging = agent.refusal(a.client.readResource({ uri: at("hangs") }, { signal: stop.signal }));
		await agent.until(() => globalThis.hangs);
		stop.abort();
		await hanging;
		await agent.until(() => globalThis.aborted);
		await a.subscribe(at("notifies"));
		const notifies = await a.read(at("notifies"));
		await agent.until(() => a.updated.length);
		return { aborted, gone: await agent.refusal(a.client.readResource({ uri: at("unregisters") })), notifies, fine: await a.read(at("fine")), updated: a.updated };
	`)
	if !after.Aborted || after.Notifies != "ok" || after.Fine != "fine" || len(after.Updated) != 1 {
		t.Errorf("afterwards: %+v", after)
	}
	// The client makes -32602 of the legacy era's -32002.
	if fmt.Sprint(after.Gone[:2]) != "[-32602 Resource not found]" {
		t.Errorf("a read that unregisters itself: %v", after.Gone)
	}
}

// uninstall leaves the document as it was.
func TestUninstall(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			look := `const look = () => JSON.stringify([Document.prototype, Navigator.prototype, globalThis.ModelContext?.prototype ?? {}, globalThis].map((o) =>
				Reflect.ownKeys(o).filter((k) => /modelcontext|pagewire|resource/i.test(String(k)) && !/performance|Resource(Timing|Progress)/i.test(String(k)))
				.map((k) => { const d = Object.getOwnPropertyDescriptor(o, k); return [String(k), d.enumerable, d.configurable, d.writable, typeof d.get, typeof d.value]; })));`
			b := open(t, m, serve(t, page{
				head:   `<script>` + look + `const before = look();</script>`,
				script: `const during = look(); document.modelContext.registerResource({ uri: location.origin + "/a", name: "a", read: () => "" });`,
			}))
			got := run[struct {
				Before, During, After string
				Same, Closed          bool
				Connect               string
			}](b, `
				const same = navigator.modelContext === document.modelContext;
				const a = await agent.connect("legacy");
				const kept = pagewire;
				kept.uninstall();
				await agent.until(() => a.closed);
				return { before, during, after: look(), same, closed: a.closed, connect: agent.thrown(() => kept.connect()) };
			`)
			if got.Before == got.During || got.Before != got.After {
				t.Errorf("before %s\nduring %s\nafter %s", got.Before, got.During, got.After)
			}
			if !got.Same || !got.Closed || !strings.Contains(got.Connect, "uninstalled") {
				t.Errorf("%+v", got)
			}
		})
	}
}
