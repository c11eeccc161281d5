package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// This is the side of a node with agents: a Reader for each user, with a session (session.go) for
// each page of the user.

// readerKey is a user, and whether the agents may act. Agents that may not act have a separate
// gateway, which gets no tools from pages.
type readerKey struct {
	user string
	acts bool
}

// readers are the gateways of users with agents at this node.
type readers struct {
	*self
	members  *members
	found    findings
	sessions ends[*session] // each belongs to a Reader
	waiting  *quota.Quota   // bytes in the queues of users' gateways
	receive  func([]byte)   // takes messages about users that have a Reader
	asking   []string       // users whose pages are still to be asked for; for run alone
	// readyWithin is after how long a Reader is ready without all offers: Options.Interval, but for
	// a test of those offers.
	readyWithin time.Duration

	mu     sync.Mutex // guards the rest; that of members may be taken with it
	closed bool       // no more are made
	all    map[readerKey]*Reader
	// others counts, by user, the Readers for other users that this user's agents caused. None is
	// 0.
	others map[string]int
}

func newReaders(n *self, m *members) *readers {
	return &readers{self: n, members: m, found: findings{self: n},
		waiting: quota.New(n.o.WaitingBytes, maxTodo), all: map[readerKey]*Reader{},
		others: map[string]int{}, readyWithin: n.o.Interval}
}

// A Reader is the gateway for a user's agents at this node.
type Reader struct {
	known
	// Server serves its agents.
	Server Server

	of     *readers
	key    readerKey
	by     string        // the user of the agent that caused it, if not key.user
	cancel func()        // ends the subscription
	ready  chan struct{} // closed by beReady
	// beReady is called when the first pages have come, or an interval is over.
	beReady func()

	// guarded by the lock of readers
	users int       // that have not released it
	used  time.Time // the last release

	// used only by functions in the mailbox
	awaited  map[string]bool     // nodes that have not listed their pages yet
	findings [maxFindings]string // the last ones
	finds    int                 // number of all findings so far
}

// A Server serves the agents of a Reader. It is closed before the Gateway. The Reader stays while
// Busy is true.
type Server interface {
	// Close notifies the agents, and cuts off the agents that still read nothing when ctx ends.
	Close(ctx context.Context) error
	Busy() bool
}

// closeTimeout bounds the time in which agents must read their last messages.
const closeTimeout = time.Second

// Reader returns the gateway for a user's agents here. If there is none, it makes one, and its
// Server by serve, which may be nil. The caller must call release after use; the gateway then stays
// for Options.Idle. by is the agent's own user, "" for none: if by is not user, Options.OtherUsers
// bounds its readers. It fails with ErrFull or ErrClosed.
func (n *readers) Reader(by, user string, acts bool, serve func(*gateway.Gateway) Server) (
	r *Reader,
	release func(), err error) {
	if by == user {
		by = ""
	}
	key := readerKey{user, acts}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, ErrClosed
	}
	r = n.all[key]
	if r == nil {
		if len(n.all) >= n.o.Users {
			return nil, nil, fmt.Errorf("%w: it has agents of %d users", ErrFull, n.o.Users)
		}
		if n.others[by] >= n.o.OtherUsers {
			return nil, nil, fmt.Errorf("%w: it has agents of %d users for this one", ErrFull,
				n.o.OtherUsers)
		}
		if r, err = n.newReader(key); err != nil {
			return nil, nil, err
		}
		if r.by = by; by != "" {
			n.others[by]++
		}
		if serve != nil {
			r.Server = serve(r.Gateway)
		}
	}
	r.users++
	return r, sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		r.users--
		r.used = time.Now()
	}), nil
}

// newReader is called with the lock held.
func (n *readers) newReader(key readerKey) (*Reader, error) {
	r := &Reader{of: n, key: key, ready: make(chan struct{}), awaited: n.members.alive()}
	r.beReady = sync.OnceFunc(func() { close(r.ready) })
	r.known = known{self: n.self, user: key.user, acts: key.acts, sessions: &n.sessions,
		mailbox: mailbox{user: key.user, waiting: n.waiting}, pages: map[pageKey]*session{},
		changed: r.check}
	o := n.o.Gateway
	o.Found = func(uri string) { r.mailbox.post(func() { n.found.add(key.user, uri) }) }
	r.Gateway = gateway.New(o)
	var err error
	r.cancel, err = n.bus.Subscribe(n.subject("user", key.user), n.receive)
	if err != nil {
		r.Gateway.Close()
		return nil, err
	}
	if n.isNew() {
		r.awaited[""] = true // a node without a beat yet: Ready waits an interval for it
	}
	n.all[key] = r
	n.askFor(n.subject("ask"), []string{key.user})
	time.AfterFunc(n.readyWithin, func() { r.mailbox.post(r.beReady) })
	return r, nil
}

// Under counts an agent's request that may call pages, until end is called.
func (r *Reader) Under(ctx context.Context) (end func()) {
	if r.o.Tracer == nil {
		return func() {}
	}
	return r.requests.enter(ctx)
}

// Ready is closed when the offers of all known pages have come, or after an interval.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// check is called after each message that may make the Reader ready.
func (r *Reader) check() {
	if len(r.awaited) == 0 && r.complete() {
		r.beReady()
	}
}

func (r *Reader) close() {
	n := r.of
	n.mu.Lock()
	n.drop(r)
	n.mu.Unlock()
	r.cancel()
	if r.Server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		_ = r.Server.Close(ctx) // an error means that it cut off agents
		cancel()
	}
	r.Gateway.Close()
	done := make(chan struct{})
	r.mailbox.post(func() {
		r.known.close()
		r.beReady()
		close(done)
	})
	<-done
}

// close takes no more agents, and ends all gateways. Some agents take a second for their last
// message.
func (n *readers) close() {
	n.mu.Lock()
	n.closed = true
	all := slices.Collect(maps.Values(n.all))
	n.mu.Unlock()
	var closing sync.WaitGroup
	for _, r := range all {
		closing.Go(r.close)
	}
	closing.Wait()
}

// drop is called with the lock held.
func (n *readers) drop(r *Reader) {
	if n.all[r.key] != r { // it was dropped before, and its agents may have another Reader
		return
	}
	delete(n.all, r.key)
	if r.by == "" {
		return
	}
	if n.others[r.by]--; n.others[r.by] == 0 {
		delete(n.others, r.by)
	}
}

// closeIdle closes gateways that were not used for Options.Idle. It does so on another goroutine:
// each may take a second, and beats must go on.
func (n *readers) closeIdle() {
	n.mu.Lock()
	var idle []*Reader
	for _, r := range n.all {
		if r.users == 0 && time.Since(r.used) > n.o.Idle && (r.Server == nil || !r.Server.Busy()) {
			idle = append(idle, r)
			n.drop(r) // from here on no caller gets it
		}
	}
	n.mu.Unlock()
	if len(idle) == 0 {
		return
	}
	n.running.Go(func() {
		for _, r := range idle {
			r.close()
		}
	})
}

// askNode asks a node for the pages of all users with agents here.
func (n *readers) askNode(node string) { n.askFor(n.subject("node", node), n.usersHere()) }

// askAll asks all nodes.
func (n *readers) askAll() { n.askFor(n.subject("ask"), n.usersHere()) }

// Each interval a node asks for the pages of one in partOf of its users.
const partOf = 10

func (n *readers) askSome() {
	all := n.usersHere()
	if len(n.asking) == 0 {
		n.asking = all
	}
	some := min(len(n.asking), len(all)/partOf+1)
	n.askFor(n.subject("ask"), n.asking[:some])
	n.asking = n.asking[some:]
}

func (n *readers) usersHere() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]string, 0, len(n.all))
	for key := range n.all {
		if !key.acts || n.all[readerKey{key.user, false}] == nil {
			list = append(list, key.user)
		}
	}
	return list
}

func (n *readers) hasPages(m *message) {
	n.counts.has.Add(1)
	for _, line := range m.lines() {
		words := strings.Split(line, " ")
		n.each(words[0], len(line), func(r *Reader) {
			delete(r.awaited, m.from)
			for _, word := range words[1:] {
				r.open(pageKey{m.from, number(word)})
			}
			r.check()
		})
	}
}

// each queues a function for each gateway of the user here. bytes is the size of its data.
func (n *readers) each(user string, bytes int, do func(*Reader)) {
	for _, acts := range []bool{true, false} {
		n.mu.Lock()
		r := n.all[readerKey{user, acts}]
		n.mu.Unlock()
		if r != nil {
			r.mailbox.do(bytes, func() { do(r) })
		}
	}
}

// hasFound takes another node's finding: agents here that watch the URI are notified.
func (n *readers) hasFound(m *message) {
	n.each(m.word(1), len(m.body)+1, func(r *Reader) {
		if which := m.from + " " + m.word(0); !slices.Contains(r.findings[:], which) {
			r.findings[r.finds%len(r.findings)] = which
			r.finds++
			r.Gateway.Touch(string(m.body))
		}
	})
}

func (n *readers) fromPage(m *message) {
	session := m.number(0)
	s := n.sessions.get(m.from, session)
	if s == nil {
		if m.kind != kindGone {
			n.sendTo(m.from, head(kindLeave, n.id, session))
		}
		return
	}
	if !s.k.mailbox.do(len(m.body)+1, func() { s.handle(m) }) {
		n.counts.lost.Add(1)
	}
}

// comparePages takes a page's node's list. It reopens each session that has lost a frame.
func (n *readers) comparePages(m *message) {
	n.sessions.compare(m, func(s *session, sent uint64, _ bool) {
		s.k.mailbox.post(func() {
			if s.state != ended && sent > s.heard {
				s.gap()
			}
		})
	}, func(session uint64) { n.sendTo(m.from, head(kindLeave, n.id, session)) })
}
