package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/pelletier/go-toml/v2"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// parseOnly checks the syntax of a block that is not run by itself. TestTypes checks the types of
// all blocks at once.
func parseOnly(t *testing.T, b block) {
	t.Helper()
	if err := parse(b); err != nil {
		t.Errorf("%v: %v\n%s", b, err, b.code)
	}
}

func parse(b block) error {
	switch b.language {
	case "json":
		var v any
		return json.Unmarshal([]byte(b.code), &v)
	case "js":
		options := api.TransformOptions{Loader: api.LoaderJS, Format: api.FormatESModule,
			Target: api.ES2022}
		result := api.Transform(b.code, options)
		for _, message := range append(result.Errors, result.Warnings...) {
			return fmt.Errorf("line %d: %s", message.Location.Line, message.Text)
		}
	case "toml":
		var v any
		return toml.Unmarshal([]byte(b.code), &v)
	}
	return nil
}

// all returns the blocks of all documents in these languages.
func all(t *testing.T, languages ...string) (found []block) {
	t.Helper()
	for _, name := range documents(t) {
		for _, b := range blocksOf(name, read(t, name)) {
			if slices.Contains(languages, b.language) {
				found = append(found, b)
			}
		}
	}
	return found
}

var notInName = regexp.MustCompile(`\W+`)

// TestTypes checks all ts and jsx blocks with TypeScript, as modules of one project, and bundles
// each.
func TestTypes(t *testing.T) {
	t.Parallel()
	w := there(t)
	dir, err := os.MkdirTemp(w.modules, "types-")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{"tsconfig.json": "shop/blocks.json", "globals.d.ts": "shop/globals.d.ts"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
	}
	blocks := all(t, "ts", "jsx")
	for _, b := range blocks {
		name := fmt.Sprintf("%s-line-%d.%s", notInName.ReplaceAllString(b.file, "-"), b.line, b.language)
		write(name, b.setup["ts"]+b.code+"\nexport {};\n")
		result := api.Build(api.BuildOptions{EntryPoints: []string{filepath.Join(dir, name)}, Bundle: true,
			Format: api.FormatESModule, Outdir: dir, JSX: api.JSXAutomatic, Target: api.ES2022, NodePaths: w.nodePaths()})
		for _, message := range result.Errors {
			t.Errorf("%v: %s", b, message.Text)
		}
	}
	tsc, _ := filepath.Abs(filepath.Join(root, "js/node_modules/.bin/tsc"))
	if out, err := testcmd.Command(tsc, "-p", dir).CombinedOutput(); err != nil && len(blocks) > 0 {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}

// TestComponents compiles the Vue and Svelte blocks.
func TestComponents(t *testing.T) {
	t.Parallel()
	compilers := map[string]string{
		"vue": `import { compileScript, compileTemplate, parse } from "vue/compiler-sfc";
const { descriptor, errors } = parse(code);
if (errors.length) throw errors[0];
if (descriptor.script || descriptor.scriptSetup) compileScript(descriptor, { id: "a" });
if (descriptor.template) {
  const { errors } = compileTemplate({ source: descriptor.template.content, id: "a", filename: "a.vue" });
  if (errors.length) throw errors[0];
}`,
		"svelte": `import { compile } from "svelte/compiler";
compile(code, {});`,
	}
	for _, b := range all(t, "vue", "svelte") {
		text, _ := json.Marshal(b.code)
		runInNode(t, block{file: b.file, line: b.line,
			code: strings.Replace(compilers[b.language], "\n", "\nconst code = "+string(text)+";\n", 1)})
	}
}

// TestGo checks all go blocks with go vet, as packages of the module.
func TestGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	var packages []string
	for i, b := range all(t, "go") {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(file, []byte(b.code), 0o644); err != nil {
			t.Fatal(err)
		}
		place := fmt.Sprintf("e2e/docs/block%d", i)
		absolute, _ := filepath.Abs(filepath.Join(root, place, "main.go"))
		overlay["Replace"][absolute] = file
		packages = append(packages, "./"+place)
	}
	text, _ := json.Marshal(overlay)
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	build := []string{"build", "-o", os.DevNull, "-overlay", filepath.Join(dir, "overlay.json")}
	cmd := testcmd.Command("go", append(build, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go blocks: %v\n%s", err, out)
	}
}
