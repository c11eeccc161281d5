package bridge_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pagewire/pagewire/bridge"
)

// quiet is a host that only counts messages.
type quiet struct {
	sent int
	call bridge.CallID
}

func (q *quiet) Send(bridge.PortID, bridge.Message)        { q.sent++ }
func (q *quiet) Read(call bridge.CallID, _ bridge.Request) { q.call = call }
func (q *quiet) End(bridge.CallID)                         {}
func (q *quiet) Watched(string, bool)                      {}
func (q *quiet) receive(b *testing.B, e *bridge.Engine, p bridge.PortID, short string) {
	b.Helper()
	must(b, e.Receive(0, p, message(short)))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// bench returns an engine with resources and without most limits.
func bench(b *testing.B, resources int) (*bridge.Engine, *quiet) {
	q := &quiet{}
	e := bridge.New(bridge.Options{
		Rule: bridge.Rule{Origin: "https://x.test"}, UpdateInterval: -1,
		Limits: bridge.Limits{Resources: -1, Ports: -1, Subscriptions: -1, UpdateRate: -1},
	}, q)
	for i := range resources {
		must(b, e.Register(0, bridge.Resource{URI: uri(i), Name: "n", Size: -1}))
	}
	return e, q
}

func uri(i int) string { return fmt.Sprintf("https://x.test/app/resources/%d", i) }

// subscribers opens ports that all subscribe to one URI.
func subscribers(b *testing.B, e *bridge.Engine, q *quiet, n int) {
	for p := bridge.PortID(1); p <= bridge.PortID(n); p++ {
		must(b, e.Open(0, p))
		q.receive(b, e, p,
			`{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
		q.receive(b, e, p, `{"id":1,"method":"resources/subscribe","params":{"uri":"`+uri(0)+`"}}`)
	}
}

// A read from the agent's message to the answer: decoding, the host's call, encoding.
func BenchmarkRead(b *testing.B) {
	e, q := bench(b, 10)
	must(b, e.Open(0, 1))
	q.receive(b, e, 1, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	request := message(`{"id":1234,"method":"resources/read","params":{"uri":"` + uri(0) +
		`","_meta":{"progressToken":1}}}`)
	b.ReportAllocs()
	for b.Loop() {
		must(b, e.Receive(0, 1, request))
		e.Complete(0, q.call, bridge.Result{Size: 100})
	}
}

// The cheapest request: only decoding and encoding.
func BenchmarkPing(b *testing.B) {
	e, _ := bench(b, 0)
	must(b, e.Open(0, 1))
	request := message(
		`{"id":1234,"method":"ping","params":{"padding":"0123456789012345678901234567890123456789012345678901234567890123456789"}}`)
	b.SetBytes(int64(len(request)))
	b.ReportAllocs()
	for b.Loop() {
		must(b, e.Receive(0, 1, request))
	}
}

// A touch of a URI with many subscribers; the goal is 300 µs for 1,000, without an allocation for
// any of them.
func BenchmarkTouchFanout(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e, q := bench(b, 1)
			subscribers(b, e, q, n)
			q.sent = 0
			touched, now := uri(0), bridge.Time(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 10 // so that the rate, of a million a second, is never the bound
				e.Touch(now, touched)
			}
			if want := n * b.N; q.sent != want {
				b.Fatalf("sent %d, want %d", q.sent, want)
			}
		})
	}
}

// The cost of a touch does not depend on the number of resources, with one subscriber or none.
func BenchmarkTouchAmongResources(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		e, q := bench(b, n)
		subscribers(b, e, q, 1)
		now := bridge.Time(0) // goes on from run to run, as the engine's time does
		for name, touched := range map[string]string{"watched": uri(0), "unwatched": uri(n / 2)} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					now += 10
					e.Touch(now, touched)
				}
			})
		}
	}
}

// The memory of a subscription: 10 ports subscribe to the same 5,000 URIs.
func BenchmarkSubscriptionMemory(b *testing.B) {
	const n = 50_000
	for b.Loop() {
		e, q := bench(b, 1)
		for p := bridge.PortID(1); p <= 10; p++ {
			must(b, e.Open(0, p))
			q.receive(b, e, p,
				`{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
		}
		for i := range n / 10 {
			must(b, e.Register(0, bridge.Resource{URI: uri(i + 1), Name: "n", Size: -1}))
		}
		requests := make([][]byte, n/10)
		for i := range requests {
			requests[i] = message(`{"id":1,"method":"resources/subscribe","params":{"uri":"` +
				uri(i+1) + `"}}`)
		}
		before := heap()
		for p := bridge.PortID(1); p <= 10; p++ {
			for _, r := range requests {
				must(b, e.Receive(0, p, r))
			}
		}
		if s := e.Stats(); s.Subscriptions != n {
			b.Fatalf("%d subscriptions", s.Subscriptions)
		}
		b.ReportMetric(float64(heap()-before)/n, "B/subscription")
		runtime.KeepAlive(e)
		runtime.KeepAlive(requests)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDecodeResources is what 10,000 resources cost when they arrive.
func BenchmarkDecodeResources(b *testing.B) {
	text := []byte(
		`{"uri":"https://x.test/item/1","name":"Item","title":"An item","description":"What is in the cart.",` +
			`"mimeType":"application/json","annotations":{"audience":["assistant"],"priority":0.5,"lastModified":"2026-11-27"},` +
			`"contentSchema":{"type":"object","properties":{"count":{"type":"integer"}}}}`)
	for b.Loop() {
		for range 10_000 {
			if _, err := bridge.DecodeResource(text); err != nil {
				b.Fatal(err)
			}
		}
	}
}
