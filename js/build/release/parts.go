package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/js/build/commands"
)

// A module is somebody else's: of Go or of npm.
type module struct {
	system        string // golang, npm, or generic for a toolchain that is neither
	path, version string
	dir           string // where it is unpacked
	integrity     string // npm's, of its tarball
}

// purl is the package URL, by which scanners know it.
func (m module) purl() string {
	return "pkg:" + m.system + "/" + strings.Replace(m.path, "@", "%40", 1) + "@" + m.version
}

// parts are the modules that are in each file that is shipped: a program, the wasm, a bundle (extension/popup.js).
type parts map[string]map[string]module // the inner by purl

func (p parts) add(file string, m module) {
	if p[file] == nil {
		p[file] = map[string]module{}
	}
	p[file][m.purl()] = m
}

// of returns the modules of the files that match a pattern, in order.
func (p parts) of(matches func(file string) bool) []module {
	all := map[string]module{}
	for file, its := range p {
		if matches(file) {
			for purl, m := range its {
				all[purl] = m
			}
		}
	}
	return sorted(all)
}

// sorted returns modules in the order of their package URLs.
func sorted(all map[string]module) []module {
	list := make([]module, 0, len(all))
	for _, m := range all {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return list
}

// collect finds out what is in what was built: of the programs Go tells it by what is linked into each, of the wasm by
// what its packages import, and of bundles esbuild does.
func (m *maker) collect() (parts, error) {
	std, err := standard()
	if err != nil {
		return nil, err
	}
	all := parts{}
	for _, platform := range m.platforms {
		known, err := imported(m.root, platform.OS, platform.Arch, "./bridge/cmd/...")
		if err != nil {
			return nil, err
		}
		for name := range commands.Programs {
			all.add(name, std)
			if err := all.addProgram(name, filepath.Join(m.linked(platform), platform.File(name)), known); err != nil {
				return nil, err
			}
		}
	}
	runtimes := coreRuntime(m.core, std)
	for file, pkg := range map[string]string{"pagewire.wasm": "./wasm", "pagewire.views.wasm": "./wasm/views"} {
		known, err := imported(m.root, "js", "wasm", pkg)
		if err != nil {
			return nil, err
		}
		for _, its := range append(sorted(known), runtimes...) {
			all.add(file, its)
		}
	}
	return all, all.addBundles(m.root, runtimes)
}

// standard is the library of Go, with its runtime.
func standard() (module, error) {
	env, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return module{}, fmt.Errorf("go env: %w", err)
	}
	version, root, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	return module{system: "golang", path: "std", version: strings.TrimPrefix(version, "go"), dir: root}, nil
}

// imported returns the modules that packages import on a system, by path.
func imported(root, system, processor, packages string) (map[string]module, error) {
	list := exec.Command("go", "list", "-deps", "-f",
		`{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`, packages)
	list.Dir, list.Env = root, append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -deps %s for %s/%s: %w", packages, system, processor, err)
	}
	known := map[string]module{}
	for line := range strings.Lines(string(out)) {
		if field := strings.Split(strings.TrimSpace(line), "\t"); len(field) == 3 {
			known[field[0]] = module{system: "golang", path: field[0], version: field[1], dir: field[2]}
		}
	}
	return known, nil
}

func (p parts) addProgram(name, path string, known map[string]module) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, dep := range info.Deps {
		m := known[dep.Path]
		if m.version != dep.Version || dep.Replace != nil {
			return fmt.Errorf("%s has %s %s, and the tree %q", path, dep.Path, dep.Version, m.version)
		}
		p.add(name, m)
	}
	return nil
}

// coreRuntime is what is linked into the wasm whatever it imports, and brings the loader's wasm_exec.js.
func coreRuntime(core string, std module) []module {
	words := strings.Fields(core) // "tinygo version 0.39.0 linux/amd64 (...)", or "go1.26.8"
	if len(words) > 2 && words[0] == "tinygo" {
		return []module{std, {system: "generic", path: "tinygo", version: words[2]}}
	}
	return []module{std}
}

// addBundles reads what esbuild has written about each bundle that is shipped.
func (p parts) addBundles(root string, runtimes []module) error {
	packages, err := npmPackages(filepath.Join(root, "js"))
	if err != nil {
		return err
	}
	metas, err := filepath.Glob(filepath.Join(root, "dist", "meta", "*.json"))
	if err != nil {
		return err
	}
	for _, path := range metas {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var meta struct {
			Outputs map[string]struct {
				Inputs map[string]struct{ BytesInOutput int }
			}
		}
		if err := json.Unmarshal(text, &meta); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for output, its := range meta.Outputs {
			file := strings.TrimPrefix(output, "dist/")
			if strings.HasPrefix(file, "demo/") || strings.HasPrefix(file, "test/") {
				continue // not shipped
			}
			for input := range its.Inputs {
				if err := p.addInput(file, input, packages, runtimes); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p parts) addInput(file, input string, packages map[string]module, runtimes []module) error {
	if strings.HasPrefix(input, "wasm_exec:") {
		p.add(file, runtimes[len(runtimes)-1])
		return nil
	}
	_, place, is := strings.Cut(input, "js/node_modules/")
	if !is {
		return nil // ours
	}
	// js/node_modules/a/node_modules/@b/c/file.js is of a/node_modules/@b/c.
	at := strings.LastIndex("/"+place, "/node_modules/") + 1
	if at > 0 {
		at += len("node_modules/") - 1
	}
	names := strings.SplitN(place[at:], "/", 3)
	place = place[:at] + names[0]
	if strings.HasPrefix(names[0], "@") {
		place += "/" + names[1]
	}
	m, found := packages["node_modules/"+place]
	if !found {
		return fmt.Errorf("%s has %s, which is not in js/package-lock.json", file, input)
	}
	p.add(file, m)
	return nil
}

// npmPackages returns what js/package-lock.json names, by place.
func npmPackages(dir string) (map[string]module, error) {
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("js/package-lock.json: %w", err)
	}
	packages := map[string]module{}
	for place, its := range lock.Packages {
		if at := strings.LastIndex(place, "node_modules/"); at >= 0 {
			name := place[at+len("node_modules/"):]
			packages[place] = module{"npm", name, its.Version, filepath.Join(dir, place), its.Integrity}
		}
	}
	return packages, nil
}
