//go:build !js

package gateway

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A page that changes its tools in a loop makes the list of all pages' tools anew at a bounded rate, and the last of it
// is told.
func TestToolsThatChangeInALoop(t *testing.T) {
	g := newGateway(t, Options{})
	p := openPage(t, g, tabInfo("a"), nil)
	a := openAgent(t, g)
	const changes = 10 * toolsBurst
	for n := range changes {
		p.page.SetTool("tool", testkit.Tool{Members: map[string]any{"description": "change " + strconv.Itoa(n+1)}})
	}
	last := "change " + strconv.Itoa(changes)
	testkit.Eventually(t, "agents have the last change", func() bool {
		for tool, err := range a.Tools(t.Context(), nil) {
			if err == nil && tool.Name == "tool" && tool.Description[:len(last)] == last {
				return true
			}
		}
		return false
	})
	if told := g.tools.told; told > changes/2 {
		t.Errorf("%d changes made the list anew %d times", changes, told)
	}
}

func BenchmarkRetool(b *testing.B) {
	g := New(Options{})
	b.Cleanup(func() { g.Close() })
	p, err := g.Attach(tabInfo("a"), func([]byte) {})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Receive(
		[]byte(`[["hello",1,"0",{"epoch":"e"}],["setTools","[{\"name\":\"first\",\"inputSchema\":{\"type\":\"object\"}}]"]]`)); err != nil {
		b.Fatal(err)
	}
	g.mu.Lock()
	for n := range 1000 {
		o, err := decodeTool(
			bridge.Tool{Name: strconv.Itoa(n),
				JSON: []byte(`{"name":"` + strconv.Itoa(n) + `","inputSchema":{"type":"object"},"description":"` +
					strings.Repeat("words ", 680) + `"}`)})
		if err != nil {
			b.Fatal(err)
		}
		p.published = append(p.published, o)
	}
	g.unlock()
	for _, kept := range []bool{true, false} {
		b.Run("kept="+strconv.FormatBool(kept), func(b *testing.B) {
			for b.Loop() {
				g.mu.Lock()
				if !kept {
					for i := range p.published {
						p.published[i].shown = shownTool{}
					}
				}
				g.setTools()
				g.unlock()
			}
		})
	}
}
