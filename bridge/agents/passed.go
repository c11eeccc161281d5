package agents

import (
	"io"
	"net/http"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

// A Passed is a legacy request that a program passes on to another gateway's HTTP. If that gateway
// fails, the request still gets an answer.
//
// Why is a request that a dying node had answered with 502, and not with 404? 404 makes the client
// begin another session. If it then sent its request again, a tool would run twice. Only the next
// request gets 404.
type Passed struct {
	id bridge.JSON
	// Begins says that it is an initialize: a session that is gone does not matter to it.
	Begins bool
	// Streams says that its answer is a stream until the client goes.
	Streams bool
}

// NewPassed returns the Passed of a request's body. An invalid body counts as a request without an
// id.
//
// Why is a request's body read before it is passed on? Go's transport reads a body once more after
// it has sent all of it. If the answer has begun by then, Go's server has closed the body, and the
// answer breaks off: status 200 and no result, although the tool has run, in 2 of 15,000 requests.
// EnableFullDuplex does not help for an error that comes before the body has been read.
func NewPassed(body []byte) Passed {
	m, ok := parse(body)
	if !ok || m.Method == "" {
		return Passed{}
	}
	return Passed{m.ID, m.Method == "initialize", m.Method == eventsStream}
}

// Refuse answers the request with an error. No part of an answer may have been sent. why is the
// reason in the error's data, a word for programs, or "".
func (p Passed) Refuse(w http.ResponseWriter, status int, sentence, why string) {
	code := codeInternal
	if status < http.StatusInternalServerError {
		code = codeInvalidRequest
	}
	var data any
	if why != "" {
		data = reason{why}
	}
	refuse(w, status, p.id, code, sentence, data)
}

// Stream returns from, the other gateway's event stream, for the client. If from breaks between two
// events and before the answer, the returned stream adds an error as the answer, and ends normally.
func (p Passed) Stream(from io.ReadCloser, sentence, why string) io.ReadCloser {
	if len(p.id) == 0 {
		return from
	}
	text := eventHead + string(failure(p.id, codeInternal, sentence, reason{why})) + eventTail
	return &passedStream{ReadCloser: from, failure: strings.NewReader(text)}
}

type passedStream struct {
	io.ReadCloser
	failure  *strings.Reader
	broken   bool   // only failure is left to send
	event    []byte // the beginning of the current event
	last     byte   // the byte before
	answered bool
}

func (s *passedStream) Read(p []byte) (int, error) {
	if s.broken {
		return s.failure.Read(p)
	}
	n, err := s.ReadCloser.Read(p)
	s.follow(p[:n])
	if err != nil && err != io.EOF && len(s.event) == 0 && !s.answered {
		s.broken, err = true, nil
	}
	return n, err
}

// follow sets answered at the end of an event that is not a notification.
func (s *passedStream) follow(text []byte) {
	for _, c := range text {
		if len(s.event) < len(eventHead)+len(notification) {
			s.event = append(s.event, c)
		}
		if c == '\n' && s.last == '\n' {
			message, ok := strings.CutPrefix(string(s.event), eventHead)
			s.answered = s.answered || ok && !strings.HasPrefix(message, string(notification))
			s.event, c = s.event[:0], 0
		}
		s.last = c
	}
}
