//go:build !js

// Package socket brings in the pages that come by themselves, by WebSocket: those with data-gateway in their script
// tag, and those that a browser extension speaks for. One WebSocket is one document, and one link with it.
//
// The browser says whose a page is, in the Origin header, and nobody else does. The page's own word counts only for
// what concerns the page alone, such as its title. Pages of this machine may connect at once; others only if the
// user has allowed their origin, to all agents or to one that is connected. It takes no cookie and no token: a page has
// neither, and cannot forge its origin. A program can forge an origin. Package access, before this one, lets no program
// of another user in where the kernel tells.
//
// The extension speaks for pages of any origin that its user allows. Its worker connects with the extension's
// origin. Before anything is said of a page, both ends prove that they know the secret that `pagewire extension
// install` has made (package proof). The extension's native host has no origin, and connects by a door that only
// this user's programs reach (Host).
//
// They speak the link (package link), one frame a message. The page's hello says its tab and frame, its title, and
// when its window had the focus; for a page of the extension also its origin. If a page names a tab that another
// document is in, it is a duplicate of that tab, with a copy of its sessionStorage: it gets a tab of its own.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
	"github.com/pagewire/pagewire/bridge/gateway/internal/seats"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/gateway/weborigin"
	"github.com/pagewire/pagewire/bridge/link"
)

// Options say whose pages are taken.
type Options struct {
	// Extensions lists the ids of browser extensions that may bring pages of any origin: they ask their user, and prove
	// that they know Secret.
	Extensions []string
	// Secret gives what the extension must prove that it knows. It is asked for each time: the extension
	// may be installed while the gateway runs. Nil, or an error, refuses it.
	Secret func() (string, error)
	// Refused is told of each connection that is refused, for who counts them: "origin" or "proof". May be nil.
	Refused func(reason string, r *http.Request)
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// maxHello bounds what comes before a page is known, and maxFrame a frame from then on, in bytes: LINK.md.
	maxHello, maxFrame = 64 << 10, 17 << 20
	// maxPerOrigin and maxPages bound the documents that are connected. Chromium has 255 WebSockets in all.
	maxPerOrigin, maxPages = 256, 1024
	// helloTimeout is how long a page may take to introduce itself.
	helloTimeout = 10 * time.Second
	maxURL       = 8 << 10
	// room bounds what all pages together have under way, in bytes: two of the largest frames.
	room = 2 * maxFrame
)

// A Handler takes the WebSockets of pages. Mount it at /page.
type Handler struct {
	g *gateway.Gateway
	o Options

	mu      sync.Mutex
	closing bool
	room    *wsconn.Room
	pages   map[*document]bool
	origins map[string]*origin
	gone    sync.WaitGroup

	seats seats.Seats[*document]
}

// A document is one that is connected.
type document struct {
	h    *Handler
	conn *wsconn.Conn
	log  *slog.Logger
	done chan struct{}
	from *origin // whose connection it is
	of   *origin // whose page it is, once that is known: another one where an extension brings it
}

// New returns a Handler that attaches pages to g.
func New(g *gateway.Gateway, o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string, *http.Request) {}
	}
	return &Handler{g: g, o: o, room: wsconn.NewRoom(room), pages: map[*document]bool{}, origins: map[string]*origin{}}
}

// Close ends all connections and takes no more. It returns when they are gone, within a second.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closing = true
	for d := range h.pages {
		go d.conn.CloseWith(websocket.StatusGoingAway, "the gateway goes away")
	}
	h.forget()
	h.mu.Unlock()
	h.gone.Wait()
	return nil
}

// ServeHTTP takes a page, for as long as the context of the request does not end.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.isExtension(r.Header.Get("Origin")) {
		h.take(w, r, true, h.prove)
		return
	}
	h.take(w, r, false, nil)
}

// Host takes pages of any origin, from the extension's native host, whom the browser has told whose they are. It is for
// a door that only this user's programs reach.
func (h *Handler) Host() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.take(w, r, true, nil) })
}

// take takes a page, or the extension, who proves by prove that it is that.
func (h *Handler) take(w http.ResponseWriter, r *http.Request, extension bool,
	prove func(*http.Request, *wsconn.Conn) error) {
	origin := r.Header.Get("Origin")
	if why := h.refuse(origin, extension); why != "" {
		h.o.Refused("origin", r)
		h.o.Log.Warn("refused a page", "origin", origin, "reason", why)
		http.Error(w, why, http.StatusForbidden)
		return
	}
	d := &document{h: h, log: h.o.Log.With("origin", origin), done: make(chan struct{})}
	conn, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxHello, Note: refuseNote, Room: h.room,
		Whose: origin})
	if err != nil {
		return // it has been answered
	}
	d.conn = conn
	away := func() { conn.CloseWith(websocket.StatusGoingAway, "the gateway goes away") }
	defer context.AfterFunc(r.Context(), away)()
	if why := h.enter(d, origin, extension); why != "" {
		d.log.Warn("refused a page", "reason", why)
		conn.Refuse(websocket.StatusTryAgainLater, why)
		return
	}
	defer h.leave(d)
	if prove != nil {
		if err := prove(r, conn); err != nil {
			h.o.Refused("proof", r)
			d.log.Warn("refused a connection that claims to be the extension", "error", err)
			conn.CloseWith(websocket.StatusPolicyViolation, notProved)
			return
		}
	}
	d.serve(origin, extension)
}

const notProved = "it is not proved that this is the extension of the gateway's user: pagewire extension install"

// refuseNote ends a connection on which there is a note where frames are to be.
func refuseNote(c *wsconn.Conn, _ []byte) {
	// not here: who reads waits for it
	go c.CloseWith(websocket.StatusPolicyViolation, "a note where the link's frames are to be")
}

// prove has the extension and this end prove to each other that they know the secret.
func (h *Handler) prove(r *http.Request, conn *wsconn.Conn) error {
	if h.o.Secret == nil {
		return errors.New("there is no secret")
	}
	secret, err := h.o.Secret()
	if err != nil {
		return err
	}
	ctx, end := context.WithTimeout(context.Background(), helloTimeout)
	defer end()
	hello, err := conn.ReadNote(ctx)
	if err != nil {
		return err
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr) // net/http has put it there
	return proof.Accept(ctx, conn.Notes(), hello, secret, local.String())
}

func (h *Handler) isExtension(origin string) bool {
	for _, id := range h.o.Extensions {
		if origin == "chrome-extension://"+id {
			return true
		}
	}
	return false
}

// refuse says why pages of an origin may not connect, and what to do; or nothing.
func (h *Handler) refuse(origin string, extension bool) string {
	switch {
	case extension:
		return "" // it says later whose page it is
	case origin == "":
		return "Only pages connect here, from a browser, which sends an Origin."
	case origin == "null":
		return "A page of no origin of its own, such as a file or a sandboxed frame, may not connect."
	}
	allowed := weborigin.IsLoopback(origin)
	for _, pattern := range h.g.AllowedOrigins() {
		allowed = allowed || weborigin.Match(pattern, origin)
	}
	switch {
	case strings.HasPrefix(origin, "chrome-extension://"):
		return "This extension is not one that the gateway knows."
	case !allowed:
		return "Pages of " + origin + " may not connect: start the gateway with --allow-origin " + origin +
			" if they should."
	case !h.g.Admits(origin):
		return "Pages of " + origin + " are not served: the gateway was started so."
	}
	return ""
}

// enter returns why one more document cannot be taken, or "".
func (h *Handler) enter(d *document, origin string, extension bool) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closing:
		return "the gateway goes away"
	case len(h.pages) >= maxPages:
		return fmt.Sprintf("the gateway has %d documents, and takes no more", maxPages)
	}
	from := h.hold(origin)
	if from.pages >= maxPerOrigin && !extension {
		h.release(from)
		return fmt.Sprintf("the gateway has %d documents of %s, and takes no more", maxPerOrigin, origin)
	}
	from.pages++
	d.from = from
	h.pages[d] = true
	h.gone.Add(1)
	return ""
}

func (h *Handler) leave(d *document) {
	d.conn.Close()
	h.mu.Lock()
	delete(h.pages, d)
	d.from.pages--
	h.release(d.from)
	if d.of != nil {
		h.release(d.of)
	}
	h.mu.Unlock()
	close(d.done)
	h.gone.Done()
}

// serve is the life of a document.
func (d *document) serve(origin string, extension bool) {
	if !extension && !d.turn(d.from) {
		return
	}
	first, about, ok := d.introduced()
	if !ok {
		d.h.lets(d.from)
		return
	}
	info := gateway.PageInfo{Frame: about.Frame, Origin: origin, Transport: "websocket", Focused: about.Focused}
	if extension {
		info.Origin, info.Transport = about.Origin, "extension"
		if u, err := url.Parse(about.Origin); err != nil || u.Scheme != "https" && u.Scheme != "http" ||
			u.Scheme+"://"+u.Host != about.Origin || !d.h.g.Admits(about.Origin) {
			d.log.Warn("refused an extension's page", "page", about.Origin)
			d.conn.CloseWith(websocket.StatusPolicyViolation, "pages of this origin are not served")
			return
		}
	}
	d.h.mu.Lock()
	d.of = d.h.hold(info.Origin)
	d.h.mu.Unlock()
	if extension && !d.turn(d.of) {
		return
	}
	d.conn.Limit(maxFrame, info.Origin)
	info.URL = info.Origin + "/"
	if strings.HasPrefix(about.URL, info.URL) {
		info.URL = about.URL
	}
	if about.Title != nil {
		info.Title = *about.Title
	}
	// An id is unique among the pages of an origin. Nobody learns another's, but nothing may depend on that.
	seat, given := d.h.seats.Sit(d, seats.Seat{Of: info.Origin, Tab: about.Tab, Frame: about.Frame}, nil)
	defer d.h.seats.Rise(d, seat)
	info.Tab, info.Given = "page "+info.Origin+" "+seat.Tab, given
	page, err := d.h.g.Attach(info, d.send)
	if err != nil {
		d.log.Warn("a page that connected could not be attached", "url", info.URL, "error", err)
		return
	}
	defer page.Lost("its connection ended")
	d.hear(page, first)
}

// turn waits until a page of an origin is heard, and reports false if it is not.
func (d *document) turn(o *origin) bool {
	pause, why := d.h.wait(o)
	if why != "" {
		d.log.Debug("refused a page", "reason", why)
		d.conn.Refuse(websocket.StatusTryAgainLater, why)
		return false
	}
	if pause == 0 {
		return true
	}
	select {
	case <-time.After(pause):
		return true
	case <-d.conn.Closed():
		return false
	}
}

// introduced takes the document's hello. Where ok is false that was none, and the connection has ended.
func (d *document) introduced() (first []byte, about link.About, ok bool) {
	limited, end := context.WithTimeout(context.Background(), helloTimeout)
	defer end()
	first, err := d.conn.Read(limited)
	about, ok = link.Parse(first, link.Limits{}).Hello()
	if err == nil && ok && seats.IsNamed(about.Tab, about.Frame) {
		return first, about, true
	}
	d.log.Warn("refused a page that did not introduce itself", "error", err)
	if errors.Is(err, wsconn.ErrTooLong) {
		d.h.g.CountRefused(err.Error())
	}
	d.conn.Refuse(websocket.StatusPolicyViolation, "the first message is to be the link's hello, with the page's tab "+
		"and frame")
	return nil, about, false
}

// hear hands over what the document says, until its end.
func (d *document) hear(page *gateway.Page, frame []byte) {
	var err error
	for ; err == nil; frame, err = d.conn.Read(context.Background()) {
		if d.receive(page, frame) != nil {
			d.h.lets(d.of)
			<-d.conn.Closed() // when it has been told why
			return
		}
	}
	switch {
	case err == io.EOF:
		return
	case errors.Is(err, wsconn.ErrTooLong):
		d.h.lets(d.of)
		page.Refuse(err.Error())
	case errors.Is(err, wsconn.ErrNoRoom):
		d.h.lets(d.of)
		d.h.g.CountRefused(err.Error())
	}
	d.log.Info("a page's connection failed", "error", err)
}

// receive hands a frame over when it is the origin's turn. Calls wait besides until the origin may be heard. What
// agents have asked for does not: nobody holds the turn while he waits.
func (d *document) receive(page *gateway.Page, frame []byte) error {
	o := d.of
	calls := len(frame) > 0 && frame[0] == '['
	if calls {
		if !o.await(d.conn.Closed()) {
			return nil
		}
		defer o.awaited()
	}
	o.turn.Lock()
	defer o.turn.Unlock()
	before := page.Worked()
	err := page.Receive(frame)
	if calls {
		now := time.Now()
		o.rests = now.Add(o.spend(now, page.Worked()-before))
	}
	return err
}

func (d *document) send(frame []byte) {
	if frame == nil {
		go d.conn.Refuse(websocket.StatusGoingAway, "") // not here: it waits for what is before
		return
	}
	d.conn.Send(frame)
}

// Ping and End are for who claims its seat.
func (d *document) Ping(within time.Duration) error { return d.conn.Ping(within) }

func (d *document) End() {
	d.conn.Close()
	<-d.done
}
