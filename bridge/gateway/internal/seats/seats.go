//go:build !js

// Package seats says which document has which place in which tab, among those that connect by themselves.
//
// A page names its tab by an id that it keeps in sessionStorage, which a browser copies when it duplicates a tab. So a
// document may name a tab whose place is taken: by its own connection of before, by the document that is being left, or
// by that of the tab which was duplicated. The package never decides whose tab it is, and never believes that who is
// silent is still there.
package seats

import (
	"crypto/rand"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A Seat is the place of a document in a tab. Of says whose tabs these are: an id is unique among them.
type Seat struct{ Of, Tab, Frame string }

// A Holder is a document that is connected.
type Holder interface {
	comparable
	// Ping fails where the document has not shown within a time that it is there.
	Ping(within time.Duration) error
	// End ends the connection, and returns when the document has risen.
	End()
}

// aliveTimeout is how long a document may take to show that it still has a tab that another one claims.
const aliveTimeout = 2 * time.Second

var (
	tabShape   = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)
	frameShape = regexp.MustCompile(`^([0-9]{1,4}(\.[0-9]{1,4}){0,7})?$`)
)

// IsNamed reports whether a hello names a tab and a frame as the page layer does.
func IsNamed(tab, frame string) bool {
	return tabShape.MatchString(tab) && frameShape.MatchString(frame)
}

// Seats are those that are taken. The zero value has none. Its methods may be called concurrently.
type Seats[D Holder] struct {
	mu    sync.Mutex
	taken map[Seat]D
}

// Sit gives a document its seat, and returns it, and the id of the tab if it is another than the document says: the one
// that has the seat answers a ping. One that does not is ended, and waited for. same, which may be nil, reports whether
// the holder is an earlier connection of the same document, from which the seat is taken.
func (s *Seats[D]) Sit(by D, at Seat, same func(holder D) bool) (seat Seat, given string) {
	at.Tab, at.Frame = strings.Clone(at.Tab), strings.Clone(at.Frame) // not the frame that they came in
	for {
		holder, ok := s.take(by, at, same)
		switch {
		case ok:
			return at, given
		case holder.Ping(aliveTimeout) != nil:
			holder.End()
		default:
			given = rand.Text()
			at.Tab = given
		}
	}
}

// take takes a seat, or returns its holder.
func (s *Seats[D]) take(by D, at Seat, same func(D) bool) (holder D, ok bool) {
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

// Len is how many are taken.
func (s *Seats[D]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}
