package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/browsertest"
)

// The extension in testdata/badge is of another author: its files, four files of the npm package,
// and a policy that allows the page nothing.
func TestExtensionWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/badge")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "pagewire"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"extension.page.js", "extension.relay.js", "extension.worker.js",
		"pagewire.wasm"} {
		text, err := os.ReadFile(filepath.Join(dist, "npm", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "pagewire", name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, end,
		err := browsertest.Launch(t.Context(),
		browsertest.Options{Flags: []string{"--load-extension=" + dir,
			"--disable-extensions-except=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	x := &extended{t: t, ctx: ctx}
	var worker target.ID
	testkit.Eventually(t, "the extension is there", func() bool {
		worker = x.workerThat(func(string) bool { return true })
		return worker != ""
	})
	w := x.attachTo("the worker", worker)
	s := serveStrict(t, "script-src 'self'", counting)
	p := x.tab(s.URL)
	badges := func() string {
		return run[string](w,
			`return (await Promise.all((await chrome.tabs.query({})).map(({ id }) => chrome.action.getBadgeText({ tabId: id })))).join("")`)
	}
	run[any](p, "set(41)")
	if got := badges(); got != "" {
		t.Errorf("before the site is allowed the badge says %q", got)
	}
	// The effect of the click: a toolbar's button cannot be clicked without a window.
	url, err := json.Marshal(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	run[any](w, fmt.Sprintf("chrome.action.onClicked.dispatch({ url: %s })", url))
	testkit.Eventually(t, "the badge shows the page's state",
		func() bool { return strings.Contains(badges(), "41") })
	run[any](p, "set(42)")
	testkit.Eventually(t, "and follows it", func() bool { return strings.Contains(badges(), "42") })
}
