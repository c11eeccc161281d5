// Package relay lets one page have any number of cores elsewhere. To the page it is the core, and to each core it is
// the page. A node of a fleet has one relay for each page that dials in. Its cores are the gateways of the page's
// user, on all nodes that have agents of that user.
//
// A page's way: Receive takes a frame, package link holds it against the limits, and what it says goes to the cores
// that it concerns (page.go). A core's way: Core.Receive takes a frame, and what it asks becomes a call of the one link
// that the page has (core.go). Calls are numbered anew; a URI is watched at the page while at least one core watches
// it.
//
// While there is no core it keeps what a core would be told first, as the page wrote it, and nothing else. It never
// starts a goroutine, holds a lock, reads a clock or writes to anything, never looks into contents, and passes no touch
// to a core that neither watches nor reads the URI.
package relay

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/quota"
	"github.com/pagewire/pagewire/bridge/link"
	"github.com/pagewire/pagewire/bridge/wire"
)

// Options say what a Relay takes, and where it sends. All pages of a node share them.
type Options struct {
	// Build is the version of Pagewire that the page and the cores are told.
	Build string
	// AnyScheme admits URIs at no web origin at all, such as test://. It is for conformance suites.
	AnyScheme bool
	// Limits bound what the page may say.
	Limits link.Limits
	// Send takes a frame for a core. It must not call the Relay.
	Send func(to *Core, frame []byte)
	// Touches counts those that were said to cores.
	Touches atomic.Int64
	// Offered bounds what pages offer, by user: above it nothing more is registered.
	Offered *quota.Quota
}

// A Relay is one page. Its methods, and those of its Cores, are not to be called concurrently.
type Relay struct {
	opt    *Options
	user   string
	origin string
	peer   *link.Peer
	about  link.About
	seat   string           // the tab that it is given; "" if its own
	offers map[string]offer // by URI; nil while there is none
	order  int              // of the last offer
	tools  string
	bye    string // what the page has said of its end, as text of the call; "" if it has not
	held   int64  // bytes that it offers

	cores   []*Core           // nil while there is none
	watches map[string]*watch // nil while there is none
}

// An offer is a resource as the page describes it.
type offer struct {
	descriptor string
	order      int
}

// A watch is a URI that cores watch.
type watch struct {
	cores    []*Core
	active   bool // the page has answered
	revision int64
}

// New returns the relay of a user's page, whose link begins at now. URIs at other origins than the page's, as its
// browser gave it, are refused.
func New(now bridge.Time, user, origin string, o *Options) *Relay {
	r := &Relay{opt: o, user: user, origin: origin}
	r.peer = link.New(now, (*pageSide)(r), o.Build, o.Limits)
	return r
}

// Seat gives the page another tab than it will say that it has. It must come before the page's hello.
func (r *Relay) Seat(tab string) { r.seat = tab }

// About is what cores are told of the page when they join. The caller may change it between the page's hello and a Join.
func (r *Relay) About() *link.About { return &r.about }

// Receive takes a frame of the page. The error is a *link.Ended: then Take has what the page is still to be told, and
// its transport is to be closed.
func (r *Relay) Receive(now bridge.Time, f link.Frame) error {
	err := r.peer.Apply(now, f)
	r.flush()
	return err
}

// Refuse ends the link for what the transport did not take of it, as Receive does for what the page said.
func (r *Relay) Refuse(reason string) {
	_ = r.peer.Refuse(reason) // it is the reason again
	r.flush()
}

// Take returns the frame that the page is to be sent at now, or nil. It is to be called after every other method, those
// of Cores included, and when Deadline says so.
func (r *Relay) Take(now bridge.Time) []byte { return r.peer.Take(now) }

// Deadline is when Take will have a frame though nothing else happens. ok is false if it will not.
func (r *Relay) Deadline() (at bridge.Time, ok bool) { return r.peer.Deadline() }

// Close ends the relay. The cores are told nothing: the caller knows them.
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

// owns reports whether a URI is the page's to register.
func (r *Relay) owns(uri string) bool {
	return strings.HasPrefix(uri, r.origin+"/") ||
		r.opt.AnyScheme && !strings.HasPrefix(uri, "http:") && !strings.HasPrefix(uri, "https:")
}

// count counts that more bytes are kept, or fewer, unless there is no room for them.
func (r *Relay) count(more int64) error {
	if full := r.opt.Offered.Take(r.user, more); full != nil {
		whose := "of this node"
		if full.Owner {
			whose = "of this user"
		}
		return fmt.Errorf("all pages %s together offer too much; the limit is %d bytes", whose, full.Limit)
	}
	r.held += more
	return nil
}

func (r *Relay) flush() {
	for _, c := range r.cores {
		c.flush()
	}
}

// describe is what a core is told of the page first: the origin is the browser's word in place of the page's.
func (r *Relay) describe() wire.Text {
	a := &r.about
	title := ""
	if a.Title != nil {
		title = *a.Title
	}
	return wire.Text(`{"epoch":`).Str(a.Epoch).Raw(`,"tab":`).Str(a.Tab).Raw(`,"frame":`).Str(a.Frame).
		Raw(`,"title":`).Str(title).Raw(`,"url":`).Str(a.URL).Raw(`,"focused":`).Int(int(a.Focused)).
		Raw(`,"dial":`).Int(int(a.Dial)).Raw(`,"origin":`).Str(r.origin).Raw(`}`)
}
