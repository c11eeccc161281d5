package agents

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// Each agent over HTTP has a share of the sessions, listens and requests. HTTP does not say which
// process sends a request. So an agent is one address and one name: the name from initialize or
// _meta, otherwise its User-Agent. A program that changes its name with each request gets a share
// for each name. This is no attack: only this user's programs, and programs with the token, get
// here. All agents together are bounded too, separately for each kind, so that listens never keep
// an agent from reading.

// Shares are the bounds of one agent on HTTP. 0 is the default. A value above the bound of all
// agents together counts as that bound.
type Shares struct {
	Sessions int // of the legacy era; default 128, of all agents together 512
	Listens  int // default 256, of all agents together 1,024
	Requests int // under way; default 512, of all agents together 1,024
}

// DefaultShares are the values that 0 stands for.
var DefaultShares = Shares{Sessions: 128, Listens: 256, Requests: 512}

// The kinds of shares.
const (
	ofSessions = "session"
	ofListens  = "listen"
	ofRequests = "request"
)

// option is the flag of `pagewire serve` that sets a share.
func option(of string) string { return "--max-" + of + "s" }

// shares count the shares that each agent has taken, by kind.
type shares map[string]*quota.Quota

func newShares(s Shares) shares {
	of := func(asked, each, all int) *quota.Quota {
		if asked > 0 {
			each = min(asked, all)
		}
		return quota.New(int64(all), int64(each))
	}
	return shares{
		ofSessions: of(s.Sessions, DefaultShares.Sessions, 512),
		ofListens:  of(s.Listens, DefaultShares.Listens, 1024),
		ofRequests: of(s.Requests, DefaultShares.Requests, 1024),
	}
}

// A fullError says which bound has been reached: the bound of one agent, or of all agents together.
type fullError struct {
	of    string
	limit int64
	all   bool // of all agents together
}

func (e *fullError) Error() string {
	if e.all {
		return fmt.Sprintf("Too many %ss: all agents together have %d, and no more are taken", e.of,
			e.limit)
	}
	return fmt.Sprintf("Too many %ss: one agent may have %d at a time (%s)", e.of, e.limit,
		option(e.of))
}

// acquire counts one more share, which release gives back, or returns the bound that leaves no
// room.
func (s shares) acquire(of, who string) (release func(), full *fullError) {
	if q := s[of].Take(who, 1); q != nil {
		return nil, &fullError{of, q.Limit, !q.Owner}
	}
	return sync.OnceFunc(func() { s[of].Give(who, 1) }), nil
}

// refuse answers a request above a bound: 429 for one agent's bound, 503 for the bound of all
// agents. An events/stream (stream) gets 429 with the events extension's error for both.
func (e *fullError) refuse(w http.ResponseWriter, id bridge.JSON, stream, final bool) {
	w.Header().Set("Retry-After", "1")
	if stream {
		err := bridge.EventError{Kind: bridge.EventExhausted, Message: e.Error()}
		refuse(w, http.StatusTooManyRequests, id, err.Kind.Code(final), err.Error(),
			map[string]any{"limit": "subscriptions", "max": e.limit})
		return
	}
	status := http.StatusTooManyRequests
	d := map[string]any{"reason": e.of + "_limit", "limit": e.limit, "of": "agent",
		"option": option(e.of)}
	if e.all {
		status, d["of"] = http.StatusServiceUnavailable, "all agents"
		delete(d, "option")
	}
	refuse(w, status, id, codeInternal, e.Error(), d)
}

// maxName is the number of bytes that are kept of an agent's name.
const maxName = 100

// who is the agent that sends a request: its address and name.
//
// By what is an agent on HTTP known, to bound its sessions? By its address and the name that it
// gives itself: finding the process of a connection takes a search of 20,000 links. A program that
// changes its name gets more shares, so the sum is bounded too. At the limit, unused sessions end
// first (TestFloodOfInitialize).
func who(r *http.Request, message bridge.Incoming) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	info := message.Params.Get("_meta").Get("io.modelcontextprotocol/clientInfo")
	modern, _ := info.Get("name").Text()
	legacy, _ := message.Params.Get("clientInfo").Get("name").Text()
	name := cmp.Or(modern, legacy, r.UserAgent())
	return host + " " + strconv.Quote(name[:min(len(name), maxName)])
}
