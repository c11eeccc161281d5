package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Whatever a page does to its own DOM, its text is read, and the reader pauses.
func TestShownHostilePages(t *testing.T) {
	t.Parallel()
	// Every member that the reader uses, as a name of an element.
	const names = "body title children childNodes firstChild nextSibling parentNode nodeType localName tagName shadowRoot attributes " +
		"getAttribute hasAttribute matches closest querySelectorAll getElementById documentElement defaultView ownerDocument " +
		"textContent innerText isConnected labels control form elements length type value id name hidden hasOwnProperty " +
		"toString constructor getRootNode checkVisibility getBoundingClientRect clientWidth isContentEditable href disabled role"
	for _, c := range []struct{ name, script, want string }{
		{"named elements", `for (const name of "` + names + `".split(" ")) document.body.insertAdjacentHTML("afterbegin", "<img name=" + name + " alt=''><form id=" + name + "><input type=hidden name=" + name + "></form>");
			const form = document.createElement("form");
			form.innerHTML = "<p>In a form</p>" + "` + names + `".split(" ").map((name) => "<input type=hidden name=" + name + ">").join("");
			HTMLElement.prototype.append.call(document.querySelector("main"), form);
			HTMLElement.prototype.insertAdjacentHTML.call(document.querySelector("main"), "beforeend", "<b id=called>Called</b><input aria-labelledby=called value=x>")`, "In a form"},
		{"names of several things", `const main = document.querySelector("main"), body = document.body;
			for (const name of "` + names + ` pagewireShown chrome dom".split(" "))
				Element.prototype.insertAdjacentHTML.call(body, "beforeend", "<img name=" + name + "><img name=" + name + "><iframe name=" + name + " hidden></iframe>");
			main.innerHTML = "<form><p>In a form</p>" + "` + names + `".split(" ").map((name) => ("<input type=hidden name=" + name + ">").repeat(2)).join("") + "</form>"`, "In a form"},
		{"labels of fields in labels",
			`document.querySelector("main").innerHTML = Array.from({ length: 20_000 }, (_, i) => "<label for=f" + (i + 1) + "><input type=checkbox id=f" + i + ">L</label>").join("") + "<p>After</p>"; document.querySelector("#f0").title = "x"`, "After"},
		{"texts that are long in the same way", `const many = (text) => text.repeat(200_000 / text.length);
			history.replaceState(0, "", "/page" + many("?code"));
			document.querySelector("main").innerHTML = "<label for=f>" + many("{") + "</label><input id=f><pre><time>x" + many(" ") + "y</time></pre><a href='https://x.test/" + many("?code") + "'>" +
				many("(image: ") + "</a>"; document.body.insertAdjacentHTML("afterbegin", "<p>Before</p>")`, "Before"},
		{"names of a document that is named",
			`document.body.innerHTML = "<img name=nodeType><img name=getElementById><b id=called>Called</b><input aria-labelledby=called value=x>"`, "{Called: x}"},
		{"a form of each role", `document.querySelector("main").innerHTML = ["link", "button", "row", "img", "checkbox", "heading", "listitem", "progressbar", "textbox", "cell", "constructor", "__proto__"]
			.map((role) => "<form role=" + role + " contenteditable aria-labelledby='x y' aria-level=x href=x>Form " + role + "<input type=hidden name=href><input type=hidden name=value></form>").join("")`, "Form __proto__"},
		{"elements of other namespaces", `for (const space of ["http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "urn:x", null])
				for (const tag of ["input", "select", "textarea", "label", "iframe", "a", "slot", "video", "details", "dialog", "progress", "svg", "math", "form", "p"]) {
					const element = document.createElementNS(space, tag);
					element.append("Other words");
					document.querySelector("main").append(element);
				}
			document.querySelector("main").insertAdjacentHTML("beforeend", "<math><mi>x</mi><mo>=</mo></math><svg role=none><text>t</text></svg><input role=img><custom-x href=http://[ role=link>Custom</custom-x>" +
				"<a href='http://['>Bad address</a><iframe src='http://[' width=99></iframe>")`, "Bad address"},
		{"patched prototypes", `const no = () => { throw new Error("patched") };
			for (const prototype of [Node.prototype, Element.prototype, Document.prototype, HTMLElement.prototype, CharacterData.prototype, String.prototype, Array.prototype])
				for (const name of ["firstChild", "childNodes", "textContent", "localName", "body", "getAttribute", "substringData", "replace", "map", "getBoundingClientRect", "checkVisibility"])
					if (name in prototype) Object.defineProperty(prototype, name, { get: no, configurable: true });
			globalThis.getComputedStyle = globalThis.Range = globalThis.MutationObserver = globalThis.MessageChannel = no`, "Text"},
		{"a document of its own",
			`document.open(); document.write("<title>New</title><body><p id=p>Text</p><input id=field aria-label=Field>"); document.close()`, "title: New\n"},
		{"no body", `document.documentElement.innerHTML = ""; document.body.remove()`, "title: "},
		{"another root",
			`document.documentElement.remove(); document.append(document.createElementNS(null, "root"))`, "title: "},
		{"frames in frames",
			`const nest = (w, n) => { const d = w.document; d.body.innerHTML = "<p>Frame " + n + "</p>"; if (n < 20) { const f = d.createElement("iframe"); f.width = f.height = 500; d.body.append(f); nest(f.contentWindow, n + 1); } }; nest(window, 0)`,
			"Frame 7\nFrame 8\n(frame)\n"},
		{"elements in elements",
			`let e = document.querySelector("main"); for (let i = 0; i < 1000; i++) e = e.appendChild(document.createElement("div")); e.append("Deep"); document.body.append("Text behind")`,
			"Text behind"},
		{"list items in list items",
			`let e = document.querySelector("main"); for (let i = 0; i < 400; i++) { e = e.appendChild(document.createElement("li")); e.append("Item " + i); } document.body.append("Text behind")`,
			"Item 200"},
		{"links whose addresses are longer together than any text",
			`document.head.innerHTML = "<base href='/" + "x".repeat(1_000_000) + "/'>"; document.body.insertAdjacentHTML("beforeend", "<a href=y>Link</a> ".repeat(1000) + "<p>Text behind")`,
			"Text behind"},
		{"lone surrogates", `document.querySelector("p").textContent = "a\ud800b\udc00c"`, "abc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openShown(t, `<main><p id=p>Text</p></main>`, nil)
			b.watches()
			run[any](b.tab, c.script)
			if text := inWorld[string](b,
				"await pass(1000); return read()"); !strings.Contains(text, c.want) {
				t.Errorf("%q is missing in\n%.2000s", c.want, text)
			}
			if text := inWorld[string](b,
				"return pagewireShown(document, clock).view(() => {}).read({ links: true })"); !strings.Contains(text, c.want) {
				t.Errorf("%q is missing in a first look:\n%.2000s", c.want, text)
			}
		})
	}
}

// A document that has been opened anew, which removes listeners, is still followed.
func TestShownDocumentOpen(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p>Old</p>`, nil)
	b.watches()
	for _, c := range []struct{ script, want string }{
		{`document.open(); document.write("<body><p id=p>New</p><input id=field aria-label=Field>"); document.close()`, "New\n{Field: }\n"},
		{`document.querySelector("p").textContent = "Changed"`, "Changed\n{Field: }\n"},
		{`globalThis.field = document.querySelector("input"); field.value = "x"; field.dispatchEvent(new Event("input", { bubbles: true }))`, "Changed\n{Field: x}\n"},
	} {
		if told := b.told(c.script); told != 1 {
			t.Errorf("%s: told %d times, want once", c.script, told)
		}
		if got := inWorld[string](b, "return lines()"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
}

// Pages of any size are read in parts, one after the other. The reader pauses, and what it has made
// it keeps.
func TestShownLargePages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, text string
	}{
		{"10 MB of paragraphs",
			`document.body.innerHTML = Array.from({ length: 10_000 }, (_, i) => "<p>Paragraph " + i + " " + "word ".repeat(200)).join("")`,
			`Array.from({ length: 10_000 }, (_, i) => "Paragraph " + i + " " + "word ".repeat(200).trim()).join("\n")`},
		// Chromium itself takes 9 s for the layout of 50 MB, and the reader 6 ms.
		{"10 MB in one text",
			`document.querySelector("p").textContent = "0123456789".repeat(1_000_000)`,
			`"0123456789".repeat(200_000)`},
		{"200,000 elements",
			`document.body.innerHTML = "<i>x</i>".repeat(50_000) + "<p>y</p>".repeat(150_000)`,
			`"x".repeat(50_000) + "\ny".repeat(150_000)`},
		{"200,000 elements without text",
			`document.body.innerHTML = "<b>Start</b>" + "<i></i>".repeat(200_000)`, `"Start"`},
		{"a log of 200,000 lines",
			`document.body.innerHTML = "<pre></pre>"; document.querySelector("pre").textContent = "x\n".repeat(500_000)`,
			`"\x60\x60\x60\n" + "x\n".repeat(500_000)`},
		{"a paragraph of 60,000 parts",
			`document.body.innerHTML = "<p>" + "<b>ab </b>".repeat(60_000) + "</p>"`,
			`"ab ".repeat(60_000)`},
		{"pairs of surrogates",
			`document.querySelector("p").textContent = "\u{1f44d}".repeat(400_000)`,
			`"\u{1f44d}".repeat(400_000)`},
		{"a table of 50,000 rows",
			`document.body.innerHTML = "<table>" + Array.from({ length: 50_000 }, (_, i) => "<tr><td>" + i + "<td>value").join("") + "</table>"`,
			`Array.from({ length: 50_000 }, (_, i) => "| " + i + " | value |").join("\n")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openShown(t, `<p>Text</p>`, nil)
			run[any](b.tab, c.script)
			got := inWorld[struct {
				Parts, Pauses, Longest int
				Is                     bool
				Begins                 string
			}](b, `
				// Each question for the time takes longer than a slice: the pauses are as many as
				// the questions.
				let time = 0;
				performance.now = () => (time += 9);
				const texts = [];
				view.watch(true);
				for (let from = 0; from !== undefined && texts.length < 4; ) {
					const text = await read({ from });
					texts.push(text);
					from = text.match(/\n\(the page goes on: read from (\d+)\)\n$/)?.[1];
					if (from) from = +from;
				}
				// Code that goes on ends, and begins anew.
				const whole = texts.map((text) => text.replace(/(\n\x60\x60\x60)?\n\(the page goes on: read from \d+\)\n$/, "\n"))
					.map((text, i) => (i ? text.replace(/^\x60\x60\x60\n/, "") : text)).join("").replace(/^.*\n.*\n/, "");
				const want = `+c.text+`;
				return { parts: texts.length, pauses: counts.pauses, longest: Math.max(...texts.map((text) => text.length)), begins: whole.slice(0, 200),
					is: whole.length > 0 && (want.startsWith(whole.replaceAll("\n", "")) || want.startsWith(whole.trimEnd())) }`)
			if !got.Is || got.Longest > 200_100 || got.Pauses < 10 {
				t.Errorf("parts that are not in the page, or long, or made with few pauses: %+v",
					got)
			}
		})
	}
}

// A long text that no person sees is not read, and what has no width is read once, in steps.
func TestShownLongHiddenTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, want string
		// read and pauses are limits: at most so many characters read, and at least so many pauses.
		read, pauses int
	}{
		{"the colour of its ground",
			`p.style.color = "white"; p.textContent = "word ".repeat(2_000_000)`,
			"After\n(hidden text of 10000000 characters is left out)\n", 200_000, 0},
		{"faint", `p.style.opacity = 0; p.textContent = "word ".repeat(2_000_000)`,
			"After\n(hidden text of 9999999 characters is left out)\n", 200_000, 0},
		{"without a width", `p.textContent = "\u200b".repeat(5_000_000) + "x"`,
			"x\nAfter\n(hidden text of 5000000 characters is left out)\n", 5_100_000, 100},
		{"spaces", `p.textContent = " ".repeat(5_000_000) + "x"`, "x\nAfter\n", 5_100_000, 100},
		{"empty lines",
			`p.style.whiteSpace = "pre-wrap"; p.textContent = "\n".repeat(300_000) + "x"`,
			"x\nAfter\n", 400_000, 6},
		{"empty lines of code", `p.outerHTML = "<pre>" + "\n ".repeat(200_000) + "x</pre>"`,
			"`x`\nAfter\n", 500_000, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openShown(t, `<p id=p></p><p>After`, nil)
			run[any](b.tab, c.script)
			got := inWorld[struct {
				Text         string
				Read, Pauses int
			}](b, `
				let time = 0;
				performance.now = () => (time += 9);
				return { text: (await lines()).slice(0, 1000), read: counts.characters, pauses: counts.pauses }`)
			if got.Text != c.want || got.Read > c.read || got.Pauses < c.pauses {
				t.Errorf("got %+v, want %q with at most %d characters read, and at least %d pauses",
					got, c.want, c.read, c.pauses)
			}
		})
	}
}

// A page of too many elements is cut at the same place in each look: a look without a change has no
// news.
func TestShownTooManyElements(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	run[any](b.tab,
		`document.body.innerHTML = "<p id=p>Start</p>" + "<b></b>".repeat(255_000) + "<p>End"`)
	b.watches()
	const want = "(the page goes on, and is too large)\n"
	for i, c := range []struct {
		script string
		told   int
		want   string
	}{{"0", 0, "Start\n" + want}, {"p.title = 1", 0, "Start\n" + want},
		{`p.textContent = "Other"`, 1, "Other\n" + want}, {"p.title = 2", 0, "Other\n" + want}} {
		run[any](b.tab, c.script)
		got := inWorld[string](b,
			"counts.told = 0; await pass(1000); return counts.told + await lines()")
		if got != fmt.Sprint(c.told)+c.want {
			t.Errorf("%d, %s: got %q, want %d and %q", i, c.script, got, c.told, c.want)
		}
	}
}

// A look that fails, since a page makes it, is made again, and then told.
func TestShownFailingLook(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p id=p>Text</p>`, nil)
	inWorld[any](b, `
		globalThis.style = getComputedStyle;
		globalThis.getComputedStyle = () => { throw new Error("no style"); };
		view.watch(true);
		globalThis.error = await read().catch((error) => error.message);
		getComputedStyle = style;
		counts.told = 0`)
	if got := inWorld[string](b, "return error"); got != "no style" {
		t.Fatalf("the first look gave %q", got)
	}
	if got := inWorld[string](b,
		"await pass(11_000); return counts.told + await lines()"); got != "1Text\n" {
		t.Errorf("after a first look that failed: told, and shown: %q", got)
	}
	run[any](b.tab, `p.textContent = "Other"`)
	inWorld[any](b, `globalThis.getComputedStyle = () => { throw new Error("no style"); }; counts.told = 0;
		const { port1, port2 } = new MessageChannel();
		for (let i = 0; i < 9; i++) { clock.time += 1000; for (const due of clock.waits.splice(0)) due.done(); await new Promise((done) => { port1.onmessage = done; port2.postMessage(0); }); }
		getComputedStyle = style`)
	if got := inWorld[string](b,
		"await pass(11_000); return counts.told + await lines()"); got != "1Other\n" {
		t.Errorf("after a later look that failed: told, and shown: %q", got)
	}
}

// A change in a large page has little looked at again, and a look without a change has nothing. The
// reader leaves no ranges there, which would make each change of the page slower.
func TestShownKeeps(t *testing.T) {
	t.Parallel()
	b := openShown(t,
		strings.Repeat(
			`<section><h2>Head</h2><ul><li><a href=/a>One</a> <b>two</b><li>three</ul><table><tr><td>a<td>b<tr><td>c<td>d</table></section>`, 700), nil)
	if got := inWorld[int](b,
		"view.watch(true); await settle(); await pass(1000); return counts.ranges"); got > 1 {
		t.Errorf("the reader has made %d ranges", got)
	}
	for script, most := range map[string]int{
		`0`: 0,
		`document.querySelectorAll("b")[300].firstChild.data = "changed"`:                                                          20,
		`document.querySelectorAll("ul")[300].insertAdjacentHTML("beforeend", "<li>new")`:                                          20,
		`document.querySelectorAll("td")[300].innerHTML = "<i>new</i>"`:                                                            20,
		`document.querySelectorAll("section")[300].className = "x"`:                                                                60,
		`document.querySelectorAll("section")[300].remove()`:                                                                       20,
		`document.body.style.setProperty("--x", "1"); document.body.style.transform = "none"; document.body.style.opacity = "0.9"`: 0,
	} {
		run[any](b.tab, script)
		if got := inWorld[int](b,
			"const before = counts.styles; await read(); return counts.styles - before"); got > most {
			t.Errorf("%s: the styles of %d elements are asked for, want at most %d", script, got,
				most)
		}
	}
}

// A page that rewrites itself all the time, or changes thousands of things at once, does not keep
// the reader busy.
func TestShownStorms(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<main id=main></main><p id=end>End</p>`, nil)
	run[any](b.tab, `
		globalThis.write = (i) => { main.innerHTML = Array.from({ length: 300 }, (_, n) => "<p>Line " + n + " of <b>" + i + "</b>").join(""); };
		globalThis.storm = () => { for (let i = 0; i < 30_000; i++) { end.dataset.x = i; end.title = i; end.textContent = "End " + i; } };
		let i = 0;
		addEventListener("tick", () => write(++i));
		write(0)`)
	got := inWorld[map[string]int](b, `
		view.watch(true); await settle(); await pass(1000);
		const before = { ...counts };
		// 20 s of 60 frames each: no look between them but those that are due, two a second.
		for (let i = 0; i < 1200; i++) {
			dispatchEvent(new Event("tick"));
			clock.time += 1000 / 60;
			for (const due of clock.waits.filter(({ at }) => at <= clock.time)) { clock.waits.splice(clock.waits.indexOf(due), 1); due.done(); }
			if (i % 60 === 0) await settle();
		}
		await settle();
		return { told: counts.told - before.told, looks: Math.round((counts.styles - before.styles) / 600), waits: clock.waits.length }`)
	if got["told"] > 45 || got["told"] < 4 || got["waits"] > 3 || got["looks"] > 45 {
		t.Errorf("in 20 s: %v", got)
	}
	run[any](b.tab, "storm()")
	if text := inWorld[string](b,
		"counts.told = 0; await pass(2000); return counts.told + ' ' + await read()"); !strings.Contains(text, "End 29999") || text[0] != '1' {
		t.Errorf("after a storm of changes: %.200s", text)
	}
	// While it is being read, the page changes at each of dozens of pauses, and its layout with it. A look ends all the
	// same.
	run[any](b.tab, `addEventListener("pause", () => write("p"))
		document.body.insertAdjacentHTML("beforeend", "<div><p>more</div>".repeat(200))`)
	text := inWorld[string](b, `
		const { postMessage } = MessagePort.prototype;
		let pauses = 0, time = 0;
		performance.now = () => (time += 9);
		MessagePort.prototype.postMessage = function (...args) { pauses++; dispatchEvent(new Event("pause")); return postMessage.apply(this, args); };
		const text = await pagewireShown(document, clock).view(() => {}).read();
		MessagePort.prototype.postMessage = postMessage;
		return pauses + " " + text`)
	pauses, _, _ := strings.Cut(text, " ")
	if count, err := strconv.Atoi(pauses); err != nil || count < 20 || !strings.Contains(text, "Line 299 of p") ||
		!strings.Contains(text, "more") {
		t.Errorf("a page that changes while it is read: %.500s", text)
	}
}
