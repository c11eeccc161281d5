package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// reads makes a view of a part by a rule in JSON, and returns what it reads as now; "gone" if it is not there.
func (b *shownTab) reads(rule string) string {
	b.t.Helper()
	return inWorld[string](b, fmt.Sprintf(`return (await shownPage.view(() => {}, %s).read()) ?? "gone"`, rule))
}

// A part is found again after the page has changed, by the best of its anchors that finds one element alone. What none
// finds is gone, and nothing else is taken for it.
func TestShownAnchors(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	const table = `<table><caption>Jobs</caption><tr><th>Job<th>Status<tr><td>lint<td>Succeeded<tr><td>browser <b>firefox</b><td>Failed</table>`
	const other = `<h2>Other</h2><table><tr><th>Job<th>Status<tr><td>lint<td>Other</table>`
	for _, c := range []struct{ html, find, script, before, after string }{
		{`<p id=a>One<p>Two`, `{ css: "#a" }`, `document.body.prepend(document.body.lastChild)`, "One", "One"},
		{`<p id=a>One<p>Two`, `{ css: "#a" }`, `a.id = "b"`, "One", "gone"},
		{`<p id=a>One`, `{ css: "#a" }`, `a.hidden = true`, "One", "gone"},
		{`<p class=a hidden>Hidden<p class=a>One`, `{ css: ".a" }`, `document.body.firstChild.hidden = false`, "One", "gone"},
		{`<p class=a data-x>One<p class=a>Two`, `{ css: ".a" }, { css: "[data-x]" }`, `document.body.append(document.body.firstChild)`, "One", "One"},
		{`<form name=documentElement><input name=children><p id=a>One</form>`, `{ css: "#a" }`, ``, "One", "One"},
		{`<section data-resource-private><p id=a>One</section>`, `{ css: "#a" }`, `a.parentNode.removeAttribute("data-resource-private")`, "", "One"},
		{`<div style="clip-path: inset(100%)"><p id=a>One</div>`, `{ css: "#a" }`, `a.parentNode.style.clipPath = ""`, "", "One"},
		{`<div style="opacity: 0.01"><p id=a>One</div>`, `{ css: "#a" }`, `a.parentNode.style.opacity = ""`, "(hidden text of 3 characters is left out)", "One"},
		// Under a heading.
		{table + other, `{ css: "table", under: "Jobs" }`, `document.body.prepend(document.body.lastChild)`, "Jobs", "Jobs"},
		{table + other, `{ css: "table", under: "Other" }`, `document.querySelector("h2").textContent = "Old"`, "| Job | Status |\n|---|---|\n| lint | Other |", "gone"},
		{`<h2>A</h2><p>One<h2>B</h2><p>Two`, `{ css: "p", under: "B" }`, `document.body.prepend(...[...document.body.children].slice(2))`, "Two", "Two"},
		{`<h2>A</h2><p>One<h2>B</h2><p>Two`, `{ css: "p", under: "B" }`, `document.body.insertAdjacentHTML("beforeend", "<p>Three")`, "Two", "gone"},
		{`<div><h2>A</h2><p>One</div><div><h2>B</h2><p>Two</div>`, `{ css: "div", under: "B" }`, `document.body.firstChild.remove()`, "## B\nTwo", "## B\nTwo"},
		// A row, by its own words, and a cell of it.
		{table, `{ row: "lint" }`, `document.querySelector("tbody").append(document.querySelectorAll("tr")[1])`, "| lint | Succeeded |", "| lint | Succeeded |"},
		{table, `{ row: "lint", column: "Status" }`, `document.querySelectorAll("td")[1].textContent = "Failed"`, "Succeeded", "Failed"},
		{table, `{ row: "lint", column: "Status" }`, `for (const row of document.querySelectorAll("tr")) row.prepend(row.lastChild)`, "Succeeded", "Succeeded"},
		{table, `{ row: "browser firefox", column: "Status" }`, `document.querySelectorAll("tr")[2].remove()`, "Failed", "gone"},
		{table, `{ row: "firefox" }`, `document.querySelector("b").textContent = "webkit"`, "| browser firefox | Failed |", "gone"},
		{table, `{ row: "lint", column: "Status" }`, `document.querySelectorAll("th")[1].textContent = "State"`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`, `document.querySelectorAll("th")[0].textContent = "Status"`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`, `document.querySelectorAll("td")[2].colSpan = 2`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`, `document.body.insertAdjacentHTML("beforeend", document.querySelector("table").outerHTML)`, "Succeeded", "gone"},
		{table + other, `{ row: "lint", under: "Other", column: "Status" }`, `document.body.prepend(document.body.lastChild)`, "Other", "gone"},
		{table + other, `{ row: "lin", column: "Status" }`, ``, "gone", "gone"},
		{`<ul><li>A <i>1</i><ul><li>B <i>2</i></ul></ul>`, `{ row: "2" }`, `document.querySelectorAll("i")[0].textContent = "3"`, "- B 2", "- B 2"},
		{`<div role=grid><div role=row><b role=columnheader>X</b><b role=columnheader>Y</b></div><div role=row><b role=cell>a</b><b role=cell>1</b></div></div>`,
			`{ row: "a", column: "Y" }`, `document.querySelectorAll("[role=cell]")[1].textContent = "2"`, "1", "2"},
		// A place counts alone, and not where something better is known.
		{`<main><p>One<p>Two</main>`, `{ place: "main > p:nth-of-type(2)" }`, `document.querySelector("p").textContent = "Other"`, "Two", "Two"},
		{`<main><p>One<p id=a>Two</main>`, `{ css: "#a" }, { place: "main > p:nth-of-type(2)" }`, `a.id = ""`, "Two", "gone"},
	} {
		b.shows(c.html)
		rule := `{ find: [` + c.find + `] }`
		before := strings.TrimSpace(b.reads(rule))
		if c.before == "Jobs" {
			before, _, _ = strings.Cut(before, "\n")
		}
		if before != c.before {
			t.Errorf("%s in %s is %q, want %q", c.find, c.html, before, c.before)
		}
		run[any](b.tab, c.script)
		after := strings.TrimSpace(b.reads(rule))
		if c.after == "Jobs" {
			after, _, _ = strings.Cut(after, "\n")
		}
		if after != c.after {
			t.Errorf("after %s, %s is %q, want %q", c.script, c.find, after, c.after)
		}
	}
	for _, rule := range []string{`{ find: [{ css: "#" }] }`, `{ find: [{ place: "p >" }] }`, `{ find: [{ css: "p" }], except: [":x("] }`} {
		if got := inWorld[string](b, `try { shownPage.view(() => {}, `+rule+`) } catch (error) { return error.name }`); got != "SyntaxError" {
			t.Errorf("%s: %q", rule, got)
		}
	}
}

// A table is read as rows and a form as values, without what the rule excludes, what no person sees, and secrets.
func TestShownParts(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	part := func(as string, except ...string) string {
		return fmt.Sprintf(`{ find: [{ css: "#a" }], as: %q, except: %s }`, as, strings.ReplaceAll(fmt.Sprintf("%q", except), `" "`, `", "`))
	}
	for _, c := range []struct{ html, rule, want string }{
		{`<table id=a><caption>Jobs</caption><tr><th>Job<th>Status<tr><td>lint<td>a | b<tr><td>types<td></table>`, part("table"),
			`[{"Job":"lint","Status":"a | b"},{"Job":"types","Status":""}]`},
		{`<table id=a><thead><tr><th>X<th>X<th></thead><tr><td>1<td>2<td>3</table>`, part("table"), `[{"3":"3","X":"1","X 2":"2"}]`},
		{`<table id=a><tr><td>1<td>2<tr><td>3<td>__proto__</table>`, part("table"), `[["1","2"],["3","__proto__"]]`},
		{`<table id=a><tr><th>__proto__<th>X<tr><td>1<td>2</table>`, part("table"), `[{"__proto__":"1","X":"2"}]`},
		{`<table id=a><tr><th>X<th class=out>Y<tr><td>1<td class=out>2</table>`, part("table", ".out"), `[{"2":"","X":"1"}]`},
		{`<table id=a><tr><th>X<th>Y<tr><td>1<td>2<tr class=out><td>3<td>4<tr hidden><td>5<td>6</table>`, part("table", ".out", "i"), `[{"X":"1","Y":"2"}]`},
		{`<table id=a><tr><th>X<th>Y<tr><td>1<td><b style="color: white">unseen</b></table>`, part("table"), `[{"X":"1","Y":""}]`},
		{`<ul id=a><li>One<li>Two</ul>`, part("table"), `["- One","- Two"]`},
		{`<p id=a>`, part("table"), `[]`},
		{`<p id=a>One <b class=out>Two</b> <i>Three</i>`, part("text", ".out"), "One Three\n"},
		{`<div class=out><p id=a>One</div>`, part("text", ".out"), ""},
		{`<form id=a><label>Name <input value=Ada></label><input type=password name=pw aria-label=Password value=hunter2><input type=hidden name=h value=1>
			<label><input type=checkbox checked> Mail</label><label><input type=radio name=r checked> Small</label><label><input type=radio name=r> Large</label>
			<select aria-label=Size><option>1<option selected>2</select><textarea aria-label=Note>a
b</textarea><input aria-label=Tag value=x><input aria-label=Tag value=y><input aria-label=Gone value=z style="display: none">
			<input aria-label=Out class=out value=1><div class=out><input aria-label=Within value=1></div><button>Send</button></form>`, part("form", ".out"),
			`{"Name":"Ada","Password":"(secret)","Mail":true,"Small":true,"Large":false,"Size":"2","Note":"a\nb","Tag":["x","y"]}`},
		{`<form id=a><section data-resource-private><input aria-label=Private value=1></section></form>`, part("form"), `{}`},
		{`<div style="clip-path: inset(100%)"><form id=a><input aria-label=Unseen value=1></form></div>`, part("form"), `{}`},
	} {
		b.shows(c.html)
		if got := b.reads(c.rule); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.rule, c.html, got, c.want)
		}
	}
	// Values are followed, and what is excluded is not.
	b.shows(`<form id=a><input id=in aria-label=Name value=1><p id=out class=out>x</form>`)
	inWorld[any](b, `globalThis.told = 0; globalThis.form = shownPage.view(() => told++, `+part("form", ".out")+`);
		form.watch(true); await settle(); await pass(1000)`)
	for script, want := range map[string]int{`document.querySelector(".out").textContent = "y"`: 0,
		`document.querySelector("input").value = "2"; document.querySelector("input").dispatchEvent(new Event("input"))`: 1} {
		inWorld[any](b, "told = 0")
		run[any](b.tab, script)
		if got := inWorld[int](b, "await pass(1000); return told"); got != want {
			t.Errorf("%s: told %d times, want %d", script, got, want)
		}
	}
	if got := inWorld[string](b, "return form.read()"); got != `{"Name":"2"}` {
		t.Errorf("the form is %s", got)
	}
}

// pickPages are pages of six kinds. Each element with data-t is picked, and its text is that of no other.
var pickPages = []string{
	`<h1>Run</h1><table class=c1><caption>Jobs</caption><thead><tr><th>Job<th>Status<th>Took</thead><tbody>` + pickRows + `</tbody></table>`,
	`<main><h2>Inbox</h2><ul class=x9>` + pickItems + `</ul></main>`,
	`<main><section class=card><h3>Revenue</h3><p class=v data-t>$ 12,931</p></section><section class=card data-t><h3>Orders</h3><p class=v>381</p></section>
		<section class=card><h3>Refunds</h3><p class=v data-t>17 of them</p><p>today</p></section><div id=total data-t>All: 4,411</div><div data-testid=rate data-t>Rate 3.7 %</div></main>`,
	`<form id=order-form data-t><label>Name <input name=name value=Ada></label><fieldset data-t><legend>Address</legend><input aria-label=Street value=Elm></fieldset></form>
		<form data-t aria-label=Search><input name=q value=shoes></form><p role=status aria-label=Result data-t>Nine results</p>`,
	`<article><h2>Intro</h2><p data-t>First words.</p><h2>Methods</h2><p data-t>Second words.</p><table data-t><tr><td>a<td>m1</table><h2>Results</h2><p data-t>Third words.</p>
		<table data-t><tr><td>b<td>r1</table><h2>End</h2><div data-t>Last words.</div></article>`,
	`<div role=grid aria-label=Hosts data-t><div role=row><b role=columnheader>Host</b><b role=columnheader>Load</b></div>
		<div role=row data-t><b role=cell>alpha</b><b role=cell data-t>0.71</b></div><div role=row><b role=cell>beta</b><b role=cell data-t>0.92</b></div>
		<div role=row data-t><b role=cell>gamma</b><b role=cell data-t>0.13</b></div></div>`,
}

var pickRows, pickItems = func() (rows, items string) {
	for i, name := range strings.Fields("lint types unit native docs size demo fuzz") {
		rows += fmt.Sprintf("<tr data-t><td>%s<td data-t>state of %s<td data-t>%dm", name, name, i+3)
	}
	for i, name := range strings.Fields("Ada Grace Edsger Barbara Donald Tony") {
		items += fmt.Sprintf(`<li data-t id=m%d8121><a href=/%d>%s wrote</a> <i>%d:15</i>`, i, i, name, i+1)
	}
	return rows, items
}()

// What a person has picked is found again after changes of eight kinds, and in their place nothing else is taken for it.
func TestShownPicks(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	changes := map[string]string{
		"the same again": `document.body.innerHTML = document.body.innerHTML`,
		"a wrapper":      `const d = document.createElement("div"); d.append(...document.body.childNodes); document.body.append(d)`,
		"a banner":       `document.body.insertAdjacentHTML("afterbegin", "<div class=banner><p>News</p><p>More news</p></div>")`,
		"another order":  `for (const of of document.querySelectorAll("tbody, ul")) of.append(...[...of.children].reverse())`,
		"other classes":  `for (const e of document.querySelectorAll("[class]")) e.className = "k" + e.className.length`,
		"other numbers":  `for (const e of document.querySelectorAll("i, td, .v")) if (!e.children.length) e.textContent = e.textContent.replace(/\d/g, (d) => (d + 1) % 10)`,
		"one more before": `for (const e of document.querySelectorAll("tbody, ul, main, article")) { const c = e.firstElementChild.cloneNode(true); c.removeAttribute("id"); c.removeAttribute("data-t");
			for (const x of [c, ...c.querySelectorAll("*")]) { x.removeAttribute("data-t"); if (!x.children.length) x.textContent = "New thing"; } e.prepend(c) }`,
		"it has gone": `document.querySelector("[data-at]").remove()`,
	}
	all, wrong := 0, []string{}
	found := 0
	for _, html := range pickPages {
		b.shows(html)
		for i := range run[int](b.tab, `return document.querySelectorAll("[data-t]").length`) {
			for name, change := range changes {
				b.shows(html)
				run[any](b.tab, fmt.Sprintf(`document.querySelectorAll("[data-t]")[%d].setAttribute("data-at", "")`, i))
				rule := inWorld[any](b, `globalThis.rule = { ...shownPage.pick(document.querySelector("[data-at]")), as: "text" }; return rule`)
				run[any](b.tab, change)
				got := inWorld[[]string](b, `const read = async (find) => (await shownPage.view(() => {}, { find }).read()) ?? "gone";
					return [await read(rule.find), await read([{ css: "[data-at]" }])]`)
				all++
				switch {
				case got[0] == got[1]:
					found++
				case got[0] != "gone":
					wrong = append(wrong, fmt.Sprintf("after %s, by %v: %q for %q", name, rule, got[0], got[1]))
				}
			}
		}
	}
	t.Logf("of %d, %d are right and %d wrong", all, found, len(wrong))
	if all < 300 || found*100 < all*90 || len(wrong)*100 > all*2 {
		t.Errorf("of %d, %d are right, and these wrong:\n%s", all, found, strings.Join(wrong, "\n"))
	}
}
