package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// write makes the files of a small tree, by path, and returns its root.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// output runs a tool in dir and returns its standard output.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := testcmd.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// A program shows its global object, then panics. It runs with the wasm_exec.js of the Go that runs
// the test, wrapped, bundled and minified as for a page.
func TestWasmExecKeepsOffTheGlobalObject(t *testing.T) {
	root := write(t, map[string]string{
		"go.mod": "module example.com/probe\n\ngo 1.26\n",
		"main.go": `package main

import "syscall/js"

func main() {
	js.Global().Get("seen").Set("answer", js.Global().Get("question").Int()*2)
	panic("the trace")
}
`,
		"entry.ts": `import { load } from "wasm_exec"; export { load }`,
		"run.mjs": `
import { readFileSync } from 'node:fs'
import { load } from './bundle.mjs'
const before = Reflect.ownKeys(globalThis)
const seen = {}
const Go = load({ question: 21, seen })
const go = new Go()
let told
go.ended = (why) => {
  if (told) return
  told = why
  const added = Reflect.ownKeys(globalThis).filter(key => !before.includes(key))
  console.log(JSON.stringify({ why, answer: seen.answer, added, fresh: load({ Go: 0 }) !== Go }))
}
const { instance } = await WebAssembly.instantiate(readFileSync('probe.wasm'), go.importObject)
go.run(instance)
`,
	})
	env := []string{"GOOS=js", "GOARCH=wasm", "GOFLAGS="}
	if _, err := run(root, env, "go", "build", "-o", "probe.wasm", "."); err != nil {
		t.Fatal(err)
	}
	module, err := findGo().wasmExec(root, root)
	if err != nil {
		t.Fatal(err)
	}
	options := shared(root)
	options.EntryPoints = []string{"entry.ts"}
	options.Outfile = filepath.Join(root, "bundle.mjs")
	options.Format = api.FormatESModule
	options.Alias = map[string]string{"wasm_exec": module}
	if err := bundle(options); err != nil {
		t.Fatal(err)
	}

	got := output(t, root, nil, "node", "run.mjs")
	trace, result, _ := strings.Cut(got, "{")
	if want := `"why":"the core exited with status 2","answer":42,"added":[],"fresh":true}` + "\n"; result != want {
		t.Errorf("got %q, want %q", result, want)
	}
	// The runtime prints through a free variable fs, which a page does not have.
	if !strings.Contains(trace, "panic: the trace") {
		t.Errorf("the panic's trace is lost: %q", trace)
	}
}

func TestStripLeavesOutCustomSections(t *testing.T) {
	custom, code := []byte("\x00\x05\x04name"), []byte("\x0a\x01\x00")
	module := slices.Concat(wasmHeader, custom, code, custom)
	if got, err := strip(module); err != nil || !bytes.Equal(got, slices.Concat(wasmHeader, code)) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, end := range []string{"\x0a", "\x0a\x02\x00", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0a\xff"} {
		if got, err := strip(slices.Concat(module, []byte(end))); err == nil {
			t.Errorf("a module that ends in %q became %q", end, got)
		}
	}
	if _, err := strip([]byte("MZ")); err == nil {
		t.Error("what is no module is taken for one")
	}
}

func TestAnExperimentThatGoHasNotIsLeftOut(t *testing.T) {
	if got := experiment("nogreenteagc2"); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestToolchainsThatAreNotThere(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if tc, err := findToolchain(""); err != nil || tc.command[0] != "go" {
		t.Errorf("without TinyGo: %v, %v", tc.command, err)
	}
	for _, name := range []string{"tinygo", "gcc"} {
		if _, err := findToolchain(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPackageHoldsWhatItSaysAndInstallsNothing(t *testing.T) {
	var its struct{ Files []string }
	if err := json.Unmarshal([]byte(published), &its); err != nil {
		t.Fatal(err)
	}
	built := slices.DeleteFunc(its.Files, func(name string) bool {
		return slices.Contains([]string{"docs", "README.md", "LICENSE", "THIRD-PARTY-LICENSES.txt"}, name)
	})
	files := map[string]string{"js/npm/README.md": "# Pagewire\n", "LICENSE": "MIT\n", "demo/docs/README.md": "# Manual\n",
		"demo/docs/x.md": "# X\n"}
	for _, name := range built {
		files["dist/"+name] = "// " + name + "\n"
	}
	files["dist/pagewire.js.map"] = "{}"
	root := write(t, files)
	const version = "1.2.3-rc.1"
	if err := writePackage(root, filepath.Join(root, "dist"), version); err != nil {
		t.Fatal(err)
	}
	for _, name := range assets.Names {
		if !slices.Contains(built, name) {
			t.Errorf("the package has no %s, which a site hosts", name)
		}
	}
	dir := filepath.Join(root, "dist", "npm")

	var packed []struct {
		Name, Version string
		Files         []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(output(t, dir, nil, "npm", "pack", "--dry-run", "--json", "--offline")),
		&packed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range packed[0].Files {
		got = append(got, file.Path)
	}
	want := append(built, "docs/README.md", "docs/x.md",
		"docs/llms.txt", "package.json", "README.md", "LICENSE")
	slices.Sort(got)
	slices.Sort(want)
	if packed[0].Name != "pagewire" || packed[0].Version != version || !slices.Equal(got, want) {
		t.Errorf("npm packs %s %s with %q, want pagewire %s with %q", packed[0].Name, packed[0].Version, got, version, want)
	}

	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"keywords", "engines", "bugs", "homepage", "repository"} {
		if members[name] == nil {
			t.Errorf("package.json has no %q", name)
		}
	}
	for _, name := range []string{"scripts", "dependencies", "devDependencies", "private"} {
		if members[name] != nil {
			t.Errorf("package.json has %q", name)
		}
	}
	if !strings.Contains(string(text), "\".\": {\n      \"types\": {\n        \"require\": \"./pagewire.d.cts\",\n"+
		"        \"default\": \"./pagewire.d.mts\"\n      },\n      \"workerd\": \"./pagewire.server.mjs\"") {
		t.Errorf("types do not come first in\n%s", text)
	}
	offersPrograms(t, members, version)
	if strings.Count(string(members["peerDependenciesMeta"]), `"optional": true`) != 2 {
		t.Errorf("installing it installs React or Vue: %s", members["peerDependenciesMeta"])
	}

	everyEntryResolves(t, dir)
}

// offersPrograms looks for the program of each platform among a package's optional dependencies.
func offersPrograms(t *testing.T, members map[string]json.RawMessage, version string) {
	t.Helper()
	var programs map[string]string
	err := json.Unmarshal(members["optionalDependencies"], &programs)
	want := map[string]string{}
	for _, platform := range commands.Platforms {
		want[platform.Package()] = version
	}
	if err != nil || !maps.Equal(programs, want) || string(members["bin"]) == "" {
		t.Errorf("the programs that it may install are %q, want %q", programs, want)
	}
	if string(members["mcpName"]) != strconv.Quote(commands.RegistryName) {
		t.Errorf("its name in the MCP Registry is %s", members["mcpName"])
	}
}

// everyEntryResolves resolves each entry of the package in dir as Node does, and for a browser. Its
// file must exist.
func everyEntryResolves(t *testing.T, dir string) {
	t.Helper()
	app := write(t, nil)
	if err := os.MkdirAll(filepath.Join(app, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(app, "node_modules", "pagewire"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	onServers := map[string]string{"pagewire": "pagewire.server.mjs", "pagewire/iife": "pagewire.server.mjs",
		"pagewire/elements": "pagewire.server.mjs"}
	entries := map[string]string{
		"pagewire": "pagewire.mjs", "pagewire/react": "react.js", "pagewire/vue": "vue.js", "pagewire/iife": "pagewire.js",
		"pagewire/store": "store.js", "pagewire/elements": "pagewire.elements.js",
		"pagewire/core":   "pagewire.core.js",
		"pagewire/worker": "pagewire.worker.js", "pagewire/wasm": "pagewire.wasm",
		"pagewire/views": "views.js", "pagewire/view": "view.js",
		"pagewire/testing": "testing.js", "pagewire/vite": "vite.js",
		"pagewire/dev":            "dev.none.js",
		"pagewire/extension/page": "extension.page.js", "pagewire/extension/relay": "extension.relay.js",
		"pagewire/extension/worker": "extension.worker.js",
	}
	names, err := json.Marshal(slices.Sorted(maps.Keys(entries)))
	if err != nil {
		t.Fatal(err)
	}
	script := `const fs = await import('node:fs'), files = {}; for (const entry of ` + string(names) + `) {
		const url = new URL(import.meta.resolve(entry)); fs.readFileSync(url); files[entry] = url.pathname.split('/').pop();
	} console.log(JSON.stringify(files))`
	for _, condition := range []string{"browser", "node"} {
		want := maps.Clone(entries)
		if condition == "node" {
			maps.Copy(want, onServers)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(output(t, app, nil, "node", "-C", condition, "--input-type=module", "-e", script)),
			&got); err != nil {
			t.Fatal(err)
		}
		for entry, file := range want {
			if got[entry] != file {
				t.Errorf("%s resolves to %q for %s, want %s", entry, got[entry], condition, file)
			}
		}
	}
}

// By an installation a user agrees to no more than this.
func TestExtensionManifestAsksForLittle(t *testing.T) {
	text, err := extensionManifest("../extension/manifest.json", "1.2.3-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	everywhere := []string{"http://*/*", "https://*/*"} // content scripts may be registered there
	var m struct {
		Version     string
		Description string
		Name        string `json:"version_name"`
		Permissions []string
		Hosts       []string `json:"host_permissions"`
		CSP         struct {
			Pages string `json:"extension_pages"`
		} `json:"content_security_policy"`
		Accessible []any `json:"web_accessible_resources"`
	}
	check := func(text []byte) {
		t.Helper()
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m.Version != "1.2.3" || !slices.Equal(m.Permissions, []string{"nativeMessaging", "scripting", "storage"}) ||
			!slices.Equal(m.Hosts, everywhere) || m.Accessible != nil ||
			!strings.HasPrefix(m.CSP.Pages, "default-src 'none'; script-src 'self';") {
			t.Errorf("the manifest: %s", text)
		}
	}
	if check(text); m.Name != "1.2.3-rc.1" {
		t.Errorf("people are told version %q", m.Name)
	}
	// The text for the stores has a reason for each permission, and the same summary.
	page, err := os.ReadFile("../extension/STORES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Permissions")
	table, _, _ = strings.Cut(table, "\n## ")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*) \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		told = append(told, strings.Split(strings.Trim(row[1], "`"), "`, `")...)
	}
	if want := append(slices.Clone(m.Permissions), m.Hosts...); !slices.Equal(told, want) {
		t.Errorf("the stores are told why it wants %q, and it wants %q", told, want)
	}
	if len(m.Description) > 132 || !strings.Contains(string(page), "| summary | "+m.Description+" |\n") {
		t.Errorf("the stores have another summary than %q, or it is longer than 132 characters", m.Description)
	}
	if text, err = firefoxManifest(text); err != nil {
		t.Fatal(err)
	}
	policy := m.CSP.Pages
	if check(text); m.CSP.Pages != policy || strings.Contains(string(text), "service_worker") ||
		strings.Contains(string(text), "version_name") {
		t.Errorf("Firefox's: %s", text)
	}
}

func TestDemosAreBundledByFolder(t *testing.T) {
	root := write(t, map[string]string{
		"demo/main.go":                  "package main",
		"demo/index.html":               "<a href=1-first/>",
		"demo/story.gif":                "GIF",
		"demo/story.png":                "PNG",
		"js/parts/logo.svg":             "<svg/>",
		"demo/common/style.css":         "body { color: black }",
		"demo/1-first/index.html":       "<script type=module src=agent.js></script>",
		"demo/1-first/agent.ts":         `import { name } from "peer"; import { greet } from "../common/words/greet.ts"; console.log(greet(name))`,
		"demo/common/words/greet.ts":    "export const greet = (who: string) => `hello ${who}`",
		"demo/1-first/tsconfig.json":    "{}",
		"demo/2-second/style.css":       "body { color: black }",
		"js/node_modules/peer/index.js": `export const name = "peer"`,
	})
	out := filepath.Join(root, "dist/demo")
	if err := buildDemos(root, out); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(out, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(out, path)
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1-first/agent.js", "1-first/agent.js.map", "1-first/index.html", "2-second/style.css",
		"2-second/style.css.map", "common/style.css", "common/style.css.map", "index.html", "logo.svg", "story.gif", "story.png"}; !slices.Equal(got, want) {
		t.Errorf("dist/demo holds %q, want %q", got, want)
	}
	if got := output(t, out, nil, "node", "--input-type=module", "-e",
		"await import('./1-first/agent.js')"); got != "hello peer\n" {
		t.Errorf("the bundle prints %q", got)
	}
}

func TestWhatStandsInForAFileIsOneModule(t *testing.T) {
	root := write(t, map[string]string{
		"page/page.ts": `import { load } from "./load.ts"; load();`,
		"page/load.ts": `export const load = () => console.log("the page's");`,
		"own/own.ts":   `import { load } from "./load.ts"; import "../page/page.ts"; load();`,
		"own/load.ts":  `export const load = () => console.log("the extension's");`,
	})
	build := func(of string) api.BuildResult {
		return api.Build(api.BuildOptions{
			EntryPoints: []string{filepath.Join(root, "own/own.ts")},
			Bundle:      true,
			Plugins: []api.Plugin{instead(filepath.Join(root, of),
				api.OnResolveResult{Path: filepath.Join(root, "own/load.ts")})},
		})
	}
	if result := build("page/moved/load.ts"); len(result.Errors) != 1 {
		t.Errorf("a file that has moved is bundled as it is: %v", result.Errors)
	}
	result := build("page/load.ts")
	if len(result.Errors) > 0 {
		t.Fatal(result.Errors)
	}
	text := string(result.OutputFiles[0].Contents)
	if strings.Count(text, "the extension's") != 1 || strings.Contains(text, "the page's") {
		t.Errorf("the bundle has the file twice, or what it stands in for:\n%s", text)
	}
}

func TestABrokenSourceIsNamedWithItsLine(t *testing.T) {
	root := write(t, map[string]string{"demo/1-first/agent.ts": "const a = 1\nimport \"absent\"\n",
		"demo/index.html": "", "demo/common/style.css": ""})
	err := buildDemos(root, filepath.Join(root, "out"))
	if err == nil ||
		!strings.Contains(err.Error(), `demo/1-first/agent.ts:2:7: Could not resolve "absent" (a package? run npm ci`) {
		t.Errorf("got %v", err)
	}
}

func TestWeighNamesWhatIsAboveItsBudget(t *testing.T) {
	dist := write(t, map[string]string{"small.js": "1", "large.js": strings.Repeat("0123456789", 9) +
		"abcdefghijklmnopqrstuvwxyz"})
	weights := func(list ...artefact) []weight {
		all, err := weigh(dist, list)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var table strings.Builder
	err := printWeights(&table, weights(artefact{"small.js", 100}, artefact{"large.js", 10}))
	if err == nil || !strings.Contains(err.Error(), "large.js weighs ") || strings.Contains(err.Error(), "small.js") {
		t.Errorf("error %v; want one that names large.js alone", err)
	}
	for _, word := range []string{"raw", "gzip", "brotli", "budget", "small.js", "large.js"} {
		if !strings.Contains(table.String(), word) {
			t.Errorf("no %q in\n%s", word, &table)
		}
	}
	if err := printWeights(io.Discard, weights(artefact{"small.js", 100}, artefact{"large.js", 0})); err != nil {
		t.Errorf("within the budgets: %v", err)
	}
	if _, err := weigh(dist, []artefact{{"none.js", 0}}); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("without a file: %v; want what to do", err)
	}
}
