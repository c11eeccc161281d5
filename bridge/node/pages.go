package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/relay"
)

// This is the side of a node with pages.

const (
	// defaultPace is the default of Options.UserMessages. A page that touches at its greatest rate sends 100 messages a
	// second to each node that watches it.
	defaultPace = 2_000
	// atOnce is the size of a burst, in seconds of the pace.
	atOnce = 5
	// maxPause bounds one pause in reading from a page: its connection answers pings between two pauses.
	maxPause = time.Second
)

// forgetSpent forgets the budgets that are full again. The node's lock is held.
func (n *Node) forgetSpent() {
	maps.DeleteFunc(n.spent, func(_ string, messages *rate.Limiter) bool {
		return messages.Tokens() >= float64(messages.Burst())
	})
}

// A Page is a page that has dialed this node.
type Page struct {
	node *Node
	id   uint64
	user *userPages
	send func(frame []byte)
	ping func() error

	mu    sync.Mutex
	relay *relay.Relay
	late  *time.Timer // fires for frames that are due when nothing else happens
	known bool        // it has introduced itself
	ended bool
	cores []*remoteCore
}

// userPages are the pages of one user at this node.
type userPages struct {
	name  string
	pages map[*Page]bool // whether they have introduced themselves
	// messages limits the messages that the node sends on the bus for these pages.
	messages *rate.Limiter
}

// A remoteCore is one of a page's cores, at this node or another. page, node, session and began do not change; the
// page's lock guards the other fields.
type remoteCore struct {
	page    *Page
	node    string
	session uint64
	began   time.Time
	core    *relay.Core
	sent    uint64 // frames
	heard   uint64
	left    bool
	trail   trail
}

// Attach takes a page of a user, at the other end of a link. The caller passes the page's frames to Receive, the hello
// first, and calls Lost when the transport has ended. send is called with frames for the page, in order, and at last
// with nil, which means: close the transport. send must not block or call the Page. It fails with ErrFull or ErrClosed.
func (n *Node) Attach(user, origin string, send func(frame []byte)) (*Page, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, ErrClosed
	case len(n.pages) >= n.o.Pages:
		return nil, fmt.Errorf("%w: it has %d pages", ErrFull, n.o.Pages)
	}
	u := n.users[user]
	if u == nil {
		pace := n.o.UserMessages
		u = &userPages{name: user, pages: map[*Page]bool{}, messages: n.spent[user]}
		if u.messages == nil {
			u.messages = rate.NewLimiter(rate.Limit(pace), atOnce*pace)
		}
		delete(n.spent, user)
		n.users[user] = u
	}
	if len(u.pages) >= n.o.UserPages {
		return nil, fmt.Errorf("%w: it has %d pages of this user", ErrFull, n.o.UserPages)
	}
	n.lastPage++
	p := &Page{node: n, id: n.lastPage, user: u, send: send,
		ping: func() error { return nil }, relay: relay.New(n.now(), user, origin, &n.relay)}
	n.pages[p.id] = p
	u.pages[p] = false
	return p, nil
}

// Seat gives the page the tab, in place of the tab in its hello; "" changes nothing. It must be called before Receive.
func (p *Page) Seat(tab string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relay.Seat(tab)
}

// Ping sets a function that fails if the page does not answer any more. It is called when another document claims the
// page's tab. It must be set before Receive.
func (p *Page) Ping(ping func() error) { p.ping = ping }

// Receive takes a frame of the page, which must not be changed any more. An error is a *link.Ended; the page has been
// notified of it.
func (p *Page) Receive(frame []byte) error {
	f := link.Parse(frame, p.node.o.Limits)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	err := p.relay.Receive(p.node.now(), f)
	p.settle()
	if why := (*link.Ended)(nil); errors.As(err, &why) {
		p.node.Refuse("page: " + short(why.Reason))
		p.close(goneOver)
		return err
	}
	if !p.known {
		p.known = true
		p.announce()
	}
	return nil
}

// Pause is how long the caller must not read from the page, at most a second: its user's pages have used up their
// budget of messages, and the node's other pages would have to wait for the bus.
func (p *Page) Pause() time.Duration {
	missing := -p.user.messages.Tokens()
	if missing <= 0 {
		return 0
	}
	p.node.counts.pauses.Add(1)
	return min(maxPause, time.Duration(missing/float64(p.user.messages.Limit())*float64(time.Second)))
}

// short returns a reason for counting: without numbers, and without text of the page.
func short(reason string) string {
	if strings.HasPrefix(reason, "the page's Pagewire ") {
		return "version"
	}
	if i := strings.IndexAny(reason, "0123456789;"); i >= 0 {
		reason = reason[:i]
	}
	return strings.TrimSpace(reason[:min(len(reason), 80)])
}

// Refuse ends the page's link, with a reason for the page, because of a message that its transport did not take.
func (p *Page) Refuse(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.refuse(reason)
}

// refuse is Refuse with the lock held.
func (p *Page) refuse(reason string) {
	p.node.Refuse("page: " + short(reason))
	p.relay.Refuse(reason)
	p.settle()
	p.close(goneOver)
}

// Lost ends the page, because its transport has ended.
func (p *Page) Lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := goneLost
	if _, gone := p.relay.Bye(); gone {
		how = goneOver
	}
	p.close(how)
}

// close is called with the page's lock held.
func (p *Page) close(how string) {
	if p.ended {
		return
	}
	p.ended = true
	n := p.node
	n.mu.Lock()
	delete(n.pages, p.id)
	u := p.user
	if delete(u.pages, p); len(u.pages) == 0 {
		delete(n.users, u.name)
		n.spent[u.name] = u.messages
	}
	for _, f := range p.cores {
		n.dropCore(f)
	}
	n.mu.Unlock()
	for _, f := range p.cores {
		f.left = true
		f.trail.closeAll()
		f.gone(n, how)
	}
	p.cores = nil
	p.relay.Close()
	if p.late != nil {
		p.late.Stop()
	}
	p.send(nil)
}

func (p *Page) announce() {
	n := p.node
	n.mu.Lock()
	p.user.pages[p] = true
	n.mu.Unlock()
	n.publish(n.subject("user", p.user.name),
		[]byte(kindHas+" "+n.id+"\n"+p.user.name+" "+strconv.FormatUint(p.id, 10)+"\n"))
}

// settle sends the page the frames that are due, and sets the timer for later ones. The page's lock is held.
func (p *Page) settle() {
	if p.ended {
		return
	}
	n := p.node
	for frame := p.relay.Take(n.now()); frame != nil; frame = p.relay.Take(n.now()) {
		p.send(frame)
	}
	at, ok := p.relay.Deadline()
	if !ok {
		return
	}
	wait := time.Duration(max(at-n.now(), 1)) * time.Millisecond
	if p.late == nil {
		p.late = time.AfterFunc(wait, p.overdue)
	} else {
		p.late.Reset(wait)
	}
}

func (p *Page) overdue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = nil // most pages are silent for long
	p.settle()
}

// toCore sends a core a frame. The page's lock is held.
func (n *Node) toCore(c *relay.Core, frame []byte) {
	f := c.Owner.(*remoteCore)
	f.page.user.messages.Reserve() // may go below 0: see Pause
	f.sent++
	f.trail.answered(frame)
	n.sendTo(f.node, head(kindPage, n.id, f.session, f.sent), frame)
}

func (n *Node) answerAsk(m *message) {
	var text []byte
	for _, user := range m.lines() {
		text = append(text, user...)
		n.mu.Lock()
		if u := n.users[user]; u != nil {
			for p, known := range u.pages {
				if known {
					text = strconv.AppendUint(append(text, ' '), p.id, 10)
				}
			}
		}
		n.mu.Unlock()
		text = append(text, '\n')
	}
	n.sendTo(m.from, []byte(kindHas+" "+n.id+"\n"), text)
}

// openCore begins a session of a core with a page. It refuses a page of another user.
func (n *Node) openCore(m *message) {
	f := &remoteCore{node: m.from, session: m.number(0), began: time.Now()}
	n.mu.Lock()
	p := n.pages[m.number(1)]
	foreign := p != nil && p.user.name != m.word(2)
	if p != nil && !foreign {
		f.page = p
		if n.cores[f.node] == nil {
			n.cores[f.node] = map[uint64]*remoteCore{}
		}
		n.cores[f.node][f.session] = f
	}
	n.mu.Unlock()
	if foreign {
		n.Refuse("user")
	}
	if f.page == nil {
		f.gone(n, goneOver)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		f.left = true
		n.forgetCore(f)
		f.gone(n, goneLost)
		return
	}
	p.cores = append(p.cores, f)
	f.core = p.relay.Join(n.now(), f, m.word(3) == "1")
	p.settle()
}

// dropCore is called with the node's lock held.
func (n *Node) dropCore(f *remoteCore) {
	if n.cores[f.node][f.session] == f {
		delete(n.cores[f.node], f.session)
		if len(n.cores[f.node]) == 0 {
			delete(n.cores, f.node)
		}
	}
}

func (n *Node) forgetCore(f *remoteCore) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropCore(f)
}

func (n *Node) coreOf(node string, session uint64) *remoteCore {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cores[node][session]
}

func (n *Node) fromCore(m *message) {
	session := m.number(0)
	f := n.coreOf(m.from, session)
	if f == nil {
		if m.kind != kindLeave {
			n.sendTo(m.from, head(kindGone, n.id, session), []byte(goneGap))
		}
		return
	}
	p := f.page
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.left || f.core == nil:
	case m.kind == kindLeave:
		f.close()
	case m.kind == kindClaim:
		go f.claimed(m.number(1))
	case m.number(1) != f.heard+1:
		f.gap()
	default:
		f.heard++
		if n.o.Tracer != nil {
			f.trail.asked(m.body, func(call string) (done func(ok bool)) {
				return n.o.Tracer.Answers(m.word(2), call, p.user.name)
			})
		}
		f.handle(m.body)
	}
	p.settle()
}

// handle takes a frame of the core. The page's lock is held.
func (f *remoteCore) handle(frame []byte) {
	err := f.core.Receive(f.page.node.now(), frame)
	n, refused := f.page.node, (*relay.Refused)(nil)
	switch {
	case err == nil:
	case errors.As(err, &refused):
		f.page.refuse(refused.Reason)
	default:
		n.Refuse("core", "node", f.node)
		f.gone(n, goneOver)
		f.close()
	}
}

// claimed tells a core that the page still answers, or ends the page: another document, which has the core's session
// by, claims its tab.
func (f *remoteCore) claimed(by uint64) {
	p := f.page
	if p.ping() != nil {
		p.Lost()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !f.left {
		p.user.messages.Reserve()
		p.node.sendTo(f.node, head(kindAlive, p.node.id, f.session, by))
	}
}

func (f *remoteCore) gone(n *Node, how string) {
	n.sendTo(f.node, head(kindGone, n.id, f.session), []byte(how))
}

// gap ends a session that has lost a frame. The page's lock is held.
func (f *remoteCore) gap() {
	n := f.page.node
	n.counts.gaps.Add(1)
	f.gone(n, goneGap)
	f.close()
}

// close ends the session. The page's lock is held.
func (f *remoteCore) close() {
	if f.left {
		return
	}
	f.left = true
	f.trail.closeAll()
	p := f.page
	p.node.forgetCore(f)
	if p.cores = slices.DeleteFunc(p.cores, func(o *remoteCore) bool { return o == f }); len(p.cores) == 0 {
		p.cores = nil
	}
	if f.core != nil {
		f.core.Leave()
	}
}

// leave is end without the lock.
func (f *remoteCore) leave() {
	f.page.mu.Lock()
	defer f.page.mu.Unlock()
	f.close()
	f.page.settle()
}

func (n *Node) sumCores() {
	n.mu.Lock()
	nodes := make(map[string][]*remoteCore, len(n.cores))
	for node, cores := range n.cores {
		nodes[node] = slices.Collect(maps.Values(cores))
	}
	n.mu.Unlock()
	for node, cores := range nodes {
		var text []byte
		for _, f := range cores {
			f.page.mu.Lock()
			if !f.left && f.core != nil {
				text = strconv.AppendUint(text, f.session, 10)
				text = append(strconv.AppendUint(append(text, ' '), f.sent, 10), '\n')
			}
			f.page.mu.Unlock()
		}
		n.sendTo(node, []byte(kindPages+" "+n.id+"\n"), text)
	}
}

// compareCores takes a node's list of sessions and sent frames. It ends sessions that lost a frame or are not listed.
func (n *Node) compareCores(m *message) {
	said := map[uint64]uint64{}
	for _, line := range m.lines() {
		session, sent := numbers(line)
		said[session] = sent
	}
	n.mu.Lock()
	cores := slices.Collect(maps.Values(n.cores[m.from]))
	n.mu.Unlock()
	for _, f := range cores {
		f.page.mu.Lock()
		sent, known := said[f.session]
		switch {
		case f.left:
		case known && sent > f.heard:
			f.gap()
		case !known && time.Since(f.began) > 2*n.o.Interval:
			f.close()
		}
		f.page.settle()
		f.page.mu.Unlock()
	}
	// A session in the list that has ended here: the message of its end got lost, so it is sent again.
	for session := range said {
		if n.coreOf(m.from, session) == nil {
			n.sendTo(m.from, head(kindGone, n.id, session), []byte(goneGap))
		}
	}
}
