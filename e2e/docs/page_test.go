package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// runInPage runs an html or js block in a page of the shop, after the blocks that it continues and
// its setup.
func runInPage(t *testing.T, blocks []block, at int) {
	t.Helper()
	w, b := there(t), blocks[at]
	chain := chainOf(blocks, at)
	path := fmt.Sprintf("/blocks/%s/%d/", b.file, b.line)
	w.serveBlock(t, path, chain)
	tab, said := w.tab(t, patience)
	if err := chromedp.Do(tab, chromedp.Navigate("https://shop.example"+path)); err != nil {
		t.Fatalf("%v: %v", b, err)
	}
	failed, err := chromedp.Run(tab,
		chromedp.Evaluate[string](`globalThis.blockEnded`, chromedp.EvalAwaitPromise))
	if err == nil && failed != "" {
		said.add(failed)
	}
	if err != nil {
		said.add(err.Error())
	}
	if wanted := b.values["error"]; wanted != "" {
		if !strings.Contains(said.String(), wanted) {
			t.Errorf("%v was to fail with %q: %s", b, wanted, said)
		}
		return
	}
	text, err := chromedp.Run(
		tab,
		chromedp.Evaluate[string](`agent.readAll().then(JSON.stringify)`,
			chromedp.EvalAwaitPromise),
	)
	if err != nil {
		t.Fatalf("%v: an agent: %v", b, err)
	}
	var seen struct{ Read, Failed []string }
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Failed) > 0 || said.String() != "" {
		t.Errorf("%v: not readable: %q; the page says: %s\n%s", b, seen.Failed, said, b.code)
	}
}

func chainOf(blocks []block, at int) (chain []block) {
	for i := at; i >= 0; i-- {
		b := blocks[i]
		if b.language != "html" && (b.language != "js" || b.has("node")) || b.skipped() {
			continue
		}
		chain = append(chain, b)
		if !b.has("continues") {
			break
		}
	}
	slices.Reverse(chain)
	return chain
}

// serveBlock makes the shop serve a chain as a page. Its promise blockEnded resolves when its
// script has run.
func (w *world) serveBlock(t *testing.T, path string, chain []block) {
	t.Helper()
	var body, setup, script string
	for _, b := range chain {
		setup += b.setup["js"]
		body += b.setup["html"]
		if b.language == "html" {
			body += b.code
		} else {
			script += b.code + "\n"
		}
	}
	for _, part := range []*string{&body, &setup, &script} {
		*part = w.here(*part, w.gateway, w.gateway)
	}
	head := `<link rel="icon" href="data:,"><script src="/globals.js"></script><script src="/agent.js"></script>` +
		"<script>globalThis.blockEnded = new Promise((end) => { globalThis.endBlock = end; });\n" +
		"addEventListener('unhandledrejection', (event) => endBlock(String(event.reason)));\n" +
		"addEventListener('error', (event) => endBlock(event.message || 'a file failed'), true);\n" +
		setup + "</script>"
	module := strings.TrimSuffix(path, "/") + ".js"
	if script == "" {
		body += `<script>addEventListener("load", () => setTimeout(endBlock, 0, ""));</script>`
	} else {
		if !strings.Contains(body, "pagewire.js") {
			head += `<script src="/pagewire.js"></script>`
		}
		body += `<script type="module" src="` + html.EscapeString(module) + `"></script>`
		w.blocks.Store(module,
			javascript(w.bundle(t, chain[len(chain)-1], script+"\nglobalThis.endBlock('');\n")))
	}
	document := "<!doctype html><html lang=en><meta charset=utf-8><title>Block</title>" + head +
		body
	if lower := strings.ToLower(body); strings.Contains(lower, "<html") ||
		strings.Contains(lower, "<!doctype") {
		document = strings.Replace(body, "<head>", "<head>"+head, 1)
	}
	w.blocks.Store(path, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(out, document)
	}))
}

func javascript(code []byte) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/javascript")
		out.Write(code)
	}
}

// bundle makes one module of a script and its imports. Pagewire itself is the build's own file,
// because it looks for its other files in its own directory.
func (w *world) bundle(t *testing.T, b block, script string) []byte {
	t.Helper()
	result := api.Build(api.BuildOptions{
		Stdin: &api.StdinOptions{
			Contents:   script,
			ResolveDir: w.modules,
			Sourcefile: b.String(),
			Loader:     api.LoaderJS,
		},
		Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Platform: api.PlatformBrowser,
		NodePaths: w.nodePaths(),
		Plugins: []api.Plugin{{Name: "pagewire", Setup: func(p api.PluginBuild) {
			p.OnResolve(
				api.OnResolveOptions{Filter: `^pagewire$`},
				func(api.OnResolveArgs) (api.OnResolveResult, error) {
					return api.OnResolveResult{Path: "/pagewire.mjs", External: true}, nil
				},
			)
		}}},
	})
	if len(result.Errors) > 0 {
		t.Fatalf("%v: %s", b, result.Errors[0].Text)
	}
	return result.OutputFiles[0].Contents
}

// tab opens a tab that ends with the test or after `within`, and collects its page's complaints.
func (w *world) tab(t *testing.T, within time.Duration) (context.Context, *complaints) {
	t.Helper()
	ctx, cancel := context.WithTimeout(w.pages, within)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	said := new(complaints)
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(tab, said.record); err != nil {
		t.Fatal(err)
	}
	return tab, said
}

// complaints are errors and warnings of a page.
type complaints struct {
	mu    sync.Mutex
	lines []string
}

func (c *complaints) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, "\n")
}

func (c *complaints) record(event any) {
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		text := event.ExceptionDetails.Text
		if event.ExceptionDetails.Exception != nil {
			text += " " + event.ExceptionDetails.Exception.Description
		}
		c.add(text)
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError {
			line := "console.error:"
			for _, arg := range event.Args {
				line += " " + string(arg.Value) + arg.Description
			}
			c.add(line)
		}
	case *cdplog.EventEntryAdded:
		// A service's own gateway cannot be reached here.
		line := event.Entry.Text + " " + event.Entry.URL
		if event.Entry.Level == cdplog.EntryLevelError && !strings.Contains(line, "live.example") {
			c.add(line)
		}
	}
}

// runInNode runs a module with Node, in the directory with the packages.
func runInNode(t *testing.T, b block) {
	t.Helper()
	w := there(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := testcmd.CommandContext(ctx, "node", "--input-type=module", "-e", b.setup["js"]+b.code)
	cmd.Dir = w.modules
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", b, err, out)
	}
}
