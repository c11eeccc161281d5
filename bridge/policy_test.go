//go:build !js

package bridge_test

// These tests check the imports of each package, and the code that runs in a page. The compiler accepts everything that
// they refuse (net/http, the MCP SDK and goroutines compile for js/wasm); only they stop it.
//
// A failure asks a question: is the code worth its price? If so, change the table, with the reason in the commit. Do
// not change it to make a build pass.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

const module = "github.com/pagewire/pagewire"

// A home is where the code of a package runs. It decides what the code may contain.
type home int

const (
	native home = iota // only outside of pages
	page               // in the page and natively, from the same files: nothing that TinyGo or the engine's rules exclude
	edge               // only in the page; otherwise as for page
)

// A row lists the imports that a package may have. A path that ends in /... includes the packages below it. Packages of
// one row may import each other. Tests may import anything.
type row struct {
	path   string
	home   home
	ours   string // packages of this module, or * for any
	others string // modules of others, or * for any
}

// chromeDevTools are the modules that speak the Chrome DevTools Protocol.
const chromeDevTools = "github.com/chromedp/chromedp github.com/chromedp/cdproto github.com/go-json-experiment/json"

// packages has the whole module: a package in no row fails, so that each new one needs a decision.
var packages = []row{
	{"idl/...", native, "", ""},
	{"bridge/wire", page, "", ""},
	{"bridge/coalesce", page, "", ""},
	{"bridge/resource", page, "", ""},
	{"bridge", page, "bridge/wire bridge/coalesce bridge/resource", ""},
	{"bridge/link", page, "bridge bridge/wire", ""},
	{"bridge/driver", native, "bridge", ""},
	// The gateway's leaves: none imports the gateway.
	{"bridge/weborigin", native, "", ""},
	{"bridge/internal/mcpconn", native, "", ""},
	{"bridge/gateway/gate", native, "bridge/wire bridge/resource", ""},
	{"bridge/internal/quota", native, "", ""},
	{"bridge/gateway/tools", native, "bridge/wire bridge/internal/quota", "golang.org/x/text"},
	{"bridge/internal/retry", native, "", ""},
	{"bridge/internal/taburi", native, "bridge", ""},
	{"bridge/gateway/door", native, "bridge bridge/weborigin " +
		"bridge/internal/taburi", ""},
	{"bridge/internal/peer", native, "", "golang.org/x/sys"},
	{"bridge/internal/userdir", native, "bridge/internal/retry", "golang.org/x/sys"},
	{"bridge/internal/jsonc", native, "", "github.com/tailscale/hujson"},
	{"bridge/internal/parts", native, "bridge/internal/jsonc bridge/internal/userdir bridge/weborigin", "github.com/go-json-experiment/json github.com/tailscale/hujson"},
	{"bridge/internal/secret", native, "bridge/internal/userdir", ""},
	{"bridge/internal/wsconn", native, "bridge/internal/quota", "github.com/coder/websocket"},
	{"bridge/internal/...", native, "", ""},
	{"bridge/assets", native, "", ""},
	{"bridge/gateway/skills", native, "bridge", ""},
	{"bridge/gateway/live/seen", native, "", ""},
	{"bridge/gateway/live/delta", native, "bridge/wire", "github.com/aymanbagabas/go-udiff"},
	{"bridge/gateway/live", native, "bridge/wire bridge/gateway/gate bridge/gateway/live/seen bridge/gateway/live/delta", ""},
	{"bridge/gateway/catalog", native, "bridge bridge/gateway/live bridge/internal/taburi", ""},
	{"bridge/gateway/follow", native, "bridge/coalesce bridge/gateway/live bridge/gateway/live/seen " +
		"bridge/internal/quota bridge/weborigin", ""},
	{"bridge/gateway/events", native, "bridge bridge/wire bridge/gateway/catalog bridge/gateway/door " +
		"bridge/gateway/follow bridge/internal/quota bridge/internal/taburi bridge/weborigin", ""},
	{"bridge/gateway/calls", native, "bridge/gateway/live bridge/gateway/live/seen bridge/gateway/live/delta " +
		"bridge/gateway/follow bridge/weborigin bridge/internal/taburi bridge/internal/quota",
		"github.com/modelcontextprotocol/go-sdk"},
	{"bridge/desktop/browser", native, "bridge/internal/peer bridge/internal/secret", ""},
	{"bridge/desktop/browser/launched", native, "bridge/desktop/browser bridge/internal/retry " +
		"bridge/internal/userdir", "golang.org/x/sys"},
	// Its middle: it knows pages by their link and agents by their messages, and does not know their transports.
	{"bridge/gateway", native, "bridge bridge/coalesce bridge/wire bridge/link bridge/driver " +
		"bridge/gateway/catalog bridge/gateway/door bridge/weborigin bridge/internal/mcpconn bridge/gateway/tools bridge/gateway/calls bridge/gateway/live/... " +
		"bridge/gateway/follow " +
		"bridge/gateway/gate bridge/gateway/events bridge/gateway/skills bridge/internal/parts bridge/internal/taburi bridge/internal/quota",
		"github.com/modelcontextprotocol/go-sdk golang.org/x/time"},
	// The ways in: of these only uplink imports another, relay.
	{"bridge/pages/cdp", native, "bridge bridge/gateway bridge/assets bridge/gateway/gate bridge/internal/parts bridge/weborigin",
		chromeDevTools + " github.com/coder/websocket golang.org/x/time"},
	{"bridge/pages/socket", native, "bridge/link bridge/gateway bridge/weborigin " +
		"bridge/internal/...", "github.com/coder/websocket"},
	{"bridge/pages/extension", native, "bridge/internal/...", "github.com/coder/websocket"},
	{"bridge/agents", native, "bridge bridge/gateway bridge/gateway/events bridge/internal/quota",
		"github.com/modelcontextprotocol/go-sdk"},
	{"bridge/access", native, "bridge/weborigin bridge/internal/bearer bridge/internal/peer " +
		"bridge/internal/proof bridge/internal/secret", ""},
	{"bridge/desktop/daemon", native, "bridge bridge/internal/parts bridge/internal/retry bridge/internal/userdir",
		"github.com/fsnotify/fsnotify golang.org/x/mod golang.org/x/sys"},
	{"bridge/desktop/hook", native, "bridge/gateway bridge/gateway/calls", "golang.org/x/sys"},
	{"bridge/desktop/inspect/...", native, "bridge/gateway bridge/gateway/live bridge/assets " +
		"bridge/internal/proof bridge/internal/quota",
		"github.com/coder/websocket github.com/VictoriaMetrics/metrics"},
	{"bridge/node/relay", native, "bridge bridge/link bridge/wire bridge/internal/quota", ""},
	{"bridge/node/uplink", native, "bridge bridge/link bridge/gateway bridge/gateway/door bridge/node/relay bridge/internal/retry " +
		"bridge/weborigin bridge/internal/...", "github.com/coder/websocket"},
	// Beyond one machine: only the bus imports NATS, and nothing that the desktop's serve links imports the fleet.
	{"bridge/node/bus", native, "bridge/internal/retry bridge/weborigin", "github.com/nats-io/nats-server/v2 github.com/nats-io/nats.go"},
	{"bridge/node/webhook", native, "bridge bridge/gateway/events bridge/node/bus " +
		"bridge/internal/quota bridge/internal/retry",
		"code.dny.dev/ssrf golang.org/x/net golang.org/x/time"},
	{"bridge/node", native, "bridge bridge/link bridge/wire bridge/gateway bridge/node/bus " +
		"bridge/node/relay bridge/internal/quota bridge/weborigin", "golang.org/x/time"},
	{"bridge/node/tickets", native, "bridge/weborigin", "github.com/lestrrat-go/jwx/v3"},
	{"bridge/node/dial", native, "bridge/link bridge/pages/socket bridge/node " +
		"bridge/node/tickets bridge/internal/...", "github.com/coder/websocket golang.org/x/time"},
	{"bridge/node/endpoint", native, "bridge bridge/wire bridge/gateway bridge/access bridge/agents " +
		"bridge/gateway/events bridge/node/webhook bridge/weborigin bridge/node bridge/node/tickets bridge/internal/quota", "github.com/modelcontextprotocol/go-sdk"},
	{"bridge/node/traces", native, "", "go.opentelemetry.io/otel go.opentelemetry.io/otel/sdk " +
		"go.opentelemetry.io/otel/trace go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"},
	{"bridge/node/process", native, "bridge/gateway bridge/agents bridge/weborigin " +
		"bridge/internal/bearer bridge/internal/keypair bridge/internal/userdir bridge/node/...",
		"github.com/prometheus/client_golang"},
	// serve puts them together.
	{"bridge/desktop/serve", native, "bridge/gateway bridge/agents bridge/access bridge/weborigin " +
		"bridge/pages/cdp bridge/pages/socket bridge/pages/extension bridge/node/uplink bridge/desktop/daemon " +
		"bridge/desktop/hook bridge/desktop/inspect bridge/desktop/browser bridge/desktop/browser/launched " +
		"bridge/internal/keypair bridge/internal/parts bridge/internal/peer bridge/internal/quota " +
		"bridge/internal/retry", ""},
	// Only tests import it.
	{"bridge/testkit/testcmd", native, "", ""},
	{"bridge/testkit/deltatest", native, "", ""},
	{"bridge/testkit/browsertest", native, "bridge/desktop/browser", "github.com/chromedp/chromedp"}, // demos, too
	{"bridge/testkit/issuertest", native, "", "github.com/lestrrat-go/jwx/v3"},                       // the fleet's demo, too
	{"bridge/testkit/webhooktest", native, "", ""},                                                   // likewise
	{"bridge/testkit", native, "bridge/testkit/testcmd", "github.com/modelcontextprotocol/go-sdk github.com/coder/websocket"},
	{"bridge/testkit/nodekit", native, "bridge/testkit bridge/node bridge/node/tickets " +
		"bridge/testkit/issuertest", ""},
	// tests of page code import it, so it must also compile for js/wasm
	{"bridge/testkit/script", native, "", "golang.org/x/tools"},
	{"bridge/cmd/internal/cli", native, "", ""},
	{"bridge/cmd/pagewire/clientconfig/files", native, "bridge/cmd/internal/cli bridge/internal/userdir", ""},
	{"bridge/cmd/pagewire/clientconfig", native, "bridge/cmd/internal/cli bridge/cmd/pagewire/clientconfig/files " +
		"bridge/gateway/skills bridge/internal/jsonc bridge/weborigin", "github.com/tailscale/hujson github.com/pelletier/go-toml/v2"},
	{"bridge/cmd/pagewire/nativehost", native, "bridge/cmd/internal/cli bridge/cmd/pagewire/clientconfig " +
		"bridge/cmd/pagewire/clientconfig/files bridge/pages/extension", ""},
	{"bridge/cmd/pagewire", native, "bridge/cmd/internal/cli bridge/cmd/pagewire/clientconfig bridge/cmd/pagewire/clientconfig/files " +
		"bridge/cmd/pagewire/nativehost bridge/desktop/serve bridge/desktop/daemon bridge/desktop/hook " +
		"bridge/desktop/browser bridge/desktop/browser/launched bridge/gateway bridge/gateway/calls bridge/access bridge/agents bridge/assets bridge/pages/extension " +
		"bridge/node/uplink bridge/weborigin bridge/internal/parts bridge/internal/retry bridge/internal/userdir",
		"github.com/spf13/cobra github.com/spf13/pflag github.com/aymanbagabas/go-udiff github.com/mattn/go-runewidth " +
			"github.com/modelcontextprotocol/go-sdk github.com/pelletier/go-toml/v2 golang.org/x/term"},
	{"bridge/cmd/pagewire-node", native, "bridge/node/process bridge/cmd/internal/cli",
		"github.com/spf13/cobra github.com/spf13/pflag"},
	{"wasm/...", edge, "bridge", "github.com/hack-pad/safejs"},
	{"js/...", native, "bridge/assets", "github.com/evanw/esbuild github.com/andybalholm/brotli " +
		"github.com/CycloneDX/cyclonedx-go golang.org/x/mod"},
	{"demo/ci", native, "", ""},
	{"demo/step", native, "", ""},
	// the SDK serves demo 5's Views
	{"demo/...", native, "demo/ci demo/step bridge/weborigin bridge/agents bridge/gateway/... " +
		"bridge/desktop/browser/... bridge/pages/socket bridge/testkit/browsertest bridge/testkit/issuertest bridge/testkit/webhooktest",
		"github.com/chromedp/chromedp github.com/chromedp/cdproto github.com/modelcontextprotocol/go-sdk"},
	{"e2e/...", native, "*", "*"},
}

// pure are the packages of the standard library that page code may import: they only compute. None reads a clock, opens
// anything, starts or awaits a goroutine, or looks at types at run time.
var pure = strings.Fields(
	`bytes cmp errors iter maps math math/bits slices sort strconv strings unicode unicode/utf16 unicode/utf8`)

// heavy are packages that code in the core's wasm must not import, with their cost in TinyGo's build and the
// replacement. safejs brings some of them into Go's build.
var heavy = map[string]string{
	"bytes":   "it brings tables of unicode; string(a) == string(b) copies nothing",
	"errors":  "Is and As bring reflection, 11 KB of TinyGo's wasm; an error that is its text is a type of one line",
	"fmt":     "it brings reflect and os; wire.Text writes what is to be written",
	"reflect": "TinyGo has a part of it, and each program with it is larger by all of that part",
	"sort":    "it sorts by reflection, or by interfaces; slices does without",
	"strconv": "23 KB of TinyGo's wasm, half of it tables for floats; wire.Itoa writes integers",
	"strings": "it brings tables of unicode, and of replacers; package resource has what it needs",
	"unicode": "its tables are 2.5 KB of TinyGo's wasm for the first of them",
}

// edgeOnly may be imported only in wasm/, of the code of the page.
var edgeOnly = strings.Fields(`syscall/js unsafe github.com/hack-pad/safejs`)

// paid are the packages of the standard library that may be linked into the core: pure, and those that safejs brings
// anyway.
var paid = slices.Concat(pure,
	strings.Fields(`fmt io io/fs os path reflect runtime sync sync/atomic syscall syscall/js time unsafe`))

// Things that page code does not contain, with the reason that a failure prints.
const (
	noGoroutine = "the engine never starts a goroutine, and TinyGo builds the core with -scheduler=none (18 KB " +
		"brotli against 24)"
	noChannel = "blocking in an export returns garbage to the page, and TinyGo builds the core with " +
		"-scheduler=none (18 KB brotli against 24)"
	noFinalizer = "TinyGo runs none, so what depends on one leaks"
	noLinkname  = "TinyGo has other internals under other names"
)

// The race detector does not look at these packages (UNCHECKED in the Makefile), which compute alone.
func TestUncheckedPackagesStartNoGoroutine(t *testing.T) {
	for _, dir := range []string{"gateway/gate", "gateway/live/delta"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, _ := n.(*ast.SelectorExpr)
				if _, begins := n.(*ast.GoStmt); begins || call != nil && call.Sel.Name == "Go" {
					t.Errorf("%s starts a goroutine: take %s out of UNCHECKED", name, dir)
				}
				return true
			})
		}
	}
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, target := range []string{runtime.GOOS + "/" + runtime.GOARCH, "js/wasm"} {
		t.Run(target, func(t *testing.T) {
			graph := list(t, target)
			for _, root := range []string{module + "/bridge/wire", module + "/bridge/coalesce",
				module + "/bridge/resource"} {
				if graph[root].path == "" {
					t.Errorf("go list does not know %s: the test sees nothing", root)
				}
			}
			report(t, checkImports(graph))
			if target == "js/wasm" {
				report(t, checkCore(graph))
			}
		})
	}
}

// A package says what it is for before it says how, and within a screen. Its doc opens with the purpose and with what
// the package never does; what one place needs stands there.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	const most = 30 // lines
	docs := map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := d.Name(); base == "testdata" || base == "node_modules" || base == ".git" {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		text := file.Doc.Text()
		if text == "" || slices.Contains(docs[dir], text) { // files of two systems may have the same
			docs[dir] = append(docs[dir], "")
			return nil
		}
		if begin := "Package " + file.Name.Name + " "; !strings.HasPrefix(text, begin) &&
			!strings.HasPrefix(text, "Command ") {
			t.Errorf("%s: the doc must begin with %q", name, begin)
		}
		if n := strings.Count(text, "\n"); n > most {
			t.Errorf("%s: the doc has %d lines; the limit is %d", name, n, most)
		}
		docs[dir] = append(docs[dir], text)
		return nil
	})
	if err != nil || len(docs) < 50 {
		t.Fatal(len(docs), err)
	}
	for dir, texts := range docs {
		if n := len(slices.DeleteFunc(texts, func(s string) bool { return s == "" })); n != 1 {
			t.Errorf("%s has %d docs", dir, n)
		}
	}
}

// Each agent of each user loads the desktop's program, so the code for fleets is in a program of its own.
func TestDesktopLinksNothingOfTheFleet(t *testing.T) {
	graph := list(t, runtime.GOOS+"/"+runtime.GOARCH)
	of := func(root string) map[string]bool {
		seen, queue := map[string]bool{root: true}, []string{root}
		for ; len(queue) > 0; queue = queue[1:] {
			for _, to := range graph[queue[0]].imports {
				if !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
		return seen
	}
	// By these, pages of a desktop are pages of its user's node, too.
	both := []string{module + "/bridge/node/relay", module + "/bridge/node/uplink"}
	foreign := func(pkg string) bool {
		return strings.HasPrefix(pkg, module+"/bridge/node") && !slices.Contains(both, pkg) || strings.HasPrefix(graph[pkg].module,
			"github.com/nats-io/") || strings.HasPrefix(graph[pkg].module, "github.com/lestrrat-go/") ||
			strings.HasPrefix(graph[pkg].module, "go.opentelemetry.io/")
	}
	for pkg := range of(module + "/bridge/cmd/pagewire") {
		if foreign(pkg) {
			t.Errorf("pagewire links %s, which is for fleets", pkg)
		}
	}
	found := 0
	for pkg := range of(module + "/bridge/cmd/pagewire-node") {
		if foreign(pkg) {
			found++
		}
	}
	if found < 10 {
		t.Errorf("of what is for fleets pagewire-node links %d packages: the test sees nothing", found)
	}
}

// The engine links only these packages of the standard library into the core, and no other module. The core also has
// safejs.
func TestTheCoreWithoutSafejsNeedsLittle(t *testing.T) {
	const needed = "cmp iter math/bits runtime slices unicode/utf8 unsafe"
	cmd := testcmd.Command("go", "list", "-deps", "-tags=tinygo", "./bridge")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.DeleteFunc(strings.Fields(string(text)), func(path string) bool {
		return internal(path) || strings.HasPrefix(path, module)
	})
	slices.Sort(paths)
	if got := strings.Join(paths, " "); got != needed {
		t.Errorf("it depends on %s; want %s", got, needed)
	}
}

func TestPageSourcesStayFitForThePage(t *testing.T) {
	root, seen := "..", 0
	for dir, files := range sources(t, root) {
		row := rowOf(dir)
		if row < 0 {
			t.Errorf("%s is in no row of the table: decide what it may import", dir)
			continue
		}
		for _, name := range files {
			if packages[row].home < page || strings.HasSuffix(name, "_test.go") {
				continue
			}
			full := filepath.Join(root, filepath.FromSlash(dir), name)
			text, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			report(t, checkSource(packages[row].home, dir+"/"+name, text))
			seen++
		}
	}
	if seen == 0 {
		t.Error("no source of a page package was found: the test sees nothing")
	}
}

// A node is a package as go list reports it.
type node struct {
	path     string
	imports  []string // of its files without tests, for the target
	standard bool
	module   string
}

// list returns the module's packages for a target and their dependencies, by import path. For js/wasm it lists only
// packages that can run in a page: the others need not compile there.
func list(t *testing.T, target string) map[string]node {
	t.Helper()
	patterns := []string{"./..."}
	if target == "js/wasm" {
		patterns = nil
		for _, r := range packages {
			if r.home >= page {
				patterns = append(patterns, "./"+r.path)
			}
		}
	}
	goos, goarch, _ := strings.Cut(target, "/")
	cmd := testcmd.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Imports,Standard,Module"},
		patterns...)...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", target, err, &stderr)
	}
	graph := map[string]node{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
			Standard   bool
			Module     *struct{ Path string }
		}
		if err := decoder.Decode(&pkg); err == io.EOF {
			return graph
		} else if err != nil {
			t.Fatal(err)
		}
		n := node{path: pkg.ImportPath, imports: pkg.Imports, standard: pkg.Standard}
		if pkg.Module != nil {
			n.module = pkg.Module.Path
		}
		graph[n.path] = n
	}
}

// sources returns the Go files of each directory of the repository, by the directory's path below root: tests too, and
// files under any build constraint.
func sources(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (base == "node_modules" || base == "testdata" ||
			strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && strings.HasSuffix(base, ".go") {
			rel, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			found[rel] = append(found[rel], base)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func report(t *testing.T, violations []string) {
	t.Helper()
	for _, violation := range violations {
		t.Error(violation)
	}
}

// rowOf returns the row of a package, given by its path below the module, or -1.
func rowOf(dir string) int {
	return slices.IndexFunc(packages, func(r row) bool { return within(r.path, dir) })
}

// within reports whether dir matches pattern: a path, or a path with /... .
func within(pattern, dir string) bool {
	above, deep := strings.CutSuffix(pattern, "/...")
	return dir == above || deep && strings.HasPrefix(dir, above+"/")
}

// checkImports returns the imports in graph that the table does not allow.
func checkImports(graph map[string]node) []string {
	var violations []string
	for _, from := range slices.Sorted(maps.Keys(graph)) {
		dir, ours := below(from)
		if !ours {
			continue
		}
		i := rowOf(dir)
		if i < 0 {
			violations = append(violations, fmt.Sprintf("%s is in no row of the table: decide what it may import", dir))
			continue
		}
		row := packages[i]
		for _, to := range graph[from].imports {
			refuse := func(why string) {
				violations = append(violations, fmt.Sprintf("%s imports %s: %s", dir, to, why))
			}
			target, ours := below(to)
			switch {
			case ours:
				if row.ours != "*" && !within(row.path, target) && !slices.ContainsFunc(strings.Fields(row.ours),
					func(p string) bool { return within(p, target) }) {
					refuse("the table allows " + orNothing(row.ours))
				}
			case row.home >= page && slices.Contains(edgeOnly, to):
				if row.home != edge {
					refuse("only wasm/ touches JavaScript and memory")
				}
			case graph[to].standard || to == "unsafe":
				if row.home >= page && !slices.Contains(pure, to) {
					refuse("page code imports what computes and no more")
				}
			default:
				if row.others != "*" && !slices.Contains(strings.Fields(row.others), graph[to].module) {
					refuse("of others' modules the table allows " + orNothing(row.others))
				}
			}
		}
	}
	return violations
}

// checkCore returns the packages linked into wasm/ that are heavy or not paid for, with an importer of each. It returns
// none if graph has no wasm/.
func checkCore(graph map[string]node) []string {
	var violations []string
	importer := map[string]string{}
	var queue []string
	for from := range graph {
		if dir, ours := below(from); ours && within("wasm/...", dir) {
			queue = append(queue, from)
		}
	}
	slices.Sort(queue)
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		for _, to := range graph[from].imports {
			if why := heavy[to]; why != "" && strings.HasPrefix(from, module+"/") {
				violations = append(violations, fmt.Sprintf("%s imports %s, and is in the core's wasm: %s", from, to,
					why))
			}
			if _, seen := importer[to]; seen {
				continue
			}
			importer[to] = from
			if graph[to].standard && !internal(to) && !slices.Contains(paid, to) {
				violations = append(violations, fmt.Sprintf("wasm depends on %s, which %s imports", to, from))
				continue
			}
			if mod := graph[to].module; mod != "" && mod != module && !slices.Contains(edgeOnly, mod) {
				violations = append(violations, fmt.Sprintf("wasm depends on %s, which %s imports", to, from))
				continue
			}
			queue = append(queue, to)
		}
	}
	return violations
}

// internal reports whether a package is internal to the standard library: it comes with its importers.
func internal(pkg string) bool {
	return slices.Contains(strings.Split(pkg, "/"), "internal") || strings.HasPrefix(pkg, "vendor/")
}

// below returns the path of a package of this module, below the module's path.
func below(pkg string) (string, bool) {
	dir, ok := strings.CutPrefix(pkg, module+"/")
	return dir, ok
}

func orNothing(allowed string) string {
	if allowed == "" {
		return "none"
	}
	return allowed
}

// checkSource returns the constructs in a file that page code must not contain.
func checkSource(h home, name string, text []byte) []string {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	var violations []string
	refuse := func(at token.Pos, what, why string) {
		position := files.Position(at)
		violations = append(violations, fmt.Sprintf("%s:%d: %s: %s", name, position.Line, what, why))
	}

	runtimeName := "" // under which this file imports package runtime
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // it was parsed
		if imported == "runtime" {
			runtimeName = "runtime"
			if spec.Name != nil {
				runtimeName = spec.Name.Name
			}
		}
		// The graph has this file's imports only if it is built, and a file for TinyGo is not built here.
		allowed := slices.Contains(pure, imported) || strings.HasPrefix(imported, module+"/")
		if h == edge {
			allowed = allowed || slices.Contains(edgeOnly, imported) || imported == "runtime"
		}
		if why := heavy[imported]; h == edge && why != "" {
			refuse(spec.Pos(), "import "+imported, why)
		} else if !allowed {
			refuse(spec.Pos(), "import "+imported, "page code imports what computes and no more")
		}
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:linkname") {
				refuse(comment.Pos(), "//go:linkname", noLinkname)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			refuse(n.Pos(), "go statement", noGoroutine)
		case *ast.ChanType:
			refuse(n.Pos(), "channel type", noChannel)
		case *ast.SendStmt:
			refuse(n.Pos(), "send", noChannel)
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				refuse(n.Pos(), "receive", noChannel)
			}
		case *ast.SelectStmt:
			if !isLastStand(h, name, text, n) {
				refuse(n.Pos(), "select", noChannel)
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == runtimeName &&
				(n.Sel.Name == "SetFinalizer" || n.Sel.Name == "AddCleanup") {
				refuse(n.Pos(), "runtime."+n.Sel.Name, noFinalizer)
			}
		}
		return true
	})
	return violations
}

// isLastStand reports whether a select is the allowed one: under Go main must block so that its exports stay callable,
// under TinyGo it must return. So a file of wasm/ that only Go builds may end in select {}.
func isLastStand(h home, name string, text []byte, s *ast.SelectStmt) bool {
	context := build.Default
	context.GOOS, context.GOARCH, context.BuildTags = "js", "wasm", []string{"tinygo"}
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	byTinyGo, err := context.MatchFile(path.Dir(name), path.Base(name))
	return h == edge && len(s.Body.List) == 0 && err == nil && !byTinyGo
}

// The checks must refuse each mutation, in words that name the fault, and pass the sound ones.

func TestImportCheckRefuses(t *testing.T) {
	standard := func(name string, imports ...string) node {
		return node{path: name, imports: imports, standard: true}
	}
	// A small sound graph; each case adds an import to one package of it.
	sound := func() map[string]node {
		graph := map[string]node{}
		for _, n := range []node{
			{path: module + "/bridge/wire", imports: []string{"unicode/utf8"}},
			{path: module + "/bridge/coalesce"},
			{path: module + "/bridge", imports: []string{module + "/bridge/wire", module + "/bridge/coalesce"}},
			{path: module + "/bridge/desktop/browser", imports: []string{"os"}},
			{path: module + "/bridge/testkit/browsertest", imports: []string{"github.com/chromedp/chromedp"}},
			{path: module + "/bridge/cmd/pagewire", imports: []string{module + "/bridge/desktop/browser"}},
			{path: module + "/wasm", imports: []string{module + "/bridge", "unsafe", "syscall/js",
				"github.com/hack-pad/safejs"}},
			{path: "github.com/hack-pad/safejs", module: "github.com/hack-pad/safejs",
				imports: []string{"fmt", "syscall/js"}},
			{path: "github.com/chromedp/chromedp", module: "github.com/chromedp/chromedp",
				imports: []string{"net/http"}},
			{path: "example.com/other", module: "example.com/other"},
			standard("unicode/utf8"), standard("strconv", "internal/strconv"), standard("internal/strconv"),
			standard("fmt", "reflect"),
			standard("reflect"), standard("os", "time"),
			standard("time"), standard("syscall/js"), standard("net/http"), standard("encoding/json"),
			standard("net/url"),
		} {
			graph[n.path] = n
		}
		return graph
	}
	if got := slices.Concat(checkImports(sound()), checkCore(sound())); len(got) > 0 {
		t.Fatalf("a sound graph is refused: %q", got)
	}
	for _, c := range []struct{ from, to, want string }{
		{"bridge/wire", module + "/bridge", "bridge/wire imports " + module + "/bridge: the table allows none"},
		{"bridge", module + "/bridge/desktop/browser", "the table allows bridge/wire bridge/coalesce bridge/resource"},
		{"bridge", "encoding/json", "bridge imports encoding/json: page code imports what computes and no more"},
		{"bridge", "syscall/js", "only wasm/ touches JavaScript"},
		{"bridge/testkit/browsertest", "example.com/other", "of others' modules the table allows " +
			"github.com/chromedp/chromedp"},
		{"wasm", module + "/bridge/wire", "the table allows bridge"},
		{"wasm", "net/http", "wasm depends on net/http, which " + module + "/wasm imports"},
		{"github.com/hack-pad/safejs", "encoding/json", "wasm depends on encoding/json, which " +
			"github.com/hack-pad/safejs imports"},
		{"github.com/hack-pad/safejs", "example.com/other", "wasm depends on example.com/other"},
		{"bridge/wire", "fmt", module + "/bridge/wire imports fmt, and is in the core's wasm: it brings reflect"},
		{"bridge/new", "strconv", "bridge/new is in no row of the table"},
	} {
		graph := sound()
		from := c.from
		if !strings.Contains(from, ".com") {
			from = module + "/" + from
		}
		n := graph[from]
		n.path, n.imports = from, append(slices.Clone(n.imports), c.to)
		graph[from] = n
		got := strings.Join(slices.Concat(checkImports(graph), checkCore(graph)), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s importing %s:\n got %q\nwant %q", c.from, c.to, got, c.want)
		}
	}
}

func TestSourceCheckRefuses(t *testing.T) {
	for _, c := range []struct {
		home       home
		file, want string // want "": it is sound
	}{
		{page, "package p\n\nimport \"strconv\"\n\nfunc f() { _ = strconv.Itoa(1) }", ""},
		{edge, "//go:build js && wasm && !tinygo\n\npackage main\n\nfunc main() { select {} }", ""},
		{edge, "package main\n\nimport \"unsafe\"\n\nvar p unsafe.Pointer", ""},
		{page, "package p\n\nfunc f() { go f() }", "p/p.go:3: go statement: the engine never starts a goroutine"},
		{page, "package p\n\nvar c chan int", "channel type"},
		{page, "package p\n\nfunc f() { c <- 1 }", "send"},
		{page, "package p\n\nfunc f() { <-c }", "receive"},
		{page, "package p\n\nfunc f() { select {} }", "select"},
		{edge, "//go:build js && wasm\n\npackage main\n\nfunc main() { select {} }", "select"},
		{edge, "//go:build js && wasm && !tinygo\n\npackage main\n\nfunc main() { select { default: } }", "select"},
		{page, "package p\n\nimport \"reflect\"", "import reflect: page code imports what computes"},
		{page, "package p\n\nimport \"syscall/js\"", "import syscall/js"},
		{edge, "package p\n\nimport \"fmt\"", "import fmt: it brings reflect"},
		{edge, "package p\n\nimport rt \"runtime\"\n\nfunc f() { rt.SetFinalizer(nil, nil) }", "runtime.SetFinalizer"},
		{edge, "package p\n\n//go:linkname f runtime.f\nfunc f()", "//go:linkname"},
		{page, "package p\n\nfunc {", "expected"},
	} {
		got := strings.Join(checkSource(c.home, "p/p.go", []byte(c.file)), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.file, got, c.want)
		}
	}
}

// Package registries. A mirror, or another registry, is set in the configuration of the tool that asks there, so no
// other file names a host.
var (
	registries = []string{"registry.npmjs.org", "registry.yarnpkg.com", "proxy.golang.org", "sum.golang.org",
		"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "pypi.org", "files.pythonhosted.org", "crates.io",
		"rubygems.org", "docker.io", "ghcr.io", "quay.io"}
	toolConfiguration = regexp.MustCompile(`^(?:\.github/workflows/release\.yml|(?:.+/)?(?:package-lock\.json|\.npmrc))$`)
)

func TestNoRegistryIsNamed(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
		switch {
		case entry.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "dist"}, entry.Name()):
			return fs.SkipDir
		case !entry.Type().IsRegular(), toolConfiguration.MatchString(name), name == "bridge/policy_test.go":
			return nil
		}
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file of another test
		} else if err != nil {
			return err
		}
		seen++
		for _, host := range registries {
			if bytes.Contains(text, []byte(host)) {
				t.Errorf("%s names %s, a package registry: only the configuration of a tool may", name, host)
			}
		}
		return nil
	})
	if err != nil || seen < 1000 {
		t.Errorf("%d files were read: %v", seen, err)
	}
}
