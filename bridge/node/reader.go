package node

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// This is the side of a node with agents: a Reader for each user, with a session (session.go) for each page of the
// user.

// readerKey is a user, and whether the agents may act. Agents that may not act have a separate gateway, which gets no
// tools from pages.
type readerKey struct {
	user string
	acts bool
}

// A Reader is the gateway for a user's agents at this node.
type Reader struct {
	Gateway *gateway.Gateway
	// Server serves its agents.
	Server Server

	node   *Node
	key    readerKey
	by     string // the user of the agent that caused it, if not key.user
	cancel func() // ends the subscription
	ready  chan struct{}

	// guarded by the node's lock
	users int
	used  time.Time

	mailbox  mailbox
	requests requests // of its agents, while they are traced

	// used only by functions in the mailbox
	state    readerState
	pages    map[pageKey]*session
	awaited  map[string]bool     // nodes that have not listed their pages yet
	findings [maxFindings]string // the last ones
	found    int                 // number of all findings so far
}

// A Reader's state only goes forward.
type readerState int

const (
	starting readerState = iota // until the first pages have come, or an interval is over
	serving
	closed
)

// A mailbox calls functions one at a time, in order. It has a goroutine only while its queue is not empty.
type mailbox struct {
	mu      sync.Mutex
	todo    []func()
	running bool
}

// post queues f, and does not wait.
func (b *mailbox) post(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.todo = append(b.todo, f)
	if !b.running {
		b.running = true
		go b.run()
	}
}

func (b *mailbox) run() {
	for {
		b.mu.Lock()
		list := b.todo
		b.todo = nil
		b.running = len(list) > 0
		b.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, f := range list {
			f()
		}
	}
}

// A Server serves the agents of a Reader. It is closed before the Gateway. The Reader stays while Busy is true.
type Server interface {
	// Close notifies the agents, and cuts off the agents that still read nothing when ctx ends.
	Close(ctx context.Context) error
	Busy() bool
}

// closeTimeout bounds the time in which agents must read their last messages.
const closeTimeout = time.Second

// maxTodo bounds the queue of one user's gateways, in bytes; Options.WaitingBytes bounds the queues of all users.
// Messages above a bound are lost, and the loss is then repaired.
const maxTodo = 64 << 20

// do queues f in the mailbox. It reports false if the queue is full. bytes is the size of f's data.
func (r *Reader) do(bytes int, f func()) bool {
	q := r.node.waiting
	if q.Take(r.key.user, int64(bytes)) != nil {
		return false
	}
	r.mailbox.post(func() {
		f()
		q.Give(r.key.user, int64(bytes))
	})
	return true
}

// Reader returns the gateway for a user's agents here. If there is none, it makes one, and its Server by serve, which
// may be nil. The caller must call release after use; the gateway then stays for Options.Idle. by is the agent's own
// user, "" for none: if by is not user, Options.OtherUsers bounds its readers. It fails with ErrFull or ErrClosed.
func (n *Node) Reader(by, user string, acts bool, serve func(*gateway.Gateway) Server) (r *Reader, release func(),
	err error) {
	if by == user {
		by = ""
	}
	key := readerKey{user, acts}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, nil, ErrClosed
	}
	r = n.readers[key]
	if r == nil {
		if len(n.readers) >= n.o.Users {
			return nil, nil, fmt.Errorf("%w: it has agents of %d users", ErrFull, n.o.Users)
		}
		if n.others[by] >= n.o.OtherUsers {
			return nil, nil, fmt.Errorf("%w: it has agents of %d users for this one", ErrFull, n.o.OtherUsers)
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

// newReader is called with the node's lock held.
func (n *Node) newReader(key readerKey) (*Reader, error) {
	r := &Reader{node: n, key: key, ready: make(chan struct{}), pages: map[pageKey]*session{},
		awaited: map[string]bool{}}
	o := n.o.Gateway
	o.Found = func(uri string) { r.mailbox.post(func() { n.addFound(key.user, uri) }) }
	r.Gateway = gateway.New(o)
	var err error
	r.cancel, err = n.bus.Subscribe(n.subject("user", key.user), n.receive)
	if err != nil {
		r.Gateway.Close()
		return nil, err
	}
	for id := range n.peers {
		r.awaited[id] = true
	}
	if n.isNew() {
		r.awaited[""] = true // stands for nodes without a beat yet: Ready waits an interval for them
	}
	n.readers[key] = r
	n.askFor(n.subject("ask"), []string{key.user})
	time.AfterFunc(n.o.Interval, func() { r.mailbox.post(r.beReady) })
	return r, nil
}

// isNew reports whether this node may not know all nodes yet: each sends a beat once an interval.
func (n *Node) isNew() bool {
	return !n.o.Bus.Alone() && time.Since(n.began) < 2*n.o.Interval
}

// Ready is closed when the offers of all known pages have come, or after an interval.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

func (r *Reader) beReady() {
	if r.state == starting {
		r.state = serving
		close(r.ready)
	}
}

// check is called after each message that may make the Reader ready.
func (r *Reader) check() {
	if len(r.awaited) > 0 {
		return
	}
	for _, s := range r.pages {
		if s.heard < 2 || s.more || s.is(waiting) { // the hello, and the page's offers
			return
		}
	}
	r.beReady()
}

func (r *Reader) close() {
	n := r.node
	n.mu.Lock()
	n.dropReader(r)
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
		for _, s := range r.pages {
			s.close("the gateway goes away")
		}
		r.beReady()
		r.state = closed
		close(done)
	})
	<-done
}

// dropReader is called with the node's lock held.
func (n *Node) dropReader(r *Reader) {
	if n.readers[r.key] != r { // it was dropped before, and its agents may have another Reader
		return
	}
	delete(n.readers, r.key)
	if r.by == "" {
		return
	}
	if n.others[r.by]--; n.others[r.by] == 0 {
		delete(n.others, r.by)
	}
}

// closeIdle closes gateways that were not used for Options.Idle. It does so on another goroutine: each may take a
// second, and beats must go on.
func (n *Node) closeIdle() {
	n.mu.Lock()
	var idle []*Reader
	for _, r := range n.readers {
		if r.users == 0 && time.Since(r.used) > n.o.Idle && (r.Server == nil || !r.Server.Busy()) {
			idle = append(idle, r)
			n.dropReader(r) // from here on no caller gets it
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

func (n *Node) readersUsers() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]string, 0, len(n.readers))
	for key := range n.readers {
		if !key.acts || n.readers[readerKey{key.user, false}] == nil {
			list = append(list, key.user)
		}
	}
	return list
}

func (n *Node) hasPages(m *message) {
	n.counts.has.Add(1)
	for _, line := range m.lines() {
		words := strings.Split(line, " ")
		n.eachReader(words[0], len(line), func(r *Reader) {
			delete(r.awaited, m.from)
			for _, word := range words[1:] {
				page, _ := strconv.ParseUint(word, 10, 64) // 0, which no page has, if the word is not a number
				r.open(pageKey{m.from, page})
			}
			r.check()
		})
	}
}

// eachReader queues a function for each gateway of the user here. bytes is the size of its data.
func (n *Node) eachReader(user string, bytes int, do func(*Reader)) {
	for _, acts := range []bool{true, false} {
		n.mu.Lock()
		r := n.readers[readerKey{user, acts}]
		n.mu.Unlock()
		if r != nil {
			r.do(bytes, func() { do(r) })
		}
	}
}
