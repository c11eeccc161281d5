package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
