package gateway

import (
	"sync/atomic"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// Of several gateways that share a bound, the session for which most waits ends, whichever gateway sent last.
func TestBytesThatWaitAtSeveralGateways(t *testing.T) {
	var count atomic.Int64
	p := NewPool(10_000, func() { count.Add(1) })
	var of []*Gateway
	for range 3 {
		g := New(Options{Pool: p})
		t.Cleanup(g.Close)
		of = append(of, g)
	}
	slow, slower, reads := connectAs(t, of[0], ""), connectAs(t, of[1], ""), connectAs(t, of[2], "")
	send(slow, 3000)
	send(slower, 6000)
	send(reads, 1000)
	if ended(slow) || ended(slower) || ended(reads) || p.Waiting() != 10_000 {
		t.Fatalf("%d bytes wait, and one has ended", p.Waiting())
	}
	send(reads, 1)
	testkit.Ends(t, "the session for which most waits has ended", slower.Done())
	testkit.Eventually(t, "it is counted", func() bool { return count.Load() == 1 })
	if ended(slow) || ended(reads) {
		t.Error("another one has ended too")
	}
	for range 2 {
		if _, err := reads.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	slow.Close()
	reads.Close()
	if got := p.Waiting(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
}
