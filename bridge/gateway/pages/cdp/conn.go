package cdp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coder/websocket"
)

// A Conn is a connection to a browser, which carries JSON texts. One goroutine may read while another writes.
type Conn interface {
	// Next waits for the next message. Reading gives io.EOF at its end; the next call of Next skips the rest.
	Next() (io.Reader, error)
	// Write sends a message, as one frame. It may overwrite the array behind the message.
	Write(message []byte) error
	// Close ends both directions.
	Close() error
}

// A socket is a WebSocket as a Conn. It reads as much of a message as its caller does; chromedp's reads all first.
type socket struct {
	ws  *websocket.Conn
	now io.Reader // the message that is being read
}

func dialSocket(ctx context.Context, address string) (*socket, error) {
	ws, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the browser at %s: %w", address, err)
	}
	ws.SetReadLimit(-1) // the decoder has a limit, which drops a message and not the browser
	return &socket{ws: ws}, nil
}

func (s *socket) Next() (io.Reader, error) {
	if s.now != nil {
		if _, err := io.Copy(io.Discard, s.now); err != nil {
			return nil, err
		}
		s.now = nil
	}
	kind, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageText {
		return nil, errors.New("the browser sends something that is not text")
	}
	s.now = r
	return r, nil
}

func (s *socket) Write(message []byte) error {
	return s.ws.Write(context.Background(), websocket.MessageText, message)
}

func (s *socket) Close() error { return s.ws.CloseNow() }
