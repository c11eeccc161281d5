package dial

import (
	"container/list"
	"sync"
)

// Strangers are clients that have not shown a ticket or a token yet, in order of arrival. If there
// is one too many, the oldest is turned away. A client shows its ticket at once: if the newest were
// turned away, a few hundred silent connections a second would keep out all others.
type Strangers[T comparable] struct {
	most     int
	turnAway func(T)

	mu    sync.Mutex
	order *list.List // of T, the oldest first
	of    map[T]*list.Element
}

// NewStrangers returns an empty Strangers. most bounds the clients in it. turnAway is called on a
// new goroutine.
func NewStrangers[T comparable](most int, turnAway func(T)) *Strangers[T] {
	return &Strangers[T]{most: most, turnAway: turnAway, order: list.New(),
		of: map[T]*list.Element{}}
}

// Meet counts a stranger.
func (s *Strangers[T]) Meet(one T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.of) >= s.most {
		oldest := s.order.Front().Value.(T)
		s.remove(oldest)
		go s.turnAway(oldest)
	}
	s.of[one] = s.order.PushBack(one)
}

// Know removes a client from the strangers, if it is one. Each request with a good token calls it.
func (s *Strangers[T]) Know(one T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(one)
}

func (s *Strangers[T]) remove(one T) {
	if e := s.of[one]; e != nil {
		s.order.Remove(e)
		delete(s.of, one)
	}
}
