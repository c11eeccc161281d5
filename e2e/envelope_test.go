package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// recorder keeps every envelope that goes through the window, from the first script on.
const recorder = `<script>
	const envelopes = [];
	addEventListener("message", ({ data, origin, source }) => {
		if (data?.channel === "mcp-default") envelopes.push({ ...data, own: origin === location.origin && source === window });
	});
	const said = (payload) => envelopes.filter((e) => e.direction === "server-to-client" && e.payload === payload).length;
	const toServer = (payload) => postMessage({ channel: "mcp-default", type: "mcp", direction: "client-to-server", payload }, location.origin);
</script>`

// A client of @mcp-b, unmodified: it lists, reads, subscribes and is notified.
func TestTabClient(t *testing.T) {
	t.Parallel()
	s := serve(t, page{head: recorder, script: field.script})
	b := open(t, noFlag, s)
	run[any](b, `await agent.sleep(100)`)
	if s.fetched("/pagewire.core.js") {
		t.Error("the core was fetched though no client has come")
	}
	b.expectations(`
		const a = await agent.connect("legacy", agent.tab());
		expect("version", a.client.getNegotiatedProtocolVersion(), "2025-11-25");
		expect("listed", await a.list(), [uri]);
		expect("read", await a.read(uri), "");
		await a.subscribe(uri);
		document.getElementById("field").value = "typed";
		navigator.modelContext.notifyResourceUpdated(uri);
		await agent.until(() => a.updated.length);
		expect("read again", await a.read(uri), "typed");
		await a.client.unsubscribeResource({ uri });
		await agent.sleep(150);
		navigator.modelContext.notifyResourceUpdated(uri);
		await agent.sleep(150);
		expect("told", a.updated.length, 1);
		expect("envelopes of others", envelopes.filter((e) => !e.own), []);
		expect("ready, once it is asked for", said("mcp-server-ready"), 1);
		// The server goes: its clients are told, and none that comes later.
		pagewire.uninstall();
		await agent.until(() => a.closed);
		await agent.sleep(50);
		expect("stopped", said("mcp-server-stopped"), 1);
		const before = envelopes.length;
		toServer("mcp-check-ready");
		await agent.sleep(100);
		expect("answers behind that", envelopes.length - before - 1, 0);
	`)
}

// A page's other listeners receive every message to the window, and some parse each as JSON text.
// So nothing is posted before a client asks, and nothing at the end if no client has asked.
func TestNothingIsPostedUnasked(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{head: `<script>
		const heard = [];
		addEventListener("message", ({ data }) => { heard.push(data); JSON.parse(data); });
	</script>`, script: field.script}))
	b.expectations(`
		navigator.modelContext.notifyResourceUpdated(uri);
		await agent.sleep(0);
		pagewire.uninstall();
		postMessage('"the last message"', location.origin);
		await agent.until(() => heard.includes('"the last message"'));
		expect("heard", heard.length, 1);
	`)
	b.quiet()
}

// A client of @mcp-b asks once, when it starts, and then waits. A client that has asked before
// Pagewire was loaded is served as soon as another message asks.
func TestTabClientBeforeThePage(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{
		head: recorder +
			`<script src=/agent.js></script><script>const early = agent.connect("legacy", agent.tab()); early.catch(() => {});</script>`,
		script: field.script,
	}))
	b.expectations(
		`toServer("mcp-check-ready"); expect("listed", await (await early).list(), [uri])`)
}

// The answer "ready" comes only when a core answers. If there will be no core, the answer is
// "stopped".
func TestEnvelopeReadiness(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{head: recorder, script: field.script}))
	b.expectations(`
		const states = [];
		addEventListener("message", ({ data }) => { if (data?.payload === "mcp-server-ready") states.push(pagewire.stats().core); });
		await agent.sleep(50);
		states.length = 0;
		toServer("mcp-check-ready");
		await agent.until(() => states.length);
		toServer("mcp-check-ready");
		await agent.until(() => states.length > 1);
		expect("the core, when it says that it is ready", states, ["ready", "ready"]);
	`)
	b = open(t, noFlag,
		serve(t, page{head: recorder, script: `pagewire.configure({ core: "/nowhere.js" });` +
			field.script}))
	b.expectations(
		`expectPart("without a core", await agent.connect("legacy", agent.tab()).then(() => "connected", String), "losed")`)
	if !b.said("no core from") {
		t.Error("the developer was not told")
	}
}

// Pagewire ignores each message that is not exactly an envelope from the page's own window to a
// server.
func TestEnvelopeIsStrict(t *testing.T) {
	t.Parallel()
	evil := serve(t, page{tag: `<script></script>`, script: `
		const initialize = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } } };
		for (const payload of ["mcp-check-ready", initialize]) parent.postMessage({ channel: "mcp-default", type: "mcp", direction: "client-to-server", payload }, "*");
		const { port1, port2 } = new MessageChannel();
		port1.onmessage = () => parent.postMessage("answered", "*");
		port1.postMessage(initialize);
		parent.postMessage({ type: "pagewire:connect" }, "*", [port2]);
		parent.postMessage("done", "*");
	`})
	s := serve(t, page{head: recorder, script: field.script})
	b := open(t, noFlag, s)
	got := run[[]string](b, fmt.Sprintf(`
		const heard = [];
		addEventListener("message", ({ data }) => { if (data === "done" || data === "answered") heard.push(data); });
		const frame = (attributes) => { const f = document.createElement("iframe"); Object.assign(f, attributes); document.body.append(f); };
		frame({ src: %[1]q }); // another origin
		frame({ srcdoc: "<script>parent.postMessage({ channel: 'mcp-default', type: 'mcp', direction: 'client-to-server', payload: 'mcp-check-ready' }, '*'); parent.postMessage('done', '*')</script>" }); // another window
		frame({ sandbox: "allow-scripts", srcdoc: "<script>const { port2 } = new MessageChannel(); parent.postMessage({ type: 'pagewire:connect' }, '*', [port2]); parent.postMessage('done', '*')</script>" }); // an opaque origin
		for (const wrong of [
			{ channel: "other", type: "mcp", direction: "client-to-server", payload: "mcp-check-ready" },
			{ channel: "mcp-default", type: "other", direction: "client-to-server", payload: "mcp-check-ready" },
			{ channel: "mcp-default", type: "mcp", direction: "server-to-client", payload: "mcp-check-ready" },
			{ channel: "mcp-default", type: "mcp", direction: "client-to-server" },
			{ type: "pagewire:connect" }, null, 5, "mcp-check-ready", [],
		]) postMessage(wrong, location.origin);
		// What a script makes up may claim any origin.
		dispatchEvent(new MessageEvent("message", { origin: location.origin, source: window, data: { channel: "mcp-default", type: "mcp", direction: "client-to-server", payload: "mcp-check-ready" } }));
		await agent.until(() => heard.length >= 3);
		await agent.sleep(200);
		return heard;
	`, evil.URL))
	if strings.Join(got, " ") != "done done done" || s.fetched("/pagewire.core.js") {
		t.Errorf("heard %q; the core was fetched: %v", got, s.fetched("/pagewire.core.js"))
	}
	for _, who := range []string{evil.URL, "null"} {
		if !b.said(who + " may not connect") {
			t.Errorf("the developer was not told of the window of %s that wanted to connect", who)
		}
	}
}

// Two clients on one window, with the same ids at the same time: each request gets its answer or an
// error. If their ids differ, each gets its answer.
func TestEnvelopeClientsTogether(t *testing.T) {
	t.Parallel()
	// A read is answered after all messages that were in the window's queue when it began. WebKit
	// runs timers in between. A client takes an answer to another client for its own, if it has
	// posted the same id meanwhile.
	pageOf := page{head: recorder, script: `
		const at = (name) => location.origin + "/" + name;
		const drained = () => new Promise((done) => {
			const mark = Math.random();
			addEventListener("message", function heard({ data }) { if (data?.mark === mark) done(removeEventListener("message", heard)); });
			postMessage({ mark }, location.origin);
		});
		for (let i = 0; i < 20; i++) navigator.modelContext.registerResource({
			uri: at(i), name: "R" + i,
			read: async () => { await drained(); await new Promise((d) => setTimeout(d, 1 + Math.random() * 5)); return "text of " + i; },
		});
		// The official client counts its ids from 0; a second one can be made to count from
		// elsewhere.
		const from = (first) => {
			const transport = agent.tab(), send = transport.send.bind(transport);
			transport.send = (message, ...rest) => send("id" in message ? { ...message, id: message.id + first } : message, ...rest);
			let onmessage;
			Object.defineProperty(transport, "onmessage", {
				get: () => onmessage,
				set: (handler) => { onmessage = handler && ((message, ...rest) => "id" in message && (message.id < first || message.id >= first + 1000) ? undefined : handler("id" in message ? { ...message, id: message.id - first } : message, ...rest)); },
			});
			return transport;
		};
		const work = async (clients, rounds) => {
			let wrong = 0, answers = 0, refused = 0;
			await Promise.all(clients.map(async (a, which) => {
				for (let round = 0; round < rounds; round++) await Promise.all(Array.from({ length: 20 }, async (_, k) => {
					const i = (k * 7 + round + which * 3) % 20;
					const text = await a.read(at(i)).catch((e) => /same id/.test(e) ? refused++ : Promise.reject(e));
					if (typeof text !== "string") return;
					answers++;
					if (text !== "text of " + i) wrong++;
				}));
			}));
			return { wrong, answers, refused };
		};
	`}
	open(t, noFlag, serve(t, pageOf)).expectations(`
		// Both start at once, as scripts of one page do: two initialize under the same id.
		const clients = await Promise.all([agent.connect("legacy", agent.tab()), agent.connect("legacy", from(5000))]);
		expect("with distinct ids", await work(clients, 10), { wrong: 0, answers: 400, refused: 0 });
		// Each is told of what it subscribed, once, though each has a session.
		for (const a of clients) await a.subscribe(at(1));
		await agent.sleep(150);
		navigator.modelContext.notifyResourceUpdated(at(1));
		await agent.until(() => clients.every((a) => a.updated.length));
		await agent.sleep(100);
		expect("told", clients.map((a) => a.updated.length), [1, 1]);
	`)
	open(t, noFlag, serve(t, pageOf)).expectations(`
		const { wrong, refused } = await work(await Promise.all([agent.connect("legacy", agent.tab()), agent.connect("legacy", agent.tab())]), 1);
		expect("with the same ids a refusal is right, a wrong answer is not", [wrong, refused > 0], [0, true]);
	`)
}
