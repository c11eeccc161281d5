package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// othersPages are pages that nobody here has written. The first are from the packages of e2e/pages.
var othersPages = []string{
	"gentelella/dist/production/index.html", "gentelella/dist/production/inbox.html",
	"gentelella/dist/production/form.html", "gentelella/dist/production/tables_dynamic.html",
	"material-dashboard/pages/dashboard.html", "material-dashboard/pages/sign-in.html",
	"startbootstrap-resume/dist/index.html", "swagger-ui-dist/index.html",
	"uikit/tests/accordion.html", "uikit/tests/form.html", "uikit/tests/table.html",
}

// morePages are read by make test-pages. The last are from packages of Debian, which that unpacks
// in bin/pages.
var morePages = []string{
	"gentelella/dist/production/calendar.html", "gentelella/dist/production/chat.html",
	"gentelella/dist/production/invoice.html", "gentelella/dist/production/kanban.html",
	"gentelella/dist/production/pricing_tables.html", "gentelella/dist/production/projects.html",
	"material-dashboard/pages/billing.html", "material-dashboard/pages/tables.html",
	"uikit/tests/comment.html", "uikit/tests/tab.html",
	"bash-doc/usr/share/doc/bash/bashref.html",
	"debian-faq/usr/share/doc/debian/FAQ/pkgtools.en.html",
	"debian-policy/usr/share/doc/debian-policy/policy.html/ch-relationships.html",
	"exim4-doc-html/usr/share/doc/exim4-doc-html/spec_html/ch-the_pipe_transport.html",
	"git-doc/usr/share/doc/git-doc/git-show.html",
	"maint-guide/usr/share/doc/maint-guide/html/dother.en.html",
	"nodejs-doc/usr/share/doc/nodejs/api/path.html",
	"python-flask-doc/usr/share/doc/python-flask-doc/html/testing.html",
	"sqlite3-doc/usr/share/doc/sqlite3/faq.html",
	"xapian-doc/usr/share/doc/xapian-doc/apidoc/html/classXapian_1_1Query-members.html",
	"xapian-doc/usr/share/doc/xapian-doc/sorting.html",
}

// wordsOf has the texts that a person sees in the page: each text node is asked for by itself, and
// nothing of the reader takes part. Options are left out: a person sees the chosen ones, which are
// values. It also has all words that may be in a look.
const wordsOf = `
	const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
	const styled = { opacityProperty: true, visibilityProperty: true };
	const isSmall = (e) => e && (e.clientWidth <= 1 || e.clientHeight <= 1) && getComputedStyle(e).overflow !== "visible" && getComputedStyle(e).display !== "inline" || e && isSmall(e.parentElement);
	const isAway = ({ width, height, right, bottom }) => width <= 1 || height <= 1 || right + scrollX < 0 || bottom + scrollY < 0;
	const hasWords = /[\p{L}\p{N}]/u;
	const seen = [], rendered = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; (node = walker.nextNode()); ) {
		const parent = node.parentElement;
		if (!hasWords.test(node.data) || parent.closest("script,style,noscript,template,option,textarea,title,desc,object")) continue;
		if (!parent.checkVisibility()) continue;
		rendered.push(...words(node.data));
		const range = new Range();
		range.selectNodeContents(node);
		if (parent.checkVisibility(styled) && !isSmall(parent) && !isAway(range.getBoundingClientRect())) seen.push(node.data.replace(/\s+/g, " ").trim());
	}
	// What may be a name or a value.
	for (const e of document.querySelectorAll("*")) {
		for (const name of ["aria-label", "alt", "title", "placeholder", "name", "type", "aria-valuenow", "aria-valuetext", "role"]) rendered.push(...words(e.getAttribute(name) ?? ""));
		rendered.push(...words(String(e.value ?? "")), ...words(e.localName));
		if (e.localName === "option" || e.localName === "title") rendered.push(...words(e.textContent));
	}
	rendered.push(...words(document.body.innerText)); // words that stand together
	return { seen, rendered, inner: document.body.innerText.length };`

// wholeText reads on where a look ends.
const wholeText = `
	let text = "";
	for (let from = 0; from !== undefined; ) {
		const look = await read({ from });
		const [end, next] = look.match(/\(the page goes on: read from (\d+)\)\n/) ?? [];
		text += end ? look.slice(0, look.indexOf(end)) : look;
		from = next && +next;
	}
	return text.split("\n").slice(2).join("\n");`

// Pages of others: each word that a person sees is in the look, and no other word is. With
// PAGES=all these are all pages, and the log has the sizes of the looks of two peers.
func TestShownPagesOfOthers(t *testing.T) {
	t.Parallel()
	const modules, debian = "pages/node_modules", "../bin/pages"
	pages, all := othersPages, os.Getenv("PAGES") == "all"
	if all {
		pages = slices.Concat(pages, morePages)
	}
	for _, path := range pages {
		dir := modules
		if strings.Contains(path, "/usr/share/") {
			dir = debian
		}
		if _, err := os.Stat(dir + "/" + path); err != nil {
			t.Fatalf("%v: make test-browser and make test-pages install the packages of such pages",
				err)
		}
	}
	npm, unpacked := http.FileServer(http.Dir(modules)), http.FileServer(http.Dir(debian))
	atRoot := http.FileServer(http.Dir(modules + "/gentelella/dist"))
	s := &site{Server: httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Nothing is fetched from elsewhere.
			w.Header().
				Set("Content-Security-Policy",
					"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:")
			switch {
			case strings.HasSuffix(r.URL.Path, "/swagger-initializer.js"):
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write([]byte(`onload = () => SwaggerUIBundle({ dom_id: "#swagger-ui", presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
				layout: "StandaloneLayout", spec: ` + swaggerSpec + ` })`))
			case strings.Contains(r.URL.Path, "/usr/share/"):
				unpacked.ServeHTTP(w, r)
			case slices.Contains([]string{"assets", "images", "js"},
				strings.Split(r.URL.Path, "/")[1]):
				atRoot.ServeHTTP(w, r)
			default:
				npm.ServeHTTP(w, r)
			}
		}))}
	t.Cleanup(s.Close)
	opens, beside := func(t *testing.T) *tab { return open(t, noFlag, s) },
		func(*tab) string { return "" }
	if all {
		chromium, url := startChromium(t)
		opens = func(t *testing.T) *tab { return openIn(t, chromium, s) }
		beside = peersLooks(t, url)
	}
	for _, path := range pages {
		t.Run(path, func(t *testing.T) {
			if !all { // a peer complains of a tab that closes meanwhile
				t.Parallel()
			}
			b := &shownTab{tab: opens(t)}
			b.mu.Lock()
			b.uncaught = true // of its authors, and of what they fetch from elsewhere
			b.mu.Unlock()
			b.navigate(s.URL + "/" + path)
			b.enter()
			if path == "swagger-ui-dist/index.html" {
				run[any](b.tab,
					`while (!document.querySelector(".opblock")) await new Promise(requestAnimationFrame)`)
			}
			type words struct {
				Seen, Rendered []string
				Inner          int
			}
			var before, after words
			var text string
			for range 20 { // until nothing moves; some pages never rest
				before = inWorld[words](b, wordsOf)
				text = inWorld[string](b, wholeText)
				if after = inWorld[words](b, wordsOf); slices.Equal(before.Seen, after.Seen) {
					break
				}
			}
			text, _, _ = strings.Cut(text, "(hidden text of ")
			if len(before.Seen) < 8 {
				t.Fatalf("the page has only %d texts: it is not what it was", len(before.Seen))
			}
			whole := flat(text)
			for _, seen := range before.Seen {
				if slices.Contains(after.Seen, seen) && !strings.Contains(whole, flat(seen)) &&
					!slices.Contains(outside, seen) {
					t.Errorf("%q is seen, and not shown", seen)
				}
			}
			allowed := slices.Concat(before.Rendered, after.Rendered, strings.Fields(ours))
			for _, word := range strings.FieldsFunc(strings.ToLower(text), notAWord) {
				if !slices.Contains(allowed, word) {
					t.Errorf("%q is shown, and nobody sees it", word)
				}
			}
			t.Logf("%s: %d bytes; innerText has %d characters%s", path, len(text), before.Inner,
				beside(b.tab))
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// peersLooks connects two peers to a browser. The result returns the sizes of their looks at a tab.
func peersLooks(t *testing.T, browser string) func(*tab) string {
	tools := map[string]string{"chrome-devtools-mcp": "take_snapshot",
		"playwright-mcp": "browser_snapshot"}
	address := "http://" + strings.Split(browser, "/")[2]
	var agents []*peerAgent
	for _, p := range peers {
		agents = append(agents, connectPeer(t, p, address))
	}
	var one sync.Mutex
	return func(b *tab) (sizes string) {
		one.Lock()
		defer one.Unlock()
		for i, p := range peers {
			a := &peerAgent{t: b.t, session: agents[i].session}
			p.choose(a, run[string](b, "return location.href")+")")
			look := a.tool(tools[p.name], map[string]any{"pageId": a.page})
			sizes += fmt.Sprintf("; %s has %d bytes", p.name, len(look))
		}
		return sizes
	}
}

// ours are the words that only the reader writes.
const ours = `title url http 127 0 1 x main navigation search complementary contentinfo dialog alert section form region textbox image drawing
	canvas frame of selected current open pressed disabled secret hidden text characters is left out paused playing progressbar meter`

// outside are texts in a menu beside the window. Without their font they are so wide that their
// ends are within.
var outside = []string{"format_textdirection_r_to_l", "RTL"}

// flat is a text without line breaks, and without the backslashes that the reader adds.
func flat(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\\", "")), " ")
}

func notAWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

const swaggerSpec = `{ "openapi": "3.0.0", "info": { "title": "Orders", "version": "1.2", "description": "Orders of a **shop**." },
	"paths": { "/orders": { "get": { "tags": ["orders"], "summary": "Lists orders", "responses": { "200": { "description": "All orders" } } },
		"post": { "tags": ["orders"], "summary": "Makes an order", "responses": { "201": { "description": "The order" } } } },
		"/orders/{id}": { "delete": { "tags": ["orders"], "summary": "Cancels an order", "responses": { "204": { "description": "Done" } } } } },
	"components": { "schemas": { "Order": { "type": "object", "properties": { "sku": { "type": "string" } } } } } }`
