package node

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node/relay"
	"github.com/pagewire/pagewire/bridge/wire"
)

// pageKey is a page of any node.
type pageKey struct {
	node string
	page uint64
}

// A session is a core's session with a page, at the core's node. Only its Reader's mailbox uses it, except state and
// sent, which the sums of each interval read.
type session struct {
	r      *Reader
	number uint64
	at     pageKey
	began  time.Time
	state  atomic.Int32  // as below
	sent   atomic.Uint64 // frames; a frame counts after it was published

	// These are set when attached. Before, they are those of the previous session, if any. tab is the name at the gateway.
	page  *gateway.Page
	about link.About
	tab   string
	// others are documents with names of its tab that were asked for, and whether they live. It is nil when attached.
	others map[*session]bool
	heard  uint64 // frames
	more   bool   // the last one does not end the page's offers
	trail  trail
}

// A session's state only goes forward:
//
//	opening → opened     open was sent to the page's node
//	opened → attached    the page's hello has come
//	opened → waiting     it has come, and documents hold names of its tab that may have ended; another session follows
//	any → ended          either side has ended it, a frame was lost, or a node is dead; another session may follow
const (
	opening int32 = iota
	opened
	waiting
	attached
	ended
)

func (s *session) is(state int32) bool { return s.state.Load() == state }

// open begins a session with a page, unless there is one.
func (r *Reader) open(at pageKey) {
	n := r.node
	if r.state == closed || at.page == 0 || r.pages[at] != nil {
		return
	}
	s := &session{r: r, at: at, began: time.Now(), others: map[*session]bool{}}
	r.pages[at] = s
	n.mu.Lock()
	n.lastCore++
	s.number = n.lastCore
	n.sessions[s.number] = s
	n.mu.Unlock()
	acts := " 0\n"
	if r.key.acts {
		acts = " 1\n"
	}
	n.sendTo(at.node, []byte(kindOpen+" "+n.id+" "+strconv.FormatUint(s.number, 10)+" "+
		strconv.FormatUint(at.page, 10)+" "+r.key.user+acts))
	s.state.Store(opened)
}

// sessionOf returns a session by the page's node and the number, nil if there is none.
func (n *Node) sessionOf(node string, number uint64) *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.sessions[number]; s != nil && s.at.node == node {
		return s
	}
	return nil
}

func (n *Node) fromPage(m *message) {
	number := m.number(0)
	s := n.sessionOf(m.from, number)
	if s == nil {
		if m.kind != kindGone {
			n.sendTo(m.from, head(kindLeave, n.id, number))
		}
		return
	}
	if !s.r.do(len(m.body)+1, func() { s.handle(m) }) {
		n.counts.lost.Add(1)
	}
}

func (s *session) handle(m *message) {
	switch {
	case s.is(ended):
	case m.kind == kindGone:
		s.gone(string(m.body))
	case m.kind == kindAlive:
		s.lives(m.number(1))
	case m.number(1) != s.heard+1:
		s.gap()
	default:
		s.heard++
		s.more = relay.Continues(m.body)
		s.receive(m.body)
		s.r.check()
	}
}

func (s *session) gone(how string) {
	switch how {
	case goneGap:
		s.reopen()
	case goneOver:
		page := s.page
		s.close("the page has gone")
		if page != nil {
			page.Close("the page has gone")
		}
	default:
		s.close("its connection ended")
	}
	s.r.check()
}

func (s *session) gap() {
	s.r.node.counts.gaps.Add(1)
	s.reopen()
}

// reopen replaces the session by a new one with the same page.
func (s *session) reopen() {
	s.close("something was lost on the way")
	s.r.open(s.at)
	if next := s.r.pages[s.at]; next != nil {
		next.page, next.about, next.tab, next.others = s.page, s.about, s.tab, s.others
	}
}

// close ends the session. The page may come back in another.
func (s *session) close(reason string) {
	if s.is(ended) {
		return
	}
	s.state.Store(ended)
	n := s.r.node
	if s.r.pages[s.at] == s {
		delete(s.r.pages, s.at)
	}
	n.mu.Lock()
	delete(n.sessions, s.number)
	n.mu.Unlock()
	s.trail.closeAll()
	n.sendTo(s.at.node, head(kindLeave, n.id, s.number))
	if s.page != nil {
		s.page.Lost(reason)
	}
	if s.tab != "" {
		s.r.mailbox.post(s.r.goOn)
	}
}

func (s *session) receive(frame []byte) {
	s.trail.answered(frame)
	if s.is(waiting) || s.is(opened) && !s.attach(frame) {
		return
	}
	if err := s.page.Receive(frame); err != nil {
		why := "" // short, because the reason may contain text of the page
		if ended := (*link.Ended)(nil); errors.As(err, &ended) {
			why = short(ended.Reason)
		}
		s.r.node.o.Log.Warn("a page that its own node has taken is refused", "reason", why)
	}
}

// attach adds the page to the gateway by its first frame, unless it must wait for its tab's name. It ends the session
// if the same document has a newer one.
func (s *session) attach(frame []byte) bool {
	n := s.r.node
	about, ok := link.Parse(frame, n.o.Limits).Hello()
	if !ok {
		n.Refuse("hello")
		s.close("it has not introduced itself")
		return false
	}
	s.about = about
	var before *session
	for _, o := range s.r.pages {
		if o != s && o.tab != "" && o.about.Epoch == about.Epoch && o.about.Origin == about.Origin {
			before = o
		}
	}
	if before != nil && before.about.Dial > about.Dial {
		s.close("it has connected anew")
		return false
	}
	switch {
	case before != nil:
		s.tab = before.tab
	case s.tab != "":
	case s.contested():
		s.state.Store(waiting)
		s.wait(deadAfter)
		return false
	default:
		s.tab = s.r.tabOf(s)
	}
	info := gateway.PageInfo{
		Tab: s.tab, Frame: about.Frame, Origin: about.Origin, URL: about.URL,
		Transport: "fleet", Focused: about.Focused, Shown: about.Shown, Granted: about.Shown,
	}
	if about.Title != nil {
		info.Title = *about.Title
	}
	page, err := s.r.Gateway.Attach(info, func(frame []byte) { s.r.mailbox.post(func() { s.send(frame) }) })
	if err != nil {
		if !errors.Is(err, gateway.ErrClosed) {
			n.o.Log.Warn("a page could not be attached", "error", err)
		}
		s.close("it could not be attached")
		return false
	}
	s.page, s.others = page, nil
	s.state.Store(attached)
	if before != nil {
		// Queued, so that the offers come first if they have arrived: until they come the tab would be empty.
		s.r.mailbox.post(func() { before.close("the page has connected anew") })
	}
	return true
}

// contested reports whether documents hold names of the session's tab and may have ended. It asks their nodes: nodes
// tell of ends independently, and this document may follow one of them in its tab.
func (s *session) contested() (yes bool) {
	for _, o := range s.r.pages {
		if o.tab == "" || o.about.Tab != s.about.Tab || o.about.Origin != s.about.Origin ||
			!o.excludes(s) {
			continue
		}
		lives, asked := s.others[o]
		if yes = yes || !lives; !asked {
			s.others[o] = false
			s.r.node.sendTo(o.at.node, head(kindClaim, s.r.node.id, o.number, s.number))
		}
	}
	return yes
}

// excludes reports whether two documents cannot be in one tab: they have the same frame. What a document
// shows is beside it.
func (s *session) excludes(o *session) bool {
	return s.about.Frame == o.about.Frame && s.about.Shown == o.about.Shown
}

// wait asks again each interval, because messages may get lost. After the last time all are taken to live: a node whose
// beats come may still be one that does not know the question.
func (s *session) wait(intervals int) {
	time.AfterFunc(s.r.node.o.Interval, func() {
		s.r.mailbox.post(func() {
			switch {
			case !s.is(waiting):
			case intervals == 0:
				for o := range s.others {
					s.others[o] = true
				}
				s.reopen()
			default:
				maps.DeleteFunc(s.others, func(_ *session, lives bool) bool { return !lives })
				s.contested()
				s.wait(intervals - 1)
			}
		})
	})
}

// lives notes that the session's document still answers, for the session that has claimed the document's tab.
func (s *session) lives(claims uint64) {
	for _, o := range s.r.pages {
		if o.number == claims && o.is(waiting) {
			o.others[s] = true
		}
	}
	s.r.goOn()
}

// goOn attaches the documents whose wait has ended, by new sessions: nothing is held for one that waits.
func (r *Reader) goOn() {
	for _, s := range slices.Collect(maps.Values(r.pages)) {
		if s.is(waiting) && !s.contested() {
			s.reopen()
		}
	}
}

// tabOf names the tab of a page by the page's own name for it. If another document, at another node, has that name, one
// of the two is in a copy of the tab, to which the browser gave the same id. Agents must see both, so the second gets
// the first free name. A name is free again when its document has gone.
func (r *Reader) tabOf(s *session) string {
	taken := func(name string) bool {
		for _, o := range r.pages {
			if o != s && o.tab == name && o.excludes(s) {
				return true
			}
		}
		return false
	}
	name := "page " + s.about.Origin + " " + s.about.Tab
	copied := name
	for i := 2; taken(copied); i++ {
		copied = name + " copy " + strconv.Itoa(i)
	}
	return copied
}

// send sends a frame to the page, but no empty answer ("[]"). Nil ends the session.
func (s *session) send(frame []byte) {
	switch {
	case frame == nil:
		s.close("its link has ended")
	case s.is(ended) || len(frame) == len("[]"):
	default:
		for _, part := range parted(frame) {
			s.say(part)
		}
	}
}

func (s *session) say(frame []byte) {
	n := s.r.node
	sent := s.sent.Load() + 1
	line := head(kindCore, n.id, s.number, sent)
	if carry := s.traced(frame); carry != "" {
		line = append(append(line[:len(line)-1], " "+carry...), '\n')
	}
	n.sendTo(s.at.node, line, frame)
	s.sent.Store(sent)
}

// traced begins to trace the calls of a frame, and returns the TRACE that goes with it.
func (s *session) traced(frame []byte) (carry string) {
	tracer := s.r.node.o.Tracer
	if tracer == nil {
		return ""
	}
	s.trail.asked(frame, func(call string) (done func(ok bool)) {
		carry, done = tracer.Asks(s.r.requests.only(), call, s.r.key.user)
		return done
	})
	return carry
}

// maxCoreFrame bounds a frame of a core, in bytes, without its last call: 64 tool calls may have 4 MiB each, and a
// message of the bus has 18 MiB at most.
const maxCoreFrame = 1 << 20

// parted splits a frame that is too long.
func parted(frame []byte) (parts [][]byte) {
	if len(frame) <= maxCoreFrame {
		return [][]byte{frame}
	}
	var part wire.Text
	wire.Value(frame).Elements(func(call wire.Value) bool {
		if len(part) > maxCoreFrame {
			parts = append(parts, part.Raw("]"))
			part = nil
		}
		if len(part) == 0 {
			part = part.Raw("[").Bytes(call)
		} else {
			part = part.Raw(",").Bytes(call)
		}
		return true
	})
	return append(parts, part.Raw("]"))
}

func (n *Node) sumSessions() {
	n.mu.Lock()
	sessions := slices.Collect(maps.Values(n.sessions))
	n.mu.Unlock()
	nodes := map[string][]byte{}
	for _, s := range sessions {
		if !s.is(opening) && !s.is(ended) {
			text := strconv.AppendUint(nodes[s.at.node], s.number, 10)
			nodes[s.at.node] = append(strconv.AppendUint(append(text, ' '), s.sent.Load(), 10), '\n')
		}
	}
	for node, text := range nodes {
		n.sendTo(node, []byte(kindCores+" "+n.id+"\n"), text)
	}
}

// comparePages takes a node's list of sessions and sent frames. It reopens each session that has lost a frame.
func (n *Node) comparePages(m *message) {
	for _, line := range m.lines() {
		number, sent := numbers(line)
		s := n.sessionOf(m.from, number)
		if s == nil {
			n.sendTo(m.from, head(kindLeave, n.id, number))
			continue
		}
		s.r.mailbox.post(func() {
			if !s.is(ended) && sent > s.heard {
				s.gap()
			}
		})
	}
}
