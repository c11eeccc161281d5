//go:build !js

package cdp

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json/jsontext"
)

// A link is the connection to a browser: commands go out in the order in which they are posted, and whoever posts one
// never waits, since it may be the reader, which alone makes the browser read on.
//
// chromedp.Browser is not used: it copies each tab's DOM, and it takes a listener and three goroutine switches for a
// call, where a read of a page should take 0.3 ms.
type link struct {
	conn    Conn
	writing sync.Mutex // held by who writes to conn

	mu      sync.Mutex
	last    int64
	waiting map[int64]pending
	queue   [][]byte
	bytes   int // of the queue
	failed  error
	wake    chan struct{}
}

type pending struct {
	session target.SessionID
	done    func(result jsonv2.Value, err error)
}

// maxUnsent bounds what waits for a browser that does not read: 128 MiB, eight reads' worth of the largest contents.
const maxUnsent = 128 << 20

var (
	errNotReading = errors.New("it does not read what it is sent")
	errDetached   = errors.New("the page has gone")
)

func newLink(conn Conn) *link {
	return &link{conn: conn, waiting: map[int64]pending{}, wake: make(chan struct{}, 1)}
}

// post sends a command. params is JSON text, or a value that becomes it, or nil. done, unless it is nil, is called with
// the answer by the reader: it must not block.
func (l *link) post(session target.SessionID, method string, params any,
	done func(result jsonv2.Value, err error)) error {
	err := l.enqueue(session, method, params, done)
	l.signal()
	return err
}

// enqueue is post for who calls flush next.
func (l *link) enqueue(session target.SessionID, method string, params any,
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
	l.queue = append(l.queue, command(l.last, session, method, text))
	l.bytes += len(text)
	return nil
}

// command is the text of a command. There is room for a byte behind it.
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

func (l *link) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// fail ends the link. The lock is held.
func (l *link) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.queue = nil
	close(l.wake)
	go l.conn.Close() // it may wait for a write that the browser does not take
}

// write sends what is posted, until the link fails.
func (l *link) write() {
	for range l.wake {
		l.writing.Lock()
		l.drain()
		l.writing.Unlock()
	}
}

// flush sends what is posted, as write does, but at once, which saves a switch of goroutines. It may wait for the
// browser, so that the reader, and who holds a lock that the reader takes, must not call it.
func (l *link) flush() {
	if !l.writing.TryLock() {
		l.signal()
		return
	}
	l.drain()
	l.writing.Unlock()
}

func (l *link) drain() {
	for {
		l.mu.Lock()
		queue := l.queue
		l.queue, l.bytes = nil, 0
		l.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, m := range queue {
			if err := l.conn.Write(m); err != nil {
				l.mu.Lock()
				l.fail(err)
				l.mu.Unlock()
				return
			}
		}
	}
}

// read hands over each event, and each answer to whoever waits for it, and returns why there are no more.
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

// forget ends what waits for a session that is no more.
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
