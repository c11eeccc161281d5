//go:build !js

package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// A session is one of the legacy era, an Mcp-Session-Id: a port of the engine, and go-sdk's transport, which makes one
// stream of messages of all the requests. Five things the transport leaves to us. What answers no request it drops
// while the agent has no GET stream open: we hold it back. Progress it sends on that stream too, where it may come
// after the result: we send it on the request's own. The stream of a request that the agent cancels, and that is
// therefore never answered, it keeps for good: we end it. A method that it does not know it refuses with plain text: we
// answer with an error. And for a client that takes nothing it waits for good: we cut that off after writeTimeout.
type session struct {
	h         *HTTP
	id        string
	who       string
	release   func() // its share
	agent     *gateway.Agent
	transport *mcp.StreamableServerTransport
	conn      mcp.Connection
	ended     chan struct{} // closed when nothing is left of it

	// Guarded by HTTP.mu.
	requests int         // of HTTP, under way
	served   int         // of them, in all
	used     time.Time   // when the last one ended
	idle     *time.Timer // runs while there is none

	mu      sync.Mutex
	over    bool
	waiting map[jsonrpc.ID]asked // requests that are not answered yet
	notes   []jsonrpc.Message    // what waits for a GET stream
	open    bool                 // there is one
	streams int                  // how many there have been
	changed *sync.Cond           // one of the above
}

// asked is a request that is not answered yet.
type asked struct {
	*response
	token string // for its progress, as JSON text, or ""
}

// manyNotes is how many notifications may wait for a stream that does not take them before the agent counts as one that
// only answers can reach.
const manyNotes = 64

// newSession begins one for an agent. It fails with a *fullError, or because the gateway takes none.
func (h *HTTP) newSession(who string) (*session, error) {
	release, full := h.shares.take(ofSessions, who)
	if full != nil && h.evict(who) {
		release, full = h.shares.take(ofSessions, who)
	}
	if full != nil {
		return nil, full
	}
	agent, err := h.g.ConnectAs("http", who)
	if err != nil {
		release()
		return nil, err
	}
	s := &session{
		h: h, id: rand.Text(), who: who, release: release, agent: agent, ended: make(chan struct{}), requests: 1,
		served:  1,
		waiting: map[jsonrpc.ID]asked{},
	}
	s.changed = sync.NewCond(&s.mu)
	s.transport = &mcp.StreamableServerTransport{SessionID: s.id}
	if s.conn, err = s.transport.Connect(context.Background()); err != nil {
		agent.Close()
		release()
		return nil, err
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
	var pumps sync.WaitGroup
	pumps.Go(s.in)
	pumps.Go(s.notify)
	go func() {
		s.out()
		s.end()
		pumps.Wait()
		close(s.ended)
	}()
	return s, nil
}

// evict ends an idle session in favour of a new one of an agent, and reports whether there was one to end: of its own
// sessions, where it has as many as one agent may have; else of any that has more of them than it. Its agent is told by
// 404 to begin another one.
func (h *HTTP) evict(who string) bool {
	h.mu.Lock()
	count := map[string]int{}
	for _, s := range h.sessions {
		count[s.who]++
	}
	own := count[who] >= h.shares.bounds[ofSessions].each
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
		refuse(w, http.StatusBadRequest, []byte(id), codeInvalidRequest,
			"Mcp-Session-Id is missing: begin with initialize, or claim a version in _meta", nil)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sessions[name]
	if s == nil {
		refuse(w, http.StatusNotFound, []byte(id), codeInvalidRequest,
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
func (s *session) cut() {
	s.agent.Close()
	s.conn.Close()
}

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
	unheard := slices.Collect(maps.Keys(s.waiting))
	s.changed.Broadcast()
	s.mu.Unlock()
	for _, id := range unheard { // they came when the engine had closed the port already
		_ = s.conn.Write(context.Background(), &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
			Code: codeInternal, Message: "The session has ended", Data: json.RawMessage(`{"reason":"shutdown"}`),
		}})
	}
	s.conn.Close() // ends the requests that are open
}

// in hands over what the agent says.
func (s *session) in() {
	for {
		m, err := s.conn.Read(context.Background())
		if err != nil {
			return
		}
		text, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			continue // it has just been decoded
		}
		s.taken(m)
		if s.agent.Write(context.Background(), text) != nil {
			return
		}
		if r, ok := m.(*jsonrpc.Request); ok && r.Method == "notifications/cancelled" {
			s.cancelled(r.Params)
		}
	}
}

// taken begins the answer to a request, whose headers the transport has set when it hands the request over.
func (s *session) taken(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	s.mu.Lock()
	a := s.waiting[r.ID].response
	s.mu.Unlock()
	if a != nil {
		a.mu.Lock()
		a.ready()
		a.mu.Unlock()
	}
}

// cancelled ends the stream of a request that gets no answer any more, and says nothing on it.
func (s *session) cancelled(params json.RawMessage) {
	var p struct{ RequestID any }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return
	}
	s.mu.Lock()
	a, ok := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if ok {
		a.cancel()
		_ = s.conn.Write(context.Background(), &jsonrpc.Response{ID: id, Result: json.RawMessage("{}")})
	}
}

// out passes on what the engine says, until the session ends.
func (s *session) out() {
	for {
		text, err := s.agent.Read(context.Background())
		if err != nil {
			return
		}
		m, err := jsonrpc.DecodeMessage(text)
		if err != nil {
			s.h.opt.Log.Error("a message of ours could not be sent", "error", err)
			continue
		}
		if answer, ok := m.(*jsonrpc.Response); ok {
			s.mu.Lock()
			delete(s.waiting, answer.ID)
			s.mu.Unlock()
			_ = s.conn.Write(context.Background(), m) // it fails if who asked has gone
			continue
		}
		if note, ok := m.(*jsonrpc.Request); ok && note.Method == "notifications/progress" {
			s.progressed(note.Params, text)
			continue
		}
		s.mu.Lock()
		s.notes = append(s.notes, m)
		s.steer()
		s.mu.Unlock()
	}
}

// progressed sends how far a request has come to who waits for it.
func (s *session) progressed(params json.RawMessage, text []byte) {
	var p struct{ ProgressToken json.RawMessage }
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	var to *response
	for _, a := range s.waiting { // 64 at most
		if a.token == string(p.ProgressToken) {
			to = a.response
		}
	}
	s.mu.Unlock()
	if to != nil {
		// if it fails nobody is there any more
		_, _ = to.Write(slices.Concat([]byte("event: message\ndata: "), oneLine(text), []byte("\n\n")))
		_ = to.FlushError()
	}
}

// steer brings the engine and notify in line with what has changed. It is called with mu held.
func (s *session) steer() {
	s.agent.Hold(!s.open || len(s.notes) >= manyNotes)
	s.changed.Broadcast()
}

// notify sends the notifications on the GET stream, each on one that takes it.
func (s *session) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for broken := 0; ; {
		for !s.over && (!s.open || len(s.notes) == 0 || s.streams == broken) {
			s.changed.Wait()
		}
		if s.over {
			return
		}
		stream, note := s.streams, s.notes[0]
		s.mu.Unlock()
		err := s.conn.Write(context.Background(), note)
		s.mu.Lock()
		if err != nil {
			broken = stream // the next one gets it
			continue
		}
		s.notes = s.notes[1:]
		s.steer()
	}
}

// serveLegacy answers a POST of the legacy era. m is not set for a batch.
func (h *HTTP) serveLegacy(w http.ResponseWriter, r *http.Request, body []byte, m bridge.Incoming) {
	if !knownVersion(w, r, m.ID) {
		return
	}
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, []byte(m.ID), codeInvalidRequest, "Accept must have text/event-stream", nil)
		return
	}
	if _, exact := m.ID.Int(); len(m.ID) > 0 && m.ID[0] != '"' && !exact {
		refuse(w, http.StatusBadRequest, []byte(m.ID), codeInvalidRequest,
			"Invalid request: an id of 2^53 or more would not come back as it is", nil)
		return
	}
	var s *session
	if m.Method == "initialize" && r.Header.Get("Mcp-Session-Id") == "" {
		var err error
		s, err = h.newSession(who(r, m))
		if full := (*fullError)(nil); errors.As(err, &full) {
			refuseFull(w, m.ID, full)
			return
		} else if err != nil {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, []byte(m.ID), codeInternal, "Too many sessions: "+err.Error(),
				reason{"session_limit"})
			return
		}
	} else if s = h.session(w, r, m.ID); s == nil {
		return
	}
	defer s.leave()
	release, full := h.shares.take(ofRequests, s.who)
	if full != nil {
		refuseFull(w, m.ID, full)
		return
	}
	defer release()

	a := &response{ResponseWriter: w, control: http.NewResponseController(w), every: h.opt.aliveEvery}
	requests := s.expect(body, a)
	again := r.Clone(r.Context())
	again.Header.Del("Last-Event-ID") // the transport refuses it, and older clients send it
	again.Body = io.NopCloser(bytes.NewReader(body))
	s.transport.ServeHTTP(a, again)
	a.silence()
	if a.status < http.StatusBadRequest {
		if len(requests) > 0 && a.unanswered() && r.Context().Err() == nil { // the session has ended meanwhile
			refuse(w, http.StatusNotFound, []byte(m.ID), codeInternal, "The session has ended", reason{"shutdown"})
		}
		return
	}
	s.mu.Lock()
	for _, id := range requests { // none of them has reached us
		delete(s.waiting, id)
	}
	s.mu.Unlock()
	a.translate(w, m)
}

// translate says in JSON-RPC what the transport has refused in plain text.
func (a *response) translate(w http.ResponseWriter, m bridge.Incoming) {
	switch said := strings.TrimSpace(string(a.text)); {
	case len(a.text) == 0: // it has answered in JSON
	case m.Method == "": // of a batch
		refuse(w, a.status, nil, codeInvalidRequest, "Invalid request: "+said, nil)
	case len(m.ID) == 0: // nothing is ever said about a notification
		w.WriteHeader(http.StatusAccepted)
	case a.status != http.StatusBadRequest: // the session has just ended
		refuse(w, a.status, []byte(m.ID), codeInvalidRequest, said, nil)
	case len(m.Params) == 0 && strings.Contains(said, "params"):
		refuse(w, http.StatusOK, []byte(m.ID), codeInvalidParams, "Invalid params: params are missing", nil)
	default:
		refuse(w, http.StatusOK, []byte(m.ID), codeNotFound, "Method not found", nil)
	}
}

// expect remembers who waits for the answers to the requests in a body, and returns their ids. One that is waited for
// already is left alone: the transport refuses it.
func (s *session) expect(body []byte, a *response) (ids []jsonrpc.ID) {
	type request struct {
		ID     any
		Method string
		Params struct {
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
	}
	var all []request
	if body[0] == '[' {
		_ = json.Unmarshal(body, &all) // what is wrong with it the transport says, or the engine
	} else {
		all = make([]request, 1)
		_ = json.Unmarshal(body, &all[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		id, err := jsonrpc.MakeID(r.ID)
		if _, waits := s.waiting[id]; err == nil && id.IsValid() && r.Method != "" && !waits {
			s.waiting[id] = asked{a, string(r.Params.Meta.ProgressToken)}
			ids = append(ids, id)
		}
	}
	return ids
}

// legacyStreamOrEnd answers a GET, which opens the stream of what answers nothing, or a DELETE, which ends a session.
func (h *HTTP) legacyStreamOrEnd(w http.ResponseWriter, r *http.Request) {
	if newer(r.Header.Get("Mcp-Protocol-Version")) {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, nil, codeInvalidRequest, "This version of the protocol has only POST",
			nil)
		return
	}
	if !knownVersion(w, r, nil) {
		return
	}
	s := h.session(w, r, nil)
	if s == nil {
		return
	}
	defer s.leave()
	if r.Method == http.MethodDelete {
		h.mu.Lock()
		delete(h.sessions, s.id)
		h.mu.Unlock()
		s.dismiss()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, nil, codeInvalidRequest, "Accept must have text/event-stream", nil)
		return
	}
	a := &response{ResponseWriter: w, control: http.NewResponseController(w), every: h.opt.aliveEvery,
		began: s.streamBegins}
	again := r.Clone(r.Context())
	again.Header.Del("Last-Event-ID") // nothing is sent twice, and the subscriptions are still there
	s.transport.ServeHTTP(a, again)
	a.silence()
	if a.status == http.StatusOK {
		s.streamEnds()
	} else if len(a.text) > 0 {
		refuse(w, a.status, nil, codeInvalidRequest, strings.TrimSpace(string(a.text)), nil)
	}
}

// streamBegins is called by the transport, which keeps from the stream what it is given until that is ready.
func (s *session) streamBegins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	s.streams++
	s.steer()
}

func (s *session) streamEnds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
	s.steer()
}

func knownVersion(w http.ResponseWriter, r *http.Request, id bridge.JSON) bool {
	version := r.Header.Get("Mcp-Protocol-Version")
	if version == "" || slices.Contains(legacyVersions, version) {
		return true
	}
	refuse(w, http.StatusBadRequest, []byte(id), codeInvalidRequest,
		"Mcp-Protocol-Version "+strconv.Quote(version)+" is not one of "+strings.Join(legacyVersions, ", "), nil)
	return false
}

// A response is the answer to a request as go-sdk's transport writes it.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	every   time.Duration // that the client is told that we are there
	began   func()        // called when it is to be an event stream

	mu     sync.Mutex
	status int         // what the transport has set
	text   []byte      // of a refusal in plain text, which is kept back
	silent bool        // nothing is written any more
	done   bool        // something has been written, or must not be
	alive  *time.Timer // writes when nothing else does
}

// ready has the client told from time to time that we are there. The transport has set the headers by then: before, the
// answer would begin without them. It is called with mu held.
func (a *response) ready() {
	if a.alive == nil && !a.silent {
		a.alive = time.AfterFunc(a.every, a.stillHere)
	}
}

func (a *response) stillHere() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.silent {
		_, _ = a.write([]byte(": keepalive\n\n")) // if it fails the request is about to end
		_ = a.control.Flush()
		a.alive.Reset(a.every)
	}
}

// silence keeps back all that is still written.
func (a *response) silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent = true
	if a.alive != nil { // else it has not begun
		a.alive.Stop()
	}
}

// cancel is silence for a request that is never answered.
func (a *response) cancel() {
	a.silence()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = true
}

func (a *response) unanswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.done
}

// refused reports whether the transport refuses the request in plain text. It is called with mu held.
func (a *response) refused() bool {
	return a.status >= http.StatusBadRequest && strings.HasPrefix(a.Header().Get("Content-Type"), "text/plain")
}

func (a *response) WriteHeader(status int) {
	stream := status == http.StatusOK && a.began != nil
	if stream {
		a.began()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
	if !a.refused() {
		a.ResponseWriter.WriteHeader(status)
	}
	if stream {
		a.ready()
	}
}

func (a *response) Write(text []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.refused():
		a.text = append(a.text, text...)
		return len(text), nil
	case a.silent:
		return len(text), nil
	}
	return a.write(text)
}

func (a *response) write(text []byte) (int, error) {
	a.done = true
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // what cannot have one has no network either
	return a.ResponseWriter.Write(text)
}

// FlushError is what http.ResponseController calls.
func (a *response) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent {
		return nil
	}
	return a.control.Flush()
}
