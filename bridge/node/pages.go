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

	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/relay"
)

// This is the side of a node with pages.

const (
	// atOnce is the size of a burst, in seconds of the pace.
	atOnce = 5
	// maxPause bounds one pause in reading from a page: its connection answers pings between two
	// pauses.
	maxPause = time.Second
)

// served are the pages that have dialed this node, and their sessions with cores.
type served struct {
	*self
	relay  relay.Options     // of all pages; its Offered counts the bytes of pages' offers, by user
	cores  ends[*remoteCore] // each belongs to a page that has not ended
	mu     sync.Mutex        // guards the rest; taken also with a page's lock, and calls nothing
	closed bool              // no more pages are taken
	last   uint64            // the number of the last page
	pages  map[uint64]*Page  // those that have not ended
	users  map[string]*userPages
	// spent are the budgets of users without pages now, until they are full again.
	spent map[string]*rate.Limiter
}

func newServed(n *self) *served {
	s := &served{self: n, pages: map[uint64]*Page{}, users: map[string]*userPages{},
		spent: map[string]*rate.Limiter{}}
	s.relay = relay.Options{Build: n.o.Version, Limits: n.o.Limits, Send: toCore,
		Offered: quota.New(n.o.OfferedBytes, n.o.UserBytes), AnyScheme: n.o.Gateway.AnyScheme}
	return s
}

// forgetSpent forgets the budgets that are full again.
func (n *served) forgetSpent() {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.spent, func(_ string, messages *rate.Limiter) bool {
		return messages.Tokens() >= float64(messages.Burst())
	})
}

// close takes no more pages, and ends those that are here.
func (n *served) close() {
	n.mu.Lock()
	n.closed = true
	pages := slices.Collect(maps.Values(n.pages))
	n.mu.Unlock()
	for _, p := range pages {
		p.Lost()
	}
}

// A Page is a page that has dialed this node. Its fields do not change, except those that its lock
// guards.
type Page struct {
	node *served
	id   uint64
	user *userPages
	send func(frame []byte)
	ping func() error // set before Receive

	mu    sync.Mutex    // guards the rest
	relay *relay.Relay  // closed once ended is true
	late  *time.Timer   // fires for frames that are due when nothing else happens
	known bool          // it has introduced itself, and nodes with agents of its user were told
	ended bool          // it is not among the node's pages any more, and has no cores
	cores []*remoteCore // those that have not left
}

// userPages are the pages of one user at this node; there is at least one. The lock of served
// guards the pages.
type userPages struct {
	name  string
	pages map[*Page]bool // whether they have introduced themselves
	// messages limits the messages that the node sends on the bus for these pages.
	messages *rate.Limiter
}

// A remoteCore is a page's end of a session with a core, at this node or another. The page's lock
// guards it.
type remoteCore struct {
	end
	page *Page
	core *relay.Core // nil until the page has taken it
	left bool        // the session is over
}

// Attach takes a page of a user, at the other end of a link. The caller passes the page's frames to
// Receive, the hello first, and calls Lost when the transport has ended. send is called with frames
// for the page, in order, and at last with nil, which means: close the transport. send must not
// block or call the Page. It fails with ErrFull or ErrClosed.
func (n *served) Attach(user, origin string, send func(frame []byte)) (*Page, error) {
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
	n.last++
	p := &Page{node: n, id: n.last, user: u, send: send,
		ping: func() error { return nil }, relay: relay.New(n.now(), user, origin, &n.relay)}
	n.pages[p.id] = p
	u.pages[p] = false
	return p, nil
}

// Seat gives the page the tab, in place of the tab in its hello; "" changes nothing. It must be
// called before Receive.
func (p *Page) Seat(tab string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relay.Seat(tab)
}

// Ping sets a function that fails if the page does not answer any more. It is called when another
// document claims the page's tab. It must be set before Receive.
func (p *Page) Ping(ping func() error) { p.ping = ping }

// Receive takes a frame of the page, which must not be changed any more. An error is a *link.Ended;
// the page has been notified of it.
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

// Pause is how long the caller must not read from the page, at most a second: its user's pages have
// used up their budget of messages, and the node's other pages would have to wait for the bus.
func (p *Page) Pause() time.Duration {
	missing := -p.user.messages.Tokens()
	if missing <= 0 {
		return 0
	}
	p.node.counts.pauses.Add(1)
	seconds := missing / float64(p.user.messages.Limit())
	return min(maxPause, time.Duration(seconds*float64(time.Second)))
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

// Refuse ends the page's link, with a reason for the page, because of a message that its transport
// did not take.
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
	n.mu.Unlock()
	for _, f := range p.cores {
		f.over()
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
	n.publish(n.subject("user", p.user.name), line(kindHas, n.id),
		line(p.user.name, strconv.FormatUint(p.id, 10)))
}

// settle sends the page the frames that are due, and sets the timer for later ones. The page's lock
// is held.
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
func toCore(c *relay.Core, frame []byte) {
	f := c.Owner.(*remoteCore)
	f.page.user.messages.Reserve() // may go below 0: see Pause
	f.trail.answered(frame)
	f.page.node.send(&f.end, kindPage, "", frame)
}

func (n *served) answerAsk(m *message) {
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
	n.sendTo(m.from, line(kindHas, n.id), text)
}

// openCore begins a session of a core with a page. It refuses a page of another user.
func (n *served) openCore(m *message) {
	f := &remoteCore{end: end{node: m.from, session: m.number(0), began: n.ran.Load()}}
	n.mu.Lock()
	p := n.pages[m.number(1)]
	n.mu.Unlock()
	if p != nil && p.user.name != m.word(2) {
		n.Refuse("user")
		p = nil
	}
	if p == nil {
		f.gone(n, goneOver)
		return
	}
	f.page = p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		f.gone(n, goneLost)
		return
	}
	f.open.Store(true)
	n.cores.add(f)
	p.cores = append(p.cores, f)
	f.core = p.relay.Join(n.now(), f, m.word(3) == "1")
	p.settle()
}

func (n *served) fromCore(m *message) {
	session := m.number(0)
	f := n.cores.get(m.from, session)
	if f == nil {
		if m.kind != kindLeave {
			n.goneUnknown(m.from, session)
		}
		return
	}
	p := f.page
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.left:
	case m.kind == kindLeave:
		f.close()
	case m.kind == kindClaim:
		go f.claimed(m.number(1))
	case !f.hears(m):
		f.gap()
	default:
		if n.o.Tracer != nil {
			f.trail.asked(m.body, func(call string) (done func(ok bool)) {
				return n.o.Tracer.Answers(m.word(2), call, p.user.name)
			})
		}
		f.handle(m.body)
	}
	p.settle()
}

// goneUnknown tells a core's node that its session is over. It had been told, and that was lost.
func (n *served) goneUnknown(node string, session uint64) {
	n.sendTo(node, head(kindGone, n.id, session), []byte(goneGap))
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

// claimed tells a core that the page still answers, or ends the page: another document, which has
// the core's session by, claims its tab.
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

func (f *remoteCore) gone(n *served, how string) {
	n.sendTo(f.node, head(kindGone, n.id, f.session), []byte(how))
}

// gap ends a session that has lost a frame. The page's lock is held.
func (f *remoteCore) gap() {
	n := f.page.node
	n.counts.gaps.Add(1)
	f.gone(n, goneGap)
	f.close()
}

// over ends what the node has of the session. The page's lock is held.
func (f *remoteCore) over() {
	f.left = true
	f.trail.closeAll()
	f.page.node.cores.remove(f)
}

// close ends the session. The page's lock is held.
func (f *remoteCore) close() {
	if f.left {
		return
	}
	f.over()
	p := f.page
	p.cores = slices.DeleteFunc(p.cores, func(o *remoteCore) bool { return o == f })
	if len(p.cores) == 0 {
		p.cores = nil
	}
	f.core.Leave()
}

// leave is close without the lock.
func (f *remoteCore) leave() {
	f.page.mu.Lock()
	defer f.page.mu.Unlock()
	f.close()
	f.page.settle()
}

// compareCores takes a core's node's list. It ends sessions that lost a frame or are not listed.
func (n *served) compareCores(m *message) {
	n.cores.compare(m, func(f *remoteCore, sent uint64, listed bool) {
		f.page.mu.Lock()
		defer f.page.mu.Unlock()
		switch {
		case f.left:
		case listed && sent > f.heard:
			f.gap()
		case !listed && n.since(f.began, 2):
			f.close()
		}
		f.page.settle()
	}, func(session uint64) { n.goneUnknown(m.from, session) })
}
