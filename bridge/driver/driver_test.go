package driver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

type host struct{ sent []string }

func (h *host) Send(_ bridge.PortID, m bridge.Message) {
	h.sent = append(h.sent, string(m.AppendTo(nil)))
}
func (h *host) Read(bridge.CallID, bridge.Request) {}
func (h *host) End(bridge.CallID)                  {}
func (h *host) Watched(string, bool)               {}

// The engine's timers run, the hooks around the release of the lock are called, and nothing happens
// after End.
func TestHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uri = "https://x.test/a"
		served := &host{}
		var before, after atomic.Int32
		engine := bridge.New(
			bridge.Options{Rule: bridge.Rule{Origin: "https://x.test"}, UpdateBurst: 1}, served)
		h := New(engine, func() func() {
			before.Add(1)
			return func() { after.Add(before.Load()) }
		})
		do := func(f func(e *bridge.Engine, now bridge.Time)) {
			h.Lock()
			defer h.Unlock()
			f(engine, h.Now())
		}
		do(func(e *bridge.Engine, now bridge.Time) {
			if err := e.Register(now, bridge.Resource{URI: uri, Name: "a", Size: -1}); err != nil {
				t.Fatal(err)
			}
			e.Open(now, 1)
			e.Receive(now, 1,
				[]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
			e.Receive(now, 1,
				[]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+
					uri+`"}}`))
			served.sent = nil
			e.Touch(now, uri)
			e.Touch(now, uri)
		})
		sent := func() (n int) {
			do(func(*bridge.Engine, bridge.Time) { n = len(served.sent) })
			return n
		}
		if before.Load() != 1 || after.Load() != 1 {
			t.Fatalf("the hooks were called %d and %d times, or in the other order", before.Load(),
				after.Load())
		}
		if n := sent(); n != 1 {
			t.Fatalf("at once %d updates", n)
		}
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		early := sent()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := sent(); early != 1 || n != 2 {
			t.Errorf("%d updates before the interval is over, %d when it is", early, n)
		}
		do(func(e *bridge.Engine, now bridge.Time) {
			e.Touch(now, uri)
			h.End()
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if sent() != 2 {
			t.Error("the engine was called after the end")
		}
		if now := h.Now(); now < 3_600_000 || h.Until(now+50) > 50*time.Millisecond ||
			h.Until(0) != 0 {
			t.Errorf("now %d, until %v and %v", now, h.Until(now+50), h.Until(0))
		}
	})
}
