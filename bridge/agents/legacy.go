package agents

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

// The legacy era has sessions. initialize begins one. A POST brings a message; an event stream
// responds to a request, and ends with the answer. A GET opens the stream for the other messages to
// the agent. A DELETE ends the session.

func (h *sessions) serve(w http.ResponseWriter, r *http.Request, body []byte, m bridge.Incoming) {
	if !knownVersion(w, r, m.ID) {
		return
	}
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, m.ID, codeInvalidRequest,
			"Accept must have text/event-stream", nil)
		return
	}
	s := h.sessionFor(w, r, m)
	if s == nil {
		return
	}
	defer s.leave()
	if m.Request() { // at its bound an agent can still withdraw a request
		of := ofRequests
		if m.Method == eventsStream {
			of = ofListens
		}
		release, full := h.shares.acquire(of, s.who)
		if full != nil {
			full.refuse(w, m.ID, m.Method == eventsStream, false)
			return
		}
		defer release()
	}
	if m.Method == eventsStream {
		h.streams(r)
	}
	s.serve(w, r, body, m)
}

// sessionFor finds the session of a POST, or begins it. If it fails, it answers the request itself
// and returns nil.
func (h *sessions) sessionFor(w http.ResponseWriter, r *http.Request, m bridge.Incoming) *session {
	if m.Method != "initialize" {
		return h.session(w, r, m.ID)
	}
	if s := h.find(r); s != nil {
		return s
	}
	// A client may still name a session that has ended, such as one of an earlier gateway.
	s, err := h.newSession(who(r, m))
	if full := (*fullError)(nil); errors.As(err, &full) {
		full.refuse(w, m.ID, false, false)
		return nil
	} else if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, m.ID, codeInternal,
			"Too many sessions: "+err.Error(), reason{"session_limit"})
		return nil
	}
	w.Header().Set("Mcp-Session-Id", s.id)
	return s
}

// serve hands the message of a POST to the engine. It returns when the request is answered or the
// client has gone.
func (s *session) serve(w http.ResponseWriter, r *http.Request, body []byte, m bridge.Incoming) {
	p := &post{stream: stream{w: w, control: http.NewResponseController(w), events: true},
		done: make(chan struct{})}
	if m.Request() && !s.expect(p, m) {
		s.refuse(w, m.ID)
		return
	}
	s.h.giveWebhooks(s.agent, r)
	// It fails if the session has ended; then end answers the request.
	_ = s.agent.Write(r.Context(), body)
	if m.Method == "notifications/cancelled" {
		s.cancelled(m.Params.Get("requestId"))
	}
	if !m.Request() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.wait(r.Context(), s.h.opt.aliveEvery)
	if m.Method == eventsStream { // the client has closed the request, which ends the stream
		s.leaveStream(p)
	}
	if s.abandon(p) {
		p.send(failure(m.ID, codeInternal, endedUnanswered, reason{"shutdown"}))
	}
	<-p.done // out may still be writing the answer
	p.close()
}

// refuse answers a request for which expect has returned false.
func (s *session) refuse(w http.ResponseWriter, id bridge.JSON) {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over {
		refuse(w, http.StatusNotFound, id, codeInternal, "The session has ended",
			reason{"shutdown"})
		return
	}
	refuse(w, http.StatusBadRequest, id, codeInvalidRequest,
		"Invalid request: a request with this id is under way", nil)
}

// streamOrEnd answers a GET, which opens a session's stream, or a DELETE, which ends the session.
func (h *sessions) streamOrEnd(w http.ResponseWriter, r *http.Request) {
	if Modern(r.Header.Get("Mcp-Protocol-Version")) {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, nil, codeInvalidRequest,
			"This version of the protocol has only POST", nil)
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
		h.remove(s)
		s.agent.Dismiss()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, nil, codeInvalidRequest,
			"Accept must have text/event-stream", nil)
		return
	}
	replaced := s.opens(r.Header.Get("Last-Event-ID"))
	s.follow(r.Context(), replaced, &stream{w: w, control: http.NewResponseController(w),
		events: true})
}

func knownVersion(w http.ResponseWriter, r *http.Request, id bridge.JSON) bool {
	version := r.Header.Get("Mcp-Protocol-Version")
	if version == "" || slices.Contains(legacyVersions, version) {
		return true
	}
	refuse(w, http.StatusBadRequest, id, codeInvalidRequest,
		"Mcp-Protocol-Version "+strconv.Quote(version)+" is not one "+
			"of "+strings.Join(legacyVersions, ", "), nil)
	return false
}
