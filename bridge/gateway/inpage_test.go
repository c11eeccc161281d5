//go:build !js

package gateway

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// ported attaches a page that opens ports by frames of its own. The result gives all that it has been told.
func ported(t *testing.T, g *Gateway, info PageInfo) (p *Page, heard *testkit.Log) {
	t.Helper()
	heard = testkit.LogOf(t, "the page heard")
	p, err := g.Attach(info, func(frame []byte) { heard.Write(append(frame, '\n')) })
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range []string{`[["hello",1,"0",{"epoch":"e"}]]`, `[["register","{\"uri\":\"` + app +
		`/a\",\"name\":\"a\"}"]]`} {
		if err := p.Receive([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	return p, heard
}

// ask opens a port and lists.
func ask(t *testing.T, p *Page, port string) {
	t.Helper()
	frame := `[["open",N],["receive",N,"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"]]`
	if err := p.Receive([]byte(strings.ReplaceAll(frame, "N", port))); err != nil {
		t.Fatal(err)
	}
}

func TestPortsOfAPageAreServedWhereItHasNoCore(t *testing.T) {
	g := newGateway(t, Options{})
	info := tabInfo("a")
	p, heard := ported(t, g, info)
	ask(t, p, "1")
	testkit.Eventually(t, "one with a core of its own is refused",
		func() bool { return heard.Has(`["closed",1,"no agents in the page are served here"]`) })
	p.Close("done")
	info.Serves = true
	p, heard = ported(t, g, info)
	ask(t, p, "1")
	testkit.Eventually(t, "it is answered", func() bool { return heard.Has(`["send",1,`) })
}

// The engine of the agents in a page is called when its time has come, though nothing else happens: a stream of changes
// is told once more at the end of its interval.
func TestTheEngineOfAPageHasATimer(t *testing.T) {
	g := newGateway(t, Options{})
	told := make(chan int, 1000)
	g.Tap(func(e Event) {
		if n := bytes.Count(e.Text, []byte("resources/updated")); e.Way == ToPage && n > 0 {
			told <- n
		}
	})
	info := tabInfo("a")
	info.Serves = true
	p := openPage(t, g, info, map[string]string{app + "/doc": "0"})
	say := func(message string) { p.page.Post(fmt.Sprintf(`[["receive",1,%q]]`, message)) }
	p.page.Post(`[["open",1]]`)
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"a","version":"1"}}}`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	say(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + app + `/doc"}}`)
	testkit.Eventually(t, "the page is asked to tell of changes", func() bool { return p.page.Watches(app + "/doc") })
	const burst = 3 // of the engine; then the interval begins
	for n := range burst + 1 {
		p.set(app+"/doc", fmt.Sprint(n))
	}
	for all := 0; all < burst+1; {
		all += testkit.Receive(t, "each change of the burst is told, and the one that came after it when its time "+
			"has come", told)
	}
}
