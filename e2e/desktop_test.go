package e2e

// Pages whose agents are on the desktop: they need no core of their own, and fetch none.

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// desktopApp is a page's script: a resource that the page's tool changes.
const desktopApp = `
let value = "one";
const uri = location.origin + "/doc", context = navigator.modelContext ?? document.modelContext;
context.registerResource({ uri, name: "doc", read: () => value });
context.registerTool({ name: "set_doc", description: "Sets the doc", inputSchema: { type: "object", properties: { to: { type: "string" } } },
	execute: ({ to }) => { value = to; context.notifyResourceUpdated(uri); return { content: [{ type: "text", text: "set" }] }; } });`

// servesDesktop asserts that an agent lists the page's resource, reads it, calls its tool, and is told of the change.
func servesDesktop(t *testing.T, a *started, uri string) {
	t.Helper()
	testkit.Eventually(t, "the page's resource and tool are listed", func() bool {
		return a.Offers(uri) && slices.Contains(a.ToolNames(), "set_doc")
	})
	a.Watch(uri)
	if got := a.Text(uri); got != "one" {
		t.Errorf("read %q", got)
	}
	r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: "set_doc", Arguments: map[string]string{"to": "two"}})
	if err != nil || r.IsError {
		t.Fatalf("the tool: %+v, %v", r, err)
	}
	a.Told(uri)
	if got := a.Text(uri); got != "two" {
		t.Errorf("read %q after the change", got)
	}
}

// A page that may connect to the gateway and run its own scripts, and nothing else: no eval, no wasm, no worker, no
// fetch.
func TestDesktopAgentsUnderStrictPolicy(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			a := h.serve(t)
			s := serve(t, page{
				headers: map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'; " +
					"connect-src ws://" + h.hub},
				tag: `<script src="/pagewire.js" data-gateway="ws://` + h.hub +
					`"></script><script src="/app.js"></script>`,
				scripts: map[string]string{"/app.js": desktopApp},
			})
			open(t, m, s)
			servesDesktop(t, a, s.URL+"/doc")
		})
	}
}

// openLogged opens a page and returns what its tab, and any worker of it, has asked the network for since.
func openLogged(t *testing.T, in context.Context, url string) (requests func() []string) {
	t.Helper()
	tab, cancel := chromedp.NewContext(in)
	t.Cleanup(cancel)
	tab, stop := context.WithTimeout(tab, tabTime)
	t.Cleanup(stop)
	var mu sync.Mutex
	var list []string
	err := chromedp.Listen(tab, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, e.Request.URL)
		}
	})
	if err == nil {
		_, err = chromedp.Call(tab, network.Enable, network.EnableParams{})
	}
	if err == nil {
		err = chromedp.Do(tab, chromedp.Navigate(url))
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// A session with an agent of the desktop costs the page its scripts alone, by either transport: no wasm and no worker
// is fetched, by what the browser says and by what the page's server does.
func TestDesktopSessionFetchesNoWasm(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"websocket", "cdp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			b, err := browser.Start(t.Context(), browser.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
			in, leave := remote.NewAllocator(context.Background(), b.URL)
			t.Cleanup(leave)
			h := newHome(t)
			tag, args := `<script src="/pagewire.js"></script>`, []string{"--chrome", b.URL}
			if transport == "websocket" {
				tag, args = fmt.Sprintf(`<script src="/pagewire.js" data-gateway="ws://%s"></script>`, h.hub), nil
			}
			a := h.serve(t, args...)
			s := serve(t, page{tag: tag, script: desktopApp})
			requests := openLogged(t, in, s.URL)
			servesDesktop(t, a, s.URL+"/doc")
			if !a.log.Has("transport=" + transport) {
				t.Errorf("the page did not come by %s", transport)
			}
			asked := requests()
			if !slices.Contains(asked, s.URL+"/pagewire.js") {
				t.Errorf("the browser's log lacks the script, so it would prove nothing: %q", asked)
			}
			s.mu.Lock()
			asked = append(asked, s.requests...)
			s.mu.Unlock()
			for _, file := range asked {
				if name := path.Base(file); strings.HasSuffix(name, ".wasm") ||
					strings.HasPrefix(name, "pagewire.worker") {
					t.Errorf("fetched %s", file)
				}
			}
			t.Logf("fetched by the browser's log and the server's: %q", asked)
		})
	}
}
