//go:build !js

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

// A session is one of the legacy era, an Mcp-Session-Id: a port of the engine that many requests of HTTP share. An
// answer goes out on the stream of its request, and progress before it. What answers nothing goes out on the stream
// that the agent opens by GET, and waits while it has none.
type session struct {
	h       *HTTP
	id      string
	who     string
	release func() // its share
	agent   *gateway.Agent
	ended   chan struct{} // closed when nothing is left of it

	// Guarded by HTTP.mu.
	requests int         // of HTTP, under way
	served   int         // of them, in all
	used     time.Time   // when the last one ended
	idle     *time.Timer // runs while there is none

	mu      sync.Mutex
	over    bool
	waiting []asked // requests that are not answered yet
	notes   notes
	stream  chan struct{} // the GET stream; closed when another takes its place
	news    chan struct{} // for it: there are notes, or the session is over
}

// asked is a request that is not answered yet.
type asked struct {
	id, token bridge.JSON // the token is its progress's
	in        *post
}

// manyNotes is how many notifications may wait for a stream that does not take them before the agent counts as one that
// only answers can reach.
const manyNotes = 64

// newSession begins one for an agent. It fails with a *fullError, or because the gateway takes none.
func (h *HTTP) newSession(who string) (*session, error) {
	release, full := h.shares.take(ofSessions, who)
	if full != nil && h.evict(who, !full.all) {
		release, full = h.shares.take(ofSessions, who)
	}
	if full != nil {
		return nil, full
	}
	agent, err := h.connect("http", who)
	if err != nil {
		release()
		return nil, err
	}
	s := &session{
		h: h, id: h.opt.SessionPrefix + rand.Text(), who: who, release: release, agent: agent,
		ended: make(chan struct{}), requests: 1, served: 1, news: make(chan struct{}, 1),
	}
	s.idle = time.AfterFunc(h.opt.Idle, s.expire)
	s.idle.Stop()
	h.mu.Lock()
	if h.closed {
		defer s.dismiss()
	}
	h.sessions[s.id] = s
	h.mu.Unlock()

	agent.Hold(true)
	go func() {
		defer close(s.ended)
		s.out()
		s.end()
	}()
	return s, nil
}

// evict ends an idle session in favour of a new one of an agent, and reports whether there was one to end: with own, of
// that agent's sessions; else also of an agent that has more of them. The agent that loses it is told by 404 to begin
// another one.
func (h *HTTP) evict(who string, own bool) bool {
	h.mu.Lock()
	count := map[string]int{}
	for _, s := range h.sessions {
		count[s.who]++
	}
	var victim *session
	for _, s := range h.sessions {
		may := s.who == who || !own && count[s.who] > count[who]
		if may && s.requests == 0 && (victim == nil || s.before(victim, count)) {
			victim = s
		}
	}
	if victim != nil {
		delete(h.sessions, victim.id)
	}
	h.mu.Unlock()
	if victim == nil {
		return false
	}
	h.opt.Log.Info("a session that was idle ends: there are too many", "agent", victim.who, "sessions of it",
		count[victim.who])
	victim.release()
	victim.dismiss()
	return true
}

// before reports whether s is to be ended rather than t: what was begun and never used, then of who has more, then what
// was idle for longer. It is called with HTTP.mu held.
func (s *session) before(t *session, count map[string]int) bool {
	if a, b := s.served <= handshake, t.served <= handshake; a != b {
		return a
	}
	if a, b := count[s.who], count[t.who]; a != b {
		return a > b
	}
	return s.used.Before(t.used)
}

// handshake is how many requests of HTTP a session takes before it is of use: initialize and initialized.
const handshake = 2

// session finds the session of a request, and counts that as one of its. It answers the request itself where there is
// none.
func (h *HTTP) session(w http.ResponseWriter, r *http.Request, id bridge.JSON) *session {
	name := r.Header.Get("Mcp-Session-Id")
	if name == "" {
		refuse(w, http.StatusBadRequest, id, codeInvalidRequest,
			"Mcp-Session-Id is missing: begin with initialize, or claim a version in _meta", nil)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[name]
	if s == nil {
		refuse(w, http.StatusNotFound, id, codeInvalidRequest,
			"There is no such session any more: begin with initialize", nil)
		return nil
	}
	s.requests++
	s.served++
	s.idle.Stop()
	return s
}

// leave ends a request of HTTP.
func (s *session) leave() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.requests--; s.requests == 0 && s.h.sessions[s.id] == s {
		s.used = time.Now()
		s.idle.Reset(s.h.opt.Idle)
	}
}

func (s *session) expire() {
	s.h.mu.Lock()
	idle := s.requests == 0 && s.h.sessions[s.id] == s
	if idle {
		delete(s.h.sessions, s.id)
	}
	s.h.mu.Unlock()
	if idle {
		s.dismiss()
	}
}

// dismiss ends the session in order: what waits is answered with an error first.
func (s *session) dismiss() { s.agent.Dismiss() }

// cut ends it at once.
func (s *session) cut() { s.agent.Close() }

// end comes when the engine has said all that it has to say.
func (s *session) end() {
	s.h.mu.Lock()
	if s.h.sessions[s.id] == s {
		delete(s.h.sessions, s.id)
	}
	s.idle.Stop()
	s.h.mu.Unlock()
	s.release()
	s.mu.Lock()
	s.over = true
	unheard := s.waiting // they came when the engine had closed the port already
	s.waiting = nil
	s.tell()
	s.mu.Unlock()
	for _, a := range unheard {
		a.in.send(failure(a.id, codeInternal, "The session has ended", reason{"shutdown"}))
		close(a.in.done)
	}
}

// out passes on what the engine says, until the session ends. It writes what belongs to a request itself, so that a
// client that does not take it makes room for nothing more.
func (s *session) out() {
	for {
		text, err := s.agent.Read(context.Background())
		switch {
		case err != nil:
			return
		case !bytes.HasPrefix(text, notification):
			if a, ok := s.take(bridge.JSON(text).Get("id")); ok {
				a.in.send(text)
				close(a.in.done)
			}
		case bridge.JSON(text).Get("method").Is("notifications/progress"):
			s.progressed(text)
		default:
			s.mu.Lock()
			s.notes.add(text)
			s.steer()
			s.mu.Unlock()
		}
	}
}

// expect remembers the POST that waits for the answer to a request. It reports false, and remembers nothing, if another
// request with this id still waits, or the session is over.
func (s *session) expect(p *post, m bridge.Incoming) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || slices.ContainsFunc(s.waiting, func(a asked) bool { return a.id.Equal(m.ID) }) {
		return false
	}
	s.waiting = append(s.waiting, asked{m.ID, m.Params.Get("_meta").Get("progressToken"), p})
	return true
}

// take finds the POST that waits for the answer to a request. Its id is free again.
func (s *session) take(id bridge.JSON) (a asked, ok bool) {
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

// abandon reports whether the request of a POST still waits for its answer, which is then dropped when it comes. Until
// then the id is not free.
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

// cancelled is for a request that gets no answer any more.
func (s *session) cancelled(id bridge.JSON) {
	if a, ok := s.take(id); ok {
		close(a.in.done)
	}
}

// progressed sends how far a request has come to the POST that waits for it.
func (s *session) progressed(text []byte) {
	token := bridge.JSON(text).Get("params").Get("progressToken")
	s.mu.Lock()
	i := slices.IndexFunc(s.waiting, func(a asked) bool { return len(a.token) > 0 && a.token.Equal(token) })
	var to *post
	if i >= 0 {
		to = s.waiting[i].in
	}
	s.mu.Unlock()
	if to != nil {
		to.send(text)
	}
}

// steer brings the engine and the GET stream in line with what has changed. It is called with mu held.
func (s *session) steer() {
	s.agent.Hold(s.stream == nil || len(s.notes.waiting) >= manyNotes)
	s.tell()
}

// tell wakes the GET stream.
func (s *session) tell() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// opens begins a GET stream in place of the one before, which the agent has lost, as a client has one. We may not know
// of that yet: what is written to a connection that is dead goes nowhere without an error, for minutes. lastID is the
// last event that the agent has. What is returned is closed when another stream takes the place of this one.
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

// follow sends notifications on a GET stream until the client goes, another takes its place, or the session ends.
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
		s.tell() // what it was told may have been meant for the other
	}
}

// note is the next notification for a stream, with its number, and whether no more will come. It counts as sent before
// it is written: a client may come back with its number at once, and says what it has not had.
func (s *session) note(stream chan struct{}) (note []byte, number uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != stream {
		return nil, 0, true
	}
	if len(s.notes.waiting) > 0 {
		note = s.notes.take()
		s.steer()
	}
	return note, s.notes.number, s.over
}
