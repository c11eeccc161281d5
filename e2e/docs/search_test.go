//go:build !js

package docs

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pagewire/pagewire/bridge/testkit"
)

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
}
