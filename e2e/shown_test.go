package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/tools/txtar"
)

// A shownTab is a tab whose page is read by dist/pagewire.shown.js, in a world of its own as a
// gateway's. A clock there passes only when a test says so.
type shownTab struct {
	*tab
	world runtime.ExecutionContextID
}

// openShown opens a page that knows nothing of Pagewire. Further documents of its site are in also,
// by path.
func openShown(t *testing.T, html string, also map[string]string) *shownTab {
	t.Helper()
	documents := map[string]string{"/page": "<body>" + html}
	for path, text := range also {
		documents[path] = text
	}
	s := serve(t, page{also: documents})
	b := &shownTab{tab: open(t, noFlag, s)}
	b.navigate(s.URL + "/page")
	b.enter()
	return b
}

// enter makes the world of the document that the tab has now, with a reader of it.
func (b *shownTab) enter() {
	b.t.Helper()
	tree, err := chromedp.Call(b.ctx, cdppage.GetFrameTree, cdp.Empty{})
	b.must(err)
	world, err := chromedp.Call(b.ctx, cdppage.CreateIsolatedWorld,
		cdppage.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID, WorldName: "shown"})
	b.must(err)
	b.world = world.ExecutionContextID
	script, err := os.ReadFile(filepath.Join(dist, "pagewire.shown.js"))
	b.must(err)
	inWorld[any](b, `
		// What the reader does is counted: elements whose style it asks for, its pauses, what it
		// listens to, characters of texts, and ranges.
		globalThis.counts = { styles: 0, pauses: 0, told: 0, observed: 0, characters: 0, ranges: 0 };
		// The script must not see these names: it would call what is not counted.
		const { postMessage } = MessagePort.prototype;
		{
		const { getComputedStyle } = globalThis;
		globalThis.getComputedStyle = (...args) => (counts.styles++, getComputedStyle(...args));
		MessagePort.prototype.postMessage = function (...args) { counts.pauses++; return postMessage.apply(this, args); };
		const { Range } = globalThis;
		globalThis.Range = class extends Range { constructor() { super(); counts.ranges++; } };
		const { substringData } = CharacterData.prototype;
		CharacterData.prototype.substringData = function (at, count) { const text = substringData.call(this, at, count); counts.characters += text.length; return text; };
		const { observe } = MutationObserver.prototype;
		MutationObserver.prototype.observe = function (...args) { counts.observed++; return observe.apply(this, args); };
		const { addEventListener } = EventTarget.prototype;
		EventTarget.prototype.addEventListener = function (...args) { counts.observed++; return addEventListener.apply(this, args); };
		}
		`+string(script)+`;
		// A hidden tab's timers run once a second, or once a minute: nothing waits for them but the
		// clock.
		globalThis.browserTimer = globalThis.setTimeout;
		globalThis.setTimeout = () => { throw new Error("a timer") };
		// A look takes no time. The longer one takes, the longer the next waits, and on a busy
		// machine that is any time.
		globalThis.browserNow = performance.now.bind(performance);
		performance.now = () => 0;
		globalThis.clock = {
			time: 0, waits: [],
			now: () => clock.time,
			wait: (ms) => new Promise((done) => clock.waits.push({ at: clock.time + ms, done })),
		};
		globalThis.shownPage = pagewireShown(document, clock);
		globalThis.view = shownPage.view(() => counts.told++);
		globalThis.read = (options) => view.read(options);
		/** The lines without those of title and address. */
		globalThis.lines = async (options) => (await read(options)).split("\n").slice(2).join("\n");
		const turn = () => new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; postMessage.call(port2, 0); });
		/** Ends when the reader has told all that it has to tell at this time. */
		globalThis.settle = async () => { for (let i = 0; i < 3; i++) { await turn(); await read(); } };
		/** Time passes, and what has waited for it happens. */
		globalThis.pass = async (ms) => {
			for (const end = clock.time + ms; ; ) {
				const due = clock.waits.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
				clock.time = due ? Math.max(clock.time, due.at) : end;
				if (!due) break;
				clock.waits.splice(clock.waits.indexOf(due), 1);
				due.done();
				await settle();
			}
			await settle();
		};
	`)
}

// inWorld runs a body in the reader's world.
func inWorld[T any](b *shownTab, body string) (v T) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"(async () => { "+body+" })().then((v) => JSON.stringify(v === undefined ? null : v))",
		chromedp.EvalAwaitPromise, func(p *runtime.EvaluateParams) { p.ContextID = b.world }))
	if err != nil {
		b.t.Fatalf("%v\nin the reader's world: %s", err, body[:min(len(body), 1000)])
	}
	b.must(json.Unmarshal([]byte(text), &v))
	return v
}

// watches watches the page, and ends when all that there is at first has been told.
func (b *shownTab) watches() {
	b.t.Helper()
	inWorld[any](b, "view.watch(true); await settle(); await pass(1000)")
}

// told runs a script in the page, and returns how many times a change is told in the second after
// it.
func (b *shownTab) told(script string) int {
	b.t.Helper()
	run[any](b.tab, script)
	return inWorld[int](b, "counts.told = 0; await pass(1000); return counts.told")
}

// lines shows markup in the page, and returns its lines.
func (b *shownTab) lines(html string) string {
	b.t.Helper()
	b.shows(html)
	return inWorld[string](b, "return lines()")
}

func (b *shownTab) shows(html string) {
	b.t.Helper()
	text, err := json.Marshal(html)
	b.must(err)
	run[any](b.tab, "document.body.innerHTML = "+string(text))
}

// Each kind of element has its lines, and no text makes a line of another kind.
func TestShownLines(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/shown/lines.txtar")
	if err != nil {
		t.Fatal(err)
	}
	b := openShown(t, "", nil)
	for i := 0; i < len(archive.Files); i += 2 {
		html, want := archive.Files[i], archive.Files[i+1]
		name := strings.TrimSuffix(html.Name, ".html")
		if want.Name != name+".txt" {
			t.Fatalf("%s is followed by %s", html.Name, want.Name)
		}
		b.shows(string(html.Data))
		options := map[bool]string{true: "{ links: true }"}[name == "links"]
		if got := inWorld[string](b, "return lines("+options+")"); got != string(want.Data) {
			t.Errorf("%s:\n%swant\n%s", name, got, want.Data)
		}
	}
	// What is read from within a line or within code has no line of ours that is none.
	b.shows("<p>some # words</p><p>some --- main</p><p>some | a | b |</p><p>some (frame of x)</p><pre>\ncode\n--- in code\ncode</pre><p>end</p><ul><li><pre>1\n- ```\n2</pre></ul><p>last")
	text := inWorld[string](b, "return read()")
	for at, want := range map[string]string{"# words": "\\# words\n", "--- main": "\\--- main\n",
		" --- main": "\\ --- main\n", "| a": "\\| a | b |\n",
		"(frame": "\\(frame of x)\n", "--- in": "```\n--- in code\n",
		"code\n```": "```\ncode\n```\n", "end": "end\n", "  2": "```\n  2\n", "last": "last\n"} {
		from := strings.Index(text, at)
		if got := inWorld[string](b, fmt.Sprintf("return read({ from: %d })", from)); from < 0 ||
			!strings.HasPrefix(got, want) {
			t.Errorf("from %q in\n%s: %q, want %q", at, text, got, want)
		}
	}
	b.shows("<p>Text")
	for from, want := range map[string]string{"0": "title: ", "NaN": "title: ", "-5": "title: ", "3.5": "le: ", "'7'": "", "1e9": ""} {
		if got := inWorld[string](b, "return read({ from: "+from+" })"); !strings.HasPrefix(got, want) || want == "" && len(got) > 70 {
			t.Errorf("from %s: %q", from, got)
		}
	}
}

// Frames of the same origin are read in place. Frames of others are one line, and so are frames too
// deep.
func TestShownFrames(t *testing.T) {
	t.Parallel()
	other := serve(t, page{also: map[string]string{"/other": "<p>SECRET</p>"}})
	b := openShown(t, `<p>Before</p><iframe id=same src=/inner title=Same></iframe><iframe src=`+other.URL+`/other title=Widget></iframe>
		<iframe sandbox srcdoc="<p>SECRET</p>"></iframe><iframe src=`+other.URL+`/other width=1 height=1></iframe>
		<iframe hidden src=/inner></iframe><p>After</p>`,
		map[string]string{"/inner": `<body><main>Inner</main><label>Name <input value=Ada></label><p style="color:white">SECRET</p>`})
	want := "Before\n--- main\nInner\n---\n{Name: Ada}\n(frame of " + other.URL + ": Widget)\n(frame)\nAfter\n(hidden text of 6 characters is left out)\n"
	if got := inWorld[string](b, "return lines()"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	b.watches()
	for _, c := range []struct{ script, want string }{
		{`same.contentDocument.querySelector("main").textContent = "Changed"`, "Changed"},
		{`same.src = "/inner?2"; await new Promise((done) => same.addEventListener("load", done))`, "Inner"},
		{`same.contentDocument.querySelector("main").textContent = "Again"`, "Again"},
		{`same.remove()`, "Before\n(frame of"},
	} {
		run[any](b.tab, c.script)
		if text := inWorld[string](b, "counts.told = 0; await pass(1000); return counts.told + '\\n' + await lines()"); !strings.HasPrefix(text, "1\n") || !strings.Contains(text, c.want) {
			t.Errorf("%s: told, and shown:\n%s", c.script, text)
		}
	}
}

// By document.domain, a page may enter a frame of another origin. What its user has named is the
// page's.
func TestShownFrameOfOneDomain(t *testing.T) {
	t.Parallel()
	const join = `document.domain = "site.localhost"`
	s := serve(t, page{headers: map[string]string{"Origin-Agent-Cluster": "?0"}, all: true, also: map[string]string{
		"/page": "<body><p>Mine</p><iframe></iframe>", "/other": "<body><p>SECRET</p><script>" + join + "</script>"}})
	b := &shownTab{tab: open(t, noFlag, s)}
	at := func(host string) string { return strings.Replace(s.URL, "127.0.0.1", host+".site.localhost", 1) }
	b.navigate(at("a") + "/page")
	if got := run[string](b.tab, join+`; const frame = document.querySelector("iframe"); frame.src = "`+at("b")+`/other";
		await new Promise((done) => frame.addEventListener("load", done)); return frame.contentDocument.body.innerText`); got != "SECRET" {
		t.Fatalf("the page itself sees %q", got)
	}
	b.enter()
	if got, want := inWorld[string](b, "return lines()"), "Mine\n(frame of "+at("b")+")\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a closed shadow tree does not show of its host's children is not shown, also where nobody
// sees the tree.
func TestShownClosedHosts(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for tree, shows := range map[string]bool{
		``: false, `<p>other</p>`: false, `<slot name=x></slot>`: false,
		`<div style="display:none"><slot></slot></div>`: false, `<div style="font-size:0"><slot></slot></div>`: false,
		`<div style="opacity:0"><slot></slot></div>`: false, `<div hidden><slot></slot></div>`: false, `<details><slot></slot></details>`: false,
		`<slot></slot>`: true, `<b><slot></slot></b>`: true, `<slot style="display:block;opacity:.5"></slot>`: true, `<slot><i>fallback</i></slot>`: true,
	} {
		for _, html := range []string{"<p>WORDS</p>", "<div><b>WORDS</b></div>", "WORDS"} {
			if html == "WORDS" && (strings.Contains(tree, "opacity:0\"") || strings.Contains(tree, "details")) {
				continue // nothing tells of it
			}
			b.shows("<div id=host>" + html + "</div><p>After")
			run[any](b.tab, "document.querySelector('#host').attachShadow({ mode: 'closed' }).innerHTML = `"+tree+"`")
			if got := inWorld[string](b, "return lines()"); strings.Contains(got, "WORDS") != shows || !strings.Contains(got, "After") {
				t.Errorf("%s in a closed tree %q: %s", html, tree, got)
			}
		}
	}
}

// Where a browser lets an extension see closed shadow trees, they are read and followed, with what
// is assigned to them.
func TestShownClosedTrees(t *testing.T) {
	t.Parallel()
	b := openShown(t, `<div id=host><b>assigned</b><i>not assigned</i></div>`, nil)
	inWorld[any](b, `
		const closed = document.querySelector("#host").attachShadow({ mode: "closed" });
		closed.innerHTML = "<p>Closed</p><slot name=none></slot><p><slot></slot></p>";
		document.querySelector("i").slot = "nowhere";
		globalThis.closedTree = closed`)
	if got := inWorld[string](b, "return lines()"); got != "assigned\n" {
		t.Errorf("without the permission it is %q", got)
	}
	script, err := os.ReadFile(filepath.Join(dist, "pagewire.shown.js"))
	b.must(err)
	inWorld[any](b, `
		const host = document.querySelector("#host");
		globalThis.chrome = { dom: { openOrClosedShadowRoot: (element) => (element === host ? closedTree : element.shadowRoot) } };
		`+string(script)+`;
		globalThis.view = pagewireShown(document, clock).view(() => counts.told++);
		view.watch(true); await settle(); await pass(1000)`)
	for _, c := range []struct{ script, want string }{
		{"0", "Closed\nassigned\n"},
		{`closedTree.querySelector("p").textContent = "Other"`, "Other\nassigned\n"},
		{`document.querySelector("b").textContent = "changed"`, "Other\nchanged\n"},
	} {
		if got := inWorld[string](b, c.script+"; await pass(1000); return lines()"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
	if got := inWorld[int](b, "return counts.told"); got != 2 {
		t.Errorf("told %d times, want twice", got)
	}
}

// Each read of a part is answered, also if a selector of a stored rule is none. A part that is
// watched before the document has an element is told when it comes.
func TestShownReaderAnswers(t *testing.T) {
	t.Parallel()
	b := openShown(t, "<main>Text</main>", nil)
	script, err := os.ReadFile(filepath.Join(dist, "extension/shown.js"))
	b.must(err)
	got := inWorld[[]any](b, `
		let receive, hear;
		const port = {
			postMessage: (message) => message.wait ? queueMicrotask(() => receive({ wake: message.wait })) : hear(message),
			onMessage: { addListener: (listener) => (receive = listener) },
			onDisconnect: { addListener() {} },
		};
		globalThis.chrome = { runtime: { connect: () => port } };
		`+string(script)+`;
		/** What the reader says next. */
		const after = (act) => new Promise((done) => { hear = done; act(); });
		const of = (css) => ({ name: "part", part: { find: [{ css }] } });
		receive({ watch: true, ...of("::::") });
		const wrong = await after(() => receive({ read: 1, ...of("::::") }));
		const root = document.documentElement;
		root.remove();
		receive({ watch: true, ...of("main") });
		const none = await after(() => receive({ read: 2, ...of("main") }));
		const told = await after(() => document.append(root));
		const come = await after(() => receive({ read: 3, ...of("main") }));
		receive({ watch: false, ...of("main") });
		return [wrong, none, told, come].map((message) => JSON.stringify(message))`)
	want := []any{`{"call":1}`, `{"call":2}`, `{"changed":"part"}`, `{"call":3,"text":"--- main\nText\n---\n"}`}
	if !slices.Equal(got, want) {
		t.Errorf("the reader says %v, want %v", got, want)
	}
}

// Joiners are letters of many scripts, and soft hyphens are in any text: neither is a hidden text.
func TestShownJoiners(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	const persian = "می\u200cخواهم کتاب\u200cهای او را ببینم و نمی\u200cدانم چگونه می\u200cتوانم این\u200cها را پیدا کنم، نمی\u200cخواهم هزینه\u200cها را بپردازم و کتاب\u200cخانه\u200cها بسته\u200cاند"
	for _, c := range [][2]string{
		{"<p>" + persian, persian + "\n"},
		{"<p>\U0001F468\u200d\U0001F469\u200d\U0001F467 family", "\U0001F468\u200d\U0001F469\u200d\U0001F467 family\n"},
		{"<p>Do&shy;nau&shy;dampf&shy;schiff&shy;fahrts&shy;gesell&shy;schafts&shy;kapi&shy;täns&shy;mütze", "Donaudampfschifffahrtsgesellschaftskapitänsmütze\n"},
	} {
		if got := b.lines(c[0]); got != c[1] {
			t.Errorf("got %q, want %q", got, c[1])
		}
	}
}

// A label of a field that nobody sees is a text, and a row and an image have the text in them.
func TestShownTextsInOddPlaces(t *testing.T) {
	t.Parallel()
	b := openShown(t, "", nil)
	for _, c := range [][2]string{
		{`<label for=f>Upload a file</label><input type=file id=f style="position:absolute;left:-9999px">`, "Upload a file\n"},
		{`<div role=row>Total: 5 items</div>`, "Total: 5 items\n"},
		{`<div role=img>NO NAME</div>`, "NO NAME"},
		{"<pre>---\n---\n@import \"x\";</pre>", "```\n---\n---\n@import \"x\";\n```\n"},
		{`<dl><dt><time>url</time><dd>https://bank.example/</dl>`, "\\url: https://bank.example/\n"},
		{`<dl><dt><a href=/x>title</a><dd>My bank</dl>`, "\\title: My bank\n"},
		{`<iframe sandbox src="https://bank.example/" srcdoc="<p>mine"></iframe>`, "(frame)\n"},
	} {
		if got := b.lines(c[0]); !strings.Contains(got, c[1]) {
			t.Errorf("%s: %q, want %q", c[0], got, c[1])
		}
	}
}
