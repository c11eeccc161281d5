package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node/bus"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A slowServer takes its time to close.
type slowServer struct{ closing, may chan struct{} }

func (s *slowServer) Busy() bool { return false }

func (s *slowServer) Close(context.Context) error {
	s.closing <- struct{}{}
	<-s.may
	return nil
}

// Agents that come back while their idle gateways close get gateways that know the pages.
func TestReaderThatComesBackWhileItsLastCloses(t *testing.T) {
	n := openNode(t, Options{Idle: interval})
	s := &slowServer{closing: make(chan struct{}, 2), may: make(chan struct{})}
	for _, user := range []string{alice, bob} {
		_, release, err := n.Reader("", user, true, func(*gateway.Gateway) Server { return s })
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	testkit.Receive(t, "the first of them closes", s.closing)
	testkit.Eventually(t, "both are nobody's", func() bool { return n.Stats().Readers == 0 })
	openReader(t, n, alice)
	openReader(t, n, bob)
	beats := func() uint64 {
		n.members.mu.Lock()
		defer n.members.mu.Unlock()
		return n.beats
	}
	before := beats()
	testkit.Eventually(t, "the node goes on saying that it is there", func() bool { return beats() > before+1 })
	close(s.may)
	testkit.Receive(t, "the second closes", s.closing)
	openTab(t, n, alice, map[string]string{app + "/doc": "a"})
	openTab(t, n, bob, map[string]string{app + "/doc": "b"})
	testkit.Eventually(t, "both have a session", func() bool { return n.Stats().Sessions == 2 })
	if got := n.Stats().Readers; got != 2 {
		t.Errorf("%d gateways are known", got)
	}
}

// An agent that may act for other users takes only a part of the room, and gives it back.
func TestReadersForOthers(t *testing.T) {
	n := openNode(t, Options{Idle: interval, OtherUsers: 1})
	_, release, err := n.Reader(alice, bob, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	carol := strings.Repeat("C", 43)
	if _, _, err := n.Reader(alice, carol, true, nil); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	for _, by := range []string{"", alice} { // herself
		_, release, err := n.Reader(by, alice, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	openReader(t, n, carol)
	release()
	testkit.Eventually(t, "there is room again", func() bool {
		_, release, err := n.Reader(alice, strings.Repeat("D", 43), true, nil)
		if err == nil {
			release()
		}
		return err == nil
	})
}

// Calls whose arguments together exceed one message of the bus travel in several frames, in order.
func TestCallsWithMuch(t *testing.T) {
	call := func(i int) string { return fmt.Sprintf(`["callTool",%d,"%s"]`, i, strings.Repeat("x", 400<<10)) }
	small := []byte("[" + `["end",1]` + "]")
	if got := parted(small); len(got) != 1 || string(got[0]) != string(small) {
		t.Errorf("a small frame becomes %s", got)
	}
	var calls []string
	for i := range 10 {
		calls = append(calls, call(i))
	}
	parts := parted([]byte("[" + strings.Join(calls, ",") + "]"))
	var got []string
	for _, part := range parts {
		if len(part) > 2<<20 {
			t.Errorf("a part has %d bytes", len(part))
		}
		wire.Value(part).Elements(func(v wire.Value) bool {
			got = append(got, string(v))
			return true
		})
	}
	if len(parts) < 3 || !slices.Equal(got, calls) {
		t.Errorf("%d parts with %d calls", len(parts), len(got))
	}
}

// A node that has just begun does not know the others yet. An agent that comes at once still sees their pages.
func TestReaderOfANodeThatHasJustBegun(t *testing.T) {
	first := openFleetOf(t, 1, time.Second)[0]
	openTab(t, first, alice, map[string]string{app + "/doc": "one"})
	var asker atomic.Value // the last one
	_, err := first.bus.Subscribe(first.subject("ask"), func(text []byte) {
		m, _ := parse(text)
		asker.Store(m.from)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n := openNode(t, Options{Interval: time.Second,
			Bus: bus.Options{Cluster: "127.0.0.1:0", Join: []string{first.ClusterAddr()}}})
		testkit.Eventually(t, "the two are connected", func() bool {
			n.askFor(n.subject("ask"), []string{bob})
			return asker.Load() == n.id
		})
		if got := openAgent(t, n, alice).URIs(); len(got) != 1 {
			t.Errorf("it is shown %v", got)
		}
		n.Close()
	}
}

// A gateway is ready when it has all offers of a page, also of one whose offers exceed one frame.
func TestReaderIsReadyWithAllOffers(t *testing.T) {
	nodes := openFleetOf(t, 2, time.Second)
	state, last := map[string]string{}, ""
	for i := range 8000 {
		last = fmt.Sprintf("%s/%s/%05d", app, strings.Repeat("doc", 60), i)
		state[last] = "x"
	}
	openTab(t, nodes[0], alice, state)
	testkit.Eventually(t, "the page's node has the offers, and the other knows all nodes", func() bool {
		return nodes[0].Stats().OfferedBytes > int64(len(state)*len(last)) && !nodes[1].isNew()
	})
	nodes[1].readers.readyWithin = testkit.Patience // a busy machine takes longer than an interval for the offers
	r := openReader(t, nodes[1], alice)
	m := &roamer{t: t, reads: func() *gateway.Gateway { return r.Gateway }, held: map[string]string{}}
	if got := m.look(last); got != "x" {
		t.Errorf("the last of them reads %q", got)
	}
}
