package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// A script is an entry in js/ and its bundle in dist/.
type script struct {
	entry, out string
	format     api.Format
	platform   api.Platform
}

var bundled = []script{
	{"js/page/early/script.ts", "pagewire.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/page/early/module.ts", "pagewire.mjs", api.FormatESModule, api.PlatformBrowser},
	{"js/page/early/module.ts", "pagewire.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/page/early/server.ts", "pagewire.server.mjs", api.FormatESModule, api.PlatformNeutral},
	{"js/page/early/server.ts", "pagewire.server.cjs", api.FormatCommonJS, api.PlatformNeutral},
	{"js/core/core.ts", "pagewire.core.js", api.FormatESModule, api.PlatformBrowser},
	// A classic worker: module workers obey other rules of the page's policy, and need a newer
	// browser.
	{"js/core/worker.ts", "pagewire.worker.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/cli/cli.ts", "cli.js", api.FormatESModule, api.PlatformNode},
	{"js/react/index.ts", "react.js", api.FormatESModule, api.PlatformBrowser},
	{"js/react/index.ts", "react.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/share/store.ts", "store.js", api.FormatESModule, api.PlatformBrowser},
	{"js/share/store.ts", "store.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/vue/index.ts", "vue.js", api.FormatESModule, api.PlatformBrowser},
	{"js/vue/index.ts", "vue.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/share/elements.ts", "pagewire.elements.js", api.FormatESModule, api.PlatformBrowser},
	{"js/share/elements.ts", "elements.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/views/index.ts", "views.js", api.FormatESModule, api.PlatformBrowser},
	{"js/view/index.ts", "view.js", api.FormatESModule, api.PlatformBrowser},
	{"js/testing/index.ts", "testing.js", api.FormatESModule, api.PlatformBrowser},
	{"js/testing/index.ts", "testing.cjs", api.FormatCommonJS, api.PlatformBrowser},
	{"js/vite/index.ts", "vite.js", api.FormatESModule, api.PlatformNode},
	{"js/next/index.ts", "next.js", api.FormatESModule, api.PlatformNode},
	{"js/next/index.ts", "next.cjs", api.FormatCommonJS, api.PlatformNode},
	{"js/dev/index.ts", "dev.js", api.FormatESModule, api.PlatformBrowser},
	{"js/dev/none.ts", "dev.none.js", api.FormatESModule, api.PlatformNeutral},
	{"js/inject/inject.ts", "pagewire.inject.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/shown/script.ts", "pagewire.shown.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/shown/picker.ts", "pagewire.pick.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/inspector/main.tsx", "inspector/inspector.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/inspector/style.css", "inspector/inspector.css", api.FormatIIFE, api.PlatformBrowser},
	// The parts in the npm package for extensions of others, and Pagewire's own extension.
	{"js/extension/page.ts", "extension.page.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/extension/relay.ts", "extension.relay.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/extension/reader.ts", "extension/shown.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/extension/picker.ts", "extension/pick.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/extension/worker.ts", "extension.worker.js", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/background.ts", "extension/worker.js", api.FormatIIFE, api.PlatformBrowser},
	{"js/extension/popup.tsx", "extension/popup.js", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/options.tsx", "extension/options.js", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/devtools.ts", "extension/devtools.js", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/panel.tsx", "extension/panel.js", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/panel.css", "extension/panel.css", api.FormatESModule, api.PlatformBrowser},
	{"js/extension/style.css", "extension/style.css", api.FormatESModule, api.PlatformBrowser},
	{"js/test/page.ts", "test/page.mjs", api.FormatESModule, api.PlatformNode},
	{"js/extension/testing.ts", "test/extension.mjs", api.FormatESModule, api.PlatformNode},
	{"js/views/host.ts", "test/views.host.mjs", api.FormatESModule, api.PlatformNode},
}

// logo is the picture at the top of all pages.
const logo = "js/parts/logo.svg"

// bundleAll writes the scripts of dist/, and copies the types and the inspector's page.
func bundleAll(root, dist string, tc toolchain) error {
	wasmExec, err := tc.wasmExec(root, dist)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range bundled {
		options := s.options(root, dist)
		options.Alias = map[string]string{"wasm_exec": wasmExec}
		errs = append(errs, bundle(options))
	}
	errs = append(errs, minifyAll(root, dist), leaveImports(filepath.Join(dist, "pagewire.mjs")),
		leaveImports(filepath.Join(dist, "pagewire.cjs")))
	errs = append(errs, copyFile(filepath.Join(dist, "inspector/logo.svg"),
		filepath.Join(root, logo)))
	for _, pattern := range []string{"*.d.*ts", "inspector/*.html"} {
		errs = append(errs, copyFiles(dist, filepath.Join(root, "js"), pattern))
	}
	for _, name := range []string{"react", "store", "vue", "elements", "iife", "testing", "next"} {
		errs = append(errs, copyFile(filepath.Join(dist, name+".d.cts"),
			filepath.Join(root, "js", name+".d.ts")))
	}
	return errors.Join(errs...)
}

// fetched are the scripts that each visit of a page downloads, and the script of pages that an
// agent watches. Terser minifies them again after esbuild: its names compress better, which saves
// 250 of 6,093 bytes of brotli for pagewire.js and 800 of 13,089 for the core's loader. It takes a
// second of processor time each.
var fetched = []string{"pagewire.js", "pagewire.mjs", "pagewire.core.js", "pagewire.worker.js",
	"pagewire.elements.js", "pagewire.shown.js", "pagewire.pick.js"}

// readable are the modules that reach pages only through a bundler. The npm package has them
// unminified, with their maps.
var readable = []string{"react.js", "store.js", "vue.js", "testing.js", "vite.js", "next.js", "dev.js",
	"dev.none.js"}

// minifyAll runs terser over the fetched scripts and their maps.
//
// Why does terser minify what esbuild has minified? Its names suit brotli: 5,858 bytes instead of
// 6,093 for pagewire.js.
func minifyAll(root, dist string) error {
	failed := make([]error, len(fetched))
	var wg sync.WaitGroup
	for i, name := range fetched {
		wg.Go(func() {
			file := filepath.Join(dist, name)
			args := []string{filepath.Join(root, "js/node_modules/terser/bin/terser"), file,
				"--compress", "passes=3,unsafe_proto", "--mangle", "--ecma", "2022", "--source-map",
				"content='" + file + ".map'", "--output", file}
			for _, s := range bundled {
				if s.out == name && s.format == api.FormatESModule {
					args = append(args, "--module")
				}
			}
			if out, err := exec.Command("node", args...).CombinedOutput(); err != nil {
				failed[i] = fmt.Errorf("%s: terser: %w\n%s", name, err, out)
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (s script) options(root, dist string) api.BuildOptions {
	options := shared(root)
	options.EntryPoints = []string{filepath.Join(root, s.entry)}
	options.Outfile = filepath.Join(dist, s.out)
	options.Format = s.format
	options.Platform = s.platform
	// External: written beside the script, not named in it. A developer can load the map by hand; a
	// site that hosts the script alone has no 404 in its log.
	options.Sourcemap = api.SourceMapExternal
	// The bundle imports a file beside it, or a package, in place of a module.
	neighbour := func(of, path string) {
		options.Plugins = append(options.Plugins,
			instead(filepath.Join(root, of), api.OnResolveResult{Path: path, External: true}))
	}
	const module = "js/page/early/module.ts"
	switch s.out {
	case "pagewire.js":
		options.MinifyIdentifiers = false // terser does; twice takes 8 bytes more
	case "pagewire.mjs", "pagewire.cjs":
		options.Plugins = []api.Plugin{whenCalled(filepath.Join(root, "js/page/early/pagewire.ts"),
			"enter", shared(root))}
		if s.format == api.FormatCommonJS {
			options.Define["import.meta.url"] = "undefined" // a syntax error there
		}
	case "react.js", "react.cjs":
		options.External = []string{"react"}
		options.Banner = map[string]string{"js": clientDirective}
		fallthrough
	case "store.js", "store.cjs", "elements.cjs":
		// by the package's name: its exports give servers another file
		neighbour(module, "pagewire")
		// The page's own bundler must replace it, so esbuild must not.
		options.Define["process.env.NODE_ENV"] = "process.env.NODE_ENV"
	case "dev.js":
		options.Define["process.env.NODE_ENV"] = "process.env.NODE_ENV"
		fallthrough
	case "vue.js", "vue.cjs":
		options.External = []string{"vue"}
		neighbour(module, "pagewire")
		neighbour("js/share/store.ts", "pagewire/store")
	case "pagewire.elements.js":
		neighbour(module, "./pagewire.mjs")
	}
	place := filepath.Dir(s.entry)
	replace := func(name string) {
		options.Plugins = append(options.Plugins,
			instead(filepath.Join(root, "js/page/early", name),
				api.OnResolveResult{Path: filepath.Join(root, place, name)}))
	}
	if place == "js/inject" || place == "js/testing" || strings.HasPrefix(s.out, "extension") {
		replace("load.ts")
	}
	if place == "js/testing" {
		replace("basics.ts")
		options.Inject = []string{filepath.Join(root, place, "timer.ts")}
		if s.format == api.FormatCommonJS {
			options.Define["import.meta.url"] = "undefined" // it has __filename
		}
	}
	// Bundlers minify it, and merge its map into theirs.
	forBundlers := slices.Contains(readable, s.out)
	if forBundlers || place == "js/testing" { // its lines are in the stack traces of tests
		options.MinifyWhitespace, options.MinifyIdentifiers = false, false
		options.MinifySyntax = false
	}
	if forBundlers {
		options.Sourcemap = api.SourceMapLinked
	}
	if strings.HasPrefix(s.out, "extension") {
		options.Sourcemap = api.SourceMapNone // a browser loads every file of its folder
	}
	return options
}

// clientDirective lets a server component of React import the hook, which runs in the browser.
const clientDirective = `"use client";`

// instead resolves every import of one file to another module, except in that other one. An
// importer of both gets one module.
func instead(of string, other api.OnResolveResult) api.Plugin {
	return api.Plugin{
		Name: "instead",
		Setup: func(b api.PluginBuild) {
			// Otherwise the bundle of a file that has moved would silently have it, and not the
			// other.
			b.OnStart(func() (api.OnStartResult, error) {
				_, err := os.Stat(of)
				return api.OnStartResult{}, err
			})
			filter := "/" + regexp.QuoteMeta(filepath.Base(of)) + "$"
			b.OnResolve(api.OnResolveOptions{Filter: filter},
				func(args api.OnResolveArgs) (api.OnResolveResult, error) {
					if filepath.Join(args.ResolveDir, args.Path) != of ||
						args.Importer == other.Path {
						return api.OnResolveResult{}, nil
					}
					return other, nil
				})
		},
	}
}

// whenCalled delays the evaluation of a file and its imports from the import until the call of its
// function: the caller can then catch their errors.
func whenCalled(file, function string, options api.BuildOptions) api.Plugin {
	const page = "page"
	options.EntryPoints = []string{file}
	options.Define["PAGEWIRE_BUNDLED"] = "true"
	options.Format = api.FormatIIFE
	options.GlobalName = page
	options.Platform = api.PlatformBrowser
	options.Banner = map[string]string{"js": "export const " + function + " = (base, options) => {"}
	options.Footer = map[string]string{"js": "return " + page + "." + function + "(base, options)}"}
	options.Sourcemap = api.SourceMapInline
	options.Write = false
	return api.Plugin{
		Name: "when called",
		Setup: func(b api.PluginBuild) {
			b.OnLoad(api.OnLoadOptions{Filter: "/" + regexp.QuoteMeta(filepath.Base(file)) + "$"},
				func(args api.OnLoadArgs) (api.OnLoadResult, error) {
					if args.Path != file {
						return api.OnLoadResult{}, nil
					}
					result := api.Build(options)
					if len(result.Errors) > 0 {
						return api.OnLoadResult{}, messageError(result.Errors[0])
					}
					contents := string(result.OutputFiles[0].Contents)
					return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, nil
				})
		},
	}
}

// leaveImports marks the import of the core, whose address is known only at run time, with the
// comment that makes webpack leave it alone; other bundlers do so by themselves. The comment is not
// in the source, since esbuild drops comments when it minifies.
func leaveImports(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	marked := strings.ReplaceAll(string(text), "import(", "import(/*webpackIgnore:true*/")
	if marked == string(text) {
		return fmt.Errorf("%s: imports no core", path)
	}
	return os.WriteFile(path, []byte(marked), 0o644)
}

// shared returns the options of every bundle.
func shared(root string) api.BuildOptions {
	version, _ := readVersion(root) // build reports the error
	return api.BuildOptions{
		Define: map[string]string{"PAGEWIRE_VERSION": strconv.Quote(version),
			"PAGEWIRE_BUNDLED": "false"},
		AbsWorkingDir: root,
		Bundle:        true,
		Write:         true,
		// keeps private members and class fields; every engine with WebMCP has them
		Target:            api.ES2022,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		LegalComments:     api.LegalCommentsNone,
		Charset:           api.CharsetUTF8,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		Loader:            map[string]api.Loader{".svg": api.LoaderDataURL},
		NodePaths:         []string{filepath.Join(root, "js/node_modules")},
		LogLevel:          api.LogLevelSilent, // errors are returned, and then printed once
	}
}

// bundle runs esbuild. A warning fails the build: esbuild warns about code that does not do what it
// says.
func bundle(options api.BuildOptions) error {
	result := api.Build(options)
	var errs []error
	for _, message := range append(result.Errors, result.Warnings...) {
		errs = append(errs, messageError(message))
	}
	return errors.Join(errs...)
}

func messageError(m api.Message) error {
	text := m.Text
	if strings.HasPrefix(text, `Could not resolve "`) {
		text += " (a package? run npm ci in js/; a file? it is missing)"
	}
	if m.Location == nil {
		return errors.New(text)
	}
	return fmt.Errorf("%s:%d:%d: %s", m.Location.File, m.Location.Line, m.Location.Column, text)
}

// buildDemos copies demo/index.html with its pictures, each folder demo/<number>-<name>/, and
// demo/common/ to out. Each .ts or .css file directly in a folder is an entry, and becomes a .js
// script or a style sheet of the same name. Modules that entries share are in a subfolder. Maps are
// linked, since people read the demos.
func buildDemos(root, out string) error {
	demo := filepath.Join(root, "demo")
	pages, err := filepath.Glob(filepath.Join(demo, "[0-9]*-*"))
	if err != nil {
		return err
	}
	var errs []error
	errs = append(errs, copyFile(filepath.Join(out, "logo.svg"), filepath.Join(root, logo)))
	for _, name := range []string{"index.html", "story.gif", "story.png"} {
		errs = append(errs, copyFile(filepath.Join(out, name), filepath.Join(demo, name)))
	}
	for _, page := range append(pages, filepath.Join(demo, "common")) {
		to := filepath.Join(out, filepath.Base(page))
		entries, err := os.ReadDir(page)
		if err != nil {
			return err
		}
		options := shared(root)
		for _, entry := range entries {
			name := entry.Name()
			switch {
			case entry.IsDir(), name == "tsconfig.json":
			case strings.HasSuffix(name, ".d.ts"), strings.HasSuffix(name, ".go"):
			case strings.HasSuffix(name, ".ts"), strings.HasSuffix(name, ".css"):
				options.EntryPoints = append(options.EntryPoints, filepath.Join(page, name))
			default:
				errs = append(errs, copyFile(filepath.Join(to, name), filepath.Join(page, name)))
			}
		}
		options.Outdir = to
		options.Format = api.FormatESModule
		options.Platform = api.PlatformBrowser
		options.Sourcemap = api.SourceMapLinked
		options.MinifyIdentifiers = false
		if len(options.EntryPoints) > 0 {
			errs = append(errs, bundle(options))
		}
	}
	return errors.Join(errs...)
}
