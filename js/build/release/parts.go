package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/pagewire/pagewire/js/build/commands"
)

// A module is a module of Go, a package of npm, or a part of a toolchain, of other authors. dir is
// its unpacked folder.
type module struct{ system, path, version, dir string }

// purl is the package URL, by which scanners know a module.
func (m module) purl() string {
	return "pkg:" + m.system + "/" + strings.Replace(m.path, "@", "%40", 1) + "@" + m.version
}

// parts are the modules in each file that is shipped: the programs and pageFiles.
type parts map[string][]module

// pageFiles are the parts that run in pages; "scripts" has all bundles.
var pageFiles = []string{"pagewire.wasm", "scripts"}

// modules returns the modules of some files, each once and in order.
func (p parts) modules(files ...string) (all []module) {
	for _, file := range files {
		all = append(all, p[file]...)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return slices.Compact(all)
}

// tinyGo matches TinyGo's version text. It captures TinyGo's version, which fixes that of its C
// library, and LLVM's, which compiler-rt is a part of.
var tinyGo = regexp.MustCompile(`^tinygo version (\S+) .*LLVM version ([\d.]+)`)

// terms are the licences of the libraries that TinyGo links into each core, whose licence files are
// not on all systems. Under the LLVM exception a linked program need not contain the licence's
// text.
var terms = map[string]string{
	"compiler-rt": "Apache-2.0 WITH LLVM-exception: https://llvm.org/LICENSE.txt",
	"wasi-libc":   "Apache-2.0 WITH LLVM-exception, or MIT: https://github.com/WebAssembly/wasi-libc/blob/main/LICENSE",
}

// collect finds the modules in each file that ships: programs' and wasm's by go list, bundles' by
// package-lock.json.
//
// No tool for such lists replaces it. They do not see what a program embeds, nor the libraries that
// TinyGo links. cyclonedx-gomod 1.10 writes the sum of its own binary into its list, cyclonedx-npm
// 6.0 the version of npm, so the same commit would give other bytes on another machine. The first
// names wrong licences for 7 of the 24 modules in pagewire. go-licenses 1.6 refuses MIT-0.
//
// core is, say, "go1.26.8", or "tinygo version 0.41.1 linux/amd64 (using go version go1.26.8 and
// LLVM version 19.1.7)".
func collect(core string) (all parts, err error) {
	env, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	goVersion, root, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	runtime := []module{{"golang", "std", strings.TrimPrefix(goVersion, "go"), root}}
	all = parts{}
	for name := range commands.Programs {
		all[name] = slices.Clone(runtime)
		for _, platform := range commands.Platforms {
			err = errors.Join(err, all.addImports(name, platform.OS, platform.Arch,
				"./bridge/cmd/"+name))
		}
	}
	if words := tinyGo.FindStringSubmatch(core); words != nil {
		var source struct{ Dir string }
		out, loadErr := exec.Command("go", "mod", "download", "-json",
			"github.com/tinygo-org/tinygo@v"+words[1]).Output()
		err = errors.Join(err, loadErr, json.Unmarshal(out, &source))
		runtime = append(runtime, module{"generic", "compiler-rt", words[2], ""},
			module{"generic", "wasi-libc", words[1], ""},
			module{"generic", "tinygo", words[1], source.Dir})
	}
	all["pagewire.wasm"] = slices.Clone(runtime)
	err = errors.Join(err, all.addImports("pagewire.wasm", "js", "wasm", "./wasm"))
	lock, lockErr := readJSON("js/package-lock.json")
	packages, _ := lock["packages"].(map[string]any)
	// The core's loader contains a part of the runtime of the core's compiler.
	all["scripts"] = append(bundled(packages), runtime[len(runtime)-1])
	all["pagewire"] = append(all["pagewire"], all.modules(pageFiles...)...)
	return all, errors.Join(err, lockErr)
}

// addImports adds the modules that a package imports on a system.
func (p parts) addImports(file, system, processor, pkg string) error {
	list := exec.Command("go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", pkg)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list -deps %s for %s/%s: %w", pkg, system, processor, err)
	}
	for line := range strings.Lines(string(out)) {
		if field := strings.Split(strings.TrimSpace(line), "\t"); len(field) == 3 {
			p[file] = append(p[file], module{"golang", field[0], field[1], field[2]})
		}
	}
	return nil
}

// bundled returns the packages of js/package-lock.json that bundles may contain: npm marks all
// others as dev. The linter lets code that ships import only the dependencies of package.json.
func bundled(packages map[string]any) (all []module) {
	for place, its := range packages {
		its, _ := its.(map[string]any)
		if i := strings.LastIndex(place, "node_modules/"); i >= 0 && its["dev"] == nil {
			name := place[i+len("node_modules/"):]
			all = append(all, module{"npm", name, fmt.Sprint(its["version"]),
				filepath.Join("js", place)})
		}
	}
	return all
}

// bill writes the parts list (SBOM): pagewire, its files, and the modules in each file.
func (p plan) bill(all parts, core string) error {
	root := cdx.Component{Type: cdx.ComponentTypeApplication, Name: "pagewire", Version: p.version,
		PackageURL: "pkg:npm/pagewire@" + p.version,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}}}
	var files []cdx.Component
	for _, file := range slices.Sorted(maps.Keys(all)) {
		var in []cdx.Component
		for _, its := range all.modules(file) {
			in = append(in, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: its.path,
				Version: its.version, PackageURL: its.purl()})
		}
		files = append(files, cdx.Component{Type: cdx.ComponentTypeFile, Name: file,
			Version: p.version, Components: &in})
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: p.at, Component: &root, Properties: &[]cdx.Property{
		{Name: "pagewire:commit", Value: p.commit}, {Name: "pagewire:core", Value: core}}}
	bom.Components = &files
	var out bytes.Buffer
	to := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	err := to.EncodeVersion(bom, cdx.SpecVersion1_6)
	return errors.Join(err, write("release/pagewire-"+p.version+".cdx.json", out.Bytes()))
}

// licenceName matches the names of the files that most licences require to be passed on.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licences writes the texts of the modules' licences and notices. A module without a licence is an
// error: it may not be shipped.
func licences(dir string, modules []module) error {
	owners := map[string][]string{} // by text: the same text is written once
	for _, m := range modules {
		if text := terms[m.path]; text != "" {
			owners[text] = append(owners[text], m.path+" "+m.version)
			continue
		}
		var texts []string
		entries, err := os.ReadDir(m.dir)
		for _, entry := range entries {
			if licenceName.MatchString(entry.Name()) && !entry.IsDir() {
				text, readErr := os.ReadFile(filepath.Join(m.dir, entry.Name()))
				texts = append(texts, strings.TrimSpace(
					strings.ReplaceAll(string(text), "\r\n", "\n")))
				err = errors.Join(err, readErr)
			}
		}
		if err != nil || len(texts) == 0 {
			return errors.Join(err, fmt.Errorf("%s %s is linked and has no licence file in %s",
				m.path, m.version, m.dir))
		}
		for _, text := range texts {
			owners[text] = append(owners[text], m.path+" "+m.version)
		}
	}
	out := "What of others is in this package, and under which terms.\n"
	rule := strings.Repeat("-", 80)
	for _, text := range slices.SortedFunc(maps.Keys(owners), func(a, b string) int {
		return cmp.Or(slices.Compare(owners[a], owners[b]), strings.Compare(a, b))
	}) {
		names := strings.Join(slices.Compact(owners[text]), "\n")
		out += fmt.Sprintf("\n%s\n%s\n%s\n\n%s\n", rule, names, rule, text)
	}
	return write(filepath.Join(dir, "THIRD-PARTY-LICENSES.txt"), []byte(out))
}
