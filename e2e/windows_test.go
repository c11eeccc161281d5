package e2e

import (
	"fmt"
	"testing"
)

// guest is a document that connects to the window `host` with a port, and reports its reads and
// notifications to it.
const guest = `<script src=%s/agent.js></script><script>
	const host = window.opener ?? parent;
	(async () => {
		const a = await agent.connect("legacy", new agent.PortTransport(host, "*"));
		const [uri] = await a.list();
		await a.subscribe(uri);
		a.client.setNotificationHandler("notifications/resources/updated", async () => host.postMessage({ guest: await a.read(uri) }, "*"));
		host.postMessage({ guest: "subscribed" }, "*");
	})();
</script>`

const hears = `
	const heard = [];
	addEventListener("message", ({ data }) => { if (data?.guest !== undefined) heard.push(data.guest); });`

const change = `
	await agent.until(() => heard.length === 1);
	document.getElementById("field").value = "typed";
	navigator.modelContext.notifyResourceUpdated(uri);
	await agent.until(() => heard.length === 2);`

// The windows that a page serves: frames of its own origin, a window that it has opened, and frames
// of another origin that it lists. TestEnvelopeIsStrict has an unlisted one. When a window closes,
// nothing of it is left.
func TestWindows(t *testing.T) {
	t.Parallel()
	guests := map[string]string{"/guest": fmt.Sprintf(guest, ""), "/other": "other"}
	other := serve(t, page{also: guests}).URL
	// A window of another origin cannot be observed: the next message for it shows that it is gone.
	const removed = `frame.remove(); navigator.modelContext.notifyResourceUpdated(uri)`
	for name, c := range map[string]struct{ tag, src, leaves string }{
		"a frame that is removed":     {"", "/guest", `frame.remove()`},
		"a frame that goes elsewhere": {"", "/guest", `frame.src = "/other"`},
		"an opened window":            {"", "", `opened.close()`},
		"a frame of an origin that the tag lists": {
			fmt.Sprintf(`<script src="/pagewire.js" data-origins="https://x.test %s"></script>`,
				other), other + "/guest",
			removed},
		"a frame of an origin that the page lists": {fmt.Sprintf(`<script src="/pagewire.js"></script><script>
			pagewire.configure({ origins: ["https://x.test", %q] })</script>`, other+"/"), other + "/guest", removed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, noFlag,
				serve(t, page{tag: c.tag, also: guests, script: field.script + hears +
					`let opened; addEventListener("click", () => { opened = window.open("/guest"); });`}))
			begins := ""
			if c.src == "" {
				b.click("#field") // only a person's click may open a window
			} else {
				begins = fmt.Sprintf(`const frame = document.createElement("iframe"); frame.src = %q;
					document.body.append(frame);`, c.src)
			}
			b.expectations(begins + change + `
				expect("heard", heard, ["subscribed", "typed"]);
				expect("ports", pagewire.stats().ports, 1);
				` + c.leaves + `;
				await agent.until(() => !pagewire.stats().ports);
			`)
		})
	}
}

// A page that is left notifies the clients in other windows.
func TestPageLeft(t *testing.T) {
	t.Parallel()
	s := serve(t, page{script: field.script,
		also: map[string]string{"/host": `<iframe src="/"></iframe><script src=/agent.js></script>`}})
	b := open(t, noFlag, s)
	b.navigate(s.URL + "/host")
	b.expectations(`
		const inner = document.querySelector("iframe");
		const { port1, port2 } = new MessageChannel();
		let closed = "";
		port1.onmessage = ({ data }) => { if (data.type === "pagewire:close") closed = data.reason; };
		inner.contentWindow.postMessage({ type: "pagewire:connect" }, location.origin, [port2]);
		await agent.until(() => inner.contentWindow.pagewire.stats().ports);
		inner.contentWindow.location = "about:blank";
		await agent.until(() => closed);
	`)
}
