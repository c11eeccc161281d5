package node

import (
	"errors"
	"maps"
	"slices"
	"strconv"
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

// known are the pages of a user that a Reader has heard of, each on any node. Only functions in the
// mailbox use pages and over; the other fields do not change or guard themselves.
type known struct {
	*self
	Gateway  *gateway.Gateway
	user     string
	acts     bool // its agents may know the pages' tools
	mailbox  mailbox
	sessions *ends[*session] // of all Readers
	requests requests        // of the agents, while they are traced
	changed  func()          // called after each message of a page

	pages map[pageKey]*session // none has ended
	over  bool                 // the Reader ends, and pages is empty
}

// A session is a core's end of a session with a page. Only functions in the mailbox use it.
type session struct {
	end
	k     *known
	at    pageKey
	state state

	// These are set when attached. Before, they are those of the previous session, if any. tab is
	// the name at the gateway.
	page  *gateway.Page
	about link.About
	tab   string
	// others are documents with names of its tab that were asked for, and whether they live. It is
	// nil when attached.
	others map[*session]bool
	more   bool // the last frame does not end the page's offers
}

// A session's state only goes forward:
//
//	opened → attached    the page's hello has come
//	opened → waiting     it has come, and documents hold names of its tab that may have ended;
//	                     another session follows
//	any → ended          either side has ended it, a frame was lost, or a node is dead; another
//	                     session may follow
type state int

const (
	opened state = iota // open was sent to the page's node
	waiting
	attached
	ended
)

// open begins a session with a page, unless there is one.
func (k *known) open(at pageKey) {
	if k.over || at.page == 0 || k.pages[at] != nil {
		return
	}
	s := &session{k: k, at: at, others: map[*session]bool{},
		end: end{node: at.node, session: k.sessions.numbered.Add(1), began: k.ran.Load()}}
	k.pages[at] = s
	k.sessions.add(s)
	acts := "0"
	if k.acts {
		acts = "1"
	}
	k.sendTo(at.node, line(kindOpen, k.id, strconv.FormatUint(s.session, 10),
		strconv.FormatUint(at.page, 10), k.user, acts))
	s.open.Store(true)
}

// close ends all sessions, and begins no more.
func (k *known) close() {
	k.over = true
	for _, s := range k.pages {
		s.close("the gateway goes away")
	}
}

// complete reports whether the offers of all pages have come.
func (k *known) complete() bool {
	for _, s := range k.pages {
		if s.heard < 2 || s.more || s.state == waiting { // the hello, and the page's offers
			return false
		}
	}
	return true
}

func (s *session) handle(m *message) {
	switch {
	case s.state == ended:
	case m.kind == kindGone:
		s.gone(string(m.body))
	case m.kind == kindAlive:
		s.lives(m.number(1))
	case !s.hears(m):
		s.gap()
	default:
		s.more = relay.Continues(m.body)
		s.receive(m.body)
		s.k.changed()
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
	s.k.changed()
}

func (s *session) gap() {
	s.k.counts.gaps.Add(1)
	s.reopen()
}

// reopen replaces the session by a new one with the same page.
func (s *session) reopen() {
	s.close("something was lost on the way")
	s.k.open(s.at)
	if next := s.k.pages[s.at]; next != nil {
		next.page, next.about, next.tab, next.others = s.page, s.about, s.tab, s.others
	}
}

// close ends the session. The page may come back in another.
func (s *session) close(reason string) {
	if s.state == ended {
		return
	}
	s.state = ended
	k := s.k
	if k.pages[s.at] == s {
		delete(k.pages, s.at)
	}
	k.sessions.remove(s)
	s.trail.closeAll()
	k.sendTo(s.at.node, head(kindLeave, k.id, s.session))
	if s.page != nil {
		s.page.Lost(reason)
	}
	if s.tab != "" {
		k.mailbox.post(k.goOn)
	}
}

func (s *session) receive(frame []byte) {
	s.trail.answered(frame)
	if s.state == waiting || s.state == opened && !s.attach(frame) {
		return
	}
	if err := s.page.Receive(frame); err != nil {
		why := "" // short, because the reason may contain text of the page
		if ended := (*link.Ended)(nil); errors.As(err, &ended) {
			why = short(ended.Reason)
		}
		s.k.o.Log.Warn("a page that its own node has taken is refused", "reason", why)
	}
}

// attach adds the page to the gateway by its first frame, unless it must wait for its tab's name.
// It ends the session if the same document has a newer one.
func (s *session) attach(frame []byte) bool {
	n := s.k
	about, ok := link.Parse(frame, n.o.Limits).Hello()
	if !ok {
		n.Refuse("hello")
		s.close("it has not introduced itself")
		return false
	}
	s.about = about
	var before *session
	for _, o := range s.k.pages {
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
		s.state = waiting
		s.wait(deadAfter)
		return false
	default:
		s.tab = s.k.tabOf(s)
	}
	info := gateway.PageInfo{
		Tab: s.tab, Frame: about.Frame, Origin: about.Origin, URL: about.URL,
		Transport: "fleet", Focused: about.Focused, Shown: about.Shown, Granted: about.Shown,
	}
	if about.Title != nil {
		info.Title = *about.Title
	}
	page, err := s.k.Gateway.Attach(info, func(frame []byte) {
		s.k.mailbox.post(func() { s.send(frame) })
	})
	if err != nil {
		if !errors.Is(err, gateway.ErrClosed) {
			n.o.Log.Warn("a page could not be attached", "error", err)
		}
		s.close("it could not be attached")
		return false
	}
	s.page, s.others = page, nil
	s.state = attached
	if before != nil {
		// Queued, so that the offers come first if they have arrived: until they come the tab would
		// be empty.
		s.k.mailbox.post(func() { before.close("the page has connected anew") })
	}
	return true
}

// contested reports whether documents hold names of the session's tab and may have ended. It asks
// their nodes: nodes tell of ends independently, and this document may follow one of them in its
// tab.
func (s *session) contested() (yes bool) {
	for _, o := range s.k.pages {
		if o.tab == "" || o.about.Tab != s.about.Tab || o.about.Origin != s.about.Origin ||
			!o.excludes(s) {
			continue
		}
		lives, asked := s.others[o]
		if yes = yes || !lives; !asked {
			s.others[o] = false
			s.k.sendTo(o.at.node, head(kindClaim, s.k.id, o.session, s.session))
		}
	}
	return yes
}

// excludes reports whether two documents cannot be in one tab: they have the same frame. What a
// document shows is beside it.
func (s *session) excludes(o *session) bool {
	return s.about.Frame == o.about.Frame && s.about.Shown == o.about.Shown
}

// wait asks again each interval, because messages may get lost. After the last time all are taken
// to live: a node whose beats come may still be one that does not know the question.
func (s *session) wait(intervals int) {
	time.AfterFunc(s.k.o.Interval, func() {
		s.k.mailbox.post(func() {
			switch {
			case s.state != waiting:
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

// lives notes that the session's document still answers, for the session that has claimed the
// document's tab.
func (s *session) lives(claims uint64) {
	for _, o := range s.k.pages {
		if o.session == claims && o.state == waiting {
			o.others[s] = true
		}
	}
	s.k.goOn()
}

// goOn attaches the documents whose wait has ended, by new sessions: nothing is held for one that
// waits.
func (k *known) goOn() {
	for _, s := range slices.Collect(maps.Values(k.pages)) {
		if s.state == waiting && !s.contested() {
			s.reopen()
		}
	}
}

// tabOf names the tab of a page by the page's own name for it. If another document, at another
// node, has that name, one of the two is in a copy of the tab, to which the browser gave the same
// id. Agents must see both, so the second gets the first free name. A name is free again when its
// document has gone.
func (k *known) tabOf(s *session) string {
	taken := func(name string) bool {
		for _, o := range k.pages {
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
	case s.state == ended || len(frame) == len("[]"):
	default:
		for _, part := range parted(frame) {
			s.k.send(&s.end, kindCore, s.traced(part), part)
		}
	}
}

// traced begins to trace the calls of a frame, and returns the TRACE that goes with it.
func (s *session) traced(frame []byte) (carry string) {
	tracer := s.k.o.Tracer
	if tracer == nil {
		return ""
	}
	s.trail.asked(frame, func(call string) (done func(ok bool)) {
		carry, done = tracer.Asks(s.k.requests.only(), call, s.k.user)
		return done
	})
	return carry
}

// maxCoreFrame bounds a frame of a core, in bytes, without its last call: 64 tool calls may have 4
// MiB each, and a message of the bus has 18 MiB at most.
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
