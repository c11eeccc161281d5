// Package relay lets one page have any number of cores elsewhere. To the page it is the core, and
// to each core it is the page. A node of a fleet has one relay for each page that dials in. Its
// cores are the gateways of the page's user, on all nodes that have agents of that user.
//
// From the page: Receive takes a frame, package link checks it against the limits, and its messages
// go to the cores that they concern (page.go). From a core: Core.Receive takes a frame, and its
// requests become calls on the page's one link (core.go). Calls get new numbers. A URI is watched
// at the page while at least one core watches it.
//
// Without a core, a relay keeps only the page's description and offers, as the page wrote them, for
// the next core. It never starts a goroutine, holds a lock, reads a clock or writes to anything,
// and never looks into contents. It passes no touch to a core that neither watches nor reads the
// URI.
package relay

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Options bound a Relay's input, and say where it sends frames. All pages of a node share them.
type Options struct {
	// Build is the version of Pagewire that is sent to the page and the cores.
	Build string
	// AnyScheme admits URIs at no web origin at all, such as test://. It is for conformance suites.
	AnyScheme bool
	// Limits bound the page's frames.
	Limits link.Limits
	// Send takes a frame for a core. It must not call the Relay.
	Send func(to *Core, frame []byte)
	// Touches counts the touches that were sent to cores.
	Touches atomic.Int64
	// Offered bounds the bytes that pages offer, by user. Above it further offers are refused.
	Offered *quota.Quota
}

// A Relay is one page. Its methods, and those of its Cores, are not to be called concurrently.
type Relay struct {
	opt    *Options
	user   string
	origin string
	peer   *link.Peer
	about  link.About
	seat   string           // the tab that replaces the page's own; "" if none does
	offers map[string]offer // by URI; nil while there is none
	order  int              // of the last offer
	tools  string
	bye    string // the JSON argument of the page's bye; "" before that
	held   int64  // bytes of offers and tools, which Options.Offered counts too

	cores   []*Core           // that have not left; nil while there is none
	watches map[string]*watch // by URI; nil while there is none
}

// An offer is a resource as the page describes it.
type offer struct {
	descriptor string
	order      int
}

// A watch is a URI that cores watch, and therefore the relay at the page: there is one while a core
// has not left that watches it. A core that watches later is told the revision from here.
type watch struct {
	cores    []*Core // at least one
	active   bool    // the page has answered
	revision int64   // the highest that the page has told since
}

// A Core is one of a page's cores, as the page's relay sees it.
type Core struct {
	// Owner is the argument of Join.
	Owner any

	r       *Relay
	acts    bool                // it sees the page's tools, and may call them
	out     wire.Text           // calls for the core: a JSON array without its end; nil for none
	pending map[uint32]*pending // by the core's number; nil once it has left
	left    bool                // it is not among the relay's cores; nothing more is sent to it
	began   bridge.Time         // of the session
	late    link.Lateness
	// watching is the number of the relay's watches that have the core.
	watching int
}

// A pending is a read or a tool call of a core, until the core ends it.
type pending struct {
	uri   string // of a read that has not been answered; "" otherwise
	call  uint32 // the number at the page
	asked bridge.Time
	end   func()
}

// pageSide is a Relay as the page sees it: its core. Relay.Receive calls its methods.
type pageSide Relay

// New returns the relay of a user's page, whose link begins at now. origin is the page's, as its
// browser gave it. URIs at other origins are refused.
func New(now bridge.Time, user, origin string, o *Options) *Relay {
	r := &Relay{opt: o, user: user, origin: origin}
	r.peer = link.New(now, (*pageSide)(r), o.Build, o.Limits)
	return r
}

// Seat replaces the tab that the page will name in its hello. It must be called before the hello
// arrives.
func (r *Relay) Seat(tab string) { r.seat = tab }

// About is the page's description for cores that join. The caller may change it between the page's
// hello and a Join.
func (r *Relay) About() *link.About { return &r.about }

// Receive takes a frame of the page. The error is a *link.Ended: then Take has the last frame for
// the page, after which the transport must be closed.
func (r *Relay) Receive(now bridge.Time, f link.Frame) error {
	err := r.peer.Apply(now, f)
	r.flush()
	return err
}

// Refuse ends the link for a frame that the transport did not accept, as Receive does for an
// invalid frame.
func (r *Relay) Refuse(reason string) {
	_ = r.peer.Refuse(reason) // the error has the same reason
	r.flush()
}

// Take returns the frame to send to the page at now, or nil. It must be called after every other
// method, including those of Cores, and at Deadline.
func (r *Relay) Take(now bridge.Time) []byte { return r.peer.Take(now) }

// Deadline is the time when Take will have a frame even if nothing else happens. ok is false if
// there is none.
func (r *Relay) Deadline() (at bridge.Time, ok bool) { return r.peer.Deadline() }

// Close ends the relay. It sends nothing to the cores, because the caller knows them.
func (r *Relay) Close() {
	for _, c := range r.cores {
		c.left = true
	}
	r.cores, r.watches, r.offers, r.tools = nil, nil, nil, ""
	r.peer.Close()
	r.opt.Offered.Give(r.user, r.held)
	r.held = 0
}

// Watched is how many URIs are watched at the page.
func (r *Relay) Watched() int { return len(r.watches) }

// Bye reports whether the page has said that it ends the link, and whether for good.
func (r *Relay) Bye() (said, gone bool) { return r.bye != "", r.bye == "true" }

// owns reports whether the page may register a URI.
func (r *Relay) owns(uri string) bool {
	return strings.HasPrefix(uri, r.origin+"/") ||
		r.opt.AnyScheme && !strings.HasPrefix(uri, "http:") && !strings.HasPrefix(uri, "https:")
}

// count adds more, which may be negative, to the offered bytes. It fails if there is no room.
func (r *Relay) count(more int64) error {
	if full := r.opt.Offered.Take(r.user, more); full != nil {
		whose := "of this node"
		if full.Owner {
			whose = "of this user"
		}
		return fmt.Errorf("all pages %s together offer too much; the limit is %d bytes", whose,
			full.Limit)
	}
	r.held += more
	return nil
}

func (r *Relay) flush() {
	for _, c := range r.cores {
		c.flush()
	}
}

// describe is the page's description for a core. Its origin is from the browser, not from the page.
func (r *Relay) describe() wire.Text {
	a := &r.about
	title := ""
	if a.Title != nil {
		title = *a.Title
	}
	starts := ""
	if a.Starts {
		starts = `,"starts":true`
	}
	if a.Shown {
		starts += `,"shown":true`
	}
	return wire.Text(`{"epoch":`).Str(a.Epoch).Raw(`,"tab":`).Str(a.Tab).
		Raw(`,"frame":`).Str(a.Frame).Raw(`,"title":`).Str(title).Raw(`,"url":`).Str(a.URL).
		Raw(`,"focused":`).Int(int(a.Focused)).Raw(`,"dial":`).Int(int(a.Dial)).
		Raw(`,"origin":`).Str(r.origin).Raw(starts + `}`)
}

func (c *Core) flush() {
	if len(c.out) == 0 || c.left {
		return
	}
	frame := c.out.Raw("]")
	c.out = nil
	c.r.opt.Send(c, frame)
}
