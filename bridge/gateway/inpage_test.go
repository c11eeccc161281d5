//go:build !js

package gateway

import (
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
	for _, frame := range []string{`[["hello",1,"0",{"epoch":"e"}]]`, `[["register","{\"uri\":\"` + app + `/a\",\"name\":\"a\"}"]]`} {
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
	testkit.Eventually(t, "one with a core of its own is refused", func() bool { return heard.Has(`["closed",1,"no agents in the page are served here"]`) })
	p.Close("done")
	info.Serves = true
	p, heard = ported(t, g, info)
	ask(t, p, "1")
	testkit.Eventually(t, "it is answered", func() bool { return heard.Has(`["send",1,`) })
}
