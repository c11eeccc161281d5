//go:build !js

package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// The side of a node that has agents.

// readerKey is a user, and whether the agents may act: those that may not have a gateway of their own, which no page
// tells of its tools.
type readerKey struct {
	user string
	acts bool
}

// A Reader is the gateway for the agents that a user has at this node.
type Reader struct {
	// Gateway serves the agents.
	Gateway *gateway.Gateway
	// Server is what serves its agents.
	Server Server

	node   *Node
	key    readerKey
	by     string // the other user for whom it was made, or ""
	cancel func() // the subscription
	users  int    // guarded by the node's lock, as is used
	used   time.Time

	requests requests // of its agents, while they are traced

	// Done by one goroutine at a time, while there is something to do: all below is that one's.
	mu      sync.Mutex
	todo    []func()
	bytes   int // that todo holds
	doing   bool
	pages   map[pageKey]*session
	awaited map[string]bool // nodes that have not said which pages they have
	ready   chan struct{}   // closed when all that was there at the beginning has come
	isReady bool
	over    bool

	findings [maxFindings]string // the last that were heard, and how many there were
	found    int
}

// A Server serves the agents of a Reader: its own handler, for who makes it. It is closed before the Gateway. While it
// is busy the Reader stays.
type Server interface {
	Close()
	Busy() bool
}

// pageKey is a page of any node.
type pageKey struct {
	node string
	page uint64
}

// A session is what a core here has with a page. But for its counts, it is its Reader's goroutine's.
type session struct {
	r       *Reader
	number  uint64
	at      pageKey
	began   time.Time
	page    *gateway.Page // nil until it has introduced itself
	about   link.About
	tab     string // by which the gateway knows it
	heard   uint64 // frames
	touches uint64
	asked   uint64 // how often for the revisions of what is watched
	ended   bool

	mu     sync.Mutex
	opened bool
	over   bool
	sent   uint64
	trail  trail
}

// maxTodo bounds what waits for one user's gateway, in bytes, as Options.WaitingBytes does for all of them; what is
// above that is lost, and then repaired.
const maxTodo = 64 << 20

// Reader returns the gateway for a user's agents here, and makes it if there is none, with what serve, which may be
// nil, makes to serve them. release is to be called when it is not used any more; it stays for a while then. It fails
// with ErrFull or ErrClosed.
func (n *Node) Reader(user string, acts bool, serve func(*gateway.Gateway) Server) (r *Reader, release func(),
	err error) {
	return n.ReaderBy("", user, acts, serve)
}

// ReaderBy is Reader for the agent of another user, by, who may act for that user. One such takes the room of
// Options.OtherUsers at most.
func (n *Node) ReaderBy(by, user string, acts bool, serve func(*gateway.Gateway) Server) (r *Reader, release func(),
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
	r := &Reader{node: n, key: key, pages: map[pageKey]*session{}, awaited: map[string]bool{},
		ready: make(chan struct{})}
	o := n.o.Gateway
	o.Found = func(uri string) { r.do(0, func() { n.addFound(key.user, uri) }) }
	r.Gateway = gateway.New(o)
	var err error
	r.cancel, err = n.bus.Subscribe(n.subject("user", key.user), n.inbox)
	if err != nil {
		r.Gateway.Close()
		return nil, err
	}
	for id := range n.peers {
		r.awaited[id] = true
	}
	if n.isNew() {
		r.awaited[""] = true // nodes that it has not heard yet: it waits as long as it waits for any
	}
	n.readers[key] = r
	n.askFor(n.subject("ask"), []string{key.user})
	time.AfterFunc(n.o.Interval, func() { r.do(0, r.beReady) })
	return r, nil
}

// isNew reports whether there may be nodes that this one has not heard yet: each says once an interval that it is
// there.
func (n *Node) isNew() bool {
	return !n.o.Bus.Alone() && time.Since(n.began) < 2*n.o.Interval
}

// Ready is closed when the pages that were there at the beginning have come, or an interval later.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

func (r *Reader) beReady() {
	if !r.isReady {
		r.isReady = true
		close(r.ready)
	}
}

// check is to be called when something has come that Ready waits for.
func (r *Reader) check() {
	if r.isReady || len(r.awaited) > 0 {
		return
	}
	for _, s := range r.pages {
		if s.heard < 2 { // who it is, and what it offers
			return
		}
	}
	r.beReady()
}

// do has something done by the goroutine of the Reader: what it holds has so many bytes. It reports whether there was
// room for it.
func (r *Reader) do(bytes int, what func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := &r.node.todo
	if bytes > 0 && (r.bytes+bytes > maxTodo || all.Load()+int64(bytes) > r.node.o.WaitingBytes) {
		return false
	}
	r.bytes += bytes
	all.Add(int64(bytes))
	r.todo = append(r.todo, func() {
		what()
		r.mu.Lock()
		r.bytes -= bytes
		r.mu.Unlock()
		all.Add(int64(-bytes))
	})
	if !r.doing {
		r.doing = true
		go r.work()
	}
	return true
}

func (r *Reader) work() {
	for {
		r.mu.Lock()
		list := r.todo
		r.todo = nil
		if len(list) == 0 {
			r.doing = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, what := range list {
			what()
		}
	}
}

// close ends all sessions and the gateway.
func (r *Reader) close() {
	n := r.node
	n.mu.Lock()
	n.dropReader(r)
	n.mu.Unlock()
	r.cancel()
	if r.Server != nil {
		r.Server.Close()
	}
	r.Gateway.Close()
	done := make(chan struct{})
	r.do(0, func() {
		r.over = true
		for _, s := range r.pages {
			s.end("the gateway goes away")
		}
		r.beReady()
		close(done)
	})
	<-done
}

// dropReader is called with the node's lock held.
func (n *Node) dropReader(r *Reader) {
	if n.readers[r.key] != r { // it was dropped, and its agents may have come back to another
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

// rest closes the gateways that nobody has used for long: not here, for each may take a second, and beats go on.
func (n *Node) rest() {
	n.mu.Lock()
	var idle []*Reader
	for _, r := range n.readers {
		if r.users == 0 && time.Since(r.used) > n.o.Idle && (r.Server == nil || !r.Server.Busy()) {
			idle = append(idle, r)
			n.dropReader(r) // nobody takes it any more
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

// readersUsers are the users that have agents here.
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

// hasPages takes which pages a node has of users.
func (n *Node) hasPages(m *message) {
	n.counts.has.Add(1)
	for _, line := range m.lines() {
		words := strings.Split(line, " ")
		n.eachReader(words[0], len(line), func(r *Reader) {
			delete(r.awaited, m.from)
			for _, word := range words[1:] {
				page, _ := strconv.ParseUint(word, 10, 64) // 0, which is none, for what is no number
				r.open(pageKey{m.from, page})
			}
			r.check()
		})
	}
}

// eachReader has something done for each gateway of the user here, by its goroutine: what it holds has so many bytes.
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

// open begins a session with a page, if there is none.
func (r *Reader) open(at pageKey) {
	n := r.node
	if r.over || at.page == 0 || r.pages[at] != nil {
		return
	}
	s := &session{r: r, at: at, began: time.Now()}
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
	n.tell(at.node, []byte(kindOpen+" "+n.id+" "+strconv.FormatUint(s.number, 10)+" "+
		strconv.FormatUint(at.page, 10)+" "+r.key.user+acts))
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
}

// fromPage takes what a page says, or its node of it.
func (n *Node) fromPage(m *message) {
	number := m.number(0)
	n.mu.Lock()
	s := n.sessions[number]
	n.mu.Unlock()
	if s == nil || s.at.node != m.from {
		if m.kind != kindGone {
			n.tell(m.from, head(kindLeave, n.id, number))
		}
		return
	}
	if !s.r.do(len(m.body)+1, func() { s.take(m) }) {
		n.counts.lost.Add(1)
	}
}

// take does what the message says.
func (s *session) take(m *message) {
	switch {
	case s.ended:
	case m.kind == kindGone:
		s.gone(string(m.body))
	case m.kind == kindTouch:
		whole := m.number(1) == s.touches+1
		if s.touches = m.number(1); !whole {
			s.again()
		}
		s.receive(m.body)
	case m.number(1) != s.heard+1:
		s.r.node.counts.gaps.Add(1)
		s.reopen()
	default:
		s.heard++
		s.receive(m.body)
		s.r.check()
	}
}

// again asks for the revisions of what is watched: a touch was lost, or the last such question.
func (s *session) again() {
	s.asked++
	s.r.node.tell(s.at.node, head(kindAgain, s.r.node.id, s.number, s.asked))
}

// gone follows the end of a session at the page's node.
func (s *session) gone(how string) {
	switch how {
	case goneGap:
		s.reopen()
	case goneOver:
		page := s.page
		s.end("the page has gone")
		if page != nil {
			page.Close("the page has gone")
		}
	default:
		s.end("its connection ended")
	}
	s.r.check()
}

// reopen begins anew with the same page.
func (s *session) reopen() {
	s.end("something was lost on the way")
	s.r.open(s.at)
}

// end ends the session: the page may come back in another.
func (s *session) end(reason string) {
	if s.ended {
		return
	}
	s.ended = true
	n := s.r.node
	if s.r.pages[s.at] == s {
		delete(s.r.pages, s.at)
	}
	n.mu.Lock()
	delete(n.sessions, s.number)
	n.mu.Unlock()
	s.mu.Lock()
	s.over = true
	s.trail.end()
	s.mu.Unlock()
	n.tell(s.at.node, head(kindLeave, n.id, s.number))
	if s.page != nil {
		s.page.Lost(reason)
	}
}

// receive takes a frame of the page.
func (s *session) receive(frame []byte) {
	if s.r.node.o.Tracer != nil {
		s.mu.Lock()
		s.trail.answered(frame)
		s.mu.Unlock()
	}
	if s.page == nil && !s.introduced(frame) {
		return
	}
	if err := s.page.Receive(frame); err != nil {
		why := "" // in few words: it may name what the page has said
		if ended := (*link.Ended)(nil); errors.As(err, &ended) {
			why = short(ended.Reason)
		}
		s.r.node.o.Log.Warn("a page that its own node has taken is refused", "reason", why)
	}
}

// introduced attaches the page by its first frame, unless the same document has connected anew meanwhile.
func (s *session) introduced(frame []byte) bool {
	n := s.r.node
	about, ok := link.Parse(frame, n.o.Limits).Hello()
	if !ok {
		n.counts.refuse("hello")
		s.end("it has not introduced itself")
		return false
	}
	s.about = about
	var before *session
	for _, o := range s.r.pages {
		if o != s && o.page != nil && o.about.Epoch == about.Epoch && o.about.Origin == about.Origin {
			before = o
		}
	}
	if before != nil && before.about.Dial > about.Dial {
		s.end("it has connected anew")
		return false
	}
	if s.tab = s.r.tabOf(s); before != nil {
		s.tab = before.tab
	}
	info := gateway.PageInfo{
		Tab: s.tab, Frame: about.Frame, Origin: about.Origin, URL: about.URL,
		Transport: "fleet", Focused: about.Focused,
	}
	if about.Title != nil {
		info.Title = *about.Title
	}
	page, err := s.r.Gateway.Attach(info, s.send)
	if err != nil {
		if !errors.Is(err, gateway.ErrClosed) {
			n.o.Log.Warn("a page could not be attached", "error", err)
		}
		s.end("it could not be attached")
		return false
	}
	s.page = page
	if before != nil {
		// When this one has said what it offers: until then its tab would be empty.
		s.r.do(0, func() { before.end("the page has connected anew") })
	}
	return true
}

// tabOf names the tab of a page: as the page does, unless another document, at another node, has that. Then one of the
// two is in a copy of the tab, which the browser gave the same id, and both are to be seen. The name is another
// document's when that has gone: so the next one in a copy has the same.
func (r *Reader) tabOf(s *session) string {
	taken := func(name string) bool {
		for _, o := range r.pages {
			if o != s && o.page != nil && o.tab == name && o.about.Frame == s.about.Frame {
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

// send says a frame to the page, which answers nothing that is empty.
func (s *session) send(frame []byte) {
	n := s.r.node
	if frame == nil {
		s.r.do(0, func() { s.end("its link has ended") })
		return
	}
	if len(frame) == len("[]") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	for _, part := range parted(frame) {
		s.sent++
		line := head(kindCore, n.id, s.number, s.sent)
		if carry := s.traced(part); carry != "" {
			line = append(append(line[:len(line)-1], " "+carry...), '\n')
		}
		n.tell(s.at.node, line, part)
	}
}

// traced follows the calls of a frame, and returns what is to go with it. It is called with s.mu held.
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

// maxCoreFrame bounds a frame of a core, but for its last call: 64 calls of tools may have 4 MiB each, and a message of
// the bus 18.
const maxCoreFrame = 1 << 20

// parted makes several frames of one that is too long.
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

// sumSessions says what was sent to each node's pages.
func (n *Node) sumSessions() {
	n.mu.Lock()
	sessions := values(n.sessions)
	n.mu.Unlock()
	nodes := map[string][]byte{}
	for _, s := range sessions {
		s.mu.Lock()
		if s.opened && !s.over {
			text := strconv.AppendUint(nodes[s.at.node], s.number, 10)
			nodes[s.at.node] = append(strconv.AppendUint(append(text, ' '), s.sent, 10), '\n')
		}
		s.mu.Unlock()
	}
	for node, text := range nodes {
		n.tell(node, []byte(kindCores+" "+n.id+"\n"), text)
	}
}

// comparePages looks what of all that a node's pages have said has not come.
func (n *Node) comparePages(m *message) {
	for _, line := range m.lines() {
		of := numbers(line)
		n.mu.Lock()
		s := n.sessions[of[0]]
		n.mu.Unlock()
		if s == nil || s.at.node != m.from {
			n.tell(m.from, head(kindLeave, n.id, of[0]))
			continue
		}
		s.r.do(0, func() {
			switch {
			case s.ended:
			case of[1] > s.heard:
				n.counts.gaps.Add(1)
				s.reopen()
			case of[2] > s.touches || of[3] < s.asked:
				s.touches = max(s.touches, of[2])
				s.again()
			}
		})
	}
}

// A finding is a URI that an agent has asked for here in vain, and that has a page since.
type finding struct {
	user, uri string
	number    uint64
	said      int
}

// saidFound is how often a finding is said, once an interval: nobody knows whether one gets lost. maxFindings is how
// many of them a gateway remembers, so that its agents are told once.
const saidFound, maxFindings = 3, 64

// addFound has nodes with agents of the user told of a URI: one may have been told of the page there before it asked
// here, and is told again.
func (n *Node) addFound(user, uri string) {
	n.mu.Lock()
	n.finds++
	f := finding{user: user, uri: uri, number: n.finds, said: 1}
	n.found = append(n.found, f)
	n.mu.Unlock()
	n.say(f)
}

func (n *Node) say(f finding) {
	n.post(n.subject("user", f.user), []byte(kindFound+" "+n.id+" "+strconv.FormatUint(f.number, 10)+" "+f.user+"\n"),
		[]byte(f.uri))
}

// sayFound says again what was found lately.
func (n *Node) sayFound() {
	n.mu.Lock()
	var again []finding
	kept := n.found[:0]
	for _, f := range n.found {
		if f.said++; f.said < saidFound {
			kept = append(kept, f)
		}
		again = append(again, f)
	}
	clear(n.found[len(kept):])
	n.found = kept
	n.mu.Unlock()
	for _, f := range again {
		n.say(f)
	}
}

// hasFound takes what another node has found: who watches it here is told.
func (n *Node) hasFound(m *message) {
	n.eachReader(m.word(1), len(m.body)+1, func(r *Reader) {
		if which := m.from + " " + m.word(0); !slices.Contains(r.findings[:], which) {
			r.findings[r.found%len(r.findings)] = which
			r.found++
			r.Gateway.Touch(string(m.body))
		}
	})
}
