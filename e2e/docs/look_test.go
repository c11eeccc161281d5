//go:build !js

package docs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/demo/site"
)

var pictures = flag.String(
	"pictures",
	"",
	"write a picture of each page, in both themes and widths, to this directory "+
		"(its path from the module's root)",
)

// places are all pages of the manual and of the demos, by their path.
func places(t *testing.T) []string {
	t.Helper()
	manual, err := site.New(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	files, err := manual.Pages()
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"/", site.URL("README.md"), site.URL("SECURITY.md"), site.URL("CONTRIBUTING.md")}
	for _, file := range files {
		found = append(found, site.URL(file))
	}
	demos, err := filepath.Glob(filepath.Join(root, "dist/demo/*/index.html"))
	if err != nil || len(demos) == 0 {
		t.Fatalf("no demos in dist/ (%v): run make build", err)
	}
	for _, demo := range demos {
		found = append(found, "/demo/"+filepath.Base(filepath.Dir(demo))+"/")
	}
	return found
}

// TestLook opens each page of the manual and of the demos in both themes, in a wide window and one of 360 px. None may
// scroll sideways, say an error on its console, or have what axe-core finds.
func TestLook(t *testing.T) {
	t.Parallel()
	w := there(t)
	axe, err := os.ReadFile(filepath.Join(root, "js/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	look, err := os.ReadFile("look.js")
	if err != nil {
		t.Fatal(err)
	}
	all := places(t)
	// Two tabs at a time: a page is drawn by one processor.
	for half := range 2 {
		t.Run(fmt.Sprintf("tab %d", half+1), func(t *testing.T) {
			t.Parallel()
			for i, place := range all {
				if i%2 == half {
					t.Run("at "+strings.Trim(place, "/"), func(t *testing.T) {
						for _, theme := range []string{"light", "dark"} {
							w.look(t, place, theme, string(axe)+string(look))
						}
					})
				}
			}
		})
	}
}

// look visits a page in one theme and both widths.
func (w *world) look(t *testing.T, place, theme, scripts string) {
	t.Helper()
	tab, said := w.tab(t, 2*patience)
	_, err := chromedp.Call(
		tab,
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.demo+place)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, evaluate(scripts)); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{1280, 360} {
		if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900)); err != nil {
			t.Fatal(err)
		}
		found, err := chromedp.Run(tab, chromedp.Evaluate[string](`look()`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		var problems []string
		if err := json.Unmarshal([]byte(found), &problems); err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Errorf("%s, %s, %d px: %s", place, theme, width, problem)
		}
		takePicture(t, tab, place, theme, width)
	}
	if said.String() != "" {
		t.Errorf("%s, %s: the console: %s", place, theme, said)
	}
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
	file := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", strings.TrimSuffix(name, path.Ext(name)), theme, width))
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSearchByKeyboard finds a message in the manual without a pointer.
func TestSearchByKeyboard(t *testing.T) {
	t.Parallel()
	w := there(t)
	ctx, cancel := context.WithTimeout(w.pages, patience)
	defer cancel()
	tab, closeTab := chromedp.NewContext(ctx)
	defer closeTab()
	if err := chromedp.Do(tab, chromedp.Navigate(w.demo+"/docs/"), chromedp.KeyEvent("/"),
		chromedp.KeyEvent("notifyResourceUpdated")); err != nil {
		t.Fatal(err)
	}
	sees := func(what, expression string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			is, err := chromedp.Run(tab, chromedp.Evaluate[bool]("Boolean("+expression+")"))
			return err == nil && is
		})
	}
	sees("results", `document.querySelectorAll("#site-found li").length > 1`)
	sees("the first is chosen", `document.querySelector("#site-found li")?.ariaSelected === "true"`)
	if err := chromedp.Do(tab, chromedp.KeyEvent(kb.ArrowDown)); err != nil {
		t.Fatal(err)
	}
	sees(
		"the second is chosen",
		`document.querySelector("#site-search").getAttribute("aria-activedescendant") === "site-found-1"`,
	)
	if err := chromedp.Do(tab, chromedp.KeyEvent(kb.ArrowUp+kb.Enter)); err != nil {
		t.Fatal(err)
	}
	sees(
		"the page that was chosen",
		`location.pathname !== "/docs/" && document.body.innerText.includes("notifyResourceUpdated")`,
	)
	if err := chromedp.Do(tab, chromedp.KeyEvent("/"), chromedp.KeyEvent("x"+kb.Escape)); err != nil {
		t.Fatal(err)
	}
	sees("it is left", `document.activeElement.id !== "site-search" && document.querySelector("#site-found").hidden`)
	// A message leads to its entry.
	if err := chromedp.Do(tab, chromedp.KeyEvent("/"), chromedp.KeyEvent("nothing was written; quit")); err != nil {
		t.Fatal(err)
	}
	sees("the message", `document.querySelector("#site-found b")?.textContent.includes("nothing was written; quit")`)
	if err := chromedp.Do(tab, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	sees("its entry", `location.pathname === "/docs/troubleshooting" && location.hash === "#pagewire-config"`)
}
