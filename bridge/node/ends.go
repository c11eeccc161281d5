package node

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// An end is one end of a session: at the page's node (remoteCore) or at the core's (session). The
// two ends repair a loss in the same way. Each numbers its frames. Once an interval, each node
// sends a list of its ends and the frames that each has sent. An end that has heard less lost a
// frame, and ends. An end that only one node has is over.
type end struct {
	node    string // the other end's; does not change, as session and began
	session uint64 // its number, which the core's node has given it
	began   int64  // self's ran
	// open is set once the other node has been sent that the session exists: until then no list has
	// it. It is never taken back.
	open atomic.Bool
	// sent is how many frames were published. A frame counts after that: a list must not announce a
	// frame that comes after it. Only the owner writes it.
	sent atomic.Uint64
	// heard is how many frames have come. All before have come too. Guarded by the owner, like
	// trail.
	heard uint64
	trail trail // the calls under way; empty once the session is over
}

func (e *end) itself() *end { return e }

// hears counts a frame. It reports false if one before it was lost.
func (e *end) hears(m *message) bool {
	if m.number(1) != e.heard+1 {
		return false
	}
	e.heard++
	return true
}

// send sends the next frame. word follows the numbers, if it is not empty.
func (n *self) send(e *end, kind, word string, frame []byte) {
	sent := e.sent.Load() + 1
	first := head(kind, n.id, e.session, sent)
	if word != "" {
		first = append(append(first[:len(first)-1], " "+word...), '\n')
	}
	n.sendTo(e.node, first, frame)
	e.sent.Store(sent)
}

// ends are this node's ends of one kind. Its methods may be called concurrently, also with a page's
// lock, and call nothing that locks.
type ends[E interface {
	comparable
	itself() *end
}] struct {
	numbered atomic.Uint64 // the last session that this node has given a number

	mu  sync.Mutex
	all map[string]map[uint64]E // by the other end's node and the session; no inner map is empty
}

func (t *ends[E]) add(one E) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := one.itself()
	if t.all == nil {
		t.all = map[string]map[uint64]E{}
	}
	if t.all[e.node] == nil {
		t.all[e.node] = map[uint64]E{}
	}
	t.all[e.node][e.session] = one
}

// remove removes an end, unless another has taken its place.
func (t *ends[E]) remove(one E) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := one.itself()
	if t.all[e.node][e.session] != one {
		return
	}
	if delete(t.all[e.node], e.session); len(t.all[e.node]) == 0 {
		delete(t.all, e.node)
	}
}

// get returns an end, or the zero E.
func (t *ends[E]) get(node string, session uint64) E {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[node][session]
}

// at returns the ends whose other ends are at a node.
func (t *ends[E]) at(node string) []E {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.all[node]))
}

// byNode returns all ends.
func (t *ends[E]) byNode() map[string][]E {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make(map[string][]E, len(t.all))
	for node, ends := range t.all {
		list[node] = slices.Collect(maps.Values(ends))
	}
	return list
}

// lasting returns the nodes with an end that began more than deadAfter intervals ago.
func (t *ends[E]) lasting(n *self) (nodes []string) {
	for node, ends := range t.byNode() {
		if slices.ContainsFunc(ends, func(one E) bool { return n.since(one.itself().began, deadAfter) }) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// sum sends each node the list of its sessions with this one.
func (t *ends[E]) sum(n *self, kind string) {
	for node, ends := range t.byNode() {
		var text []byte
		for _, one := range ends {
			if e := one.itself(); e.open.Load() {
				text = strconv.AppendUint(text, e.session, 10)
				text = append(strconv.AppendUint(append(text, ' '), e.sent.Load(), 10), '\n')
			}
		}
		n.sendTo(node, line(kind, n.id), text)
	}
}

// compare takes another node's list. It calls check with each end that the list should have, and
// unknown with each session that has ended here: the message of that was lost.
func (t *ends[E]) compare(m *message, check func(one E, sent uint64, listed bool),
	unknown func(session uint64)) {
	said := map[uint64]uint64{}
	for _, line := range m.lines() {
		session, sent := numbers(line)
		said[session] = sent
	}
	for _, one := range t.at(m.from) {
		session := one.itself().session
		sent, listed := said[session]
		delete(said, session)
		check(one, sent, listed)
	}
	for session := range said {
		unknown(session)
	}
}
