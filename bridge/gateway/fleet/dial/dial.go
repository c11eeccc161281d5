//go:build !js

// Package dial takes the pages that dial in to a node, by WebSocket: one is one document, and one link with it.
//
// A page's first message is a note with its ticket, {"type":"pagewire:ticket","ticket":"…"}: package tickets says whose
// page that is, and the Origin header, which a page cannot forge, must be the ticket's. The link's hello comes next.
// Before a ticket ends the page sends another, of the same user, in the same way; without one its connection ends with
// it. A node that is to end says {"type":"pagewire:elsewhere"}: the page then connects anew, to whatever node there is.
//
// It takes no cookie, and uses nothing of a URL but the path. What a page says is bounded before it is known whose
// page it is, and before it is parsed. This package never looks at it.
package dial

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway/fleet"
	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets"
	"github.com/pagewire/pagewire/bridge/gateway/internal/seats"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/link"
)

// Options say who takes the pages.
type Options struct {
	Node    *fleet.Node
	Tickets *tickets.Verifier
	// Log receives what happens. Default none.
	Log *slog.Logger
}

const (
	// maxFirst bounds the ticket and the hello, and maxFrame a frame from then on, in bytes: LINK.md.
	maxFirst, maxFrame = 64 << 10, 17 << 20
	// firstTimeout is how long a page may take to introduce itself.
	firstTimeout = 10 * time.Second
	// room bounds what all pages together have under way, in bytes: eight of the largest frames.
	room = 8 * maxFrame
	// maxUnsent bounds, in bytes, what waits for all pages that do not take what they are sent: a call of a tool may
	// have 4 MiB of arguments, and one page 32 MiB waiting.
	maxUnsent = 256 << 20
	// maxStrangers bounds the connections that have not said yet whose they are. Where there is one more the oldest
	// goes: a page says it at once, and were the newest refused, 410 a second that are silent would keep all pages out.
	maxStrangers = 4096
	// A page may say fewTickets at once, and from then on one each ticketPause: each costs a signature's verification.
	fewTickets, ticketPause = 5, 4 * time.Second
	// drainPace is how many pages are told each time, every drainPause, to go elsewhere: 1,000 a second.
	drainPace, drainPause = 50, 50 * time.Millisecond
)

const (
	noteTicket    = "pagewire:ticket"
	noteElsewhere = `{"type":"pagewire:elsewhere"}`
)

// A Handler takes the WebSockets of pages.
type Handler struct {
	o       Options
	room    *wsconn.Room
	backlog *wsconn.Backlog

	mu        sync.Mutex
	draining  bool
	most      int         // strangers
	strangers []*document // in order of coming
	pages     map[*document]bool
	gone      sync.WaitGroup

	seats seats.Seats[*document]
}

// A document is one that is connected.
type document struct {
	h      *Handler
	conn   *wsconn.Conn
	origin string
	user   string
	epoch  string        // of its hello
	done   chan struct{} // closed when it has gone
	// said is how many tickets, since began.
	said  int
	began time.Time

	mu   sync.Mutex
	ends *time.Timer // with the ticket
}

// New returns a Handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Handler{o: o, room: wsconn.NewRoom(room), backlog: wsconn.NewBacklog(maxUnsent),
		most: maxStrangers, pages: map[*document]bool{}}
}

// Drain tells the pages to go elsewhere, and takes no more. It returns when they are gone, or when ctx ends: those that
// are left then are cut off.
func (h *Handler) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	list := make([]*document, 0, len(h.pages))
	for d := range h.pages {
		list = append(list, d)
	}
	h.mu.Unlock()
	for i, d := range list {
		d.conn.Send([]byte(noteElsewhere))
		if i%drainPace == drainPace-1 {
			select {
			case <-time.After(drainPause):
			case <-ctx.Done():
			}
		}
	}
	done := make(chan struct{})
	go func() {
		h.gone.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	for _, d := range list {
		go d.conn.CloseWith(websocket.StatusGoingAway, "the node goes away")
	}
	<-done
}

// ServeHTTP takes a page, until it has gone.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" {
		h.o.Node.Refuse("page: no origin")
		http.Error(w, "Only pages connect here, from a browser, which sends an Origin.", http.StatusForbidden)
		return
	}
	d := &document{h: h, origin: origin, began: time.Now(), done: make(chan struct{})}
	conn, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxFirst, Note: d.note, Room: h.room,
		Backlog: h.backlog, Whose: origin})
	if err != nil {
		return // it has been answered
	}
	d.conn = conn
	defer conn.Close()
	if !h.enter(d) {
		conn.Refuse(websocket.StatusTryAgainLater, "the node goes away")
		return
	}
	defer h.leave(d)
	d.serve()
}

// enter reports whether one more is taken.
func (h *Handler) enter(d *document) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return false
	}
	if len(h.strangers) >= h.most {
		oldest := h.strangers[0]
		h.strangers = h.strangers[1:]
		h.o.Node.Refuse("page: strangers")
		go oldest.conn.CloseWith(websocket.StatusTryAgainLater, "too many connections have not said yet whose they are")
	}
	h.strangers = append(h.strangers, d)
	h.pages[d] = true
	h.gone.Add(1)
	return true
}

// known counts one stranger less, if it still is one.
func (h *Handler) known(d *document) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.strangers, d); i >= 0 {
		h.strangers = slices.Delete(h.strangers, i, i+1)
	}
}

func (h *Handler) leave(d *document) {
	d.conn.Close()
	h.known(d)
	d.mu.Lock()
	if d.ends != nil {
		d.ends.Stop()
	}
	d.mu.Unlock()
	h.mu.Lock()
	delete(h.pages, d)
	h.mu.Unlock()
	close(d.done)
	h.gone.Done()
}

// refuse ends the connection for a reason that is counted.
func (d *document) refuse(reason, sentence string) {
	d.h.o.Node.Refuse("page: " + reason)
	d.h.o.Log.Info("refused a page", "origin", d.origin, "reason", reason)
	d.conn.Refuse(websocket.StatusPolicyViolation, sentence[:min(len(sentence), 120)])
}

// serve is the life of a document.
func (d *document) serve() {
	ctx, cancel := context.WithTimeout(context.Background(), firstTimeout)
	defer cancel()
	note, err := d.conn.ReadNote(ctx)
	if err != nil {
		d.refuse("no ticket", "the first message is to be a note with the page's ticket")
		return
	}
	if reason, sentence := d.admit(ctx, note); reason != "" {
		d.refuse(reason, sentence)
		return
	}
	hello, err := d.conn.Read(ctx)
	about, ok := link.Parse(hello, link.Limits{}).Hello()
	if err != nil || !ok || !seats.IsNamed(about.Tab, about.Frame) {
		d.refuse("hello", "the first frame is to be the link's hello, with the page's tab and frame")
		return
	}
	cancel()
	at, given := d.sit(about)
	defer d.h.seats.Rise(d, at)
	d.h.known(d)
	d.conn.Limit(maxFrame, d.user)
	page, err := d.h.o.Node.Attach(d.user, d.origin, d.send)
	if err != nil {
		d.h.o.Node.Refuse("page: full")
		d.conn.Refuse(websocket.StatusTryAgainLater, err.Error())
		return
	}
	defer page.Lost()
	page.Seat(given)
	d.hear(page, hello)
}

// sit gives a document its place in one of its user's tabs, which a later connection of the document takes over.
func (d *document) sit(about link.About) (at seats.Seat, given string) {
	d.epoch = strings.Clone(about.Epoch)
	at = seats.Seat{Of: d.user + " " + d.origin, Tab: about.Tab, Frame: about.Frame}
	return d.h.seats.Sit(d, at, func(holder *document) bool { return holder.epoch == d.epoch })
}

// Ping and End are for who claims its seat.
func (d *document) Ping(within time.Duration) error { return d.conn.Ping(within) }

func (d *document) End() {
	d.conn.Close()
	<-d.done
}

// hear hands over what the document says, until its end.
func (d *document) hear(page *fleet.Page, frame []byte) {
	var err error
	for ; err == nil; frame, err = d.conn.Read(context.Background()) {
		if page.Receive(frame) != nil {
			<-d.conn.Closed() // when it has been told why
			return
		}
		if pause := page.Pause(); pause > 0 {
			select {
			case <-time.After(pause):
			case <-d.conn.Closed():
			}
		}
	}
	switch {
	case err == io.EOF:
	case errors.Is(err, wsconn.ErrTooLong), errors.Is(err, wsconn.ErrNoRoom):
		page.Refuse(err.Error())
	}
}

func (d *document) send(frame []byte) {
	if frame == nil {
		go d.conn.Refuse(websocket.StatusGoingAway, "") // not here: it waits for what is before
		return
	}
	d.conn.Send(frame)
}

// note takes a ticket that comes in place of the last.
func (d *document) note(_ *wsconn.Conn, text []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), firstTimeout)
	defer cancel()
	if reason, sentence := d.admit(ctx, text); reason != "" {
		go d.refuse(reason, sentence) // not here: who reads waits for it
	}
}

// admit takes the ticket of a note, or says why not.
func (d *document) admit(ctx context.Context, note []byte) (reason, sentence string) {
	if len(note) > maxFirst { // from the hello on a message may be longer
		return "no ticket", "the note is too long; the limit is 64 KiB"
	}
	var in struct{ Type, Ticket string }
	if json.Unmarshal(note, &in) != nil || in.Type != noteTicket {
		return "no ticket", "a note that is no ticket"
	}
	if d.said++; d.said > fewTickets+int(time.Since(d.began)/ticketPause) {
		return "ticket: too many", "the page says too many tickets; the limit is 5, and from then on one each 4 s"
	}
	claim, err := d.verify(ctx, in.Ticket)
	switch {
	case err != nil:
		return "ticket: " + tickets.ReasonOf(err), err.Error()
	case d.user != "" && d.user != claim.User:
		return "ticket: user", "the ticket is another user's than the one before"
	}
	d.user = claim.User
	left := time.Until(claim.Until.Add(tickets.Skew))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ends == nil {
		d.ends = time.AfterFunc(left, func() { d.refuse("ticket: expired", "the ticket has expired") })
	} else {
		d.ends.Reset(left)
	}
	return "", ""
}

// verify has a ticket verified on another stack than the connection's, which would be twice as large from then on: 8 KB
// for each idle page.
func (d *document) verify(ctx context.Context, ticket string) (claim tickets.Claim, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		claim, err = d.h.o.Tickets.Ticket(ctx, ticket, d.origin)
	}()
	<-done
	return claim, err
}
