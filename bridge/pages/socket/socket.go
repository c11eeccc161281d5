// Package socket serves pages that connect by themselves. A WebSocket is a document's link, one
// frame a message.
//
// A Server carries the frames, for a desktop and for a service alike. A Guest decides whether the
// page may connect and where it belongs: Handler has those of a desktop, package node/dial those of
// a service.
//
// The browser gives the page's origin in the Origin header. The page's own statements count only
// for the page itself, such as its title. The page's hello has its tab and frame, its title, and
// when its window had the focus. A page that names a tab of another document is a duplicate of that
// tab, and gets a tab of its own.
//
// The package never waits for a page with a lock held. A Server's lock guards who is connected,
// that of origins what each origin has, and an origin's turn is held while one of its frames is
// processed.
package socket

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/seats"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/link"
)

const (
	// maxHello bounds a page's hello, and maxFrame a later frame, in bytes: LINK.md.
	maxHello, maxFrame = 64 << 10, 17 << 20
	// helloTimeout is how long a page may take for its hello.
	helloTimeout = 10 * time.Second
	// Drain tells drainPace pages or more each drainPause to go elsewhere: 1,000 a second.
	drainPace, drainPause = 50, 50 * time.Millisecond

	noteElsewhere = `{"type":"pagewire:elsewhere"}`
	goesAway      = "the gateway goes away"
)

// Limits bound all pages of a Server together.
type Limits struct {
	// Frames bounds the frames under way, as a multiple of the largest frame.
	Frames int
	// Unsent bounds the bytes that wait for slow pages. 0 leaves only each connection's bound.
	Unsent int
	// Resumes lets a new connection of a document take over the tab of its last one, which may be
	// dead.
	Resumes bool
}

// A Guest is a connecting page for the code that admits it. One goroutine calls its methods, in
// this order.
type Guest interface {
	// Greet reads the messages before the hello, and waits as long as the page must wait.
	Greet(ctx context.Context, c *wsconn.Conn) error
	// Admit decides by the page's hello. The page counts towards owner's limits. Of pages with the
	// same owner and origin, each has a tab of its own, or a frame.
	Admit(about link.About) (owner, origin string, err error)
	// Attach attaches the document as a page. given is the id of a new tab, or "" if tab is the
	// hello's.
	Attach(about link.About, tab, given string, send func(frame []byte)) (Page, error)
	// Note takes a note, which comes between two frames. An error ends the connection.
	Note(note []byte) error
	// LetGo is called with the fault that ends the connection: no hello, a violation of the link
	// (*link.Ended), or too much data (wsconn.ErrTooLong, wsconn.ErrNoRoom).
	LetGo(err error)
	// Leave is called last, in any case.
	Leave()
}

// A Page is an attached page of a gateway or of a fleet.
type Page interface {
	Receive(frame []byte) error
	Refuse(reason string)
	// Lost is called last, with the error that the connection ended with.
	Lost(err error)
}

// A Refusal is the error for a page that is not admitted. The page gets its text.
type Refusal struct {
	Says  string
	Later bool // the page may try again later
}

func (r *Refusal) Error() string { return r.Says }

var errNoHello = errors.New("the link's hello, with the page's tab and frame, did not come " +
	"first, or not within 10 s")

// A Server serves the WebSockets of pages.
type Server struct {
	limits  Limits
	room    *wsconn.Room
	backlog *quota.Backlog[*wsconn.Conn]
	seats   seats.Seats[*document]

	mu     sync.Mutex
	closed bool
	open   map[*document]bool
	gone   sync.WaitGroup
}

// A document is a connected document.
type document struct {
	s     *Server
	guest Guest
	conn  *wsconn.Conn
	epoch string        // of its hello
	gone  chan struct{} // closed when it has left
}

// NewServer returns a Server.
func NewServer(l Limits) *Server {
	s := &Server{limits: l, room: wsconn.NewRoom(l.Frames * maxFrame), open: map[*document]bool{}}
	if l.Unsent > 0 {
		s.backlog = quota.NewBacklog(l.Unsent, func(c *wsconn.Conn) { c.CloseWith(0, "") })
	}
	return s
}

// Len is how many documents are connected.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// close accepts no more documents, and returns the connected ones.
func (s *Server) close() []*document {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Keys(s.open))
}

// Close ends all connections and accepts no more. It returns when they are gone, within a second.
func (s *Server) Close() error {
	for _, d := range s.close() {
		go d.goAway()
	}
	s.gone.Wait()
	return nil
}

// Drain tells the pages to connect elsewhere, and accepts no more. It returns when they are gone.
// When ctx ends, it cuts off the rest.
func (s *Server) Drain(ctx context.Context) {
	list := s.close()
	pace := drainPace
	if end, ok := ctx.Deadline(); ok {
		pace = drainPaceOf(len(list), time.Until(end))
	}
	for i, d := range list {
		d.conn.Send([]byte(noteElsewhere))
		if i%pace == pace-1 {
			select {
			case <-time.After(drainPause):
			case <-ctx.Done():
			}
		}
	}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	s.gone.Wait()
}

// drainPaceOf returns how many pages Drain tells each drainPause, so that all know in three
// quarters of the time left.
func drainPaceOf(pages int, left time.Duration) int {
	pauses := max(1, int(left*3/4/drainPause))
	return max(drainPace, (pages+pauses-1)/pauses)
}

// Take serves a page's connection, until it or the context of the request has ended.
func (s *Server) Take(w http.ResponseWriter, r *http.Request, guest Guest) {
	d := &document{s: s, guest: guest, gone: make(chan struct{})}
	conn, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxHello, Note: d.note,
		Room:    s.room,
		Backlog: s.backlog, Whose: r.Header.Get("Origin")})
	if err != nil {
		return // Accept has answered
	}
	d.conn = conn
	defer context.AfterFunc(r.Context(), d.goAway)()
	if !s.enter(d) {
		conn.Refuse(websocket.StatusTryAgainLater, goesAway)
		return
	}
	defer s.leave(d)
	if err := d.serve(); err != nil {
		d.refuse(err)
	}
}

func (s *Server) enter(d *document) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[d] = true
	s.gone.Add(1)
	return true
}

func (s *Server) leave(d *document) {
	d.conn.Close()
	d.guest.Leave()
	s.mu.Lock()
	delete(s.open, d)
	s.mu.Unlock()
	close(d.gone)
	s.gone.Done()
}

// serve serves a document, and returns the reason if the document is refused.
func (d *document) serve() error {
	ctx, cancel := context.WithTimeout(context.Background(), helloTimeout)
	defer cancel()
	if err := d.guest.Greet(ctx, d.conn); err != nil {
		return err
	}
	hello, err := d.conn.Read(ctx)
	about, ok := link.Parse(hello, link.Limits{}).Hello()
	if err != nil || !ok || !seats.IsNamed(about.Tab, about.Frame) {
		if !errors.Is(err, wsconn.ErrTooLong) {
			err = errNoHello
		}
		d.guest.LetGo(err)
		return &Refusal{Says: errNoHello.Error()}
	}
	cancel()
	owner, origin, err := d.guest.Admit(about)
	if err != nil {
		return err
	}
	d.conn.Limit(maxFrame, owner)
	d.epoch = strings.Clone(about.Epoch)
	// A tab's id is unique for an owner and an origin. A page learns nothing of another origin's
	// ids.
	seat, given := d.s.seats.Sit(d, seats.Seat{Of: owner + " " + origin, Tab: about.Tab,
		Frame: about.Frame},
		func(before *document) bool { return d.s.limits.Resumes && before.epoch == d.epoch })
	defer d.s.seats.Rise(d, seat)
	page, err := d.guest.Attach(about, seat.Tab, given, d.send)
	if err != nil {
		return err
	}
	defer func() { page.Lost(err) }()
	err = d.carry(page, hello)
	return nil
}

// carry passes the document's frames on, until its end.
func (d *document) carry(page Page, frame []byte) (err error) {
	for ; err == nil; frame, err = d.conn.Read(context.Background()) {
		if err := page.Receive(frame); err != nil {
			d.guest.LetGo(err)
			<-d.conn.Closed() // closed once the page has the reason
			return err
		}
	}
	switch {
	case errors.Is(err, wsconn.ErrTooLong):
		d.guest.LetGo(err)
		page.Refuse(err.Error())
	case errors.Is(err, wsconn.ErrNoRoom):
		d.guest.LetGo(err)
	}
	return err
}

func (d *document) note(_ *wsconn.Conn, note []byte) {
	if err := d.guest.Note(note); err != nil {
		go d.refuse(err) // not here: this runs in the reader, which must read the page's close
	}
}

// refuse ends the connection of a refused page, which gets the reason.
func (d *document) refuse(err error) {
	refusal := (*Refusal)(nil)
	if !errors.As(err, &refusal) {
		return
	}
	code := websocket.StatusPolicyViolation
	if refusal.Later {
		code = websocket.StatusTryAgainLater
	}
	d.conn.Refuse(code, refusal.Says[:min(len(refusal.Says), 120)])
}

func (d *document) goAway() { d.conn.CloseWith(websocket.StatusGoingAway, goesAway) }

// send sends a frame. nil means that the page's link has ended.
func (d *document) send(frame []byte) {
	if frame == nil {
		// Not here: Refuse waits for the frames before it.
		go d.conn.Refuse(websocket.StatusGoingAway, "")
		return
	}
	d.conn.Send(frame)
}

// Ping and End are called for another document that claims the seat.
func (d *document) Ping(within time.Duration) error { return d.conn.Ping(within) }

// End returns when the document has left.
func (d *document) End() {
	d.conn.Close()
	<-d.gone
}
