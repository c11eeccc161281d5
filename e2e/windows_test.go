package e2e

import (
	"fmt"
	"testing"
)

// guest is a document that connects to the window `host` with a port, and tells it what it reads and of what it is
// told.
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

// hears collects what guests say.
const hears = `
	const heard = [];
	addEventListener("message", ({ data }) => { if (data?.guest !== undefined) heard.push(data.guest); });`

const change = `
	await agent.until(() => heard.length === 1);
	document.getElementById("field").value = "typed";
	navigator.modelContext.notifyResourceUpdated(uri);
	await agent.until(() => heard.length === 2);`

type hosted struct {
	Heard         []string
	During, After int
}

func checkHosted(t *testing.T, got hosted) {
	t.Helper()
	if fmt.Sprint(got.Heard) != "[subscribed typed]" {
		t.Errorf("the guest said %q", got.Heard)
	}
	if got.During != 1 || got.After != 0 {
		t.Errorf("%d ports while it was there and %d when it was gone, want 1 and 0", got.During, got.After)
	}
}

// A frame of the page's own origin is served, and when it goes, removed or off to another page, nothing of it is left.
func TestFrame(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]string{"is removed": `frame.remove()`,
		"goes elsewhere": `frame.src = "/other"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, noFlag,
				serve(t, page{script: field.script + hears, also: map[string]string{"/guest": fmt.Sprintf(guest, ""),
					"/other": "other"}}))
			checkHosted(t, run[hosted](b, `
				const frame = document.createElement("iframe");
				frame.src = "/guest";
				document.body.append(frame);
				`+change+`
				const during = pagewire.stats().ports;
				`+leaves+`;
				await agent.until(() => !pagewire.stats().ports);
				return { heard, during, after: pagewire.stats().ports };
			`))
		})
	}
}

// A window that the page has opened.
func TestOpenedWindow(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{
		script: field.script + hears +
			`let opened; addEventListener("click", () => { opened = window.open("/guest"); });`,
		also: map[string]string{"/guest": fmt.Sprintf(guest, "")},
	}))
	b.click("#field") // only a person's click may open a window
	checkHosted(t, run[hosted](b, change+`
		const during = pagewire.stats().ports;
		opened.close();
		await agent.until(() => !pagewire.stats().ports);
		return { heard, during, after: pagewire.stats().ports };
	`))
}

// A frame of another origin that the page lists; TestEnvelopeIsStrict has one that it does not list.
func TestListedOrigin(t *testing.T) {
	t.Parallel()
	other := serve(t, page{also: map[string]string{"/guest": fmt.Sprintf(guest, "")}})
	for _, way := range []string{
		fmt.Sprintf(`<script src="/pagewire.js" data-origins="https://x.test %s"></script>`, other.URL),
		fmt.Sprintf(
			`<script src="/pagewire.js"></script><script>pagewire.configure({ origins: ["https://x.test", %q] })</script>`, other.URL+"/"),
	} {
		b := open(t, noFlag, serve(t, page{tag: way, script: field.script + hears}))
		checkHosted(t, run[hosted](b, fmt.Sprintf(`
			const frame = document.createElement("iframe");
			frame.src = %q;
			document.body.append(frame);
			`+change+`
			const during = pagewire.stats().ports;
			frame.remove();
			// A window of another origin cannot be listened to; that it is gone shows with the next message for it.
			navigator.modelContext.notifyResourceUpdated(uri);
			await agent.until(() => !pagewire.stats().ports);
			return { heard, during, after: pagewire.stats().ports };
		`, other.URL+"/guest")))
	}
}

// A page that is left tells the clients in other windows.
func TestPageLeft(t *testing.T) {
	t.Parallel()
	s := serve(t,
		page{script: field.script,
			also: map[string]string{"/host": `<iframe src="/"></iframe><script src=/agent.js></script>`}})
	b := open(t, noFlag, s)
	b.navigate(s.URL + "/host")
	if closed := run[bool](b, `
		const inner = document.querySelector("iframe");
		const { port1, port2 } = new MessageChannel();
		let closed = "";
		port1.onmessage = ({ data }) => { if (data.type === "pagewire:close") closed = data.reason; };
		inner.contentWindow.postMessage({ type: "pagewire:connect" }, location.origin, [port2]);
		await agent.until(() => inner.contentWindow.pagewire.stats().ports);
		inner.contentWindow.location = "about:blank";
		await agent.until(() => closed);
		return closed !== "";
	`); !closed {
		t.Error("the client was not told")
	}
}
