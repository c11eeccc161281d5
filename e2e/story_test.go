package e2e

import (
	"fmt"
	"testing"
)

// field is a page whose input is a resource, registered by an inline script immediately after the
// script tag.
var field = page{script: `
	const uri = location.origin + "/state/field";
	navigator.modelContext.registerResource({
		uri, name: "Field", mimeType: "text/plain",
		read: async () => ({ text: document.getElementById("field").value }),
	});
	addEventListener("input", () => navigator.modelContext.notifyResourceUpdated(uri));
`}

// The purpose of Pagewire as a story, with a person's real keys and an unmodified official client.
func TestStory(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		for _, era := range eras {
			t.Run(fmt.Sprint(m, "/", era), func(t *testing.T) {
				t.Parallel()
				b := open(t, m, serve(t, field))
				b.expectations(fmt.Sprintf(`
					expect("the browser's own ModelContext", "ontoolchange" in document.modelContext, %t);
					globalThis.a = await agent.connect(%q);
					expect("version", a.client.getNegotiatedProtocolVersion(), %q);
					expect("listed", await a.list(), [location.origin + "/state/field"]);
					expect("read", await a.read(uri), "");
					// A page that changes its URL without leaving stays what it was.
					history.pushState({}, "", "/elsewhere");
					await a.subscribe(uri);
				`, m.name == native.name, era, map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}[string(era)]))
				b.types("#field", "milk")
				// The last of the four keys is announced after its interval at the latest.
				b.expectations(`
					let text = "", seen = 0;
					for (; text !== "milk"; text = await a.read(uri)) {
						await agent.until(() => a.updated.length > seen);
						seen = a.updated.length;
					}
				`)
			})
		}
	}
}

// 10,000 notifications in one loop are two messages to a subscriber: the first at once, and one
// after the last change. Without a subscriber there is no message.
func TestNotifyLoop(t *testing.T) {
	t.Parallel()
	each(t, eras, func(t *testing.T, era era) {
		open(t, noFlag, serve(t, page{script: `
			let n = 0;
			const uri = location.origin + "/counter";
			navigator.modelContext.registerResource({ uri, name: "Counter", read: () => String(n) });
			const loop = () => { for (let i = 0; i < 10000; i++) { n++; navigator.modelContext.notifyResourceUpdated(uri); } };
		`})).expectations(fmt.Sprintf(`
			const a = await agent.connect(%q);
			let received = 0;
			const before = a.client.transport.onmessage;
			a.client.transport.onmessage = (m, extra) => { received++; before(m, extra); };
			loop();
			await agent.sleep(300);
			expect("messages though nobody has subscribed", received, 0);
			await a.subscribe(uri);
			await agent.sleep(150);
			loop();
			expect("read right behind the loop", await a.read(uri), "20000");
			// On a machine that is busy the second may have come before the read was answered.
			expect("the first by then", a.updated.length >= 1, true);
			await agent.until(() => a.updated.length > 1);
			await agent.sleep(250);
			expect("updates in all, and the last state", [a.updated.length, await a.read(uri)], [2, "20000"]);
		`, era))
	})
}
