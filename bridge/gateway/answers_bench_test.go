package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Answers of pages on their way to an agent, from the page's frame to the agent's message.
func BenchmarkAnswers(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		text := strings.Repeat("Two lines of text with a \\\"quote\\\".\\n", size/36+1)
		blob := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x89PNG", size/6+1)))
		for name, c := range map[string]struct{ method, answer string }{
			"tool":      {`"tools/call","params":{"name":"t"`, `{"content":[{"type":"text","text":"` + text + `"}]}`},
			"structure": {`"tools/call","params":{"name":"t"`, `{"content":[],"structuredContent":{"a":"` + text + `"}}`},
			"read":      {`"resources/read","params":{"uri":"` + app + `/doc"`, `[{"uri":"` + app + `/doc","mimeType":"text/plain","text":"` + text + `"}]`},
			"blob":      {`"resources/read","params":{"uri":"` + app + `/doc"`, `[{"uri":"` + app + `/doc","mimeType":"image/png","blob":"` + blob + `"}]`},
		} {
			for _, modern := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%d/modern=%t", name, size, modern), func(b *testing.B) {
					g := New(Options{})
					defer g.Close()
					page := testkit.NewPage(b, map[string]string{app + "/doc": ""})
					page.Contents(func(string) string { return c.answer })
					page.SetTool("t", testkit.Tool{Run: func(context.Context, json.RawMessage, func(map[string]any)) any { return nil }})
					page.Attach(func(send func([]byte)) (testkit.Receiver, error) {
						p, err := g.Attach(tabInfo("a"), func(frame []byte) {
							var calls [][]json.RawMessage
							if json.Unmarshal(frame, &calls) == nil {
								for _, call := range calls {
									if k := string(call[0]); k == `"read"` || k == `"callTool"` {
										answer := []byte("=" + string(call[1]) + " 0 " + c.answer)
										go benchPage.Receive(answer)
										return
									}
								}
							}
							send(frame)
						})
						benchPage = p
						return p, err
					})
					a := connect(b, g, AgentOptions{Transport: TransportRequest})
					meta := ""
					if modern {
						meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
					} else {
						a.Write(b.Context(), []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
						a.Read(b.Context())
					}
					testkit.Eventually(b, "the tool is there", func() bool { return len(g.Snapshot().Tools) > 0 })
					ask := []byte(`{"jsonrpc":"2.0","id":1,"method":` + c.method + meta + `}}`)
					b.SetBytes(int64(len(c.answer)))
					b.ResetTimer()
					for b.Loop() {
						a.Write(b.Context(), ask)
						if text, err := a.Read(b.Context()); err != nil || len(text) < size/2 {
							b.Fatalf("%.200s, %v", text, err)
						}
					}
				})
			}
		}
	}
}

var benchPage *Page
