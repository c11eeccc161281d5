// Package quota divides what several parties use: each origin, agent or user has a share, and none
// can take all. A Quota refuses an amount that does not fit. A Backlog ends a receiver to make
// room. Places let those wait who have used up their share, until it is their turn. Shares choose
// from a list that is too long. The package never knows what it divides, and never looks at a
// clock.
package quota

import "sync"

// A Quota refuses an amount that does not fit. It is safe for concurrent use.
type Quota struct {
	all, each int64

	mu   sync.Mutex
	held int64
	of   map[string]int64
}

// New returns a Quota with a limit for all owners together, and a limit for each owner.
func New(all, each int64) *Quota { return &Quota{all: all, each: each, of: map[string]int64{}} }

// Full says which limit leaves no room.
type Full struct {
	Limit int64
	Owner bool // the limit is that of one owner
}

// Take counts an amount for an owner, and returns nil; or it counts nothing, and returns the limit
// that is exceeded.
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

// Give gives back an amount that Take has counted.
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

// Held is the amount that all owners hold together.
func (q *Quota) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// A Backlog bounds the bytes that wait for several receivers together, including bytes being
// written. Above the bound it ends the receiver with the most bytes, of the owner with the most
// bytes. It is safe for concurrent use.
type Backlog[R comparable] struct {
	most int
	end  func(R)

	mu   sync.Mutex
	held int
	of   map[R]*behind
}

// behind counts the bytes that wait for one receiver.
type behind struct {
	owner any // at the first Add
	bytes int
	ended bool // to make room for the others
}

// NewBacklog returns a Backlog with a bound in bytes. It calls end in a new goroutine.
func NewBacklog[R comparable](bytes int, end func(R)) *Backlog[R] {
	return &Backlog[R]{most: bytes, end: end, of: map[R]*behind{}}
}

// Held is the number of waiting bytes.
func (b *Backlog[R]) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Add adds to the bytes that wait for a receiver, or subtracts. It does not block. A nil Backlog
// counts nothing.
func (b *Backlog[R]) Add(r R, owner any, bytes int) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(r, owner, bytes)
}

// Set is Add for the difference to the bytes that wait.
func (b *Backlog[R]) Set(r R, owner any, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.of[r]; w != nil {
		bytes -= w.bytes
	}
	if bytes != 0 {
		b.add(r, owner, bytes)
	}
}

func (b *Backlog[R]) add(r R, owner any, bytes int) {
	w := b.of[r]
	if w == nil {
		w = &behind{owner: owner}
		b.of[r] = w
	}
	b.held += bytes
	if w.bytes += bytes; w.bytes == 0 {
		delete(b.of, r)
	}
	for b.held > b.most && b.coming() > b.most {
		r, last := b.last()
		if last == nil {
			return
		}
		last.ended = true
		go b.end(r)
	}
}

// coming is the number of bytes that wait for receivers that were not ended.
func (b *Backlog[R]) coming() int {
	held := b.held
	for _, w := range b.of {
		if w.ended {
			held -= w.bytes
		}
	}
	return held
}

// last returns the receiver to end. found is nil if all were ended.
func (b *Backlog[R]) last() (receiver R, found *behind) {
	of := map[any]int{}
	for _, w := range b.of {
		if !w.ended {
			of[w.owner] += w.bytes
		}
	}
	for r, w := range b.of {
		if !w.ended && (found == nil || of[w.owner] > of[found.owner] ||
			of[w.owner] == of[found.owner] && w.bytes > found.bytes) {
			receiver, found = r, w
		}
	}
	return receiver, found
}
