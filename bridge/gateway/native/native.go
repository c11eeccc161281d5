//go:build !js

// Package native brings in the pages of the browser extension: it is the process that the browser starts for the extension, and
// speaks with it over standard input and output.
//
// It relays and does nothing else: for each document that the extension opens it connects with the hub's /page as the document
// would, and both prove that they know the extension's secret, so that the hub believes whose the document is, and nothing of it is
// said to a program that has taken the port; and again when another process has become the hub. What the
// extension says of documents has been learnt from the browser, not from pages; it is passed on all the same as it would be from
// anybody, and bounded. A message that is too long or makes no sense is refused, counted and logged, and nothing else comes of it.
//
// The messages are JSON objects with a type. From the extension:
//
//	open     id, tab, frame, title, url, origin, focused: there is a document; as in package socket
//	note     id, title, focused: they have changed
//	message  id, session, text, more: an MCP message of the document; with more, a piece of one
//	close    id, gone: the document has gone, or its session has; with gone because the user has withdrawn what was allowed
//
// To it:
//
//	hello    version, secret: the process runs; by the secret the extension can do without it, over a WebSocket of its own
//	open     id, session: a session with the document begins; what was before is over. Messages of others are ignored
//	message  id, text, more: an MCP message for it; pieces are at most 1 MiB of JSON, which is what the browser takes
//	close    id, reason: the session is over; another one may follow
//	refused  reason, count: a message of the extension's was refused
//	failed   reason: the process ends, since it cannot serve
package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
	"github.com/pagewire/pagewire/bridge/gateway/internal/secret"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

const (
	// ExtensionID is that of our extension: it follows from the key in its manifest.
	ExtensionID = "cfcnkimmciafamoogfahooifkmmegfho"
	// ExtensionOrigin is where its own pages and its worker are.
	ExtensionOrigin = "chrome-extension://" + ExtensionID
	// HostName is the name under which the browser knows this process.
	HostName = "com.pagewire.host"
)

// SecretFile is where the extension's secret is kept: beside the token.
func SecretFile(tokenFile string) string { return filepath.Join(filepath.Dir(tokenFile), "extension") }

// Secret gives what the extension and this user's gateways prove to each other that they know. It fails if there is none yet, or
// if something is wrong with its file.
func Secret(tokenFile string) (string, error) {
	known, err := secret.Load(SecretFile(tokenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("the extension is not installed: pagewire extension install")
	}
	return known, fileError(err)
}

// MakeSecret gives Secret, and makes it where there is none.
func MakeSecret(tokenFile string) (string, error) {
	known, err := secret.Make(SecretFile(tokenFile))
	return known, fileError(err)
}

func fileError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the extension's secret: %w", err)
}

// Options say what a host relays to.
type Options struct {
	// Addr is where the hub listens, host and port.
	Addr string
	// Secret is the extension's: MakeSecret gives it.
	Secret string
	// Version is what the extension is told.
	Version string
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// maxDocuments and maxPerOrigin bound the documents that are open, as package socket does.
	maxDocuments, maxPerOrigin = 1024, 256
	// maxQueued bounds what waits for the hub to take it, in bytes, for each document: the largest message, twice.
	maxQueued = 64 << 20
	// maxMessage bounds a message of the hub.
	maxMessage = 48 << 20
	// firstPause and longestPause are those between two attempts to reach the hub.
	firstPause, longestPause = 20 * time.Millisecond, time.Second
	// refusedPause is that after a hub has refused a document: its options do not change.
	refusedPause = 30 * time.Second
	// lasting is how long a session must have been for the next attempt to be made soon.
	lasting = time.Second
	// farewellTimeout is how long the hub may take to hear that a document will not come back.
	farewellTimeout = time.Second
	// dialTimeout bounds an attempt.
	dialTimeout = 3 * time.Second
)

type message struct {
	Type    string   `json:"type"`
	ID      int64    `json:"id,omitempty"`
	Session int64    `json:"session,omitempty"`
	Text    string   `json:"text,omitempty"`
	More    bool     `json:"more,omitempty"`
	Gone    bool     `json:"gone,omitempty"`
	Tab     string   `json:"tab,omitempty"`
	Frame   string   `json:"frame,omitempty"`
	Title   *string  `json:"title,omitempty"`
	URL     string   `json:"url,omitempty"`
	Origin  string   `json:"origin,omitempty"`
	Focused *float64 `json:"focused,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Version string   `json:"version,omitempty"`
	Secret  string   `json:"secret,omitempty"`
	Count   int      `json:"count,omitempty"`
}

// A note is what package socket takes.
type note struct {
	Type    string   `json:"type"` // first: it makes the text a note
	Tab     string   `json:"tab,omitempty"`
	Frame   string   `json:"frame,omitempty"`
	Title   *string  `json:"title,omitempty"`
	URL     string   `json:"url,omitempty"`
	Origin  string   `json:"origin,omitempty"`
	Focused *float64 `json:"focused,omitempty"`
	Gone    bool     `json:"gone,omitempty"`
}

// A host is one run of Serve.
type host struct {
	o         Options
	out       writer
	documents map[int64]*document // of the reader alone
	origins   map[string]int
	refused   int
	running   sync.WaitGroup
}

// Serve relays until in ends, which is nil, or ctx does, which is its error, or the browser takes nothing more. in should be closed
// by the caller when ctx ends: a read of standard input cannot be ended otherwise.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &host{o: o, out: writer{w: out}, documents: map[int64]*document{}, origins: map[string]int{}}
	defer h.running.Wait()
	defer cancel()
	if err := h.out.write(message{Type: "hello", Version: o.Version, Secret: o.Secret}); err != nil {
		return fmt.Errorf("the browser: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.read(ctx, newReader(in)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fail tells the extension why there will be no Serve.
func Fail(out io.Writer, reason string) {
	w := writer{w: out}
	_ = w.write(message{Type: "failed", Reason: reason}) // it has gone
}

func (h *host) read(ctx context.Context, in *reader) error {
	defer func() {
		for id := range h.documents {
			h.close(id)
		}
	}()
	for {
		text, err := in.next()
		switch {
		case errors.Is(err, errTooLong):
			h.refuse(err.Error())
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			h.refuse("no message of the extension: " + err.Error())
			continue
		}
		if why := h.take(ctx, m); why != "" {
			h.refuse(why)
		}
	}
}

func (h *host) refuse(why string) {
	h.refused++
	h.o.Log.Warn("refused a message of the browser", "reason", why, "count", h.refused)
	_ = h.out.write(message{Type: "refused", Reason: why, Count: h.refused}) // the reader finds out
}

// take does what a message says. It returns why it does not, or "".
func (h *host) take(ctx context.Context, m message) string {
	d := h.documents[m.ID]
	if m.Type == "open" {
		u, err := url.Parse(m.Origin)
		switch {
		case d != nil:
			return "the document is open already"
		case m.ID <= 0:
			return "a document's number is above 0"
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Scheme+"://"+u.Host != m.Origin:
			return "an origin of no web page"
		case len(h.documents) >= maxDocuments:
			return fmt.Sprintf("%d documents are open, and no more are taken", maxDocuments)
		case h.origins[m.Origin] >= maxPerOrigin:
			return fmt.Sprintf("%d documents of %s are open, and no more are taken", maxPerOrigin, m.Origin)
		}
		h.open(ctx, m)
		return ""
	}
	if d == nil {
		if m.Type == "close" || m.Type == "message" || m.Type == "note" {
			return "the document is not open"
		}
		return "an unknown type"
	}
	switch m.Type {
	case "note":
		d.describe(m)
	case "message":
		if !d.pieces(m) {
			h.close(m.ID)
			return "a document's messages come faster than the hub takes them, and it was closed"
		}
	case "close":
		h.forget(m.ID)
		if m.Gone {
			d.farewell()
		} else {
			d.cancel()
		}
	default:
		return "an unknown type"
	}
	return ""
}

func (h *host) open(ctx context.Context, m message) {
	ctx, cancel := context.WithCancel(ctx)
	d := &document{h: h, id: m.ID, origin: m.Origin, cancel: cancel, wake: make(chan struct{}, 1), log: h.o.Log.With("origin", m.Origin)}
	d.hello = note{Type: "pagewire:page", Tab: m.Tab, Frame: m.Frame, Title: m.Title, URL: m.URL, Origin: m.Origin, Focused: m.Focused}
	h.documents[m.ID] = d
	h.origins[m.Origin]++
	h.running.Go(func() { d.run(ctx) })
}

func (h *host) close(id int64) {
	d := h.documents[id]
	h.forget(id)
	d.cancel()
}

// forget takes a document off the list.
func (h *host) forget(id int64) {
	d := h.documents[id]
	delete(h.documents, id)
	if h.origins[d.origin]--; h.origins[d.origin] == 0 {
		delete(h.origins, d.origin)
	}
}

// A document is one that the extension has opened.
type document struct {
	h      *host
	id     int64
	origin string
	log    *slog.Logger
	cancel context.CancelFunc
	wake   chan struct{}

	mu     sync.Mutex
	hello  note
	over   bool     // there is to be no further session
	last   int64    // session
	live   bool     // it is open
	piece  []byte   // of a message that is not whole
	queue  [][]byte // for the hub
	queued int
}

// describe takes what has changed.
func (d *document) describe(m message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := note{Type: "pagewire:page", Title: m.Title, Focused: m.Focused}
	if m.Title != nil {
		d.hello.Title = m.Title
	}
	if m.Focused != nil {
		d.hello.Focused = m.Focused
	}
	if text, err := json.Marshal(changed); err == nil && d.live {
		d.push(text)
	}
}

// farewell tells the hub that the document will not come back, and ends it.
func (d *document) farewell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	text, err := json.Marshal(note{Type: "pagewire:page", Gone: true})
	if err != nil || !d.live || !d.push(text) {
		d.cancel()
		return
	}
	time.AfterFunc(farewellTimeout, d.cancel) // the hub ends the session at once
}

// ended reports whether there is to be no further session.
func (d *document) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// pieces takes a message, or a piece of one. It reports whether there was room.
func (d *document) pieces(m message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live || m.Session != d.last {
		d.piece = nil
		return true // of a session that has just ended
	}
	if d.piece = append(d.piece, m.Text...); len(d.piece) > maxQueued {
		return false
	}
	if m.More {
		return true
	}
	text := d.piece
	d.piece = nil
	return d.push(text)
}

// push queues a text for the hub. The lock is held.
func (d *document) push(text []byte) bool {
	if d.queued += len(text); d.queued > maxQueued {
		return false
	}
	d.queue = append(d.queue, text)
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return true
}

func (d *document) take() [][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.queue
	d.queue, d.queued = nil, 0
	return queue
}

// run is the life of a document: one session with the hub after the other.
func (d *document) run(ctx context.Context) {
	defer d.cancel()
	pause := firstPause
	for ctx.Err() == nil {
		start := time.Now()
		begun, refused, err := d.session(ctx)
		if ctx.Err() != nil || d.ended() {
			return
		}
		if begun && time.Since(start) > lasting {
			pause = firstPause
		}
		wait, reason := pause, ""
		if refused {
			wait, reason = refusedPause, err.Error()
			d.log.Warn("the hub refuses a document", "error", err)
		}
		if begun || refused {
			if d.h.out.write(message{Type: "close", ID: d.id, Reason: reason}) != nil {
				return
			}
		}
		pause = min(2*pause, longestPause)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// session is one connection with the hub. It reports whether that has begun, and whether the hub has refused it.
func (d *document) session(ctx context.Context) (begun, refused bool, err error) {
	limited, end := context.WithTimeout(ctx, dialTimeout)
	defer end()
	conn, response, err := wsconn.Dial(limited, d.h.o.Addr, "/page", nil, wsconn.Options{MaxMessage: maxMessage})
	if err != nil {
		if response != nil && (response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized) {
			text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
			return false, true, errors.New(strings.TrimSpace(string(text)))
		}
		return false, false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := proof.Dial(limited, conn.Notes(), d.h.o.Secret, conn.RemoteAddr()); err != nil {
		strange := errors.Is(err, proof.ErrNotProved)
		if strange {
			err = fmt.Errorf("what listens at %s does not prove that it is a pagewire serve of this user", d.h.o.Addr)
		}
		return false, strange || websocket.CloseStatus(err) == websocket.StatusPolicyViolation, err
	}
	d.mu.Lock()
	hello, err := json.Marshal(d.hello)
	d.mu.Unlock()
	if err == nil {
		err = conn.Write(ctx, hello)
	}
	if err == nil {
		// From here on what the extension says belongs to this session.
		d.mu.Lock()
		d.last++
		session := d.last
		d.live = true
		d.mu.Unlock()
		defer func() {
			d.mu.Lock()
			d.live, d.piece, d.queue, d.queued = false, nil, nil, 0
			d.mu.Unlock()
		}()
		err = d.h.out.write(message{Type: "open", ID: d.id, Session: session})
	}
	if err != nil {
		return false, false, err
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	ended := make(chan struct{})
	defer close(ended)
	writing.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-d.wake:
			}
			for _, text := range d.take() {
				if conn.Write(ctx, text) != nil {
					return // the reader finds out
				}
			}
		}
	})
	for {
		text, err := conn.Read(ctx)
		if err == nil {
			err = d.h.out.text(d.id, text)
		}
		if err != nil {
			conn.Close()
			return true, websocket.CloseStatus(err) == websocket.StatusPolicyViolation, err
		}
	}
}
