package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// A stream is the response to an HTTP request: JSON, or an event stream. It ends if the client does
// not accept a piece within WriteTimeout: the client counts as gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	every   time.Duration   // the interval of comments while it is silent
	events  bool            // the client accepts an event stream
	begun   bool            // the event stream has begun
	cut     <-chan struct{} // closed when no more is to be written; nil for never
}

// errSilent is the error of next when no message has come for stream.every.
var errSilent = errors.New("silent")

// next waits for a message to the agent. Without one for s.every it returns errSilent.
func (s *stream) next(ctx context.Context, agent *gateway.Agent) ([]byte, error) {
	short, cancel := context.WithTimeoutCause(ctx, s.every, errSilent)
	defer cancel()
	message, err := agent.Read(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		err = errSilent
	}
	return message, err
}

// revoke ends an events/stream at the deadline of its request, when the client's access token has
// expired.
func (s *stream) revoke(agent *gateway.Agent) {
	agent.EndStreams(&bridge.EventError{Kind: bridge.EventForbidden,
		Message: "the access token has ended",
		Data:    bridge.Text(`{"reason":"token"}`)})
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for {
		message, err := agent.Read(ctx)
		if err != nil || s.event(message) != nil || !bytes.HasPrefix(message, notification) {
			return
		}
	}
}

// eventHead, a message on one line, and eventTail are an event.
const eventHead, eventTail = "event: message\ndata: ", "\n\n"

// event sends one message, if the client accepts events.
func (s *stream) event(message []byte) error {
	return s.write(eventHead, oneLine(message), eventTail)
}

// numbered is event with an id. The client repeats its last id when it reconnects.
func (s *stream) numbered(id uint64, message []byte) error {
	return s.write("id: "+strconv.FormatUint(id, 10)+"\n"+eventHead, oneLine(message), eventTail)
}

// alive sends a comment, which clients ignore.
func (s *stream) alive() error { return s.write(": keepalive\n\n", nil, "") }

func (s *stream) write(head string, message []byte, tail string) error {
	if !s.events {
		return nil
	}
	_ = s.begin()
	err := s.send(append(append([]byte(head), message...), tail...))
	if err == nil {
		err = s.control.Flush()
	}
	return err
}

// piece is the number of bytes that a client must accept within WriteTimeout. So 8 KiB a second are
// fast enough for an answer of any length.
const piece = 256 << 10

func (s *stream) send(text []byte) error {
	for part := range slices.Chunk(text, piece) {
		_ = s.control.SetWriteDeadline(time.Now().Add(WriteTimeout))
		select {
		case <-s.cut: // if it is closed later, answer's goroutine replaces this deadline
			return io.ErrClosedPipe
		default:
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	head := s.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no") // nginx would delay events
	s.w.WriteHeader(http.StatusOK)
	return s.control.Flush()
}

// large is the size, in bytes, above which cut ends an answer while it is written.
const large = 1 << 20

// answer sends the last message: as an event if the stream has begun, otherwise as the body. A
// large one is abandoned when cut is closed: its session has ended, for example because the agent
// has too many unread bytes.
func (s *stream) answer(status int, message []byte, cut <-chan struct{}) {
	if len(message) > large {
		s.cut = cut
		written := make(chan struct{})
		defer close(written)
		go func() {
			select {
			case <-cut:
				_ = s.control.SetWriteDeadline(time.Now())
			case <-written:
			}
		}()
	}
	if s.begun {
		_ = s.event(message) // if it fails, the client has gone
		return
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.WriteHeader(status)
	_ = s.send(message)
}

// A post is a POST whose request is being answered.
type post struct {
	done chan struct{} // closed when the answer has been written, or when none will come

	mu sync.Mutex
	stream
	gone bool // nothing more is written
}

func (p *post) send(message []byte) { p.write(func() error { return p.event(message) }) }

func (p *post) write(what func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.gone = what() != nil
	}
}

// wait returns when the post is answered or when ctx, the request's, ends. Meanwhile it sends
// comments that keep the connection alive.
func (p *post) wait(ctx context.Context, aliveEvery time.Duration) {
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-ctx.Done():
			return
		case <-alive.C:
			p.write(p.alive)
		}
	}
}

func (p *post) close() {
	p.write(p.begin) // the answer to a cancelled request is a stream without events
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}
