package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/e2e/engine"
)

const (
	// upstream has the tests that are offered to the web platform's own tests, in their layout.
	upstream = "../idl/upstream/wpt"
	// ownTests has tests of the same kind, for Pagewire's own additions.
	ownTests = "wpt"
	// suitePackages has the harness of the web platform's tests, and the IDL of all specifications.
	suitePackages = "conformance/node_modules"
)

// wptFiles are files that a test may name by path and that are not in upstream or ownTests.
var wptFiles = map[string]string{
	"/resources/testharness.js":       suitePackages + "/wpt-runner/testharness/testharness.js",
	"/resources/idlharness.js":        suitePackages + "/wpt-runner/testharness/idlharness.js",
	"/resources/WebIDLParser.js":      suitePackages + "/wpt-runner/testharness/webidl2.js",
	"/resources/testharnessreport.js": ownTests + "/testharnessreport.js",
}

func wptFile(name string) ([]byte, error) {
	if file, ok := wptFiles[name]; ok {
		return os.ReadFile(file)
	}
	if strings.HasPrefix(name, "/ours/") {
		return os.ReadFile(ownTests + strings.TrimPrefix(name, "/ours"))
	}
	text, err := os.ReadFile(upstream + name)
	if err != nil && path.Dir(name) == "/interfaces" {
		return os.ReadFile(suitePackages + "/@webref/idl/" + path.Base(name))
	}
	return text, err
}

var metaScript = regexp.MustCompile(`(?m)^// META: script=(.+)$`)

// wptDocument returns a document, or the document that the web platform's server would make of a
// test script.
func wptDocument(name string) (string, error) {
	stem, generated := strings.CutSuffix(name, ".window.html")
	if !generated {
		text, err := wptFile(name)
		return string(text), err
	}
	text, err := wptFile(stem + ".window.js")
	html := "<!doctype html><meta charset=utf-8><script src=/resources/testharness.js></script>" +
		"<script src=/resources/testharnessreport.js></script>"
	for _, m := range metaScript.FindAllStringSubmatch(string(text), -1) {
		html += "<script src=" + m[1] + "></script>"
	}
	return html + "<script src=" + path.Base(stem) + ".window.js></script>", err
}

// serveWPT serves the web platform's tests. Every document has Pagewire in front of all other
// scripts, inline, as by wpt run --inject-script: a frame of an opaque origin could not fetch it.
func serveWPT(t *testing.T) *site {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(dist, "pagewire.js"))
	if err != nil {
		t.Fatal(err)
	}
	inject := "<script>" + string(script) + "</script>"
	if thisEngine == "webkit" {
		inject = "<script>" + engine.Recorder + "</script>" + inject
	}
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Origin-Agent-Cluster", "?1")
		if path.Ext(r.URL.Path) != ".html" {
			text, err := wptFile(r.URL.Path)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			w.Header().
				Set("Content-Type",
					map[string]string{".js": "text/javascript"}[path.Ext(r.URL.Path)])
			w.Write(text)
			return
		}
		html, err := wptDocument(r.URL.Path)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, strings.Replace(html, "<script", inject+"<script", 1))
	}))
	t.Cleanup(s.Close)
	return s
}

func judge(t *testing.T, m mode, s *site, document string, least int) {
	t.Helper()
	s.URL += document
	b := open(t, m, s)
	results := run[[]struct{ Name, Status, Message string }](b, `return wptResults`)
	for _, r := range results {
		if r.Status != "PASS" {
			t.Errorf("%s: %s: %s", r.Status, r.Name, r.Message)
		}
	}
	if len(results) < least {
		t.Errorf("%d tests ran, want at least %d", len(results), least)
	}
}

// The tests that are offered to the web platform's own tests, and our own tests of that kind, on
// Pagewire.
func TestWebPlatform(t *testing.T) {
	t.Parallel()
	const folder = "/webmcp/page-resources/"
	// Chromium 156 crashes when a parsed document's native model context is read.
	withoutNative := []mode{noFlag}
	// Only a browser with WebMCP has a permissions policy to deny.
	withNative := inThisEngine([]mode{native}, func(m mode) mode { return m })
	documents := map[string]struct {
		least int // tests in it
		modes []mode
	}{
		folder + "registerResource.tentative.https.html":      {35, modes},
		folder + "unregisterResource.tentative.https.html":    {5, modes},
		folder + "notifyResourceUpdated.tentative.https.html": {4, modes},
		folder + "opaque-origin.tentative.https.html":         {1, modes},
		folder + "permissions-policy.tentative.https.html":    {1, withNative},
		folder + "inactive-document.tentative.https.html":     {1, withoutNative},
		folder + "idlharness.tentative.https.window.html":     {10, modes},
		"/ours/members.https.html":                            {6, modes},
		"/ours/model-context.https.html":                      {4, modes},
	}
	for name, d := range documents {
		for _, m := range d.modes {
			t.Run(path.Base(name)+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				judge(t, m, serveWPT(t), name, d.least)
			})
		}
	}
	for _, name := range testDocuments(t) {
		if _, ok := documents[name]; !ok {
			t.Errorf("%s is not listed, and so does not run", name)
		}
	}
}

func testDocuments(t *testing.T) (all []string) {
	for root, prefix := range map[string]string{upstream: "", ownTests: "/ours"} {
		err := fs.WalkDir(os.DirFS(root), ".", func(name string, _ fs.DirEntry, err error) error {
			parts := strings.Split(name, "/")
			name = prefix + "/" + name
			switch {
			case slices.Contains(parts, "resources"):
			case strings.HasSuffix(name, ".https.html"):
				all = append(all, name)
			case strings.HasSuffix(name, ".window.js"):
				all = append(all, strings.TrimSuffix(name, ".js")+".html")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
