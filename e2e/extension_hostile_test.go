package e2e

// Attackers of the extension: a page that forges and patches, a page's process that is taken over,
// another extension. Each is refused, counted and logged, and the page in another tab does not
// notice.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	host "github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A bystander is an allowed page in another tab that an agent watches. Attacks must not affect it.
type bystander struct {
	t     *testing.T
	tab   *tab
	agent *started
	uri   string
	count int
}

func (x *extended) bystander(agent *started) *bystander {
	x.t.Helper()
	p, uri := x.allowed(x.t, agent)
	return &bystander{x.t, p, agent, uri, 0}
}

func (b *bystander) unharmed(t *testing.T) {
	t.Helper()
	b.count++
	run[any](b.tab, fmt.Sprintf("set(%d)", b.count))
	b.agent.holds(b.uri, fmt.Sprint(b.count))
}

func (x *extended) refused() map[string]int {
	x.t.Helper()
	p := x.tab(host.ExtensionOrigin + "/options.html")
	list := run[[][]any](p, `
		const port = chrome.runtime.connect({ name: "pagewire.panel" });
		return await new Promise((done) => port.onMessage.addListener(({ refused }) => done(refused)))`)
	_ = chromedp.Cancel(p.ctx)
	all := map[string]int{}
	for _, one := range list {
		all[one[0].(string)] = int(one[1].(float64))
	}
	return all
}

// A page can dispatch the relay's events, post its messages, and replace the functions that the
// page layer calls. It gets no port by that, and none of the messages.
func (x *extended) forgingPage(t *testing.T, agent *started) {
	other := x.bystander(agent)
	s := serveStrict(t, "script-src 'self'", `
		globalThis.stolen = [];
		const native = { post: MessagePort.prototype.postMessage, stringify: JSON.stringify };
		for (const [prototype, name] of [[MessagePort.prototype, "postMessage"], [MessagePort.prototype, "start"], [EventTarget.prototype, "addEventListener"], [EventTarget.prototype, "dispatchEvent"], [Event.prototype, "preventDefault"]]) {
			const before = prototype[name];
			prototype[name] = function (...args) { stolen.push(name); return before.apply(this, args); };
		}
		for (const name of ["data", "ports", "source"]) {
			const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, name);
			Object.defineProperty(MessageEvent.prototype, name, { get() { stolen.push(name); return get.call(this); } });
		}
		addEventListener.call(window, "pagewire:relay", () => stolen.push("relay"));
		for (const name of ["stringify", "parse"]) { const before = JSON[name]; JSON[name] = (...args) => { stolen.push(name); return before(...args); }; }
		stolen.length = 0;
		navigator.modelContext.registerResource({ uri: location.origin + "/secret", name: "secret", read: () => "the secret" });
	`)
	p := x.tab(s.URL)
	x.allow(s.URL)
	testkit.Eventually(t, "the page is listed in spite of its patches", func() bool {
		return agent.Offers(s.URL + "/secret")
	})
	if got, err := agent.Read(s.URL + "/secret"); got != "the secret" || err != nil {
		t.Errorf("the page reads as %q, %v", got, err)
	}
	if got := run[[]string](p, "return stolen.slice()"); len(got) > 0 {
		t.Errorf("the page has seen %q", got)
	}
	heard := run[[]any](p, fmt.Sprintf(`
		const heard = [];
		for (const type of ["pagewire:relay", "pagewire.page", "pagewire.panel"]) {
			const { port1, port2 } = new MessageChannel();
			port1.onmessage = ({ data }) => heard.push(data);
			dispatchEvent(new MessageEvent(type, { cancelable: true, ports: [port2], data: "start" }));
			for (const text of ["start", '[["hello",1,"0",{"epoch":"e"}]]', '[["register","{\\"uri\\":\\"%s\\",\\"name\\":\\"evil\\"}"]]', "=1 1 []", 7, null]) {
				port1.postMessage(text);
				for (let i = 0; i < 500; i++) window.postMessage(text, "*");
			}
		}
		await new Promise((done) => setTimeout(done, 500));
		return heard;`, other.uri))
	if len(heard) > 0 {
		t.Errorf("the page was answered: %v", heard)
	}
	if got, err := agent.Read(s.URL + "/secret"); got != "the secret" || err != nil {
		t.Errorf("afterwards the page reads as %q, %v", got, err)
	}
	other.unharmed(t)
}

// relayed runs a script in the relay's world, as an attacker in the page's process can.
func relayed[T any](b *tab, world *runtime.ExecutionContextID, body string) T {
	b.t.Helper()
	var v T
	result, err := chromedp.Call(b.ctx, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "(async () => {" + body + "})().then(JSON.stringify)", AwaitPromise: new(true),
		ReturnByValue: new(true), ContextID: *world,
	})
	if err != nil || result.ExceptionDetails != nil {
		b.t.Fatalf("in the relay's world: %v %v", err, result)
	}
	var text string
	if err = json.Unmarshal([]byte(result.Result.Value), &text); err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		b.t.Fatalf("in the relay's world: %s: %v", result.Result.Value, err)
	}
	return v
}

// world returns the execution context of a tab's relay.
func (b *tab) world() *runtime.ExecutionContextID {
	b.t.Helper()
	found := make(chan runtime.ExecutionContextID, 10)
	err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*runtime.EventExecutionContextCreated); ok &&
			e.Context.Origin == host.ExtensionOrigin {
			found <- e.Context.ID
		}
	})
	if err == nil {
		err = chromedp.Do(b.ctx, chromedp.Reload())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	id := testkit.Receive(b.t, "the relay runs", found)
	return &id
}

const forge = `
	// Opens a port of the extension's, says something, and tells what came of it: that it was
	// refused, or that it was not within a moment. The moment is long where a refusal is what
	// should come.
	const forge = (name, messages, moment) => new Promise((done) => {
		const heard = [];
		const port = chrome.runtime.connect({ name });
		port.onMessage.addListener((message) => heard.push(message));
		port.onDisconnect.addListener(() => done({ heard, refused: true }));
		for (const message of messages) { try { port.postMessage(message); } catch {} }
		setTimeout(() => { done({ heard, refused: false }); port.disconnect(); }, moment);
	});
`

// An attacker in a page's process sends messages in the place of the relay. The worker and the
// gateway refuse bad calls of the link: js/test/extension/frames.test.mjs, and
// TestForeignOriginsAreRefused.
func (x *extended) takenOverPage(t *testing.T, agent *started) {
	other := x.bystander(agent)
	s := serveStrict(t, "script-src 'self'", "")
	p := x.tab(s.URL)
	world := p.world()
	type outcome struct {
		Heard   []any
		Refused bool
	}
	const longMoment, moment = 90_000, 500 // ms

	t.Run("it says that it is the popup", func(t *testing.T) {
		got := relayed[outcome](p, world, forge+fmt.Sprintf(
			`return await forge("pagewire.panel", [{}, { do: "allow", what: "offers", origin: %q, grant: "always" }], %d);`, s.URL,
			longMoment))
		if !got.Refused || len(got.Heard) > 0 {
			t.Errorf("it was served: %+v", got)
		}
		if n := x.refused()["a page that is not the extension's"]; n == 0 {
			t.Error("it was not counted")
		}
		other.unharmed(t)
	})
	t.Run("it says that it is of another origin", func(t *testing.T) {
		// The site of this page is not allowed, and the bystander's site is. A relay that is told
		// to wait hangs up; this one does not.
		origin, _ := strings.CutSuffix(other.uri, "/count")
		got := relayed[outcome](p, world, forge+fmt.Sprintf(
			`return await forge("pagewire.page", [{ offers: 1, frame: "", url: "%s/", origin: %q, title: "other", documentId: "x", tab: 1, focused: Date.now() }], %d);`, origin, origin, moment))
		for _, heard := range got.Heard {
			if heard != "wait" {
				t.Errorf("it heard %v", heard)
			}
		}
		other.unharmed(t)
	})
}

// Another extension can call ours by its id, start the native host of a registered name, and
// connect to the gateway's port.
func TestExtensionAnotherExtension(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.json": `{"manifest_version": 3, "name": "other", "version": "1", "permissions": ["nativeMessaging"], "background": {"service_worker": "worker.js"}}`,
		"worker.js":     "self.oninstall = () => skipWaiting()",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := filepath.Abs(filepath.Join(dist, "extension"))
	if err != nil {
		t.Fatal(err)
	}
	x := extend(t, h, true, "--load-extension="+ours+","+dir, "--disable-extensions-except="+ours+
		","+dir)
	other := x.bystander(agent)
	var worker target.ID
	testkit.Eventually(t, "the other extension is there", func() bool {
		worker = x.workerThat(
			func(url string) bool { return !strings.HasPrefix(url, host.ExtensionOrigin) })
		return worker != ""
	})
	w := x.attachTo("the other extension", worker)
	for name, body := range map[string]string{
		"a port as the relay's": fmt.Sprintf(
			`const port = chrome.runtime.connect(%q, { name: "pagewire.page" }); port.postMessage({ offers: 1 }); return await ended(port);`, host.ExtensionID),
		"a port as the popup's": fmt.Sprintf(
			`const port = chrome.runtime.connect(%q, { name: "pagewire.panel" }); port.postMessage({ do: "stop", on: true }); return await ended(port);`, host.ExtensionID),
		"a message": fmt.Sprintf(
			`try { return ["answered", await chrome.runtime.sendMessage(%q, "pagewire:recheck")]; } catch (cause) { return ["refused"]; }`, host.ExtensionID),
		"the native host": fmt.Sprintf(
			`const port = chrome.runtime.connectNative(%q); port.postMessage({ type: "open", id: 1 }); return await ended(port);`, host.HostName),
		"the gateway": fmt.Sprintf(`const socket = new WebSocket("ws://%s/page", "pagewire.v1");
			return await new Promise((done) => { socket.onopen = () => done(["open"]); socket.onerror = () => done(["refused"]); });`, h.hub),
	} {
		got := run[[]any](w, `
			const ended = (port) => new Promise((done) => {
				const heard = [];
				port.onMessage.addListener((message) => heard.push(message));
				port.onDisconnect.addListener(() => done(heard.length ? heard : ["refused"]));
				setTimeout(() => done(["still open"]), 3000);
			});
			`+body)
		if len(got) != 1 || got[0] != "refused" {
			// The result for a message without an answer is undefined.
			if name != "a message" || len(got) != 2 || got[1] != nil {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
	if n := x.refused()["another extension"]; n != 3 {
		t.Errorf("three attempts were counted as %d", n)
	}
	if !strings.Contains(h.log(), "This extension is not one that the gateway knows") {
		t.Error("the gateway has not logged that it refused another extension")
	}
	other.unharmed(t)
}
