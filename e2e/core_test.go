package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Where the page's CSP forbids wasm, the core runs in the worker file, which obeys the CSP of its own response.
func TestWorker(t *testing.T) {
	t.Parallel()
	s := serve(t, page{
		tag:     `<script src="/pagewire.js"></script><script src="/register.js"></script>`,
		headers: map[string]string{"Content-Security-Policy": "script-src 'self' 'unsafe-inline'"},
		script:  field.script,
	})
	b := open(t, noFlag, s)
	if blocked := run[bool](b,
		`return WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => false, () => true)`); !blocked {
		t.Fatal("the page's CSP does not forbid wasm: this test would prove nothing")
	}
	text := run[string](b, `
		globalThis.a = await agent.connect("modern");
		await a.subscribe(uri);
		document.getElementById("field").value = "typed";
		navigator.modelContext.notifyResourceUpdated(uri);
		await agent.until(() => a.updated.length);
		return a.read(uri);
	`)
	if text != "typed" || !s.fetched("/pagewire.worker.js") {
		t.Errorf("read %q; the worker was fetched: %v", text, s.fetched("/pagewire.worker.js"))
	}
}

// Where wasm is forbidden everywhere, the developer is told which response needs what, and no client waits for ever.
func TestNoPlaceForTheCore(t *testing.T) {
	t.Parallel()
	s := serve(t,
		page{script: field.script, all: true,
			headers: map[string]string{"Content-Security-Policy": "script-src 'self' 'unsafe-inline'"}})
	b := open(t, noFlag, s)
	got := run[struct{ Event, Client string }](b, `
		let event = "";
		pagewire.addEventListener("error", ({ detail }) => { event = String(detail.error?.message ?? detail.message ?? detail); });
		const client = await agent.connect("legacy").then(() => "connected", (e) => String(e));
		await agent.until(() => event);
		return { event, client };
	`)
	if !strings.Contains(got.Event, "wasm-unsafe-eval") || !strings.Contains(got.Event, "pagewire.worker.js") {
		t.Errorf("the error does not say what to do: %q", got.Event)
	}
	if got.Client == "connected" {
		t.Error("the client thinks that it is connected")
	}
}

// A core that dies is replaced: sessions end cleanly, the next agent finds all registrations and tools, and the console
// has the reason. A panic is recovered from in Go's build, and a trap in TinyGo's.
func TestCoreDeath(t *testing.T) {
	t.Parallel()
	s := serve(t, page{
		// The instance is caught on its way in, so that the test can make the core fail as a bug would: a length beyond
		// the buffer makes its code panic.
		head: `<script>
			const instantiate = WebAssembly.instantiate;
			WebAssembly.instantiate = async (...args) => {
				const instance = await instantiate(...args);
				const unregister = (now, n) => instance.exports.unregister(now, globalThis.fatal ? 1 << 29 : n);
				return Object.create(instance, { exports: { value: { ...instance.exports, unregister } } });
			};
			const said = [];
			const { error } = console;
			console.error = (...args) => (said.push(args.join(" ")), error(...args));
		</script>`,
		script: field.script + `
			navigator.modelContext.registerTool({ name: "greet", description: "Greets", execute: () => "hello" });
			navigator.modelContext.registerResource({ uri: new URL("/kept", location.href).href, name: "kept", read: () => "" });
			const events = [];
			let reason = "";
			for (const type of ["ready", "coredead", "corerestart", "portclose", "error"]) pagewire.addEventListener(type, (e) => {
				events.push(type);
				if (type === "coredead") reason = e.detail.reason;
			});`,
	})
	b := open(t, noFlag, s)
	got := run[struct {
		Closed                      bool
		Reason                      string
		Listed, Tools, Events, Said []string
	}](b, `
		const first = await agent.connect("legacy");
		await first.list();
		globalThis.fatal = true;
		const brief = new AbortController();
		const more = { uri: new URL("/more", location.href).href, name: "more", read: () => "" };
		navigator.modelContext.registerResource(more, { signal: brief.signal });
		brief.abort(); // the core dies
		globalThis.fatal = false;
		await agent.until(() => first.closed);
		const second = await agent.connect("modern");
		const listed = await second.list();
		const tools = (await second.client.listTools()).tools.map(({ name }) => name);
		return { reason, closed: first.closed, listed, tools, events, said };
	`)
	if !strings.HasPrefix(got.Reason, "the core stopped") {
		t.Errorf("the core died of %q", got.Reason)
	}
	if said := strings.Join(got.Said, "\n"); !regexp.MustCompile(`core stopped: .*slice.* out of range`).MatchString(said) {
		t.Errorf("the console has not why it died: %q", said)
	}
	if !got.Closed || len(got.Listed) != 2 || !slices.Contains(got.Tools, "greet") {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"ready", "coredead", "corerestart", "portclose"} {
		if !slices.Contains(got.Events, want) {
			t.Errorf("no event %s among %q", want, got.Events)
		}
	}
}
