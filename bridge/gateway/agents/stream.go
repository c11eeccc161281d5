package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
)

// A stream is the answer to a request: JSON, or an event stream. If a client does not accept a piece within
// WriteTimeout, the stream ends: the client is gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	every   time.Duration   // the pause between two comments
	events  bool            // the client accepts events
	begun   bool            // as an event stream
	cut     <-chan struct{} // closed when no more is to be written; nil for never
}

// errSilent is the error of next when no message has come for stream.every.
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

// revoke ends a stream of events whose client's right to it has ended, by the deadline of its request.
func (s *stream) revoke(agent *gateway.Agent) {
	agent.EndStreams(&bridge.EventError{Kind: bridge.EventForbidden, Message: "the access token has ended",
		Data: bridge.Text(`{"reason":"token"}`)})
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for {
		message, err := agent.Read(ctx)
		if err != nil || s.event(message) != nil || !bytes.HasPrefix(message, notification) {
			return
		}
	}
}

// An event is eventHead, a message on one line, and eventTail.
const eventHead, eventTail = "event: message\ndata: ", "\n\n"

// event sends one message. A client that accepts no events does not get it.
func (s *stream) event(message []byte) error { return s.write(eventHead, oneLine(message), eventTail) }

// numbered sends one message with its id. The client repeats the last id when it comes back.
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

// piece is how much a client must accept within WriteTimeout: 8 KiB a second are fast enough, for an answer of any
// length.
const piece = 256 << 10

func (s *stream) send(text []byte) error {
	for part := range slices.Chunk(text, piece) {
		_ = s.control.SetWriteDeadline(time.Now().Add(WriteTimeout))
		select {
		case <-s.cut: // closed after the deadline was set: the goroutine that closes it sets another, which then holds
			return io.ErrClosedPipe
		default:
		}
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// begin begins an event stream, if it has not begun.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	head := s.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s.w.WriteHeader(http.StatusOK)
	return s.control.Flush()
}

// large is the size from which an answer can be cut off while it is written, if its agent has too much unread.
const large = 1 << 20

// answer sends the last message: as an event if the stream has begun, otherwise as the body. It gives up when cut is
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
		_ = s.event(message) // if it fails, the client has gone
		return
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.WriteHeader(status)
	_ = s.send(message)
}
