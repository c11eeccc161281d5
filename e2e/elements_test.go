package e2e

import (
	"strings"
	"testing"
)

// openElements opens a page with one script tag and markup, and prepares the tests' globals, such
// as agent a and the calls of notifyResourceUpdated by path.
func openElements(t *testing.T, m mode, markup string) *tab {
	t.Helper()
	b := open(t, m,
		serve(t, page{tag: `<script type="module" src="/pagewire.elements.js"></script>` + markup}))
	run[any](b, `
		await agent.until(() => globalThis.pagewire?.stats().resources > 0);
		globalThis.a = await agent.connect("modern");
		globalThis.at = (path) => location.origin + path;
		globalThis.$ = (selector) => document.querySelector(selector);
		globalThis.contents = async (path) => { const [{ text, mimeType }] = (await a.client.readResource({ uri: at(path) })).contents; return [text, mimeType]; };
		globalThis.json = async (path) => JSON.parse(await a.read(at(path)));
		globalThis.listed = async () => (await a.client.listResources()).resources.map(({ uri, name }) => uri.slice(location.origin.length) + " " + name);
		const { modelContext } = document, original = modelContext.notifyResourceUpdated;
		globalThis.told = {};
		modelContext.notifyResourceUpdated = (uri) => {
			const path = uri.slice(location.origin.length);
			told[path] = (told[path] ?? 0) + 1;
			return original.call(modelContext, uri);
		};
		/** What has been told when act is done, and observers have had their turn. */
		globalThis.tells = async (act) => { told = {}; await act(); await agent.sleep(0); return told; };
		globalThis.fires = (target, type = "input") => target.dispatchEvent(new Event(type, { bubbles: true }));
	`)
	return b
}

// A person fills in a form, and the agent is notified and reads it. A table and a text are read as
// they are shown.
func TestElements(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			b := openElements(t, m, `
				<form data-resource="/state/order" data-resource-name="Order" data-resource-description="What is ordered">
					<input id=sku name=sku><input type=checkbox id=gift name=gift>
				</form>
				<p data-resource="/state/status" aria-label="Status">Open</p>
				<table data-resource="/state/stock"><caption>Stock</caption>
					<tr><th>Name<th>Count<tr><td>Tea<td>3</table>`)
			b.expectations(`
				expect("listed", await listed(), ["/state/order Order", "/state/status Status", "/state/stock Stock"]);
				expect("the form", await contents("/state/order"), ['{"sku":""}', "application/json"]);
				expect("the text", await contents("/state/status"), ["Open", "text/plain"]);
				expect("the table", await contents("/state/stock"), ['[{"Name":"Tea","Count":"3"}]', "application/json"]);
				await a.subscribe(at("/state/order"), at("/state/status"));
			`)
			b.types("#sku", "tea")
			b.click("#gift")
			b.expectations(`
				await agent.until(() => a.updated.length);
				expect("the form", await json("/state/order"), { sku: "tea", gift: "on" });
				$("p").textContent = "Paid";
				await agent.until(() => a.updated.includes(at("/state/status")));
				expect("the text", await a.read(at("/state/status")), "Paid");
			`)
			b.quiet()
		})
	}
}

// A form's values are those of its submission without the secret values, even if a secret is shown.
func TestElementsForm(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `
		<form id=order data-resource="/order">
			<input name=count type=number value=2><input type=checkbox name=gift>
			<input type=checkbox name=extra value=a checked><input type=checkbox name=extra value=b checked>
			<input type=radio name=size value=s><input type=radio name=size value=l checked>
			<select name=colour><option>red<option selected>blue<option disabled>none</select>
			<select name=tags multiple><option selected>x<option>y</select>
			<textarea name=note>hello</textarea><output name=sum>5</output><input value=nameless>
			<input name=elements value=1><input name=matches value=2><input name=getAttribute value=3>
			<input name=closest value=4><input name=querySelectorAll value=5><input name=__proto__ value=6>
			<fieldset disabled><input name=off value=off></fieldset><datalist><input name=d value=d></datalist>
			<input type=submit name=go value=Go><button name=b value=b>B</button>
			<input type=file name=doc>
			<input type=password id=pw name=pw value=SECRET1><input type=hidden name=csrf value=SECRET2>
			<input name=card autocomplete="section-a billing cc-number" value=SECRET3>
			<input name=code autocomplete=one-time-code value=SECRET4>
			<input name=new autocomplete=new-password value=SECRET5>
			<div data-resource-private><input name=inner value=SECRET6></div>
			<input name=own data-resource-private value=SECRET7>
			<input name=dots style="-webkit-text-security: disc" value=SECRET8>
			<input name=apiKey value=SECRET10><label>PIN <input name=n value=SECRET11></label>
			<label>Code <input name=sent inputmode=numeric value=SECRET12></label><input name=code inputmode=numeric value=SECRET13>
			<label>Country code <input name=countryCode inputmode=numeric value=49></label><input name=coupon id=code value=SPRING>
			<input name=digit maxlength=1 value=S><input name=number value="4111 1111 1111 1111">
			<label><input type=checkbox name=keep checked> Remember my password</label>
			<p id=error></p>
		</form>
		<input form=order name=outside value=far>
		<input type=password data-resource="/password" value=SECRET9>
		<input id=search data-resource="/search" type=search value=x>
		<input id=on data-resource="/on" type=checkbox>
		<select id=several data-resource="/several" multiple><option selected>1<option selected>2</select>
		<div id=rich data-resource="/rich" contenteditable>typed</div>`)
	b.expectations(`
		const files = new DataTransfer();
		files.items.add(new File(["SECRET0"], "a.txt", { type: "text/plain" }));
		$("[type=file]").files = files.files;
		const want = {
			count: "2", extra: ["a", "b"], size: "l", colour: "blue", tags: ["x"], note: "hello", elements: "1", matches: "2",
			getAttribute: "3", closest: "4", querySelectorAll: "5", ["__proto__"]: "6",
			doc: [{ name: "a.txt", size: 7, type: "text/plain" }], countryCode: "49", coupon: "SPRING", keep: "on", outside: "far",
		};
		const form = () => json("/order");
		expect("values", await form(), want);
		expect("secrets", (await a.read(at("/order"))).includes("SECRET"), false);
		expect("fields", [await contents("/search"), await contents("/on"), await contents("/several"), await contents("/rich")],
			[["x", "text/plain"], ["false", "text/plain"], ['["1","2"]', "application/json"], ["typed", "text/plain"]]);
		expect("a password is not offered", (await listed()).filter((line) => line.startsWith("/password")), []);

		// What is told.
		expect("typed", await tells(() => fires($("[name=count]"))), { "/order": 1 });
		expect("typed outside", await tells(() => fires($("[name=outside]"), "change")), { "/order": 1 });
		expect("reset", await tells(() => HTMLFormElement.prototype.reset.call(order)), { "/order": 1 });
		expect("a field of its own", await tells(() => fires($("#search"))), { "/search": 1 });
		expect("contents that one edits", await tells(() => { $("#rich").append("!"); }), { "/rich": 1 });
		expect("a field that comes", await tells(() => order.insertAdjacentHTML("beforeend", "<p><input name=late value=1></p>")), { "/order": 1 });
		expect("and goes", await tells(() => $("[name=late]").remove()), { "/order": 1 });
		expect("an option", await tells(() => $("[name=colour]").append(new Option("green"))), { "/order": 1 });
		expect("a value by its attribute", await tells(() => $("[name=count]").setAttribute("value", "3")), { "/order": 1 });
		expect("disabled", await tells(() => { $("fieldset").disabled = false; }), { "/order": 1 });
		expect("then read", [(await form()).off, (await form()).count], ["off", "3"]);
		expect("a message beside the fields", await tells(() => { $("#error").textContent = "wrong"; }), {});
		expect("a button that is disabled", await tells(() => { $("button").disabled = true; }), {});
		expect("typed where nobody may look", await tells(() => {
			for (const name of ["pw", "csrf", "card", "code", "new", "inner", "own", "dots"]) fires($("[name=" + name + "]"));
			$("[name=csrf]").setAttribute("value", "SECRET");
		}), {});

		// A password stays one: shown by its type, by another field, or by both at once.
		const leaks = async () => (await a.read(at("/order"))).includes("SECRET");
		$("#pw").type = "text";
		expect("shown by its type", await leaks(), false);
		$("#pw").outerHTML = "<input id=pw name=pw value=SECRET>";
		expect("shown by another field", await leaks(), false);
		$("#pw").insertAdjacentHTML("afterend", "<input id=pw2 type=password name=pw2 value=SECRET>");
		await null;
		$("#pw2").outerHTML = "<input name=pw2 value=SECRET>";
		expect("one that came later", await leaks(), false);
		$("#search").type = "password";
		expect("a field that becomes one", await agent.refusal(a.read(at("/search"))).then(([code, , reason]) => [code, reason]), [-32603, "read_failed"]);
		$("#search").type = "text";
		expect("and is shown", (await agent.refusal(a.read(at("/search"))))[0], -32603);
	`)
	if !b.said(
		`data-resource does not offer '/password' to agents: it is a field that no agent may read`) {
		t.Error("the console does not say why the password is not offered")
	}
}

// Parts of an element or of a form that nobody may read are in no list, schema or contents.
func TestElementsPrivateParts(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `
		<table data-resource="/orders"><caption>Orders<span data-resource-private> of SECRET1</span></caption>
			<tr><th>Key<tr><td style="-webkit-text-security: disc">SECRET2</table>
		<table data-resource="/more"><caption data-resource-private>SECRET3</caption><tr><th>Key<tr><td>1</table>
		<p data-resource="/key" style="-webkit-text-security: disc">SECRET4</p>
		<form id=order data-resource="/order" toolname="order" tooldescription="Orders.">
			<div data-resource-private><label for=cups>Cups for SECRET5</label></div><input id=cups name=cups value=2>
			<label for=two data-resource-private>SECRET6</label><input id=two name=two>
			<select name=card><option>none<option value=SECRET7 data-resource-private selected>Visa</select>
		</form>
		<select data-resource="/option"><option>1<option data-resource-private selected>SECRET9</select>
		<select data-resource="/group"><option>1<optgroup data-resource-private><option selected>SECRET9</select>
		<select data-resource="/chosen"><option>1<option selected>2</select>
		<form toolname="mail" tooldescription="Mails." toolautosubmit onsubmit="event.preventDefault()">
			<input name=to required><input type=email name=from data-resource-private value=SECRET9>
			<p data-resource-private><input name=SECRET9 type=email value=SECRET9></p>
			<input name=pin type=url autocomplete=one-time-code value=SECRET9>
			<input name=key type=url style="-webkit-text-security: disc" value=SECRET9>
			<select name=card><option data-resource-private selected>SECRET9</select></form>`)
	b.expectations(`
		const secrets = (value) => JSON.stringify(value).match(/SECRET\d/g) ?? [];
		expect("resources", secrets(await a.client.listResources()), []);
		expect("a name", (await listed()).includes("/orders Orders"), true);
		expect("tools", secrets((await a.client.listTools()).tools), []);
		expect("contents", [await json("/order"), await json("/orders"), await a.read(at("/key"))], [{ cups: "2", two: "" }, [{ Key: "" }], ""]);
		expect("options", [await a.read(at("/option")), await a.read(at("/group")), await a.read(at("/chosen"))], ["", "", "2"]);
		expect("a call", (await a.use("mail", { to: "" })).replace(/to: .*? The/, "to: it is required. The"),
			"error: The form is filled in, and cannot be submitted. to: it is required. The user has to correct a field that no agent may read.");
		document.body.insertAdjacentHTML("beforeend", "<input form=order type=password id=pw name=pw value=SECRET8>");
		await agent.sleep(0);
		$("#pw").type = "text";
		expect("a password outside of its form that a button shows", secrets(await json("/order")), []);
	`)
}

// Named elements hide members of the document, and fields those of their form. The page offers
// everything all the same.
func TestElementsWithNames(t *testing.T) {
	t.Parallel()
	const elements = `<script type="module" src="/pagewire.elements.js"></script><p data-resource="/status">Open</p>
		<form id=f toolname=f tooldescription=f><input name=contains></form>
		<div data-resource="/region">Words <form><button name=innerText>Go</button><input name=childNodes></form></div>`
	for when, names := range map[string]string{"early": "contains documentElement addEventListener featurePolicy baseURI modelContext", "late": "modelContext"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			markup := ""
			for name := range strings.FieldsSeq(names) {
				markup += "<img name=" + name + ">"
			}
			before := ""
			if when == "early" {
				before = markup
			}
			b := open(t, noFlag, serve(t, page{tag: before + elements}))
			b.expectations(`
				await agent.until(() => globalThis.pagewire?.stats().resources === 2);
				const a = await agent.connect("modern");
				expect("read", await a.read(location.origin + "/region"), "Words\nGo");
				document.body.insertAdjacentHTML("beforeend", ` + "`" + markup + "`" + `);
				await a.subscribe(location.origin + "/status");
				document.querySelector("p").textContent = "Paid";
				await agent.until(() => a.updated.includes(location.origin + "/status"));
				f.setAttribute("tooldescription", "g");
				document.body.insertAdjacentHTML("beforeend", "<p data-resource=/new>New</p>");
				await agent.until(() => pagewire.stats().resources === 3);
				for (const image of document.querySelectorAll("img")) image.remove();
				expect("the context", typeof document.modelContext?.registerTool, "function");
			`)
		})
	}
}

// A table is read by its header, a text as shown. Neither has private or hidden content, or a
// field's value.
func TestElementsTableAndText(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `
		<style>.gone { display: none }</style>
		<table data-resource="/stock"><caption>Stock</caption>
			<thead><tr><th rowspan=2>Name<th colspan=2>Count<th data-resource-private rowspan=2>Cost<th rowspan=2></tr>
				<tr><th>Shop<th>Shop</tr></thead>
			<tbody><tr><td rowspan=2>Tea<td><b>3</b> boxes<td>1<td>SECRET<td>x</tr>
				<tr><td>4<td>2<td>SECRET<td data-resource-private>SECRET</tr></tbody>
			<tbody><tr><td>Milk<td colspan=2>none<td>SECRET<td><input value=SECRET></tr>
				<tr hidden><td>SECRET</tr><tr class=gone><td>SECRET</tr><tr data-resource-private><td>SECRET</tr></tbody>
			<tbody class=gone><tr><td>SECRET</tr></tbody>
			<tbody><tr style="visibility: collapse"><td>SECRET</tr></tbody>
			<tfoot><tr><td>Sum</tr></tfoot>
		</table>
		<table id=plain data-resource="/plain"><tr><td>1<td>2<tr><td>3</table>
		<table id=empty data-resource="/empty"></table>
		<table data-resource="/holes"><tr><th>A<th>B<tr><td>1<td rowspan=3>2<tr><tr><td>3<td>4<td>5</table>
		<table data-resource="/first"><tr></tr><tr><td>1</table>
		<table data-resource="/columns"><tr><th>A<th class=gone>B<tr><td>1<td class=gone>SECRET<tr><td class=gone>2<td>SECRET</table>
		<table data-resource="/names"><tr><th colspan=2>X<th>X 2<tr><td>a<td>b<td>c</table>
		<section id=status data-resource="/status"><h2>Order  <i>7</i></h2><p>Paid,
			<span data-resource-private>SECRET</span>sent</p><p hidden>SECRET</p><div><p class=gone>SECRET</p>
			<input value=SECRET><textarea>SECRET</textarea><select><option>SECRET</select><b>bold</b></div>
			<script type=x>SECRET</script></section>
		<p id=simple data-resource="/simple">one <span class=gone>SECRET</span><b>two</b></p>
		<script id=data type="application/json" data-resource="/data" data-resource-type="application/json">{"a":1}</script>
		<svg id=drawing data-resource="/svg"><text><tspan>Pie</tspan></text></svg>
		<div data-resource="/far"><style>section section { content-visibility: auto; margin-top: 9999px }</style>
			<section>One<section><p>two <b>three</b></p><p>four</p><p hidden>SECRET</p></section><section>five</section></section></div>`)
	b.expectations(`
		const tea = (shop, again, more) => ({ Name: "Tea", Shop: shop, "Shop 3": again, ...more });
		expect("rows", await json("/stock"), [tea("3 boxes", "1", { 5: "x" }), tea("4", "2"), { Name: "Milk", Shop: "none", "Shop 3": "none", 5: "" }]);
		expect("without a header", await json("/plain"), [["1", "2"], ["3"]]);
		expect("with holes", await json("/holes"), [{ A: "1", B: "2" }, { B: "2" }, { A: "3", B: "2", 3: "4", 4: "5" }]);
		expect("an empty row first", await json("/first"), [[], ["1"]]);
		expect("columns that are hidden", await json("/columns"), [{ A: "1" }, {}]);
		expect("a name that is another's with its number", await json("/names"), [{ X: "a", "X 2": "b", "X 2 3": "c" }]);
		expect("without rows", await json("/empty"), []);
		expect("a text in lines", await a.read(at("/status")), "Order 7\nPaid, sent\nbold");
		expect("a text", await a.read(at("/simple")), "one two");
		expect("data", await contents("/data"), ['{"a":1}', "application/json"]);
		expect("a drawing", await a.read(at("/svg")), "Pie");
		expect("parts off the screen", await a.read(at("/far")), "One\ntwo three\nfour\nfive");

		expect("a cell", await tells(() => { $("td b").textContent = "5"; }), { "/stock": 1 });
		expect("a row that is hidden", await tells(() => { $("#plain tr").hidden = true; }), { "/plain": 1 });
		expect("by its class", await tells(() => { $("#plain tr").className = "gone"; }), { "/plain": 1 });
		expect("by its style", await tells(() => { $("#plain tr").style.display = "none"; }), { "/plain": 1 });
		expect("other styles", await tells(() => { $("#plain tr").style.width = "5px"; $("#plain tr").style.color = "red"; }), {});
		expect("what is marked as private", await tells(() => { $("#simple b").setAttribute("data-resource-private", ""); }), { "/simple": 1 });
		expect("then read", await a.read(at("/simple")), "one");
		expect("a character", await tells(() => { $("#simple").firstChild.data = "1"; }), { "/simple": 1 });
		expect("elsewhere", await tells(() => { $("#field").setAttribute("value", "x"); document.body.append("more"); }), {});
	`)
	b.quiet()
}

// Elements come, go, move and change their attributes, as in a single-page application.
func TestElementsComeAndGo(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `<main><p id=first data-resource="/first" data-resource-name=First>1</p></main>`)
	b.expectations(`
		const main = $("main");
		const change = async (act) => { act(); await agent.sleep(0); return listed(); };
		expect("nested, with others", await change(() => main.insertAdjacentHTML("beforeend", "<div><p></p><p id=second data-resource=/second>2</p><form data-resource=/third></form></div>")),
			["/first First", "/second second", "/third /third"]);
		expect("by its attribute", await change(() => $("div p").setAttribute("data-resource", "/fourth")), ["/first First", "/second second", "/third /third", "/fourth /fourth"]);
		expect("gone", await change(() => { $("form").remove(); $("div p").removeAttribute("data-resource"); }), ["/first First", "/second second"]);
		expect("moved", [await tells(() => { $("div").append($("#first")); }), await listed(), await a.read(at("/first"))], [{}, ["/first First", "/second second"], "1"]);
		expect("another name", await change(() => $("#second").setAttribute("data-resource-name", "Two")), ["/first First", "/second Two"]);
		expect("another URI", await change(() => $("#second").setAttribute("data-resource", "/zweite")), ["/first First", "/zweite Two"]);

		// A view is replaced by another with the same URI; its subscribers are told.
		await a.subscribe(at("/first"));
		await change(() => main.replaceChildren(Object.assign(document.createElement("p"), { id: "first", textContent: "new" })));
		expect("replaced by one that is nothing yet", await listed(), []);
		expect("and then is", await change(() => $("#first").setAttribute("data-resource", "/first")), ["/first first"]);
		await agent.until(() => a.updated.includes(at("/first")));
		a.updated.length = 0;
		const next = $("#first").cloneNode();
		next.textContent = "next";
		expect("in one step", await change(() => main.replaceChildren(next)), ["/first first"]);
		await agent.until(() => a.updated.includes(at("/first")));
		expect("read", await a.read(at("/first")), "next");

		// Two at once, as while a view fades into the next.
		const twin = next.cloneNode();
		twin.textContent = "twin";
		await change(() => main.append(twin));
		expect("the first has it", await a.read(at("/first")), "next");
		expect("the second says nothing", await tells(() => { twin.textContent = "twin!"; }), {});
		await change(() => next.remove());
		expect("the second takes over", await a.read(at("/first")), "twin!");

		// What is wrong is said, and nothing else is lost.
		await change(() => main.insertAdjacentHTML("beforeend", "<p data-resource=https://evil.example/x></p><p data-resource></p><p data-resource=/item/{id}></p>" +
			"<section data-resource-private><p id=users data-resource=/users>by a user</p></section><p data-resource=/good>good</p>"));
		expect("beside wrong ones", await listed(), ["/first first", "/good /good"]);
		expect("not private any more", await change(() => $("section").removeAttribute("data-resource-private")), ["/first first", "/good /good", "/users users"]);
		expect("private again", await change(() => $("section").setAttribute("data-resource-private", "")), ["/first first", "/good /good"]);
		expect("all gone", await change(() => main.remove()), []);
		expect("nothing kept", pagewire.stats().resources, 0);
	`)
	for _, want := range []string{"SecurityError", "TypeError", "InvalidStateError",
		"a template needs registerResource", "it is within data-resource-private"} {
		if !b.said(want) {
			t.Errorf("no %q on the console", want)
		}
	}
}

// The module together with the script tag and an older copy of itself, and after the page API's
// end.
func TestElementsBesideOthers(t *testing.T) {
	t.Parallel()
	b := open(t, noFlag, serve(t, page{tag: `<script src="/pagewire.js"></script>
		<script type="module" src="/pagewire.elements.js"></script><script type="module" src="/pagewire.elements.js?2"></script>
		<p data-resource="/p">text</p>`}))
	b.expectations(`
		await agent.until(() => pagewire.stats().resources > 0);
		expect("read", await (await agent.connect("legacy")).read(location.origin + "/p"), "text");
		pagewire.uninstall();
		document.querySelector("p").textContent = "more";
		document.body.insertAdjacentHTML("beforeend", "<p data-resource=/q></p>");
		await agent.sleep(0);
		expect("behind uninstall", "modelContext" in navigator, false);
	`)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.console) != 1 || !strings.Contains(b.console[0], "needs a secure context") {
		t.Errorf("on the console: %q", b.console)
	}
}
