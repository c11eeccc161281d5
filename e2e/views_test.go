package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// MCP Apps Views that subscribe, in Chromium: a stock App in a sandboxed frame, a stock AppBridge
// with our module, and a real server. js/test/views has the tests of the rules, and of each row of
// the proposal's security table. Here they meet the code of others.

const live = "data://metrics/live"

type viewServer struct{ url string }

// counts are a server's present subscribers, of the legacy era and the modern one.
type counts struct{ Subscriptions, Streams int }

func (s viewServer) counts(t *testing.T) (c counts) {
	t.Helper()
	r, err := http.Get(s.url + "/counts")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s viewServer) change(t *testing.T, uri string) {
	t.Helper()
	r, err := http.Get(s.url + "/change?uri=" + uri)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
}

// needViews installs nothing: it fails with instructions if a package of the tests is missing.
func needViews(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(
		"views/node_modules/@modelcontextprotocol/ext-apps/package.json"); err != nil {
		t.Fatalf("%v: run make test-browser, or npm ci in e2e/views", err)
	}
}

func typescriptServer(t *testing.T) viewServer {
	t.Helper()
	needViews(t)
	return viewServer{serverOf(t, "views", "server.mjs")}
}

var viewPages struct {
	sync.Once
	host, view []byte
	err        error
}

func bundleViews(t *testing.T) {
	t.Helper()
	needViews(t)
	viewPages.Do(func() {
		o := api.BuildOptions{Format: api.FormatESModule, External: []string{"/views.js"}}
		var hostErr, viewErr error
		viewPages.host, hostErr = bundled("views/host.ts", "views/node_modules", o)
		viewPages.view, viewErr = bundled("views/view.ts", "views/node_modules", o)
		viewPages.err = errors.Join(hostErr, viewErr)
	})
	if viewPages.err != nil {
		t.Fatal(viewPages.err)
	}
}

// openHost opens the page of a host and connects it to a server. Its module is the global `host`.
func openHost(t *testing.T, s viewServer, era era) *tab {
	t.Helper()
	bundleViews(t)
	b := open(t, noFlag, serve(t, page{
		// the frames are of an opaque origin
		all: true, headers: map[string]string{"Access-Control-Allow-Origin": "*"},
		tag: `<script type=module>globalThis.host = await import("/host.js")</script>`,
		also: map[string]string{
			"/view.html": `<body><script type=module src=/view.js></script>`,
			"/other.html": `<body><script>
				const report = (what) => parent.postMessage({ report: what }, "*");
				addEventListener("message", ({ data }) => report({ heard: data }));
				addEventListener("load", () => report({ state: "loaded" }));
			</script>`,
		},
		scripts: map[string]string{"/host.js": string(viewPages.host),
			"/view.js": string(viewPages.view)},
	}))
	run[any](b,
		fmt.Sprintf(`await agent.until(() => globalThis.host); await host.connect(%q, %q)`, s.url+
			"/mcp", era))
	return b
}

// held returns the subscriptions or streams that a server holds for us.
func (c counts) held() int { return c.Subscriptions + c.Streams }

// The whole story, with none of our code in the View: it subscribes, is notified, reads, and is
// torn down.
func TestViewsSubscribe(t *testing.T) {
	t.Parallel()
	each(t, eras, func(t *testing.T, era era) {
		s := typescriptServer(t)
		b := openHost(t, s, era)
		b.expectations(`
			await host.open("v");
			expectPart("the View sees", await host.inView("v", "return app.getHostCapabilities()"), '"io.github.pagewire/resourceSubscriptions":{"maxSubscriptions":10}');
			await host.inView("v", 'app.setNotificationHandler("notifications/resources/updated", ({ params }) => report({ told: params.uri }))');
			const subscribe = (uri) => host.inView("v", "return app.request({ method: 'resources/subscribe', params: { uri: '" + uri + "' } })");
			// The host says -32002, as the channel is of the legacy era; the App's SDK makes that
			// -32602.
			expect("what the server does not offer", await subscribe("data://nowhere").catch(({ message }) => message), '[-32602,"Resource not found",{"uri":"data://nowhere"}]');
			await subscribe("` + live + `");
		`)
		if c := s.counts(t); c.held() != 1 {
			t.Errorf("while the View watches: %+v", c)
		}
		s.change(t, live)
		b.expectations(`
			await host.until(() => host.places.get("v").reports.some((r) => r.told));
			expect("read", await host.inView("v", "return (await app.readServerResource({ uri: '` + live + `' })).contents[0].text"), '{"version":1}');
			await host.places.get("v").bridge.teardownResource({});
			await host.until(() => host.stats().pending === 0);
			expect("after the teardown", [host.stats().upstream, host.stats().subscriptions], [0, 0]);
		`)
		testkit.Eventually(t, "the server is told", func() bool { return s.counts(t).held() == 0 })
	})
}

// A frame goes to a document that is no App: the App's watches are released, and the document gets
// no message. An App that comes after it, or is reloaded, continues. The App greets its host before
// its document has loaded, or long after.
func TestViewsNavigate(t *testing.T) {
	t.Parallel()
	s := typescriptServer(t)
	b := openHost(t, s, "legacy")
	version := 0
	// shown changes the resource, and waits until these Views show it.
	shown := func(views ...string) {
		t.Helper()
		version++
		s.change(t, live)
		for _, v := range views {
			run[any](b,
				fmt.Sprintf(`await host.until(() => host.seen(%q).at(-1) === '{"version":%d}')`, v,
					version))
		}
	}
	watched := func(views int) {
		t.Helper()
		run[any](b, fmt.Sprintf(`await host.until(() => host.stats().subscriptions === %d)`, views))
	}
	apps := map[string]string{"early": "opaque", "late": "opaque", "same": "same"}
	app := func(name string) string {
		query := "recheck=1000000&watch=" + live // the helper must not repair the host's omissions
		if name == "late" {
			query += "&late"
		}
		return query
	}
	run[any](b, `await host.open("stays", "watch=`+live+`")`)
	for name, origin := range apps {
		run[any](b, fmt.Sprintf(`await host.open(%q, %q, {}, %q)`, name, app(name), origin))
	}
	watched(4)
	shown("stays", "early", "late", "same")

	// A document of the same App, loaded by its host and by itself, and a fragment of it.
	for name := range apps {
		run[any](b, fmt.Sprintf(`
			await host.navigate(%[1]q, (frame) => (frame.src = "/view.html?again&%[2]s"));
			await host.navigate(%[1]q, () => host.inView(%[1]q, "setTimeout(() => location.reload())"));
			const { frame } = host.places.get(%[1]q);
			const told = new Promise((done) => (frame.onload = done)); // of another fragment, where the frame is of another origin
			frame.src += "#fragment";
			if (!frame.contentDocument) await told;
		`, name, app(name)))
	}
	watched(4)
	shown("stays", "early", "late", "same")

	// Documents that are no Apps, one after the other.
	for name := range apps {
		run[any](b,
			fmt.Sprintf(
				`await host.navigate(%[1]q, () => host.inView(%[1]q, "setTimeout(() => location.href = '/other.html')"))`, name))
	}
	shown("stays")
	watched(1)
	for name := range apps {
		run[any](b,
			fmt.Sprintf(`await host.navigate(%q, (frame) => (frame.src = "/other.html?again"))`,
				name))
	}
	shown("stays")
	for name := range apps {
		// Where it cannot be known otherwise, the document is asked whether it is an App.
		b.expectations(fmt.Sprintf(`const heard = host.places.get(%[1]q).reports.filter((r) => r.heard).map((r) => r.heard.method);
			expect("%[1]s: what a document heard that is no App", heard, %[1]q === "late" && heard.length ? ["ping"] : []);`, name))
	}

	// And Apps again.
	for name := range apps {
		run[any](b, fmt.Sprintf(`await host.load(%q, %q)`, name, app(name)))
	}
	watched(4)
	shown("stays", "early", "late", "same")

	run[any](b,
		`for (const name of host.places.keys()) await host.navigate(name, (frame) => (frame.src = "/other.html"))`)
	testkit.Eventually(t, "nothing is left at the server",
		func() bool { return s.counts(t).held() == 0 })
}

// The connection to the server is lost, and a new one follows: the Views' resources are watched
// again, and the changes in between are shown.
func TestViewsOutliveTheConnection(t *testing.T) {
	t.Parallel()
	each(t, eras, func(t *testing.T, era era) {
		s := typescriptServer(t)
		b := openHost(t, s, era)
		run[any](b, `await host.open("v", "watch=`+live+
			`"); await host.until(() => host.seen("v").length); await host.client.close()`)
		s.change(t, live)
		run[any](b, fmt.Sprintf(`
			await host.sleep(50);
			await host.reconnect(%q);
			await host.until(() => host.seen("v").at(-1) === '{"version":1}');
		`, s.url+"/mcp"))
		s.change(t, live)
		run[any](b, `await host.until(() => host.seen("v").at(-1) === '{"version":2}')`)
	})
}

// A host without AppBridge, and a View without App: plain messages, and other people's names for
// them.
func TestViewsOfAPlainHost(t *testing.T) {
	t.Parallel()
	s := typescriptServer(t)
	b := openHost(t, s, "legacy")
	b.expectations(fmt.Sprintf(`
		const { frame, reports } = host.frame("v");
		const log = [];
		const views = host.attachViews(frame, host.client, { maxSubscriptions: 1, limitCode: -32001 });
		await views.ready;
		const mine = ({ source, data }) => {
			if (source !== frame.contentWindow || data?.jsonrpc !== "2.0") return;
			log.push("host got " + data.method);
			if (data.method === "ui/initialize") frame.contentWindow.postMessage({ jsonrpc: "2.0", id: data.id, result: { protocolVersion: "2026-01-26", hostCapabilities: views.capabilities({ openLinks: {}, serverResources: { listChanged: true } }), hostInfo: { name: "plain", version: "1" }, hostContext: {} } }, "*");
		};
		addEventListener("message", mine);
		await host.load("v", "plain");
		// A View as prefab's bridge is: no App, and capabilities looked for in the raw answer.
		const answer = await host.inView("v", `+"`"+`
			let id = 0;
			const waiting = new Map();
			globalThis.got = [];
			addEventListener("message", ({ data }) => { if (data?.jsonrpc !== "2.0") return; if (data.method) got.push(data.method + " " + data.params?.uri); else waiting.get(data.id)?.(data); });
			globalThis.ask = (method, params) => new Promise((done) => { waiting.set(++id, done); parent.postMessage({ jsonrpc: "2.0", id, method, params }, "*"); });
			const { result } = await ask("ui/initialize", { appCapabilities: {}, appInfo: { name: "plain", version: "1" }, protocolVersion: "2026-01-26" });
			parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/initialized" }, "*");
			return result.hostCapabilities;
		`+"`"+`);
		log.push(JSON.stringify(answer));
		const ask = async (method, params) => { const { result, error } = await host.inView("v", "return ask(" + JSON.stringify(method) + ", " + JSON.stringify(params) + ")"); log.push(method + " " + JSON.stringify(error ?? result)); };
		await ask("resources/subscribe", { uri: "data://table" });
		await ask("resources/subscribe", { uri: "data://log" });
		await fetch(%q + "/change?uri=data://table");
		await host.until(async () => (await host.inView("v", "return got.length")) > 0);
		log.push(...(await host.inView("v", "return got")));
		await ask("resources/read", { uri: "data://table" });
		views.teardown();
		await host.until(() => views.stats().upstream === 0);
		expect("subscriptions", views.stats().subscriptions, 0);
		frame.remove();
		await host.sleep(20);
		expect("closed", views.closed, true);
		expect("log", log, [
			"host got ui/initialize", "host got ui/notifications/initialized",
			'{"openLinks":{},"serverResources":{"listChanged":true,"subscribe":true,"maxSubscriptions":1},"experimental":{"io.github.pagewire/resourceSubscriptions":{"maxSubscriptions":1}}}',
			"resources/subscribe {}",
			'resources/subscribe {"code":-32001,"message":"Subscription limit reached","data":{"reason":"subscription_limit","maxSubscriptions":1,"uri":"data://log"}}',
			"notifications/resources/updated data://table",
			'resources/read {"contents":[{"uri":"data://table","mimeType":"application/json","text":"{\\"version\\":1}"}]}',
		]);
	`, s.url))
	testkit.Eventually(t, "nothing is left at the server",
		func() bool { return s.counts(t).held() == 0 })
}

// A frame that is gone, however it went, leaves no subscription, also if it was attached before it
// was in the document and lived shorter than a second.
func TestViewsThatAreGone(t *testing.T) {
	t.Parallel()
	s := typescriptServer(t)
	b := openHost(t, s, "legacy")
	b.expectations(`
		const view = ` + "`" + `
			const post = (m) => parent.postMessage({ jsonrpc: "2.0", ...m }, "*");
			addEventListener("message", ({ data }) => {
				if (data.id === 1) { post({ method: "ui/notifications/initialized" }); post({ id: 2, method: "resources/subscribe", params: { uri: "data://table" } }); }
				if (data.id === 2) parent.postMessage({ subscribed: !data.error }, "*");
			});
			post({ id: 1, method: "ui/initialize", params: { appCapabilities: {}, appInfo: { name: "v", version: "1" }, protocolVersion: "2026-01-26" } });
		` + "`" + `;
		const loads = "<script>" + view + "</scr" + "ipt>";
		const loading = "<script>document.open(); document.write(" + JSON.stringify(loads).replace("</", "<\\/") + ")</scr" + "ipt>"; // it is never closed
		const box = (frame) => { const div = document.createElement("div"); document.body.append(div); div.append(frame); };
		const shadow = (mode, to = document.body) => { const div = document.createElement("div"); to.append(div); return div.attachShadow({ mode }); };
		const remove = (frame) => frame.remove();
		for (const [what, html, put, end] of [
			["removed", loads, (frame) => document.body.append(frame), remove],
			["removed before it has loaded", loading, (frame) => document.body.append(frame), remove],
			["moved", loads, box, box],
			["moved before it has loaded", loading, box, box],
			["replaced", loads, box, (frame) => frame.replaceWith("")],
			["removed with what is around it", loads, box, (frame) => frame.parentNode.remove()],
			["removed with a shadow tree", loads, (frame) => shadow("closed").append(frame), (frame) => frame.getRootNode().host.remove()],
			["removed with an outer shadow tree", loading, (frame) => shadow("closed", shadow("closed")).append(frame), (frame) => frame.getRootNode().host.getRootNode().host.remove()],
			["moved as it is into a shadow tree, and removed there", loads, box, async (frame) => { shadow("open").moveBefore(frame, null); await host.sleep(0); frame.remove(); }],
			["moved into another document", loads, box, (frame) => { const other = document.createElement("iframe"); document.body.append(other); other.contentDocument.body.append(frame); }],
		]) {
			const frame = document.createElement("iframe");
			frame.sandbox.add("allow-scripts");
			frame.srcdoc = html;
			const views = host.attachViews(frame, host.client, {});
			await views.ready;
			let subscribed;
			addEventListener("message", ({ source, data }) => {
				if (source !== frame.contentWindow) return;
				if (data.method === "ui/initialize") frame.contentWindow.postMessage({ jsonrpc: "2.0", id: data.id, result: { protocolVersion: "2026-01-26", hostCapabilities: views.capabilities({ serverResources: {} }), hostInfo: { name: "h", version: "1" }, hostContext: {} } }, "*");
				subscribed ??= data.subscribed;
			});
			put(frame);
			await host.until(() => subscribed !== undefined);
			expect(what + ": before", [subscribed, views.closed, views.stats().upstream], [true, false, 1]);
			await end(frame);
			await host.until(() => views.closed && views.stats().upstream === 0, 10_000).catch(() => {});
			expect(what + ": after", [views.closed, views.stats().upstream], [true, 0]);
			expect(what + ": announced", views.capabilities({}), {});
			views.close?.();
		}
	`)
	testkit.Eventually(t, "nothing is left at the server",
		func() bool { return s.counts(t).held() == 0 })
}

// Frames that are removed at any moment of their life leave nothing: before their document has
// come, while it makes its handshake, while it subscribes, and later.
func TestViewsRemovedAtAnyMoment(t *testing.T) {
	t.Parallel()
	each(t, eras, func(t *testing.T, era era) {
		s := typescriptServer(t)
		b := openHost(t, s, era)
		b.expectations(`
			const view = "<script>const post = (m) => parent.postMessage({ jsonrpc: '2.0', ...m }, '*');" +
				"addEventListener('message', ({ data }) => { if (data.id === 1) post({ id: 2, method: 'resources/subscribe', params: { uri: 'data://table' } }); });" +
				"post({ id: 1, method: 'ui/initialize', params: {} });</scr" + "ipt>";
			const moments = {
				"at once": () => {},
				"before its document": () => host.sleep(0),
				"with its handshake": (hears) => hears("ui/initialize"),
				"with its subscribe": (hears) => hears("resources/subscribe"),
				"after its subscribe": (hears) => hears("resources/subscribe").then(() => host.sleep(0)),
				"when it is subscribed": (hears, views) => host.until(() => views.stats().subscriptions === 1),
			};
			const all = [];
			for (let i = 0; i < 8; i++)
				for (const comes of Object.values(moments)) {
					const frame = document.createElement("iframe");
					frame.sandbox.add("allow-scripts");
					frame.srcdoc = view;
					const ofFrame = (method, act) => addEventListener("message", ({ source, data }) => source && source === frame.contentWindow && data.method === method && act(source), { capture: true });
					ofFrame("ui/initialize", (source) => source.postMessage({ jsonrpc: "2.0", id: 1, result: {} }, "*"));
					const hears = (method) => new Promise((done) => ofFrame(method, done));
					const heard = comes.length === 1 ? comes(hears) : undefined; // it listens before attachViews, which stops messages
					const views = host.attachViews(frame, host.client, {});
					document.body.append(frame);
					await (heard ?? comes(hears, views));
					frame.remove();
					all.push(views);
					if (i % 2) await host.until(() => views.closed && views.stats().upstream === 0);
				}
			await host.until(() => all.every(({ closed }) => closed) && all[0].stats().pending === 0);
			const { views, subscriptions, watched, upstream, streams, pending } = all[0].stats();
			expect("what is left", [views, subscriptions, watched, upstream, streams, pending], [0, 0, 0, 0, 0, 0]);
		`)
		testkit.Eventually(t, "nothing is left at the server",
			func() bool { return s.counts(t).held() == 0 })
	})
}

// Demo 5: three Views are live with subscriptions. Each state that they show costs one call. With
// polling it costs more.
func TestViewsDemo(t *testing.T) {
	t.Parallel()
	base := serveDemos(t)
	each(t, eras, func(t *testing.T, era era) {
		b := open(t, noFlag, &site{Server: &httptest.Server{URL: base + "demo/5-views/"}})
		type costs struct{ Calls, Shown int }
		got := run[struct{ On, Off costs }](b, `
			const cell = (row, of) => Number(document.querySelector("#row-" + row + " [data-of=" + of + "]").textContent);
			const until = async (what, condition) => { for (const end = performance.now() + 60000; !condition(); ) { if (performance.now() > end) throw new Error("waited a minute for " + what); await new Promise((done) => setTimeout(done, 20)); } };
			const costs = (row) => ({ calls: cell(row, "calls"), shown: cell(row, "shown") });
			if ("`+string(era)+`" === "modern") document.querySelector("[value=modern]").click();
			await until("the Views", () => cell("on", "shown") >= 10);
			const on = costs("on");
			document.getElementById("subscriptions").click();
			await until("the Views that poll", () => cell("off", "shown") >= 5);
			await until("more calls per state", () => cell("off", "calls") * on.shown > on.calls * cell("off", "shown"));
			return { on, off: costs("off") };
		`)
		t.Logf("%s: %+v", era, got)
		// Each View subscribes and lists once, and may have a read under way.
		if got.On.Calls > got.On.Shown+9 {
			t.Errorf("with subscriptions %d states cost %d calls", got.On.Shown, got.On.Calls)
		}
	})
}
