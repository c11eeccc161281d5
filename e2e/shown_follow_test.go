package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A change of what a person sees is told, whatever has made it, and a change of nothing is not.
func TestShownFollows(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<style>.gone { display: none } .open + .panel { display: block } .panel { display: none }</style>
		<p id=p>Text <b id=bold>1</b></p><ul id=list><li>One<li>Two</ul><p id=off class=gone>Off</p><h3 id=head>Head</h3><p class=panel>Panel</p>
		<input id=field aria-label=Field><select id=select aria-label=Select><option>a<option>b</select><label><input type=checkbox id=check> Check</label>
		<details id=more><summary>More</summary>Inside</details><dialog id=dialog>Sure?</dialog><div id=pop popover>Popped</div>
		<div id=host></div><div id=slots><i>slotted</i></div><iframe id=frame srcdoc="<p>In a frame</p>"></iframe><a id=link href=/a>Link</a>`, nil)
	run[any](b.tab, `
		const open = host.attachShadow({ mode: "open" });
		open.innerHTML = "<p>In a tree</p>"; globalThis.inner = open.firstChild;
		slots.attachShadow({ mode: "open" }).innerHTML = "<b><slot></slot></b>";
		if (!frame.contentDocument.querySelector("p")) await new Promise((done) => frame.addEventListener("load", done));
		globalThis.fires = (target, type) => target.dispatchEvent(new Event(type, { bubbles: true }))`)
	b.watches()
	for _, c := range []struct {
		script string
		told   int
		shows  string
	}{
		{`bold.firstChild.data = "2"`, 1, "Text 2"},
		{`bold.textContent = "3"`, 1, "Text 3"},
		{`list.insertAdjacentHTML("afterbegin", "<li>Zero")`, 1, "- Zero\n- One"},
		{`list.lastChild.remove()`, 1, "- Zero\n- One\n"},
		{`off.className = ""`, 1, "Off"},
		{`off.style.display = "none"`, 1, ""},
		{`off.hidden = true; off.style.display = ""`, 0, ""},
		{`off.hidden = false`, 1, "Off"},
		{`head.className = "open"`, 1, "Panel"},
		{`field.value = "typed"; fires(field, "input")`, 1, "{Field: typed}"},
		{`select.value = "b"; fires(select, "change")`, 1, "{Select: b}"},
		{`check.click()`, 1, "[x] Check"},
		{`document.querySelector("label").lastChild.data = " Checked"`, 1, "[x] Checked"},
		{`p.style.color = "white"`, 1, "(hidden text of"},
		{`p.style.color = ""`, 1, "Text 3"},
		{`document.styleSheets[0].insertRule("#tab:checked ~ #checked { display: block }"); document.styleSheets[0].insertRule("#checked { display: none }");
			document.body.insertAdjacentHTML("beforeend", "<input type=checkbox id=tab aria-label=Tab><p id=checked>By a rule</p>")`, 1, "[ ] Tab"},
		{`tab.click()`, 1, "[x] Tab\nBy a rule"},
		{`tab.checked = false; p.dataset.x = 1; bold.textContent = "3.5"`, 2, "[ ] Tab"},
		{`document.styleSheets[0].insertRule("#link { display: none }"); bold.textContent = "3.6"`,
			2, "3.6"},
		{`document.styleSheets[0].deleteRule(0); bold.textContent = "3.7"`, 2, "Link"},
		{`more.open = true`, 1, "[More (open)]\nInside"},
		{`dialog.showModal()`, 1, "--- dialog\nSure?"},
		{`dialog.close()`, 1, ""},
		{`pop.showPopover()`, 1, "Popped"},
		{`inner.textContent = "Changed tree"`, 1, "Changed tree"},
		{`slots.firstChild.textContent = "new"`, 1, "new"},
		{`frame.contentDocument.querySelector("p").textContent = "Changed frame"`, 1,
			"Changed frame"},
		{`link.textContent = "Other"`, 1, "Other"},
		{`document.title = "Title"`, 1, "title: Title"},
		{`history.pushState(0, "", "/page?tab=2"); document.body.dataset.x = ""; bold.textContent = "4"`, 1, "/page?tab=2"},
		// Nothing that a person sees.
		{`link.href = "/b"`, 0, ""},
		{`list.innerHTML = list.innerHTML`, 0, ""},
		{`list.replaceWith(list.cloneNode(true))`, 0, ""},
		{`p.style.color = "rgb(1, 1, 1)"`, 0, ""},
		{`p.dataset.state = "x"; p.className = "active"`, 0, ""},
		{`document.body.insertAdjacentHTML("beforeend", "<p hidden>unseen</p><script>/* x */</script><!-- x -->")`, 0, ""},
		{`bold.textContent = "5"; bold.textContent = "4"`, 0, ""},
		{`document.body.insertAdjacentHTML("beforeend", "<p id=faint style='opacity: 0'>hidden</p>")`, 0, "(hidden text of 6 characters"},
		{`faint.textContent = "hidden more"`, 0, "(hidden text of 11 characters"},
	} {
		inWorld[any](b, "counts.told = 0")
		run[any](b.tab, c.script)
		// Long enough that nothing is restless.
		got := inWorld[int](b, "await settle(); await pass(31_000); return counts.told")
		text := inWorld[string](b, "return read()")
		if got != c.told {
			t.Errorf("%s: told %d times, want %d:\n%s", c.script, got, c.told, text)
		}
		if !strings.Contains(text, c.shows) {
			t.Errorf("%s: %q is missing in\n%s", c.script, c.shows, text)
		}
		// The pieces that are kept make the same text as pieces that are all made anew.
		if anew := inWorld[string](b,
			"return pagewireShown(document, clock).view(() => {}).read()"); anew != text {
			t.Errorf("%s: with the pieces that are kept\n%swithout\n%s", c.script, text, anew)
		}
	}
}

// What changes all the time by itself is told a few times, and then once a minute. What is new is
// told at once.
func TestShownRestless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, html string
		// tick is called n times, each ms milliseconds.
		tick  string
		n, ms int
		// least and most are the times that changes are told, in all this time.
		least, most int
	}{
		{"a spinner by class", `<div id=c>Loading</div>`, `c.classList.toggle("b")`, 600, 100, 0,
			0},
		{"a style each frame", `<div id=c style="position:absolute">Ball</div>`,
			`c.style.transform = "translateX(" + i % 300 + "px)"`, 600, 100, 0, 0},
		{"a fade by style", `<div id=c>Pulse</div>`,
			`c.style.opacity = 0.5 + 0.4 * Math.sin(i / 5)`, 600, 100, 0, 0},
		{"a clock", `<p>Text</p><span id=c></span>`,
			`c.textContent = new Date(1e12 + i * 1000).toISOString()`, 60, 1000, 2, 5},
		{"a clock that pretends to be the user", `<span id=c></span>`,
			`document.dispatchEvent(new Event("pointerdown")); c.textContent = new Date(1e12 + i * 1000).toISOString()`, 60, 1000, 2, 5},
		{"a clock in <time>", `<p>Text</p><time id=c></time>`,
			`c.textContent = new Date(1e12 + i * 1000).toISOString()`, 60, 1000, 0, 2},
		{"a video's time",
			`<div><span id=c></span> / <span>12:00</span></div><div role=progressbar aria-label=Played id=g></div>`,
			`c.textContent = "0:" + (i >> 2); g.setAttribute("aria-valuenow", i)`, 240, 250, 1, 4},
		{"ads that come again", `<p>Text</p><aside id=c></aside>`,
			`c.innerHTML = "<h4>" + ["Shoes", "Phones", "Rome", "Go", "Tea"][i % 5] + "</h4>"`, 15,
			4000, 4, 6},
		{"an upload, then Done", `<p>Text</p><div id=c></div>`,
			`c.textContent = i < 100 ? "Uploading " + i + " %" : "Done"`, 101, 200, 2, 4},
		{"a carousel by transform",
			`<div style="overflow:hidden;width:300px"><div id=c style="display:flex"><div style="flex:0 0 300px">1</div><div style="flex:0 0 300px">2</div></div></div>`,
			`c.style.transform = "translateX(-" + i % 2 * 300 + "px)"`, 20, 3000, 0, 0},
		{"a carousel by display",
			`<div id=c><p>Slide 1</p><p hidden>Slide 2</p><p hidden>Slide 3</p></div>`,
			`[...c.children].forEach((e, n) => (e.hidden = n !== i % 3))`, 20, 3000, 1, 12},
		{"the same again", `<ul id=c></ul>`, `c.innerHTML = "<li>One<li>Two"`, 120, 500, 1, 1},
		{"a canvas", `<canvas id=c width=300 height=100></canvas>`,
			`c.getContext("2d").fillRect(i % 300, 50, 1, 1)`, 600, 100, 0, 0},
		{"lines of a log", `<ul id=c></ul>`, `c.insertAdjacentHTML("beforeend", "<li>line " + i)`,
			30, 2000, 30, 30},
		{"a price", `<table><tr><td>ACME<td id=c></table>`,
			`c.textContent = (i * 7.31 % 100).toFixed(2)`, 60, 1000, 2, 5},
		{"states of a job", `<p id=c></p>`,
			`c.textContent = ["Queued", "Building", "Testing", "Linting", "Packing", "Deploying", "Done"][i]`, 7, 2000, 7, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openShown(t, c.html, nil)
			inWorld[any](b, `
				globalThis.part = 0;
				globalThis.partView = shownPage.view(() => part++, { find: [{ css: "#c" }] });
				view.watch(true); partView.watch(true); await settle(); await pass(1000)`)
			run[any](b.tab, "globalThis.i = 0; globalThis.tick = () => { "+c.tick+"; i++ }")
			// The page's clock is the reader's: an event in the page ticks it.
			run[any](b.tab, `addEventListener("tick", tick)`)
			got := inWorld[[]int](b, fmt.Sprintf(`
				let changes = 0;
				for (let i = 0; i < %d; i++) {
					const before = await partView.read();
					dispatchEvent(new Event("tick"));
					await pass(%d);
					if (await partView.read() !== before) changes++;
				}
				return [counts.told, part, changes]`, c.n, c.ms))
			t.Logf("told %d times, of the part %d times, of %d changes", got[0], got[1], got[2])
			if got[0] < c.least || got[0] > c.most {
				t.Errorf("told %d times, want %d to %d", got[0], c.least, c.most)
			}
			if c.ms >= 1000 && got[1] != got[2] {
				t.Errorf("a part that somebody has picked changed %d times, and was told %d times",
					got[2], got[1])
			}
		})
	}
}

// A quiet text is told once a minute, and at once when it is another one.
func TestShownQuietTexts(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p>Price <span id=c>0</span></p>`, nil)
	run[any](b.tab, `let i = 0; addEventListener("tick", () => { c.textContent = ++i })`)
	told := inWorld[[]int](b, `
		const all = [];
		const ticks = async (n) => { counts.told = 0; for (let i = 0; i < n; i++) { dispatchEvent(new Event("tick")); await pass(1000); } all.push(counts.told); };
		view.watch(true); await settle();
		await ticks(10);
		await ticks(300);
		counts.told = 0; await pass(120_000); all.push(counts.told); // the last price
		await ticks(1);
		return all`)
	if told[0] > 5 || told[1] < 4 || told[1] > 5 || told[2] != 1 || told[3] != 1 {
		t.Errorf(
			"told %v times: at first, in five minutes, the last price, and the next after a pause",
			told)
	}
}

// A hidden tab is read in slices as any other, and its changes are told.
func TestShownHiddenTab(t *testing.T) {
	t.Parallel()
	s := serve(t,
		page{also: map[string]string{"/page": "<body><p id=p>0</p>" +
			strings.Repeat("<p>A <b>line</b></p>", 3000)}})
	b := &shownTab{tab: openAlone(t, noFlag, s)}
	b.navigate(s.URL + "/page")
	hide(t, b.tab)
	b.enter()
	inWorld[any](b, `
		globalThis.setTimeout = browserTimer;
		performance.now = browserNow;
		globalThis.told = 0;
		globalThis.own = pagewireShown(document, { now: () => performance.now(), wait: (ms) => new Promise((done) => setTimeout(done, ms)) }).view(() => told++);
		own.watch(true);
		globalThis.text = await own.read()`)
	if pauses := inWorld[int](b, "return counts.pauses"); pauses < 3 {
		t.Errorf("the look has %d pauses", pauses)
	}
	for i := 1; i <= 3; i++ {
		run[any](b.tab, fmt.Sprintf("p.textContent = 'changed %d'", i))
		text := inWorld[string](b, fmt.Sprintf(`
			const { port1, port2 } = new MessageChannel();
			const turn = () => new Promise((done) => { port1.onmessage = done; port2.postMessage(0); });
			for (const end = performance.now() + 60_000; told < %d && performance.now() < end; ) await turn();
			return told + " " + await own.read()`, i))
		if !strings.HasPrefix(text, fmt.Sprint(i, " ")) ||
			!strings.Contains(text, fmt.Sprint("changed ", i)) {
			t.Errorf("change %d: %.100s", i, text)
		}
	}
}

// Nothing runs before somebody reads or watches, and nothing after the last watch.
func TestShownWatches(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p id=p>0</p>`, nil)
	state := func() map[string]int { return inWorld[map[string]int](b, "return counts") }
	idle := func(when string) {
		t.Helper()
		before := state()
		run[any](b.tab, `for (let i = 0; i < 9; i++) p.textContent += i`)
		inWorld[any](b,
			"await new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); })")
		after := state()
		if before["styles"] != after["styles"] || before["told"] != after["told"] ||
			before["pauses"]+1 != after["pauses"] {
			t.Errorf("%s: the reader did %v, then %v", when, before, after)
		}
	}
	if got := state()["observed"]; got != 0 {
		t.Errorf("it observes %d things before it is asked for anything", got)
	}
	idle("before")
	inWorld[any](b, "await read()")
	idle("after a read")
	if got := inWorld[int](b,
		"view.watch(true); view.watch(true); await settle(); await pass(1000); return counts.told"); got != 1 {
		t.Errorf("what has changed since the last read was told %d times", got)
	}
	inWorld[any](b, "counts.told = 0")
	run[any](b.tab, `p.textContent = "watched"`)
	if got := inWorld[int](b, "await pass(1000); return counts.told"); got != 1 {
		t.Errorf("told %d times, want once", got)
	}
	inWorld[any](b,
		"globalThis.other = shownPage.view(() => {}); other.watch(true); view.watch(false)")
	run[any](b.tab, `p.textContent = "other"`)
	if got := inWorld[int](b, "await pass(1000); return counts.told"); got != 1 {
		t.Errorf("told %d times after the end", got)
	}
	inWorld[any](b, "other.watch(false); view.watch(false); await pass(100_000)")
	idle("after the last watch")
	inWorld[any](b, "view.watch(true); await settle(); shownPage.stop(); await pass(1000)")
	idle("after the stop")
}

// A document that comes back from the back/forward cache is not watched until somebody watches it
// again.
func TestShownComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t, page{also: map[string]string{"/page": `<body><p id=p>0</p>`, "/away": "away"}})
	b := &shownTab{tab: open(t, noFlag, s)}
	b.navigate(s.URL + "/page")
	b.enter()
	b.watches()
	b.navigate(s.URL + "/away")
	b.must(b.is.Back(b.ctx))
	testkit.Eventually(t, "the page is back, from the back/forward cache", func() bool {
		there, err := try[bool](b.tab, `return location.pathname === "/page"`)
		return err == nil && there
	})
	run[any](b.tab, `p.textContent = "other"`)
	if got := inWorld[int](b, "counts.told = 0; await pass(20_000); return counts.told"); got != 0 {
		t.Errorf("nobody watches any more, and it is told %d times", got)
	}
	if got := inWorld[int](b,
		"view.watch(true); await settle(); await pass(1000); return counts.told"); got > 1 {
		t.Errorf("watched again it was told %d times", got)
	}
	if got := b.told(`p.textContent = "another"`); got != 1 {
		t.Errorf("a change was told %d times", got)
	}
}

// No change is lost between a read and a watch, in any order.
func TestShownBetweenReadAndWatch(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p id=p>0</p>`, nil)
	run[any](b.tab,
		`let i = 0; addEventListener("change-it", () => { p.textContent = "state " + ["a", "b", "c", "d", "e", "f"][i++] })`)
	for _, c := range []struct {
		script string
		told   int
	}{
		{`await read(); change(); view.watch(true); await pass(1000)`, 1},
		{`await read(); view.watch(true); await pass(1000)`, 0},
		{`view.watch(true); await read(); change(); await pass(1000)`, 1},
		{`await read(); view.watch(true); change(); await pass(1000)`, 1},
		{`await read({ links: true }); view.watch(true); await pass(1000)`, 0},
	} {
		got := inWorld[int](b, `const change = () => dispatchEvent(new Event("change-it"));
			view.watch(false); await pass(40_000); counts.told = 0; `+c.script+`; return counts.told`)
		if got != c.told {
			t.Errorf("%s: told %d times, want %d", c.script, got, c.told)
		}
	}
}

// At most two changes a second are told, and the last state always is.
func TestShownPace(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<ul id=list></ul>`, nil)
	run[any](b.tab,
		`let i = 0; addEventListener("tick", () => { list.insertAdjacentHTML("beforeend", "<li>" + i++) })`)
	got := inWorld[[]int](b, `
		view.watch(true); await settle(); await pass(1000);
		for (let i = 0; i < 200; i++) { dispatchEvent(new Event("tick")); clock.time += 50; await new Promise((done) => queueMicrotask(done)); await pass(0); }
		const burst = counts.told;
		dispatchEvent(new Event("tick"));
		await pass(1000);
		return [burst, counts.told]`)
	if got[0] < 15 || got[0] > 21 || got[1] < got[0] || got[1] > got[0]+1 {
		t.Errorf("200 changes in 10 s were told %d times, and then %d times", got[0], got[1])
	}
}

// A part is told of by itself, and an agent that reads a part that is not there is told so.
func TestShownPart(t *testing.T) {
	t.Parallel()
	b := openShown(t,
		`<main style="background:#111;color:#eee"><p id=a>One</p></main><p id=b>Two</p>`, nil)
	inWorld[any](b, `
		globalThis.told = 0;
		globalThis.part = shownPage.view(() => told++, { find: [{ css: "#a" }] });
		part.watch(true); await settle(); await pass(1000)`)
	if got := inWorld[string](b, "return part.read()"); got != "One\n" {
		t.Errorf("the part is %q", got)
	}
	for i, c := range []struct {
		script string
		told   int
	}{{`b.textContent = "Other"`, 0}, {`a.textContent = "Changed"`, 1},
		{`globalThis.gone = a; a.remove()`, 1},
		{`document.body.append(gone)`, 1}} {
		run[any](b.tab, c.script)
		if got := inWorld[int](b, "told = 0; await pass(1000); return told"); got != c.told {
			t.Errorf("%s: told %d times, want %d", c.script, got, c.told)
		}
		if i == 2 {
			if got := inWorld[string](b, "return (await part.read()) ?? 'gone'"); got != "gone" {
				t.Errorf("reading it gave %q", got)
			}
		}
	}
}

// Whatever changes, the pieces that are kept make the same text as pieces that are all made anew.
func TestShownPiecesAreTrue(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/shown/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var markup strings.Builder
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".html") && f.Name != "ignored.html" {
			markup.WriteString("<section>" + string(f.Data) + "</section>")
		}
	}
	steps, err := os.ReadFile("testdata/shown/steps.js")
	if err != nil {
		t.Fatal(err)
	}
	for seed := 1; seed <= 2; seed++ {
		b := openShown(t, markup.String(), nil)
		run[any](b.tab, fmt.Sprintf("globalThis.seed = %d; %s", seed, steps))
		inWorld[any](b, "view.watch(true); await settle()")
		for range 100 {
			got := inWorld[[]string](b, `
				dispatchEvent(new Event("step"));
				await new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); });
				return [await read(), await pagewireShown(document, clock).view(() => {}).read()]`)
			if got[0] != got[1] {
				t.Fatalf("after %s, with seed %d:\n%s\nall made anew:\n%s",
					run[string](b.tab, "return last"), seed, got[0], got[1])
			}
		}
	}
}

// What an attribute or a place shows or hides is told, whatever the attribute is called.
func TestShownFollowsAnyAttribute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, script, shows string }{
		{"data-state, of Radix", `<style>[data-state=closed] p{display:none}</style><div id=d data-state=closed><p>PANEL</p></div>`, `d.dataset.state = "open"`, "PANEL"},
		{"aria-hidden", `<style>[aria-hidden=true]{display:none}</style><div id=d aria-hidden=true><p>PANEL</p></div>`, `d.ariaHidden = "false"`, "PANEL"},
		{"aria-expanded and what is beside it", `<style>[aria-expanded=false] + p{display:none}</style><button id=d aria-expanded=false>Menu</button><p>PANEL</p>`, `d.ariaExpanded = "true"`, "PANEL"},
		{"a drawer by left", `<div id=d style="position:fixed;left:-250px;width:200px">PANEL</div>`, `d.style.left = "0px"`, "PANEL"},
		{"a drawer by transform", `<div id=d style="position:fixed;top:0;left:0;width:200px;transform:translateX(-100%)">PANEL</div>`, `d.style.transform = "translateX(0)"`, "PANEL"},
		{"a drawer that leaves", `<div id=d style="position:fixed;top:0;left:0;width:200px;transform:translateX(0)">PANEL</div>`, `d.style.transform = "translateX(-100%)"`, "hidden text"},
		{"a drawer by an attribute of the page's own", `<style>[data-menu=shut] p{display:none}</style><div id=d data-menu=shut><p>PANEL</p></div>`, `d.dataset.menu = "wide"`, "PANEL"},
		{"a form that is disabled as a whole", `<fieldset id=d><button>PANEL</button></fieldset>`, `d.disabled = true`, "[PANEL (disabled)]"},
	} {
		b := openShown(t, c.html, nil)
		b.watches()
		inWorld[any](b, "await pass(31_000); counts.told = 0")
		run[any](b.tab, c.script)
		wait := "1000"
		if strings.Contains(c.name, "drawer") {
			wait = "11_000" // the next whole look
		}
		got := inWorld[string](b, "await settle(); await pass("+wait+"); return lines()")
		told := inWorld[int](b, "await pass(1000); return counts.told")
		if told == 0 || !strings.Contains(got, c.shows) {
			t.Errorf("%s: told %d times; then an agent reads %q", c.name, told, got)
		}
	}
}

// A text that grows word by word, as answers of models and logs do, is told as it grows.
func TestShownGrowingTexts(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p id=c></p>`, nil)
	run[any](b.tab, `globalThis.i = 0; addEventListener("tick", () => { c.append("word" + String.fromCharCode(97 + i % 26) + " "); i++ })`)
	got := inWorld[[]int](b, `
		view.watch(true); await settle(); await pass(1000);
		const all = [];
		for (let i = 0; i < 60; i++) { dispatchEvent(new Event("tick")); await pass(500); if (i % 20 === 19) { all.push(counts.told); counts.told = 0; } }
		await pass(1000);
		all.push((await lines()).length);
		return all`)
	if got[0] < 15 || got[1] < 15 || got[2] < 15 {
		t.Errorf("of 20 words in 10 s each: told %v times", got)
	}
}
