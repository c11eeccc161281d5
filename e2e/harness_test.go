// Package e2e proves Pagewire in a real browser with clients that others wrote. Nothing here stands in for a thing
// that can be run: pages are served over HTTP on loopback, the core is the built wasm, the agents are the official
// SDKs, and a missing browser is a failure, not a skip.
package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/engine"
)

// A mode is a way to run the browser.
type mode struct {
	name  string
	flags []string
}

var (
	noFlag = mode{"no flag", nil}
	native = mode{"WebMCP", []string{"--enable-features=WebMCP"}} // which Chromium alone has
	modes  = inThisEngine([]mode{noFlag, native}, func(m mode) mode { return m })
)

// dist is what make build has written.
const dist = "../dist"

// agentScript is e2e/agent, bundled.
var agentScript []byte

func TestMain(m *testing.M) {
	testkit.Main()
	os.Exit(func() int {
		if _, err := os.Stat(filepath.Join(dist, "pagewire.wasm")); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: dist/ is not built: run make build")
			return 1
		}
		modules, _ := filepath.Abs("../js/node_modules")
		result := api.Build(api.BuildOptions{
			EntryPoints: []string{"agent/agent.ts"},
			Bundle:      true,
			Format:      api.FormatIIFE,
			GlobalName:  "agent",
			Target:      api.ES2022,
			NodePaths:   []string{modules},
		})
		if len(result.Errors) > 0 {
			fmt.Fprintln(os.Stderr, "e2e: bundle the agent:", result.Errors[0].Text)
			return 1
		}
		agentScript = result.OutputFiles[0].Contents
		defer closeBrowsers()
		return m.Run()
	}())
}

// A site is an origin of its own: dist/ and one page.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

// A page is what a site serves at /.
type page struct {
	// head stands before the script tag of Pagewire, script right behind it, inline.
	head, script string
	// tag replaces the script tag.
	tag string
	// headers are those of the page; those of every response where all is set.
	headers map[string]string
	all     bool
	// nonce is given to every script of the page.
	nonce string
	// also has further documents, by path.
	also map[string]string
	// scripts has further scripts, by path.
	scripts map[string]string
	// hold is called before a file is given, and may wait.
	hold func(*http.Request)
}

func serve(t *testing.T, p page) *site {
	t.Helper()
	s := &site{}
	files := http.FileServer(http.Dir(dist))
	if p.tag == "" {
		p.tag = `<script src="/pagewire.js"></script>`
	}
	if thisEngine == "webkit" {
		p.head = `<script src="/recorder.js"></script>` + p.head
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		w.Header().Set("Origin-Agent-Cluster", "?1")
		if r.URL.Path == "/" || p.all {
			for name, value := range p.headers {
				w.Header().Set(name, value)
			}
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			text := fmt.Sprintf("<!doctype html><title>e2e</title><link rel=icon "+
				"href=data:,>%s%s<script>%s</script><script src=/agent.js></script><body><input id=field>", p.head,
				p.tag, p.script)
			if p.nonce != "" {
				text = strings.ReplaceAll(text, "<script", "<script nonce="+p.nonce)
			}
			fmt.Fprint(w, text)
		case "/recorder.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, engine.Recorder)
		case "/agent.js":
			w.Header().Set("Content-Type", "text/javascript")
			w.Write(agentScript)
		default:
			if text, ok := p.also[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, "<!doctype html><title>e2e</title><link rel=icon href=data:,>", text)
				return
			}
			if text, ok := p.scripts[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, text)
				return
			}
			if p.hold != nil {
				p.hold(r)
			}
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// fetched reports whether a file has been asked for.
func (s *site) fetched(path string) bool { return s.fetches(path) > 0 }

// fetches is how often a file has been asked for.
func (s *site) fetches(path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == path {
			n++
		}
	}
	return n
}

// each runs a test in every mode and era.
func each(t *testing.T, test func(t *testing.T, m mode, era string)) {
	for _, m := range modes {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(m.name+"/"+era, func(t *testing.T) {
				t.Parallel()
				test(t, m, era)
			})
		}
	}
}
