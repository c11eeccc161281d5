package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/js/build/commands"
)

// source has the members of js/package.json that are published. The file itself is for development (private, with its
// tools). The published package.json is generated from these members, so that the version is in one place.
type source struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	License     string          `json:"license"`
	Keywords    []string        `json:"keywords,omitempty"`
	Homepage    string          `json:"homepage,omitempty"`
	Repository  json.RawMessage `json:"repository,omitempty"`
}

// stamped is the version of a release, which is stamped on everything instead of the one in js/package.json.
var stamped string

// export is one entry of "exports". A resolver takes the first condition that it knows. So types come first, then the
// servers that call themselves browsers too. browser comes before node, since Electron's windows are both.
type export struct {
	Types     *typed `json:"types,omitempty"`
	Workerd   string `json:"workerd,omitempty"`    // Cloudflare
	EdgeLight string `json:"edge-light,omitempty"` // Vercel, Next.js
	Browser   *files `json:"browser,omitempty"`
	Node      *files `json:"node,omitempty"`
	files
}

// typed are the types of an export. Files for require have types of their own, or TypeScript takes them for ES modules.
type typed struct {
	Require string `json:"require,omitempty"`
	Default string `json:"default"`
}

// typesOf returns nil if file is "". commonJS says that there is a file for require.
func typesOf(file string, commonJS bool) *typed {
	switch {
	case file == "":
		return nil
	case commonJS:
		return &typed{file[:strings.LastIndex(file, ".")] + ".cts", file}
	}
	return &typed{Default: file}
}

// files are the files of an export, by the kind of module that an importer asks for. Bundlers take "module" for require
// too: only through that file, an ES module, do they find the core.
type files struct {
	Module  string `json:"module,omitempty"`
	Require string `json:"require,omitempty"`
	Default string `json:"default"`
}

// elsewhere is the export of files that only pages use: servers get a file that does nothing.
func elsewhere(types string, page files) export {
	const server = "./pagewire.server.mjs"
	return export{typesOf(types, true), server, server, &page,
		&files{Require: "./pagewire.server.cjs", Default: server}, page}
}

// everywhere is the export of one module, as one file or, if require is not "", as an ES module and a CommonJS file.
func everywhere(types, file, require string) export {
	f := files{Default: file}
	if require != "" {
		f.Module, f.Require = file, require
	}
	return export{Types: typesOf(types, require != ""), files: f}
}

// manifest is the published package.json. It has no dependencies and no scripts, so that installing it runs nothing.
// The platforms' programs are optional: npm installs the one that fits, or none (--omit=optional). Only pagewire/react
// needs React, and only pagewire/vue needs Vue; npm installs neither by itself.
type manifest struct {
	source
	MCPName     string              `json:"mcpName"`
	Type        string              `json:"type"`
	Types       string              `json:"types"`
	Main        string              `json:"main"`
	Bin         map[string]string   `json:"bin"`
	Exports     map[string]export   `json:"exports"`
	SideEffects []string            `json:"sideEffects"`
	Peers       map[string]string   `json:"peerDependencies"`
	PeersMeta   map[string]peerMeta `json:"peerDependenciesMeta"`
	Optional    map[string]string   `json:"optionalDependencies"`
	Unpkg       string              `json:"unpkg"`
	Jsdelivr    string              `json:"jsdelivr"`
	Files       []string            `json:"files"`
}

type peerMeta struct {
	Optional bool `json:"optional"`
}

// packaged are the files of the npm package that are not among shipped.
var packaged = []string{
	"cli.js", "pagewire.cjs", "pagewire.d.mts", "pagewire.d.cts",
	"pagewire.server.mjs", "pagewire.server.cjs",
	"react.js", "react.js.map", "react.cjs", "react.d.ts", "react.d.cts",
	"store.js", "store.js.map", "store.cjs", "store.d.ts", "store.d.cts",
	"vue.js", "vue.js.map", "vue.cjs", "vue.d.ts", "vue.d.cts",
	"elements.cjs", "elements.d.ts", "elements.d.cts", "iife.d.ts", "iife.d.cts", "hosted.d.ts",
	"views.js", "views.d.ts", "view.js", "view.d.ts",
	"testing.js", "testing.js.map", "testing.cjs", "testing.d.ts", "testing.d.cts",
	"vite.js", "vite.js.map", "vite.client.js", "vite.client.js.map", "vite.d.ts",
	"extension.page.js", "extension.relay.js", "extension.worker.js", "extension.d.ts",
}

func readPackage(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	var pkg source
	if err := json.Unmarshal(text, &pkg); err != nil {
		return source{}, fmt.Errorf("%s: %w", path, err)
	}
	if pkg.Version = cmp.Or(stamped, pkg.Version); pkg.Name == "" || pkg.Version == "" {
		return source{}, fmt.Errorf("%s: name and version are required", path)
	}
	return pkg, nil
}

func manifestOf(pkg source) manifest {
	const types = "./pagewire.d.mts"
	programs := map[string]string{}
	for _, platform := range commands.Platforms {
		programs[platform.Package()] = pkg.Version
	}
	return manifest{
		source:  pkg,
		MCPName: commands.RegistryName,
		Type:    "module",
		Types:   types,
		Main:    "./pagewire.mjs",
		Bin:     map[string]string{"pagewire": "./cli.js"},
		Exports: map[string]export{
			".":       elsewhere(types, files{"./pagewire.mjs", "./pagewire.cjs", "./pagewire.mjs"}),
			"./react": everywhere("./react.d.ts", "./react.js", "./react.cjs"),
			"./store": everywhere("./store.d.ts", "./store.js", "./store.cjs"),
			"./vue":   everywhere("./vue.d.ts", "./vue.js", "./vue.cjs"),
			"./elements": elsewhere("./elements.d.ts",
				files{"./pagewire.elements.js", "./elements.cjs", "./pagewire.elements.js"}),
			"./iife":             elsewhere("./iife.d.ts", files{Default: "./pagewire.js"}),
			"./views":            everywhere("./views.d.ts", "./views.js", ""),
			"./view":             everywhere("./view.d.ts", "./view.js", ""),
			"./testing":          everywhere("./testing.d.ts", "./testing.js", "./testing.cjs"),
			"./vite":             everywhere("./vite.d.ts", "./vite.js", ""),
			"./extension/page":   everywhere("./iife.d.ts", "./extension.page.js", ""),
			"./extension/relay":  everywhere("./hosted.d.ts", "./extension.relay.js", ""),
			"./extension/worker": everywhere("./extension.d.ts", "./extension.worker.js", ""),
			"./core":             everywhere("./hosted.d.ts", "./pagewire.core.js", ""),
			"./worker":           everywhere("./hosted.d.ts", "./pagewire.worker.js", ""),
			"./wasm":             everywhere("./hosted.d.ts", "./pagewire.wasm", ""),
			"./package.json":     everywhere("", "./package.json", ""),
		},
		// The page layer installs itself when it is imported: a bundler must not drop `import 'pagewire'`. It may drop
		// an import of a hook, or of shareStore, that nothing uses. Servers' files have no side effects, but esbuild
		// warns of each import without a name from a file that is not in this list.
		SideEffects: []string{"./pagewire.mjs", "./pagewire.cjs", "./pagewire.server.mjs", "./pagewire.server.cjs",
			"./pagewire.js", "./pagewire.elements.js", "./elements.cjs", "./pagewire.worker.js", "./testing.js", "./testing.cjs",
			"./extension.page.js", "./extension.relay.js"},
		Peers:     map[string]string{"react": ">=18", "vue": ">=3.3"},
		PeersMeta: map[string]peerMeta{"react": {Optional: true}, "vue": {Optional: true}},
		Optional:  programs,
		Unpkg:     "./pagewire.js",
		Jsdelivr:  "./pagewire.js",
		// A release adds THIRD-PARTY-LICENSES.txt.
		Files: slices.Concat(shipped, packaged, []string{"docs", "README.md", "LICENSE", "THIRD-PARTY-LICENSES.txt"}),
	}
}

// writePackage fills dist/npm. It leaves out the maps of minified files: they would be two thirds of the package.
func writePackage(root, dist string, pkg source) error {
	dir := filepath.Join(dist, "npm")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	err := copyManual(filepath.Join(dir, "docs"), filepath.Join(root, "demo", "docs"))
	for _, name := range slices.Concat(shipped, packaged) {
		err = errors.Join(err, copyFile(filepath.Join(dir, name), filepath.Join(dist, name)))
	}
	for _, name := range []string{"README.md", "LICENSE"} {
		err = errors.Join(err, copyFile(filepath.Join(dir, name), filepath.Join(root, name)))
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false) // a version range has a >
	err = errors.Join(err, to.Encode(manifestOf(pkg)))
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "package.json"), text.Bytes(), 0o644))
}

// copyManual copies the manual's pages, for agents that write code. The list of the pages becomes llms.txt too.
func copyManual(to, from string) error {
	pages, err := fs.Glob(os.DirFS(from), "*.md")
	err = errors.Join(err, copyFile(filepath.Join(to, "llms.txt"), filepath.Join(from, "README.md")))
	for _, page := range pages {
		err = errors.Join(err, copyFile(filepath.Join(to, page), filepath.Join(from, page)))
	}
	return err
}
