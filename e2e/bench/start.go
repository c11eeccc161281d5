package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
)

// A library is what a page loads by one script tag to offer resources to agents in it.
type library struct {
	name string
	path string // of the script, which is used as it is
	// transport is what the page's agent connects by, in the words of client.
	transport string
}

var libraries = []library{
	{"pagewire", "dist/pagewire.js", "pagewire.connect()"},
	{"@mcp-b/global 5.1.0", "e2e/bench/node_modules/@mcp-b/global/dist/index.iife.js", tabTransport},
}

// tabTransport is @mcp-b's, which Pagewire's pages answer too.
const tabTransport = "new client.TabClientTransport({ targetOrigin: location.origin })"

// client is the agent: the official client, and @mcp-b's transport for it.
const client = `
	export { Client } from "@modelcontextprotocol/client";
	export { TabClientTransport } from "@mcp-b/transports";`

// register is the first use of the API; it throws where that cannot be called.
const register = `document.modelContext.registerResource({ uri: location.origin + "/state", name: "State", mimeType: "text/plain", read: async () => ({ contents: [{ uri: location.origin + "/state", text: "text" }] }) });`

// there is less: it throws where the API is not there.
const there = `if (typeof document.modelContext.registerResource !== "function") throw new Error("there is no API");`

// evaluate gives the time from the start of a script, its compilation included, until something more has run, in one go
// on a page that has come to rest: on one that is loading, what else the browser does then is most of the time.
const evaluate = `(async () => {
	await new Promise((done) => setTimeout(done, 300));
	const script = document.createElement("script");
	script.text = %s;
	const start = performance.now();
	document.head.append(script);
	%s
	return performance.now() - start;
})()`

// connect gives the time from nothing to the list of the page's resources.
const connect = `(async () => {
	const start = performance.now();
	const agent = new client.Client({ name: "bench", version: "1" });
	await agent.connect(%s);
	const { resources } = await agent.listResources();
	const time = performance.now() - start;
	if (resources.length !== 1) throw new Error("listed " + resources.length + " resources instead of one");
	return time;
})()`

// starts are about how soon a page can use the API, and how soon an agent has what the page offers.
var starts = []struct {
	name string
	goal float64
	// tag says that the page has the library's script tag; else the expression evaluates its source.
	tag        bool
	expression func(l library, source string) string
}{
	{"start of the script to API there", 3, false, func(_ library, source string) string { return fmt.Sprintf(evaluate, source, there) }},
	{"start of the script to API used", 0, false, func(_ library, source string) string { return fmt.Sprintf(evaluate, source, register) }},
	{"script tag to API used, with its fetch", 0, true, func(library, string) string { return "used - before" }},
	{"first agent: connect to first list", 150, true, func(l library, _ string) string { return fmt.Sprintf(connect, l.transport) }},
	{"the same, over window.postMessage", 0, true, func(library, string) string { return fmt.Sprintf(connect, tabTransport) }},
	{"both: script tag to API, connect to first list", 0, true, func(l library, _ string) string {
		return fmt.Sprintf(connect, l.transport) + ".then((time) => time + used - before)"
	}},
}

// startRows makes rows of starts. Every page is the first of a fresh profile at an origin of its own: nothing is cached,
// neither files nor compiled code.
func startRows() ([]row, error) {
	built := api.Build(api.BuildOptions{
		Stdin:      &api.StdinOptions{Contents: client, ResolveDir: "e2e/bench"},
		Bundle:     true,
		Format:     api.FormatIIFE,
		GlobalName: "client",
		Target:     api.ES2022,
	})
	if len(built.Errors) > 0 {
		return nil, fmt.Errorf("bundle the client: %s (make bench installs the packages)", built.Errors[0].Text)
	}
	var rows []row
	for _, s := range starts {
		r := row{name: s.name, unit: "ms", goal: s.goal}
		for _, l := range libraries {
			text, err := os.ReadFile(l.path)
			if err != nil {
				return nil, fmt.Errorf("%w (make bench builds and installs it)", err)
			}
			source, err := json.Marshal(string(text)) // it escapes what would end a script
			if err != nil {
				return nil, err
			}
			tag := ""
			if s.tag {
				tag = `<script src="/` + l.path + `"></script>`
			}
			r.contenders = append(r.contenders, contender{l.name, func(ctx context.Context) (float64, error) {
				return onPage(ctx, tag, string(built.OutputFiles[0].Contents), s.expression(l, string(source)))
			}})
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// onPage opens a page, with a script tag or empty, and gives what an expression is there once it is loaded. The page itself
// reports it, and no debugger is attached: with one, the first postMessage alone takes 2 ms more, for its stack trace.
func onPage(ctx context.Context, tag, client, expression string) (float64, error) {
	html := `<!doctype html><title>bench</title><link rel=icon href=data:,>`
	if tag != "" {
		html += `<script>const before = performance.now();</script>` + tag + `<script>` + register + `const used = performance.now();</script><script src="/client.js"></script>`
	}
	html += `<script>addEventListener("load", async () => {
		let result;
		try { result = String(await ` + expression + `); } catch (error) { result = String(error); }
		fetch("/result", { method: "POST", body: result });
	})</script>`
	results := make(chan string, 1)
	files := http.FileServer(http.Dir("."))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Isolated pages have a clock of 5 us; all others one of 100.
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, html)
		case "/client.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, client)
		case "/result":
			text, _ := io.ReadAll(r.Body)
			results <- string(text)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	defer server.Close()

	profile, err := chromedp.CallBrowser(ctx, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		return 0, err
	}
	id := profile.BrowserContextID
	defer chromedp.CallBrowser(ctx, target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: id})
	if _, err := chromedp.CallBrowser(ctx, target.CreateTarget, target.CreateTargetParams{URL: server.URL, BrowserContextID: id}); err != nil {
		return 0, err
	}
	select {
	case text := <-results:
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || value <= 0 {
			return 0, fmt.Errorf("the page reports %q", text)
		}
		return value, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("the page has not reported: %w", ctx.Err())
	}
}
