package extension

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/retry"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
)

// Options configure Serve.
type Options struct {
	// Connect connects to the daemon. Wait returns when there is one.
	Connect func(context.Context) (net.Conn, error)
	Wait    func(context.Context) error
	// Version and Secret are sent to the extension. MakeSecret returns the secret.
	Version, Secret string
	// Log receives the log. Default none.
	Log *slog.Logger
}

const (
	// maxQueued bounds the bytes that wait for the daemon, for each document, and maxQueuedAll for
	// all. The extension queues at most 2 Mi characters here, of three bytes at most.
	maxQueued, maxQueuedAll = 8 << 20, 256 << 20
	// maxFrame bounds a frame of the daemon: a tool's arguments of 4 MiB, quoted twice.
	maxFrame = 48 << 20
	// firstPause and longestPause are the first and the longest pause between two attempts to reach
	// the daemon.
	firstPause, longestPause = 20 * time.Millisecond, time.Second
	// refusedPause is the pause after a daemon has refused a document: its options do not change.
	refusedPause = 30 * time.Second
	// farewellTimeout is how long the daemon may take to accept the queue of a document that has
	// gone.
	farewellTimeout = time.Second
	// dialTimeout bounds an attempt.
	dialTimeout = 3 * time.Second
)

// A shared is what all documents of a host use. It guards itself.
type shared struct {
	o       Options
	out     writer
	queued  atomic.Int64  // bytes that wait for the daemon, of all documents
	waiting chan struct{} // full while a document waits for a daemon
}

// A document is one of the extension's open documents.
type document struct {
	h      *shared
	id     int64
	origin string
	log    *slog.Logger
	cancel context.CancelFunc
	wake   chan struct{}

	mu     sync.Mutex
	over   bool    // no further session will begin
	last   int64   // the number of the last session
	live   bool    // the last session is open
	queue  []piece // for the daemon
	queued int     // its bytes
}

// A piece is a part of a frame for the daemon.
type piece struct {
	text []byte
	more bool  // others follow
	ack  int64 // sent to the extension when the daemon has accepted the piece
}

// push queues a piece for the daemon. It reports whether there was room.
func (d *document) push(m message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live || m.Session != d.last {
		return true // of a session that has just ended
	}
	if d.queued+len(m.Text) > maxQueued {
		return false
	}
	d.queue = append(d.queue, piece{[]byte(m.Text), m.More, m.Ack})
	d.queued += len(m.Text)
	d.h.queued.Add(int64(len(m.Text)))
	d.signal()
	return true
}

func (d *document) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// waits is how many bytes wait for the daemon.
func (d *document) waits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued
}

// next takes a piece off the queue. The piece counts until taken is called. over says that no more
// will come.
func (d *document) next() (p piece, ok, over bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return piece{}, false, d.over
	}
	p = d.queue[0]
	d.queue[0] = piece{}
	d.queue = d.queue[1:]
	return p, true, false
}

func (d *document) taken(bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queued -= bytes
	d.h.queued.Add(int64(-bytes))
}

// begin starts a new session, and returns its number.
func (d *document) begin() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	d.live = true
	return d.last
}

// endSession drops the queue of a session that is over.
func (d *document) endSession() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.h.queued.Add(int64(-d.queued))
	d.live, d.queue, d.queued = false, nil, 0
}

// leave ends the document as soon as the daemon has accepted its queue.
func (d *document) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if !d.live {
		d.cancel()
		return
	}
	d.signal()
	time.AfterFunc(farewellTimeout, d.cancel)
}

// ended reports whether no further session will begin.
func (d *document) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// run serves a document: one session with the daemon after the other.
func (d *document) run(ctx context.Context) {
	defer d.cancel()
	for range retry.Attempts(ctx, firstPause, longestPause) {
		if d.h.wait(ctx); ctx.Err() != nil {
			return
		}
		begun, refused, err := d.relay(ctx)
		if ctx.Err() != nil || d.ended() {
			return
		}
		reason := ""
		if refused {
			reason = err.Error()
			d.log.Warn("the daemon refuses a document", "error", err)
		}
		if begun || refused {
			if d.h.out.write(message{Type: "close", ID: d.id, Reason: reason}) != nil {
				return
			}
		}
		if refused {
			retry.Sleep(ctx, refusedPause)
		}
	}
}

// wait returns when a daemon runs, or at once if the system cannot report that. One document waits
// at a time: each wait takes an instance of inotify, and Linux gives a user 128.
func (h *shared) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case h.waiting <- struct{}{}:
	}
	defer func() { <-h.waiting }()
	if err := h.o.Wait(ctx); err != nil && ctx.Err() == nil {
		h.o.Log.Debug("a daemon cannot be waited for", "reason", err)
	}
}

// dial connects to the daemon's socket for pages.
func (d *document) dial(ctx context.Context) (c *wsconn.Conn, refused bool, err error) {
	ctx, end := context.WithTimeout(ctx, dialTimeout)
	defer end()
	over, err := d.h.o.Connect(ctx)
	if err != nil {
		return nil, false, err
	}
	c, response, err := wsconn.Client(ctx, over, "/page", nil, wsconn.Options{MaxMessage: maxFrame})
	if err != nil && response != nil && response.StatusCode == http.StatusForbidden {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, true, errors.New(strings.TrimSpace(string(text)))
	}
	return c, false, err
}

// relay is one connection with the daemon. It reports whether the session has begun, and whether
// the daemon has refused it.
func (d *document) relay(ctx context.Context) (begun, refused bool, err error) {
	conn, refused, err := d.dial(ctx)
	if err != nil {
		return false, refused, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// From here on the extension's frames belong to this session.
	session := d.begin()
	defer d.endSession()
	if err := d.h.out.write(message{Type: "open", ID: d.id, Session: session}); err != nil {
		return false, false, err
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	ended := make(chan struct{})
	defer close(ended)
	writing.Go(func() { d.send(ctx, conn, session, ended) })
	for {
		frame, err := conn.Read(ctx)
		if err == nil {
			err = d.h.out.frame(d.id, frame)
		}
		if err != nil {
			conn.Close()
			code := websocket.CloseStatus(err)
			return true, code == websocket.StatusPolicyViolation ||
				code == websocket.StatusMessageTooBig, err
		}
	}
}

// send passes the queue to the daemon, until the session has ended. A document that leaves is done
// when the queue is empty.
func (d *document) send(ctx context.Context, conn *wsconn.Conn, session int64,
	ended <-chan struct{}) {
	for {
		p, ok, over := d.next()
		switch {
		case ok:
			err := conn.WritePiece(ctx, p.text, !p.more)
			d.taken(len(p.text))
			if err == nil && p.ack > 0 {
				err = d.h.out.write(message{Type: "taken", ID: d.id, Session: session, Ack: p.ack})
			}
			if err != nil {
				return // the reader notices
			}
			continue
		case over: // the page has ended, and not the worker
			conn.CloseWith(websocket.StatusNormalClosure, "")
			return
		}
		select {
		case <-ended:
			return
		case <-d.wake:
		}
	}
}
