// Package wsconn carries texts by WebSocket: JSON-RPC messages, as a mcpconn.Conn, or frames of a
// page's link.
//
// It also carries notes: small messages between the two ends of the transport. A note is a JSON
// object whose text begins with {"type":"pagewire: and no message or frame can begin with this
// text.
//
// It bounds the cost of a dead or hostile peer: the size of a message, the time to accept one, the
// unsent bytes, and the time until a vanished peer is noticed. The caller decides which peers may
// connect.
package wsconn

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// protocol is the subprotocol that both ends must name.
const protocol = "pagewire.v1"

const (
	// writeTimeout is how long the peer may take to accept a message before it is dropped. A page
	// at a breakpoint is safe: its browser still accepts megabytes.
	writeTimeout = 30 * time.Second
	// pingEvery and pingTimeout bound how long a vanished peer is held: a stopped process, or the
	// peer of a proxy.
	pingEvery, pingTimeout = 20 * time.Second, 10 * time.Second
	// maxUnsent bounds the bytes that Send queues.
	maxUnsent = 32 << 20
	// closeTimeout is how long the peer may take to accept the queue and to answer our close.
	// maxIgnored bounds the bytes that are read from it meanwhile: without it, 60 peers that never
	// stop kept two processors busy.
	closeTimeout = 250 * time.Millisecond
	maxIgnored   = 256 << 10
	// refuseTimeout replaces closeTimeout for a refused peer: one that does not answer can
	// reconnect once a second.
	refuseTimeout = time.Second
)

// ErrTooLong is in the error of Read for a message above Options.MaxMessage, with the limit.
var ErrTooLong = errors.New("a message is too long")

// Options configure a Conn.
type Options struct {
	// MaxMessage is the largest message in bytes. A larger one ends the connection with code 1009
	// and the limit.
	MaxMessage int64
	// Note is called with each note, between two messages, by the reading goroutine. Nil ignores
	// them.
	Note func(c *Conn, note []byte)
	// Room bounds the large messages of several connections together. Nil sets no bound.
	Room *Room
	// Backlog bounds the bytes that Send queues on several connections together. Nil sets no bound.
	Backlog *quota.Backlog[*Conn]
	// Whose is the connection's owner. Room and Backlog add up the bytes of all connections of an
	// owner.
	Whose string
}

// A Conn is a WebSocket as a mcpconn.Conn.
type Conn struct {
	ws     *websocket.Conn
	tcp    *ignoring
	opt    Options
	once   sync.Once
	closed chan struct{}
	alive  *time.Timer // checks that the peer is still there
	// reads is odd while a message is read.
	reads atomic.Int64
	// partial is the message that WritePiece has begun; nil if there is none.
	partial io.WriteCloser

	mu     sync.Mutex
	unsent [][]byte
	bytes  int           // of unsent
	idle   chan struct{} // closed when unsent becomes empty; nil while it is
}

// Accept answers a WebSocket's handshake. If it fails, it has answered the request with the reason.
// The caller checks which peers may connect, including the Origin.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	c := &Conn{opt: o, closed: make(chan struct{})}
	ws, err := websocket.Accept(&hijacker{w, c}, r,
		&websocket.AcceptOptions{Subprotocols: []string{protocol},
			InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	c.run(ws)
	return c, nil
}

// hijacker keeps the TCP connection: only closing that ends the WebSocket without waiting.
type hijacker struct {
	http.ResponseWriter
	c *Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	tcp, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	tcp.SetDeadline(time.Time{}) // the server's limits are for requests
	h.c.tcp = newIgnoring(tcp)
	return h.c.tcp, rw, nil
}

// An ignoring connection stops reading after maxIgnored ignored bytes: Read then blocks until
// Close.
type ignoring struct {
	net.Conn
	ignored atomic.Bool
	bytes   int
	once    sync.Once
	closed  chan struct{}
}

func newIgnoring(c net.Conn) *ignoring { return &ignoring{Conn: c, closed: make(chan struct{})} }

func (c *ignoring) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.ignored.Load() {
		if c.bytes += n; c.bytes > maxIgnored {
			<-c.closed
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (c *ignoring) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Client runs a handshake over an existing connection, for a path of the server at its other end.
// If the handshake fails, Client closes the connection. The response is the server's, or nil; its
// body needs no closing.
func Client(ctx context.Context, over net.Conn, path string, header http.Header,
	o Options) (*Conn, *http.Response,
	error) {
	shy := &shyConn{Conn: newIgnoring(over), spoken: make(chan struct{})}
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return shy, nil
			},
		},
	}
	// The name in the URL has no meaning: the caller has made the connection. A Host in header
	// replaces it.
	ws, response, err := websocket.Dial(ctx, "ws://pagewire"+path,
		&websocket.DialOptions{HTTPClient: &client, HTTPHeader: header, Host: header.Get("Host"),
			Subprotocols: []string{protocol}})
	if err != nil {
		shy.Close()
		return nil, response, err
	}
	c := &Conn{tcp: shy.Conn.(*ignoring), opt: o, closed: make(chan struct{})}
	c.run(ws)
	return c, response, nil
}

// A shyConn reads nothing before its first write: net/http logs a line if a server speaks first.
type shyConn struct {
	net.Conn
	once   sync.Once
	spoken chan struct{}
}

func (c *shyConn) Read(p []byte) (int, error) {
	<-c.spoken
	return c.Conn.Read(p)
}

func (c *shyConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.once.Do(func() { close(c.spoken) })
	return n, err
}

func (c *shyConn) Close() error {
	c.once.Do(func() { close(c.spoken) })
	return c.Conn.Close()
}

func (c *Conn) run(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(-1) // readAll checks the limit: the library's error would have another number
	c.alive = time.AfterFunc(pingEvery, func() { c.check(pingTimeout) })
}

// Limit changes Options.MaxMessage and Options.Whose for later messages. It must not be called
// during a Read.
func (c *Conn) Limit(most int64, whose string) {
	c.mu.Lock() // Send reads whose
	defer c.mu.Unlock()
	c.opt.MaxMessage, c.opt.Whose = most, whose
}

// Notes returns c as a channel of notes.
func (c *Conn) Notes() Notes { return Notes{c} }

// Notes reads notes as messages.
type Notes struct{ c *Conn }

// Read waits for the next note. It fails if a message comes first.
func (n Notes) Read(ctx context.Context) ([]byte, error) { return n.c.ReadNote(ctx) }

// Write sends a note.
func (n Notes) Write(ctx context.Context, note []byte) error { return n.c.Write(ctx, note) }

// Closed is closed when the connection has ended by our Close or because the peer did not answer.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// check ends the connection if the peer answers no ping while one Read waits: otherwise the answer
// may be after unread messages. A timer calls check: a waiting goroutine would cost each idle
// connection 4 KB.
func (c *Conn) check(timeout time.Duration) {
	reads := c.reads.Load()
	if c.Ping(timeout) != nil && reads%2 == 1 && c.reads.Load() == reads {
		c.CloseWith(0, "")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
	default:
		c.alive.Reset(pingEvery)
	}
}

// Ping waits until the peer has answered, the connection ends, or the time is over. Another
// goroutine must be reading.
func (c *Conn) Ping(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return c.ws.Ping(ctx)
}

// notePrefix is the beginning of every note. The senders of notes ensure this.
var notePrefix = []byte(`{"type":"pagewire:`)

// Read waits for the next message, and passes the notes before it to Options.Note. It returns
// an io.EOF when the peer has closed in order. Any error has the reason, and the connection is
// closed.
func (c *Conn) Read(ctx context.Context) ([]byte, error) {
	for {
		text, err := c.next(ctx)
		if err != nil || !bytes.HasPrefix(text, notePrefix) {
			return text, err
		}
		if c.opt.Note != nil {
			c.opt.Note(c, text)
		}
	}
}

// ReadNote waits for a note, which must come before any message. It fails as Read does.
func (c *Conn) ReadNote(ctx context.Context) ([]byte, error) {
	text, err := c.next(ctx)
	if err == nil && !bytes.HasPrefix(text, notePrefix) {
		err = errors.New("the peer did not introduce itself")
	}
	return text, err
}

func (c *Conn) next(ctx context.Context) ([]byte, error) {
	c.opt.Room.leave(c)
	c.reads.Add(1)
	defer c.reads.Add(1)
	kind, r, err := c.ws.Reader(ctx)
	var text []byte
	if err == nil {
		if text, err = c.readAll(r); err == nil {
			c.opt.Room.finish(c)
		} else if c.opt.Room.leave(c) {
			err = ErrNoRoom
		}
	}
	switch {
	case errors.Is(err, ErrNoRoom):
		return nil, err // the connection has ended
	case errors.Is(err, ErrTooLong):
		// Refuse reads the rest of the message for a moment: closing the socket at once would also
		// drop our reason.
		c.Refuse(websocket.StatusMessageTooBig, err.Error())
		return nil, err
	case err != nil:
		c.CloseWith(0, "")
		if code := websocket.CloseStatus(err); code == websocket.StatusNormalClosure ||
			code == websocket.StatusGoingAway || code == websocket.StatusNoStatusRcvd {
			err = fmt.Errorf("%w: %w", io.EOF, err)
		}
		return nil, err
	case kind != websocket.MessageText:
		c.CloseWith(websocket.StatusUnsupportedData, "messages are text")
		return nil, errors.New("a binary message")
	}
	return text, nil
}

// firsts are buffers for messages of unknown length.
var firsts = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// readAll reads a message. Its buffer begins with 4 KiB, enough for most, and doubles.
func (c *Conn) readAll(r io.Reader) ([]byte, error) {
	first := firsts.Get().(*[4 << 10]byte)
	defer firsts.Put(first)
	text := first[:0]
	for {
		if len(text) == cap(text) {
			size := max(cap(text)+1, min(2*cap(text), int(c.opt.MaxMessage)+1))
			if err := c.opt.Room.reserve(c, size); err != nil {
				return nil, err
			}
			text = append(make([]byte, 0, size), text...)
		}
		n, err := r.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > c.opt.MaxMessage:
			return nil, fmt.Errorf("%w; the limit is %d bytes", ErrTooLong, c.opt.MaxMessage)
		case err == io.EOF && cap(text) == len(first):
			return bytes.Clone(text), nil // most have 100 bytes, and would hold a buffer of 4 KiB
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		}
	}
}

// Write sends a message, or a note. If the peer does not accept it within writeTimeout, the
// connection ends.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, message); err != nil {
		c.CloseWith(0, "")
		return err
	}
	return nil
}

// WritePiece sends a piece of a message. Until its last piece, nothing else may be written. It
// fails as Write does.
func (c *Conn) WritePiece(ctx context.Context, piece []byte, last bool) error {
	if c.partial == nil && last {
		return c.Write(ctx, piece)
	}
	// The library's deadline would apply to the whole message, whose writer may take any time.
	late := time.AfterFunc(writeTimeout, func() { c.CloseWith(0, "") })
	defer late.Stop()
	var err error
	if c.partial == nil {
		c.partial, err = c.ws.Writer(ctx, websocket.MessageText)
	}
	if err == nil {
		_, err = c.partial.Write(piece)
	}
	if err == nil && last {
		err = c.partial.Close()
		c.partial = nil
	}
	if err != nil {
		c.CloseWith(0, "")
	}
	return err
}

// Send queues a message and returns at once. It must not be mixed with Write. Above maxUnsent the
// connection ends.
func (c *Conn) Send(message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsent = append(c.unsent, message)
	c.bytes += len(message)
	c.opt.Backlog.Add(c, c.opt.Whose, len(message))
	switch {
	case c.bytes > maxUnsent:
		go c.CloseWith(0, "")
	case c.idle == nil:
		c.idle = make(chan struct{})
		go c.send()
	}
}

// send writes the queue until it is empty.
func (c *Conn) send() {
	for {
		c.mu.Lock()
		list := c.unsent
		c.unsent, c.bytes = nil, 0
		if len(list) == 0 {
			close(c.idle)
			c.idle = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for _, message := range list {
			// after the connection's end the others fail at once
			_ = c.Write(context.Background(), message)
			c.opt.Backlog.Add(c, nil, -len(message))
		}
	}
}

// sent waits until the queue is empty, or for closeTimeout.
func (c *Conn) sent() {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(closeTimeout):
	}
}

// Close ends the connection, telling the peer that this end goes away.
func (c *Conn) Close() error {
	c.CloseWith(websocket.StatusGoingAway, "")
	return nil
}

// CloseWith ends the connection once, with a code of RFC 6455 section 7.4 and a text of at most 123
// bytes. With code 0 the peer is sent no close. It returns within closeTimeout.
func (c *Conn) CloseWith(code websocket.StatusCode, reason string) {
	c.endWithin(closeTimeout, code, reason)
}

// Refuse is CloseWith for a peer that breaks the rules. One that does not answer is closed after a
// second.
func (c *Conn) Refuse(code websocket.StatusCode, reason string) {
	c.endWithin(refuseTimeout, code, reason)
}

func (c *Conn) endWithin(limit time.Duration, code websocket.StatusCode, reason string) {
	c.once.Do(func() {
		defer c.opt.Room.over(c)
		c.mu.Lock()
		close(c.closed)
		c.alive.Stop()
		c.mu.Unlock()
		c.tcp.ignored.Store(true)
		if code == 0 {
			c.tcp.Close()
			c.ws.CloseNow()
			return
		}
		c.sent()
		t := time.AfterFunc(limit, func() { c.tcp.Close() })
		defer t.Stop()
		c.ws.Close(code, reason)
		c.tcp.Close()
	})
}
