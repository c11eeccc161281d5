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

func TestPagesOfAnExtensionAreServedOnceThereIsAnAgent(t *testing.T) {
	g := newGateway(t, Options{})
	info := tabInfo("a")
	info.Serves, info.Unseen = true, true
	p, heard := ported(t, g, info)
	for _, road := range []string{RoadInspector, RoadHost} { // who are no agents
		a, err := g.Connect(road)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
	}
	ask(t, p, "1")
	testkit.Eventually(t, "it is refused", func() bool { return heard.Has(`["closed",1,`) })
	if heard.Has("serves") {
		t.Error("it was told that it is served before there was an agent")
	}
	a := openAgent(t, g)
	testkit.Eventually(t, "it is told", func() bool { return heard.Has(`["serves"]`) })
	ask(t, p, "2")
	testkit.Eventually(t, "it is answered", func() bool { return heard.Has(`["send",2,`) })
	// The next document of the tab comes while there is one; and the one after that when it has gone.
	p.Lost("reloaded")
	p, heard = ported(t, g, info)
	testkit.Eventually(t, "it is told at once", func() bool { return heard.Has(`["serves"]`) })
	p.Lost("reloaded")
	a.Close()
	testkit.Eventually(t, "the agent is gone", func() bool { return len(g.Snapshot().Agents) == 2 })
	p, heard = ported(t, g, info)
	ask(t, p, "1")
	testkit.Eventually(t, "it is refused", func() bool { return heard.Has(`["closed",1,`) })
	if heard.Has("serves") {
		t.Error("it was told that it is served when the agent had gone")
	}
}

func TestPagesThatAreInjectedAreServedAtOnce(t *testing.T) {
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
