package e2e

import "testing"

// formTools is for pages with forms that are tools: the agents' view of them, and their results.
const formTools = `
	globalThis.eventually = async (condition) => { while (!(await condition())) await agent.sleep(5); };
	globalThis.schema = async (name) => (await a.client.listTools()).tools.find((t) => t.name === name)?.inputSchema;
	/** What the page's scripts saw of submissions: whether an agent's, and the values. */
	globalThis.submitted = [];
	globalThis.answer = undefined;
	addEventListener("submit", (event) => {
		if (event.target.id === "framed") return;
		event.preventDefault();
		submitted.push([event.agentInvoked, Object.fromEntries(new FormData(event.target, event.submitter))]);
		if (answer) event.respondWith(answer());
	});
	await eventually(async () => (await a.toolNames()).includes("order"));`

// A form with toolname is a tool: its fields are the parameters. A call fills them in.
// toolautosubmit submits it.
func TestElementsTools(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `<p data-resource="/p">text</p>
		<form id=search toolname=search tooldescription="Searches the shop." toolautosubmit>
			<label>Words <input id=q name=q required></label>
			<label>How many <input name=count type=number min=1 max=9 value=2></label>
			<label><input type=checkbox name=gift> As a gift</label>
			<label><input type=radio name=size value=s toolparamdescription="The size"> Small</label>
			<label><input type=radio name=size value=l checked> Large</label>
			<select name=colour aria-label=Colour><option value="">any<option value=r>red<option>blue<option disabled>none</select>
			<select name=tags multiple><option>x<option selected>y</select>
			<input type=checkbox name=extra value=a checked><input type=checkbox name=extra value=b>
			<textarea name=note>as it was</textarea><input type=date name=day><input type=email name=mail>
			<input name=elements><input name=checkValidity><input name=requestSubmit><input name=getAttribute><input name=__proto__>
			<input type=password name=pw><input type=hidden name=token value=t><input type=file name=doc>
			<input name=off disabled><input name=fixed readonly><div hidden><input name=unseen></div>
			<input name=card autocomplete=cc-number><p data-resource-private><input name=inner></p><input><select name=none></select>
			<input type=reset><button type=button name=no>No</button><button name=go value=1>Search</button>
		</form>
		<form id=order toolname=order tooldescription="Orders."><input id=sku name=sku><button id=buy>Buy</button></form>`)
	b.expectations(formTools + `
		const text = (description) => ({ type: "string", description }), bare = text("");
		expect("parameters", await schema("search"), {
			type: "object",
			properties: {
				q: text("Words"), count: { type: "number", minimum: 1, maximum: 9, description: "How many" },
				gift: { type: "boolean", description: "As a gift" },
				size: { type: "string", enum: ["s", "l"], description: "The size. s: Small, l: Large" },
				colour: { type: "string", enum: ["r", "blue"], description: "Colour. r: red" },
				tags: { type: "array", items: { type: "string", enum: ["x", "y"] }, description: "" },
				extra: { type: "array", items: { type: "string", enum: ["a", "b"] }, description: "" },
				note: bare, day: bare, mail: bare, elements: bare, checkValidity: bare, requestSubmit: bare, getAttribute: bare, ["__proto__"]: bare,
			},
			required: ["q"], additionalProperties: false,
		});

		// It is filled in as by a person, and submitted; the page's script answers.
		globalThis.answer = async () => ({ found: 3 });
		const events = [];
		for (const type of ["input", "change", "click"]) search.addEventListener(type, ({ target }) => events.push(type + " " + target.name), true);
		expect("answered", await a.use("search", { q: "tea", count: 3, gift: true, size: "s", colour: "blue", tags: ["x"], extra: ["b"], day: "2026-11-25", ["__proto__"]: "p" }), '{"found":3}');
		expect("what the page got", submitted.pop(), [true, { q: "tea", count: "3", gift: "on", size: "s", colour: "blue", tags: "x", extra: "b",
			note: "as it was", day: "2026-11-25", mail: "", elements: "", checkValidity: "", requestSubmit: "", getAttribute: "", ["__proto__"]: "p", pw: "", token: "t",
			doc: {}, fixed: "", unseen: "", card: "", inner: "", go: "1" }]);
		for (const event of ["input q", "change q", "click gift", "input gift", "click size", "change colour", "change tags"]) expect(event, events.includes(event), true);
		expect("left as they were", [await a.use("search", { q: "tea", gift: false }), submitted.pop()[1].size], ['{"found":3}', "s"]);

		// What is wrong is said, and not submitted.
		for (const [input, want] of [
			[{ q: "tea", pw: "x" }, "error: The form has no parameter 'pw'."], [{ unseen: "x" }, "error: The form has no parameter 'unseen'."],
			[{ q: 5 }, "error: 'q' is not of its schema"], [{ count: "3" }, "error: 'count' is not of its schema"], [{ gift: "on" }, "error: 'gift' is not of its schema"],
			[{ size: "m" }, "error: 'size' is not of its schema"], [{ colour: "none" }, "error: 'colour' is not of its schema"], [{ tags: "x" }, "error: 'tags' is not of its schema"],
			[{ extra: ["c"] }, "error: 'extra' is not of its schema"], [{ note: "changed", day: "tomorrow" }, "error: 'day' takes no such value of type date."], [{ mail: "tea" }, "error: 'mail' takes no such value of type email."],
			[{ q: "" }, "error: The form is filled in, and cannot be submitted. q: "], [{ q: "tea", count: 10 }, "error: The form is filled in, and cannot be submitted. count: "],
		]) {
			expect(JSON.stringify(input), (await a.use("search", input)).slice(0, want.length), want);
		}
		expect("nothing submitted", submitted, []);
		expect("of a refused call nothing stays", search.querySelector("[name=note]").value, "as it was");

		// How a call ends that the page does not answer.
		const right = { q: "tea", count: 3 };
		globalThis.answer = undefined;
		expect("without an answer", await a.use("search", right), "The form is submitted to a script, which does not answer.");
		globalThis.answer = () => Promise.reject(new Error("SECRET"));
		expect("failed", await a.use("search", right), "error: The tool failed.");
		globalThis.answer = () => new Promise(() => {});
		submitted.length = 0;
		const ended = async (what, act, want) => {
			const call = a.use("search", right);
			await agent.until(() => submitted.length);
			if (what === "reset") expect("a second call", await a.use("search", right), "error: The form is busy: the page has not answered the call before.");
			act();
			expect(what, await call, want);
			submitted.length = 0;
		};
		await ended("reset", () => HTMLFormElement.prototype.reset.call(search), "error: The call has ended: the form was reset.");
		await ended("changed", () => search.setAttribute("tooldescription", "Searches."), "error: The call has ended: the page has changed the form.");
		await eventually(async () => (await a.client.listTools()).tools.find((t) => t.name === "search")?.description.startsWith("Searches. The page says that this may not be undone."));
		const stop = new AbortController(), call = agent.refusal(a.use("search", right, { signal: stop.signal }));
		await agent.until(() => submitted.length);
		stop.abort();
		await call;
		globalThis.answer = async () => "free";
		await eventually(async () => (await a.use("search", right)) === "free"); // the core has told the page

		// One signal of two calls ends the one that runs, not the one that is over.
		const context = document.modelContext, { registerTool } = context;
		const { execute } = await new Promise((done) => {
			context.registerTool = (tool, ...rest) => (done(tool), registerTool.call(context, tool, ...rest));
			search.setAttribute("tooldescription", "Searches again.");
		});
		delete context.registerTool;
		const session = new AbortController();
		expect("the first", await execute(right, session), "free");
		globalThis.answer = () => new Promise(() => {});
		submitted.length = 0;
		const second = execute(right, session);
		await agent.until(() => submitted.length);
		session.abort();
		expect("the second", (await second).content[0].text, "The call has ended: the agent has cancelled it.");
		globalThis.answer = async () => "free";

		// Without toolautosubmit the user submits.
		submitted.length = 0;
		expect("to be submitted", await a.use("order", { sku: "tea" }), "The form is filled in, and not submitted. The user has to look at it and submit it.");
		expect("by its user", [submitted, document.activeElement.id, $("#sku").value], [[], "buy", "tea"]);
	`)
	b.click("#buy")
	b.expectations(`
		await agent.until(() => submitted.length);
		expect("by its user, after an agent", submitted, [[true, { sku: "tea" }]]);
		globalThis.answer = undefined;
		submitted.length = 0;
	`)
	b.click("#buy")
	b.expectations(`
		await agent.until(() => submitted.length);
		expect("by its user alone", submitted, [[false, { sku: "tea" }]]);
		await a.use("order", { sku: "milk" });
		order.reset();
		submitted.length = 0;
		globalThis.answer = () => 1; // which throws, since no agent asked
		globalThis.refused = new Promise((done) => addEventListener("error", (event) => { event.preventDefault(); done(event.error.name); }));
	`)
	b.click("#buy")
	b.expectations(`
		expect("after a reset", [await refused, submitted], ["InvalidStateError", [[false, { sku: "" }]]]);
	`)
	if !b.said("the tool search failed") {
		t.Error("the console does not have the page's reason")
	}
}

// Forms come, go and change. Unfit forms are reported. A browser with its own form tools is left
// alone.
func TestElementsToolsComeAndGo(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `<p data-resource="/p">text</p><iframe name=frame></iframe>
		<main><form id=order toolname=order tooldescription="Orders."><select name=size><option>s</select></form></main>`)
	b.expectations(formTools + `
		const main = $("main");
		const change = async (act, want) => { act(); await eventually(async () => (await a.toolNames()) === want); };
		await change(() => main.insertAdjacentHTML("beforeend", "<div><form id=framed toolname=go toolautosubmit tooldescription=Goes. target=frame action=/agent.js></form></div>"), "go order");
		expect("without fields", await schema("go"), { type: "object", properties: {}, required: [], additionalProperties: false });
		const loaded = new Promise((done) => $("iframe").addEventListener("load", done));
		expect("not a script's", await a.use("go"), "The form is submitted.");
		await loaded;
		$("select").append(new Option("l"));
		await eventually(async () => (await schema("order")).properties.size.enum.length === 2);
		$("select").disabled = true;
		await eventually(async () => !("size" in (await schema("order")).properties));
		await change(() => $("#framed").setAttribute("toolname", "leave"), "leave order");
		await change(() => $("div").remove(), "order");
		await change(() => order.removeAttribute("toolname"), "");
		await change(() => order.setAttribute("toolname", "again"), "again");
		await change(() => main.setAttribute("data-resource-private", ""), "");
		await change(() => main.removeAttribute("data-resource-private"), "again");
		main.insertAdjacentHTML("beforeend", "<form toolname tooldescription=Nameless></form><form toolname=mute></form><form toolname='no name' tooldescription=x></form>" +
			"<form toolname=again tooldescription=Twin></form><form tooldescription=x></form><form toolname=good tooldescription=Good><input></form>");
		await eventually(async () => (await a.toolNames()) === "again good");
		expect("nameless fields", (await schema("good")).properties, {});
	`)
	for _, want := range []string{"toolname does not offer '' to agents",
		"toolname does not offer 'mute' to agents",
		"toolname does not offer 'no name' to agents",
		"toolname does not offer 'again' to agents"} {
		if !b.said(want) {
			t.Errorf("no %q on the console", want)
		}
	}
	for _, m := range inThisEngine([]mode{native}, func(m mode) mode { return m }) {
		b := openElements(t, m, `<p data-resource="/p">text</p><form id=order toolname=order
			tooldescription="Orders."><input name=sku></form>`)
		b.expectations(formTools + `
			expect("of the browser", [await a.toolNames(), "respondWith" in SubmitEvent.prototype], ["order", true]);
			expect("is native", String(Object.getOwnPropertyDescriptor(SubmitEvent.prototype, "respondWith").value).includes("native code"), true);
		`)
		b.quiet()
	}
}

// A form tool submits what the agent has asked for, or refuses.
func TestElementsToolsSubmitWhatIsAsked(t *testing.T) {
	t.Parallel()
	b := openElements(t, noFlag, `<p data-resource="/p">text</p><form toolname=order tooldescription=Orders.><input name=sku></form>
		<form id=ship toolname=ship tooldescription="Ships." toolautosubmit>
			<select name=country id=country><option>DE<option>CH</select>
			<span id=states><select name=state><option>BY<option>BE</select></span><button>Go</button></form>
		<form toolname=vol tooldescription="Sets." toolautosubmit><input type=range name=level min=0 max=100 step=10><input type=color name=colour><input name=line><input name=short maxlength=3><button>Go</button></form>
		<form id=make toolname=make tooldescription="Makes." toolautosubmit><input type=radio name=size value=a><input type=radio name=size value=b><input type=radio name=size value=a><input type=radio name=size value=b>
			<input name=coupon id=coupon><input name=net id=net><input name=gross id=gross><input name=taken id=taken value=old><input name=emptied id=emptied><input name=phone id=phone><button>Go</button></form>
		<form id=again toolname=again tooldescription="Again." toolautosubmit><input name=price id=price value=100.00><input name=site id=site><input type=datetime-local name=when><input type=color name=colour>
			<input type=number name=count id=count><input name=word id=word><button>Go</button></form>`)
	b.expectations(formTools + `
		// A page that makes its other fields anew, as frameworks do, when a country is chosen.
		country.addEventListener("change", () => { states.innerHTML = states.innerHTML; });
		globalThis.answer = async () => "done";
		for (const input of [{ country: "CH", state: "BE" }, { state: "BE", country: "CH" }]) {
			ship.reset();
			submitted.length = 0;
			await a.use("ship", input);
			const { country, state } = submitted.pop()?.[1] ?? {};
			expect(JSON.stringify(input) + " is submitted", [country, state], ["CH", "BE"]);
		}
		// What a page makes of the values, and submits.
		coupon.addEventListener("change", () => { coupon.readOnly = true; });
		for (const [one, other] of [[net, gross], [gross, net]]) one.addEventListener("change", () => { other.value = (+other.value).toFixed(2); });
		taken.addEventListener("input", () => { taken.value = "old"; });
		emptied.addEventListener("change", () => { emptied.value = ""; });
		phone.addEventListener("input", () => { phone.value = phone.value.replace(/^(\d{3})(\d+)$/, "$1-$2"); });
		for (const [input, want] of [[{ size: "a" }, "a"], [{ coupon: "X1" }, "X1"], [{ net: "100", gross: "119" }, "100.00"], [{ phone: "5551234" }, "555-1234"],
			[{ taken: "new" }], [{ emptied: "new" }]]) {
			make.reset();
			submitted.length = 0;
			const said = await a.use("make", input);
			expect(JSON.stringify(input), said.startsWith("error") ? undefined : submitted.pop()?.[1][Object.keys(input)[0]], want);
		}
		// An agent that calls again without a reset, and values that are not what was asked.
		price.addEventListener("change", () => { price.value = (+price.value).toFixed(2); });
		site.addEventListener("change", () => { site.value = site.value.replace(/^https?:../, ""); });
		count.addEventListener("change", () => { count.value = Math.min(10, Math.abs(count.value)); });
		word.addEventListener("change", () => { word.value = word.value.replace(/[^a-z]/gi, ""); });
		for (const [input, want] of [[{ price: "100" }, "100.00"], [{ price: "100" }, "100.00"], [{ site: "https://a.b" }, "a.b"], [{ site: "https://a.b" }, "a.b"],
			[{ when: "2026-01-06T10:00:00" }, "2026-01-06T10:00"], [{ when: "2026-01-06T10:00:00" }, "2026-01-06T10:00"], [{ colour: "black" }, "#000000"],
			[{ count: 5 }, "5"], [{ count: -5 }], [{ count: 99 }], [{ word: "C" }, "C"], [{ word: "C++" }], [{ word: "!!!" }]]) {
			submitted.length = 0;
			const said = await a.use("again", input);
			expect(JSON.stringify(input) + " again", said.startsWith("error") ? undefined : submitted.pop()?.[1][Object.keys(input)[0]], want);
		}
		// A page that takes a choice back.
		country.addEventListener("change", () => { country.value = "DE"; });
		ship.reset();
		submitted.length = 0;
		expect("a choice that is taken back", [(await a.use("ship", { country: "CH" })).startsWith("error"), submitted.length], [true, 0]);
		for (const [input, want] of [[{ level: 50 }, "50"], [{ level: 150 }], [{ level: 57 }], [{ colour: "#ff0000" }, "#ff0000"], [{ colour: "burgundy" }],
			[{ line: "a" }, "a"], [{ line: "a\nb" }], [{ short: "abc" }, "abc"], [{ short: "abcdef" }]]) {
			submitted.length = 0;
			const said = await a.use("vol", input);
			expect(JSON.stringify(input), said.startsWith("error") ? undefined : submitted.pop()?.[1][Object.keys(input)[0]], want);
		}
	`)
}
