//go:build look

package docs

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var pictures = flag.String(
	"pictures",
	"",
	"write a picture of each page, in both themes and three widths, to this directory "+
		"(its path from the module's root)",
)

// places returns the paths of all pages of the manual and of the demos.
func places(t *testing.T) []string {
	t.Helper()
	found := []string{"/"}
	dist := os.DirFS(filepath.Join(root, "dist"))
	for _, pattern := range []string{"docs/*.html", "demo/*/index.html"} {
		pages, err := fs.Glob(dist, pattern)
		if err != nil || len(pages) == 0 {
			t.Fatalf("dist/ has no %s (%v): run make build site", pattern, err)
		}
		for _, page := range pages {
			if page != "docs/404.html" {
				found = append(found, "/"+strings.TrimSuffix(page, "index.html"))
			}
		}
	}
	return found
}

// TestLook opens each page of the manual and of the demos in both themes, in windows of 1280, 1600
// and 360 px. None may scroll sideways, write an error to its console, or break a rule of
// axe-core. axe-core checks the narrow window.
//
// make test-docs runs it.
func TestLook(t *testing.T) {
	w := there(t)
	axe, err := os.ReadFile(filepath.Join(root, "js/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("look.js")
	if err != nil {
		t.Fatal(err)
	}
	all := places(t)
	for _, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			t.Parallel()
			tab, said := w.tab(t, 20*patience)
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme},
				{Name: "prefers-reduced-motion", Value: "reduce"}}}
			if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
				t.Fatal(err)
			}
			for _, place := range all {
				look := func(script string, width int64) {
					problems,
						err := chromedp.Run(tab,
						chromedp.Evaluate[[]string](script, chromedp.EvalAwaitPromise))
					if err != nil {
						t.Fatalf("%s, %d px: %v", place, width, err)
					}
					for _, problem := range problems {
						t.Errorf("%s, %d px: %s", place, width, problem)
					}
					takePicture(t, tab, place, theme, width)
				}
				if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900),
					chromedp.Navigate(w.demo+place),
					evaluate(string(axe)+string(script))); err != nil {
					t.Fatalf("%s: %v", place, err)
				}
				look("layoutProblems()", 1280)
				if err := chromedp.Do(tab, chromedp.EmulateViewport(1600, 900)); err != nil {
					t.Fatal(err)
				}
				look("layoutProblems()", 1600)
				if err := chromedp.Do(tab, chromedp.EmulateViewport(360, 900)); err != nil {
					t.Fatal(err)
				}
				look("layoutProblems().then(async (problems) => problems.concat(await axeProblems()))", 360)
				for _, line := range said.drain() {
					t.Errorf("%s: the console: %s", place, line)
				}
			}
		})
	}
}

func (c *complaints) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

func evaluate(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[any](script+"\n;0")(ctx, t)
		return chromedp.Void{}, err
	})
}

func takePicture(t *testing.T, tab context.Context, place, theme string, width int64) {
	t.Helper()
	if *pictures == "" {
		return
	}
	picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ReplaceAll(strings.Trim(place, "/"), "/", "-")
	if name == "" {
		name = "index"
	}
	dir := filepath.Join(root, *pictures)
	if filepath.IsAbs(*pictures) {
		dir = *pictures
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir,
		fmt.Sprintf("%s-%s-%d.png", strings.TrimSuffix(name, path.Ext(name)), theme, width))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
