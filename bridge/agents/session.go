package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// A session is a legacy session, an Mcp-Session-Id: one port of the engine that many HTTP requests
// share. An answer, and progress before it, goes out on the stream of its request. Other messages
// go out on the stream that the agent opens by GET, and wait until it opens one.
type session struct {
	h       *sessions
	id      string
	who     string
	release func() // gives back the session's share
	agent   *gateway.Agent

	// Guarded by sessions.mu.
	requests int         // HTTP requests under way
	served   int         // HTTP requests since the beginning, with those under way
	used     time.Time   // the end of the last HTTP request
	idle     *time.Timer // runs while requests is 0

	mu      sync.Mutex // guards the rest, and is taken without another of this package
	over    bool       // the engine has said its last message: waiting is empty, and stays so
	waiting []asked    // no two have the same id
	notes   notes
	// identifies the GET stream, and is closed when another replaces it; nil without
	stream chan struct{}
	news   chan struct{} // wakes the GET stream: there are notes, or the session is over
}

// asked is a request that has no answer yet.
type asked struct {
	id, token bridge.JSON // token is the progressToken
	in        *post
}

// manyNotes is the number of notifications that wait for a stream at which the engine is told to
// hold further updates (gateway.Agent.Hold).
const manyNotes = 64

// sessions are the sessions of the legacy era that requests may name.
type sessions struct {
	*server

	mu  sync.Mutex // guards all, and how much each session is used
	all map[string]*session
}

// remove makes a session one that is unknown to further requests.
func (h *sessions) remove(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[s.id] == s {
		delete(h.all, s.id)
	}
}

// newSession begins a session for an agent. It fails with a *fullError or with the gateway's error.
func (h *sessions) newSession(who string) (*session, error) {
	release, full := h.shares.acquire(ofSessions, who)
	if full != nil && h.evict(who, !full.all) {
		release, full = h.shares.acquire(ofSessions, who)
	}
	if full != nil {
		return nil, full
	}
	agent, err := h.connect(gateway.TransportHTTP, who)
	if err != nil {
		release()
		return nil, err
	}
	s := &session{
		h: h, id: h.opt.SessionPrefix + rand.Text(), who: who, release: release, agent: agent,
		requests: 1, served: 1, news: make(chan struct{}, 1),
	}
	s.idle = time.AfterFunc(h.opt.Idle, s.expire)
	s.idle.Stop()
	h.mu.Lock()
	h.all[s.id] = s
	h.mu.Unlock()
	if !h.keep(agent) {
		defer agent.Dismiss()
	}
	agent.Hold(true)
	h.active.Go(func() {
		s.out()
		s.close()
	})
	return s, nil
}

// evict ends an idle session to make room for a new one of agent who, and reports whether it found
// one. With own it ends only a session of the same agent; without, also one of an agent that has
// more sessions. The next request of the ended session gets 404, which makes its client begin
// another.
func (h *sessions) evict(who string, own bool) bool {
	h.mu.Lock()
	count := map[string]int{}
	for _, s := range h.all {
		count[s.who]++
	}
	var victim *session
	for _, s := range h.all {
		may := s.who == who || !own && count[s.who] > count[who]
		if may && s.requests == 0 && (victim == nil || s.before(victim, count)) {
			victim = s
		}
	}
	if victim != nil {
		delete(h.all, victim.id)
	}
	h.mu.Unlock()
	if victim == nil {
		return false
	}
	h.opt.Log.Info("a session that was idle ends: there are too many", "agent", victim.who,
		"sessions of it", count[victim.who])
	victim.release()
	victim.agent.Dismiss()
	return true
}

// before reports whether s is evicted before t: first sessions that were never used, then sessions
// of the agent that has more, then sessions that are idle for longer. sessions.mu must be held.
func (s *session) before(t *session, count map[string]int) bool {
	if a, b := s.served <= handshake, t.served <= handshake; a != b {
		return a
	}
	if a, b := count[s.who], count[t.who]; a != b {
		return a > b
	}
	return s.used.Before(t.used)
}

// handshake is the number of HTTP requests before the first use of a session: initialize and
// initialized.
const handshake = 2

// session finds the session of a request, and counts the request. If the session is unknown,
// session answers the request itself and returns nil.
func (h *sessions) session(w http.ResponseWriter, r *http.Request, id bridge.JSON) *session {
	s := h.find(r)
	switch {
	case s != nil:
	case r.Header.Get("Mcp-Session-Id") == "":
		refuse(w, http.StatusBadRequest, id, codeInvalidRequest,
			"Mcp-Session-Id is missing: begin with initialize, or claim a version in _meta", nil)
	default:
		refuse(w, http.StatusNotFound, id, codeInvalidRequest,
			"There is no such session any more: begin with initialize", nil)
	}
	return s
}

// find returns the session that a request names, and counts the request; nil if there is none.
func (h *sessions) find(r *http.Request) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[r.Header.Get("Mcp-Session-Id")]
	if s != nil {
		s.requests++
		s.served++
		s.idle.Stop()
	}
	return s
}

// leave counts the end of an HTTP request that find or newSession has counted.
func (s *session) leave() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.requests--; s.requests == 0 && s.h.all[s.id] == s {
		s.used = time.Now()
		s.idle.Reset(s.h.opt.Idle)
	}
}

func (s *session) expire() {
	s.h.mu.Lock()
	idle := s.requests == 0 && s.h.all[s.id] == s
	if idle {
		delete(s.h.all, s.id)
	}
	s.h.mu.Unlock()
	if idle {
		s.agent.Dismiss()
	}
}

// close removes the session after the engine's last message.
func (s *session) close() {
	s.h.remove(s)
	s.h.forget(s.agent)
	s.idle.Stop()
	s.release()
	s.mu.Lock()
	s.over = true
	unheard := s.waiting // requests that came after the engine had closed the port
	s.waiting = nil
	s.wakeStream()
	s.mu.Unlock()
	for _, a := range unheard {
		a.in.send(failure(a.id, codeInternal, "The session has ended", reason{"shutdown"}))
		close(a.in.done)
	}
}

// out sends the engine's messages until the session ends. It writes the messages of a request
// itself: while the client does not read them, out takes no more messages from the engine.
func (s *session) out() {
	for {
		text, err := s.agent.Read(context.Background())
		switch {
		case err != nil:
			return
		case !bytes.HasPrefix(text, notification):
			if a, ok := s.removeWaiting(bridge.JSON(text).Get("id")); ok {
				a.in.send(text)
				close(a.in.done)
			}
		case bridge.JSON(text).Get("method").Is("notifications/progress"):
			s.progressed(text)
		case bytes.HasPrefix(text, eventsNotification):
			s.streamed(text)
		default:
			s.mu.Lock()
			s.notes.add(text)
			s.steer()
			s.mu.Unlock()
		}
	}
}

// expect registers the POST that waits for the answer to a request. It returns false if another
// open request has the same id, or if the session is over.
func (s *session) expect(p *post, m bridge.Incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || slices.ContainsFunc(s.waiting, func(a asked) bool { return a.id.Equal(m.ID) }) {
		return false
	}
	s.waiting = append(s.waiting, asked{m.ID, m.Params.Get("_meta").Get("progressToken"), p})
	return true
}

// removeWaiting removes the POST that waits for the answer to a request, and frees its id.
func (s *session) removeWaiting(id bridge.JSON) (a asked, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(a asked) bool { return a.id.Equal(id) })
	if i < 0 {
		return a, false
	}
	a = s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return a, true
}

// abandon reports whether the request of a POST still waits for its answer. If so, the answer is
// dropped when it comes, and the id is not free until then.
func (s *session) abandon(p *post) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(a asked) bool { return a.in == p })
	if i < 0 {
		return false
	}
	s.waiting[i].in = &post{done: make(chan struct{}), gone: true}
	close(p.done)
	return true
}

// cancelled removes a request that its client has cancelled: the engine will not answer it.
func (s *session) cancelled(id bridge.JSON) {
	if a, ok := s.removeWaiting(id); ok {
		close(a.in.done)
	}
}

// progressed sends a progress message to the POST of its request.
func (s *session) progressed(text []byte) {
	token := bridge.JSON(text).Get("params").Get("progressToken")
	s.passOn(text, func(a asked) bool { return len(a.token) > 0 && a.token.Equal(token) })
}

// streamed sends a notification of an events/stream to the POST of that request.
func (s *session) streamed(text []byte) {
	id := bridge.JSON(text).Get("params").Get("_meta").Get("io.modelcontextprotocol/subscriptionId")
	s.passOn(text, func(a asked) bool { return a.id.Equal(id) })
}

// passOn sends a notification to the POST of the request that it is about.
func (s *session) passOn(text []byte, about func(asked) bool) {
	s.mu.Lock()
	i := slices.IndexFunc(s.waiting, about)
	var to *post
	if i >= 0 {
		to = s.waiting[i].in
	}
	s.mu.Unlock()
	if to != nil {
		to.send(text)
	}
}

// eventsNotification is the beginning of each notification of an events/stream.
var eventsNotification = append(bytes.Clone(notification), `"notifications/events/`...)

// leaveStream ends the events/stream of a POST whose client has gone, unless the stream has ended
// already.
func (s *session) leaveStream(p *post) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(a asked) bool { return a.in == p })
	if i < 0 {
		return
	}
	_ = s.agent.Write(context.Background(), // it fails when the session has ended
		[]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+
			string(s.waiting[i].id)+`}}`))
	s.waiting = slices.Delete(s.waiting, i, i+1)
	close(p.done)
}

// steer tells the engine whether the GET stream takes notifications. mu must be held.
func (s *session) steer() {
	s.agent.Hold(s.stream == nil || len(s.notes.waiting) >= manyNotes)
	s.wakeStream()
}

// wakeStream wakes the GET stream.
func (s *session) wakeStream() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// opens begins a GET stream. It replaces an earlier one, since a client opens a second stream only
// if it has lost the first. The server may not know of that loss yet: writing to a dead connection
// gives no error for minutes. lastID is the id of the last event that the agent has. replaced is
// closed when another stream replaces this one.
//
// Why does a second GET stream of a session end the first? A client that opens a second has lost
// the first, and writes to a dead connection succeed for minutes. When the second was refused, the
// official TypeScript client came back after 1 and 1.5 s, and then never again.
func (s *session) opens(lastID string) (replaced chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		close(s.stream)
	}
	s.stream = make(chan struct{})
	s.notes.resume(lastID)
	s.steer()
	return s.stream
}

// follow sends notifications on a GET stream until the client goes, another stream replaces it, or
// the session ends.
func (s *session) follow(ctx context.Context, replaced chan struct{}, out *stream) {
	defer s.unfollow(replaced)
	alive := time.NewTicker(s.h.opt.aliveEvery)
	defer alive.Stop()
	for err := out.alive(); err == nil && ctx.Err() == nil; {
		note, number, over := s.note(replaced)
		if note != nil {
			err = out.numbered(number, note)
			continue
		} else if over {
			return
		}
		select {
		case <-s.news:
		case <-alive.C:
			err = out.alive()
		case <-replaced:
		case <-ctx.Done():
		}
	}
}

func (s *session) unfollow(stream chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == stream {
		s.stream = nil
		s.steer()
	} else {
		s.wakeStream() // this stream may have consumed a wake-up for the other one
	}
}

// note returns the next notification for a stream, with its number, and whether no more will come.
// A notification counts as sent before it is written: the client may reconnect with the last number
// it has before the write returns.
func (s *session) note(stream chan struct{}) (note []byte, number uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != stream {
		return nil, 0, true
	}
	if len(s.notes.waiting) > 0 {
		note = s.notes.pop()
		s.steer()
	}
	return note, s.notes.number, s.over
}
