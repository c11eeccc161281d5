//go:build !js

// Package quota bounds bytes that are held at a time, of each owner and of all. It refuses bytes above a bound: it
// never makes a caller wait, and never ends anything to make room.
package quota

import "sync"

// A Quota is safe for concurrent use.
type Quota struct {
	all, each int64

	mu   sync.Mutex
	held int64
	of   map[string]int64
}

// New returns a Quota of so many bytes in all, and of each owner.
func New(all, each int64) *Quota { return &Quota{all: all, each: each, of: map[string]int64{}} }

// Full is the error of Take.
type Full struct {
	Limit int64
	Owner bool // the limit is that of one owner
}

func (f *Full) Error() string { return "too much is held" }

// Take counts bytes for an owner, unless there is no room for them.
func (q *Quota) Take(owner string, bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case bytes <= 0:
	case q.of[owner]+bytes > q.each:
		return &Full{q.each, true}
	case q.held+bytes > q.all:
		return &Full{q.all, false}
	}
	q.add(owner, bytes)
	return nil
}

// Give gives back what Take has counted.
func (q *Quota) Give(owner string, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(owner, -bytes)
}

func (q *Quota) add(owner string, bytes int64) {
	q.held += bytes
	if q.of[owner] += bytes; q.of[owner] == 0 {
		delete(q.of, owner)
	}
}

// Held is how many bytes are counted.
func (q *Quota) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}
