package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// Calls of tools by one agent, one after the other, from its message to the answer. p50 is the
// median of one call.
func BenchmarkCalls(b *testing.B) {
	for _, c := range []struct {
		tool, arguments string
		transport       string
	}{
		{calls.List, `{}`, "test"},
		{calls.Read, `{"uri":"` + app + `/doc"}`, "test"},
		{calls.Read, `{"uri":"` + app + `/doc"}`, TransportRequest},
		{"t", `{}`, "test"},
	} {
		b.Run(c.tool+"/"+c.transport, func(b *testing.B) {
			g := New(Options{PageLimits: link.Limits{Calls: 1 << 30, CallsBurst: 1 << 30}})
			defer g.Close()
			page := testkit.NewPage(b, map[string]string{app + "/doc": "one"})
			page.SetTool("t", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any {
				return json.RawMessage(`{"content":[{"type":"text","text":"fine"}]}`)
			}})
			page.Attach(func(send func([]byte)) (testkit.Receiver, error) { return g.Attach(tabInfo("a"), send) })
			a := connect(b, g, AgentOptions{Transport: c.transport})
			a.Write(b.Context(), []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
			a.Read(b.Context())
			testkit.Eventually(b, "the tool is there", func() bool { return len(g.Snapshot().Tools) > 0 })
			ask := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + c.tool + `","arguments":` +
				c.arguments + `}}`)
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				a.Write(b.Context(), ask)
				for {
					text, err := a.Read(b.Context())
					if err != nil || bytes.Contains(text, []byte("rror")) {
						b.Fatalf("%.200s, %v", text, err)
					}
					if bytes.Contains(text, []byte(`"id":1,`)) {
						break
					}
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "p50-µs")
		})
	}
}
