package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/tools/txtar"
)

// A shownTab is a tab whose page is read by dist/pagewire.shown.js, in a world of its own as a gateway's. A clock there
// passes only when a test says so.
type shownTab struct {
	*tab
	world runtime.ExecutionContextID
}

// openShown opens a page that knows nothing of Pagewire. Further documents of its site are in also, by path.
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
		// What the reader does is counted: elements whose style it asks for, its pauses, and what it listens to.
		globalThis.counts = { styles: 0, pauses: 0, told: 0, observed: 0 };
		const { getComputedStyle } = globalThis, { postMessage } = MessagePort.prototype;
		globalThis.getComputedStyle = (element) => (counts.styles++, getComputedStyle(element));
		MessagePort.prototype.postMessage = function (...args) { counts.pauses++; return postMessage.apply(this, args); };
		const { observe } = MutationObserver.prototype;
		MutationObserver.prototype.observe = function (...args) { counts.observed++; return observe.apply(this, args); };
		const { addEventListener } = EventTarget.prototype;
		EventTarget.prototype.addEventListener = function (...args) { counts.observed++; return addEventListener.apply(this, args); };
		`+string(script)+`;
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
}
