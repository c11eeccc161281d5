package node

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"
)

// warnAfter is the number of beats after which a node without any contact logs a warning.
const warnAfter = 10

// members are the nodes that this one hears, by their beats.
type members struct {
	*self

	mu sync.Mutex // guards the rest
	// peers are the nodes of this version, from each one's first beat to its bye or its death. This
	// node is one of them.
	peers map[string]*peer
	// unlike are the nodes of another version. They share nothing with this one.
	unlike  map[string]*peer
	beats   uint64        // sent by this node
	beaten  time.Time     // when the last one was sent
	latency time.Duration // of the last beat over the bus and back
	met     bool          // another node's beat has come, or Options.Bus.Join is empty; stays true
	warned  bool          // it was logged that no beat of another node has come; stays true
}

// A peer is a live node. The lock of members guards it.
type peer struct {
	count uint64        // of its last beat
	seen  int64         // when its last beat came: self's ran
	url   string        // checked; "" for none
	older bool          // of another version: it has run for at least as long as this node
	dead  chan struct{} // closed when the node is dead
}

func newMembers(n *self) *members {
	return &members{self: n, peers: map[string]*peer{}, unlike: map[string]*peer{},
		met: len(n.o.Bus.Join) == 0}
}

// Met reports whether Options.Bus.Join is empty, or another node's beat has come and two intervals
// have passed, in which each node sends a beat. Until then URLOf may wait for a dead node.
func (a *members) Met() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.met && (len(a.o.Bus.Join) == 0 || !a.isNew())
}

// Mismatch reports whether a node that has run for longer than this one uses another version of the
// bus. It is false at the older node, which goes on: an upgrade that cannot succeed ends no fleet.
func (a *members) Mismatch() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.unlike {
		if p.older {
			return true
		}
	}
	return false
}

// URLOf is where a node's HTTP is reached; ok is false if the node is not known to be alive. dead
// is closed when the node is not alive any more. A node that has begun less than two intervals ago
// waits for a beat of the other: it does not know all nodes yet, and agents would end sessions that
// are alive.
func (a *members) URLOf(ctx context.Context, id string) (url string, dead <-chan struct{},
	ok bool) {
	for {
		a.mu.Lock()
		p := a.peers[id]
		if p != nil {
			url, dead = p.url, p.dead
		}
		a.mu.Unlock()
		if p != nil || !a.isNew() {
			return url, dead, p != nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", nil, false
		case <-a.stop:
			return "", nil, false
		}
	}
}

// alive returns the names of the peers.
func (a *members) alive() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := make(map[string]bool, len(a.peers))
	for id := range a.peers {
		names[id] = true
	}
	return names
}

// sayBeat sends a beat.
func (a *members) sayBeat() {
	a.mu.Lock()
	a.beats++
	a.beaten = time.Now()
	count := a.beats
	a.mu.Unlock()
	a.sendToAll(kindBeat, strconv.FormatUint(count, 10), cmp.Or(a.o.URL, "-"))
}

// takeBeat notes a peer's beat. It reports whether the beat is its first, or one was lost before
// it.
func (a *members) takeBeat(m *message) (news bool) {
	id, count, url := m.words[0], m.number(1), strings.TrimPrefix(m.word(2), "-")
	if url != "" && CheckURL(url, a.o.InsecureHTTP) != nil {
		a.Refuse("node: URL", "node", id)
		url = ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.peers[id]
	news = p == nil || count != p.count+1
	if p == nil {
		p = &peer{dead: make(chan struct{})}
		a.peers[id] = p
	}
	if id == a.id && count == a.beats {
		a.latency = time.Since(a.beaten)
	}
	p.count, p.seen, p.url = count, a.ran.Load(), url
	a.met = a.met || id != a.id
	return news
}

// takeOtherVersion notes a beat or bye of a node of another version. The words after COUNT may
// differ there.
func (a *members) takeOtherVersion(m *message) {
	id := m.words[0]
	a.mu.Lock()
	p, begins := a.unlike[id], false
	switch {
	case m.kind == kindBye:
		delete(a.unlike, id)
	case m.kind == kindBeat && p == nil:
		begins = len(a.unlike) == 0
		a.unlike[id] = &peer{older: m.number(1)+deadAfter >= a.beats, seen: a.ran.Load()}
	case m.kind == kindBeat:
		p.seen = a.ran.Load()
	}
	a.mu.Unlock()
	if begins {
		a.o.Log.Warn(
			"a node of another version is on the bus: it shares nothing with this one, and "+
				"the younger of the two is not ready. Update the older nodes, or give the younger another "+
				"--space",
			"node", id, "version", m.from, "ours", version)
	}
}

// giveUp returns the nodes that have become silent.
func (a *members) giveUp() (dead []string) {
	a.mu.Lock()
	for id, p := range a.peers {
		if a.since(p.seen, deadAfter) {
			dead = append(dead, id)
		}
	}
	maps.DeleteFunc(a.unlike, func(_ string, p *peer) bool { return a.since(p.seen, deadAfter) })
	alone := !a.met && !a.warned && a.beats >= warnAfter
	a.warned = a.warned || alone
	a.mu.Unlock()
	if alone {
		a.o.Log.Warn(
			"no other node has been heard: is one at an address of --join, with the same " +
				"secret?")
	}
	return dead
}

// remove removes a node that has ended or is dead.
func (a *members) remove(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.peers[id]; p != nil {
		close(p.dead)
		delete(a.peers, id)
	}
}
