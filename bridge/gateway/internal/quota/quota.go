// Package quota bounds how much is held at a time, of each owner and of all: bytes, or things. A Quota refuses an amount
// that does not fit. A Backlog ends a receiver to make room. Neither makes a caller wait.
package quota

import "sync"

// A Quota refuses an amount that does not fit. It is safe for concurrent use.
type Quota struct {
	all, each int64

	mu   sync.Mutex
	held int64
	of   map[string]int64
}

// New returns a Quota of so much in all, and of each owner.
func New(all, each int64) *Quota { return &Quota{all: all, each: each, of: map[string]int64{}} }

// Full says which limit leaves no room.
type Full struct {
	Limit int64
	Owner bool // the limit is that of one owner
}

// Take counts an amount for an owner, unless there is no room for it. full is nil then.
func (q *Quota) Take(owner string, amount int64) (full *Full) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case amount <= 0:
	case q.of[owner]+amount > q.each:
		return &Full{q.each, true}
	case q.held+amount > q.all:
		return &Full{q.all, false}
	}
	q.add(owner, amount)
	return nil
}

// Give gives back what Take has counted.
func (q *Quota) Give(owner string, amount int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(owner, -amount)
}

func (q *Quota) add(owner string, amount int64) {
	q.held += amount
	if q.of[owner] += amount; q.of[owner] == 0 {
		delete(q.of, owner)
	}
}

// Held is how much is counted.
func (q *Quota) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}
