//go:build ecosystem

package e2e

// The npm package in the bundlers, the servers and the tests of others, each as its own documents
// say and without any setting for Pagewire. ecosystem/ has the tools, and the app that they build.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// inEcosystem returns the path of a file of ecosystem/.
func inEcosystem(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("ecosystem", filepath.FromSlash(name)))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v; make test-ecosystem installs it", err)
	}
	return path
}

// ecosystemApp returns the directory of an app of ecosystem/ with the package installed.
func ecosystemApp(t *testing.T, name string) string {
	t.Helper()
	app := t.TempDir()
	if err := os.CopyFS(app, os.DirFS("ecosystem/"+name)); err != nil {
		t.Fatal(err)
	}
	installPackage(t, app)
	return app
}

// ofScripts leads to packages of js/, whose peers differ from those here.
const ofScripts = "../../../js/node_modules/"

// linked links packages of ecosystem/ into an app.
func linked(t *testing.T, app string, names ...string) {
	t.Helper()
	for _, name := range names {
		from := inEcosystem(t, "node_modules/"+name)
		to := filepath.Join(app, "node_modules",
			filepath.FromSlash(strings.TrimPrefix(name, ofScripts)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755),
			os.Symlink(from, to)); err != nil {
			t.Fatal(err)
		}
	}
}

// bundledBy builds an entry of the app, and returns the directory of the bundle.
func bundledBy(t *testing.T, app, tool, format, entry string) string {
	t.Helper()
	out := filepath.Join(app,
		strings.NewReplacer(",", "-", ".", "-").Replace(tool+" "+format+" "+entry))
	command(t, app, "node", inEcosystem(t, "build.mjs"), tool, format, entry, out)
	return out
}

// A page of each bundler: an agent in it lists and reads its resources, in a plain browser and in
// one with the extension. Some bundlers leave the core's files in the package. These are copied to
// the bundle's directory, the only step that the manual asks for.
func TestEcosystemPages(t *testing.T) {
	app := ecosystemApp(t, "app")
	x := extend(t, newHome(t), false)
	for _, of := range []struct {
		tool, format, entry string
		copied              bool
	}{
		{"esbuild", "iife", "page.js", true},
		{"esbuild", "esm", "page.js", true},
		{"rollup", "iife", "page.js", true},
		{"rollup", "es", "page.js", true},
		{"webpack", "web", "page.js", false},
		{"vite", "web", "index.html", false},
		{"parcel", "web", "index.html", false},
	} {
		t.Run(of.tool+" "+of.format, func(t *testing.T) {
			out := bundledBy(t, app, of.tool, of.format, of.entry)
			if of.copied {
				for _, name := range []string{"pagewire.core.js", "pagewire.wasm",
					"pagewire.worker.js"} {
					text, err := os.ReadFile(filepath.Join(app, "node_modules/pagewire", name))
					if err == nil {
						err = os.WriteFile(filepath.Join(out, name), text, 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			s := serveApp(t, out)
			for name, b := range map[string]*tab{"plain": open(t, noFlag, s), "with the extension": x.tab(s.URL)} {
				if got := readByAgentInPage(t, b); got != "/state text, /store stored" {
					t.Errorf("%s: an agent in the page reads %q", name, got)
				}
			}
			if s.fetched("(missing)") {
				t.Errorf("requests: %q", s.requests)
			}
		})
	}
}

// readByAgentInPage connects an agent in the page, and returns each path that it lists with its
// content.
func readByAgentInPage(t *testing.T, b *tab) string {
	t.Helper()
	testkit.Eventually(t, "the page's script has run", func() bool {
		there, err := try[bool](b, `return "imported" in globalThis`)
		return there && err == nil
	})
	return run[string](b, fmt.Sprintf(`
		const agent = (() => { %s; return agent; })();
		const a = await agent.connect("modern");
		const all = [];
		for (const uri of (await a.list()).sort()) all.push(new URL(uri).pathname + " " + await a.read(uri));
		return all.join(", ");
	`, agentScript))
}

// found are the findings of app/server.js.
type found struct {
	Same                          bool
	Connect, Others, Core, Shares string
}

// A server's bundle, or a test's: importing the package throws nowhere, connect() names the missing
// part, and all other calls do nothing. With a server's own conditions the bundle has nothing of
// the page layer.
func TestEcosystemServers(t *testing.T) {
	app := ecosystemApp(t, "app")
	node := func(t *testing.T, script string) *exec.Cmd {
		cmd := testcmd.CommandContext(t.Context(), "node", "--input-type=module", "-e", script)
		cmd.Dir = app
		return cmd
	}
	// Bundles by their format. inert means that the format has a server's conditions.
	const print = `; console.log(JSON.stringify(globalThis.found))`
	for _, of := range []struct {
		place, tool, format string
		inert               bool
	}{
		{"node", "esbuild", "iife", false}, // esbuild's default format
		{"node", "esbuild", "cjs", false},
		{"node", "esbuild", "node", true},
		{"node", "rollup", "cjs", true},
		{"node", "webpack", "node", true},
		{"node", "vite", "ssr", false}, // leaves the import to Node
		{"workerd", "esbuild", "esm", false},
		{"workerd", "esbuild", "esm,workerd,worker,browser", true}, // Wrangler's conditions
		{"edge", "esbuild", "iife", false},
		{"edge", "esbuild", "iife,edge-light", true},
		{"jsdom", "esbuild", "iife", false},
		{"happy-dom", "esbuild", "iife", false},
	} {
		t.Run(of.place+" "+of.tool+" "+of.format, func(t *testing.T) {
			file := filepath.Join(bundledBy(t, app, of.tool, of.format, "server.js"), "bundle.js")
			cmd := testcmd.CommandContext(t.Context(), inEcosystem(t, "node_modules/.bin/node"), inEcosystem(t, "run.mjs"),
				of.place, file)
			switch {
			case of.tool == "vite":
				cmd = node(t, fmt.Sprintf("await import(%q)", filepath.Join(filepath.Dir(file), "server.mjs"))+print)
			case of.place == "node":
				script := strings.TrimSuffix(file, ".js") + ".cjs"
				if err := os.Rename(file, script); err != nil {
					t.Fatal(err)
				}
				file = script
				cmd = node(t, fmt.Sprintf("await import(%q)", file)+print)
			}
			finds(t, cmd, !of.inert && (of.place == "jsdom" || of.place == "happy-dom"))
			text, err := os.ReadFile(file)
			if of.inert && (err != nil || strings.Contains(string(text), "pagewire.wasm") || len(text) > 8<<10) {
				t.Errorf("its bundle has %d bytes, or some of the page layer (%v)", len(text), err)
			}
		})
	}
	t.Run("node", func(t *testing.T) { finds(t, node(t, `await import("./server.js")`+print), false) })
	t.Run("node 22", func(t *testing.T) {
		cmd := node(t, `await import("./server.js")`+print)
		cmd.Path = inEcosystem(t, "node_modules/.bin/node")
		finds(t, cmd, false)
	})
	t.Run("node, each export", func(t *testing.T) {
		cmd := node(t, `import { createRequire } from "node:module";
			const require = createRequire(process.cwd() + "/");
			for (const name of ["", "/store", "/elements", "/iife"]) {
				await import("pagewire" + name);
				require("pagewire" + name);
			}
			console.log(Object.getOwnPropertyNames(globalThis).filter((name) => /pagewire|modelcontext/i.test(name)).join())`)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "" {
			t.Errorf("%v: %s", err, out)
		}
	})
	for _, environment := range []string{"node", "jsdom"} {
		t.Run("jest "+environment, func(t *testing.T) {
			cmd := jest(t, app, inEcosystem(t, "node_modules/jest-environment-"+environment))
			finds(t, cmd, environment == "jsdom")
		})
	}
}

// jest returns the command that runs the tests of an app by Jest.
func jest(t *testing.T, app, environment string) *exec.Cmd {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"testEnvironment": environment,
		"testMatch":       []string{"**/*[ap].test.js"}, // app and shop: each place has its own tests
		"transform": map[string]any{`\.js$`: []any{inEcosystem(t, "node_modules/babel-jest"), map[string]any{
			"presets": []any{[]any{inEcosystem(t, "node_modules/@babel/preset-env"),
				map[string]any{"targets": map[string]any{"node": "current"}}}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testcmd.CommandContext(t.Context(), "node", inEcosystem(t, "node_modules/jest/bin/jest.js"), "--ci",
		"--rootDir", app, "--config", string(config))
}

// The tests of a shop (ecosystem/testing) by pagewire/testing. Their agent is at the real engine.
// Only a browser's page needs a network.
func TestEcosystemTesting(t *testing.T) {
	app := ecosystemApp(t, "testing")
	linked(t, app, "vitest", "jsdom", "happy-dom", "@playwright/test", "puppeteer-core")
	passes := func(name string, cmd func(t *testing.T) *exec.Cmd) {
		t.Run(name, func(t *testing.T) {
			c := cmd(t)
			c.Dir = app
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
	}
	node := func(t *testing.T, args ...string) *exec.Cmd {
		return testcmd.CommandContext(t.Context(), inEcosystem(t, "node_modules/.bin/node"), args...)
	}
	for _, dom := range []string{"jsdom", "happy-dom"} {
		passes("vitest "+dom, func(t *testing.T) *exec.Cmd {
			return node(t, inEcosystem(t, "node_modules/vitest/vitest.mjs"), "run", "--globals", "--environment", dom,
				"shop.test.js")
		})
	}
	passes("jest", func(t *testing.T) *exec.Cmd {
		return jest(t, app, inEcosystem(t, "node_modules/jest-environment-jsdom"))
	})
	passes("node", func(t *testing.T) *exec.Cmd { return node(t, "--test", "node.test.js") })
	s := serveApp(t, app)
	chromium, err := browser.Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, driver := range []string{"@playwright/test", "puppeteer-core"} {
		passes(driver, func(t *testing.T) *exec.Cmd { return node(t, "driven.js", driver, chromium, s.URL) })
	}
	passes("playwright test", func(t *testing.T) *exec.Cmd {
		c := node(t, "node_modules/@playwright/test/cli.js", "test")
		c.Env = append(os.Environ(), "SHOP="+s.URL, "CHROMIUM="+chromium)
		return c
	})
	t.Run("without a page", func(t *testing.T) {
		c := node(t, "--input-type=module", "-e", `await (await import("pagewire/testing")).watch()`)
		c.Dir = app
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no page to watch") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// The package's exports lead each kind of import to a file of that kind with types, for the tools
// that look for types. A file that is only a module also serves require, since Node 22. Node 10's
// resolution knows no exports.
func TestEcosystemExports(t *testing.T) {
	app := ecosystemApp(t, "app")
	packed, err := filepath.Glob(filepath.Join(cmp.Or(os.Getenv("RELEASE"), app), "pagewire-[0-9]*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("%q, %v", packed, err)
	}
	for _, args := range [][]string{
		{"attw", packed[0], "--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm"},
		{"publint", "--strict", packed[0]},
	} {
		t.Run(args[0], func(t *testing.T) {
			args[0] = inEcosystem(t, "node_modules/.bin/"+args[0])
			command(t, app, inEcosystem(t, "node_modules/.bin/node"), args...)
		})
	}
}

// finds runs a command that prints the findings of app/server.js among other lines. `dom` means
// that a document exists.
func finds(t *testing.T, cmd *exec.Cmd, dom bool) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := string(out)
	at := strings.Index(text, `{"same":`)
	if at < 0 {
		t.Fatalf("it finds nothing: %s", text)
	}
	var got found
	if err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	const says = "Error: pagewire: there is no page here (a server, a worker or a test"
	if !got.Same || !strings.HasPrefix(got.Connect, says) || got.Others+got.Shares != "" || got.Core != "none" {
		t.Errorf("%+v", got)
	}
	if reason := !strings.HasPrefix(got.Connect, says+")"); reason != dom {
		t.Errorf("connect() says %q: it names what is missing, if there is a document", got.Connect)
	}
}

// ownShares are edits of the apps of TestEcosystemVitePlugin, after which they share stores by
// themselves, and what is then to be read: by each way of the package, with the plugin's URI and
// with another one, and without the package.
var ownShares = map[string]struct {
	edits [][3]string // file, before, after
	reads map[string]string
}{
	"react": {[][3]string{
		{"App.jsx", "import", `import { useResource } from "pagewire/react"; import`},
		{"App.jsx", "const { items, add } = useCart();", `const cart = useCart();
			const { items, add } = cart;
			useResource({ uri: "/state/basket", name: "Basket" }, cart);`},
		{"main.jsx", "createRoot(", `document.modelContext.registerResource({ uri: location.origin + "/state/queries",
			name: "Queries", read: () => "none" }); createRoot(`},
		{"user.js", "import", `import { shareStore } from "pagewire/store"; import`},
		{"user.js", "name: \"Ada\" }) => state });",
			"name: \"Ada\" }) => state }); shareStore(user, { uri: \"/state/user\", name: \"User\", select: (user) => user.name });"},
	}, map[string]string{
		"/state/basket": `{"items":["tea"]}`, "/state/user": "Ada", "/state/queries": "none", "/dev/route": `"path"`,
		"/dev/errors": "[]", "/dev/requests": "[]", "/dev/pointed": "[]",
	}},
	"vue": {[][3]string{
		{"App.vue", "import", `import { useResource } from "pagewire/vue"; import`},
		{"App.vue", "setup: () => ({ cart: useCart() })", `setup() {
			const cart = useCart();
			useResource({ uri: "/state/basket", name: "Basket" }, () => cart.$state);
			useResource({ uri: "/dev/route", name: "Route" }, () => "here");
			return { cart };
		}`},
	}, map[string]string{"/state/basket": `{"items":["tea"]}`, "/dev/route": "here", "/dev/errors": "[]", "/dev/requests": "[]", "/dev/pointed": "[]"}},
	"svelte": {[][3]string{
		{"cart.js", "import", `import { shareStore } from "pagewire/store"; import`},
		{"cart.js", `writable({ items: ["tea"] });`,
			`writable({ items: ["tea"] }); shareStore(cart, { uri: "/state/cart", name: "My cart" });`},
	}, map[string]string{"/state/cart": `{"items":["tea"]}`, "/dev/route": `"path"`, "/dev/errors": "[]", "/dev/requests": "[]", "/dev/pointed": "[]"}},
}

// Apps of Vite's own templates with stores (ecosystem/live) and the Vite plugin, without other
// setup for Pagewire. During development pagewire ls lists their stores, and an agent is notified
// of their changes and of the dev server's errors. Their build is the same as without the plugin.
func TestEcosystemVitePlugin(t *testing.T) {
	apps := ecosystemApp(t, "live")
	linked(t, apps, "vite", "@vitejs/plugin-vue", "@sveltejs/vite-plugin-svelte", "react", "react-dom", "vue", "svelte",
		"pinia", "zustand", "@reduxjs/toolkit", "@tanstack/react-query",
		ofScripts+"@vitejs/plugin-react")
	edit := func(t *testing.T, file, before, after string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(text), before, after, 1)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for framework, reads := range map[string]map[string][2]string{ // before and after the click
		"react": {
			"/state/cart":    {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/state/user":    {`{"name":"Ada"}`, `{"name":"Ada"}`},
			"/state/queries": {`"data":{"tea":3}`, `"data":{"tea":3}`},
			"/dev/route":     {`{"path":"/","title":"my-react"}`, `{"path":"/paid","title":"my-react"}`},
			"/dev/errors":    {`[]`, `[]`},
			"/dev/requests":  {`[]`, `[]`},
			"/dev/pointed":   {`[]`, `[]`},
		},
		"vue": {
			"/state/cart":   {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/dev/route":    {`{"path":"/","title":"my-vue"}`, `{"path":"/paid","title":"my-vue"}`},
			"/dev/errors":   {`[]`, `[]`},
			"/dev/requests": {`[]`, `[]`},
			"/dev/pointed":  {`[]`, `[]`},
		},
		"svelte": {
			"/state/cart":   {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/dev/route":    {`{"path":"/","title":"my-svelte"}`, `{"path":"/paid","title":"my-svelte"}`},
			"/dev/errors":   {`[]`, `[]`},
			"/dev/requests": {`[]`, `[]`},
			"/dev/pointed":  {`[]`, `[]`},
		},
	} {
		t.Run(framework, func(t *testing.T) {
			h := newHome(t)
			a := h.serve(t)
			app := filepath.Join(apps, "my-"+framework)
			command(t, apps, "node", inEcosystem(t, "node_modules/create-vite/index.js"), "my-"+framework,
				"--template", framework, "--no-interactive")
			command(t, apps, "cp", "-r", framework+"/src", app)
			built := func() map[string]string {
				out := t.TempDir()
				command(t, app, "node", "../node_modules/vite/bin/vite.js", "build", "--outDir", out)
				files := map[string]string{}
				names, _ := filepath.Glob(filepath.Join(out, "*", "*"))
				for _, name := range append(names, filepath.Join(out, "index.html")) {
					text, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					files[strings.TrimPrefix(name, out)] = string(text)
				}
				return files
			}
			without := built()
			edit(t, filepath.Join(app, "vite.config.js"), "import", `import pagewire from "pagewire/vite"; import`)
			edit(t, filepath.Join(app, "vite.config.js"), "[", `[pagewire({ gateway: "ws://`+h.hub+`" }), `)
			if with := built(); len(with) < 2 || !maps.Equal(with, without) {
				t.Errorf("a build has something of the plugin")
			}

			url := strings.TrimSuffix(serverOf(t, app, "../dev.mjs"), "/")
			b := open(t, noFlag, &site{Server: &httptest.Server{URL: url}})
			holds := func(path, want string) {
				t.Helper()
				testkit.Eventually(t, path+" reads as "+want, func() bool {
					got, err := a.Read(url + path)
					return err == nil && strings.Contains(got, want)
				})
			}
			for path, want := range reads {
				holds(path, want[0])
			}
			ls, _ := h.command(t, "ls", "--hub", h.hub)
			if out, err := ls.Output(); err != nil || !strings.Contains(string(out), url+"/state/cart") ||
				strings.Count(string(out), url) != len(reads) {
				t.Errorf("pagewire ls: %v\n%s", err, out)
			}
			a.Watch(url + "/state/cart")
			b.click("button")
			testkit.Receive(t, "the agent hears of the cart", a.Updates)
			for path, want := range reads {
				holds(path, want[1])
			}

			// After a failed edit, a page that loads later shows the error as well. After the
			// correction the store exists once, with the state of the new one.
			file := filepath.Join(app, "src", "cart.js")
			edit(t, file, "import", `import "./absent.js"; import`)
			holds("/dev/errors", "absent.js")
			b.reload()
			holds("/dev/errors", "absent.js")
			edit(t, file, `import "./absent.js"; `, "")
			holds("/dev/errors", `[]`)
			holds("/state/cart", `{"items":["tea"]}`)

			// Where the app shares a store itself, by the same URI or another, the plugin's share
			// of it is gone.
			b.navigate("about:blank")
			for _, e := range ownShares[framework].edits {
				edit(t, filepath.Join(app, "src", e[0]), e[1], e[2])
			}
			b.navigate(url)
			var want []string
			for path, contents := range ownShares[framework].reads {
				holds(path, contents)
				want = append(want, url+path)
			}
			a.Shows(want...)
			if b.said("does not offer") || b.said("already registered") {
				t.Error("the console has an error of the page layer")
			}
		})
	}
}

// Apps of Vite whose only line for Pagewire is the import of pagewire/dev (ecosystem/alone), with
// all libraries that the manual lists. Its stores are found, also one that comes later, and it goes
// with its component. A build has a warning instead.
func TestEcosystemDev(t *testing.T) {
	app := ecosystemApp(t, "alone")
	linked(t, app, "vite", "@vitejs/plugin-vue", "react", "react-dom", "react-redux", "@reduxjs/toolkit", "zustand",
		"@tanstack/react-query", "@tanstack/vue-query", "vue", "pinia", ofScripts+"@vitejs/plugin-react",
		ofScripts+"jotai", ofScripts+"mobx", ofScripts+"@preact/signals-core")
	h := newHome(t)
	a := h.serve(t)
	config := filepath.Join(app, "vite.config.js")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, []byte(strings.Replace(string(text), `"GATEWAY"`, `"ws://`+h.hub+`"`, 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSuffix(serverOf(t, app, "dev.mjs"), "/")
	holds := func(t *testing.T, reads map[string][2]string, i int) {
		t.Helper()
		for path, want := range reads {
			testkit.Eventually(t, path+" reads as "+want[i], func() bool {
				got, err := a.Read(url + path)
				return err == nil && strings.Contains(got, want[i])
			})
		}
	}
	for page, reads := range map[string]map[string][2]string{ // before and after the click
		"/": {
			"/state/redux": {`{"name":"Ada","visits":1,"accessToken":"[redacted]"}`,
				`{"name":"Ada","visits":2,"accessToken":"[redacted]"}`},
			"/state/zustand": {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/state/jotai":   {`{"count":1}`, `{"count":2}`},
			"/state/Todos":   {`{"list":["write"]}`, `{"list":["write","test"]}`},
			"/state/queries": {`"data":{"tea":3}`, `"data":{"tea":3}`},
			"/state/five":    {`5`, `6`},
			"/dev/route":     {`"path":"/"`, `"path":"/paid?token=…&tab=2"`},
		},
		"/vue.html": {
			"/state/cart": {`{"items":["tea"],"password":"[redacted]"}`,
				`{"items":["tea","milk"],"password":"[redacted]"}`},
			"/state/queries": {`"data":{"tea":3}`, `"data":{"tea":3}`},
		},
	} {
		t.Run(page, func(t *testing.T) {
			b := open(t, noFlag, &site{Server: &httptest.Server{URL: url + page}})
			holds(t, reads, 0)
			b.click("button")
			holds(t, reads, 1)
			if page != "/" {
				return
			}
			run[any](b, `setLate(true)`)
			holds(t, map[string][2]string{"/state/zustand-2": {`{"late":true}`}}, 0)
			run[any](b, `setLate(false)`)
			testkit.Eventually(t, "the store goes with its component", func() bool {
				_, err := a.Read(url + "/state/zustand-2")
				return err != nil
			})
		})
	}
	command(t, app, "node", "node_modules/vite/bin/vite.js", "build", "--logLevel", "error")
	s := serveApp(t, filepath.Join(app, "dist"))
	b := open(t, noFlag, s)
	testkit.Eventually(t, "the build warns", func() bool { return b.said("pagewire/dev does nothing here") })
	if has := run[bool](b, `return "modelContext" in navigator || "pagewire" in globalThis`); has {
		t.Error("a build has the page API")
	}
}
