package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// field is a page whose input is a resource, registered by an inline script right behind the script tag.
var field = page{script: `
	const uri = location.origin + "/state/field";
	navigator.modelContext.registerResource({
		uri, name: "Field", mimeType: "text/plain",
		read: async () => ({ text: document.getElementById("field").value }),
	});
	addEventListener("input", () => navigator.modelContext.notifyResourceUpdated(uri));
`}

// The story that Pagewire exists for, with a person's real keys and an unmodified official client.
func TestStory(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m mode, era string) {
		b := open(t, m, serve(t, field))
		if has := run[bool](b, `return "ontoolchange" in document.modelContext`); has != (m.name == native.name) {
			t.Fatalf("the browser has a native ModelContext: %v", has)
		}
		listed := run[[]string](b, fmt.Sprintf(`globalThis.a = await agent.connect(%q); return a.list()`, era))
		if len(listed) != 1 || !strings.HasSuffix(listed[0], "/state/field") {
			t.Fatalf("listed %q", listed)
		}
		if text := run[string](b, `return a.read(uri)`); text != "" {
			t.Fatalf("read %q", text)
		}
		// A page that changes its URL without leaving stays what it was.
		run[any](b, `history.pushState({}, "", "/elsewhere"); await a.subscribe(uri)`)
		b.types("#field", "milk")
		run[any](b, `await agent.until(() => a.updated.length > 0)`)
		// The last of the four keys is announced after its interval at the latest.
		text := run[string](b, `let text = "", seen = 0;
			await agent.until(() => a.updated.length > seen);
			for (const end = performance.now() + 60000; text !== "milk" && performance.now() < end; ) {
				if (a.updated.length > seen) { seen = a.updated.length; text = await a.read(uri); } else await agent.sleep(5);
			}
			return text`)
		if text != "milk" {
			t.Errorf("read again %q", text)
		}
		want := map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}[era]
		if version := run[string](b, `return a.client.getNegotiatedProtocolVersion()`); version != want {
			t.Errorf("spoke %s", version)
		}
	})
}

// 10,000 notifications in one loop are two messages to a subscriber, the first at once and one behind the last
// change; and none at all without a subscriber.
func TestNotifyLoop(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			notifyLoop(t, era)
		})
	}
}

func notifyLoop(t *testing.T, era string) {
	b := open(t, noFlag, serve(t, page{script: `
		let n = 0;
		const uri = location.origin + "/counter";
		navigator.modelContext.registerResource({ uri, name: "Counter", read: () => String(n) });
		const loop = () => { for (let i = 0; i < 10000; i++) { n++; navigator.modelContext.notifyResourceUpdated(uri); } };
	`}))
	got := run[struct {
		Nobody, Leading, All int
		Text, Final          string
	}](b, fmt.Sprintf(`
		const a = await agent.connect(%q);
		let received = 0;
		const before = a.client.transport.onmessage;
		a.client.transport.onmessage = (m, extra) => { received++; before(m, extra); };
		loop();
		await agent.sleep(300);
		const nobody = received;
		await a.subscribe(uri);
		await agent.sleep(150);
		loop();
		const text = await a.read(uri);
		const leading = a.updated.length;
		await agent.until(() => a.updated.length > 1);
		await agent.sleep(250);
		return { nobody, leading, all: a.updated.length, text, final: await a.read(uri) };
	`, era))
	if got.Nobody != 0 {
		t.Errorf("%d messages though nobody subscribed", got.Nobody)
	}
	// On a machine that is busy the second may have come before the read was answered.
	if got.Leading < 1 || got.All != 2 {
		t.Errorf("%d updates by the first read and %d in all, want 1 and 2", got.Leading, got.All)
	}
	if got.Text != "20000" || got.Final != "20000" {
		t.Errorf("read %q right after the loop and %q behind the last update", got.Text, got.Final)
	}
}
