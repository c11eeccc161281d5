package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/node/bus"
)

// A Node is one node of a fleet. Its methods may be called concurrently. It has no state of its
// own: each part has, with its own lock.
type Node struct {
	*self
	*members           // the other nodes
	*served            // the pages that have dialed this node, and Attach
	*readers           // the gateways of users with agents here, and Reader
	once     sync.Once // of Close
}

// Each lookPause a node looks for new connections of its server. It then sends beats and sums,
// saidAnew times: the other node may not have subscribed yet. So agents are notified up to a second
// earlier than by the next beat.
const lookPause, saidAnew = 100 * time.Millisecond, 3

// Open makes a node and connects it to the bus. If the bus is not there yet, the node goes on
// trying.
func Open(o Options) (*Node, error) {
	o = o.withDefaults()
	if !spaceShape.MatchString(o.Space) {
		return nil, fmt.Errorf("%.100q is not a name for subjects: it must be like pagewire or "+
			"live.prod, of at most 64 letters, digits, - and _", o.Space)
	}
	self := &self{o: o, id: rand.Text()[:16], began: time.Now(), stop: make(chan struct{})}
	self.counts.refused, self.counts.logged = map[string]int64{}, map[string]time.Time{}
	self.o.Gateway.Pool = gateway.NewPool(o.WaitingBytes, func() {
		self.Refuse("agent: reads nothing")
	})
	if o.Bus.Name == "" {
		o.Bus.Name = self.id
	}
	o.Bus.Log = o.Log
	again := make(chan struct{}, 1)
	ask := func() {
		select {
		case again <- struct{}{}:
		default:
		}
	}
	o.Bus.Lost = func() {
		self.counts.lost.Add(1)
		ask()
	}
	o.Bus.Changed = func(bool) { ask() }
	var err error
	if self.bus, err = bus.Open(o.Bus); err != nil {
		return nil, err
	}
	n := &Node{self: self, members: newMembers(self), served: newServed(self)}
	n.readers = newReaders(self, n.members)
	n.readers.receive = n.receive
	for subject, take := range map[string]func([]byte){
		n.subject("node", n.id): n.receive, n.subject("ask"): n.receive,
		o.Space + ".nodes": n.receiveForAll,
	} {
		if _, err := n.bus.Subscribe(subject, take); err != nil {
			n.bus.Close()
			return nil, err
		}
	}
	n.running.Go(func() { n.run(again) })
	return n, nil
}

// Up reports whether the bus is connected.
func (n *Node) Up() bool { return n.bus.Up() }

// ClusterAddr is the address of this node's server for other nodes; "" if it listens nowhere.
func (n *Node) ClusterAddr() string { return n.bus.ClusterAddr() }

// Table opens a table that all nodes share: see bus.KV.
func (n *Node) Table(ctx context.Context, name string, age time.Duration) (*bus.KV, error) {
	space := strings.ReplaceAll(n.o.Space, ".", "__") // a bucket's name has no dot
	return n.bus.KV(ctx, space+"-"+name, age)
}

// Close disconnects the node from the bus. The caller must close its pages' transports and stop
// serving agents before.
func (n *Node) Close() {
	n.once.Do(func() {
		n.served.close()
		n.readers.close()
		close(n.stop)
		n.running.Wait() // a beat after the bye would bring the node back
		n.sendToAll(kindBye)
		n.bus.Close()
	})
}

// A kind is the handler of a kind of messages. toAll marks the kinds that nodes of all versions
// get: beat and bye.
type kind struct {
	take  func(*Node, *message)
	toAll bool
}

var kinds map[string]kind

func init() { // handlers refer to kinds
	kinds = map[string]kind{
		kindBeat: {(*Node).takeBeat, true}, kindBye: {(*Node).takeBye, true},
		kindAsk: {take: (*Node).answerAsk}, kindHas: {take: (*Node).hasPages},
		kindFound: {take: (*Node).hasFound},
		// from a core, to the page's node
		kindOpen: {take: (*Node).openCore}, kindCore: {take: (*Node).fromCore},
		kindLeave: {take: (*Node).fromCore}, kindCores: {take: (*Node).compareCores},
		kindClaim: {take: (*Node).fromCore},
		// from a page, to the core's node
		kindPage: {take: (*Node).fromPage}, kindGone: {take: (*Node).fromPage},
		kindPages: {take: (*Node).comparePages}, kindAlive: {take: (*Node).fromPage},
	}
}

func (n *Node) receive(text []byte) {
	m, ok := parse(text)
	if !ok {
		return
	}
	n.counts.heard.Add(1)
	if k := kinds[m.kind]; k.take != nil && !k.toAll {
		k.take(n, &m)
	}
}

// receiveForAll handles messages for nodes of all versions. A node of another version is not one of
// this fleet.
func (n *Node) receiveForAll(text []byte) {
	m, ok := parse(text)
	if !ok || len(m.words) < 1 {
		return
	}
	if m.from != version {
		n.takeOtherVersion(&m)
	} else if k := kinds[m.kind]; k.toAll {
		k.take(n, &m)
	}
}

func (n *Node) takeBye(m *message) { n.end(m.words[0], "its node has ended") }

func (n *Node) takeBeat(m *message) {
	if n.members.takeBeat(m) {
		n.askNode(m.words[0])
	}
}

func (n *Node) run(again <-chan struct{}) {
	ticks := time.NewTicker(n.o.Interval)
	defer ticks.Stop()
	looks := time.NewTicker(lookPause)
	defer looks.Stop()
	last, peers, more := time.Now(), 0, 0
	for {
		n.beat()
		for due := false; !due; {
			n.runs(time.Since(last))
			last = time.Now()
			select {
			case <-n.stop:
				return
			case <-again:
				n.askAll()
				due = true
			case <-ticks.C:
				due = true
			case <-looks.C:
				before := peers
				if peers = n.bus.Peers(); peers > before {
					more = saidAnew
				}
				if more > 0 {
					more--
					n.sayBeat()
					n.sum()
				}
			}
		}
	}
}

// beat sends a beat and the sums, and gives up silent nodes.
func (n *Node) beat() {
	n.sayBeat()
	dead, alive := n.giveUp(), n.alive()
	for _, id := range slices.Concat(n.cores.lasting(n.self), n.sessions.lasting(n.self)) {
		if !alive[id] && !slices.Contains(dead, id) { // not even one beat of it has come
			dead = append(dead, id)
		}
	}
	n.forgetSpent()
	for _, id := range dead {
		n.o.Log.Warn("a node is silent, and its pages and agents are given up", "node", id)
		n.end(id, "its node is silent")
	}
	n.sum()
	n.found.repeat()
	n.askSome()
	n.closeIdle()
}

// sum tells all nodes what was sent in their sessions with this one.
func (n *Node) sum() {
	n.cores.sum(n.self, kindPages)
	n.sessions.sum(n.self, kindCores)
}

// end ends all sessions with a dead node.
func (n *Node) end(id, reason string) {
	n.members.remove(id)
	for _, f := range n.cores.at(id) {
		f.leave()
	}
	for _, s := range n.sessions.at(id) {
		s.k.mailbox.post(func() { s.close(reason) })
	}
}
