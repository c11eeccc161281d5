package gateway

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

func send(a *Agent, n int) {
	defer a.g.lock()()
	a.send(make([]byte, n))
}

func ended(a *Agent) bool {
	select {
	case <-a.Done():
		return true
	default:
		return false
	}
}

func connectAs(t *testing.T, g *Gateway, client string) *Agent {
	t.Helper()
	return connect(t, g, AgentOptions{Client: client})
}

// The bound on a client's unread bytes is for all its sessions together, and bytes that are being written count.
func TestBytesThatWaitForOneClient(t *testing.T) {
	g := New(Options{})
	t.Cleanup(g.Close)
	small, large, other := connectAs(t, g, "a"), connectAs(t, g, "a"), connectAs(t, g, "b")
	send(small, maxWaiting/4)
	send(other, maxWaiting/4)
	send(large, maxWaiting/2)
	if _, err := large.Read(t.Context()); err != nil { // the bytes are being written, to an agent that does not read
		t.Fatal(err)
	}
	send(large, maxWaiting/4)
	if ended(small) || ended(large) || ended(other) {
		t.Fatal("one has ended below the bound")
	}
	send(small, 1)
	if ended(small) || !ended(large) || ended(other) {
		t.Errorf("ended: %v, %v, %v; want the one for which most waits", ended(small), ended(large), ended(other))
	}
	if got := small.client.waiting.Load(); got != maxWaiting/4+1 {
		t.Errorf("%d bytes are counted for its client", got)
	}
	// An agent that reads may get any amount, one message after the other.
	for range 2 {
		send(other, maxWaiting/2)
		for other.out.Size() > 0 {
			if _, err := other.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, a := range []*Agent{small, other} {
		a.Close()
	}
	if got := g.waiting.Load(); got != 0 || len(g.clients) != 0 {
		t.Errorf("%d bytes and %d clients are left", got, len(g.clients))
	}
}

// Clients below their own bounds share another. The client that reads least ends first; a client that reads stays.
func TestBytesThatWaitForAll(t *testing.T) {
	g := New(Options{})
	t.Cleanup(g.Close)
	honest := connectAs(t, g, "")
	send(honest, 1000)
	var slow []*Agent
	for i := range 6 {
		a := connectAs(t, g, "")
		send(a, maxWaiting-(i+1)<<20) // the first has the most
		slow = append(slow, a)
		if g.waiting.Load() > maxWaitingAll {
			t.Fatalf("%d bytes wait", g.waiting.Load())
		}
	}
	if !ended(slow[0]) || ended(slow[5]) || ended(honest) {
		t.Errorf("the first: %v, the last: %v, the honest one: %v", ended(slow[0]), ended(slow[5]), ended(honest))
	}
	if _, err := honest.Read(t.Context()); err != nil {
		t.Error(err)
	}
}

// A dismissed session keeps its unread messages, and they count until they are read.
func TestBytesOfWhoIsDismissed(t *testing.T) {
	g := New(Options{})
	t.Cleanup(g.Close)
	a := connectAs(t, g, "")
	send(a, 1000)
	a.Dismiss()
	for {
		if _, err := a.Read(context.Background()); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "nothing waits", func() bool { return g.waiting.Load() == 0 })
}

// Gateways that share a bound end the session with the most unread bytes, no matter which gateway sent last.
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

// An agent that takes a long message at the moment when it is sent gets updates afterwards. Without the second look at the
// outbox, 2 of 100,000 such messages left the port blocked until the agent asked for something; with one processor none.
func TestLongMessagesThatAreReadAtOnce(t *testing.T) {
	g := newGateway(t, Options{})
	a := connect(t, g, AgentOptions{})
	read := make(chan struct{})
	go func() {
		for {
			if _, err := a.Read(t.Context()); err != nil {
				return
			}
			read <- struct{}{}
		}
	}()
	long := make([]byte, highWater+1)
	send := g.locked(func() { a.send(long) })
	for n := range 100_000 {
		send()
		if <-read; a.blocked.Load() {
			t.Fatalf("after message %d the agent gets no updates", n)
		}
	}
}
