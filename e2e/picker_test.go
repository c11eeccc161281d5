package e2e

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// ofDev is a page that imports pagewire/dev as a browser can, without a bundler.
func (h userHome) ofDev(html string) page {
	return page{
		head: `<script type=importmap>{"imports":{"pagewire":"/pagewire.mjs","pagewire/store":"/store.js"}}</script>
			<script>globalThis.process = { env: { PAGEWIRE_GATEWAY: "ws://` + h.hub + `" } }</script>` + html,
		tag: `<script type=module src=/dev.js></script>`,
	}
}

// A pick is an element of /dev/pointed.
type pick struct {
	Words, Component, HTML, Text, Selector, At, Path string
	IsGone                                           bool
}

// A pointing is a page whose developer points at elements, and an agent that is subscribed.
type pointing struct {
	*tab
	agent *started
	uri   string
}

func (b *tab) points(a *started) pointing {
	b.t.Helper()
	p := pointing{b, a, run[string](b, "return location.origin") + "/dev/pointed"}
	testkit.Eventually(b.t, "the page is there", func() bool { return a.Offers(p.uri) })
	a.Watch(p.uri)
	return p
}

func (p pointing) opens() {
	p.t.Helper()
	p.do(chromedp.KeyEvent("P", chromedp.KeyModifiers(chromedp.ModifierAlt, chromedp.ModifierShift)))
}

func (p pointing) isOpen() bool {
	p.t.Helper()
	return run[bool](p.tab, "return !!document.querySelector('pagewire-picker')")
}

// pointsAt moves the pointer to the middle of an element, and clicks there.
func (p pointing) pointsAt(element string, clicks bool) {
	p.t.Helper()
	at := run[[2]float64](p.tab, "const { left, top, width, height } = ("+element+
		").getBoundingClientRect(); return [left + width / 2, top + height / 2]")
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
	if clicks {
		p.do(chromedp.MouseClickXY(at[0], at[1]))
	}
}

// picks points at an element and clicks, or presses keys instead, and says words.
func (p pointing) picks(element, words string, keys ...string) pick {
	p.t.Helper()
	p.opens()
	p.pointsAt(element, len(keys) == 0)
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
	return p.says(words)
}

// says types words into the box. It returns the pick when the agent has been told of it.
func (p pointing) says(words string) pick {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: words})
	p.must(err)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.agent.Told(p.uri)
	all := p.all()
	if len(all) == 0 || p.isOpen() {
		p.t.Fatalf("picked: %+v; the picker is open: %v", all, p.isOpen())
	}
	last := all[len(all)-1]
	if last.Words == "" || !strings.HasPrefix(words, last.Words) {
		p.t.Errorf("the words are %q, want %q", last.Words, words)
	}
	return last
}

func (p pointing) all() (picks []pick) {
	p.t.Helper()
	p.must(json.Unmarshal([]byte(p.agent.Text(p.uri)), &picks))
	return picks
}

// pointedAt is without style attributes and scripts, so that a page may have a policy.
const pointedAt = `<main><ul><li>One<li class="two big">Two</ul><button disabled>Off</button>
	<form><label>Name <input id=typed value=ada></label><input type=password value=hunter2><textarea>draft</textarea></form>
	<section data-resource-private><p id=secret>Private</section>
	<p id=token>Key sk-proj_abcdefghijklmnop0123456789<p hidden>Hidden</p>
	<p id=note contenteditable>Typed <em>here</em></p>
	<a id=link href="/x?token=abc&page=2">Link</a><iframe id=frame></iframe><x-open id=tree></x-open>
	<dialog>Modal <b>dialog</b></dialog><p id=large></main>`

// recordsHeard records all that the page hears of a person, and lets nothing else hear it.
const recordsHeard = `globalThis.heard = [];
	for (const type of ["click", "pointerdown", "mousedown", "keydown", "keyup", "input", "focusin", "focusout", "blur"])
		addEventListener(type, (event) => { heard.push([type, event.key]); event.stopImmediatePropagation(); }, true);`

// A developer points at an element by a key and a click, and says what it is about. The agent is
// told, and reads which element it is; the page notices nothing.
func TestPicker(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	a := h.serve(t)
	site := h.ofDev(pointedAt)
	site.nonce = "n"
	site.headers = map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self' 'nonce-n'; " +
		"connect-src 'self' ws:; img-src data:; require-trusted-types-for 'script'"}
	b := openAlone(t, noFlag, serve(t, site)) // with the focus
	p := b.points(a)
	run[any](b, `await import("/dev.js?again"); typed.focus(); typed.select();`+recordsHeard+`
		const inner = tree.attachShadow({ mode: "open" });
		inner.append(document.createElement("p"), Object.assign(document.createElement("p"), { textContent: "Deep" }));
		for (let i = 0; i < 20_000; i++) large.append(Object.assign(document.createElement("i"), { textContent: "words " }))`)

	const of = "document.querySelector"
	for _, c := range []struct {
		element string
		keys    []string // instead of a click
		want    pick
	}{
		{of + `(".two")`, nil, pick{HTML: `<li class="two big"></li>`, Text: "Two", Selector: "li:nth-of-type(2)"}},
		{of + `("button")`, nil, pick{HTML: `<button disabled=""></button>`, Text: "Off", Selector: "button"}},
		{`typed`, []string{kb.ArrowUp, kb.ArrowUp, kb.Enter}, pick{HTML: `<form><label><input id="typed"></label><input type="password"><textarea></textarea></form>`,
			Text: "Name", Selector: "form"}},
		{`secret`, nil, pick{Selector: `p[id="secret"]`}},
		{`token`, nil, pick{HTML: `<p id="token"></p>`, Text: "Key [redacted]", Selector: `p[id="token"]`}},
		{`note`, nil, pick{HTML: `<p id="note"></p>`, Selector: `p[id="note"]`}},
		{`link`, nil, pick{HTML: `<a id="link" href="/x?token=…&page=2"></a>`, Text: "Link", Selector: `a[id="link"]`}},
		{`frame`, nil, pick{HTML: `<iframe id="frame">`, Selector: `iframe[id="frame"]`}},
		{`tree.shadowRoot.lastChild`, nil, pick{HTML: `<p></p>`, Text: "Deep", Selector: `x-open[id="tree"] >>> p:nth-of-type(2)`}},
	} {
		c.want.Words, c.want.Path = "Make it green", "/"
		if got := p.picks(c.element, c.want.Words, c.keys...); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.element, got, c.want)
		}
	}

	// The keyboard alone: to the parent, back, and to the parent again.
	if got := p.picks(of+`(".two")`, "The list", kb.ArrowUp, kb.ArrowDown, kb.ArrowUp, kb.Enter); got.Selector != "ul" {
		t.Errorf("by keys: %+v", got)
	}
	// The element goes before the words are there.
	p.opens()
	p.pointsAt(of+`(".two")`, true)
	run[any](b, of+`(".two").remove()`)
	if got := p.says("It was here"); got.Text != "Two" || !got.IsGone {
		t.Errorf("an element that is gone: %+v", got)
	}
	// All is bounded.
	got := p.picks(`large.firstChild`, strings.Repeat("words", 1000), kb.ArrowUp, kb.Enter)
	if got.Selector != `p[id="large"]` || len(got.Words) != 4000 || len(got.HTML) > 340 || len(got.Text) > 240 {
		t.Errorf("a large element: %+v", got)
	}
	// A modal dialog makes all else inert.
	unheard := func() {
		t.Helper()
		if got := run[[]any](b, `return [heard, document.activeElement.id, typed.value]`); fmt.Sprint(got) != "[[] typed ada]" {
			t.Errorf("the page has noticed: %v", got)
		}
	}
	unheard()
	run[any](b, of+`("dialog").showModal()`)
	if got := p.picks(of+`("b")`, "Modal?"); got.Text != "dialog" {
		t.Errorf("in a dialog: %+v", got)
	}
	run[any](b, of+`("dialog").close(); typed.focus(); heard.length = 0`)

	// Escape ends both, and nothing is told.
	for _, clicks := range []bool{false, true} {
		p.opens()
		p.pointsAt(`link`, clicks)
		p.do(chromedp.KeyEvent(kb.Tab))
		p.do(chromedp.KeyEvent(kb.Escape))
		if p.isOpen() {
			t.Error("Escape does not end the picker")
		}
	}
	unheard()
	// A key of the page's choice. Its other events are the page's again.
	run[any](b, `globalThis.pagewirePickKey = "Ctrl+F2"`)
	p.opens()
	if heard := run[string](b, `return heard.at(-1)[1]`); p.isOpen() || heard != "P" {
		t.Errorf("the page hears %q", heard)
	}
	p.do(chromedp.KeyEvent(kb.F2, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	if !p.isOpen() {
		t.Error("another key does not open the picker")
	}

	// The last five outlast a reload.
	if got := p.all(); len(got) != 5 {
		t.Errorf("%d picks are kept", len(got))
	}
	before := a.Text(p.uri)
	b.reload()
	a.Reads(p.uri, before)
	b.quiet()
}

// axe-core has nothing to say of the box, by day and by night.
func TestPickerAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("../js/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	a := h.serve(t)
	b := open(t, noFlag, serve(t, h.ofDev(pointedAt)))
	// axe-core cannot look into a closed tree.
	_, err = chromedp.Call(b.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `
		const { attachShadow } = Element.prototype;
		Element.prototype.attachShadow = function () { return attachShadow.call(this, { mode: "open" }); };`})
	b.must(err)
	b.reload()
	p := b.points(a)
	p.opens()
	p.pointsAt(`link`, true)
	if got := run[[]string](b, string(axe)+`;
		const { violations, passes } = await axe.run("pagewire-picker");
		if (!passes.some(({ id }) => id === "label")) return ["it does not see the box", ...passes.map(({ id }) => id)];
		return violations.map(({ id, nodes }) => id + ": " + nodes[0].html);`); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// The development builds of React, Vue and Svelte, served by Vite, tell the component and its place
// in the sources.
func TestPickerComponents(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	a := h.serve(t)
	app := installApp(t, "dev", installedPackage(t))
	config := filepath.Join(app, "vite.config.js")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, []byte(strings.Replace(string(text), "GATEWAY", "ws://"+h.hub, 1)), 0o644)
	}
	if err == nil { // a package of others
		err = os.MkdirAll(filepath.Join(app, "node_modules/buttons"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(app, "node_modules/buttons/index.js"), []byte(`import { createElement } from "react";
			export const Button = (of) => createElement("button", of);`), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, noFlag, &site{Server: &httptest.Server{URL: strings.TrimSuffix(serverOf(t, app, "dev.mjs"), "/")}})
	testkit.Eventually(t, "the apps are there", func() bool {
		n, err := try[int](b, `return document.querySelectorAll("li, button").length`)
		return err == nil && n == 4
	})
	p := b.points(a)
	// A policy that has nothing for what the picker does.
	run[any](b, `const policy = document.createElement("meta");
		policy.httpEquiv = "Content-Security-Policy";
		policy.content = "connect-src 'self' ws:; style-src 'none'; require-trusted-types-for 'script'";
		document.head.append(policy)`)
	for element, want := range map[string][2]string{
		"#react li":     {"Item in Hello", "src/Hello.jsx:5"},
		"#react button": {"Button in Hello", "src/Hello.jsx:12"},
		"#vue li":       {"Item in Hello", "src/Item.vue"},
		"#svelte li":    {"Item in Hello", "src/Item.svelte:6"},
	} {
		got := p.picks(`document.querySelector("`+element+`")`, "Make it green")
		if got.Component != want[0] || !strings.HasSuffix(got.At, want[1]) {
			t.Errorf("%s: %+v, want %q", element, got, want)
		}
	}
	b.quiet()
}
