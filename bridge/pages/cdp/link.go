package cdp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/coder/websocket"
	"github.com/go-json-experiment/json/jsontext"
)

// A link is the connection to a browser. Its own goroutine sends commands in the order in which
// they are posted. Posting never waits: the caller may be the reader, on which the browser's
// progress depends, or an agent's goroutine, whose other requests do not depend on a stalled
// browser.
//
// chromedp.Browser copies each tab's DOM, and switches goroutines three times a call; here a page's
// read takes 0.3 ms.
type link struct {
	conn Conn

	mu      sync.Mutex
	last    int64
	waiting map[int64]pending
	queue   [][]byte
	bytes   int // that the browser has not accepted
	failed  error
	wake    chan struct{}
}

type pending struct {
	session target.SessionID
	done    func(result jsonv2.Value, err error)
}

// maxQueued bounds the bytes that wait for a browser: above it the browser gets no further calls.
// Other messages to it are few. Above maxUnsent bytes of all messages the browser is given up.
const maxQueued, maxUnsent = 64 << 20, 128 << 20

var (
	errNotReading = errors.New("it does not read what it is sent")
	errDetached   = errors.New("the page has gone")
	errFull       = errors.New(
		"the browser stands still, and too much waits for it already; the limit is " +
			strconv.Itoa(maxQueued) + " bytes: try again when it goes on")
)

func newLink(conn Conn) *link {
	return &link{conn: conn, waiting: map[int64]pending{}, wake: make(chan struct{}, 1)}
}

// post sends a command. params is JSON text, a value or nil. The reader calls done, if it is set:
// done must not block.
func (l *link) post(session target.SessionID, method string, params any,
	done func(result jsonv2.Value, err error)) error {
	text, raw := params.(jsonv2.Value)
	if !raw && params != nil {
		var err error
		if text, err = jsonv2.Marshal(params, decodeOptions); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if l.bytes+len(text) > maxUnsent {
		l.fail(errNotReading)
		return l.failed
	}
	l.last++
	if done != nil {
		l.waiting[l.last] = pending{session, done}
	}
	m := command(l.last, session, method, text)
	l.queue = append(l.queue, m)
	l.bytes += len(m)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// ask sends a command as post does, and decodes its answer. With an error r is empty.
func ask[R any](l *link, session target.SessionID, method string, params any,
	done func(r R, err error)) error {
	return l.post(session, method, params, func(result jsonv2.Value, err error) {
		var r R
		if err == nil {
			err = jsonv2.Unmarshal(result, &r, decodeOptions)
		}
		done(r, err)
	})
}

// full returns why the browser gets no further calls, or nil.
func (l *link) full() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes > maxQueued {
		return errFull
	}
	return nil
}

// command is the text of a command, with room for another byte.
func command(id int64, session target.SessionID, method string, params jsonv2.Value) []byte {
	text := make([]byte, 0, len(params)+len(session)+len(method)+64)
	text = strconv.AppendInt(append(text, `{"id":`...), id, 10)
	if session != "" {
		text, _ = jsontext.AppendQuote(append(text, `,"sessionId":`...), string(session))
	}
	text, _ = jsontext.AppendQuote(append(text, `,"method":`...), method)
	if params != nil {
		text = append(append(text, `,"params":`...), params...)
	}
	return append(text, '}')
}

// fail ends the link. The lock is held.
func (l *link) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.queue = nil
	close(l.wake)
	go l.conn.Close() // it may wait for a write that the browser does not accept
}

// write sends the posted commands, until the link fails.
//
// Why does a goroutine of its own write to a browser? A suspended browser takes no more than its
// socket's buffer, so an agent that had sent it a file got no answer to any other request. The
// switch cannot be measured (1.25 and 1.23 ms). Above 64 MiB that wait, a call is refused at once.
func (l *link) write() {
	for range l.wake {
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		for i, m := range queue {
			queue[i] = nil
			err := l.conn.Write(m)
			l.mu.Lock()
			l.bytes -= len(m)
			if err != nil {
				l.fail(err)
			}
			l.mu.Unlock()
			if err != nil {
				return
			}
		}
	}
}

// read passes each event to handle, and each answer with its waiting call. It returns the reason of
// its end.
func (l *link) read(handle func(event *message, answered func())) error {
	d := newDecoder()
	for {
		m := new(message)
		from, err := l.conn.Next()
		if err == nil {
			m, err = d.decode(from)
		}
		l.mu.Lock()
		if err != nil {
			l.fail(err)
			err = l.failed
			l.waiting = nil
			l.mu.Unlock()
			return err
		}
		p := l.waiting[m.ID]
		delete(l.waiting, m.ID)
		l.mu.Unlock()
		switch {
		case m.Method != "":
			handle(m, nil)
		case p.done != nil:
			handle(m, func() {
				if m.Error != nil {
					p.done(nil, fmt.Errorf("%s (%d)", m.Error.Message, m.Error.Code))
				} else {
					p.done(m.Result, nil)
				}
			})
		}
	}
}

// forget ends the calls of a session that has gone.
func (l *link) forget(session target.SessionID) {
	l.mu.Lock()
	var ended []pending
	for id, p := range l.waiting {
		if p.session == session {
			ended = append(ended, p)
			delete(l.waiting, id)
		}
	}
	l.mu.Unlock()
	for _, p := range ended {
		p.done(nil, errDetached)
	}
}

// A Conn is a connection to a browser, which carries JSON texts. One goroutine may read while
// another writes.
type Conn interface {
	// Next waits for the next message. Reading gives io.EOF at its end; the next call of Next skips
	// the rest.
	Next() (io.Reader, error)
	// Write sends a message, as one frame. It may overwrite the byte after the message in its
	// array.
	Write(message []byte) error
	// Close ends both directions.
	Close() error
}

// A socket is a WebSocket as a Conn. It reads a message as its caller does; chromedp's connection
// reads all first.
type socket struct {
	ws  *websocket.Conn
	now io.Reader // the message that is being read
}

func dialSocket(ctx context.Context, address string) (*socket, error) {
	ws, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the browser at %s: %w", address, err)
	}
	ws.SetReadLimit(-1) // the decoder's limit drops a message, and not the browser
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
