//go:build !js

package agents

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway"
)

// A stream is the answer to a request: JSON, or once it has begun as one, an event stream. A piece that a client does
// not take in WriteTimeout is its end: the client is gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	every   time.Duration   // that the client is told that we are there
	events  bool            // the client takes them
	begun   bool            // as an event stream
	cut     <-chan struct{} // closed when no more is to be written; nil for never
}

// errSilent is what next returns when nothing has come for stream.every.
var errSilent = errors.New("silent")

// next waits for a message to the agent.
func (s *stream) next(ctx context.Context, agent *gateway.Agent) ([]byte, error) {
	short, cancel := context.WithTimeoutCause(ctx, s.every, errSilent)
	defer cancel()
	message, err := agent.Read(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		err = errSilent
	}
	return message, err
}

// An event is eventHead, a message on one line, and eventTail.
const eventHead, eventTail = "event: message\ndata: ", "\n\n"

// event sends one message. A client that takes no events goes without.
func (s *stream) event(message []byte) error { return s.write(eventHead, oneLine(message), eventTail) }

// numbered sends one with its id, by which a client says what was the last that it had.
func (s *stream) numbered(id uint64, message []byte) error {
	return s.write("id: "+strconv.FormatUint(id, 10)+"\n"+eventHead, oneLine(message), eventTail)
}

// alive sends what clients ignore.
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

// piece is what a client has WriteTimeout for: 8 KiB a second are fast enough, however long the answer is.
const piece = 256 << 10

func (s *stream) send(text []byte) error {
	for part := range slices.Chunk(text, piece) {
		_ = s.control.SetWriteDeadline(time.Now().Add(WriteTimeout))
		select {
		case <-s.cut: // after the deadline was set: who sees it closed sets another, which then holds
			return io.ErrClosedPipe
		default:
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// begin begins it as an event stream, if it has not.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	head := s.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no") // nginx would keep events back
	s.w.WriteHeader(http.StatusOK)
	return s.control.Flush()
}

// large is what is worth to be cut off while it is being written, when its agent has more waiting than it may.
const large = 1 << 20

// answer sends the last message: as an event where the stream has begun, else as the body. It gives up when cut is
// closed.
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
		_ = s.event(message) // if it fails nobody is there any more
		return
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.WriteHeader(status)
	_ = s.send(message)
}
