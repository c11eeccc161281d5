package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// wptResult is what the harness says of one test.
type wptResult struct{ Name, Status, Message string }

// judge serves a page on the harness of wpt/resources, with Pagewire in front of it, and reports its tests.
func judge(t *testing.T, m mode, html string, least int) {
	t.Helper()
	harness := map[string]string{}
	for _, name := range []string{"testharness.js", "testharnessreport.js"} {
		text, err := os.ReadFile(filepath.Join("wpt/resources", name))
		if err != nil {
			t.Fatal(err)
		}
		harness["/resources/"+name] = string(text)
	}
	script, err := os.ReadFile(filepath.Join(dist, "pagewire.js"))
	if err != nil {
		t.Fatal(err)
	}
	// What `wpt run --inject-script` does: the script is in the document, before all others, and files can hand it on
	// to frames that cannot fetch it.
	inject := "<script data-inject>" + string(script) + "</script>"
	html = strings.Replace(html, "<script", inject+"<script", 1)
	b := open(t, m, serve(t, page{tag: html, script: "", scripts: harness}))
	results := run[[]wptResult](b, `return tests`)
	for _, r := range results {
		if r.Status != "PASS" {
			t.Errorf("%s: %s", r.Name, r.Message)
		}
	}
	if len(results) < least {
		t.Errorf("%d tests ran, want at least %d", len(results), least)
	}
}

// The files that are fit to be offered to the web platform's own tests, on Pagewire.
func TestWebPlatform(t *testing.T) {
	t.Parallel()
	for _, file := range []struct {
		name  string
		least int // tests in it
		modes []mode
	}{
		{"registerResource.https.html", 30, modes},
		{"unregisterResource.https.html", 8, modes},
		{"resources-model-context.https.html", 3, modes},
		{"resources-opaque-origin.https.html", 1, modes},
		// Chromium 156 crashes when a parsed document's native model context is read.
		{"resources-inactive-document.https.html", 1, []mode{noFlag}},
	} {
		html, err := os.ReadFile(filepath.Join("wpt", file.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range file.modes {
			t.Run(file.name+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				judge(t, m, string(html), file.least)
			})
		}
	}
	files, err := filepath.Glob("wpt/*.html")
	if err != nil || len(files) != 5 {
		t.Errorf("%q (%v): a file that is not listed does not run", files, err)
	}
}

// Everything that the IDL names is where Web IDL puts it, and is converted as Web IDL converts.
func TestIDL(t *testing.T) {
	t.Parallel()
	idl, err := os.ReadFile("../idl/model-context-resources.idl")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(idl))
	if err != nil {
		t.Fatal(err)
	}
	modules, _ := filepath.Abs("../js/node_modules")
	built := api.Build(api.BuildOptions{EntryPoints: []string{"wpt/idlharness.ts"}, Bundle: true,
		Format: api.FormatIIFE, Target: api.ES2022, NodePaths: []string{modules},
		Define: map[string]string{"idl": string(text)}})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors[0].Text)
	}
	html := `<script src="/resources/testharness.js"></script><script>` +
		strings.ReplaceAll(string(built.OutputFiles[0].Contents), "</script", "<\\/script") + `</script>`
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			judge(t, m, html, 13)
		})
	}
}
