//go:build frameworks

package e2e

// Apps that the templates of others make: create-vite's and create-next-app's, as npm has them, with
// a store of the kind that is usual there and with the one line that puts pagewire/dev in. An agent
// is told of what happens while they are developed. frameworks/ has the makers and the stores.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// turnBytes bounds what an agent's turn gets of one change, without the message's envelope.
const turnBytes = 300

// A replacement replaces a text of an app's file by another.
type replacement struct{ file, before, after string }

// A template makes an app.
type template struct {
	name string
	// maker is a script of frameworks/node_modules, with its arguments after the app's name.
	maker []string
	// files is a folder of frameworks/, and libraries its store. shows puts its component, shop, in.
	files, libraries, shop string
	// state is the path of the store, and component the beginning of a name that the pick has.
	state, component string
	shows            []replacement
	// line is the one line of the configuration, with a place for the gateway's address.
	line []replacement
	// wrong is what a person mistypes in shop.
	wrong [2]string
	// entry is where an app would import pagewire/dev by mistake.
	entry string
	// server are the arguments of Node that serve the app in development, at a host and a port;
	// built are those that serve what `npm run build` has written to out, nil for plain files.
	server, built []string
	out           string
	// versions are the packages whose versions the table has.
	versions []string
}

func viteTemplate(name, library, shop string, shows []replacement, wrong [2]string) template {
	return template{
		name:  "create-vite " + name + "-ts",
		maker: []string{"create-vite/index.js", "--template", name + "-ts", "--no-interactive"},
		files: name, state: "/state/cart", component: "Shop", libraries: library, shop: "src/" + shop, shows: shows, wrong: wrong,
		line: []replacement{{"vite.config.ts", "import", `import pagewire from "pagewire/vite"; import`},
			{"vite.config.ts", "plugins: [", `plugins: [pagewire({ gateway: "ws://%s" }), `}},
		entry:  "src/main.ts",
		server: []string{"node_modules/vite/bin/vite.js", "--strictPort", "--host", "%s", "--port", "%s"},
		out:    "dist", versions: []string{"vite", name},
	}
}

var templates = func() []template {
	react := viteTemplate("react", "@reduxjs/toolkit", "Shop.tsx", []replacement{
		{"src/main.tsx", "import App", `import { Shop } from "./Shop"; import App`},
		{"src/main.tsx", "<App />", "<><Shop /><App /></>"},
	}, [2]string{"</button>", "</buton>"})
	react.entry = "src/main.tsx"
	return []template{
		react,
		viteTemplate("vue", "pinia", "Shop.vue", []replacement{
			{"src/main.ts", "import App", `import { createPinia } from "pinia"; import App`},
			{"src/main.ts", "createApp(App)", "createApp(App).use(createPinia())"},
			{"src/App.vue", "import", `import Shop from "./Shop.vue"; import`},
			{"src/App.vue", "<template>", "<template><Shop />"},
		}, [2]string{"</button>", "</buton>"}),
		viteTemplate("svelte", "", "Shop.svelte", []replacement{
			{"src/App.svelte", "import", `import Shop from "./Shop.svelte"; import`},
			{"src/App.svelte", "</script>", "</script><Shop />"},
		}, [2]string{"</button>", "</buton>"}),
		{
			name:  "create-next-app",
			maker: []string{"create-next-app/dist/index.js", "--yes", "--skip-install", "--disable-git"},
			files: "next", state: "/state/zustand", component: "Shop", libraries: "zustand", shop: "app/shop.tsx",
			shows: []replacement{{"app/page.tsx", "import", `import { Shop } from "./shop"; import`},
				{"app/page.tsx", "<main", "<Shop /><main"}},
			line: []replacement{{"next.config.ts", "import", `import { withPagewire } from "pagewire/next"; import`},
				{"next.config.ts", "export default nextConfig",
					`export default withPagewire(nextConfig, { gateway: "ws://%s" })`}},
			wrong:  [2]string{"</button>", "</buton>"},
			entry:  "app/shop.tsx",
			server: []string{"node_modules/next/dist/bin/next", "dev", "-H", "%s", "-p", "%s"},
			built:  []string{"node_modules/next/dist/bin/next", "start", "-H", "%s", "-p", "%s"},
			out:    ".next", versions: []string{"next", "react"},
		},
	}
}()

// A row of the table.
type developed struct {
	name, versions, production, note string
	cells                            []string
}

// TestFrameworks prints what an agent is told of each template's app, in which time and bytes, and
// writes it to bin/frameworks.md. Bytes are asserted, and times only reported.
func TestFrameworks(t *testing.T) {
	var rows []developed
	for _, of := range templates {
		t.Run(of.name, func(t *testing.T) {
			row := developed{name: of.name}
			defer func() { rows = append(rows, row) }()
			develop(t, of, &row)
		})
	}
	table := "| template | versions | error | mended | store | request: 500 | refused | pick | production |\n" +
		"|---|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		if r.note != "" {
			r.versions += " " + r.note
		}
		r.cells = append(r.cells, slices.Repeat([]string{""}, 6)...)[:6]
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", r.name, r.versions,
			strings.Join(r.cells, " | "), r.production)
	}
	testkit.OK(t, os.MkdirAll("../bin", 0o755),
		os.WriteFile("../bin/frameworks.md", []byte(table), 0o644))
}

// An app is a directory with the environment of one user.
type app struct {
	t   *testing.T
	dir string
	env []string
}

func (a app) command(args ...string) *exec.Cmd {
	cmd := testcmd.CommandContext(a.t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = a.dir, a.env
	return cmd
}

func (a app) run(args ...string) {
	a.t.Helper()
	if out, err := a.command(args...).CombinedOutput(); err != nil {
		a.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (a app) edit(edits ...replacement) {
	a.t.Helper()
	for _, e := range edits {
		file := filepath.Join(a.dir, e.file)
		text := string(testkit.Must(os.ReadFile(file))(a.t))
		if !strings.Contains(text, e.before) {
			a.t.Fatalf("the template's %s has no %q: %s", e.file, e.before, text)
		}
		testkit.OK(a.t, os.WriteFile(file, []byte(strings.Replace(text, e.before, e.after, 1)), 0o644))
	}
}

// serves runs Node until the test or stop ends it, and returns the origin that it serves.
func (a app) serves(args []string) (url string, stop func()) {
	a.t.Helper()
	addr := testkit.Addr(a.t)
	host, port, _ := net.SplitHostPort(addr)
	values := []string{host, port}
	line := []string{"node"}
	for _, arg := range args {
		if arg == "%s" {
			arg, values = values[0], values[1:]
		}
		line = append(line, arg)
	}
	cmd := testcmd.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Env = a.dir, a.env
	log := testkit.LogOf(a.t, strings.Join(args[:2], " "))
	cmd.Stdout, cmd.Stderr = log, log
	testkit.OK(a.t, cmd.Start())
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	a.t.Cleanup(stop)
	url = "http://" + addr
	testkit.Eventually(a.t, url+" answers", func() bool {
		r, err := http.Get(url)
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return url, stop
}

// npmMissing are npm's words for a package or a version that the registry does not have.
var npmMissing = regexp.MustCompile(`npm error code (E404|ETARGET)[\s\S]*?npm error (404|notarget) (.*)`)

// made makes the template's app, and installs what it needs and the package.
func made(t *testing.T, of template, h userHome, row *developed) app {
	t.Helper()
	a := app{t: t, dir: t.TempDir(), env: append(os.Environ(), h.env()...)}
	for name, of := range map[string]string{"npm_config_cache": "cache",
		"npm_config_userconfig": "userconfig"} {
		out := testkit.Must(testcmd.CommandContext(t.Context(), "npm", "config", "get", of).Output())(t)
		a.env = append(a.env, name+"="+strings.TrimSpace(string(out)))
	}
	fonts := testkit.Must(filepath.Abs("frameworks/fonts.cjs"))(t)
	a.env = append(a.env, "NEXT_TELEMETRY_DISABLED=1", "NO_COLOR=1", "NEXT_FONT_GOOGLE_MOCKED_RESPONSES="+fonts)
	maker := testkit.Must(filepath.Abs("frameworks/node_modules/" + of.maker[0]))(t)
	if _, err := os.Stat(maker); err != nil {
		t.Fatalf("%v; make test-frameworks installs it", err)
	}
	a.run(append([]string{"node", maker, "app"}, of.maker[1:]...)...)
	var pinned struct{ Dependencies map[string]string }
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile("frameworks/package.json"))(t), &pinned))
	packed := testkit.Must(filepath.Abs(dist + "/npm"))(t)
	a.run("npm", "pack", packed, "--pack-destination", a.dir)
	tarballs, _ := filepath.Glob(filepath.Join(a.dir, "pagewire-*.tgz"))
	a.dir = filepath.Join(a.dir, "app")
	install := append([]string{"npm", "install", "--prefer-offline", "--no-audit", "--no-fund"}, tarballs...)
	if of.libraries != "" {
		install = append(install, of.libraries+"@"+pinned.Dependencies[of.libraries])
	}
	if out, err := a.command(install...).CombinedOutput(); err != nil {
		if missing := npmMissing.FindSubmatch(out); missing != nil {
			row.note = "not in this npm registry: " + string(missing[3])
			t.Skip(row.note)
		}
		t.Fatalf("install what the template needs, from the npm registry or npm's cache: %v\n%s", err, out)
	}
	testkit.OK(t, os.CopyFS(a.dir, os.DirFS("frameworks/"+of.files)))
	a.edit(of.shows...)
	var versions []string
	for _, name := range append([]string{strings.Split(of.maker[0], "/")[0]}, of.versions...) {
		from := a.dir + "/node_modules/"
		if strings.HasPrefix(name, "create-") {
			from = "frameworks/node_modules/"
		}
		var pkg struct{ Version string }
		testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(from+name+"/package.json"))(t), &pkg))
		versions = append(versions, name+" "+pkg.Version)
	}
	row.versions = strings.Join(versions, ", ")
	return a
}

// A turn is what an agent gets of one change, and how long after it.
type turn struct {
	took  time.Duration
	bytes int
}

func (u turn) String() string { return fmt.Sprintf("%d ms, %d B", u.took.Milliseconds(), u.bytes) }

// A step is a change. It is there when the resource reads so.
type step struct {
	change func()
	is     func(text string) bool
}

// told makes changes, each as soon as the one before is there, and returns what the agent gets of
// them that waits with the revision that it has read. Every turn until a change is there counts.
func told(t *testing.T, a, observer *started, uri string, steps ...step) (turns []turn) {
	t.Helper()
	text, _ := a.Call("read_page_resource", map[string]any{"uri": uri})
	var header struct {
		Revision int64
		Changed  []string
	}
	testkit.OK(t, json.NewDecoder(strings.NewReader(text)).Decode(&header))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		at   time.Time
		text string
		err  error
	}
	results := make(chan result, 100)
	go func() {
		for ctx.Err() == nil {
			r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "wait_for_page_update",
				Arguments: map[string]any{"uris": []string{uri}, "since": header.Revision}})
			got := result{at: time.Now(), err: err}
			if err == nil {
				for _, c := range r.Content {
					got.text += c.(*mcp.TextContent).Text
				}
				if r.IsError {
					got.err = errors.New(got.text)
				} else {
					_ = json.NewDecoder(strings.NewReader(got.text)).Decode(&header)
				}
			}
			if len(header.Changed) > 0 || got.err != nil {
				results <- got
			}
			if got.err != nil {
				return
			}
		}
	}()
	var u turn
	var begun time.Time
	next := func() {
		begun, u = time.Now(), turn{}
		steps[0].change()
	}
	for next(); ; {
		got := testkit.Receive(t, "the agent is told of "+uri, results)
		testkit.OK(t, got.err)
		t.Logf("after %d ms, %d B: %s", got.at.Sub(begun).Milliseconds(), len(got.text), got.text)
		if len(got.text) > turnBytes {
			t.Errorf("a turn of %d bytes, want at most %d: %s", len(got.text), turnBytes, got.text)
		}
		u.took, u.bytes = got.at.Sub(begun), max(u.bytes, len(got.text))
		if now, err := observer.Read(uri); err != nil || !steps[0].is(now) {
			continue
		}
		turns = append(turns, u)
		if steps = steps[1:]; len(steps) == 0 {
			return turns
		}
		next()
	}
}

// filesOf reads what a build has written, by path, without caches and records of the build itself.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	testkit.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"cache", "dev", "types", "diagnostics"}, name):
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(name, "trace"):
			return nil
		}
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	}))
	return files
}

func size(files map[string]string) (n int) {
	for text := range maps.Values(files) {
		n += len(text)
	}
	return n
}

// marks are in every part of the package that a page can get.
var marks = regexp.MustCompile(`(?i)pagewire|modelContext|registerResource`)

func develop(t *testing.T, of template, row *developed) {
	h := newHome(t)
	begun := time.Now()
	app := made(t, of, h, row)
	t.Logf("made and installed in %v", time.Since(begun))
	build := func() map[string]string {
		t.Helper()
		testkit.OK(t, os.RemoveAll(filepath.Join(app.dir, of.out)))
		app.run("npm", "run", "build")
		return filesOf(t, filepath.Join(app.dir, of.out))
	}
	before := map[string][]byte{}
	for _, e := range of.line {
		before[e.file] = testkit.Must(os.ReadFile(filepath.Join(app.dir, e.file)))(t)
	}
	for _, e := range of.line {
		e.after = strings.ReplaceAll(e.after, "%s", h.hub)
		app.edit(e)
	}

	a, observer := h.serve(t), h.serve(t)
	url, stop := app.serves(of.server)
	b := open(t, noFlag, &site{Server: &httptest.Server{URL: url}})
	at := func(path string) string { return url + path }
	for _, path := range []string{"/dev/errors", "/dev/requests", "/dev/pointed", of.state} {
		testkit.Eventually(t, path+" is offered", func() bool { return observer.Offers(at(path)) })
	}
	has := func(part string) func(string) bool {
		return func(text string) bool { return strings.Contains(text, part) }
	}
	cell := func(turns []turn) {
		for _, u := range turns {
			row.cells = append(row.cells, u.String())
		}
	}

	wrong := replacement{of.shop, of.wrong[0], of.wrong[1]}
	// Vite's watcher drops an edit within 50 ms of another.
	cell(told(t, a, observer, at("/dev/errors"),
		step{func() { app.edit(wrong) }, has(filepath.Base(of.shop))},
		step{func() { app.edit(replacement{of.shop, of.wrong[1], of.wrong[0]}) },
			func(text string) bool { return text == "[]" }}))
	// Vite's overlay stays over the app until there is an update, and Svelte's plugin sends none if the
	// file is as it was before the error.
	// A watcher takes two edits within some 50 ms for one, so the edit is repeated.
	var edited time.Time
	testkit.Eventually(t, "the app shows the next version", func() bool {
		if time.Since(edited) > 2*time.Second {
			edited = time.Now()
			app.edit(replacement{of.shop, of.wrong[0], " now" + of.wrong[0]})
		}
		there, err := try[bool](b, `return document.querySelector("#add").textContent.includes("now") &&
			!document.querySelector("vite-error-overlay")`)
		if !there || err != nil {
			return false
		}
		_, err = observer.Read(at(of.state)) // Vite may have reloaded the page: its first update after an error does
		return err == nil
	})
	cell(told(t, a, observer, at(of.state), step{func() { b.click("#add") }, has("milk")}))

	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(http.StatusInternalServerError)
	}))
	fetches := func(url string) func() {
		return func() { run[any](b, fmt.Sprintf(`await fetch(%q).catch(() => {})`, url)) }
	}
	cell(told(t, a, observer, at("/dev/requests"), step{fetches(failing.URL + "/prices"), has("500")}))
	failing.Close()
	cell(told(t, a, observer, at("/dev/requests"), step{fetches(failing.URL + "/stock"), has("/stock")}))
	p := pointing{b, a, at("/dev/pointed")}
	p.opens()
	p.pointsAt(`document.querySelector("#add")`, true)
	_, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: "why is this tea"})
	testkit.OK(t, err)
	cell(told(t, a, observer, p.uri, step{func() { b.do(chromedp.KeyEvent(kb.Enter)) }, has("why is this tea")}))
	var picked []pick
	testkit.OK(t, json.Unmarshal([]byte(observer.Text(p.uri)), &picked))
	if got := picked[0]; !strings.Contains(got.At, of.shop) || !strings.HasPrefix(got.Component, of.component) {
		t.Errorf("picked: %+v", got)
	}
	b.navigate("about:blank")
	stop()

	begun = time.Now()
	built := build()
	for name, text := range built {
		if found := marks.FindString(name + text); found != "" {
			t.Errorf("the build's %s has %q", name, found)
		}
	}
	t.Logf("built in %v", time.Since(begun))
	row.production = "0 B"

	// By mistake: an import, without the plugin.
	for name, text := range before {
		testkit.OK(t, os.WriteFile(filepath.Join(app.dir, name), text, 0o644))
	}
	text := testkit.Must(os.ReadFile(filepath.Join(app.dir, of.entry)))(t)
	text = append(bytes.Clone(text), "\nimport \"pagewire/dev\";\n"...)
	testkit.OK(t, os.WriteFile(filepath.Join(app.dir, of.entry), text, 0o644))
	row.production += fmt.Sprintf("; by mistake %d B", size(build())-size(built))
	s := &site{Server: &httptest.Server{}}
	if of.built == nil {
		s = serveApp(t, filepath.Join(app.dir, of.out))
	} else {
		s.URL, _ = app.serves(of.built)
	}
	b = open(t, noFlag, s)
	testkit.Eventually(t, "it warns", func() bool { return b.said("pagewire") })
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.console) != 1 {
		t.Errorf("on the console: %q", b.console)
	}
	if ls, err := h.ls(); err != nil || strings.Contains(ls, s.URL) {
		t.Errorf("by mistake it is connected: %s, %v", ls, err)
	}
}
