//go:build !js

package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A relay gives the one pipe of a browser to several clients. Each has a session of its own with the browser as a whole
// (Target.attachToBrowserTarget), in which its messages without a session travel; the sessions below belong to it too.
// So what one has attached to, or switched on, is nothing to another, and is gone from the browser when that client is.
type relay struct {
	browser *frames
	writing sync.Mutex
	pipe    io.Writer

	mu       sync.Mutex
	own      string // the session in which the relay itself speaks
	ready    chan struct{}
	last     int64
	waiting  map[int64]chan answer
	sessions map[string]*client
	ended    bool
}

type answer struct {
	result json.RawMessage
	err    error
}

// maxSessions is how many targets a client may be attached to. A person has 500 tabs, and each costs the browser
// megabytes.
const maxSessions = 1 << 16

var (
	errEnded     = errors.New("the browser has ended")
	errNoMessage = errors.New("it sends something that is not a message")
	errSessions  = errors.New("it is attached to too many targets")
)

// newRelay speaks with a browser on the ends of its pipe. read must run for anything to happen.
func newRelay(from io.Reader, to io.Writer) *relay {
	r := &relay{
		browser: newFrames(from, maxFromBrowser), pipe: to, ready: make(chan struct{}),
		waiting: map[int64]chan answer{}, sessions: map[string]*client{},
	}
	r.browser.skips = true
	return r
}

// read passes on what the browser says, until that ends, and returns why. Then all clients are gone.
func (r *relay) read() error {
	err := r.send([]byte("{\"id\":1,\"method\":\"Target.attachToBrowserTarget\"}\x00"))
	for err == nil {
		var frame []byte
		frame, err = r.browser.next()
		switch {
		case err == nil:
			r.pass(frame)
		case errors.Is(err, errTooLong):
			r.skip(frame)
			err = nil
		}
	}
	r.mu.Lock()
	r.ended = true
	clients := map[*client]bool{}
	for _, c := range r.sessions {
		clients[c] = true
	}
	for _, w := range r.waiting {
		w <- answer{err: errEnded}
	}
	r.waiting = nil
	r.mu.Unlock()
	for c := range clients {
		c.close(errEnded)
	}
	return err
}

// pass hands a frame of the browser to whom it is for.
func (r *relay) pass(frame []byte) {
	h, ok := ofBrowser(frame)
	if !ok {
		return
	}
	r.mu.Lock()
	c := r.sessions[string(h.session)]
	switch string(h.method) {
	case "Target.attachedToTarget":
		if child := sessionIn(frame); c != nil && child != "" {
			if c.sessions[child] = true; len(c.sessions) > maxSessions {
				go c.close(errSessions)
			}
			r.sessions[child] = c
		}
	case "Target.detachedFromTarget":
		child := sessionIn(frame)
		if gone := r.sessions[child]; gone != nil {
			delete(r.sessions, child)
			delete(gone.sessions, child)
		}
	}
	if c == nil {
		r.hear(h, frame)
	}
	r.mu.Unlock()
	if c == nil {
		return
	}
	if string(h.session) == c.session {
		frame = append(frame[:h.from], frame[h.to:]...)
	}
	c.put(frame)
}

// sessionIn returns the session that an event of the domain Target is about.
func sessionIn(frame []byte) string {
	var event struct {
		Params struct {
			SessionID string `json:"sessionId"`
		} `json:"params"`
	}
	if json.Unmarshal(frame[:len(frame)-1], &event) != nil {
		return ""
	}
	return event.Params.SessionID
}

// hear takes an answer to the relay itself. The lock is held. Outside of its session the relay hears the answer to its
// first call, and then nothing: the browser tells there of what clients have said wrongly, under ids of theirs.
func (r *relay) hear(h head, frame []byte) {
	if r.own == "" && h.session == nil && h.id == 1 {
		var first struct {
			Result struct {
				SessionID string `json:"sessionId"`
			} `json:"result"`
		}
		if json.Unmarshal(frame[:len(frame)-1], &first) == nil && first.Result.SessionID != "" {
			r.own = first.Result.SessionID
			close(r.ready)
		}
		return
	}
	w := r.waiting[h.id]
	if w == nil || string(h.session) != r.own {
		return
	}
	delete(r.waiting, h.id)
	var a struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal(frame[:len(frame)-1], &a)
	if err == nil && a.Error != nil {
		err = errors.New(a.Error.Message)
	}
	w <- answer{a.Result, err}
}

// skip stands in for a message of the browser that is too long to be passed on: an answer becomes an error, and an
// event one that has nothing but a member dropped, with how it began and ended.
func (r *relay) skip(edges []byte) {
	h, ok := ofBrowser(edges)
	if !ok {
		return
	}
	r.mu.Lock()
	c := r.sessions[string(h.session)]
	r.mu.Unlock()
	switch {
	case c == nil:
	case h.id != 0:
		r.refuse(c, h, -32000, fmt.Sprintf("The browser's answer is longer than %d bytes.", maxFromBrowser))
	default:
		frame, _ := jsontext.AppendQuote([]byte(`{"method":`), h.method)
		frame, _ = jsontext.AppendQuote(append(frame, `,"dropped":{"begin":`...), edges[:edge])
		frame, _ = jsontext.AppendQuote(append(frame, `,"end":`...), edges[edge:len(edges)-1])
		c.put(r.within(c, h, append(frame, '}')))
	}
}

// refuse answers a client instead of the browser.
func (r *relay) refuse(c *client, h head, code int, message string) {
	c.put(r.within(c, h, fmt.Appendf(nil, `{"id":%d,"error":{"code":%d,"message":%q}`, h.id, code, message)))
}

// within ends a frame with the session that a client knows a message by.
func (r *relay) within(c *client, h head, frame []byte) []byte {
	if h.session != nil && string(h.session) != c.session {
		frame = fmt.Appendf(frame, `,"sessionId":%q`, h.session)
	}
	return append(frame, "}\x00"...)
}

// send writes a frame to the browser, and waits while that does not take it.
func (r *relay) send(frame []byte) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	_, err := r.pipe.Write(frame)
	return err
}

// callTimeout is how long the browser may take for what it does within a millisecond. One with a thousand tabs to
// restore is busy.
const callTimeout = 20 * time.Second

// call runs a command of the browser for the relay itself.
func (r *relay) call(method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(callTimeout)
	defer limit.Stop()
	select {
	case <-r.ready:
	case <-limit.C:
		return nil, fmt.Errorf("%s: the browser does not answer", method)
	}
	answered := make(chan answer, 1)
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return nil, errEnded
	}
	r.last++
	id := r.last
	r.waiting[id] = answered
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, id)
		r.mu.Unlock()
	}()
	frame := fmt.Appendf(nil, "{\"id\":%d,\"sessionId\":%q,\"method\":%q,\"params\":%s}\x00", id, r.own, method, text)
	if err := r.send(frame); err != nil {
		return nil, err
	}
	select {
	case a := <-answered:
		return a.result, a.err
	case <-limit.C:
		return nil, fmt.Errorf("%s: the browser does not answer", method)
	}
}

// serve is the life of a client, from when it has connected. It returns why it ended.
func (r *relay) serve(conn io.ReadWriteCloser, said *frames) error {
	said.limit = maxFromClient
	c := newClient(conn)
	if err := r.attach(c); err != nil {
		c.close(err)
		return err
	}
	go c.write()
	err := r.obey(c, said)
	c.close(err)
	r.detach(c)
	return c.why
}

func (r *relay) attach(c *client) error {
	result, err := r.call("Target.attachToBrowserTarget", struct{}{})
	if err != nil {
		return err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := json.Unmarshal(result, &attached); err != nil || attached.SessionID == "" {
		return errors.New("the browser gives no session")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errEnded
	}
	c.session = attached.SessionID
	c.sessions[c.session] = true
	r.sessions[c.session] = c
	return nil
}

// detach ends what a client has begun in the browser.
func (r *relay) detach(c *client) {
	r.mu.Lock()
	maps.DeleteFunc(r.sessions, func(_ string, of *client) bool { return of == c })
	r.mu.Unlock()
	r.call("Target.detachFromTarget", map[string]string{"sessionId": c.session}) // the sessions below end with it
}

// obey passes on what a client says.
func (r *relay) obey(c *client, said *frames) error {
	insert := []byte(`"sessionId":` + strconv.Quote(c.session) + `,`)
	for {
		frame, err := said.next()
		if err != nil {
			return err
		}
		h, ok := ofClient(frame)
		if !ok {
			return errNoMessage
		}
		switch {
		case h.session == nil:
			at := bytes.IndexByte(frame, '{') + 1
			frame = slices.Concat(frame[:at], insert, frame[at:])
		case !r.has(c, h.session):
			if h.id != 0 {
				r.refuse(c, head{id: h.id}, -32001, "Session with given id not found.")
			}
			continue
		}
		if err := r.send(frame); err != nil {
			return errEnded
		}
	}
}

func (r *relay) has(c *client, session []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[string(session)] == c
}
