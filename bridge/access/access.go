// Package access decides which clients may use a gateway's TCP ports, by the same rules on every
// path.
//
// It makes three checks, in this order. The first that fails gives the answer:
//
//   - Host: the host name of the request must be loopback's, or a name that the user has allowed. A page whose own name
//     resolves to this machine (DNS rebinding) sends that name.
//   - Origin, if present, must be the port's own, or an origin that the user has allowed. A page cannot choose it.
//   - User: a process that the kernel reports as another user's (package peer) is refused. Every other client must send
//     the token, or a session in exchange for a ticket. With NoToken a process that the kernel reports as this user's
//     needs neither, unless it is a browser that asks for a page of another origin.
//
// Pages cannot have a token. A browser sends their Origin, and package socket decides by that. A
// program can forge an Origin, so on Linux the program must be this user's. If the kernel does not
// report the user (macOS, Windows), or root is in between (the proxies of Docker and WSL), any
// program of the machine can claim to be a page of an origin that may connect. Its resources are
// then shown as that origin's.
//
// A refusal says what to do, and nothing about the handler. The package sends CORS headers only to
// origins that the user has allowed, compares secrets in constant time, and writes no secret into a
// log or an address.
package access

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/internal/bearer"
	"github.com/pagewire/pagewire/bridge/internal/peer"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// Options set which requests a Guard admits.
type Options struct {
	// Token is the user's token. "" means that it could not be read: requests that need it are
	// refused.
	Token string
	// NoToken admits processes without a token that the kernel reports as this user's. A page of
	// Origins still needs it.
	NoToken bool
	// Public means that other machines reach the port. Then NoToken has no effect.
	Public bool
	// Hosts are names that the Host header may have, besides loopback's, without port.
	Hosts []string
	// Origins returns the origins whose pages may send requests by CORS, with the token: patterns
	// as in gateway.Options.Allow. May be nil.
	Origins func() []string
	// Extension is the origin of the extension. Its DevTools panel opens the feed after both ends
	// have proved that they know Secret. "" and nil admit no extension.
	Extension string
	Secret    func() (string, error)
	// Refused is called with the reason of each refusal. May be nil.
	Refused func(reason string)
	// Log receives refusals. Default none.
	Log *slog.Logger
}

// A Guard checks requests for a gateway's HTTP handlers. Their http.Server must have
// peer.ConnContext: without it no client counts as this user's.
type Guard struct {
	o       Options
	tickets tickets

	mu      sync.Mutex
	refused map[string]int64 // by reason
	said    map[string]time.Time
}

// New returns a Guard.
func New(o Options) *Guard {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Guard{o: o, refused: map[string]int64{}, said: map[string]time.Time{}}
}

// Agents admits requests with the token. It is for handlers that show contents or change anything.
func (g *Guard) Agents(next http.Handler) http.Handler {
	return g.admit(next, true, func(r *http.Request) *refusal {
		if why := g.user(r); why != nil || g.free(r) || bearer.Has(r, g.o.Token) {
			return why
		}
		return g.tokenMissing()
	})
}

// Anybody admits all clients except other users' processes. It is for handlers that show nothing
// private.
func (g *Guard) Anybody(next http.Handler) http.Handler { return g.admit(next, true, g.user) }

// Pages admits all clients except other users' and ended processes. next decides which origins may
// connect.
func (g *Guard) Pages(next http.Handler) http.Handler { return g.admit(next, false, g.present) }

// A refusal is the answer to a request that is not served.
type refusal struct {
	status int
	reason string // for Refused: one of few values
	says   string
}

// Refused counts refused requests by reason: host, origin, user, token, and the reasons given to
// Count.
func (g *Guard) Refused() map[string]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.refused)
}

// admit returns a handler that serves a request if it passes host, check and, if origins is true,
// origin.
func (g *Guard) admit(next http.Handler, origins bool,
	check func(*http.Request) *refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why, foreign := g.host(r), false
		if why == nil && origins {
			why, foreign = g.origin(r)
		}
		if why == nil && foreign {
			allow(w.Header(), r)
			if r.Method == http.MethodOptions &&
				r.Header.Get("Access-Control-Request-Method") != "" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if why == nil {
			why = check(r)
		}
		if why != nil {
			g.refuse(w, r, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf is the name or address by which a client asks, without port.
func hostOf(r *http.Request) string {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	return strings.ToLower(strings.Trim(name, "[]"))
}

func (g *Guard) host(r *http.Request) *refusal {
	name := hostOf(r)
	if weborigin.IsLoopbackHost(name) {
		return nil
	}
	if slices.ContainsFunc(g.o.Hosts,
		func(admitted string) bool { return strings.EqualFold(admitted, name) }) {
		return nil
	}
	return &refusal{http.StatusForbidden, "host",
		"There is no " + strconv.Quote(short(r.Host)) +
			" here: ask by an address that was allowed (--allow-host), " +
			"or 127.0.0.1 on the same machine."}
}

// origin also reports whether the request comes from a page of another, allowed origin.
func (g *Guard) origin(r *http.Request) (why *refusal, foreign bool) {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil, false
	}
	origin, own := origins[0], "http://"+r.Host
	if r.TLS != nil {
		own = "https://" + r.Host
	}
	if len(origins) == 1 && strings.EqualFold(origin, own) {
		return nil, false
	}
	if len(origins) == 1 && g.o.Origins != nil &&
		slices.ContainsFunc(g.o.Origins(), func(pattern string) bool {
			return weborigin.Match(pattern, strings.ToLower(origin))
		}) {
		return nil, true
	}
	return &refusal{http.StatusForbidden, "origin", "Pages of " + strconv.Quote(short(origin)) +
		" may not ask here: allow them (--allow-origin) if they should."}, false
}

// short bounds a quotation from a request.
func short(s string) string { return s[:min(len(s), 100)] }

func (g *Guard) user(r *http.Request) *refusal {
	if peer.From(r.Context()) == peer.Other {
		return &refusal{http.StatusForbidden, "user",
			"This port is for another user of this machine: start a server " +
				"of your own."}
	}
	return nil
}

// present is user for clients without a token in the request. It also refuses a client whose
// process the kernel does not know any more: a client that has half closed its connection can still
// read.
func (g *Guard) present(r *http.Request) *refusal {
	if peer.From(r.Context()) == peer.Gone {
		return &refusal{http.StatusForbidden, "user",
			"Nobody is at the other end of this connection any more."}
	}
	return g.user(r)
}

// free reports whether a request needs no token. The request of a foreign page always needs one:
// the kernel reports its browser as this user's, but the page is not the user's program. A page at a
// name is foreign, too: localhost leads browsers to port 7433 of ::1 first, which may be another
// user's.
func (g *Guard) free(r *http.Request) bool {
	_, foreign := g.origin(r)
	site := r.Header.Get("Sec-Fetch-Site") // browsers send no Origin with some requests
	if (r.Header.Get("Origin") != "" || site == "same-origin") && net.ParseIP(hostOf(r)) == nil {
		return false
	}
	return g.o.NoToken && !g.o.Public && !foreign && site != "cross-site" && site != "same-site" &&
		peer.From(r.Context()) == peer.Same
}

func (g *Guard) tokenMissing() *refusal {
	says := "Send the token of the user who runs this server, as Authorization: Bearer TOKEN."
	if g.o.Token == "" {
		says = "This server could not read its token and admits nobody: see its log."
	}
	return &refusal{http.StatusUnauthorized, "token", says}
}

const codeInvalidRequest = -32600

// refuse answers a POST with a JSON-RPC error, any other request with text.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	g.Count(why.reason, r)
	if why.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		http.Error(w, why.says, why.status) // it sets nosniff
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(why.status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have gone
		"jsonrpc": "2.0", "error": map[string]any{"code": codeInvalidRequest, "message": why.says},
	})
}

// sayEvery is the least time between two lines of the log for the same reason.
const sayEvery = 10 * time.Second

// Count counts and logs a refusal, also of another package. There must be few different reasons.
func (g *Guard) Count(reason string, r *http.Request) {
	g.mu.Lock()
	g.refused[reason]++
	n, quiet := g.refused[reason], time.Since(g.said[reason]) < sayEvery
	if !quiet {
		g.said[reason] = time.Now()
	}
	g.mu.Unlock()
	if g.o.Refused != nil {
		g.o.Refused(reason)
	}
	if !quiet {
		g.o.Log.Warn("refused a request", "reason", reason, "remote", r.RemoteAddr, "path",
			short(r.URL.Path), "so far", n)
	}
}

// allow lets a page of an allowed origin read the answer.
func allow(head http.Header, r *http.Request) {
	head.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	head.Add("Vary", "Origin")
	head.Set("Access-Control-Expose-Headers",
		"Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
	if r.Method != http.MethodOptions {
		return
	}
	head.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	head.Set("Access-Control-Allow-Headers",
		cmp.Or(r.Header.Get("Access-Control-Request-Headers"), "*"))
	head.Set("Access-Control-Max-Age", "7200")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		head.Set("Access-Control-Allow-Private-Network", "true")
	}
}
