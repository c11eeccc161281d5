//go:build ecosystem

package e2e

// The npm package in the bundlers, the servers and the tests of others, each as its own documents say and without a
// word about Pagewire: ecosystem/ has the tools, and the app that they build.

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

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// inEcosystem is the path of a file of ecosystem/.
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

// ecosystemApp is an app of ecosystem/ with the package installed.
func ecosystemApp(t *testing.T, name string) string {
	t.Helper()
	app := t.TempDir()
	if err := os.CopyFS(app, os.DirFS("ecosystem/"+name)); err != nil {
		t.Fatal(err)
	}
	installPackage(t, app)
	return app
}

// bundled builds an entry of the app, and returns the directory with what became of it.
func bundled(t *testing.T, app, tool, format, entry string) string {
	t.Helper()
	out := filepath.Join(app, strings.NewReplacer(",", "-", ".", "-").Replace(tool+" "+format+" "+entry))
	command(t, app, "node", inEcosystem(t, "build.mjs"), tool, format, entry, out)
	return out
}

// A page of each bundler: an agent in it lists and reads what it offers, in a plain browser and in one with the
// extension. Where the bundler leaves the core's files where they are, they are copied beside the bundle, which is all
// that the manual asks for.
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
			out := bundled(t, app, of.tool, of.format, of.entry)
			if of.copied {
				for _, name := range []string{"pagewire.core.js", "pagewire.wasm", "pagewire.worker.js"} {
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

// readByAgentInPage connects an agent in the page, and returns each path that it lists with what it reads as.
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

// What app/server.js finds.
type found struct {
	Same                          bool
	Connect, Others, Core, Shares string
}

// A server's bundle, or a test's: importing the package throws nowhere, connect() says what is missing, and all else
// does nothing. With a server's own conditions the bundle has nothing of the page layer.
func TestEcosystemServers(t *testing.T) {
	app := ecosystemApp(t, "app")
	node := func(t *testing.T, script string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", script)
		cmd.Dir = app
		return cmd
	}
	// Bundles by their format, and of those that a server's conditions have made.
	const print = `; console.log(JSON.stringify(globalThis.found))`
	for _, of := range []struct {
		place, tool, format string
		inert               bool
	}{
		{"node", "esbuild", "iife", false}, // what esbuild makes without options
		{"node", "esbuild", "cjs", false},
		{"node", "esbuild", "node", true},
		{"node", "rollup", "cjs", true},
		{"node", "webpack", "node", true},
		{"node", "vite", "ssr", false}, // leaves the import to Node
		{"workerd", "esbuild", "esm", false},
		{"workerd", "esbuild", "esm,workerd,worker,browser", true}, // Wrangler's
		{"edge", "esbuild", "iife", false},
		{"edge", "esbuild", "iife,edge-light", true},
		{"jsdom", "esbuild", "iife", false},
		{"happy-dom", "esbuild", "iife", false},
	} {
		t.Run(of.place+" "+of.tool+" "+of.format, func(t *testing.T) {
			file := filepath.Join(bundled(t, app, of.tool, of.format, "server.js"), "bundle.js")
			cmd := exec.CommandContext(t.Context(), inEcosystem(t, "node_modules/.bin/node"), inEcosystem(t, "run.mjs"),
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

// jest is the command that runs the tests of an app by Jest.
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
	return exec.CommandContext(t.Context(), "node", inEcosystem(t, "node_modules/jest/bin/jest.js"), "--ci",
		"--rootDir", app, "--config", string(config))
}

// The tests of a shop (ecosystem/testing) by pagewire/testing: the agent in them is at the real engine, without a
// network but for a browser's page.
func TestEcosystemTesting(t *testing.T) {
	app := ecosystemApp(t, "testing")
	for _, name := range []string{"vitest", "jsdom", "happy-dom", "playwright-core", "puppeteer-core"} {
		if err := os.Symlink(inEcosystem(t, "node_modules/"+name), filepath.Join(app, "node_modules", name)); err != nil {
			t.Fatal(err)
		}
	}
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
		return exec.CommandContext(t.Context(), inEcosystem(t, "node_modules/.bin/node"), args...)
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
	for _, driver := range []string{"playwright-core", "puppeteer-core"} {
		passes(driver, func(t *testing.T) *exec.Cmd {
			chromium, err := browser.Find()
			if err != nil {
				t.Fatal(err)
			}
			return node(t, "driven.js", driver, chromium, s.URL)
		})
	}
	t.Run("without a page", func(t *testing.T) {
		c := node(t, "--input-type=module", "-e", `await (await import("pagewire/testing")).watch()`)
		c.Dir = app
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no page to watch") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// The package's exports lead each kind of import to a file of that kind with types, by the tools that look for that.
// What is a module alone is one for require as well, since Node 22; Node 10's way of looking for files knows no exports.
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

// finds runs what prints, among other things, what app/server.js has found. `dom` says that there is a document.
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

// Apps with the Vite plugin and no other word about Pagewire: while each is developed, pagewire ls lists its stores and
// an agent hears of their changes and of the dev server's errors. Its build is the same as without the plugin.
func TestEcosystemVitePlugin(t *testing.T) {
	app := ecosystemApp(t, "live")
	for _, name := range strings.Fields("ecosystem/node_modules/vite ecosystem/node_modules/react " +
		"ecosystem/node_modules/react-dom ecosystem/node_modules/vue ecosystem/node_modules/pinia " +
		"ecosystem/node_modules/zustand ecosystem/node_modules/@reduxjs/toolkit " +
		"ecosystem/node_modules/@tanstack/react-query ecosystem/node_modules/@vitejs/plugin-vue " +
		"../js/node_modules/@vitejs/plugin-react") {
		from, err := filepath.Abs(name)
		_, link, _ := strings.Cut(name, "/node_modules/")
		link = filepath.Join(app, "node_modules", link)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []struct {
		framework string
		reads     map[string][2]string // before the click and after it
	}{
		{"react", map[string][2]string{
			"/state/cart":    {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/state/user":    {`{"name":"Ada"}`, `{"name":"Ada"}`},
			"/state/queries": {`"data":{"tea":3}`, `"data":{"tea":3}`},
			"/state/route":   {`{"path":"/","title":"A shop"}`, `{"path":"/paid","title":"A shop"}`},
		}},
		{"vue", map[string][2]string{
			"/state/cart":  {`{"items":["tea"]}`, `{"items":["tea","milk"]}`},
			"/state/route": {`{"path":"/","title":"A shop"}`, `{"path":"/paid","title":"A shop"}`},
		}},
	} {
		t.Run(of.framework, func(t *testing.T) {
			h := newHome(t)
			t.Setenv("FRAMEWORK", of.framework)
			t.Setenv("GATEWAY", "ws://"+h.hub)
			a := h.serve(t)
			url := strings.TrimSuffix(serverOf(t, app, "dev.mjs"), "/")
			b := open(t, noFlag, &site{Server: &httptest.Server{URL: url}})
			holds := func(path, want string) {
				t.Helper()
				testkit.Eventually(t, path+" reads as "+want, func() bool {
					got, err := a.Read(url + path)
					return err == nil && strings.Contains(got, want)
				})
			}
			for path, want := range of.reads {
				holds(path, want[0])
			}
			ls, _ := h.command(t, "ls", "--hub", h.hub)
			if out, err := ls.Output(); err != nil || !strings.Contains(string(out), url+"/state/cart") ||
				strings.Count(string(out), url) != len(of.reads) {
				t.Errorf("pagewire ls: %v\n%s", err, out)
			}
			a.Watch(url + "/state/cart")
			b.click("button")
			testkit.Receive(t, "the agent hears of the cart", a.Updates)
			for path, want := range of.reads {
				holds(path, want[1])
			}

			// After an edit the store is there once, with the state of the new one.
			file := filepath.Join(app, of.framework, "cart.js")
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, append(text, '\n'), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			holds("/state/cart", `"tea"`)

			built := func(out string) map[string]string {
				command(t, app, "node", "node_modules/vite/bin/vite.js", "build", "--outDir", out)
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
			with := built(t.TempDir())
			t.Setenv("GATEWAY", "none")
			if without := built(t.TempDir()); len(with) < 2 || !maps.Equal(with, without) {
				t.Errorf("a build has something of the plugin")
			}
		})
	}
}
