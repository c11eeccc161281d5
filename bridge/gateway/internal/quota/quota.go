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

// A Backlog bounds the bytes that wait for several receivers together, also those being written. Above the bound one is
// ended: of the owner for whom most waits, the one for which most does. It is safe for concurrent use.
type Backlog[R comparable] struct {
	most int
	end  func(R)

	mu   sync.Mutex
	held int
	of   map[R]*behind
}

// behind is what waits for one receiver.
type behind struct {
	owner any // when it began to
	bytes int
	ended bool // for the others
}

// NewBacklog returns a Backlog of so many bytes. end is called by a goroutine of its own.
func NewBacklog[R comparable](bytes int, end func(R)) *Backlog[R] {
	return &Backlog[R]{most: bytes, end: end, of: map[R]*behind{}}
}

// Held is how many bytes wait.
func (b *Backlog[R]) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Add counts that more bytes wait for a receiver, or fewer. It does not block. A nil Backlog counts nothing.
func (b *Backlog[R]) Add(r R, owner any, bytes int) {
	if b == nil || bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
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

// coming is what will wait when the receivers that were ended are gone.
func (b *Backlog[R]) coming() int {
	held := b.held
	for _, w := range b.of {
		if w.ended {
			held -= w.bytes
		}
	}
	return held
}

// last is the receiver to end.
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
