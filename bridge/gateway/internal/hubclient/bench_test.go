//go:build !js

package hubclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A page's answer to a read on its way through the gateway: as it goes, and as it would go through go-sdk's client,
// which decodes it into its types, from which it would have to be written again.
func BenchmarkAnswer(b *testing.B) {
	for _, size := range []int{100, 1 << 20} {
		text := []byte(
			`{"jsonrpc":"2.0","id":"w1","result":{"contents":[{"uri":"https://app.example/a","mimeType":"text/plain","text":"` + strings.Repeat(`Some text, \"quoted\". `, size/23) + `"}]}}`)
		name := "100 B"
		if size > 100 {
			name = "1 MB"
		}
		b.Run(name+"/split", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if m, ok := split(text); !ok || m.Contents == nil {
					b.Fatal("not split")
				}
			}
		})
		b.Run(name+"/go-sdk", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m, err := jsonrpc.DecodeMessage(text)
				if err != nil {
					b.Fatal(err)
				}
				var r mcp.ReadResourceResult
				if err := json.Unmarshal(m.(*jsonrpc.Response).Result, &r); err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(r.Contents); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
