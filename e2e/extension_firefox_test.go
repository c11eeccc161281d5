//go:build engines

package e2e

// The extension's build for Firefox, installed until the browser ends, as its developers do it,
// with the native host that the browser starts.

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	host "github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/e2e/engine"
)

// firefoxPages is the base URL of the extension's own pages in these tests. Each profile has its
// own id for them.
const firefoxPages = "moz-extension://3a0b8f7e-64d1-4d5f-9a57-0f2f0c0ffee0"

type firefox struct {
	*engine.Firefox
	t   *testing.T
	ctx context.Context
}

// extendFirefox runs Firefox with the extension, and the native host in the place of pagewire
// extension install.
func extendFirefox(t *testing.T, h userHome) firefox {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(dist, "extension-firefox"))
	if err == nil {
		err = os.Mkdir(filepath.Join(h.dir, ".mozilla"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	env := append(h.env(), "HOME="+h.dir)
	cmd, log := h.command(t, "extension", "install")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.Output(); err != nil ||
		strings.TrimSpace(string(out)) != filepath.Join(h.dir,
			".mozilla/native-messaging-hosts", host.HostName+".json") {
		t.Fatalf("install: %v, %s\n%s", err, out, log)
	}
	ctx, end := context.WithTimeout(context.Background(), tabTime)
	t.Cleanup(end)
	f, err := engine.LaunchFirefox(ctx, engine.FirefoxOptions{
		Env: env,
		Settings: map[string]any{"extensions.webextensions.uuids": fmt.Sprintf(`{%q:%q}`,
			host.FirefoxID,
			strings.TrimPrefix(firefoxPages, "moz-extension://"))},
		// without it, no test may open an extension's pages
		Flags: []string{"--remote-allow-system-access"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := f.Install(ctx, dir); err != nil {
		t.Fatal(err)
	}
	x := firefox{f, t, ctx}
	options := x.tab(firefoxPages + "/options.html")
	testkit.Eventually(t, "the content scripts are registered", func() bool {
		return run[int](options, registered) == 2
	})
	return x
}

func (f firefox) tab(url string) *tab {
	f.t.Helper()
	b := &tab{t: f.t, ctx: f.ctx}
	var err error
	if b.is, err = f.Open(f.ctx, b.record); err != nil {
		f.t.Fatal(err)
	}
	return b.begin(&site{Server: &httptest.Server{URL: url}})
}

func (f firefox) popup(origin string) *tab {
	f.t.Helper()
	b := f.tab(firefoxPages + "/options.html")
	b.navigate(firefoxPages + b.popupFor(origin))
	return b
}

func (f firefox) press(popup *tab, origin, button string) {
	f.t.Helper()
	selector := fmt.Sprintf("[aria-label='%s'] [data-do=%s]", origin, button)
	testkit.Eventually(f.t, "the popup has the button "+button, func() bool {
		there, err := try[bool](popup,
			fmt.Sprintf("return document.querySelector(%q) !== null", selector))
		return there && err == nil
	})
	popup.click(selector)
}

// The whole story, on pages that no other transport reaches. An agent sees nothing until the user
// allows the site. Then it lists, reads and is notified, over reloads too. It sees nothing after
// the user has revoked the site.
func TestFirefoxExtension(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	agent := h.serve(t)
	f := extendFirefox(t, h)
	s := serveStrict(t, "default-src 'none'; script-src 'self'", countingIfAny)
	uri := s.URL + "/count"
	p := f.tab(s.URL)
	popup := f.popup(s.URL)
	if agent.Offers(uri) {
		t.Fatal("the agent lists what the user has not allowed")
	}
	f.press(popup, s.URL, "once")
	testkit.Eventually(t, "the agent lists it", func() bool { return agent.Offers(uri) })
	if got, err := agent.Read(uri); got != "0" || err != nil {
		t.Errorf("it reads as %q, %v", got, err)
	}
	agent.Watch(uri)
	run[any](p, "set(7)")
	agent.holds(uri, "7")
	if shown := run[string](popup, "return document.body.innerText"); !strings.Contains(shown,
		"native messaging") {
		t.Errorf("the popup says: %s", shown)
	}
	p.reload()
	run[any](p, "set(8)")
	agent.holds(uri, "8")
	f.press(popup, s.URL, "revoke")
	testkit.Eventually(t, "the agent lists it no more", func() bool { return !agent.Offers(uri) })
	if got, err := agent.Read(uri); err == nil {
		t.Errorf("what is revoked reads as %q", got)
	}

	// Only in pages of allowed sites. Firefox' match patterns have no ports.
	options := f.tab(firefoxPages + "/options.html")
	testkit.Eventually(t, "the options are there", func() bool {
		return run[bool](options, `return document.getElementById("only") !== null`)
	})
	options.click("#only")
	testkit.Eventually(t, "no page has the content scripts",
		func() bool { return run[int](options, registered) == 0 })
	p.reload()
	if run[bool](p, `return "pagewire" in globalThis || "modelContext" in document`) {
		t.Error("a page of a site that is not allowed has the extension")
	}
	popup.reload()
	f.press(popup, s.URL, "once")
	testkit.Eventually(t, "the agent lists it again", func() bool { return agent.Offers(uri) })
}
