package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// The result of npm pack in dist/npm (or, with RELEASE, make release's package) is installed into
// apps (npm/react, npm/vue, npm/plain) without any setting for it. What they offer to agents is the
// snippets of the package's own README. It is used from there: in Vite's build for production, and
// from Vite's development server while the app is edited.
func TestNpm(t *testing.T) {
	t.Parallel()
	installed := installedPackage(t)
	for name, more := range map[string]func(*tab){
		"react": func(b *tab) { schemaOfHook(b, `["text"]`); hook(b) },
		"vue":   composable,
		"plain": func(*tab) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := installApp(t, name, installed)
			command(t, app, "node", "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
			s := serveApp(t, filepath.Join(app, "dist"))
			b := openApp(t, s)
			shop(b)
			more(b)
			b.quiet()
			// The bundler has moved and renamed the files, and yet they were found.
			if s.fetched("/pagewire.core.js") || s.fetched("/pagewire.wasm") ||
				s.fetched("(missing)") {
				t.Errorf("requests: %q", s.requests)
			}
		})
	}
	// The program, which comes in a package of the platform, is the build's.
	t.Run("npx", func(t *testing.T) {
		t.Parallel()
		app := installApp(t, "plain", installed)
		system, cpu := commands.Host.NPM()
		bin := filepath.Join(app, "node_modules/@pagewire/cli-"+system+"-"+cpu, "bin")
		testkit.OK(t, os.MkdirAll(bin, 0o755))
		program, err := filepath.Abs("../bin/pagewire")
		testkit.OK(t, err)
		testkit.OK(t, os.Symlink(program, filepath.Join(bin, "pagewire")))
		cmd := testcmd.Command("npx", "--offline", "pagewire")
		cmd.Dir = app
		out, err := cmd.CombinedOutput()
		for _, want := range []string{"npm install -g pagewire\n", "Pagewire ", "pagewire setup", "\nManual: https://"} {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("npx pagewire does not say %q: %v\n%s", want, err, out)
			}
		}
	})
	t.Run("edited", func(t *testing.T) {
		t.Parallel()
		app := installApp(t, "react", installed)
		b := openApp(t, &site{Server: &httptest.Server{URL: serverOf(t, app, "dev.mjs")}})
		shop(b)
		schemaOfHook(b, "it does not fit")
		if !b.forgive("does not fit its schema at 'items.0'") {
			t.Error("no path on the console")
		}
		edit(b, filepath.Join(app, "src/Cart.jsx"))
		b.quiet()
	})
}

// shop is the story: an agent lists the page's resource and reads it, a person acts, and the agent
// is notified and reads it again.
func shop(b *tab) {
	b.t.Helper()
	b.expectations(`
		globalThis.uri = location.origin + "/state/cart";
		globalThis.a = await agent.connect("modern");
		await a.subscribe(uri);
		const { resources } = await a.client.listResources();
		expect("listed", resources.map((r) => [r.uri, r.name, r.mimeType]), [[uri, "Cart", "application/json"]]);
		expect("read", await a.read(uri), '["tea"]');
	`)
	b.click("button")
	b.expectations(`
		await agent.until(() => a.updated.length);
		expect("read again", await a.read(uri), '["tea","milk"]');
		expect("shown", document.getElementById("items").textContent, "tea, milk");
	`)
}

// edit changes the source of the component while it is on the page. The page keeps its state, and
// the resource exists once, as the new source says.
func edit(b *tab, path string) {
	b.t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	run[any](b, `globalThis.before = true; a.listChanged = 0`)
	if err := os.WriteFile(path,
		[]byte(strings.ReplaceAll(string(source), "Cart\"", "Basket\"")+"\n"),
		0o644); err != nil {
		b.t.Fatal(err)
	}
	b.expectations(`
		let list; // what went before may have changed the list, too, and is told late
		do {
			await agent.until(() => a.listChanged);
			a.listChanged = 0;
			list = (await a.client.listResources()).resources.map((r) => [r.name, r.uri]);
		} while (list[0]?.[0] !== "Basket");
		expect("listed", list, [["Basket", uri]]);
		expect("the state, of the same page", [await a.read(uri), globalThis.before], ['["tea","milk"]', true]);
	`)
}

// hook uses the hook in all ways of a component.
func hook(b *tab) {
	b.t.Helper()
	b.expectations(`
		const { calls, show } = stage;
		const at = (path) => location.origin + path;
		const contents = async (path) => { const [{ text, mimeType }] = (await a.client.readResource({ uri: at(path) })).contents; return [text, mimeType]; };
		const names = async () => (await a.client.listResources()).resources.map((r) => r.name).filter((name) => !/^(Cart|Basket)$/.test(name));
		/** How often what act does calls a method of the page API. */
		const counted = (method, act) => { const before = calls[method]; act(); return calls[method] - before; };
		const d = (name, more) => ({ uri: "/stage/" + name, name, ...more });
		const told = (path) => a.updated.filter((uri) => uri === at(path)).length;
		// Long enough for the engine to have announced all that it holds back.
		const settled = () => agent.sleep(250);

		show({ a: [d("a"), "text"], b: [d("b"), { x: [1] }], c: [d("c"), undefined], d: [d("d", { mimeType: "text/csv" }), "1,2"], e: [d("e", { mimeType: "application/ld+json" }), null] });
		expect("a string", await contents("/stage/a"), ["text", undefined]);
		expect("an object", await contents("/stage/b"), ['{"x":[1]}', "application/json"]);
		expect("no JSON", await contents("/stage/c"), ["null", "application/json"]);
		expect("a type for text", await contents("/stage/d"), ["1,2", "text/csv"]);
		expect("a type for JSON", await contents("/stage/e"), ["null", "application/ld+json"]);
		expect("all listed", await names(), ["a", "b", "c", "d", "e"]);

		// Same by Object.is: nothing happens. A new descriptor that says the same: nothing either.
		const list = [1];
		show({ a: [d("a"), list], n: [d("n"), NaN] });
		expect("unmounted", await names(), ["n", "a"].sort());
		await a.subscribe(at("/stage/a"), at("/stage/n"));
		expect("the same value", counted("notifyResourceUpdated", () => show({ a: [d("a"), list], n: [d("n"), NaN] })), 0);
		expect("another value", counted("notifyResourceUpdated", () => show({ a: [d("a"), [1]], n: [d("n"), 0] })), 2);
		await agent.until(() => told("/stage/a") && told("/stage/n"));
		expect("minus zero", counted("notifyResourceUpdated", () => show({ a: [d("a"), "now text"], n: [d("n"), -0] })), 1); // and a's type changed
		await settled();
		expect("latest value", await contents("/stage/a"), ["now text", undefined]);

		// An inline read: its identity means nothing, the latest is called.
		const inline = (n, more) => [d("r", { read: () => "read " + n, ...more })];
		show({ r: inline(1) });
		await a.subscribe(at("/stage/r"));
		expect("inline read", counted("registerResource", () => { show({ r: inline(2) }); show({ r: inline(3) }); }), 0);
		expect("latest read", await contents("/stage/r"), ["read 3", undefined]);

		// Metadata: withdrawn and offered anew; the subscription survives, and its holder is told
		// once.
		await settled();
		const before = told("/stage/r");
		expect("metadata", counted("registerResource", () => show({ r: inline(4, { title: "R", annotations: { priority: 0.5 } }) })), 1);
		await agent.until(() => told("/stage/r") > before);
		await settled();
		expect("told once", told("/stage/r") - before, 1);
		expect("new metadata", (await a.client.listResources()).resources.find((r) => r.name === "r").title, "R");
		show({ r: [d("moved"), "text"] });
		expect("another uri", [await names(), await contents("/stage/moved")], [["moved"], ["text", undefined]]);

		// A template, and a URI in full.
		show({ t: [{ uri: "/stage/item/{id}", name: "t", read: (_uri, { params }) => params.id }, 1], u: [{ ...d("u"), uri: at("/stage/u") }, "full"] });
		expect("a template", await contents("/stage/item/7"), ["7", undefined]);
		expect("in full", await contents("/stage/u"), ["full", undefined]);
		await a.subscribe(at("/stage/item/7"));
		show({ t: [{ uri: "/stage/item/{id}", name: "t", read: (_uri, { params }) => params.id }, 2] });
		await agent.until(() => told("/stage/item/7"));

		// Two with one URI: an error, and the second takes over when the first is gone. What is
		// wrong for another reason is an error too. (The errors are looked for below.)
		show({ first: [d("two"), "first"], second: [d("two"), "second"] });
		expect("the first", [await names(), await contents("/stage/two")], [["two"], ["first", undefined]]);
		show({ second: [d("two"), "second!"] });
		await null;
		expect("the second", [await names(), await contents("/stage/two")], [["two"], ["second!", undefined]]);
		show({ second: [d("two"), "second!"], third: [d("two"), "third"] });
		show({ second: [d("two", { title: "new" }), "second!"], third: [d("two"), "third"] });
		await null;
		expect("keeps its URI when it registers anew", await contents("/stage/two"), ["second!", undefined]);
		show({ bad: [{ uri: "https://elsewhere.example/", name: "bad" }, 1], none: [{ name: "none" }, 1], good: [d("good"), 1] });
		expect("beside bad ones", await names(), ["good"]);

		show({});
		expect("nothing left", [await names(), pagewire.stats().resources], [[], 1]);
		expect("while rendering", calls.rendering, 0);
	`)
	for _, want := range []string{"InvalidStateError", "SecurityError", "TypeError"} {
		if !b.forgive(want, "pagewire: useResource does not offer '") {
			b.t.Errorf("no %s on the console", want)
		}
	}
}

// schemaOfHook gives the hook a schema, a new one in each render, and a value that does not fit.
// Agents get the JSON Schema and read `want`.
func schemaOfHook(b *tab, want string) {
	b.t.Helper()
	got := run[string](b, `
		const schema = () => ({ "~standard": {
			validate: () => ({ issues: [{ message: "wrong", path: ["items", { key: 0 }] }] }),
			jsonSchema: { input: () => ({ type: "string" }) },
		} });
		const uri = location.origin + "/stage/s";
		stage.show({ s: [{ uri, name: "s", mimeType: "application/json", schema: schema() }, ["text"]] });
		const before = stage.calls.registerResource;
		stage.show({ s: [{ uri, name: "s", mimeType: "application/json", schema: schema() }, ["text"]] });
		const { _meta } = (await a.client.listResources()).resources.find((r) => r.name === "s");
		const text = await a.read(uri).catch(() => "it does not fit");
		const anew = stage.calls.registerResource - before;
		stage.show({});
		return _meta["pagewire/schema"].type + ", " + anew + ", " + text;
	`)
	if got != `string, 0, `+want {
		b.t.Errorf("with a schema: %s", got)
	}
}

// composable gives Vue's composable each kind of source, a descriptor that changes, and the end of
// its scope.
func composable(b *tab) {
	b.t.Helper()
	got := run[[]string](b, `
		const { app, effectScope, nextTick, reactive, ref, useResource } = stage;
		const at = (path) => location.origin + path;
		const all = async () => {
			const { resources } = await a.client.listResources();
			return (await Promise.all(resources.map(async (r) => r.name + " " + (await a.read(r.uri))))).sort().join("; ");
		};
		const user = reactive({ name: "Ada", languages: ["en"] });
		const name = ref("User");
		const scope = effectScope();
		scope.run(() => {
			useResource(() => ({ uri: "/state/user", name: name.value }), user);
			useResource(ref({ uri: "/state/n", name: "n", select: (n) => n + 1 }), () => user.languages.length);
		});
		const seen = [await all()];
		await a.subscribe(at("/state/user"), at("/state/n"));
		user.languages.push("fr");
		await agent.until(() => a.updated.includes(at("/state/user")) && a.updated.includes(at("/state/n")));
		name.value = "Person";
		await nextTick();
		seen.push(await all());
		a.updated.length = 0;
		user.name = "Eve"; // at a depth of the state, as it is offered anew
		await agent.until(() => a.updated.includes(at("/state/user")));
		scope.stop();
		seen.push(await all());
		app.unmount();
		return [...seen, await all()];
	`)
	if want := []string{
		`Cart ["tea","milk"]; User {"name":"Ada","languages":["en"]}; n 2`,
		`Cart ["tea","milk"]; Person {"name":"Ada","languages":["en","fr"]}; n 3`,
		`Cart ["tea","milk"]`,
		``,
	}; !slices.Equal(got, want) {
		b.t.Errorf("agents see %q, want %q", got, want)
	}
}

// libraries are the other dependencies of the apps, and their build tools; js/ has them.
var libraries = strings.Fields("react react-dom vite @vitejs vue svelte")

// installedPackage returns an app into which npm has installed the package without a network: the
// package has no dependencies.
func installedPackage(t *testing.T) (app string) {
	t.Helper()
	app = t.TempDir()
	if err := os.CopyFS(app, os.DirFS("npm/plain")); err != nil {
		t.Fatal(err)
	}
	installPackage(t, app)
	return app
}

// installApp copies an app of npm/, with the modules of an installedPackage: npm takes seconds for
// each installation. The app's own tools are those of js/.
func installApp(t *testing.T, name, installed string) string {
	t.Helper()
	app := t.TempDir()
	if err := errors.Join(os.CopyFS(app, os.DirFS("npm/"+name)),
		os.CopyFS(filepath.Join(app, "node_modules"), os.DirFS(filepath.Join(installed, "node_modules")))); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../js/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		if err := os.Symlink(filepath.Join(modules, name),
			filepath.Join(app, "node_modules", name)); err != nil {
			t.Fatal(err)
		}
	}
	if snippet := snippets[name]; snippet != "" {
		writeSnippet(t, app, snippet)
	}
	return app
}

// snippets are the files of the apps that the package's README has, by app.
var snippets = map[string]string{"react": "src/Cart.jsx", "vue": "src/Cart.vue", "plain": "src/cart.js"}

// writeSnippet writes the block of the installed package's README that has the language of a file.
func writeSnippet(t *testing.T, app, file string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(app, "node_modules/pagewire/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(readme), "\n```"+strings.TrimPrefix(filepath.Ext(file), ".")+"\n")
	code, _, ends := strings.Cut(code, "```\n")
	if !found || !ends {
		t.Fatalf("the package's README has no block for %s", file)
	}
	path := filepath.Join(app, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
}

func installPackage(t *testing.T, app string) {
	t.Helper()
	from, name := os.Getenv("RELEASE"), "pagewire-[0-9]*.tgz"
	if from == "" {
		from = app
		command(t, dist+"/npm", "npm", "pack", "--pack-destination", app)
	}
	packed, err := filepath.Glob(filepath.Join(from, name))
	if err != nil || len(packed) != 1 {
		t.Fatalf("%s holds %q, %v", from, packed, err)
	}
	command(t, app, "npm", "install", "--offline", "--no-audit", "--no-fund", packed[0])
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := testcmd.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// serveApp serves a directory, as any web server would, and notes missing files.
func serveApp(t *testing.T, dir string) *site {
	t.Helper()
	s := &site{}
	files := http.FileServer(http.Dir(dir))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
			path = "(missing)"
		}
		s.mu.Lock()
		s.requests = append(s.requests, path)
		s.mu.Unlock()
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// serverOf runs a script with Node until the test ends, and returns the URL that it prints.
func serverOf(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := testcmd.Command("node", script)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	in, out := testkit.Pipes(t, cmd)
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatalf("%s of %s did not start", script, dir)
	return ""
}

// openApp opens the app, and loads the agent into the page.
func openApp(t *testing.T, s *site) *tab {
	t.Helper()
	b := open(t, noFlag, s)
	testkit.Eventually(t, "the app is there", func() bool {
		there, err := try[bool](b, `return document.getElementById("items") !== null`)
		return there && err == nil
	})
	run[any](b, fmt.Sprintf(`globalThis.agent = (() => { %s; return agent; })()`, agentScript))
	return b
}

func (b *tab) forgive(texts ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.console)
	b.console = slices.DeleteFunc(b.console, func(line string) bool {
		return !slices.ContainsFunc(texts,
			func(text string) bool { return !strings.Contains(line, text) })
	})
	return len(b.console) < before
}

func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.console {
		b.t.Errorf("on the console: %s", line)
	}
}
