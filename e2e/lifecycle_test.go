package e2e

import (
	"slices"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// hide hides a tab, and makes sure that its timers are throttled as those of any hidden tab are.
func hide(t *testing.T, b *tab) {
	t.Helper()
	b.must(b.is.Hide(b.ctx))
	if slow := run[float64](b, `
		const channel = new MessageChannel();
		const turn = () => new Promise((done) => { channel.port1.onmessage = done; channel.port2.postMessage(0); });
		for (const end = performance.now() + 60000; document.visibilityState !== "hidden" && performance.now() < end; ) await turn();
		if (!document.hidden) throw new Error("the tab is not hidden: this test would prove nothing");
		return `+throttled); slow < 1000 {
		t.Fatalf("timers of 10 ms took %.0f ms in all: none is throttled, and this test would prove nothing", slow)
	}
}

// throttled sets timers of 10 ms, each from the one before, until they have taken a second or there were 20, and says
// how long they took. (Chromium and Firefox throttle every timer of a hidden tab, WebKit those that are nested deeply.)
const throttled = `await new Promise((done) => {
	const start = performance.now();
	let timers = 0;
	const next = () => timers++ < 20 && performance.now() < start + 1000 ? setTimeout(next, 10) : done(performance.now() - start);
	next();
});`

// A burst that ends while the tab is hidden: its last state is announced, though timers are late there, to clients that
// came by each way.
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
	got := run[struct {
		Hidden    bool
		Throttled float64
		Texts     []string
		Announced []int
	}](b, `
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
		const took = `+throttled+`
		while (clients.some((a) => a.updated.length < 2) && performance.now() < end) await new Promise((done) => setTimeout(done, 10));
		const texts = [];
		for (const a of clients) texts.push((await a.read(uri)) === last ? "last" : "another");
		return { hidden: document.hidden, throttled: took, texts, announced: clients.map((a) => a.updated.length) };
	`)
	// The first is announced at once, and the last by the second timer after it, or a later one where the core is
	// slower.
	if !got.Hidden || got.Throttled < 1000 || !slices.Equal(got.Texts, []string{"last", "last"}) ||
		slices.Min(got.Announced) < 2 {
		t.Errorf("%+v", got)
	}
}

// Away and back, again and again, by the back/forward cache: clients go on as if nothing had been, are told that what they
// watch may have changed, and nothing grows.
func TestBackForwardCache(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
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
			type state struct {
				Shows   []bool
				Told    []int
				Closed  bool
				Text    string
				Memory  int
				Ports   int
				Watched int
			}
			var first state
			const rounds = 3
			for round := 1; round <= rounds; round++ {
				b.navigate(s.URL + "/away")
				// The restored document fires no load event to wait for.
				b.must(b.is.Back(b.ctx))
				testkit.Eventually(t, "the page is back", func() bool {
					there, err := try[bool](b,
						`return location.pathname === "/" && typeof shows !== "undefined" && shows.length > 0`)
					return err == nil && there // it fails while the page changes
				})
				got := run[state](b, `
					if (typeof clients === "undefined") throw new Error("the document was not restored but loaded again: this test would prove nothing");
					await agent.until(() => clients.every((a) => a.updated.length));
					await agent.sleep(150);
					document.getElementById("field").value = "`+string(rune('a'+round))+`";
					const told = clients.map((a) => a.updated.length);
					for (const a of clients) a.updated.length = 0;
					navigator.modelContext.notifyResourceUpdated(uri);
					await agent.until(() => clients.every((a) => a.updated.length));
					const texts = await Promise.all(clients.map((a) => a.read(uri)));
					await agent.sleep(120);
					for (const a of clients) a.updated.length = 0;
					const { ports, watched } = pagewire.stats();
					return { shows, told, closed: clients.some((a) => a.closed), text: texts.join(), memory: (instance.exports.mem ?? instance.exports.memory).buffer.byteLength, ports, watched };
				`)
				if len(got.Shows) != round+1 || !got.Shows[round] {
					t.Fatalf("round %d: not persisted (%v): this test would prove nothing", round, got.Shows)
				}
				letter := string(rune('a' + round))
				if got.Closed || got.Text != letter+","+letter+","+letter+","+letter {
					t.Errorf("round %d: %+v", round, got)
				}
				for _, n := range got.Told {
					if n != 1 {
						t.Errorf("round %d: on the return the clients were told %v times, want once each", round,
							got.Told)
					}
				}
				if round == 1 {
					first = got
				}
				if got.Ports != first.Ports || got.Watched != first.Watched || got.Memory != first.Memory {
					t.Errorf("round %d: %+v, after the first %+v", round, got, first)
				}
			}
		})
	}
}
