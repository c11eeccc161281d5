package socket

import (
	"context"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

const aboutTabs = `{"tab":"tab-00000","origin":"pagewire://tabs"}`

// The extension alone counts the open tabs that offer nothing. It names them when the user asks, and
// neither an agent, nor the inspector, nor the log has the names.
func TestTabsThatTheExtensionCounts(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{Extensions: []string{extensionID}, Secret: known})
	p.denies = nil
	p.restart()
	tapped := &testkit.Log{}
	p.g.Tap(func(e gateway.Event) { tapped.Write(e.Text) })
	a := p.agent()
	lists := func(want string) {
		t.Helper()
		testkit.Eventually(t, "an agent is told "+want, func() bool {
			said, _ := a.Call("list_page_resources", nil)
			if strings.Contains(said, "secret") {
				t.Errorf("it is told %s", said)
			}
			return strings.Contains(said, "Open tabs that offer you nothing: "+want)
		})
	}
	c := p.connectExtension()
	testkit.OK(t, c.Write(t.Context(), []byte(hello(aboutTabs))))
	say(t, c, `{"count":3,"targets":[]}`)
	lists("3.")
	within, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	answers := func(frame string) []gateway.PageInfo {
		t.Helper()
		named := make(chan []gateway.PageInfo, 1)
		go func() { named <- p.g.BareTabs(t.Context()) }()
		if asked, err := c.Read(within); string(asked) != `"name"` || err != nil {
			t.Fatalf("the extension is asked %s, %v", asked, err)
		}
		say(t, c, frame)
		return testkit.Receive(t, "the user is told", named)
	}
	if got := answers(`{"named":[{"title":"secret","url":"https://bank.example/secret"},{"title":"x","url":"file:///etc/secret"},` +
		`{"title":"x","url":"javascript:x"},{}]}`); len(got) != 1 || got[0].URL != "https://bank.example/secret" || got[0].Title != "secret" {
		t.Errorf("the user is told of %+v", got)
	}
	if got := answers(`{"named":[]}`); len(got) != 0 {
		t.Errorf("the user is told of %+v", got)
	}
	say(t, c, `{"named":[{"title":"secret","url":"https://bank.example/"}]}`) // nobody has asked
	say(t, c, `{"count":2}`)
	lists("2.")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if got := p.g.BareTabs(ended); len(got) > 0 { // the extension does not answer
			t.Errorf("the user is told of %+v", got)
		}
		if asked, err := c.Read(within); string(asked) != `"name"` || err != nil {
			t.Fatalf("the extension is asked %s, %v", asked, err)
		}
	}
	if got := answers(`{"named":[{"title":"secret","url":"https://bank.example/next"}]}`); len(got) != 1 ||
		got[0].URL != "https://bank.example/next" {
		t.Errorf("after questions without an answer the user is told of %+v", got)
	}
	c.Close()
	testkit.Eventually(t, "nothing is counted any more", func() bool {
		said, _ := a.Call("list_page_resources", nil)
		return !strings.Contains(said, "you nothing")
	})
	if strings.Contains(tapped.String()+p.log.String(), "secret") {
		t.Errorf("the inspector has %s\nand the log %s", tapped.String(), p.log.String())
	}
}

// What is no report ends the connection. A page cannot count tabs.
func TestForgedNumberOfTabs(t *testing.T) {
	t.Parallel()
	p := openPlace(t, Options{Extensions: []string{extensionID}, Secret: known})
	p.denies = nil
	p.restart()
	for _, frame := range []string{"x", "[]", `"name"`, `{"count":-1}`, `{"count":1.5}`, `{"count":1e30}`, `{"targets":"x"}`, `{"named":{}}`,
		`{"named":[{"title":5}]}`, `[["register","{}"]]`, `{"named":[{"title":"` + strings.Repeat("A", maxNamed) + `"}]}`} {
		c := p.connectExtension()
		testkit.OK(t, c.Write(t.Context(), []byte(hello(aboutTabs))))
		say(t, c, frame)
		for err := error(nil); err == nil; _, err = c.Read(t.Context()) {
		}
	}
	forged := p.connect(local, hello(aboutTabs))
	say(t, forged, `{"count":7}`)
	for err := error(nil); err == nil; _, err = forged.Read(t.Context()) {
	}
	if said, _ := p.agent().Call("list_page_resources", nil); strings.Contains(said, "you nothing") {
		t.Errorf("an agent is told %s", said)
	}
}
