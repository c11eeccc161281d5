package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/js/build/commands"
)

// A module is somebody else's: of Go, of npm, or a toolchain that is neither. dir is where it is unpacked.
type module struct{ system, path, version, dir string }

// purl is the package URL, by which scanners know it.
func (m module) purl() string {
	return "pkg:" + m.system + "/" + strings.Replace(m.path, "@", "%40", 1) + "@" + m.version
}

// parts are the modules that are in each file that is shipped: a program, the wasm, a bundle (extension/popup.js).
type parts map[string][]module

// of returns the modules of the files that match a pattern, each once and in order.
func (p parts) of(matches func(file string) bool) (all []module) {
	for file, its := range p {
		if matches(file) {
			all = append(all, its...)
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.purl(), b.purl()) })
	return slices.Compact(all)
}

// collect finds out what is in what is shipped: of programs and wasm Go tells it, and of bundles esbuild does.
func collect(core string) (parts, error) {
	env, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	goVersion, root, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	runtime := []module{{"golang", "std", strings.TrimPrefix(goVersion, "go"), root}}
	all := parts{}
	for _, platform := range commands.Platforms {
		for name := range commands.Programs {
			all[name] = append(all[name], runtime...)
			if err := all.addImports(name, platform.OS, platform.Arch, "./bridge/cmd/"+name); err != nil {
				return nil, err
			}
		}
	}
	// "tinygo version 0.39.0 linux/amd64 (...)", or "go1.26.8"
	if words := strings.Fields(core); len(words) > 2 && words[0] == "tinygo" {
		runtime = append(runtime, module{"generic", "tinygo", words[2], ""})
	}
	for file, pkg := range map[string]string{"pagewire.wasm": "./wasm", "pagewire.views.wasm": "./wasm/views"} {
		all[file] = append(all[file], runtime...)
		if err := all.addImports(file, "js", "wasm", pkg); err != nil {
			return nil, err
		}
	}
	return all, all.addBundles(runtime[len(runtime)-1])
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

// inPackage is an input of a bundle that is not ours; what it captures is the package's key in package-lock.json.
var inPackage = regexp.MustCompile(`js/(node_modules/(?:.*/node_modules/)?(?:@[^/]+/)?[^/]+)/`)

// addBundles reads what esbuild has written about each bundle that is shipped. The loader has the core's wasm_exec.js.
func (p parts) addBundles(loader module) error {
	lock, err := packageJSON("js/package-lock.json")
	if err != nil {
		return err
	}
	metas, err := filepath.Glob("dist/meta/*.json")
	if err != nil {
		return err
	}
	for _, path := range metas {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var meta struct {
			Outputs map[string]struct{ Inputs map[string]any }
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
				if strings.HasPrefix(input, "wasm_exec:") {
					p[file] = append(p[file], loader)
				} else if err := p.addInput(file, input, lock["packages"].(map[string]any)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addInput adds the npm package that an input of a bundle is of, unless it is ours.
func (p parts) addInput(file, input string, packages map[string]any) error {
	place := inPackage.FindStringSubmatch(input)
	if place == nil {
		return nil
	}
	its, found := packages[place[1]].(map[string]any)
	if !found {
		return fmt.Errorf("%s has %s, which is not in js/package-lock.json", file, input)
	}
	name := place[1][strings.LastIndex(place[1], "node_modules/")+len("node_modules/"):]
	p[file] = append(p[file], module{"npm", name, its["version"].(string), filepath.Join("js", place[1])})
	return nil
}

// licenceName is what the files are called that most licences want to be handed on.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licences writes the texts of the modules' licences and notices, each text once, behind the modules that it is of. It
// refuses a module that has none: then it may not be shipped.
func licences(dir string, modules []module) error {
	var order []string
	owners := map[string][]string{}
	for _, m := range modules {
		var texts []string
		entries, err := os.ReadDir(m.dir)
		for _, entry := range entries {
			if licenceName.MatchString(entry.Name()) && !entry.IsDir() {
				text, readErr := os.ReadFile(filepath.Join(m.dir, entry.Name()))
				texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
				err = errors.Join(err, readErr)
			}
		}
		if m.path == "tinygo" { // its archives have no file for it
			texts, err = []string{"BSD-3-Clause: https://github.com/tinygo-org/tinygo/blob/release/LICENSE"}, nil
		}
		if err != nil || len(texts) == 0 {
			return errors.Join(err, fmt.Errorf("%s %s is linked and has no licence file in %s", m.path, m.version, m.dir))
		}
		for _, text := range texts {
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], m.path+" "+m.version)
		}
	}
	var out strings.Builder
	out.WriteString("What of others is in this package, and under which terms.\n")
	rule := strings.Repeat("-", 80)
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(slices.Compact(owners[text]), "\n"), rule, text)
	}
	return write(filepath.Join(dir, "THIRD-PARTY-LICENSES.txt"), []byte(out.String()))
}
