package e2e

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// globalServer is @mcp-b/global: WebMCP with an MCP server of its own and another registerResource.
func globalServer(t *testing.T) string { return inline(t, "global") }

// With any other WebMCP, under any policy, and with any place for the core: Pagewire works, or an
// error has instructions. Nothing fails in silence.
func TestMatrix(t *testing.T) {
	t.Parallel()
	const tag = `<script src="/pagewire.js"></script>`
	server := globalServer(t)
	type company struct {
		name      string
		mode      mode
		head, tag string
		said      string // the message to the developer if Pagewire's methods are not the page's
	}
	companies := []company{
		{"native off", noFlag, "", tag, ""},
		{"native on", native, "", tag, ""},
		{"mcp-b first", noFlag, server, tag, "registerResource is defined by another library"},
		{"mcp-b after", noFlag, "", tag + server, ""},
		{"mcp-b first, native on", native, server, tag,
			"registerResource is defined by another library"},
		{"polyfill first", noFlag, polyfill(t), tag, ""},
		{"polyfill after", noFlag, "", tag + polyfill(t), ""},
		{"mcp-b after, native on", native, "", tag + server,
			"registerResource is defined by another library"},
	}
	const wasm = " 'wasm-unsafe-eval'"
	policies := []struct {
		name, onPage, inWorker string // the policy with wasm on the page, and without it
		all                    bool   // on every response, also the worker's
		refused                string // a part of the error if wasm can run nowhere
	}{
		{"no policy", "", "", false, ""},
		{"script-src on the document", "script-src 'self' 'nonce-a'" + wasm,
			"script-src 'self' 'nonce-a'", false, ""},
		{"script-src on every response", "script-src 'self' 'nonce-a'" + wasm,
			"script-src 'self' 'nonce-a'", true,
			"'wasm-unsafe-eval'"},
		{"nonce and strict-dynamic", "script-src 'nonce-a' 'strict-dynamic'" + wasm,
			"script-src 'nonce-a' 'strict-dynamic'", false, ""},
		{"Trusted Types", "script-src 'self' 'nonce-a'" + wasm +
			"; require-trusted-types-for 'script'; trusted-types",
			"script-src 'self' 'nonce-a'; require-trusted-types-for 'script'; trusted-types pagewire", false, ""},
		{"Trusted Types without our policy", "",
			"script-src 'self' 'nonce-a'; require-trusted-types-for 'script'; " +
				"trusted-types", false, "trusted-types pagewire"},
	}
	for _, company := range inThisEngine(companies, func(c company) mode { return c.mode }) {
		for _, policy := range policies {
			for _, worker := range []bool{false, true} {
				csp, place := policy.onPage, "on the page"
				if worker {
					csp, place = policy.inWorker, "in a worker"
				}
				if csp == "" && policy.name != "no policy" {
					continue // that policy only changes the worker
				}
				// Only the browser decides where the core may run. But another WebMCP may need
				// Trusted Types, too. A case costs a second of processor time.
				if company.name != "native off" &&
					policy.name != map[bool]string{false: "no policy",
						true: "Trusted Types"}[worker] {
					continue
				}
				t.Run(company.name+"/"+policy.name+"/"+place, func(t *testing.T) {
					t.Parallel()
					head := company.head
					if worker && csp == "" {
						// No policy forbids wasm here: the page's own WebAssembly does, with the
						// browser's exception.
						head = `<script>WebAssembly.compile = WebAssembly.compileStreaming = async () => { throw new WebAssembly.CompileError("forbidden"); }</script>` + head
					}
					p := page{head: head, tag: company.tag, nonce: "a", all: policy.all, script: `
						const uri = location.origin + "/state", errors = [];
						pagewire.addEventListener("error", ({ detail }) => errors.push(detail.message));
						document.modelContext.registerResource({ uri, name: "State", read: async () => ({ contents: [{ uri, text: "text" }] }) });
						document.modelContext.registerTool({ name: "double", description: "d", inputSchema: { type: "object" }, execute: ({ x }) => ({ twice: 2 * x }) });`}
					if csp != "" {
						p.headers = map[string]string{"Content-Security-Policy": csp}
					}
					s := serve(t, p)
					b := open(t, company.mode, s)
					refused := worker && policy.refused != ""
					b.expectations(fmt.Sprintf(`
						const refused = %t, foreign = %t;
						const tool = (await document.modelContext.getTools()).find((t) => t.name === "double");
						// For the browser's own an object, for polyfills of the older draft text.
						const answer = await document.modelContext.executeTool(tool, { x: 2, toString: () => '{"x":2}' });
						if (refused) {
							const outcome = await agent.connect("legacy").then((a) => a.list()).then(() => "listed", String);
							expect("it fails", outcome === "listed", false);
							for (const part of [%q, "pagewire.worker.js"]) expectPart("what it names", errors, part);
							return agent.takeUnexpected();
						}
						expect("the tool, to the page", answer, '{"twice":4}');
						const a = await agent.connect("legacy");
						expect("listed", (await a.list()).length, foreign ? 0 : 1);
						if (!foreign) {
							await a.subscribe(uri);
							document.modelContext.notifyResourceUpdated(uri);
							await agent.until(() => a.updated.length);
							expect("read", await a.read(uri), "text");
							expect("errors", errors, []);
						}
						expect("the tool, to a client", await a.use("double", { x: 3 }), '{"twice":6}');
						// @mcp-b's client, answered by any server: the other library's finds its
						// resource.
						expect("by the window's channel", await agent.connect("legacy", agent.tab()).then((a) => a.list()).then((list) => list.length, String), 1);
					`, refused, company.said != "", policy.refused))
					if refused {
						if !b.said("pagewire: no core from") {
							t.Error("the developer was not told")
						}
						return
					}
					if !b.said(company.said) && company.said != "" {
						t.Errorf("the developer was not told %q", company.said)
					}
					if s.fetched("/pagewire.worker.js") != worker {
						t.Errorf("the core is in the worker: %v", !worker)
					}
				})
			}
		}
	}
}

// A file that does not match the page's integrity value is refused, and the error names it. The
// build's values work.
func TestIntegrity(t *testing.T) {
	t.Parallel()
	of := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha512.Sum384(text)
		return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	for _, c := range []struct{ loader, wasm, want string }{
		{"pagewire.core.js", "pagewire.wasm", "text"},
		{"pagewire.js", "pagewire.wasm", "pagewire: no core from .*/pagewire.core.js: "},
		{"pagewire.core.js", "pagewire.js",
			"could not fetch .*/pagewire.wasm: .* not what the integrity value says"},
	} {
		b := open(t, noFlag, serve(t, page{
			head: fmt.Sprintf(
				`<script type="importmap">{ "integrity": { "/pagewire.core.js": %q } }</script>`,
				of(c.loader)),
			tag: fmt.Sprintf(`<script src="/pagewire.js" integrity=%q data-integrity=%q></script>`,
				of("pagewire.js"),
				of(c.wasm)),
			script: `navigator.modelContext.registerResource({ uri: location.origin + "/state", name: "State", read: () => "text" })`,
		}))
		got := run[string](b, `
			const told = new Promise((done) => pagewire.addEventListener("error", ({ detail }) => done(detail.message)));
			const reads = agent.connect("modern").then((a) => a.read(location.origin + "/state"));
			return Promise.race([reads.catch(() => told), told]);
		`)
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
