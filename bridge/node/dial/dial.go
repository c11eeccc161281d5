// Package dial admits the pages of a service to a node: package socket takes their connections.
//
// A page's first message is a note with its ticket, {"type":"pagewire:ticket","ticket":"…"}.
// Package tickets returns the page's user. The Origin header, which a page cannot forge, must equal
// the ticket's origin. The link's hello comes next. Before a ticket ends the page sends another of
// the same user in the same way; otherwise its connection ends with the ticket. A node that ends
// asks its pages to connect again, to any node.
//
// A desktop brings what a page shows (link.About.Shown) with a header that no script of a page can
// set.
//
// The package takes no cookie, and uses no part of a URL but the path.
package dial

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge/internal/seats"
	"github.com/pagewire/pagewire/bridge/internal/wsconn"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/node"
	"github.com/pagewire/pagewire/bridge/node/tickets"
	"github.com/pagewire/pagewire/bridge/pages/socket"
)

// Options configure a Handler.
type Options struct {
	Node    *node.Node
	Tickets *tickets.Verifier

	unsent int // for tests: replaces maxUnsent
}

const (
	// maxNote bounds a note, in bytes. Messages after the hello may be longer.
	maxNote = 64 << 10
	// verifyTimeout is how long the verification of a new ticket may take.
	verifyTimeout = 10 * time.Second
	// frames bounds the frames under way of all pages together, as a number of the largest frames.
	frames = 8
	// maxUnsent bounds the bytes that wait for all pages that do not read: a call of a tool may
	// have 4 MiB of arguments, and 32 MiB may wait for one page.
	maxUnsent = 256 << 20
	// maxStrangers bounds the connections that have not shown a ticket yet. Each may take 10 s for
	// it.
	maxStrangers = 4096
	// maxOrigin bounds an Origin, in bytes: a host's name has 253 at most.
	maxOrigin = 300
	// A page may show fewTickets at once, then one each ticketPause: each costs a signature's
	// verification.
	fewTickets, ticketPause = 5, 4 * time.Second
)

// A Handler admits pages to a node.
type Handler struct {
	*socket.Server
	o         Options
	strangers *Strangers[*guest]
}

// New returns a Handler.
func New(o Options) *Handler {
	limits := socket.Limits{Frames: frames, Unsent: cmp.Or(o.unsent, maxUnsent), Resumes: true}
	return &Handler{Server: socket.NewServer(limits), o: o,
		strangers: NewStrangers(maxStrangers, func(g *guest) {
			o.Node.Refuse("page: strangers")
			g.conn.CloseWith(websocket.StatusTryAgainLater,
				"too many connections have not shown a ticket yet")
		})}
}

// ServeHTTP takes a page, until it has gone.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || origin == "null" || len(origin) > maxOrigin {
		h.o.Node.Refuse("page: no origin")
		http.Error(w, "Only pages connect here, from a browser, which sends an Origin.",
			http.StatusForbidden)
		return
	}
	h.Take(w, r, &guest{h: h, origin: origin, shows: r.Header.Get(link.ShownHeader) != "",
		tickets: rate.NewLimiter(rate.Every(ticketPause), fewTickets)})
}

// A guest is a page that connects with a ticket: a socket.Guest, and then a socket.Page.
type guest struct {
	h       *Handler
	origin  string
	shows   bool // it may bring what a page shows
	conn    *wsconn.Conn
	user    string // of its tickets
	tickets *rate.Limiter
	expiry  *time.Timer // ends the connection with the last ticket
	*node.Page
}

// Greet reads the page's ticket.
func (g *guest) Greet(ctx context.Context, c *wsconn.Conn) error {
	g.conn = c
	g.h.strangers.Meet(g)
	note, err := c.ReadNote(ctx)
	if err != nil {
		return g.refuse("no ticket", "the first message is to be a note with the page's ticket")
	}
	return g.admit(ctx, note)
}

// Admit returns the user of the ticket, which Greet has verified.
func (g *guest) Admit(about link.About) (owner, origin string, err error) {
	g.h.strangers.Know(g)
	switch {
	case about.Shown && !g.shows:
		return "", "", g.refuse("shown", "only pagewire serve can bring what a page shows")
	case about.Shown:
		return g.user, g.origin + " shown", nil // beside the page's own document in the tab
	}
	return g.user, g.origin, nil
}

// Attach attaches the page to the node.
func (g *guest) Attach(_ link.About, _, given string, send func([]byte)) (_ socket.Page,
	err error) {
	if g.Page, err = g.h.o.Node.Attach(g.user, g.origin, send); err != nil {
		g.h.o.Node.Refuse("page: full")
		return nil, &socket.Refusal{Says: err.Error(), Later: true}
	}
	g.Seat(given)
	g.Ping(func() error { return g.conn.Ping(seats.AliveTimeout) })
	return g, nil
}

// Note takes a ticket that replaces the last.
func (g *guest) Note(note []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	return g.admit(ctx, note)
}

func (g *guest) admit(ctx context.Context, note []byte) error {
	var in struct{ Type, Ticket string }
	switch {
	case len(note) > maxNote:
		return g.refuse("no ticket", "the note is too long; the limit is 64 KiB")
	case json.Unmarshal(note, &in) != nil || in.Type != "pagewire:ticket":
		return g.refuse("no ticket", "a note that is no ticket")
	case !g.tickets.Allow():
		return g.refuse("ticket: too many", "the page shows too many tickets; the limit is 5, "+
			"and from then on one "+
			"each 4 s")
	}
	claim, err := g.verify(ctx, in.Ticket)
	switch {
	case err != nil:
		return g.refuse("ticket: "+tickets.ReasonOf(err), err.Error())
	case g.user != "" && g.user != claim.User:
		return g.refuse("ticket: user", "the ticket is another user's than the one before")
	}
	g.user = claim.User
	left := time.Until(claim.Until.Add(tickets.Skew))
	if g.expiry == nil {
		g.expiry = time.AfterFunc(left, g.expire)
	} else {
		g.expiry.Reset(left)
	}
	return nil
}

func (g *guest) expire() {
	err := g.refuse("ticket: expired", "the ticket has expired")
	g.conn.Refuse(websocket.StatusPolicyViolation, err.Error())
}

// verify verifies a ticket on another stack than the connection's. That stack would otherwise stay
// twice as large: 8 KB for each idle page.
func (g *guest) verify(ctx context.Context, ticket string) (claim tickets.Claim, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		claim, err = g.h.o.Tickets.Ticket(ctx, ticket, g.origin)
	}()
	<-done
	return claim, err
}

func (g *guest) refuse(reason, says string) error {
	g.h.o.Node.Refuse("page: "+reason, "origin", g.origin)
	return &socket.Refusal{Says: says}
}

// LetGo counts a page that went without a hello. The node counts all later ends.
func (g *guest) LetGo(error) {
	if g.Page == nil {
		g.h.o.Node.Refuse("page: hello")
	}
}

// Leave ends the page's stay among the strangers, and its timer.
func (g *guest) Leave() {
	g.h.strangers.Know(g)
	if g.expiry != nil {
		g.expiry.Stop()
	}
}

// Receive passes a frame to the node. Above the user's budget of messages it waits before it
// returns.
func (g *guest) Receive(frame []byte) error {
	err := g.Page.Receive(frame)
	if pause := g.Pause(); err == nil && pause > 0 {
		select {
		case <-time.After(pause):
		case <-g.conn.Closed():
		}
	}
	return err
}

// Lost ends the page, because the connection has ended.
func (g *guest) Lost(error) { g.Page.Lost() }
