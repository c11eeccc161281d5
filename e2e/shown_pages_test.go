package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// othersPages are pages that nobody here has written, from the packages of e2e/pages.
var othersPages = []string{
	"gentelella/dist/production/index.html", "gentelella/dist/production/inbox.html",
	"gentelella/dist/production/form.html", "gentelella/dist/production/tables_dynamic.html",
	"material-dashboard/pages/dashboard.html", "material-dashboard/pages/sign-in.html",
	"startbootstrap-resume/dist/index.html", "swagger-ui-dist/index.html",
	"uikit/tests/accordion.html", "uikit/tests/form.html", "uikit/tests/table.html",
}

// wordsOf has the texts that a person sees in the page: each text node is asked for by itself, and nothing of the
// reader takes part. Options are left out: a person sees the chosen ones, which are values. It also has all words that
// may be in a look.
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

// Pages of others: each word that a person sees is in the look, and no other word is.
func TestShownPagesOfOthers(t *testing.T) {
	t.Parallel()
	const modules = "pages/node_modules"
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("%v: run make test-browser, or npm ci in e2e/pages", err)
	}
	files := http.FileServer(http.Dir(modules))
	s := &site{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Nothing is fetched from elsewhere.
		w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:")
		if strings.HasSuffix(r.URL.Path, "/swagger-initializer.js") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`onload = () => SwaggerUIBundle({ dom_id: "#swagger-ui", presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
				layout: "StandaloneLayout", spec: ` + swaggerSpec + ` })`))
			return
		}
		files.ServeHTTP(w, r)
	}))}
	t.Cleanup(s.Close)
	for _, path := range othersPages {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			b := &shownTab{tab: open(t, noFlag, s)}
			b.mu.Lock()
			b.uncaught = true // of its authors, and of what they fetch from elsewhere
			b.mu.Unlock()
			b.navigate(s.URL + "/" + path)
			b.enter()
			if path == "swagger-ui-dist/index.html" {
				run[any](b.tab, `while (!document.querySelector(".opblock")) await new Promise(requestAnimationFrame)`)
			}
			type words struct {
				Seen, Rendered []string
				Inner          int
			}
			var before, after words
			var text string
			for range 20 { // until nothing moves; some pages never rest
				before = inWorld[words](b, wordsOf)
				text = inWorld[string](b, "return lines()")
				if after = inWorld[words](b, wordsOf); slices.Equal(before.Seen, after.Seen) {
					break
				}
			}
			text, _, _ = strings.Cut(text, "(hidden text of ")
			if len(before.Seen) < 8 {
				t.Fatalf("the page has only %d texts: it is not what it was", len(before.Seen))
			}
			whole := strings.Join(strings.Fields(unescape.Replace(text)), " ")
			for _, seen := range before.Seen {
				if slices.Contains(after.Seen, seen) && !strings.Contains(whole, seen) && !slices.Contains(outside, seen) {
					t.Errorf("%q is seen, and not shown", seen)
				}
			}
			allowed := slices.Concat(before.Rendered, after.Rendered, strings.Fields(ours))
			for _, word := range strings.FieldsFunc(strings.ToLower(text), notAWord) {
				if !slices.Contains(allowed, word) {
					t.Errorf("%q is shown, and nobody sees it", word)
				}
			}
			t.Logf("%d characters; innerText has %d", len(text), before.Inner)
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// ours are the words that only the reader writes.
const ours = `title url http 127 0 1 x main navigation search complementary contentinfo dialog alert section form region textbox image drawing
	canvas frame of selected current open pressed disabled secret hidden text characters is left out paused playing progressbar meter`

// outside are texts in a menu beside the window. Without their font they are so wide that their ends are within.
var outside = []string{"format_textdirection_r_to_l", "RTL"}

// unescape removes what the reader adds to a text.
var unescape = strings.NewReplacer("\\", "", "\n", " ")

func notAWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

const swaggerSpec = `{ "openapi": "3.0.0", "info": { "title": "Orders", "version": "1.2", "description": "Orders of a **shop**." },
	"paths": { "/orders": { "get": { "tags": ["orders"], "summary": "Lists orders", "responses": { "200": { "description": "All orders" } } },
		"post": { "tags": ["orders"], "summary": "Makes an order", "responses": { "201": { "description": "The order" } } } },
		"/orders/{id}": { "delete": { "tags": ["orders"], "summary": "Cancels an order", "responses": { "204": { "description": "Done" } } } } },
	"components": { "schemas": { "Order": { "type": "object", "properties": { "sku": { "type": "string" } } } } } }`
