package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/bearer"
	"github.com/pagewire/pagewire/bridge/internal/proof"
)

// The inspector in a person's browser needs a secret. The secret must not be in the address, the
// history, a cookie (the browser would send it to every port of 127.0.0.1) or an argument list. So
// there is a ticket:
//
//	pagewire inspect   gets a ticket T at TicketPath on the daemon's socket, which only this user reaches
//	the browser        opens a file of mode 0600 that leads it to /#ticket=T: browsers do not send fragments
//	the page           exchanges T, once, at SessionPath for a session, which it keeps in its tab's sessionStorage
//	its feed           sends the session in its first message
//
// The extension's DevTools panel opens the feed too. It proves that it has the extension's secret
// (package proof).
//
// A session is signed with the token, so that it is valid at the next daemon too. It is bound to
// the address of the port.
const (
	FeedPath    = "/feed"
	TicketPath  = "/ticket"
	SessionPath = "/session"
)

const (
	// ticketLife is the time in which a browser must start and use its ticket.
	ticketLife = time.Minute
	// sessionLife is the time in which a tab with the inspector can connect and reload.
	sessionLife = 12 * time.Hour
	// introduction bounds AdmitFeed.
	introduction = 10 * time.Second
	maxTicketMsg = 4 << 10
	sessionUse   = "inspector session"
)

// A ticketNote is one JSON text of Tickets' answer. The first has Ticket. A second has Opened when
// the ticket is used.
type ticketNote struct {
	Ticket string `json:"ticket,omitempty"`
	Opened bool   `json:"opened,omitempty"`
}

// where returns the local address that received a request, or "".
func where(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return local.String()
	}
	return ""
}

// Tickets gives a ticket to each client that sends a POST. The ticket is valid for ticketLife,
// while the client waits for the end of the answer. Only a listener that no other user can reach
// may serve this.
func (g *Guard) Tickets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "A ticket is asked for by POST.", http.StatusMethodNotAllowed)
			return
		}
		if g.o.Token == "" {
			http.Error(w, g.tokenMissing().says, http.StatusServiceUnavailable)
			return
		}
		ticket, used, ok := g.tickets.issue()
		if !ok {
			http.Error(w, "Too many tickets wait for a browser: try again in a minute.",
				http.StatusServiceUnavailable)
			return
		}
		defer g.tickets.redeem(ticket, false)
		out := json.NewEncoder(w)
		if out.Encode(ticketNote{Ticket: ticket}) != nil ||
			http.NewResponseController(w).Flush() != nil {
			return
		}
		over := time.NewTimer(ticketLife)
		defer over.Stop()
		select {
		case <-used:
			_ = out.Encode(ticketNote{Opened: true}) // the client may have gone
		case <-over.C:
		case <-r.Context().Done():
		}
	})
}

// Sessions exchanges a ticket for a session: {"ticket":T} by POST, answered with {"session":S}.
func (g *Guard) Sessions() http.Handler {
	return g.Anybody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Ticket string }
		if r.Method != http.MethodPost ||
			json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTicketMsg)).Decode(&in) != nil {
			http.Error(w, "A ticket is exchanged by POST.", http.StatusBadRequest)
			return
		}
		if !g.tickets.redeem(in.Ticket, true) {
			g.refuse(w, r, &refusal{http.StatusForbidden, "token",
				"This ticket was used already, or is older than a " +
					"minute: run pagewire inspect again."})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]string{ // the client may have gone
			"session": proof.Sign(g.o.Token, sessionUse, where(r), time.Now().Add(sessionLife)),
		})
	}))
}

// errNoSession is shown to a person.
var errNoSession = errors.New("open it with: pagewire inspect")

var errNotExtension = errors.New(
	"it does not prove that it is this user's: run pagewire extension install")

// Feed admits requests for a feed. AdmitFeed must then check the client.
//
// Why does the inspector take a ticket and no cookie, and why in a fragment? A cookie for 127.0.0.1
// is sent to every port there, a token in the address is in the history, and one in an argument
// list is in ps. A file of mode 0600 may hold a ticket, and a fragment is not sent. The session for
// which it is exchanged is bound to the address of the port, so it is worthless to a program that
// relays from another.
func (g *Guard) Feed(next http.Handler) http.Handler {
	own, extension := g.admit(next, true, func(r *http.Request) *refusal {
		why := g.present(r)
		if _, foreign := g.origin(r); why == nil && foreign && !bearer.Has(r, g.o.Token) {
			why = g.tokenMissing()
		}
		return why
	}), g.Pages(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.extension(r) {
			extension.ServeHTTP(w, r)
			return
		}
		own.ServeHTTP(w, r)
	})
}

// extension reports whether a request has the extension's Origin, which a program can forge.
func (g *Guard) extension(r *http.Request) bool {
	return g.o.Extension != "" && r.Header.Get("Origin") == g.o.Extension
}

// AdmitFeed returns nil if a client may see its feed. The client sends the token in its request, or
// a session in its first message ({"session":S}). The extension proves that it has its secret. The
// error's text is for the client.
func (g *Guard) AdmitFeed(ctx context.Context, r *http.Request, m proof.Messages) error {
	if bearer.Has(r, g.o.Token) {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, introduction)
	defer end()
	first, err := m.Read(ctx)
	if err != nil {
		return err
	}
	if g.extension(r) {
		secret, err := g.o.Secret()
		if err == nil {
			err = proof.Accept(ctx, m, first, secret, where(r))
		}
		if err != nil {
			g.Count("proof", r)
			return errNotExtension
		}
		return nil
	}
	var in struct{ Session string }
	if json.Unmarshal(first, &in) != nil {
		in.Session = ""
	}
	if g.free(r) || proof.Verify(g.o.Token, sessionUse, where(r), in.Session, time.Now()) {
		return nil
	}
	g.Count("token", r)
	return errNoSession
}

// A Ticket lets a browser on this machine open the inspector once, within a minute.
type Ticket struct {
	// URL is the address that the browser opens. It contains the ticket.
	URL    string
	answer io.Closer
	in     *json.Decoder
}

// Ask gets a ticket from the daemon. socket is a client for the daemon's socket (serve.Client). at
// is the daemon's address for pages. The ticket is valid for a minute, until ctx ends or Close is
// called.
func Ask(ctx context.Context, socket *http.Client, at string) (*Ticket, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+TicketPath, nil)
	if err != nil {
		return nil, err
	}
	answer, err := socket.Do(r)
	if err != nil {
		return nil, err
	}
	t := &Ticket{answer: answer.Body,
		in: json.NewDecoder(io.LimitReader(answer.Body, maxTicketMsg))}
	var n ticketNote
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, maxTicketMsg)) // as much as arrives
		err = fmt.Errorf("the daemon gives no ticket: %s", strings.TrimSpace(string(why)))
	} else {
		err = t.in.Decode(&n)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	t.URL = "http://" + at + "/#ticket=" + n.Ticket
	return t, nil
}

// Opened waits until the ticket has been used. It fails after a minute, or when the ctx of Ask
// ends.
func (t *Ticket) Opened() error {
	var n ticketNote
	err := t.in.Decode(&n)
	if err == nil && !n.Opened {
		err = errors.New("the gateway did not say that the ticket was used")
	}
	return err
}

// Close makes the ticket invalid.
func (t *Ticket) Close() { t.answer.Close() }
