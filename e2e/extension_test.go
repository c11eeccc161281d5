package e2e

// The extension as its users have it: unpacked in a real browser, with the native host that the
// browser starts, and an agent that has started its own `pagewire serve --stdio`.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	host "github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/e2e/engine"
)

// An extended is a browser with the extension.
type extended struct {
	t    *testing.T
	home userHome
	ctx  context.Context // of an unused first tab
	end  func()
}

// extend runs a browser with the extension, and installs the native host if hosted is set.
func extend(t *testing.T, h userHome, hosted bool, flags ...string) *extended {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(dist, "extension"))
	if err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(h.dir, "profile")
	if hosted {
		cmd, log := h.command(t, "extension", "install", "--user-data-dir", profile)
		if out, err := cmd.Output(); err != nil ||
			strings.TrimSpace(string(out)) != filepath.Join(profile,
				"NativeMessagingHosts", host.HostName+".json") {
			t.Fatalf("install: %v, %s\n%s", err, out, log)
		}
	}
	ctx, end, err := browsertest.Launch(context.Background(), browsertest.Options{
		Env: h.env(),
		Flags: append([]string{"--user-data-dir=" + profile, "--load-extension=" + dir,
			"--disable-extensions-except=" +
				dir}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	x := &extended{t: t, home: h, ctx: ctx, end: end}
	testkit.Eventually(t, "the extension is there", func() bool { return x.worker() != "" })
	x.placed(x.attachWorker())
	return x
}

// placed waits until new loads of pages have the content scripts. b is a page or worker of the
// extension.
func (x *extended) placed(b *tab) {
	x.t.Helper()
	testkit.Eventually(x.t, "the content scripts are registered",
		func() bool { return run[int](b, registered) == 2 })
}

// registered returns the number of content scripts.
const registered = `return (await chrome.scripting.getRegisteredContentScripts()).length`

// worker returns the target of the extension's service worker, or "" if it does not run.
func (x *extended) worker() target.ID {
	return x.workerThat(
		func(url string) bool { return strings.HasPrefix(url, host.ExtensionOrigin) })
}

// workerThat returns the target of the service worker with a fitting URL, or "".
func (x *extended) workerThat(fits func(url string) bool) target.ID {
	x.t.Helper()
	infos, err := chromedp.Targets(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, info := range infos {
		if info.Type == "service_worker" && fits(info.URL) {
			return info.TargetID
		}
	}
	return ""
}

// attachWorker attaches to the running worker.
func (x *extended) attachWorker() *tab {
	x.t.Helper()
	return x.attachTo("the worker", x.worker())
}

// attachTo attaches to a service worker of an extension, and waits for its API: a worker that has
// just started has none for some 15 ms.
func (x *extended) attachTo(name string, worker target.ID) *tab {
	x.t.Helper()
	b := x.follow(name, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel())
	testkit.Eventually(x.t, name+" has its API",
		func() bool { return run[bool](b, `return typeof chrome === "object"`) })
	return b
}

func (x *extended) tab(url string) *tab {
	x.t.Helper()
	b := x.follow(url)
	if err := chromedp.Do(b.ctx, chromedp.Navigate(url)); err != nil {
		x.t.Fatalf("open %s: %v", url, err)
	}
	return b
}

// follow makes a tab, or another context, whose console is logged when the test fails.
func (x *extended) follow(name string, options ...chromedp.ContextOption) *tab {
	x.t.Helper()
	ctx, cancel := chromedp.NewContext(x.ctx, options...)
	x.t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, tabTime)
	x.t.Cleanup(stop)
	b := &tab{t: x.t, ctx: ctx, is: chromiumTab{ctx}}
	b.logs(name)
	err := listen(ctx, func(m engine.Message) { b.record(engine.Message{Text: m.Text}) })
	if err == nil {
		err = chromedp.Do(ctx)
	}
	if err != nil {
		x.t.Fatalf("attach to %s: %v", name, err)
	}
	return b
}

// popup opens the popup, in a tab, for the tab that shows a site.
func (x *extended) popup(origin string) *tab {
	x.t.Helper()
	p := x.tab(host.ExtensionOrigin + "/options.html")
	p.do(chromedp.Navigate(host.ExtensionOrigin + p.popupFor(origin)))
	return p
}

// popupFor returns the popup's path for the tab that shows a site. b is a page or worker of the
// extension.
func (b *tab) popupFor(origin string) (path string) {
	b.t.Helper()
	return fmt.Sprint("/popup.html?tab=", run[int](b, fmt.Sprintf(`
		const port = chrome.runtime.connect({name: "pagewire.panel"});
		return await new Promise((done) => port.onMessage.addListener((shown) => {
			const page = shown.pages.find((page) => page.origin === %q);
			if (page) { port.disconnect(); done(page.tab); }
		}))`, origin)))
}

// allow allows a site as a person does.
func (x *extended) allow(origin string) {
	x.t.Helper()
	p := x.popup(origin)
	site := "[aria-label='" + origin + "'] "
	p.do(chromedp.Click(site + "[data-do=once]"))
	p.shows(site + "[data-do=revoke]")
	_ = chromedp.Cancel(p.ctx)
}

func (b *tab) shows(selector string) {
	b.t.Helper()
	limited, end := context.WithTimeout(b.ctx, testkit.Patience)
	defer end()
	if err := chromedp.Do(limited, chromedp.WaitVisible(selector)); err != nil {
		b.t.Fatalf("%s is not shown: %v\n%s", selector, err,
			run[string](b, "return document.body.innerText"))
	}
}

// serveStrict serves a page with a policy. Its script is a file.
func serveStrict(t *testing.T, policy, script string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		if r.URL.Path == "/script.js" {
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>strict</title><link rel=icon href=data:,><script "+
			"src=/script.js></script><body>a page")
	}))
	t.Cleanup(s.Close)
	return s
}

// allowed opens a page with a count. Its user allows it, and the agent watches the count.
func (x *extended) allowed(t *testing.T, agent *started) (p *tab, uri string) {
	t.Helper()
	s := serveStrict(t, "script-src 'self'", counting)
	p, uri = x.tab(s.URL), s.URL+"/count"
	x.allow(s.URL)
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	agent.Watch(uri)
	return p, uri
}

// counting is a page's script with a count that the test sets.
const counting = `
	let count = 0;
	navigator.modelContext.registerResource({ uri: location.origin + "/count", name: "count", read: () => String(count) });
	globalThis.set = (n) => { count = n; navigator.modelContext.notifyResourceUpdated(location.origin + "/count"); };
`

// countingIfAny is the same for pages that may have no page API.
const countingIfAny = `if ("modelContext" in document) {` + counting + `}`

// TestExtension has the tests that need no browser of their own. They run one after the other in
// one browser and with one agent. Each has pages of its own origins.
func TestExtension(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	for _, one := range []struct {
		name string
		test func(*extended, *testing.T, *started)
	}{
		{"reaches strict pages", (*extended).reachesStrictPages},
		{"hides what is allowed", (*extended).hidesWhatIsAllowed},
		{"beside the page's own", (*extended).besideThePagesOwn},
		{"beside agents in the page", (*extended).besideAgentsInThePage},
		{"navigation", (*extended).navigation},
		{"a call that leads to another document", (*extended).callThatLeadsOn},
		{"a page that forges", (*extended).forgingPage},
		{"a page whose process is taken over", (*extended).takenOverPage},
		{"leaves a stopped daemon", (*extended).leavesAStoppedDaemon},
	} {
		t.Run(one.name, func(t *testing.T) {
			one.test(&extended{t, h, x.ctx, x.end}, t,
				&started{Agent: agent.Agent, t: t, cmd: agent.cmd, log: agent.log})
		})
	}
}

// The pages that no other transport reaches: their policies allow no wasm, no worker and no
// connection.
func (x *extended) reachesStrictPages(t *testing.T, agent *started) {
	for _, policy := range []string{"script-src 'self'", "default-src 'none'; script-src 'self'",
		"default-src 'none'"} {
		t.Run(policy, func(t *testing.T) {
			s := serveStrict(t, policy, counting)
			p := x.tab(s.URL)
			if policy == "default-src 'none'" {
				// No script of the page's runs: only another extension, or a person in the console,
				// can register.
				if run[bool](p, "return 'set' in globalThis") {
					t.Fatal("the policy lets the page's script run")
				}
				run[any](p, counting)
			}
			uri := s.URL + "/count"
			x.allow(s.URL)
			testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
			if got, err := agent.Read(uri); got != "0" || err != nil {
				t.Errorf("it reads as %q, %v", got, err)
			}
			agent.Watch(uri)
			run[any](p, "set(7)")
			agent.holds(uri, "7")
			if fetched := run[[]string](p, fetches); len(fetched) > 0 {
				t.Errorf("the page has fetched %q", fetched)
			}
		})
	}
	// The core is the gateway's: sharing costs the browser no wasm.
	if fetched := run[[]string](x.attachWorker(), fetches); len(fetched) > 0 {
		t.Errorf("the worker has fetched %q", fetched)
	}
}

// fetches returns the names of files that a page or a worker has fetched, without the page's own
// script.
const fetches = `return performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => !name.endsWith("/script.js"))`

// The pages of the extension go to the next daemon when theirs hangs.
func (x *extended) leavesAStoppedDaemon(t *testing.T, agent *started) {
	p, uri := x.allowed(t, agent)
	syscall.Kill(x.home.daemon(t), syscall.SIGSTOP)
	stopped := time.Now()
	run[any](p, "set(7)")
	agent.holds(uri, "7")
	t.Logf("the agent has the last state %v after the daemon was stopped",
		time.Since(stopped).Round(time.Millisecond))
	run[any](p, "set(8)")
	agent.holds(uri, "8")
}

func TestExtensionAsksItsUser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	s := serveStrict(t, "script-src 'self'", counting)
	uri := s.URL + "/count"
	p := x.tab(s.URL)

	// Denied: nothing is listed, and nothing can be read.
	if agent.Offers(uri) {
		t.Error("a site that nobody has allowed is listed")
	}
	if got, err := agent.Read(uri); err == nil {
		t.Errorf("a site that nobody has allowed reads as %q", got)
	}
	// Allowed by a click: listed at once.
	p2 := x.popup(s.URL)
	p2.shows("[data-do=once]")
	if text := run[string](p2,
		"return document.querySelector('.state').textContent"); !strings.Contains(text,
		"Agents do not see them") {
		t.Errorf("before it is allowed the popup says %q", text)
	}
	badge := `return await chrome.action.getBadgeText({ tabId: Number(new URLSearchParams(location.search).get("tab")) })`
	testkit.Eventually(t, "the badge asks", func() bool { return run[string](p2, badge) == "?" })
	p.do(chromedp.Reload())
	testkit.Eventually(t, "the badge asks again for the next document", func() bool {
		return run[string](p2, badge) == "?"
	})
	p2.do(chromedp.Click("[data-do=once]"))
	testkit.Receive(t, "the agent is told that the list has changed", agent.Lists)
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	agent.Watch(uri)
	run[any](p, "set(5)")
	agent.holds(uri, "5")
	testkit.Eventually(t, "the badge says how much is shared",
		func() bool { return run[string](p2, badge) == "1" })
	testkit.Eventually(t, "the popup says that agents see it", func() bool {
		return run[bool](p2,
			`const text = document.body.innerText; return text.includes("Agents see 1 resource") && text.includes("Connected by native messaging")`)
	})

	// Revoked: gone at once, and the subscriber is notified.
	for len(agent.Lists) > 0 {
		<-agent.Lists
	}
	p2.do(chromedp.Click("[data-do=revoke]"))
	testkit.Receive(t, "the agent is told that the list has changed", agent.Lists)
	testkit.Eventually(t, "it is no longer listed", func() bool { return !agent.Offers(uri) })
	if got, err := agent.Read(uri); err == nil {
		t.Errorf("after it was revoked it reads as %q", got)
	}

	// Always allowed, and the switch that stops all.
	p2.shows("[data-do=always]")
	p2.do(chromedp.Click("[data-do=always]"))
	testkit.Eventually(t, "the agent lists it again", func() bool { return agent.Offers(uri) })
	p2.do(chromedp.Click("#stop"))
	testkit.Eventually(t, "all is stopped", func() bool { return !agent.Offers(uri) })
	p2.do(chromedp.Click("#stop"))
	testkit.Eventually(t, "it goes on", func() bool { return agent.Offers(uri) })
}

// watchful is a page that observes its own world. Its first script replaces each function that
// scripts call, and each name that our scripts use. `seen` returns the uses since its last call.
const watchful = `
	let log = { __proto__: null };
	const { apply, construct, getOwnPropertyDescriptor, defineProperty, ownKeys } = Reflect;
	const note = (what) => { log[what] = (log[what] ?? 0) + 1; };
	const spied = (what, f) => new Proxy(f, {
		__proto__: null,
		apply: (f, self, args) => (note(what), apply(f, self, args)),
		construct: (f, args, as) => (note("new " + what), construct(f, args, as)),
	});
	const spy = (holder, owner) => {
		for (const key of ownKeys(owner)) {
			if (typeof key === "string" && /^(constructor|hasOwnProperty|__proto__)$/.test(key)) continue;
			const d = getOwnPropertyDescriptor(owner, key), what = holder + "." + String(key);
			// Ours looks what stands in document.modelContext: another library may have put its own
			// there.
			if (!d.configurable || key === "modelContext") continue;
			if (typeof d.value === "function" && !/^[A-Z]/.test(String(key))) defineProperty(owner, key, { ...d, value: spied(what, d.value) });
			else if (d.get) defineProperty(owner, key, { ...d, get: spied(what, d.get) });
		}
	};
	const text = { entries: Object.entries, stringify: JSON.stringify };
	globalThis.seen = () => { const was = log; log = { __proto__: null }; return text.stringify(text.entries(was)); };
	for (const name of NAMES) {
		if (name in Object.prototype || /^(get|set|value|writable|enumerable|configurable|enumeration|dictionary)$/.test(name)) continue; // nothing works then
		defineProperty(Object.prototype, name, {
			configurable: true,
			get() { note("a missing " + name); },
			set(value) { defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true }); },
		});
	}
	for (const name of ["Promise", "JSON", "Reflect", "Object", "Date", "Performance", "Crypto", "Array", "Map", "Set", "WeakMap", "String", "RegExp",
		"Function", "URL", "Document", "Node", "Element", "EventTarget", "Event", "MessageEvent", "MessagePort", "AbortController", "AbortSignal",
		"Window", "MutationObserver", "CustomEvent", "Storage", "Location", "History"]) {
		const of = globalThis[name];
		if (typeof of === "function" && name !== "Object") spy(name + ".prototype", of.prototype);
		else spy(name, of);
	}
	for (const name of ["setTimeout", "clearTimeout", "queueMicrotask", "postMessage", "requestIdleCallback", "structuredClone"])
		globalThis[name] = spied(name, globalThis[name]);
	document.modelContext.addEventListener("toolchange", () => note("toolchange"));
	addEventListener("message", () => note("a message"));
	for (const type of ["ready", "coredead", "corerestart", "portclose", "error"]) pagewire.addEventListener(type, () => note(type));
`

// traces returns a page's evidence of an agent, after it has registered, notified and waited.
const traces = `
	const heard = [];
	for (const type of ["ready", "coredead", "corerestart", "portclose", "error"]) pagewire.addEventListener(type, () => heard.push(type));
	addEventListener("message", ({ data }) => heard.push(data));
	set(1);
	set(2);
	const transport = pagewire.connect();
	const answered = new Promise((done) => { transport.onerror = ({ message }) => done(message); transport.onmessage = () => done("an answer"); });
	await transport.start();
	transport.send({ jsonrpc: "2.0", id: 1, method: "ping" }).catch(() => {});
	const agent = await answered;
	await new Promise((done) => setTimeout(done, 500));
	return JSON.stringify({
		agent,
		heard, stats: pagewire.stats(), chrome: typeof chrome, runtime: typeof globalThis.chrome?.runtime,
		own: Reflect.ownKeys(globalThis).filter((key) => /pagewire/i.test(String(key))).map(String), symbols: Object.getOwnPropertySymbols(globalThis).map(String),
		nodes: document.querySelectorAll("*").length, attributes: document.documentElement.getAttributeNames(),
		timing: performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => !name.startsWith(location.origin)),
	});
`

// A page sees that the extension is there, and not whether its user has allowed the site. Neither
// the calls, reads and events in its world when the permission is given and revoked, nor the
// effects of its own calls then, show it.
func (x *extended) hidesWhatIsAllowed(t *testing.T, agent *started) {
	script, err := os.ReadFile(filepath.Join(dist, "extension", "page.js"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[A-Za-z_$][\w$]{2,}`).FindAllString(string(script), -1)
	slices.Sort(names)
	quoted, err := json.Marshal(slices.Compact(names))
	if err != nil {
		t.Fatal(err)
	}
	s := serveStrict(t, "script-src 'self'", strings.Replace(watchful, "NAMES", string(quoted), 1)+
		counting)
	p := x.tab(s.URL)
	uri := s.URL + "/count"
	acts := func() string {
		t.Helper()
		run[string](p, "return seen()")
		run[any](p, "set(1); set(2); await null; set(3)")
		return run[string](p, "return seen()")
	}
	acts()
	denied, found := acts(), run[string](p, traces)
	quiet := func() string {
		run[string](p, "return seen()")
		return run[string](p,
			"return seen()")
	}()
	x.allow(s.URL)
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	if got := run[string](p, "return seen()"); got != quiet {
		t.Errorf("while it is allowed the page sees\n%s\nand while nothing happens\n%s", got, quiet)
	}
	if got, want := run[string](p, traces),
		strings.Replace(found, `"notified":8`, `"notified":10`, 1); got != want {
		t.Errorf("a page that is allowed finds\n%s\nand one that is denied\n%s", got, want)
	}
	if got := acts(); got != denied {
		t.Errorf("a page that is allowed sees of its own calls\n%s\nand one that is denied\n%s",
			got, denied)
	}
	revoke := x.popup(s.URL)
	revoke.shows("[data-do=revoke]")
	revoke.do(chromedp.Click("[data-do=revoke]"))
	testkit.Eventually(t, "it is no longer listed", func() bool { return !agent.Offers(uri) })
	if got := run[string](p, "return seen()"); got != quiet {
		t.Errorf("when it is taken back the page sees\n%s\nand while nothing happens\n%s", got,
			quiet)
	}
}

// An agent that sees only one profile sees the extension's pages after their user has named the
// profile so.
func TestExtensionNamesItsProfile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent, all := h.serve(t, "--only", "profile=Work"), h.serve(t)
	x := extend(t, h, true)
	s := serveStrict(t, "script-src 'self'", counting)
	x.tab(s.URL)
	x.allow(s.URL)
	uri := s.URL + "/count"
	testkit.Eventually(t, "an agent of all profiles lists it",
		func() bool { return all.Offers(uri) })
	if agent.Offers(uri) {
		t.Error("it is listed before the profile has its name")
	}
	options := x.tab(host.ExtensionOrigin + "/options.html")
	options.shows("#profile")
	options.do(chromedp.SendKeys("#profile", "Work\t"))
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	for r, err := range agent.Resources(t.Context(), nil) {
		if err != nil || !strings.Contains(r.Title, " in window 1 of headless Chrome") ||
			!strings.Contains(r.Title, ", profile Work, ") {
			t.Errorf("its title is %q, %v", r.Title, err)
		}
	}
}

// After its user has switched that on, the extension reports the tab in front to an agent with
// --front. For an allowed site it reports the title and the address too, for another only the
// origin, and for a hidden window nothing.
func TestExtensionTellsTheTabInFront(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"native messaging", "WebSocket"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			agent := h.serve(t, "--front")
			x := extend(t, h, transport == "native messaging")
			if transport == "WebSocket" {
				x.useSocket()
			}
			const front, nothing = "pagewire://front", `{"origin":null}`
			agent.Watch(front)
			hidden := serveStrict(t, "script-src 'self'", "")
			shows := func(matches string) {
				t.Helper()
				var now string
				defer func() {
					if t.Failed() {
						t.Logf("in front is %s", now)
					}
				}()
				testkit.Eventually(t, "in front is "+matches, func() bool {
					now = agent.Text(front)
					if strings.Contains(now, hidden.URL) {
						t.Errorf("in front is %s", now)
					}
					return regexp.MustCompile("^" + matches + "$").MatchString(now)
				})
			}
			other := serveStrict(t, "script-src 'self'", "")
			hangs := x.tab(other.URL + "/secret?query")
			p, uri := x.allowed(t, agent)
			site := strings.TrimSuffix(uri, "/count")
			shown := func(title, path string) {
				t.Helper()
				shows(`{"tab":\d+,"where":"tab \d+ in window \d of headless Chrome","title":"` +
					title + `","url":"` + site + path +
					`","origin":"` + site + `","resources":\["` + uri + `"\]}`)
			}
			options := x.tab(host.ExtensionOrigin + "/options.html")
			options.shows("#front")
			// A browser without a display gives each tab a window.
			run[any](options, `
				const all = await chrome.tabs.query({}), { windowId } = await chrome.tabs.getCurrent();
				await chrome.tabs.move(all.map(({ id }) => id), { windowId, index: -1 })`)
			toFront := func(url string) {
				t.Helper()
				run[any](options, fmt.Sprintf(`
					const { id } = (await chrome.tabs.query({})).find(({ url }) => url?.startsWith(%q));
					await chrome.tabs.update(id, { active: true })`, url))
			}
			toFront(site)
			if now := agent.Text(front); now != nothing {
				t.Errorf("before it is switched on in front is %s", now)
			}
			press := func() { run[any](options, `document.getElementById("front").click()`) }
			press()
			shown("strict", "/")
			testkit.Receive(t, "the agent is told", agent.Updates)
			toFront(other.URL)
			shows(`{"origin":"` + other.URL + `"}`)
			toFront(site)
			shown("strict", "/")
			run[any](p, `document.title = "Cart"; history.pushState(0, "", "/cart")`)
			shown("Cart", "/cart")
			toFront(host.ExtensionOrigin)
			shows(nothing)

			// The browser may have suspended the worker.
			x.stop(x.worker())
			toFront(site)
			shown("Cart", "/cart")

			x.private(hidden.URL)
			run[any](p, `document.title = "Basket"`)
			shown("Basket", "/cart")
			ask := func(request string) {
				run[any](options, `chrome.runtime.connect({name: "pagewire.panel"}).postMessage(`+
					request+`)`)
			}
			ask(fmt.Sprintf(`{do: "revoke", what: "offers", origin: %q}`, site))
			shows(`{"origin":"` + site + `"}`)
			ask(`{do: "stop", on: true}`)
			shows(nothing)
			ask(`{do: "stop", on: false}`)
			shows(`{"origin":"` + site + `"}`)
			toFront(other.URL)
			shows(`{"origin":"` + other.URL + `"}`)
			run[any](options,
				fmt.Sprintf(
					`await chrome.tabs.remove((await chrome.tabs.query({})).find(({ url }) => url?.startsWith(%q)).id)`, site))
			// and so does not answer the extension
			run[any](hangs, `setTimeout(() => { for (;;); })`)
			press()
			shows(nothing)
		})
	}
}

// private opens a page in a private window, which the browser hides from the extension.
func (x *extended) private(url string) {
	x.t.Helper()
	context, err := chromedp.CallBrowser(x.ctx, target.CreateBrowserContext,
		target.CreateBrowserContextParams{})
	if err != nil {
		x.t.Fatal(err)
	}
	if _, err := chromedp.CallBrowser(x.ctx, target.CreateTarget,
		target.CreateTargetParams{URL: url, NewWindow: new(true),
			BrowserContextID: context.BrowserContextID}); err != nil {
		x.t.Fatal(err)
	}
}

// With the option "Only in pages of allowed sites" a page of another site sees the same as without
// the extension. A page that is then allowed is loaded again and works as always.
func TestExtensionOnlyInAllowedSites(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	// Two ports are two sites.
	s, other := serveStrict(t, "script-src 'self'", countingIfAny),
		serveStrict(t, "script-src 'self'", countingIfAny)
	uri := s.URL + "/count"
	const world = `return [globalThis, Document.prototype, Navigator.prototype].map((owner) => Reflect.ownKeys(owner).map(String).join()).join("\n")`
	without := run[string](open(t, noFlag, &site{Server: other}), world)

	options := x.tab(host.ExtensionOrigin + "/options.html")
	options.shows("#only")
	scripts := func(n int) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprintf("there are %d content scripts", n), func() bool {
			return run[int](options, registered) == n
		})
	}
	options.do(chromedp.Click("#only"))
	scripts(0)
	p, q := x.tab(s.URL), x.tab(other.URL)
	for name, b := range map[string]*tab{"the one": p, "the other": q} {
		if got := run[string](b, world); got != without {
			t.Errorf("%s page sees\n%s\nand without the extension\n%s", name, got, without)
		}
	}

	// press clicks a button of the popup for a site. The extension knows only the tab of it.
	press := func(origin, button string) {
		t.Helper()
		number := run[int](options, fmt.Sprintf(
			`return (await chrome.tabs.query({})).find(({ url }) => url?.startsWith(%q)).id`,
			origin+"/"))
		popup := x.tab(host.ExtensionOrigin + "/popup.html?tab=" + strconv.Itoa(number))
		selector := fmt.Sprintf("[aria-label='%s'] [data-do=%s]", origin, button)
		popup.shows(selector)
		popup.do(chromedp.Click(selector))
	}
	press(s.URL, "once")
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	if got, err := agent.Read(uri); got != "0" || err != nil {
		t.Errorf("it reads as %q, %v", got, err)
	}
	q.do(chromedp.Reload())
	if got := run[string](q, world); got != without {
		t.Errorf(
			"when one site is allowed, a page of another sees\n%s\nand without the extension\n%s",
			got, without)
	}
	press(other.URL, "always")
	testkit.Eventually(t, "the agent lists both", func() bool {
		return agent.Offers(uri) && agent.Offers(other.URL+"/count")
	})

	press(s.URL, "revoke")
	testkit.Eventually(t, "the agent lists one", func() bool { return !agent.Offers(uri) })
	p.do(chromedp.Reload())
	if got := run[string](p, world); got != without {
		t.Errorf("when it is taken back the page sees\n%s\nand without the extension\n%s", got,
			without)
	}
	press(other.URL, "revoke")
	scripts(0)
	options.do(chromedp.Click("#only"))
	scripts(2)
	q.do(chromedp.Reload())
	if !run[bool](q, `return "pagewire" in globalThis`) {
		t.Error("the option is off, and the extension is not in the page")
	}
}

// A site that was allowed once is forgotten with the browser; a site that was allowed always is
// not.
func TestExtensionRemembers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	once, always := serveStrict(t, "script-src 'self'", counting),
		serveStrict(t, "script-src 'self'", counting)
	t.Run("allow", func(t *testing.T) {
		x := extend(t, h, true)
		x.tab(once.URL)
		x.allow(once.URL)
		x.tab(always.URL)
		p := x.popup(always.URL)
		p.do(chromedp.Click("[data-do=always]"))
		p.shows("[data-do=revoke]")
		testkit.Eventually(t, "both are listed", func() bool {
			return agent.Offers(once.URL+"/count") && agent.Offers(always.URL+"/count")
		})
	})
	testkit.Eventually(t, "both are gone with the browser", func() bool {
		return !agent.Offers(once.URL+"/count") && !agent.Offers(always.URL+"/count")
	})
	t.Run("come again", func(t *testing.T) {
		x := extend(t, h, true)
		x.tab(once.URL)
		x.tab(always.URL)
		testkit.Eventually(t, "what was allowed always is listed", func() bool {
			return agent.Offers(always.URL + "/count")
		})
		if agent.Offers(once.URL + "/count") {
			t.Error("what was allowed until the browser ends is listed after it has ended")
		}
	})
}

// The browser may suspend a worker at any time. Subscribers notice only a delay.
func TestExtensionWorkerStopped(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"native messaging", "WebSocket"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			agent := h.serve(t)
			x := extend(t, h, transport == "native messaging")
			if transport == "WebSocket" {
				x.useSocket()
			}
			p, uri := x.allowed(t, agent)
			for i := 1; i <= 3; i++ {
				run[any](p, fmt.Sprintf("set(%d)", 10*i))
				before := x.life()
				x.stop(x.worker())
				run[any](p, fmt.Sprintf("set(%d)", 10*i+1))
				agent.holds(uri, strconv.Itoa(10*i+1))
				if x.life() == before {
					t.Fatal("the worker was not stopped")
				}
			}
		})
	}
}

// A page that is busy while a gateway comes and goes confirms a link that has already ended. Later
// agents find the page.
func TestExtensionLinkEndsUnconfirmed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	p, uri := x.allowed(t, agent)
	panel := x.tab(host.ExtensionOrigin + "/options.html")
	linked := func(want bool) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprintf("the page's link is there: %v", want), func() bool {
			return want == run[bool](panel, `
				const port = chrome.runtime.connect({ name: "pagewire.panel" });
				const { pages } = await new Promise((done) => port.onMessage.addListener(done));
				port.disconnect();
				return pages.some((page) => page.linked);`)
		})
	}
	entered, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}))
	t.Cleanup(slow.Close)
	resume := sync.OnceFunc(func() { close(release) })
	t.Cleanup(resume)
	run[any](p, `setTimeout(() => { const request = new XMLHttpRequest(); request.open("GET", "`+
		slow.URL+`", false); request.send(); })`)
	<-entered // its script stands still from now on
	agent.Close()
	linked(false)
	agent = h.serve(t)
	linked(true)
	agent.Close()
	linked(false)
	resume()
	run[any](p, "set(7)")
	agent = h.serve(t)
	testkit.Eventually(t, "the next agent lists it", func() bool { return agent.Offers(uri) })
	if got, err := agent.Read(uri); got != "7" || err != nil {
		t.Errorf("it reads as %q, %v", got, err)
	}
}

// TestExtensionWithoutPagewire has a browser that knows no native host: the popup says what is
// missing, and its buttons do what helps.
func TestExtensionWithoutPagewire(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	x := extend(t, h, false)
	s := serveStrict(t, "script-src 'self'", counting)
	x.tab(s.URL)
	p := x.popup(s.URL)
	p.shows("[data-do=once]")
	p.do(chromedp.Click("[data-do=once]"))
	p.shows("[data-do=install]")
	if said := run[string](p, `return document.querySelector(".gateway").innerText`); !strings.Contains(said,
		"Pagewire isn't installed on this computer.") {
		t.Errorf("the popup says %q", said)
	}
	run[any](p, "globalThis.opened = []; chrome.tabs.create = ({ url }) => opened.push(url)")
	p.do(chromedp.Click("[data-do=install]"))
	if urls := run[[]string](p, "return opened"); len(urls) != 1 || !strings.HasSuffix(urls[0], "/docs/install.md") {
		t.Errorf("Install opens %q", urls)
	}
	// Once it is installed, trying again finds it.
	agent := h.serve(t)
	cmd, log := h.command(t, "extension", "install", "--user-data-dir", filepath.Join(h.dir, "profile"))
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("install: %v, %s\n%s", err, out, log)
	}
	p.do(chromedp.Click("[data-do=retry]"))
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(s.URL + "/count") })
	p.shows(".gateway.connected")
	// A page that offers nothing can be loaded again.
	silent := x.tab(serveStrict(t, "script-src 'self'", "").URL)
	run[any](silent, `document.title = "silent"`)
	none := x.popupOf("silent")
	none.shows("[data-do=reload]")
	none.do(chromedp.Click("[data-do=reload]"))
	testkit.Eventually(t, "the page is loaded again", func() bool {
		title, err := try[string](silent, "return document.title")
		return err == nil && title == "strict"
	})
}

// useSocket gives the extension the test's gateway: without a native host it tries the usual port.
func (x *extended) useSocket() {
	x.t.Helper()
	x.useGateway()
	// The worker reads it at its start.
	x.stop(x.worker())
}

// useGateway gives the extension's pages the gateway's address and the secret, as a native host
// would.
func (x *extended) useGateway() {
	x.t.Helper()
	p := x.tab(host.ExtensionOrigin + "/options.html")
	// as an install makes it
	secret, err := host.MakeSecret(filepath.Join(x.home.dir, "pagewire", "token"))
	if err != nil {
		x.t.Fatal(err)
	}
	run[any](p,
		fmt.Sprintf("await chrome.storage.local.set({ gateway: 'ws://%s/page', secret: %q })",
			x.home.hub,
			secret))
	_ = chromedp.Cancel(p.ctx)
}

// life returns a number for each life of the worker, whose target stays the same.
func (x *extended) life() float64 {
	x.t.Helper()
	b := x.attachWorker()
	born := run[float64](b, "return performance.timeOrigin")
	_ = chromedp.Cancel(b.ctx)
	return born
}

// stop ends a worker, as the browser does after idle time.
func (x *extended) stop(worker target.ID) {
	x.t.Helper()
	if _, err := chromedp.CallBrowser(x.ctx, target.CloseTarget,
		target.CloseTargetParams{TargetID: worker}); err != nil {
		x.t.Fatal(err)
	}
}

// No prompt, and no permission: the browser asks them of a public page that connects to this
// machine's ports, and not of the extension.
func TestExtensionOnAPublicPage(t *testing.T) {
	t.Parallel()
	s := serveStrict(t, "script-src 'self'", counting)
	address := strings.TrimPrefix(s.URL, "http://")
	origin := strings.Replace(s.URL, "127.0.0.1", "app.example", 1)
	h := newHome(t)
	agent := h.serve(t)
	// By WebSocket: native messaging takes no port.
	x := extend(t, h, false, "--host-resolver-rules=MAP app.example 127.0.0.1",
		"--unsafely-treat-insecure-origin-as-secure="+origin, "--ip-address-space-overrides="+
			address+"=public")
	x.useSocket()
	p := x.tab(origin)
	x.allow(origin)
	testkit.Eventually(t, "the agent lists it",
		func() bool { return agent.Offers(origin + "/count") })
	if got, err := agent.Read(origin + "/count"); got != "0" || err != nil {
		t.Errorf("it reads as %q, %v", got, err)
	}
	// The page itself cannot reach the port: so the browser takes the page for a public one.
	if got := run[string](p, `
		const socket = new WebSocket("ws://`+h.hub+`/page", "pagewire.v1");
		const opened = new Promise((done) => { socket.onopen = () => done("open"); });
		const not = new Promise((done) => { socket.onerror = () => done("kept out"); setTimeout(() => done("asks"), 3000); });
		return await Promise.race([opened, not])`); got == "open" {
		t.Error("the browser lets the page itself through: this test shows nothing")
	}
	if state := run[string](p,
		`return (await navigator.permissions.query({ name: "loopback-network" })).state`); state == "granted" {
		t.Error("the page has got a permission")
	}
}

// A page with a Pagewire of its own works with the extension as without it, before and after the
// site is allowed.
func (x *extended) besideThePagesOwn(t *testing.T, agent *started) {
	s := serve(t,
		page{tag: `<script src="/pagewire.js" data-gateway="ws://` + x.home.hub + `"></script>`,
			script: counting})
	p := x.tab(s.URL)
	uri := s.URL + "/count"
	testkit.Eventually(t, "the page connects by itself", func() bool { return agent.Offers(uri) })
	if got, err := agent.Read(uri); got != "0" || err != nil {
		t.Errorf("it reads as %q, %v", got, err)
	}
	const inPage = `
		const transport = pagewire.connect();
		const answered = new Promise((done, failed) => { transport.onmessage = done; transport.onclose = () => failed(new Error("closed")); });
		await transport.start();
		await transport.send({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "in the page", version: "1" } } });
		const { result } = await answered;
		return result.protocolVersion`
	if got := run[string](p, inPage); got != "2025-11-25" {
		t.Errorf("an agent in the page gets %q", got)
	}
	agent.Watch(uri)
	x.allow(s.URL)
	run[any](p, "set(3)")
	agent.holds(uri, "3")
	if got := run[string](p, inPage); got != "2025-11-25" {
		t.Errorf("once the extension has begun an agent in the page gets %q", got)
	}
}

// The page's own core also serves agents in the page if the extension is there, before the document
// is complete. (TestEcosystemPages has pages that bundlers have made.)
func (x *extended) besideAgentsInThePage(t *testing.T, _ *started) {
	early := serve(t, page{tag: " ", script: `
		document.write('<script>' + "globalThis.answered = new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = ({ data }) => done(data); port1.postMessage({ jsonrpc: '2.0', id: 1, method: 'ping' }); postMessage({ type: 'pagewire:connect' }, location.origin, [port2]); });" + '</' + 'script><script src=/pagewire.js async></' + 'script>');`})
	if got := run[map[string]any](x.tab(early.URL), `return await answered`); got["result"] == nil {
		t.Errorf("an agent that came before the page's Pagewire gets %v", got)
	}
}

// lookEnv is the environment variable with the directory for the pictures of TestExtensionLook: the
// pictures in demo/ are made so.
const lookEnv = "PAGEWIRE_LOOK"

// The popup by keyboard only, and the panel of DevTools, in both themes, with the data for
// assistive programs.
func TestExtensionLook(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	x := extend(t, h, true)
	x.useGateway()
	s := serveStrict(t, "script-src 'self'", counting+`
		for (const [path, title] of [["cart", "Shopping cart"], ["orders", "Open orders"], ["stock", "What is left in stock"]])
			navigator.modelContext.registerResource({ uri: location.origin + "/" + path, name: path, title, read: () => path });`)
	shown := x.tab(s.URL)
	axe, err := os.ReadFile("../js/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	picture := func(b *tab, name string, width, height int64) {
		for _, theme := range []string{"light", "dark"} {
			_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
						Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
			if err == nil {
				_, err = chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride,
					emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height,
						DeviceScaleFactor: 1})
			}
			if err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "the theme is "+theme, func() bool {
				return run[bool](b,
					`const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g); return (+r + +g + +b > 384) === `+strconv.FormatBool(theme == "light"))
			})
			if problems := run[[]string](b, string(axe)+`;
				const { violations } = await axe.run(document, { resultTypes: ["violations"] });
				const { scrollWidth, clientWidth } = document.documentElement;
				return violations.map(({ id, nodes }) => id + ": " + nodes[0].html)
					.concat(scrollWidth > clientWidth ? ["it scrolls sideways: " + scrollWidth] : []);`); len(problems) > 0 {
				t.Errorf("%s, %s: %q", name, theme, problems)
			}
			text, err := chromedp.Call(b.ctx, cdppage.CaptureScreenshot,
				cdppage.CaptureScreenshotParams{Format: "png"})
			if err != nil || len(text.Data) == 0 || len(text.Data) > 150_000 {
				t.Fatalf("the picture of %s: %v, %d bytes", name, err, len(text.Data))
			}
			if dir := os.Getenv(lookEnv); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, name+"-"+theme+".png"), text.Data,
					0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	p := x.popup(s.URL)
	p.shows("[data-do=once]")
	// What is shared is named before it is allowed.
	testkit.Eventually(t, "the popup names what it asks for", func() bool {
		return slices.Equal(run[[]string](p, `return [...document.querySelectorAll(".names li")].map((e) => e.innerText)`),
			[]string{"count", "Shopping cart", "Open orders", "What is left in stock"})
	})
	picture(p, "extension-popup-asks", 345, 630)
	// Every control has a name, and no permission needs a mouse.
	if nameless := run[[]string](p,
		`return [...document.querySelectorAll("button, input")].filter((e) => !(e.ariaLabel || e.textContent || e.labels?.[0]?.textContent)).map((e) => e.outerHTML)`); len(nameless) > 0 {
		t.Errorf("without a name: %q", nameless)
	}
	press := func(button string) {
		for range 20 {
			if run[bool](p, fmt.Sprintf("return document.activeElement.matches(%q)", button)) {
				break
			}
			p.do(chromedp.KeyEvent("\t"))
		}
		p.do(chromedp.KeyEvent("\r"))
	}
	press("[data-do=once]")
	p.shows("[data-do=revoke]")
	testkit.Eventually(t, "the agent lists it",
		func() bool { return agent.Offers(s.URL + "/cart") })
	testkit.Eventually(t, "the popup says so", func() bool {
		return run[bool](p,
			`return document.body.innerText.includes("Agents see 4 resources")`)
	})
	picture(p, "extension-popup", 345, 630)
	press("[data-do=preview]")
	p.shows("pre[role=region]")
	picture(p, "extension-popup-preview", 345, 800)
	press("[aria-label='Everything the site shows'] [data-do=once]")
	p.shows("[aria-label='Everything the site shows'] [data-do=revoke]")
	testkit.Eventually(t, "the agent reads what it shows", func() bool {
		text, _ := agent.Read(s.URL + "/.pagewire/shown")
		return strings.Contains(text, "a page")
	})
	x.panel(p, shown, s.URL, agent)
	picture(p, "extension-panel", 1000, 520)
	picture(p, "extension-panel-narrow", 390, 844)
	options := x.tab(host.ExtensionOrigin + "/options.html")
	options.shows("[data-origin]")
	picture(options, "extension-options", 1000, 640)
	picture(options, "extension-options-narrow", 390, 844)
	if p.said("Uncaught") || p.said("Refused") {
		t.Errorf("its console says %q", p.console)
	}
}

// panel checks the panel in DevTools, and then the same panel in a tab of its own: p shows it for
// the tab with the site.
func (x *extended) panel(p, shown *tab, origin string, agent *started) {
	t := x.t
	says := func(p *tab, selector, text string) {
		t.Helper()
		testkit.Eventually(t, selector+" says "+text, func() bool {
			return run[bool](p, fmt.Sprintf(
				`return [...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`,
				selector, text))
		})
	}
	says(x.devTools(shown), "#resources .row", origin+"/orders")

	p.do(chromedp.Navigate(host.ExtensionOrigin +
		strings.Replace(p.popupFor(origin), "popup", "panel", 1)))
	says(p, "#resources .row", "1 warning") // no description
	if got := run[int](p, `return document.querySelectorAll("#resources .row").length`); got != 4 {
		t.Errorf("it shows %d resources", got)
	}
	agent.Reads(origin+"/count", "0")
	says(p, "#reads .row", origin+"/count")
	run[any](p, fmt.Sprintf(
		`[...document.querySelectorAll("#resources .row")].find((e) => e.innerText.includes(%q)).click()`, origin+"/count"))
	says(p, ".card pre", "0")
	run[any](shown, "set(1234)")
	says(p, ".card mark", "1234")
	says(p, ".delta", `"now":"1234"`)
	says(p, ".card p", "tokens (bytes / 4)")
}

// devTools opens the browser's DevTools for a tab, and returns our panel in them.
func (x *extended) devTools(shown *tab) *tab {
	x.t.Helper()
	opened, err := chromedp.CallBrowser(x.ctx, target.OpenDevTools,
		target.OpenDevToolsParams{TargetID: chromedp.FromContext(shown.ctx).Target.TargetID})
	if err != nil {
		x.t.Fatal(err)
	}
	tools := x.follow("DevTools", chromedp.WithTargetID(opened.TargetID),
		chromedp.WithDetachOnCancel())
	testkit.Eventually(x.t, "DevTools have the panel", func() bool {
		there, err := try[bool](tools, `
			const { InspectorView } = await import("./ui/legacy/legacy.js");
			const view = InspectorView.InspectorView.instance();
			const id = view.tabbedPane.tabIds().find((id) => id.endsWith("Pagewire"));
			if (id) await view.showPanel(id);
			return id !== undefined;`)
		return err == nil && there
	})
	var panel target.ID
	testkit.Eventually(x.t, "the panel is loaded", func() bool {
		all, err := chromedp.CallBrowser(x.ctx, target.GetTargets,
			target.GetTargetsParams{Filter: target.Filter{{}}})
		if err != nil {
			x.t.Fatal(err)
		}
		for _, one := range all.TargetInfos {
			if strings.HasPrefix(one.URL, host.ExtensionOrigin+"/panel.html?tab=") {
				panel = one.TargetID
			}
		}
		return panel != ""
	})
	return x.follow("the panel", chromedp.WithTargetID(panel), chromedp.WithDetachOnCancel())
}

// searching is a page with a tool that loads the page of its results.
const searching = counting + `
	if (location.pathname === "/") {
		const form = document.createElement("form");
		form.setAttribute("toolname", "search");
		document.documentElement.append(form);
		navigator.modelContext.registerTool({ name: "search", description: "Searches.", execute: () => {
			location.href = "/results";
			return new Promise(() => {});
		} });
	} else document.title = "Results";
`

// The next document of the origin answers a call, without another permission of the user.
func (x *extended) callThatLeadsOn(t *testing.T, agent *started) {
	s := serveStrict(t, "script-src 'self'", searching)
	x.tab(s.URL)
	x.allow(s.URL)
	testkit.Eventually(t, "the tool is there",
		func() bool { return slices.Contains(agent.ToolNames(), "search") })
	result, err := agent.CallTool(t.Context(),
		&mcp.CallToolParams{Name: "search", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	want := `"Results", ` + s.URL + "/results. Its resources:\n" + s.URL + "/count"
	var got string
	for _, c := range result.Content { // a reminder may be the last
		got += c.(*mcp.TextContent).Text + "\n"
	}
	if result.IsError || !strings.Contains(got, want) {
		t.Errorf("the call ends with %q, failed %v, without %q", got, result.IsError, want)
	}
}

// A document comes and goes in several ways, and its subscriptions continue.
func (x *extended) navigation(t *testing.T, agent *started) {
	elsewhere := serveStrict(t, "script-src 'self'", "")
	p, uri := x.allowed(t, agent)
	origin := strings.TrimSuffix(uri, "count")
	for i := 1; i <= 5; i++ {
		p.do(chromedp.Reload())
		run[any](p, fmt.Sprintf("set(%d)", i))
		agent.holds(uri, strconv.Itoa(i))
		for r, err := range agent.Resources(t.Context(), nil) {
			if err != nil || r.URI != uri && strings.HasPrefix(r.URI, origin) {
				t.Errorf("after reload %d there is %+v, %v", i, r, err)
			}
		}
	}
	run[any](p, "globalThis.kept = true")
	p.do(chromedp.Navigate(elsewhere.URL))
	testkit.Eventually(t, "it is gone", func() bool { return !agent.Offers(uri) })
	if _, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[any]("setTimeout(() => history.back())")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the page is back, from the back/forward cache", func() bool {
		// it fails while the page changes
		kept, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("globalThis.kept === true"))
		return err == nil && kept
	})
	run[any](p, "set(50)")
	agent.holds(uri, "50")

	// Frames: each origin needs its own permission.
	inner := serveStrict(t, "script-src 'self'", counting)
	outer := serve(t,
		page{tag: " ",
			script: "document.documentElement.append(Object.assign(document.createElement('iframe'), { " +
				"src: '" + inner.URL + "' }));" + counting})
	x.tab(outer.URL)
	x.allow(inner.URL)
	testkit.Eventually(t, "the frame is listed",
		func() bool { return agent.Offers(inner.URL + "/count") })
	if agent.Offers(outer.URL + "/count") {
		t.Error("the page around an allowed frame is listed, though it has not been allowed")
	}
}
