package home

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// Origin is where the resources of Lively are.
const Origin = "https://x.test"

// Lively returns a home whose resources change by themselves, so that a client needs nothing but MCP to see them live,
// and a function that stops the changes:
//
//	/clock       counts up every 50 ms
//	/pulse       likewise
//	/still       never changes
//	/square/{n}  n times n, and is said to change every 50 ms
//	/slow        is not answered until its reader gives up
//	/gave_up     how many readers of slow gave up
//	/door        reading it makes /guest come or go
func Lively(o bridge.Options) (h *Home, stop func()) {
	o.Rule = bridge.Rule{Origin: Origin}
	h = New(o)
	var ticks, gaveUp atomic.Int64
	count := func(n *atomic.Int64) Reader {
		return func(context.Context, bridge.Request) (string, error) { return strconv.FormatInt(n.Load(), 10), nil }
	}
	h.Add(Origin+"/clock", count(&ticks))
	h.Add(Origin+"/pulse", count(&ticks))
	h.Set(Origin+"/still", "still")
	h.Add(Origin+"/square/{n}", func(_ context.Context, r bridge.Request) (string, error) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URI, Origin+"/square/"))
		return strconv.Itoa(n * n), err
	})
	h.Add(Origin+"/slow", func(ctx context.Context, _ bridge.Request) (string, error) {
		<-ctx.Done()
		gaveUp.Add(1)
		return "", errors.New("nobody waits any more")
	})
	h.Add(Origin+"/gave_up", count(&gaveUp))
	var door sync.Mutex
	open := false
	h.Add(Origin+"/door", func(context.Context, bridge.Request) (string, error) {
		door.Lock()
		defer door.Unlock()
		if open = !open; open {
			h.Set(Origin+"/guest", "hello")
			return "open", nil
		}
		h.Remove(Origin + "/guest")
		return "closed", nil
	})

	ticker, done := time.NewTicker(50*time.Millisecond), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				ticks.Add(1)
				for _, path := range []string{"/clock", "/pulse", "/square/{n}"} {
					h.Touch(Origin + path)
				}
			}
		}
	}()
	return h, sync.OnceFunc(func() { close(done) })
}
