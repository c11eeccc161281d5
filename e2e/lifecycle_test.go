package e2e

import (
	"fmt"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// hide hides a tab, and checks that its timers are throttled as those of any hidden tab.
func hide(t *testing.T, b *tab) {
	t.Helper()
	b.must(b.is.Hide(b.ctx))
	if slow := run[float64](b, `
		const channel = new MessageChannel();
		const turn = () => new Promise((done) => { channel.port1.onmessage = done; channel.port2.postMessage(0); });
		for (const end = performance.now() + 60000; document.visibilityState !== "hidden" && performance.now() < end; ) await turn();
		if (!document.hidden) throw new Error("the tab is not hidden: this test would prove nothing");
		return `+throttled); slow < 1000 {
		t.Fatalf(
			"timers of 10 ms took %.0f ms in all: none is throttled, and this test would prove nothing", slow)
	}
}

// throttled sets timers of 10 ms, each from the one before, until a second has passed or 20 have
// run, and returns the time in ms. (Chromium and Firefox throttle every timer of a hidden tab,
// WebKit deeply nested timers.)
const throttled = `await new Promise((done) => {
	const start = performance.now();
	let timers = 0;
	const next = () => timers++ < 20 && performance.now() < start + 1000 ? setTimeout(next, 10) : done(performance.now() - start);
	next();
});`

// A burst that ends while the tab is hidden. Its last state is announced, although timers are late
// there, to clients of each kind of connection.
func TestHiddenTab(t *testing.T) {
	t.Parallel()
	b := openAlone(t, noFlag, serve(t, page{script: `
		let n = 0;
		const uri = location.origin + "/counter";
		navigator.modelContext.registerResource({ uri, name: "Counter", read: () => String(n) });`}))
	run[any](b, `
		globalThis.clients = [await agent.connect("legacy", agent.pagewireTransport()), await agent.connect("legacy", agent.tab())];
		for (const a of clients) await a.subscribe(uri)`)
	hide(t, b)
	b.expectations(`
		const channel = new MessageChannel();
		const turn = () => new Promise((done) => { channel.port1.onmessage = done; channel.port2.postMessage(0); });
		// Twice at least: a page that rests for so long would else have changed once.
		for (const end = performance.now() + 350; n < 2 || performance.now() < end; await turn()) { n++; navigator.modelContext.notifyResourceUpdated(uri); }
		const end = performance.now() + 60000, last = String(n);
		for (const a of clients) {
			let text = "";
			for (let seen = -1; text !== last && performance.now() < end; await turn()) {
				if (a.updated.length > seen) { seen = a.updated.length; text = await a.read(uri); }
			}
		}
		// A read may be ahead of the news, which comes with the next timer: one a second, here.
		const took = ` + throttled + `
		// The first is announced at once, and the last by the second timer after it, or a later one
		// where the core is slower.
		while (clients.some((a) => a.updated.length < 2) && performance.now() < end) await new Promise((done) => setTimeout(done, 10));
		expect("announced twice", clients.filter((a) => a.updated.length < 2).length, 0);
		for (const a of clients) expect("the last state", await a.read(uri), last);
		expect("hidden, and throttled", [document.hidden, took >= 1000], [true, true]);
	`)
}

// Away and back, again and again, by the back/forward cache. Clients continue without an
// interruption, are notified that their resources may have changed, and nothing grows.
func TestBackForwardCache(t *testing.T) {
	t.Parallel()
	each(t, modes, func(t *testing.T, m mode) {
		s := serve(t, page{
			head: `<script>
				const instantiate = WebAssembly.instantiate;
				WebAssembly.instantiate = async (...args) => (globalThis.instance = await instantiate(...args));
				const shows = [];
				addEventListener("pageshow", ({ persisted }) => shows.push(persisted));
			</script>`,
			script: field.script,
			also:   map[string]string{"/away": "away"},
		})
		b := open(t, m, s)
		run[any](b, `
			globalThis.clients = [await agent.connect("legacy"), await agent.connect("modern"), await agent.connect("legacy", new agent.PortTransport()), await agent.connect("legacy", agent.tab())];
			for (const a of clients) await a.subscribe(uri);
		`)
		for round := 1; round <= 3; round++ {
			b.navigate(s.URL + "/away")
			// The restored document fires no load event to wait for.
			b.must(b.is.Back(b.ctx))
			testkit.Eventually(t, "the page is back", func() bool {
				there, err := try[bool](b,
					`return location.pathname === "/" && typeof shows !== "undefined" && shows.length > 0`)
				return err == nil && there // it fails while the tab changes documents
			})
			b.expectations(fmt.Sprintf(`
				if (typeof clients === "undefined") throw new Error("the document was not restored but loaded again: this test would prove nothing");
				const round = %d;
				expect("persisted, or this test would prove nothing", [shows.length, shows[round]], [round + 1, true]);
				await agent.until(() => clients.every((a) => a.updated.length));
				await agent.sleep(150);
				expect("told on the return", clients.map((a) => a.updated.length), [1, 1, 1, 1]);
				const text = document.getElementById("field").value = "round " + round;
				for (const a of clients) a.updated.length = 0;
				navigator.modelContext.notifyResourceUpdated(uri);
				await agent.until(() => clients.every((a) => a.updated.length));
				for (const a of clients) expect("read", await a.read(uri), text);
				await agent.sleep(120);
				for (const a of clients) a.updated.length = 0;
				expect("closed", clients.some((a) => a.closed), false);
				const { ports, watched } = pagewire.stats();
				const now = [ports, watched, (instance.exports.mem ?? instance.exports.memory).buffer.byteLength];
				expect("ports, watched and memory", now, globalThis.first ??= now);
			`, round))
		}
	})
}
