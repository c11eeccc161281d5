package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A page that has found the gateway itself gets the extension's way too, loses it and gets it back.
// It is listed once all the time, and its subscriber is told of each change.
func TestWaysOfADocument(t *testing.T) {
	t.Parallel()
	for name, tag := range map[string]string{
		"a script tag": `<script src="/pagewire.js" data-gateway="GATEWAY"></script>`,
		"configure":    `<script src="/pagewire.js"></script><script>pagewire.configure({ gateway: "GATEWAY" })</script>`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			agent := h.serve(t)
			x := extend(t, h, true)
			s := serve(t,
				page{tag: strings.Replace(tag, "GATEWAY", "ws://"+h.hub, 1), script: counting})
			p, uri, n := x.tab(s.URL), s.URL+"/count", 0
			testkit.Eventually(t, "the page connects by itself",
				func() bool { return agent.Offers(uri) })
			agent.Watch(uri)
			lists := func(way, log string, times int) {
				t.Helper()
				testkit.Eventually(t, way,
					func() bool { return strings.Count(h.log(), log) == times })
				if uris := agent.URIs(); len(uris) != 1 ||
					strings.Count(h.log(), "page attached") != 1 {
					t.Errorf("%s: the agent's list is %q", way, uris)
				}
				n++
				run[any](p, "set("+string(rune('0'+n))+")")
				agent.holds(uri, string(rune('0'+n)))
			}
			lists("by WebSocket alone", "another way", 0)
			x.allow(s.URL)
			lists("and by the extension", "another way", 1)
			popup := x.popup(s.URL)
			popup.shows("[data-do=revoke]")
			popup.do(chromedp.Click("[data-do=revoke]"))
			lists("without it again", "lost a way", 1)
			x.allow(s.URL)
			lists("with it once more", "another way", 2)
		})
	}
}
