//go:build !js

package agents

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/pagewire/pagewire/bridge"
)

// Agents over HTTP have shares of all that is bounded. HTTP does not say which process sends a request. So an agent is
// one address and one name: the name from initialize or _meta, or else its User-Agent. A program that changes its name
// with each request gets a share for each; it is this user's program, or has the token. All agents together are bounded
// too, separately for each kind, so that listens never keep an agent from reading.

// Shares are how much one agent on HTTP may have at a time. 0 is the default. More than the bound of all agents
// together counts as that bound.
type Shares struct {
	Sessions int // of the legacy era; default 128, of all agents together 512
	Listens  int // default 256, of all agents together 1,024
	Requests int // under way; default 512, of all agents together 1,024
}

// DefaultShares are the defaults.
var DefaultShares = Shares{Sessions: 128, Listens: 256, Requests: 512}

// The kinds of shares.
const (
	ofSessions = "session"
	ofListens  = "listen"
	ofRequests = "request"
)

// option is the flag of `pagewire serve` that sets a share.
func option(of string) string { return "--max-" + of + "s" }

// A bound is a limit for each agent and for all.
type bound struct{ each, all int }

func (s Shares) bounds() map[string]bound {
	of := func(asked, each, all int) bound {
		if asked > 0 {
			each = min(asked, all)
		}
		return bound{each, all}
	}
	return map[string]bound{
		ofSessions: of(s.Sessions, DefaultShares.Sessions, 512),
		ofListens:  of(s.Listens, DefaultShares.Listens, 1024),
		ofRequests: of(s.Requests, DefaultShares.Requests, 1024),
	}
}

// shares counts the use by each agent.
type shares struct {
	bounds map[string]bound

	mu   sync.Mutex
	held map[share]int
	sum  map[string]int
}

type share struct{ of, who string }

func newShares(s Shares) *shares {
	return &shares{bounds: s.bounds(), held: map[share]int{}, sum: map[string]int{}}
}

// A fullError names the bound that has been reached: an agent's own, or that of all.
type fullError struct {
	of    string
	limit int
	all   bool // the bound of all agents together
}

func (e *fullError) Error() string {
	if e.all {
		return fmt.Sprintf("Too many %ss: all agents together have %d, and no more are taken", e.of, e.limit)
	}
	return fmt.Sprintf("Too many %ss: one agent may have %d at a time (%s)", e.of, e.limit, option(e.of))
}

// take counts one more use, which release gives back. If that would exceed a bound, full says which.
func (s *shares) take(of, who string) (release func(), full *fullError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, key := s.bounds[of], share{of, who}
	switch {
	case s.held[key] >= b.each:
		return nil, &fullError{of, b.each, false}
	case s.sum[of] >= b.all:
		return nil, &fullError{of, b.all, true}
	}
	s.held[key]++
	s.sum[of]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sum[of]--
		if s.held[key]--; s.held[key] == 0 {
			delete(s.held, key)
		}
	}), nil
}

// refuseFull answers a request above a bound: 429 for the agent's own, 503 for that of all.
func refuseFull(w http.ResponseWriter, id bridge.JSON, full *fullError) {
	type detail struct {
		Reason string `json:"reason"`
		Limit  int    `json:"limit"`
		Of     string `json:"of"`
		Option string `json:"option,omitempty"`
	}
	status, d := http.StatusTooManyRequests, detail{full.of + "_limit", full.limit, "agent", option(full.of)}
	if full.all {
		status, d.Of, d.Option = http.StatusServiceUnavailable, "all agents", ""
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, status, []byte(id), codeInternal, full.Error(), d)
}

// maxName bounds the part of an agent's name that is kept.
const maxName = 100

// who names the agent that sends a request. message may have its name.
func who(r *http.Request, message bridge.Incoming) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	modern, _ := message.Params.Get("_meta").Get("io.modelcontextprotocol/clientInfo").Get("name").Text()
	legacy, _ := message.Params.Get("clientInfo").Get("name").Text()
	name := cmp.Or(modern, legacy, r.UserAgent())
	return host + " " + strconv.Quote(name[:min(len(name), maxName)])
}
