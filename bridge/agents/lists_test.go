package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// largest records the size of the largest message to an agent, and the number of lists' pages.
type largest struct{ bytes, pages atomic.Int64 }

func (l *largest) tap(e gateway.Event) {
	if e.Way != gateway.ToAgent {
		return
	}
	if bytes.Contains(e.Text[:min(len(e.Text), 200)], []byte(`"resources":[`)) {
		l.pages.Add(1)
	}
	for {
		before := l.bytes.Load()
		if int64(len(e.Text)) <= before || l.bytes.CompareAndSwap(before, int64(len(e.Text))) {
			return
		}
	}
}

// A list of 4 MiB reaches each agent, over each transport, in messages of little more than 1 MiB. A web page may have
// four times as much, but that would test no more.
func TestAListOfManyPages(t *testing.T) {
	const n = 2_500
	served := serveHTTP(t, HTTPOptions{})
	description := strings.Repeat("é\"\n", 260) // 1.6 KB as JSON
	for i := range n - 5 {                      // the page has five already
		uri := fmt.Sprintf("%s/many/%d", origin, i)
		served.Describe(uri, map[string]any{"description": description})
		served.Offer(uri, "text")
	}
	testkit.Eventually(t, "all are there", func() bool { return len(served.g.Snapshot().Resources) >= n-1 })

	sizes := &largest{}
	served.g.Tap(sizes.tap)
	http := &mcp.StreamableClientTransport{Endpoint: served.server.URL + "/mcp"}
	for name, c := range map[string]struct {
		transport mcp.Transport
		version   string
	}{
		"stdio":         {onStdio(t, served.g), testkit.Legacy},
		"stdio, modern": {onStdio(t, served.g), testkit.Modern},
		"HTTP, legacy":  {http, testkit.Legacy},
		"HTTP, modern":  {http, testkit.Modern},
	} {
		a := watch(t, c.transport, c.version)
		seen := map[string]bool{}
		for r, err := range a.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatalf("%s: after %d resources: %v", name, len(seen), err)
			}
			if seen[r.URI] = true; strings.Contains(r.URI, "/many/") && r.Description != description {
				t.Fatalf("%s: %s came with another description", name, r.URI)
			}
		}
		if len(seen) != n-1 { // one of the n is a template
			t.Errorf("%s: %d resources came, not %d", name, len(seen), n-1)
		}
		a.Close()
	}
	if most := sizes.bytes.Load(); most > 1<<20+1<<10 {
		t.Errorf("an agent had a message of %d bytes", most)
	}
	t.Logf("%d pages of lists, a message of %d bytes at most", sizes.pages.Load(), sizes.bytes.Load())
	t.Cleanup(func() {
		testkit.Eventually(t, "nothing is left of the agents", func() bool { return held(served.g) == 0 })
	})
}

// onStdio returns the transport of an agent that a gateway serves on stdio.
func onStdio(t *testing.T, g *gateway.Gateway) mcp.Transport {
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	done := make(chan error, 1)
	// Not t.Context, which ends before the cleanup. On a busy machine the session may still run then.
	go func() { done <- serveLines(context.Background(), g, theirIn, theirOut) }()
	t.Cleanup(func() {
		in.Close()
		if err := testkit.Receive(t, "the session on stdio ends", done); err != nil {
			t.Error(err)
		}
		theirOut.Close()
	})
	return &mcp.IOTransport{Reader: drained{out}, Writer: in}
}

// A drained pipe still accepts writes after Close. So the session ends by the end of the agent's input, and not by an
// error of a write to an agent that has left.
type drained struct{ *io.PipeReader }

func (d drained) Close() error {
	go io.Copy(io.Discard, d.PipeReader)
	return nil
}
