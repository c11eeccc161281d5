//go:build !js

// Package hubclient is the agent's side of the MCP session between a gateway and the hub that it has joined.
//
// go-sdk's client makes the handshake, and hears that a list has changed. Lists, reads, tool calls and subscriptions
// go past it, on the same connection under ids of their own. So what a page says goes to the agent as the page wrote
// it. Through go-sdk a read of 1 MB would be decoded and encoded again, and a list would lose most zeros and the
// members that go-sdk's types have no field for (RATIONALE.md has the figures).
//
// It knows of no page and of no agent, and holds its lock for no longer than it takes to note a request: whoever calls
// Request or Close may hold one of its own.
package hubclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge/gateway/mcpconn"
)

// Heard is what a session tells as it hears it. Each is called from one goroutine, in the order of the messages, and
// before anything that the hub sent later is looked at.
type Heard struct {
	// Updated is called for each resources/updated.
	Updated func(uri string)
	// Progressed is called for each progress: go-sdk's handlers run beside each other, and a tool's last words must not
	// come after its result.
	Progressed func(*mcp.ProgressNotificationParams)
	// Sent and Received are called with the text of each message, by whoever sends it or reads it. They must not block.
	Sent, Received func(text []byte)
}

// A Session is an MCP session with a hub.
type Session struct {
	// Client is go-sdk's part of it.
	Client *mcp.ClientSession
	conn   mcpconn.Conn
	out    *mcpconn.Outbox
	heard  Heard

	mu      sync.Mutex
	last    int
	waiting map[string]func(Reply) // by id
	asked   int                    // how many of them the page has been sent
	queued  []queued               // the rest, in order
	over    bool
	why     string // it is over, where that was not the connection's end
}

// maxAsked is how many requests a hub is sent at once; the rest waits here. A session may have 1,000.
const maxAsked = 900

type queued struct {
	id   string
	text []byte
}

// A Reply is the hub's answer to a request of ours.
type Reply struct {
	Result   []byte // the JSON text of the result
	Contents []byte // of its member contents
	Failure  *Failure
}

// A Failure is what a hub, or the transport to it, says went wrong.
type Failure struct {
	Message string
	Data    struct{ Reason string }
}

// ErrGone is the failure of a request whose session has ended.
var ErrGone = &Failure{Message: "the hub is gone"}

var errNoJSON = &Failure{Message: "the hub sent what is no JSON, and was let go"}

// Connect shakes hands over conn, which is the session's from then on, also when it fails. The legacy era is the one
// for a channel that is a session: it takes one request to subscribe, where the modern one takes a listen for each URI,
// of which an engine allows 64.
func Connect(ctx context.Context, client *mcp.Client, conn mcpconn.Conn, heard Heard) (*Session, error) {
	s := &Session{conn: conn, out: mcpconn.NewOutbox(), heard: heard, waiting: map[string]func(Reply){}}
	go s.write()
	cs, err := client.Connect(ctx, (*sdkTransport)(s), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		s.Close()
		return nil, err
	}
	s.Client = cs
	return s, nil
}

// write sends what waits: whoever posts may hold the gateway's lock, and must not block.
func (s *Session) write() {
	for {
		message, err := s.out.Next(context.Background())
		if err != nil {
			return
		}
		if err := s.conn.Write(context.Background(), message); err != nil {
			s.Close()
			return
		}
	}
}

func (s *Session) post(message []byte) bool {
	s.heard.Sent(message)
	return s.out.Push(message)
}

// Request sends a request; done is called once, with the hub's answer or with ErrGone, unless cancel was called
// before. Neither blocks.
func (s *Session) Request(method string, params any, done func(Reply)) (cancel func()) {
	return s.request(method, params, false, done)
}

// List asks for the page of a list at a cursor, "" for the first, and returns the JSON text of the result. It waits
// for no other request, of which a tool call may take ten minutes. One at a time may be asked for.
func (s *Session) List(ctx context.Context, method, cursor string) (result []byte, err error) {
	params := struct {
		Cursor string `json:"cursor,omitempty"`
	}{cursor}
	answer := make(chan Reply, 1)
	cancel := s.request(method, params, true, func(r Reply) { answer <- r })
	select {
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	case r := <-answer:
		if r.Failure != nil {
			return nil, errors.New(r.Failure.Message)
		}
		return r.Result, nil
	}
}

// request is Request, of which the one that is first is sent before what is queued.
func (s *Session) request(method string, params any, first bool, done func(Reply)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id := "w" + strconv.Itoa(s.last) // go-sdk's ids are numbers
	text, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
	if err != nil || s.over {
		go done(Reply{Failure: ErrGone}) // the caller may hold the lock that done takes
		return func() {}
	}
	s.waiting[id] = done
	if first {
		s.send(text)
	} else {
		s.queued = append(s.queued, queued{id, text})
		s.ask()
	}
	return func() {
		if done, asked := s.take(id); done != nil && asked {
			s.post([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + id + `"}}`))
		}
	}
}

// ask sends what is queued, as far as the page may be sent more. It is called with mu held.
func (s *Session) ask() {
	for len(s.queued) > 0 && s.asked < maxAsked {
		next := s.queued[0]
		s.queued = s.queued[1:]
		s.send(next.text)
	}
}

// send is called with mu held.
func (s *Session) send(text []byte) {
	s.asked++
	s.post(text) // if it fails Close answers it
}

// take takes a request away from those that wait, and reports whether the page has been sent it.
func (s *Session) take(id string) (done func(Reply), asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done = s.waiting[id]
	if done == nil {
		return nil, false
	}
	delete(s.waiting, id)
	if i := slices.IndexFunc(s.queued, func(q queued) bool { return q.id == id }); i >= 0 {
		s.queued = slices.Delete(s.queued, i, i+1)
		return done, false
	}
	s.asked--
	s.ask()
	return done, true
}

// Close ends the session. It may be called more than once, and with the gateway's lock held.
func (s *Session) Close() { s.closeFor("", ErrGone) }

// closeFor is Close for a reason, with what those are told who wait.
func (s *Session) closeFor(why string, told *Failure) {
	s.mu.Lock()
	over, waiting := s.over, s.waiting
	s.over, s.waiting, s.queued = true, nil, nil
	if !over {
		s.why = why
	}
	s.mu.Unlock()
	if over {
		return
	}
	s.out.Close(false)
	go func() {
		s.conn.Close()
		for _, done := range waiting {
			done(Reply{Failure: told})
		}
	}()
}

// Reason is why the session is over.
func (s *Session) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.why, "its connection ended")
}

// receive looks at one message of the page and reports whether it was for us; if not it is go-sdk's.
func (s *Session) receive(text []byte) bool {
	m, ok := split(text)
	if !ok {
		return false
	}
	if m.method == "notifications/resources/updated" {
		s.heard.Updated(m.uri)
		return true
	}
	if m.method == "notifications/progress" {
		var p struct {
			Params *mcp.ProgressNotificationParams
		}
		if json.Unmarshal(text, &p) == nil && p.Params != nil {
			s.heard.Progressed(p.Params)
		}
		return true
	}
	if done, _ := s.take(m.id); done != nil {
		done(m.Reply)
		return true
	}
	return len(m.id) > 0 && m.id[0] == 'w' // cancelled meanwhile
}

type incoming struct {
	id, method, uri string
	Reply
}

// split reads what we need of a message, in one pass and without copying a result: an id that is a string, the method,
// the uri of params, the result and its contents, the error.
func split(text []byte) (m incoming, ok bool) {
	d := &splitter{jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true)), text}
	ok = d.members(func(name string) bool {
		switch name {
		case "id":
			return d.str(&m.id)
		case "method":
			return d.str(&m.method)
		case "params":
			return d.members(func(name string) bool {
				if name == "uri" {
					return d.str(&m.uri)
				}
				return d.SkipValue() == nil
			})
		case "result":
			return d.result(&m)
		case "error":
			value, err := d.ReadValue()
			m.Failure = &Failure{}
			// A page may put anything into data; what is no reason is none.
			if json.Unmarshal(value, m.Failure) != nil {
				m.Failure.Data.Reason = ""
			}
			return err == nil
		}
		return d.SkipValue() == nil
	})
	return m, ok
}

// A splitter reads a message's text. Its methods report whether that is JSON so far.
type splitter struct {
	*jsontext.Decoder
	text []byte
}

// members calls each with the name of every member of an object, whose value that reads; what is no object is skipped.
func (d *splitter) members(each func(name string) bool) bool {
	if d.PeekKind() != '{' {
		return d.SkipValue() == nil
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil || !each(name.String()) {
			return false
		}
	}
	_, err := d.ReadToken()
	return err == nil
}

// str reads a string; what is none is skipped.
func (d *splitter) str(into *string) bool {
	if d.PeekKind() != '"' {
		return d.SkipValue() == nil
	}
	t, err := d.ReadToken()
	if err == nil {
		*into = t.String()
	}
	return err == nil
}

// result finds where a result stands in the text, and its contents.
func (d *splitter) result(m *incoming) bool {
	from := d.InputOffset()
	good := d.members(func(name string) bool {
		if name != "contents" {
			return d.SkipValue() == nil
		}
		value, err := d.ReadValue()
		end := d.InputOffset()
		m.Contents = d.text[end-int64(len(value)) : end : end]
		return err == nil
	})
	m.Result = bytes.TrimLeft(d.text[from:d.InputOffset()], " \t\r\n:")
	return good
}

// sdkTransport is the session as go-sdk's client sees it: without what goes beside it.
type sdkTransport Session

func (t *sdkTransport) Connect(context.Context) (mcp.Connection, error) { return t, nil }

func (t *sdkTransport) SessionID() string { return "" }

func (t *sdkTransport) Read(ctx context.Context) (jsonrpc.Message, error) {
	s := (*Session)(t)
	for {
		text, err := s.conn.Read(ctx)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.heard.Received(text)
		if s.receive(text) {
			continue
		}
		m, err := jsonrpc.DecodeMessage(text)
		if err == nil {
			return m, nil
		}
		if !json.Valid(text) {
			// It may have been an answer: whoever waits for that would wait in vain.
			s.closeFor(errNoJSON.Message, errNoJSON)
			return nil, errors.New(errNoJSON.Message)
		}
		// JSON that is no message is nothing.
	}
}

func (t *sdkTransport) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if !(*Session)(t).post(text) {
		return io.ErrClosedPipe
	}
	return nil
}

func (t *sdkTransport) Close() error {
	(*Session)(t).Close()
	return nil
}
