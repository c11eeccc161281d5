// Package seats assigns places in tabs to documents that connect by themselves.
//
// A page names its tab by an id that it keeps in sessionStorage, which a browser copies when it
// duplicates a tab. So a document may name a tab whose place is taken: by its own earlier
// connection, by the document before it in the tab, or by the document of the duplicated tab. A
// document that does not answer a ping counts as gone.
package seats

import (
	"crypto/rand"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A Seat is the place of a document in a tab. Of is the tabs' owner: an id is unique among the tabs
// of one owner.
type Seat struct{ Of, Tab, Frame string }

// A Holder is a document that is connected.
type Holder interface {
	comparable
	// Ping fails if the document does not answer within a time.
	Ping(within time.Duration) error
	// End ends the connection, and returns after the document's Rise.
	End()
}

// AliveTimeout is how long a document may take to answer if another one claims its tab.
const AliveTimeout = 2 * time.Second

var (
	tabShape   = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)
	frameShape = regexp.MustCompile(`^([0-9]{1,4}(\.[0-9]{1,4}){0,7})?$`)
)

// IsNamed reports whether a hello has valid names of a tab and a frame.
func IsNamed(tab, frame string) bool {
	return tabShape.MatchString(tab) && frameShape.MatchString(frame)
}

// Seats are the seats that are taken. The zero value has none. Its methods may be called
// concurrently.
type Seats[D Holder] struct {
	mu    sync.Mutex
	taken map[Seat]D
}

// Sit gives a document a seat, and returns that seat. If the holder of the seat answers a ping, the
// document gets a new tab, and given is its id. Sit ends a holder that does not answer, and waits
// for its end. same, which may be nil, reports whether the holder is an earlier connection of the
// same document: it loses the seat.
func (s *Seats[D]) Sit(by D, at Seat, same func(holder D) bool) (seat Seat, given string) {
	// so that the message around them can be freed
	at.Tab, at.Frame = strings.Clone(at.Tab), strings.Clone(at.Frame)
	for {
		holder, ok := s.claim(by, at, same)
		switch {
		case ok:
			return at, given
		case holder.Ping(AliveTimeout) != nil:
			holder.End()
		default:
			given = rand.Text()
			at.Tab = given
		}
	}
}

// claim takes a seat, or returns its holder.
func (s *Seats[D]) claim(by D, at Seat, same func(D) bool) (holder D, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder, taken := s.taken[at]; taken && (same == nil || !same(holder)) {
		return holder, false
	}
	if s.taken == nil {
		s.taken = map[Seat]D{}
	}
	s.taken[at] = by
	return by, true
}

// Rise frees a seat, unless another has taken it.
func (s *Seats[D]) Rise(by D, at Seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[at] == by {
		delete(s.taken, at)
	}
}

// Len is how many seats are taken.
func (s *Seats[D]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}
