package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// mortalCore catches the core's instance when it is made. While fatal is set, a length beyond the
// buffer makes its code panic, as a bug would.
const mortalCore = `<script>
	globalThis.fatal = false;
	const instantiate = WebAssembly.instantiate;
	WebAssembly.instantiate = async (...args) => {
		const instance = await instantiate(...args);
		const unregister = (now, n) => instance.exports.unregister(now, fatal ? 1 << 29 : n);
		return Object.create(instance, { exports: { value: { ...instance.exports, unregister } } });
	};
</script>`

// A core that dies is replaced: sessions end cleanly, the next agent finds all registrations and
// tools, and the console has the reason. Go's build recovers from a panic, and TinyGo's traps.
func TestCoreDeath(t *testing.T) {
	t.Parallel()
	s := serve(t, page{
		head: mortalCore,
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
	b.expectations(`
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
		expect("listed", (await second.list()).length, 2);
		expectPart("tools", await second.toolNames(), "greet");
		expectPart("reason", reason, "the core stopped");
		for (const event of ["ready", "coredead", "corerestart", "portclose"]) expectPart("events", events, event);
	`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if said := strings.Join(b.console,
		"\n"); !regexp.MustCompile(`core stopped: .*slice.* out of range`).MatchString(said) {
		t.Errorf("the console has not why it died: %q", said)
	}
}
