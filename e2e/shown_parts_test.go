package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// reads makes a view of a part by a rule in JSON, and returns what it reads as now; "gone" if it is
// not there.
func (b *shownTab) reads(rule string) string {
	b.t.Helper()
	return inWorld[string](b,
		fmt.Sprintf(`return (await shownPage.view(() => {}, %s).read()) ?? "gone"`, rule))
}

// picker is a script with the picker and what finds parts again.
func (b *shownTab) picker() (script string) {
	for name, file := range map[string]string{"anchors": "part.ts", "picker": "pick.ts"} {
		text, err := bundled("../js/shown/"+file, "../js/node_modules",
			api.BuildOptions{Format: api.FormatIIFE, GlobalName: name})
		b.must(err)
		script += string(text)
	}
	return script
}

// A part is found again after the page has changed, by the best of its anchors that finds one
// element alone. What none finds is gone, and nothing else is taken for it.
func TestShownAnchors(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	const table = `<table><caption>Jobs</caption><tr><th>Job<th>Status<tr><td>lint<td>Succeeded<tr><td>browser <b>firefox</b><td>Failed</table>`
	const other = `<h2>Other</h2><table><tr><th>Job<th>Status<tr><td>lint<td>Other</table>`
	for _, c := range []struct{ html, find, script, before, after string }{
		{`<p id=a>One<p>Two`, `{ css: "#a" }`, `document.body.prepend(document.body.lastChild)`,
			"One", "One"},
		{`<p id=a>One<p>Two`, `{ css: "#a" }`, `a.id = "b"`, "One", "gone"},
		{`<p id=a>One`, `{ css: "#a" }`, `a.hidden = true`, "One", "gone"},
		{`<p class=a hidden>Hidden<p class=a>One`, `{ css: ".a" }`,
			`document.body.firstChild.hidden = false`, "One", "gone"},
		{`<p class=a data-x>One<p class=a>Two`, `{ css: ".a" }, { css: "[data-x]" }`,
			`document.body.append(document.body.firstChild)`, "One", "One"},
		{`<form name=documentElement><input name=children><p id=a>One</form>`, `{ css: "#a" }`, ``,
			"One", "One"},
		{`<section data-resource-private><p id=a>One</section>`, `{ css: "#a" }`,
			`a.parentNode.removeAttribute("data-resource-private")`, "", "One"},
		{`<div style="clip-path: inset(100%)"><p id=a>One</div>`, `{ css: "#a" }`,
			`a.parentNode.style.clipPath = ""`, "", "One"},
		{`<div style="opacity: 0.01"><p id=a>One</div>`, `{ css: "#a" }`,
			`a.parentNode.style.opacity = ""`, "(hidden text of 3 characters is left out)", "One"},
		// Under a heading.
		{table + other, `{ css: "table", under: "Jobs" }`,
			`document.body.prepend(document.body.lastChild)`, "Jobs", "Jobs"},
		{table + other, `{ css: "table", under: "Other" }`,
			`document.querySelector("h2").textContent = "Old"`,
			"| Job | Status |\n|---|---|\n| lint | Other |", "gone"},
		{`<h2>A</h2><p>One<h2>B</h2><p>Two`, `{ css: "p", under: "B" }`,
			`document.body.prepend(...[...document.body.children].slice(2))`, "Two", "Two"},
		{`<h2>A</h2><p>One<h2>B</h2><p>Two`, `{ css: "p", under: "B" }`,
			`document.body.insertAdjacentHTML("beforeend", "<p>Three")`, "Two", "gone"},
		{`<div><h2>A</h2><p>One</div><div><h2>B</h2><p>Two</div>`, `{ css: "div", under: "B" }`,
			`document.body.firstChild.remove()`, "## B\nTwo", "## B\nTwo"},
		// A row, by its own words, and a cell of it.
		{table, `{ row: "lint" }`,
			`document.querySelector("tbody").append(document.querySelectorAll("tr")[1])`,
			"| lint | Succeeded |", "| lint | Succeeded |"},
		{table, `{ row: "lint", column: "Status" }`,
			`document.querySelectorAll("td")[1].textContent = "Failed"`, "Succeeded", "Failed"},
		{table, `{ row: "lint", column: "Status" }`,
			`for (const row of document.querySelectorAll("tr")) row.prepend(row.lastChild)`,
			"Succeeded", "Succeeded"},
		{table, `{ row: "browser firefox", column: "Status" }`,
			`document.querySelectorAll("tr")[2].remove()`, "Failed", "gone"},
		{table, `{ row: "firefox" }`, `document.querySelector("b").textContent = "webkit"`,
			"| browser firefox | Failed |", "gone"},
		{table, `{ row: "lint", column: "Status" }`,
			`document.querySelectorAll("th")[1].textContent = "State"`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`,
			`document.querySelectorAll("th")[0].textContent = "Status"`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`,
			`document.querySelectorAll("td")[2].colSpan = 2`, "Succeeded", "gone"},
		{table, `{ row: "lint", column: "Status" }`,
			`document.body.insertAdjacentHTML("beforeend", document.querySelector("table").outerHTML)`, "Succeeded", "gone"},
		{table + other, `{ row: "lint", under: "Other", column: "Status" }`,
			`document.body.prepend(document.body.lastChild)`, "Other", "gone"},
		{table + other, `{ row: "lin", column: "Status" }`, ``, "gone", "gone"},
		{`<ul><li>A <i>1</i><ul><li>B <i>2</i></ul></ul>`, `{ row: "2" }`,
			`document.querySelectorAll("i")[0].textContent = "3"`, "- B 2", "- B 2"},
		{`<div role=grid><div role=row><b role=columnheader>X</b><b role=columnheader>Y</b></div><div role=row><b role=cell>a</b><b role=cell>1</b></div></div>`,
			`{ row: "a", column: "Y" }`,
			`document.querySelectorAll("[role=cell]")[1].textContent = "2"`, "1", "2"},
		// A place counts alone, and not where something better is known.
		{`<main><p>One<p>Two</main>`, `{ place: "main > p:nth-of-type(2)" }`,
			`document.querySelector("p").textContent = "Other"`, "Two", "Two"},
		{`<main><p>One<p id=a>Two</main>`, `{ css: "#a" }, { place: "main > p:nth-of-type(2)" }`,
			`a.id = ""`, "Two", "gone"},
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
	for _, rule := range []string{`{ find: [{ css: "#" }] }`, `{ find: [{ place: "p >" }] }`,
		`{ find: [{ css: "p" }], except: [":x("] }`} {
		if got := inWorld[string](b, `try { shownPage.view(() => {}, `+rule+
			`) } catch (error) { return error.name }`); got != "SyntaxError" {
			t.Errorf("%s: %q", rule, got)
		}
	}
}

// A table is read as rows and a form as values, without what the rule excludes, what no person
// sees, and secrets.
func TestShownParts(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	part := func(as string, except ...string) string {
		return fmt.Sprintf(`{ find: [{ css: "#a" }], as: %q, except: %s }`, as,
			strings.ReplaceAll(fmt.Sprintf("%q", except), `" "`, `", "`))
	}
	for _, c := range []struct{ html, rule, want string }{
		{`<table id=a><caption>Jobs</caption><tr><th>Job<th>Status<tr><td>lint<td>a | b<tr><td>types<td></table>`, part("table"),
			`[{"Job":"lint","Status":"a | b"},{"Job":"types","Status":""}]`},
		{`<table id=a><thead><tr><th>X<th>X<th></thead><tr><td>1<td>2<td>3</table>`, part("table"),
			`[{"3":"3","X":"1","X 2":"2"}]`},
		{`<table id=a><tr><td>1<td>2<tr><td>3<td>__proto__</table>`, part("table"),
			`[["1","2"],["3","__proto__"]]`},
		{`<table id=a><tr><th>__proto__<th>X<tr><td>1<td>2</table>`, part("table"),
			`[{"__proto__":"1","X":"2"}]`},
		{`<table id=a><tr><th>X<th class=out>Y<tr><td>1<td class=out>2</table>`,
			part("table", ".out"), `[{"2":"","X":"1"}]`},
		{`<table id=a><tr><th>X<th>Y<tr><td>1<td>2<tr class=out><td>3<td>4<tr hidden><td>5<td>6</table>`, part("table", ".out", "i"), `[{"X":"1","Y":"2"}]`},
		{`<table id=a><tr><th>X<th>Y<tr><td>1<td><b style="color: white">unseen</b></table>`,
			part("table"), `[{"X":"1","Y":""}]`},
		{`<table id=a><tr><th>Day<th>Time<th>Talk<tr><td rowspan=2>Mon<td>9<td>Keynote<tr><td>10<td>Go<tr><td>Tue<td>9<td>JS</table>`, part("table"),
			`[{"Day":"Mon","Time":"9","Talk":"Keynote"},{"Day":"Mon","Time":"10","Talk":"Go"},{"Day":"Tue","Time":"9","Talk":"JS"}]`},
		{`<table id=a><tr><th>Day<th>Time<th>Talk<tr><td>Mon<td colspan=2>All day<tr><td>Tue<td>9<td rowspan=0>Go<tr><td>Wed<td>8</table>`, part("table"),
			`[{"Day":"Mon","Time":"All day","Talk":"All day"},{"Day":"Tue","Time":"9","Talk":"Go"},{"Day":"Wed","Time":"8","Talk":"Go"}]`},
		{`<table id=a><thead><tr><th rowspan=2>Name<th colspan=2>Count<tr><th>Now<th>Then</thead><tr><td>Tea<td>1<td>2<tbody><tr><th>Sum<td>3<td>4</table>`, part("table"),
			`[{"Name":"Tea","Now":"1","Then":"2"},{"Name":"Sum","Now":"3","Then":"4"}]`},
		{`<table id=a><tr><th>Day<th>Talk<tr><td>Mon<td>1<br>2<br>3<br>4<br>5<br>6<br>7<br>8<br>9<tr><td>Tue<td><a href=/go>Go</a></table>`, part("table"),
			`[{"Day":"Mon","Talk":"1 2 3 4 5 6 7 8 9"},{"Day":"Tue","Talk":"Go"}]`},
		{`<div id=a role=table><div role=row><b role=columnheader>X</b><b role=columnheader>Y</b></div><div role=row><b role=cell>1</b><b role=cell>2</b></div></div>`, part("table"), `[{"X":"1","Y":"2"}]`},
		// A table for the layout, and one in a row of data.
		{`<table id=a><tr><td>Menu<td><table><tr><th>X<th>Y` + strings.Repeat("<tr><td>1<td>2", 9) + `</table></table>`, part("table"),
			`[` + strings.Repeat(`{"X":"1","Y":"2"},`, 8) + `{"X":"1","Y":"2"}]`},
		{`<table id=a><tr><th>N<th>T<tr><td>name<td><p>1<p>2<p>3<p>4<p>5<p>6<p>7<p>8<p>9<table><tr><td>q<td>r</table><tr><td>b<td>c</table>`, part("table"),
			`[{"N":"name","T":"1 2 3 4 5 6 7 8 9 | q | r |"},{"N":"b","T":"c"}]`},
		// Headings of groups, headers alone, filters, and rows that nobody sees.
		{`<table id=a><tr><th>Name<th>Price<tr><th colspan=2>Fruits<tr><td>Apple<td>1<tbody><tr><th colspan=2 scope=colgroup>Nuts<tr><td>Nut<td>2</table>`, part("table"),
			`[{"Name":"Fruits","Price":"Fruits"},{"Name":"Apple","Price":"1"},{"Name":"Nuts","Price":"Nuts"},{"Name":"Nut","Price":"2"}]`},
		{`<table id=a><tr><th colspan=2>Report<tr><th>A<th>B<tr><th>1<th>2<tfoot><tr><th>3<th>4</table>`, part("table"), `[{"A":"1","B":"2"},{"A":"3","B":"4"}]`},
		{`<table id=a><thead><tr><th>A<th>B<tr><th><input aria-label=fa value=q><th></thead><tr><td>1<td>2</table>`, part("table"), `[{"A":"1","B":"2"}]`},
		{`<table id=a><tr><th>D<th>T<th>K<tr><td rowspan=2>Mon<td>9<td>Key<tr data-resource-private><td>8<td>x<tr><td>Tue<td>9<td>JS<tr><td rowspan=2>Wed<td>1<td>2<tr style="visibility:hidden"><td>7<td>y<tr><td>Thu<td>3<td>4</table>`, part("table"),
			`[{"D":"Mon","T":"9","K":"Key"},{"D":"Tue","T":"9","K":"JS"},{"D":"Wed","T":"1","K":"2"},{"D":"Thu","T":"3","K":"4"}]`},
		{`<table id=a><tr><th colspan=2>X<th>X 2<tr><td>a<td>b<td>c</table>`, part("table"), `[{"X":"a","X 2":"b","X 2 3":"c"}]`},
		{`<table id=a><tr><th>Day<th>Talk<tr><td rowspan=2>Mon<td>9<tr><td>10<tr><td>Tue</table>`, part("table"), `[{"Day":"Mon","Talk":"9"},{"Day":"Mon","Talk":"10"},{"Day":"Tue"}]`},
		{`<table id=a><tr><th>A<th>B<th>C<tr><td rowspan=2><i></i><td><td><tr><td>1<td>2</table>`, part("table"), `[{"A":"","B":"1","C":"2"}]`},
		{`<table id=a><thead><tr><th>A<th>3<tr><th colspan=2>All in EUR<tr><th><input type=checkbox aria-label=All><th><button>Clear</button></thead><tr><td>1<td>2<td>4</table>`, part("table"), `[{"3":"2","4":"4","A":"1"}]`},
		{`<div id=a role=table><div role=row><b role=columnheader>X</b><b role=columnheader>Y</b></div><a href=/x style="display:block"><div role=row><b role=cell>1</b><b role=cell>2</b></div></a></div>`, part("table"), `[{"X":"1","Y":"2"}]`},
		{`<div id=a><table><tr><th>X<th>Y<tr><td>1<td>2</table><table><tr><td>3<td>4</table></div>`, part("table"), `[{"X":"1","Y":"2"},["3","4"]]`},
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
	// What hides the table hides its rows at once.
	for _, script := range []string{`section.setAttribute("data-resource-private", "")`, `section.style.clipPath = "inset(100%)"`,
		`section.setAttribute("role", "img"); section.setAttribute("aria-label", "Chart")`, `section.open = false`} {
		b.shows(`<div id=a><details open id=section><summary>More</summary><table><tr><th>X<th>Y<tr><td>1<td>SECRET</table></details></div>`)
		inWorld[any](b, `globalThis.table = shownPage.view(() => {}, `+part("table")+`); table.watch(true); await settle()`)
		run[any](b.tab, script)
		if got := inWorld[string](b, "return table.read()"); strings.Contains(got, "SECRET") {
			t.Errorf("after %s: %s", script, got)
		}
	}
	b.shows(`<div id=a><iframe id=inner></iframe></div>`)
	run[any](b.tab, `inner.contentDocument.body.innerHTML = "<table><tr><th>X<th>Y<tr><td>1<td>2</table>"`)
	if got := b.reads(part("table")); got != `[{"X":"1","Y":"2"}]` {
		t.Errorf("a table in a frame is %s", got)
	}
	// A long table is read on by the place that the last row says.
	for _, c := range []struct{ rows, long int }{{300, 1000}, {600, 1000}, {9_000, 10}} {
		b.shows(`<table id=a><tr><th>Name<th>Text` + strings.Repeat("<tr><td>x<td>"+strings.Repeat("y", c.long), c.rows) + `</table>`)
		count := inWorld[[]int](b, fmt.Sprintf(`const table = shownPage.view(() => {}, %s);
			const seen = []; let from = 0;
			for (let page = 0; page < 9; page++) {
				const rows = JSON.parse(await table.read({ from }));
				const last = rows.at(-1);
				seen.push(rows.filter((row) => row.Name === "x" && row.Text.length === %d).length);
				if (typeof last !== "string") return seen;
				from = +/read from (\d+)/.exec(last)[1];
			}
			return seen`, part("table"), c.long))
		sum := 0
		for _, n := range count {
			sum += n
		}
		if sum != c.rows || len(count) > 4 {
			t.Errorf("%d rows are read as %v", c.rows, count)
		}
	}
	// A row has an end.
	b.shows(`<table id=a><tr>` + strings.Repeat("<td colspan=1000>x", 2000) + `</table>`)
	if got := inWorld[int](b, `return (await shownPage.view(() => {}, `+part("table")+`).read()).length`); got > 20_000 {
		t.Errorf("one row has %d characters", got)
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

// pickScript makes pages with parts that look alike, picks parts of them, changes the pages, and
// counts what is found. `at` is a generator of numbers below 1, by whose seed everything is the
// same each time.
const pickScript = `
	let seed = 50;
	const at = () => { seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0; return seed / 2 ** 32; };
	const below = (n) => Math.floor(at() * n);
	const any = (list) => list[below(list.length)];
	const shuffled = (list) => list.map((x) => [at(), x]).sort(([a], [b]) => a - b).map(([, x]) => x);
	const syllables = "ba de fi go ku la me ni po ru sa te vi wo xu".split(" ");
	const word = () => Array.from({ length: 2 + below(3) }, () => any(syllables)).join("");
	const hash = () => "c" + seed.toString(36).slice(0, 6);
	const states = "Succeeded Failed Waiting Running".split(" ");
	const times = (n, make) => Array.from({ length: n }, make).join("");
	let t = 0;
	// T marks what may be picked. Nothing that finds parts knows of the mark.
	const T = () => "data-t=" + ++t;
	const pages = {
		table: () => "<h2>" + word() + "</h2><table class=" + hash() + " " + T() + "><caption>" + word() + "</caption><thead><tr><th>Job<th>Status<th>Took</thead><tbody>" +
			times(6, () => "<tr " + T() + "><td>" + word() + "<td " + T() + ">" + any(states) + "<td " + T() + ">" + (1 + below(60)) + "m") + "</tbody></table>",
		bare: () => "<table><tbody>" + times(6, () => "<tr " + T() + "><td><input type=checkbox><td>" + any(states) + "<td " + T() + ">" + word() + "<td " + T() + ">" + below(100)) + "</tbody></table>",
		mail: () => "<main><h1>Inbox</h1><ul>" + times(6, () => "<li class=" + hash() + " " + T() + "><b>" + any(["Ada", "Grace"]) + "</b> <a href=/m" + below(99) + ">" + word() + " " + word() +
			"</a> <div " + T() + ">" + below(24) + ":15</div></li>") + "</ul></main>",
		cards: () => "<main>" + times(5, () => "<section class=" + hash() + " " + T() + "><h3>" + word() + "</h3><p class=" + hash() + " " + T() + ">" + below(9999) + "</p><p>today</p></section>") +
			"<div id=" + word() + " " + T() + ">All: " + below(9999) + "</div><div data-testid=" + word() + "><p " + T() + ">Rate: " + below(99) + "</p><p>of all</p></div></main>",
		grid: () => "<div role=grid aria-label=" + word() + " " + T() + "><div role=row><div role=columnheader>Host</div><div role=columnheader>Load</div></div>" +
			times(5, () => "<div role=row class=" + hash() + " " + T() + "><div role=cell>" + word() + "</div><div role=cell " + T() + ">" + at().toFixed(2) + "</div></div>") + "</div>",
		form: () => times(3, () => "<form id=f" + below(9999) + " aria-label=" + word() + " " + T() + "><fieldset " + T() + "><legend>" + word() + "</legend><input name=" + word() + " value=1></fieldset></form>"),
		article: () => "<article>" + times(5, () => "<h2>" + word() + "</h2><p " + T() + ">" + word() + " " + word() + ".</p>") + "</article>",
		divs: () => "<div class=" + hash() + "><div class=" + hash() + ">" + times(4, () => "<div class=" + hash() + " " + T() + "><div>" + word() + "</div><o:p.q style=display:block " + T() + ">" + below(999) + "</o:p.q></div>") + "</div></div>",
	};
	const { body } = document;
	const every = (css) => [...body.querySelectorAll(css)];
	const groups = () => every("tbody, ul, [role=grid], main, article, div > div").filter((e) => e.children.length > 2);
	const alone = (e) => !e.querySelector("[data-at]") && !e.matches("[data-at]");
	const changes = {
		"made again": () => { body.innerHTML = body.innerHTML; },
		"wrapped": () => { for (const e of [...body.children]) { const d = document.createElement("div"); e.replaceWith(d); d.append(e); } },
		"each wrapped": () => { for (const e of every("section, form, main > ul, .c > div")) { const d = document.createElement("div"); e.replaceWith(d); d.append(e); } },
		"a banner": () => body.insertAdjacentHTML("afterbegin", "<div><p>" + word() + "</p><p>" + word() + "</p></div>"),
		"sorted": () => { for (const e of every("tbody, ul")) e.append(...shuffled([...e.children])); },
		"rows moved": () => { for (const e of every("[role=grid]")) e.append(...shuffled([...e.children].slice(1))); },
		"other classes and ids": () => { for (const e of every("[class]")) e.className = hash() + below(99); for (const e of every("[id^=f]")) e.id = "f" + below(9999); },
		"other numbers": () => { for (const e of every("*")) if (!e.children.length && /\d/.test(e.textContent)) e.textContent = e.textContent.replace(/\d/g, () => below(10)); },
		"other states": () => { for (const e of every("td")) if (states.includes(e.textContent)) e.textContent = any(states); },
		"one more": () => { for (const e of groups()) {
			const model = any([...e.children]), copy = model.cloneNode(true);
			for (const x of [copy, ...copy.querySelectorAll("*")]) { for (const name of ["id", "data-t", "data-at", "data-testid", "aria-label"]) x.removeAttribute(name);
				for (const node of x.childNodes) if (node.nodeType === 3 && /[a-z]{4}/.test(node.data) && !states.includes(node.data)) node.data = word(); }
			e.insertBefore(copy, any([...e.children]));
		} },
		"siblings gone": () => { for (const e of groups()) for (const child of shuffled([...e.children]).slice(2)) if (alone(child) && !/^H/.test(child.tagName) && at() < 0.5) child.remove(); },
		"a column more": () => { for (const row of every("tr")) row.insertAdjacentHTML("afterbegin", row.firstElementChild?.tagName === "TH" ? "<th>" + (t = t) + "New" : "<td>" + any(states)); },
		"it has gone": () => document.querySelector("[data-at]").remove(),
	};
	const count = { all: 0, right: 0, gone: 0, missed: 0, wrong: 0 };
	const lines = [], missed = {};
	const mark = (e) => e && (e.dataset.t ? e.tagName + " " + e.textContent.slice(0, 40) : e.outerHTML.slice(0, 80));
	for (let round = 0; round < 4; round++)
		for (const [kind, page] of Object.entries(pages)) {
			const html = page();
			body.innerHTML = html;
			const marks = every("[data-t]").map((e) => e.dataset.t);
			for (const id of marks)
				for (const first of Object.keys(changes)) {
					if (at() > 0.25 && first !== "it has gone" || at() > 0.5) continue;
					body.innerHTML = html;
					const css = "[data-t='" + id + "']";
					const rule = picker.ruleOf(document, document.querySelector(css));
					document.querySelector(css).setAttribute("data-at", "");
					// Pages change in several ways at once.
					const names = [first, ...shuffled(Object.keys(changes).filter((name) => name !== "it has gone")).slice(0, below(3))];
					for (const name of names) if (name !== "it has gone" || document.querySelector(css)) changes[name]();
					const truth = document.querySelector(css) ?? undefined;
					const found = anchors.elementOf(document, rule);
					count.all++;
					if (found === truth) count[truth ? "right" : "gone"]++;
					else if (!found) { count.missed++; missed[kind] = (missed[kind] ?? 0) + 1; }
					else { count.wrong++; lines.push(kind + " after " + names + ", by " + JSON.stringify(rule.find) + ": " + mark(found) + " for " + mark(truth)); }
				}
		}
	return { ...count, lines, missedIn: JSON.stringify(missed) };`

// What a person has picked is found again after changes of many kinds. In its place nothing else is
// taken for it.
func TestShownPicks(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	got := inWorld[struct {
		All, Right, Gone, Missed, Wrong int
		Lines                           []string
		MissedIn                        string
	}](b, b.picker()+pickScript)
	t.Logf("of %d parts after changes, %d are found, %d that have gone are not, %d are not found though they are there (%s), and %d are wrong",
		got.All, got.Right, got.Gone, got.Missed, got.MissedIn, got.Wrong)
	if there := got.Right + got.Missed; there < 300 || got.Gone < 50 || got.Right*100 < there*85 ||
		got.Wrong*100 > got.All*2 {
		t.Errorf("these are wrong:\n%s", strings.Join(got.Lines, "\n"))
	}
}

// A person picks a part while an agent runs. Nothing is added before the person has seen the rule
// and the text, and said yes. Then the agent has the part, on each page of its kind.
func TestPickedWhileAnAgentRuns(t *testing.T) {
	t.Parallel()
	const html = `<!doctype html><title>Run</title><h2>Jobs</h2><table><tr><th>Job<th>Status<tr><td>lint<td id=s91>Succeeded<tr><td>browser<td id=s92>Failed</table>`
	chromium, url := startChromium(t)
	s := serve(t,
		page{also: map[string]string{"/runs/4821": html,
			"/runs/4822": strings.Replace(html, "Failed", "Waiting", 1)}})
	b, h := openIn(t, chromium, s), newHome(t)
	b.navigate(s.URL + "/runs/4821")
	file, uri := filepath.Join(t.TempDir(), "parts.json"), s.URL+"/.pagewire/parts/browser"
	b.must(os.WriteFile(file, []byte("{}"), 0o600))
	a := h.serve(t, "--chrome", url, "--shown", s.URL, "--parts", file)
	a.Shows(s.URL + "/.pagewire/shown")
	pick := func(answer string) (string, *testkit.Log, error) {
		cmd, log := h.command(t, "pick", "browser", "--parts", file, "--hub", h.hub)
		cmd.Stdin = strings.NewReader(answer)
		var text string
		var failed error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			out, err := cmd.Output()
			text, failed = string(out), err
		}()
		testkit.Eventually(t, "something is picked", func() bool {
			at := run[[]float64](b,
				`const box = s92.getBoundingClientRect(); return [box.left + 5, box.top + 5]`)
			for _, kind := range []input.DispatchMouseEventType{"mouseMoved", "mousePressed",
				"mouseReleased"} {
				b.do(chromedp.MouseEvent(kind, at[0], at[1], chromedp.ButtonLeft,
					chromedp.ClickCount(1)))
			}
			select {
			case <-ended:
				return true
			default:
				return false
			}
		})
		return text, log, failed
	}
	for _, answer := range []string{"n\n", "", "maybe\n"} {
		text, log, err := pick(answer)
		if err == nil || text != "Failed\n" || !log.Has("nothing was added to "+file) {
			t.Errorf("%q: %q, %v: %s", answer, text, err, log)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "{}" || a.Offers(uri) {
		t.Errorf("refused, the file has %s, %v", text, err)
	}
	text, log, err := pick("y\n")
	const rule = `{"path":"/runs/*","find":[{"row":"browser","column":"Status"}],"as":"text"}`
	if err != nil || text != "Failed\n" || !log.Has(rule) ||
		!log.Has("agents will read these 7 bytes") || !log.Has("agents have it now") {
		t.Errorf("%q, %v: %s", text, err, log)
	}
	a.Shows(uri, s.URL+"/.pagewire/shown")
	a.Watch(uri)
	a.CheckText(uri, "Failed\n")
	if _, log, err := pick("y\n"); err == nil || !log.Has("has the part") {
		t.Errorf("a second part of the name: %v, %s", err, log)
	}
	run[any](b,
		`document.querySelector("tbody").append(document.querySelectorAll("tr")[1]); s92.textContent = "Running"`)
	a.Learns(uri, "Running\n")
	b.navigate(s.URL + "/runs/4822")
	a.Learns(uri, "Waiting\n")
}

// An id that a framework has counted names another element after a render.
func TestShownPicksByCountedIDs(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	inWorld[any](b, b.picker()+`globalThis.anchors = anchors; globalThis.picker = picker`)
	for _, ids := range [][2]string{{"radix-:ra:", "radix-:rb:"}, {"headlessui-panel-:ri:", "headlessui-panel-:rj:"}, {"_r_a_", "_r_b_"}, {"«ra»", "«rb»"}} {
		b.shows(`<main><div id="` + ids[0] + `"><p>Balance of Ada: a</p></div><div id="` + ids[1] + `"><p>Balance of Bob: b</p></div></main>`)
		rule := inWorld[string](b, `globalThis.rule = picker.ruleOf(document, document.querySelector("main > div")); return JSON.stringify(rule.find)`)
		// One more component is rendered before them: each id moves on by one.
		b.shows(`<main><div id="x">New</div><div id="` + ids[1] + `"><p>Balance of Ada: a</p></div><div id="` + ids[0] + `"><p>Balance of Bob: b</p></div></main>`)
		if got := inWorld[string](b, `return anchors.elementOf(document, rule)?.textContent ?? "gone"`); strings.Contains(got, "Bob") {
			t.Errorf("picked Ada by %s, and found %q", rule, got)
		}
	}
}

// A form has the values of the fields that a person sees.
func TestShownFormsWithUnseenFields(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	b.shows(`<form id=a><div style="position:absolute;left:-9999px"><input name=trap value=T></div><div style="opacity:0"><input name=faint value=F></div><input name=ok value=K></form>`)
	if got, want := b.reads(`{ find: [{ css: "#a" }], as: "form" }`), `{"ok":"K"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
