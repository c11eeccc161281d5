//go:build !js

package dial

import (
	"slices"
	"sync"
)

// Strangers are clients that have not shown a ticket or a token yet, in order of coming. When there is one too many the
// oldest is turned away: a client shows its ticket at once, and if the newest were refused, a few hundred silent
// connections a second would keep all others out.
type Strangers[T comparable] struct {
	most     int
	turnAway func(T)

	mu   sync.Mutex
	list []T
}

// NewStrangers returns none yet, for most at once. turnAway is called on a goroutine of its own.
func NewStrangers[T comparable](most int, turnAway func(T)) *Strangers[T] {
	return &Strangers[T]{most: most, turnAway: turnAway}
}

// Meet counts a stranger.
func (s *Strangers[T]) Meet(one T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= s.most {
		go s.turnAway(s.list[0])
		s.list = s.list[1:]
	}
	s.list = append(s.list, one)
}

// Know counts one stranger less, if the client still is one.
func (s *Strangers[T]) Know(one T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other T) bool { return other == one })
}
