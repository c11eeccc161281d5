//go:build !js

package node

import (
	"context"
	"testing"
	"time"
)

// A browser that does not end leaves time to the other parts, which remove their sockets.
func TestEndBesideABrowserThatHangs(t *testing.T) {
	p := newProcess(t.Context(), Options{}, secrets{})
	p.browsers.known = append(p.browsers.known, &source{joined: make(chan struct{})})
	removed := false
	p.part("socket", func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond) // a busy machine's
		removed = true
		return nil
	})
	p.end()
	if p.ctx.Err() == nil || !removed {
		t.Error("the process ends, and a part has not ended")
	}
}
