package access

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/internal/bearer"
	"github.com/pagewire/pagewire/bridge/gateway/internal/proof"
)

// How a person's browser gets to see the inspector, which has to know a secret and must not have one in its address,
// its history, a cookie (the browser would send it to every port of 127.0.0.1) or an argument list:
//
//	pagewire inspect   asks at TicketPath on the daemon's socket, which only this user reaches, and is given one
//	the browser        is shown a file of mode 0600 that leads it to /#ticket=T: a fragment is sent to nobody
//	the page           exchanges it, once, at SessionPath for a session, which it keeps in its tab's sessionStorage
//	its feed           says the session in its first message
//
// The extension's DevTools panel opens the feed too. It has the extension's secret, and proves that (package proof).
//
// A session is signed with the token, so that it is good at the next daemon too; it is bound to the address of the port.
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
	// maxTickets bounds the unused tickets.
	maxTickets = 16
	// introduction is how long a client may take to prove itself.
	introduction = 10 * time.Second
	maxTicketMsg = 4 << 10
	sessionUse   = "inspector session"
)

// tickets are the unused tickets.
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

// take reports whether a ticket is valid, and uses it up.
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

// A ticketNote answers a request for a ticket, as JSON texts one after the other: the ticket, and later that it was used.
type ticketNote struct {
	Ticket string `json:"ticket,omitempty"`
	Opened bool   `json:"opened,omitempty"`
}

// where is the address that received a request.
func where(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return local.String()
	}
	return ""
}

// Tickets gives a ticket to each client that asks by POST. The ticket is valid while the client waits for the end of
// the answer. Only a listener that no other user reaches may serve this.
func (g *Gate) Tickets() http.Handler {
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
			http.Error(w, "Too many tickets wait for a browser: try again in a minute.", http.StatusServiceUnavailable)
			return
		}
		defer g.tickets.take(ticket, false)
		out := json.NewEncoder(w)
		if out.Encode(ticketNote{Ticket: ticket}) != nil || http.NewResponseController(w).Flush() != nil {
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
func (g *Gate) Sessions() http.Handler {
	return g.Anybody(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Ticket string }
		if r.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxTicketMsg)).Decode(
			&in) != nil {
			http.Error(w, "A ticket is exchanged by POST.", http.StatusBadRequest)
			return
		}
		if !g.tickets.take(in.Ticket, true) {
			g.refuse(w, r, &refusal{http.StatusForbidden, "token", "This ticket was used already, or is older than a " +
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

// errNoSession closes a feed. A person reads it.
var errNoSession = errors.New("open it with: pagewire inspect")

var errNotExtension = errors.New("it does not prove that it is this user's: run pagewire extension install")

// Feed admits clients that AdmitFeed then checks.
func (g *Gate) Feed(next http.Handler) http.Handler {
	own, extension := g.admit(next, true, g.present), g.Pages(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.extension(r) {
			extension.ServeHTTP(w, r)
			return
		}
		own.ServeHTTP(w, r)
	})
}

// extension reports whether a request says that it is the extension's.
func (g *Gate) extension(r *http.Request) bool {
	return g.o.Extension != "" && r.Header.Get("Origin") == g.o.Extension
}

// AdmitFeed returns nil if a client may see its feed. The client shows the token in its request, or a session in its
// first message ({"session":S}); the extension proves its secret. The error's text is for the client.
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

// A Ticket lets a browser on this machine open the inspector, once and soon.
type Ticket struct {
	// URL is the address that the browser opens. It holds the ticket.
	URL    string
	answer io.Closer
	in     *json.Decoder
}

// Ask gets a ticket from the daemon. socket is a client that reaches the daemon's socket (serve.Client), at the
// daemon's address for pages. The ticket is valid until ctx ends, or Close is called.
func Ask(ctx context.Context, socket *http.Client, at string) (*Ticket, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+TicketPath, nil)
	if err != nil {
		return nil, err
	}
	answer, err := socket.Do(r)
	if err != nil {
		return nil, err
	}
	t := &Ticket{answer: answer.Body, in: json.NewDecoder(io.LimitReader(answer.Body, maxTicketMsg))}
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

// Opened waits until the ticket has been used. It fails after a minute, or when ctx of Ask ends.
func (t *Ticket) Opened() error {
	var n ticketNote
	err := t.in.Decode(&n)
	if err == nil && !n.Opened {
		err = errors.New("the gateway did not say that the ticket was used")
	}
	return err
}

// Close gives the ticket back, if it has not been used.
func (t *Ticket) Close() { t.answer.Close() }
