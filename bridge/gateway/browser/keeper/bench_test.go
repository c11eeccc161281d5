//go:build !js && linux

package keeper

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/pagewire/pagewire/bridge/gateway/browser"
)

// A transport is one of chromedp's as a conn.
type transport struct{ chromedp.Transport }

func (t transport) Next() (io.Reader, error) {
	m := new(cdproto.Message)
	if err := t.Read(context.Background(), m); err != nil {
		return nil, err
	}
	text, err := jsonv2.Marshal(m)
	return bytes.NewReader(text), err
}

func (t transport) Write(message []byte) error {
	m := new(cdproto.Message)
	if err := jsonv2.Unmarshal(message, m); err != nil {
		return err
	}
	return t.Transport.Write(context.Background(), m)
}

// What a keeper between gateway and browser costs: the least that a read in a page needs is a Runtime.evaluate and its
// answer, which goes by way of a keeper, by the pipe itself, and by the WebSocket of a browser that listens. The three
// take turns.
func BenchmarkEvaluate(b *testing.B) {
	h := newHome(b)
	hold := h.launch(h.options())
	piped, err := browser.StartPiped(browser.StartOptions{Profile: b.TempDir(), DebugPort: "0"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { piped.Kill(); <-piped.Done() })
	socket, err := remote.DialContext(b.Context(), <-piped.Listens())
	if err != nil {
		b.Fatal(err)
	}
	transports := []struct {
		name string
		*devtools
	}{
		{"keeper", dialed(b, hold)},
		{"pipe", &devtools{t: b, conn: transport{chromedp.NewPipeConn(piped.From, piped.To)}}},
		{"websocket", &devtools{t: b, conn: transport{socket}}},
	}
	pages := make([]string, len(transports))
	for i, r := range transports {
		pages[i] = r.page(`"waitForDebuggerOnStart":false`)
	}
	for _, size := range []int{10, 100_000, 5_000_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			params := fmt.Sprintf(`{"expression":"'x'.repeat(%d)","returnByValue":true}`, size)
			times := make([][]time.Duration, len(transports))
			for b.Loop() {
				for i, r := range transports {
					began := time.Now()
					r.call(pages[i], "Runtime.evaluate", params)
					times[i] = append(times[i], time.Since(began))
				}
			}
			for i, r := range transports {
				slices.Sort(times[i])
				b.ReportMetric(float64(times[i][len(times[i])/2].Nanoseconds())/1e3, r.name+"-p50-us")
			}
		})
	}
}
