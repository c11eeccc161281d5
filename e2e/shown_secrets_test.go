package e2e

import (
	"strings"
	"testing"
)

// Nothing that only its user may know is in a look.
func TestShownSecrets(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range cases(t, "testdata/shown/secrets.txtar", 60) {
		b.shows(html)
		b.holdsNoSecret(name)
	}
	// Other fields are read, and so is the name of a secret one.
	for html, want := range map[string]string{
		`<input type=password aria-label=Password value=x>`:                                                         "{Password: (secret)}\n",
		`<label><input type=checkbox checked> Remember my password</label>`:                                         "[x] Remember my password\n",
		`<input aria-label="Order number" value=4111111111111112>`:                                                  "{Order number: 4111111111111112}\n",
		`<input aria-label="Spinning top" value=x><input aria-label=Inset value=y>`:                                 "{Spinning top: x} {Inset: y}\n",
		`<select aria-label="Security question"><option>Pet</select>`:                                               "{Security question: Pet}\n",
		`<input aria-label="Card holder" value=Ada>`:                                                                "{Card holder: Ada}\n",
		`<input aria-label="Postcode" value=3000>`:                                                                  "{Postcode: 3000}\n",
		`<input aria-label="Boarding pass" value=x><input name=author value=y>`:                                     "{Boarding pass: x} {author: y}\n",
		`<input aria-label=A value="DE89 3704 0044 0532 0130 00"><input aria-label=B value=gb29nwbk60161331926819>`: "{A: (secret)} {B: (secret)}\n",
		`<input aria-label=Serial value=DE89370400440532013001>`:                                                    "{Serial: DE89370400440532013001}\n",
		`<div contenteditable aria-label=Notes>x</div>`:                                                             "--- textbox: Notes\nx\n---\n",
		`<input style="color:transparent" aria-label=Note value=four>`:                                              "{Note: }\n(hidden text of 4 characters is left out)\n",
	} {
		if got := b.lines(html); got != want {
			t.Errorf("%s: got %q, want %q", html, got, want)
		}
	}
}

// Nothing secret of a form is in a look or told of, and the other fields are read.
func TestShownForms(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range cases(t, "testdata/shown/forms.txtar", 22) {
		b.shows(html)
		run[any](b.tab, prepare)
		text := b.holdsNoSecret(name)
		for _, seen := range []string{"SEEN1", "SEEN2"} {
			if strings.Contains(html, seen) && !strings.Contains(text, seen) {
				t.Errorf("%s: %s is not shown:\n%s", name, seen, text)
			}
		}
	}
}

// holdsNoSecret fails if SECRET is in a look at the page, or in one after it has changed, or if
// that is told. It returns the first look.
func (b *shownTab) holdsNoSecret(name string) string {
	b.t.Helper()
	inWorld[any](b, "await read()")
	b.watches()
	before := inWorld[string](b, "return read({ links: true })")
	// Each secret is another one, and all fields and texts say so.
	told := b.told(`
		const documents = [document, ...[...document.querySelectorAll("iframe")].flatMap((frame) => frame.contentDocument ?? [])];
		const change = (text) => text.replaceAll("SECRET", "SECRET again").replaceAll("1111 1111 1111", "1111 1111 1111");
		const visit = (root) => {
			const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
			for (let node = walker.nextNode(); node; node = walker.nextNode()) {
				if (node.nodeType === 3) { if (node.data.includes("SECRET")) node.data = change(node.data); continue; }
				if (node.shadowRoot) visit(node.shadowRoot);
				// A frame that loads is seen to be empty for a moment.
				for (const { name, value } of node.attributes) if (name !== "srcdoc" && value.includes("SECRET")) node.setAttribute(name, change(value));
				if (/^(input|textarea)$/.test(node.localName) && /SECRET|1111/.test(node.value)) {
					node.value = change(node.value) + (/1111/.test(node.value) ? "" : "!");
					node.dispatchEvent(new Event("input", { bubbles: true }));
				}
			}
		};
		for (const one of documents) visit(one)`)
	after := inWorld[string](b, "return read({ links: true })")
	for _, text := range []string{before, after} {
		if strings.Contains(text, "SECRET") || strings.Contains(text, "1111") {
			b.t.Errorf("%s is shown:\n%s", name, text)
		}
	}
	if told != 0 {
		b.t.Errorf("%s: a change of what nobody sees is told %d times:\n%s\nthen\n%s", name, told,
			before, after)
	}
	return before
}

// Addresses lack what lets their reader in.
func TestShownAddresses(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<p><a href="/reset?user=ada&token=SECRET&tab=2">Reset</a> <a href="https://ada:SECRET@other.example/?sessionId=SECRET">Other</a>
		<a href="/cb#access_token=SECRET&x=1">Back</a></p>`, nil)
	run[any](b.tab,
		`history.replaceState(0, "", "/page?code=SECRET&state=open&api_key=SECRET#id_token=SECRET")`)
	got := inWorld[string](b, "return read({ links: true })")
	_, path, _ := strings.Cut(got, "/page")
	if want := "?code=…&state=open&api_key=…\n[Reset](/reset?user=ada&token=%E2%80%A6&tab=2) [Other](https://other.example/?sessionId=%E2%80%A6) " +
		"[Back](/cb#access_token=%E2%80%A6&x=1)\n"; path != want {
		t.Errorf("got %q, want %q", path, want)
	}
}

// A password that a button shows stays a secret, also if another element takes its place, and
// typing it tells nothing.
func TestShownPasswords(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<form><input type=password id=a name=k aria-label=K value=SECRET1></form>
		<input type=password id=b aria-label=L value=SECRET2><div id=host></div>`, nil)
	const want = "{K: (secret)}\n{L: (secret)}\n{M: (secret)}\n"
	run[any](b.tab, `const shadow = host.attachShadow({ mode: "open" });
		shadow.innerHTML = "<input type=password id=c aria-label=M value=SECRET3>"; globalThis.c = shadow.firstChild`)
	secret := func(when string) {
		t.Helper()
		if got := inWorld[string](b, "return lines()"); got != want {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	secret("at first")
	run[any](b.tab, `a.type = b.type = c.type = "text"`)
	secret("shown after the last read")
	inWorld[any](b, "view.watch(true); await settle()")
	run[any](b.tab, `a.type = b.type = c.type = "password"`)
	run[any](b.tab, `a.type = b.type = c.type = "text"; a.value = b.value = c.value = "SECRET4";
		for (const field of [a, b, c]) field.dispatchEvent(new Event("input", { bubbles: true, composed: true }))`)
	if told := inWorld[int](b,
		"await pass(1000); await pass(100_000); return counts.told"); told != 0 {
		t.Errorf("typing a password was told %d times", told)
	}
	secret("while it is watched")
	run[any](b.tab, `a.outerHTML = "<input name=k aria-label=K value=SECRET5>"`)
	secret("another element of that name in the form")
}

// Another field that takes the place of a password is secret, and other fields are not, whatever
// they lack.
func TestShownPasswordsReplaced(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	const swap = `const field = document.querySelector("[type=password]"); const other = field.cloneNode(); other.type = "text"; other.value = "SECRET2"; field.replaceWith(other)`
	for name, c := range map[string]struct{ html, script, want string }{
		"without a name, shown":              {`<form><input type=password value=SECRET><input value=x><input placeholder=Ort value=y></form>`, `document.querySelector("[type=password]").type = "text"`, "{text: (secret)} {text: x} {Ort: y}\n"},
		"without a name, replaced":           {`<form><p><input type=password value=SECRET></p><input value=x><input placeholder=Ort value=y></form>`, swap, "{text: (secret)}\n{text: x} {Ort: y}\n"},
		"with a placeholder":                 {`<form><input type=password placeholder=Geheim value=SECRET><input placeholder=Ort value=y></form>`, swap, "{Geheim: (secret)} {Ort: y}\n"},
		"without a form, by name":            {`<p><input type=password name=k value=SECRET></p><p><input name=l value=x></p>`, swap, "{text: (secret)}\n{l: x}\n"},
		"without a form, by id":              {`<p><input type=password id=k value=SECRET></p><p><input id=l value=x></p>`, swap, "{text: (secret)}\n{text: x}\n"},
		"without a form, by label":           {`<p><input type=password aria-label=K value=SECRET></p><p><input aria-label=L value=x></p>`, swap, "{K: (secret)}\n{L: x}\n"},
		"without a form, by a label element": {`<label>K <input type=password value=SECRET></label><p><input value=x></p>`, swap, "{K: (secret)}\n{text: x}\n"},
		"without a form, by nothing":         {`<p><input type=password value=SECRET></p><p><input value=x></p>`, swap, "{text: (secret)}\n{text: x}\n"},
		"with all around it":                 {`<div><p><input type=password name=k value=SECRET></p></div><input name=l value=x>`, `document.querySelector("div").innerHTML = "<input name=k value=SECRET2>"`, "{text: (secret)}\n{l: x}\n"},
		"shown with another name":            {`<input type=password name=k value=SECRET><input name=l value=x>`, `const f = document.querySelector("input"); f.type = "text"; f.name = "z"`, "{text: (secret)} {l: x}\n"},
	} {
		for _, watched := range []string{"true", "false"} {
			b.shows(c.html)
			inWorld[any](b, "view.watch("+watched+
				"); await settle(); await pass(1000); await read()")
			run[any](b.tab, c.script)
			if got := inWorld[string](b, "await pass(1000); return lines()"); got != c.want {
				t.Errorf("%s, watched %s: got %q, want %q", name, watched, got, c.want)
			}
		}
	}
}

// A one-time code that a widget draws beside its field is no text for agents. As shadcn/ui (input-otp) and Clerk have it.
func TestShownCodesBesideTheirField(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for name, html := range map[string]string{
		"input-otp": `<div data-input-otp-container=true style="position:relative;display:flex"><div style="display:flex"><div>4</div><div>8</div><div>1</div><div>5</div><div>1</div><div>6</div></div><div style="position:absolute;inset:0;pointer-events:none">
			<input autocomplete=one-time-code data-input-otp=true inputmode=numeric pattern="^\d+$" maxlength=6 value=481516 style="position:absolute;inset:0;width:calc(100% + 40px);clip-path:inset(0 40px 0 0);height:100%;opacity:1;color:transparent;background:transparent;border:0;letter-spacing:-.5em"></div></div>`,
		"a clear field": `<div><div>4</div><div>8</div><div>1</div><div>5</div><input autocomplete=one-time-code value=4815 style="position:absolute;opacity:0"></div>`,
		"a field away":  `<div><b>4</b><b>8</b><b>1</b><b>5</b><input autocomplete=one-time-code value=4815 style="position:absolute;left:-9999px"></div>`,
		"no box":        `<div><b>4</b><b>8</b><b>_</b><b>_</b><input autocomplete=one-time-code value=48 style="display:none"></div>`,
	} {
		if got := b.lines(html); strings.Contains(got, "4") {
			t.Errorf("%s: an agent reads the code: %q", name, got)
		}
	}
	// Boxes that are drawn anew beside the field, which is as it was; a part within the boxes.
	b.lines(`<div><div id=boxes><b>4</b><b>8</b></div><input id=code autocomplete=one-time-code value=48></div>`)
	run[any](b.tab, `boxes.innerHTML = "<i>4</i><i>8</i>"`)
	if got := inWorld[string](b, "return lines()"); strings.Contains(got, "4") {
		t.Errorf("drawn anew: an agent reads the code: %q", got)
	}
	for _, css := range []string{"#boxes", "#boxes i"} {
		if got := b.reads(`{ find: [{ css: "` + css + `" }] }`); strings.Contains(got, "4") {
			t.Errorf("the part %s: an agent reads the code: %q", css, got)
		}
	}
	b.lines(`<div><div id=boxes><b>4</b><b>8</b></div><input id=code autocomplete=one-time-code value=48></div>`)
	for _, script := range []string{`code.value = ""`, `boxes.append(" ")`, `const own = boxes.innerHTML; boxes.textContent = "•"; boxes.innerHTML = own`,
		`const box = boxes, at = box.parentNode; box.remove(); at.prepend(box)`} {
		run[any](b.tab, script)
		if got := inWorld[string](b, "return lines()"); strings.Contains(got, "4") {
			t.Errorf("after %s: an agent reads the code: %q", script, got)
		}
	}
	// What has no text is no box, and what is no box does not hide the others.
	for html, want := range map[string]string{
		`<form><div><b>4</b><b>8</b></div><input autocomplete=one-time-code aria-label=Code value=48><input aria-label=Email value=a@b><button aria-label=Resend></button></form>`: "{Code: (secret)} {Email: a@b} [Resend]\n",
		`<div>` + strings.Repeat("<i></i>", 70) + `<style>b{}</style><label>PIN</label><b>4</b><b>8</b><input autocomplete=one-time-code aria-label=Code value=48></div>`:          "PIN {Code: (secret)}\n",
	} {
		if got := b.lines(html); got != want {
			t.Errorf("%s: got %q, want %q", html, got, want)
		}
	}
	// The field is far from the part, or no input.
	for _, field := range []string{`<p>` + strings.Repeat("<input>", 60) + `</p><input autocomplete=one-time-code value=48>`, `<textarea autocomplete=one-time-code>48</textarea>`} {
		b.shows(`<div><div><div><div><div id=boxes><b>4</b><b>8</b></div></div></div></div>` + field + `</div>`)
		if got := b.reads(`{ find: [{ css: "#boxes" }] }`); strings.Contains(got, "4") {
			t.Errorf("a part beside %s: an agent reads the code: %q", field, got)
		}
	}
	b.lines(`<div><div id=boxes><b>4</b><b>8</b></div><input id=code autocomplete=one-time-code value=48></div>`)
	// What had a code has another text later.
	run[any](b.tab, `code.remove(); boxes.textContent = "Paid"`)
	if got := inWorld[string](b, "return lines()"); got != "Paid\n" {
		t.Errorf("after the code: %q", got)
	}
}
