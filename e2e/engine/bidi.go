package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// A session speaks WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): commands with an id,
// their answers, events.
type session struct {
	conn *websocket.Conn
	on   func(method string, params json.RawMessage)

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	ended   error
}

type answer struct {
	ID             int             `json:"id"`
	Type           string          `json:"type"`
	Method         string          `json:"method"`
	Error, Message string          `json:",omitempty"`
	Params, Result json.RawMessage `json:",omitempty"`
}

// dial begins a session at a browser's WebSocket URL.
func dial(ctx context.Context, url string, on func(string, json.RawMessage)) (*session, error) {
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(-1)
	s := &session{conn: conn, on: on, waiting: map[int]chan answer{}}
	go s.listen()
	return s, s.call(ctx, "session.new", params{"capabilities": params{}}, nil)
}

type params map[string]any

// call sends a command, and unmarshals its answer into result unless that is nil.
func (s *session) call(ctx context.Context, method string, p params, result any) error {
	done := make(chan answer, 1)
	s.mu.Lock()
	s.last++
	id, ended := s.last, s.ended
	s.waiting[id] = done
	s.mu.Unlock()
	if ended != nil {
		return fmt.Errorf("%s: the browser is gone: %w", method, ended)
	}
	if err := wsjson.Write(ctx, s.conn,
		params{"id": id, "method": method, "params": p}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case a, answered := <-done:
		switch {
		case !answered:
			return fmt.Errorf("%s: the browser is gone", method)
		case a.Type == "error":
			return fmt.Errorf("%s: %s: %s", method, a.Error, a.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}

func (s *session) listen() {
	for {
		var a answer
		if err := wsjson.Read(context.Background(), s.conn, &a); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = err
			for _, done := range s.waiting {
				close(done)
			}
			clear(s.waiting)
			return
		}
		if a.Type == "event" {
			s.on(a.Method, a.Params)
			continue
		}
		s.mu.Lock()
		if done := s.waiting[a.ID]; done != nil {
			delete(s.waiting, a.ID)
			done <- a
		}
		s.mu.Unlock()
	}
}
