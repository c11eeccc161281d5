//go:build !js

package access

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pagewire/pagewire/bridge/gateway/internal/bearer"
	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
	"github.com/pagewire/pagewire/bridge/gateway/internal/wsconn"
)

// How a person's browser gets to see the inspector, which has to know a secret and must not have one in its address, its
// history, a cookie (the browser would send it to every port of 127.0.0.1) or an argument list:
//
//	pagewire inspect   connects at TicketPath; both prove that they know the token; it is given a ticket
//	the browser        is shown a file of mode 0600 that leads it to /#ticket=T: a fragment is sent to nobody
//	the page           exchanges the ticket, once, at SessionPath for a session, which it keeps in its tab's sessionStorage
//	its feed           says the session in its first message
//
// A session is signed with the token, so that it is good at the next hub too; it is bound to the address of the port.
const (
	FeedPath    = "/feed"
	TicketPath  = "/ticket"
	SessionPath = "/session"
)

const (
	// ticketLife is how long a browser may take to start.
	ticketLife = time.Minute
	// sessionLife is how long a tab with the inspector may stay open and be reloaded.
	sessionLife = 12 * time.Hour
	// maxTickets bounds those that wait.
	maxTickets = 16
	// introduction is how long who connects may take to say who it is.
	introduction = 10 * time.Second
	maxTicketMsg = 4 << 10
	sessionUse   = "inspector session"
)

// tickets are those that wait for a browser.
type tickets struct {
	mu  sync.Mutex
	all map[string]chan struct{} // closed when it has been used
}

func (t *tickets) issue() (ticket string, used <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxTickets {
		return "", nil, false
	}
	if t.all == nil {
		t.all = map[string]chan struct{}{}
	}
	ticket, done := rand.Text(), make(chan struct{})
	t.all[ticket] = done
	return ticket, done, true
}

// take reports whether there is such a ticket, and uses it up.
func (t *tickets) take(ticket string, used bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	done, ok := t.all[ticket]
	delete(t.all, ticket)
	if ok && used {
		close(done)
	}
	return ok
}

type ticketNote struct {
	Type   string `json:"type"` // first: it makes the text a note of wsconn
	Ticket string `json:"ticket,omitempty"`
}

const (
	ticketType = "pagewire:ticket"
	openedType = "pagewire:opened"
)

// where is the address at which a request has come in.
func where(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return local.String()
	}
	return ""
}

// Tickets gives a ticket to who proves that it knows the token: it is for `pagewire inspect`.
func (g *Gate) Tickets() http.Handler {
	return g.Anybody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Origin")) > 0 {
			g.refuse(w, r, &refusal{http.StatusForbidden, "origin", "Tickets are not for pages."})
			return
		}
		c, err := wsconn.Accept(w, r, wsconn.Options{MaxMessage: maxTicketMsg})
		if err != nil {
			return // it has been answered
		}
		defer c.Close()
		ctx, end := context.WithTimeout(context.Background(), introduction)
		defer end()
		if err := g.prove(ctx, c.Notes(), where(r)); err != nil {
			g.Count("token", r)
			c.CloseWith(websocket.StatusPolicyViolation, err.Error())
			return
		}
		ticket, used, ok := g.tickets.issue()
		if !ok {
			c.CloseWith(websocket.StatusTryAgainLater, "too many tickets wait for a browser: try again in a minute")
			return
		}
		defer g.tickets.take(ticket, false)
		if say(ctx, c, ticketNote{ticketType, ticket}) != nil {
			return
		}
		gone := make(chan struct{})
		go func() { // it says nothing more, but may go
			defer close(gone)
			c.Read(context.Background())
		}()
		select {
		case <-used:
			say(context.Background(), c, ticketNote{Type: openedType}) // it may have gone
		case <-time.After(ticketLife):
		case <-gone:
		}
	}))
}

// prove has both ends prove that they know the token.
func (g *Gate) prove(ctx context.Context, m proof.Messages, where string) error {
	hello, err := m.Read(ctx)
	if err != nil {
		return err
	}
	return proof.Accept(ctx, m, hello, g.o.Token, where)
}

func say(ctx context.Context, c *wsconn.Conn, n ticketNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return c.Write(ctx, text)
}

// Sessions exchanges a ticket for a session: {"ticket":T} by POST, answered with {"session":S}.
func (g *Gate) Sessions() http.Handler {
	return g.Anybody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Ticket string }
		if r.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTicketMsg)).Decode(&in) != nil {
			http.Error(w, "A ticket is exchanged by POST.", http.StatusBadRequest)
			return
		}
		if !g.tickets.take(in.Ticket, true) {
			g.refuse(w, r, &refusal{http.StatusForbidden, "token", "This ticket was used already, or is older than a minute: run pagewire inspect again."})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]string{ // it may have gone
			"session": proof.Sign(g.o.Token, sessionUse, where(r), time.Now().Add(sessionLife)),
		})
	}))
}

// errNoSession is why a feed is closed, for a person.
var errNoSession = errors.New("open it with: pagewire inspect")

// Feed admits whom AdmitFeed may then ask.
func (g *Gate) Feed(next http.Handler) http.Handler { return g.admit(next, g.present) }

// AdmitFeed returns nil if who has opened a feed may see it: by the token in its request, or by its first message, which holds a
// session ({"session":S}), or is how the extension begins to prove itself. The error's text is for the other end.
func (g *Gate) AdmitFeed(ctx context.Context, r *http.Request, m proof.Messages) error {
	if bearer.Has(r, g.o.Token) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, introduction)
	defer end()
	first, err := m.Read(ctx)
	if err != nil {
		return err
	}
	var in struct{ Type, Session string }
	if json.Unmarshal(first, &in) != nil {
		in.Session = ""
	}
	switch {
	case r.Header.Get("Origin") == g.o.Extension && g.o.Extension != "" && g.o.Secret != nil:
		var known string
		if known, err = g.o.Secret(); err == nil {
			err = proof.Accept(ctx, m, first, known, where(r))
		}
		if err != nil {
			g.Count("proof", r)
		}
		return err
	case g.free(r), proof.Verify(g.o.Token, sessionUse, where(r), in.Session, time.Now()):
		return nil
	}
	g.Count("token", r)
	return errNoSession
}

// A Ticket lets a browser on this machine open the inspector, once and soon.
type Ticket struct {
	// URL is what the browser is to open. It holds the ticket.
	URL  string
	conn *wsconn.Conn
}

// Ask gets a ticket from the gateway that listens at addr, once that has proved that it knows the token. It fails within 5 s.
func Ask(ctx context.Context, addr, token string) (*Ticket, error) {
	ctx, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	c, response, err := wsconn.Dial(ctx, addr, TicketPath, nil, wsconn.Options{MaxMessage: maxTicketMsg})
	var op *net.OpError
	switch {
	case err == nil:
	case response == nil && errors.As(err, &op) && op.Op == "dial":
		return nil, fmt.Errorf("no pagewire serve is running: nothing listens at %s", addr)
	case response != nil && response.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("what listens at %s is another user's", addr)
	default:
		return nil, fmt.Errorf("what listens at %s is no pagewire serve of this version", addr)
	}
	at := c.RemoteAddr()
	if err := proof.Dial(ctx, c.Notes(), token, at); err != nil {
		c.Close()
		return nil, fmt.Errorf("what listens at %s does not prove that it is yours: it was started with another token file, or by somebody else", addr)
	}
	var n ticketNote
	text, err := c.ReadNote(ctx)
	if err == nil && (json.Unmarshal(text, &n) != nil || n.Type != ticketType || n.Ticket == "") {
		err = errors.New("it says something else")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("the pagewire serve at %s gives no ticket: %w", addr, err)
	}
	return &Ticket{URL: "http://" + at + "/#ticket=" + n.Ticket, conn: c}, nil
}

// Opened waits until the ticket has been used. It fails when its minute, or ctx, is over.
func (t *Ticket) Opened(ctx context.Context) error {
	text, err := t.conn.ReadNote(ctx)
	var n ticketNote
	if err == nil && (json.Unmarshal(text, &n) != nil || n.Type != openedType) {
		err = errors.New("the gateway says something else")
	}
	return err
}

// Close gives the ticket back, if it has not been used.
func (t *Ticket) Close() { t.conn.Close() }
