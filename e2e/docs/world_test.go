package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/desktop/browser/launched"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A world is the environment of the blocks: the demo, a shop at https://shop.example, two browsers,
// packages.
type world struct {
	demo string // http://127.0.0.1:PORT
	shop *httptest.Server
	// of start-page.md, which its reader serves at http://127.0.0.1:3000
	start *httptest.Server
	// a directory with a node_modules: js/'s packages, and pagewire as npm would install it
	modules  string
	gateway  string // the address of the pages' gateway: 127.0.0.1:PORT
	hub      string // the address of the commands' gateway, and its directory
	hubHome  string
	commands *launched.Started
	pages    context.Context // chromedp's, of the browser for html and js
	blocks   sync.Map        // path to handler: the shop's pages and scripts of blocks
}

var (
	theWorld *world
	worldErr error
	build    sync.Once
	ends     []func()
)

func TestMain(m *testing.M) {
	testkit.Main()
	code := m.Run()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	os.Exit(code)
}

func there(t *testing.T) *world {
	t.Helper()
	build.Do(func() { theWorld, worldErr = makeWorld() })
	if worldErr != nil {
		t.Fatal(worldErr)
	}
	return theWorld
}

func makeWorld() (*world, error) {
	if _, err := os.Stat(filepath.Join(root, "dist/pagewire.wasm")); err != nil {
		return nil, fmt.Errorf("dist/ is not built: run make build")
	}
	w := &world{}
	var err error
	if w.modules, err = packages(); err != nil {
		return nil, err
	}
	if w.demo, err = serveDemo(); err != nil {
		return nil, err
	}
	if err := w.serveShop(); err != nil {
		return nil, err
	}
	// Pages connect to it by themselves, as data-gateway says.
	if w.gateway, _, err = serveGateway("--allow-origin", "https://shop.example"); err != nil {
		return nil, err
	}
	flags := []string{
		"--host-resolver-rules=MAP shop.example " + strings.TrimPrefix(
			w.shop.URL,
			"https://",
		) + ", MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--ignore-certificate-errors", "--force-prefers-reduced-motion",
		"--disable-background-timer-throttling",
		"--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
		// the permission is Chromium's prompt, which is not answered here
		"--disable-features=LocalNetworkAccessChecks",
	}
	w.commands,
		err = launched.Start(context.Background(), launched.Options{Flags: flags, DebugPort: "0",
		Open: []string{"https://shop.example/", w.demo + "/demo/1-live-document/"}})
	if err != nil {
		return nil, err
	}
	ends = append(ends, func() { w.commands.Close() })
	if w.hub, w.hubHome, err = serveGateway("--chrome", w.commands.URL); err != nil {
		return nil, err
	}
	pages, closePages,
		err := browsertest.Launch(context.Background(), browsertest.Options{Flags: flags})
	if err != nil {
		return nil, err
	}
	ends = append(ends, closePages)
	w.pages = pages
	if err := chromedp.Do(pages); err != nil {
		return nil, err
	}
	return w, w.openStart()
}

// openStart serves the page of start-page.md as its reader has it, and opens it. Somebody clicks its
// button all the time.
func (w *world) openStart() error {
	source, err := os.ReadFile(filepath.Join(root, "demo/docs/start-page.md"))
	if err != nil {
		return err
	}
	blocks := blocksOf("demo/docs/start-page.md", source)
	page := blocks[slices.IndexFunc(blocks, func(b block) bool { return b.language == "html" })].code
	files := http.FileServer(http.Dir(filepath.Join(root, "dist")))
	w.start = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			files.ServeHTTP(out, r)
			return
		}
		fmt.Fprint(out, w.here(page, w.hub, w.hub),
			"<script>setInterval(() => document.querySelector('button').click(), 200)</script>")
	}))
	ends = append(ends, w.start.Close)
	tab, closeTab := chromedp.NewContext(w.pages)
	ends = append(ends, closeTab)
	return chromedp.Do(tab, chromedp.Navigate(w.start.URL))
}

// packages makes a node_modules with the packages of js/, and with pagewire as npm installs it.
func packages() (string, error) {
	dir, err := os.MkdirTemp("", "pagewire-docs-")
	if err != nil {
		return "", err
	}
	ends = append(ends, func() { os.RemoveAll(dir) })
	modules := filepath.Join(dir, "node_modules")
	installed, _ := filepath.Abs(filepath.Join(root, "js/node_modules"))
	own, _ := filepath.Abs(filepath.Join(root, "dist/npm"))
	entries, err := os.ReadDir(installed)
	if err != nil {
		return "", fmt.Errorf("%w (run make build)", err)
	}
	if err := os.Mkdir(modules, 0o755); err != nil {
		return "", err
	}
	for _, entry := range entries {
		if err := os.Symlink(filepath.Join(installed, entry.Name()),
			filepath.Join(modules, entry.Name())); err != nil {
			return "", err
		}
	}
	return dir, os.Symlink(own, filepath.Join(modules, "pagewire"))
}

// nodePaths is where esbuild looks for the imports of pagewire/react: a linked package is resolved
// at its own place, which has no react.
func (w *world) nodePaths() []string { return []string{filepath.Join(w.modules, "node_modules")} }

var demoURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serveDemo runs the demo's program, and returns its URL.
func serveDemo() (string, error) {
	dir, err := os.MkdirTemp("", "pagewire-demo-")
	if err != nil {
		return "", err
	}
	ends = append(ends, func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "demo")
	if out, err := testcmd.Command("go", "build", "-o", program, root+"/demo").
		CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the demo: %w\n%s", err, out)
	}
	cmd := testcmd.Command(program, "-addr", "127.0.0.1:0", "-story=false")
	cmd.Dir = root
	out, err := started(cmd)
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url := demoURL.FindString(lines.Text()); url != "" {
			go io.Copy(io.Discard, out)
			return url, nil
		}
	}
	return "", fmt.Errorf("the demo ended before it served")
}

// serveGateway runs a gateway at an address of its own, and returns the address and the gateway's
// directory.
func serveGateway(flags ...string) (addr, home string, err error) {
	if home, err = os.MkdirTemp("", "pw-"); err != nil { // short: a socket's path begins with it
		return "", "", err
	}
	ends = append(ends, func() { os.RemoveAll(home) })
	if addr, err = freeAddr(); err != nil {
		return "", "", err
	}
	cmd := testcmd.Command(binary("pagewire"),
		append([]string{"serve", "--hub", addr}, flags...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
	if _, err := cmd.StdinPipe(); err != nil { // it ends with its standard input
		return "", "", err
	}
	log, err := os.Create(filepath.Join(home, "serve.log"))
	if err != nil {
		return "", "", err
	}
	defer log.Close()
	cmd.Stderr = log
	_, err = started(cmd)
	return addr, home, err
}

// started starts a process that ends with the tests, and returns its output.
func started(cmd *exec.Cmd) (io.Reader, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ends = append(ends, func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	return out, nil
}

func freeAddr() (string, error) {
	l := httptest.NewServer(nil)
	defer l.Close()
	return strings.TrimPrefix(l.URL, "http://"), nil
}

func binary(name string) string {
	path, _ := filepath.Abs(filepath.Join(root, "bin", name))
	return path
}

func bundled(name string) ([]byte, error) {
	modules, _ := filepath.Abs(filepath.Join(root, "js/node_modules"))
	result := api.Build(api.BuildOptions{EntryPoints: []string{name}, Bundle: true,
		Format:     api.FormatIIFE,
		GlobalName: "agent", Target: api.ES2022, NodePaths: []string{modules}})
	if len(result.Errors) > 0 {
		return nil, fmt.Errorf("bundle %s: %s", name, result.Errors[0].Text)
	}
	return result.OutputFiles[0].Contents, nil
}

// serveShop serves dist/, a page with a cart, and the pages and scripts of blocks.
func (w *world) serveShop() error {
	agent, err := bundled("shop/agent.ts")
	if err != nil {
		return err
	}
	files := http.FileServer(http.Dir(filepath.Join(root, "dist")))
	w.shop = httptest.NewUnstartedServer(
		http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			out.Header().Set("Origin-Agent-Cluster", "?1")
			if block, is := w.blocks.Load(r.URL.Path); is {
				block.(http.HandlerFunc)(out, r)
				return
			}
			switch r.URL.Path {
			case "/":
				http.ServeFile(out, r, "shop/index.html")
			case "/globals.js":
				http.ServeFile(out, r, "shop/globals.js")
			case "/agent.js":
				out.Header().Set("Content-Type", "text/javascript")
				out.Write(agent)
			case "/pagewire-ticket":
				fmt.Fprint(out, `{"ticket":"e30.e30.e30"}`)
			default:
				files.ServeHTTP(out, r)
			}
		}))
	w.shop.Config.ErrorLog = log.New(io.Discard, "", 0) // Chromium tests the certificate once
	w.shop.StartTLS()
	ends = append(ends, w.shop.Close)
	return nil
}

// here replaces the usual addresses of the documents by the tests' own.
func (w *world) here(code, http, hub string) string {
	debug := strings.TrimPrefix(strings.SplitN(w.commands.URL, "/devtools", 2)[0], "ws://")
	return strings.NewReplacer("127.0.0.1:8151", strings.TrimPrefix(w.demo, "http://"),
		"localhost:8151", strings.TrimPrefix(w.demo, "http://"),
		"127.0.0.1:3000", strings.TrimPrefix(w.start.URL, "http://"),
		"127.0.0.1:7433", hub, "127.0.0.1:8080", http, "127.0.0.1:9222", debug).Replace(code)
}
