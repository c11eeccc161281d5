//go:build !js

package bridge_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A scriptRow names the code that the scripts of a folder of js/, or one script, may take into
// their bundle. Types are free: they are erased. The order is the layering: a row names only rows
// above it.
type scriptRow struct{ path, ours string }

var scripts = []scriptRow{
	{"page/common/intrinsics.ts", ""}, // it is given the page's intrinsics
	{"page/early", ""},                // every page carries these: a byte here is a byte in each page
	{"link", "page/common/intrinsics.ts"},
	// What comes with an agent. Not even the intrinsics of early/: taken so late, they could be the
	// page's patches.
	{"page/common", "page/early/basics.ts"}, // what the folders below share
	{"page/resources", "page/common link page/early/basics.ts"},
	{"page/tools", "page/common page/resources link page/early/basics.ts"},  // the page's own, for cores
	{"page/webmcp", "page/common page/resources link page/early/basics.ts"}, // for agents that ask the browser
	{"page/cores", "page/common page/resources page/tools link"},
	{"page/gateway", "page/common link page/early/basics.ts"}, // connections with a core elsewhere
	// All of that, and agents in the page: the core that serves them, and their ports.
	{"page/late", "page/common page/resources page/webmcp page/cores page/gateway page/early/basics.ts"},
	{"core", "link page/late"},
	{"inject", "page/early page/late"},
	{"testing", "page/early core"},
	{"share", "page/early"},
	{"shown", "share/columns.ts share/secrets.ts"},
	{"react", "share"},
	{"dev", "page/early share"},
	{"vite", ""},
	{"next", ""},
	{"vue", "share"},
	{"views", ""},
	{"view", ""},
	{"parts", ""},
	{"inspector", "link/reconnect.ts parts"},
	{"cli", ""},
	{"extension", "page/early page/late link core inspector parts shown"},
	{"test", "page/early page/common page/resources page/webmcp page/gateway page/late link dev"},
}

func TestScriptsFollowTheTable(t *testing.T) {
	root := "../js"
	seen := 0
	for _, folder := range scriptFolders(t, root) {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.ts*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			report(t, checkScript(folder+"/"+filepath.Base(name), text))
			seen++
		}
	}
	if seen == 0 {
		t.Error("no script was found: the test sees nothing")
	}
}

// scriptFolders returns the folders of js/ that hold scripts of Pagewire.
func scriptFolders(t *testing.T, root string) (folders []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, name)
		switch {
		case err != nil || !entry.IsDir():
			return err
		case folder == ".":
			return nil
		case entry.Name() == "node_modules" || folder == "build" || folder == "test/npm":
			return filepath.SkipDir
		}
		folders = append(folders, filepath.ToSlash(folder))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

var scriptImport = regexp.MustCompile(`(?:^import|^export|^\}) ?.*?(?:from )?"(\.\.?/[^"]+)"`)

// checkScript returns the imports of a script that the table does not allow.
func checkScript(name string, text []byte) (violations []string) {
	at := slices.IndexFunc(scripts, func(r scriptRow) bool { return ofScript(r.path, name) })
	if at < 0 {
		return []string{name + " is in no row of the table of scripts: decide what it may import"}
	}
	row, types := scripts[at], false
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "export ") {
			types = strings.HasPrefix(line, "import type ") || strings.HasPrefix(line, "export type ")
		}
		match := scriptImport.FindStringSubmatch(line)
		if match == nil || types {
			continue
		}
		to := path.Join(path.Dir(name), match[1])
		allowed := path.Dir(to) == path.Dir(name) ||
			slices.ContainsFunc(strings.Fields(row.ours), func(p string) bool { return ofScript(p, to) })
		if !allowed {
			violations = append(violations,
				fmt.Sprintf("js/%s:%d: imports js/%s: the table allows %s", name, n, to, orNothing(row.ours)))
		}
	}
	return violations
}

// No script imports itself by way of others, not even a type: whoever changes one of a circle has to know all of it.
func TestScriptsHaveNoCircles(t *testing.T) {
	imports := map[string][]string{}
	for _, root := range []string{"js", "demo"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && entry.Name() == "node_modules" {
				return cmp.Or(err, filepath.SkipDir)
			}
			if !isScript.MatchString(file) {
				return nil
			}
			text, err := os.ReadFile(file)
			name, _ := filepath.Rel("..", file)
			imports[filepath.ToSlash(name)] = importsOf(filepath.ToSlash(name), text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(imports) == 0 {
		t.Error("no script was found: the test sees nothing")
	}
	report(t, circles(imports))
}

var isScript = regexp.MustCompile(`\.(tsx?|m?js)$`)

// importsOf returns the paths of a script's imports of other scripts.
func importsOf(name string, text []byte) (paths []string) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if match := scriptImport.FindStringSubmatch(lines.Text()); match != nil {
			paths = append(paths, path.Join(path.Dir(name), match[1]))
		}
	}
	return paths
}

// circles returns one line for each import that closes a circle.
func circles(imports map[string][]string) (found []string) {
	var way []string
	done := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if at := slices.Index(way, name); at >= 0 {
			found = append(found, "a circle of imports: "+strings.Join(append(way[at:], name), " -> "))
		} else if !done[name] {
			way = append(way, name)
			for _, to := range imports[name] {
				visit(to)
			}
			way = way[:len(way)-1]
			done[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		visit(name)
	}
	return found
}

func TestCirclesAreFound(t *testing.T) {
	files := map[string]string{
		"js/a/a.ts": "import {\n\tb,\n} from \"../b/b.ts\";",
		"js/b/b.ts": `import "./c.ts";`,
		"js/b/c.ts": `export type { A } from "../a/a.ts";`,
		"js/b/d.ts": `import { c } from "./c.ts";`,
	}
	imports := map[string][]string{}
	for name, text := range files {
		imports[name] = importsOf(name, []byte(text))
	}
	want := []string{"a circle of imports: js/a/a.ts -> js/b/b.ts -> js/b/c.ts -> js/a/a.ts"}
	if got := circles(imports); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// ofScript reports whether pattern is the script name, or its folder.
func ofScript(pattern, name string) bool { return pattern == name || pattern == path.Dir(name) }

func TestScriptCheckRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"page/early/a.ts", `import { b } from "./b.ts";`, ""},
		{"page/early/a.ts", `import type { Core } from "../../link/link.ts";`, ""},
		{"page/early/a.ts", `import { channel } from "../../link/channel.ts";`,
			"js/page/early/a.ts:1: imports js/link/channel.ts: the table allows none"},
		{"page/early/a.ts", "import {\n\ta,\n} from \"../resources/reads.ts\";",
			"js/page/early/a.ts:3: imports js/page/resources/reads.ts"},
		{"page/early/a.ts", `import "../resources/reads.ts";`, "imports js/page/resources/reads.ts"},
		{"page/late/a.ts", `import { isObject } from "../early/basics.ts";`, ""},
		{"page/late/a.ts", `import { SafeMap } from "../early/intrinsics.ts";`, "imports js/page/early/intrinsics.ts"},
		{"link/a.ts", `import { SafeMap } from "../page/common/intrinsics.ts";`, ""},
		{"link/a.ts", `export { SafeMap } from "../page/resources/reads.ts";`, "imports js/page/resources/reads.ts"},
		{"test/a.ts", `export { SafeMap } from "../page/resources/reads.ts";`, ""},
		{"new/a.ts", "", "new/a.ts is in no row"},
	} {
		got := strings.Join(checkScript(c.name, []byte(c.text)), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s with %q:\n got %q\nwant %q", c.name, c.text, got, c.want)
		}
	}
}

// In both tables a row names only rows above it.
func TestTablesAreLayers(t *testing.T) {
	for i, row := range scripts {
		for _, to := range strings.Fields(row.ours) {
			if !slices.ContainsFunc(scripts[:i],
				func(r scriptRow) bool { return ofScript(r.path, to) || r.path == to }) {
				t.Errorf("the row of js/%s names %s, which is in none above it", row.path, to)
			}
		}
	}
	for i, r := range packages {
		for _, to := range strings.Fields(r.ours) {
			if to == "*" || strings.HasSuffix(to, "/...") && within(to, strings.TrimSuffix(r.path, "/...")) {
				continue // any package above it
			}
			if !slices.ContainsFunc(packages[:i], func(above row) bool { return meets(above.path, to) }) {
				t.Errorf("the row of %s names %s, which is in none above it", r.path, to)
			}
		}
	}
}

// meets reports whether two paths of the table have a package in common.
func meets(a, b string) bool {
	return within(a, strings.TrimSuffix(b, "/...")) || within(b, strings.TrimSuffix(a, "/..."))
}
