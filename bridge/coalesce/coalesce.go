// Package coalesce thins streams of "this changed" so that whoever listens is told early, not too often, and never
// misses the last change.
//
// Each key (an Item) fires at once on its first touch, the leading edge, and then at most once per interval: a
// touch inside the interval marks the item dirty, and a dirty item fires when its interval ends, the trailing
// edge. So the wait has a ceiling, however long the touches go on, and the last touch is always followed by a
// firing. Items that wait fire in the order in which they fall due, so that a key that is touched a million times
// delays no other.
//
// The package keeps no clock and starts no timer: the caller says what time it is, and asks Next when to call
// again. It never allocates for an item that is already known.
package coalesce

// A Time is a number of milliseconds on a clock that its owner chooses and that never goes back.
type Time int64

// An Item is one key: it holds a caller's Value and the state of its stream. Its zero state is quiet. It belongs
// to one Queue for as long as it is dirty there.
type Item[T any] struct {
	Value T

	due   Time // when the interval after the last firing ends
	fired bool // whether due means anything yet
	index int  // 1 + position in the heap; 0 while not dirty
}

// Dirty reports whether a firing is still to come.
func (it *Item[T]) Dirty() bool { return it.index > 0 }

// A Queue holds the dirty items of many streams. Its zero value is ready for use.
type Queue[T any] struct {
	heap []*Item[T] // dirty items, soonest due first
}

// Touch says that it changed at now, and reports whether it fires now. If not, Pop will return it when interval,
// counted from its last firing, is over. An interval of 0 or less fires every time.
func (q *Queue[T]) Touch(now Time, it *Item[T], interval Time) bool {
	if it.index > 0 {
		return false
	}
	if it.fired && now < it.due {
		q.heap = append(q.heap, it)
		it.index = len(q.heap)
		q.up(len(q.heap) - 1)
		return false
	}
	it.fired = true
	it.due = now + max(interval, 0)
	return true
}

// Pop takes out an item that fires at now: the one that fell due first, whose next interval then starts. It
// returns nil when no more is due.
func (q *Queue[T]) Pop(now Time, interval func(T) Time) *Item[T] {
	if len(q.heap) == 0 || q.heap[0].due > now {
		return nil
	}
	it := q.heap[0]
	q.Remove(it)
	it.due = now + max(interval(it.Value), 0)
	return it
}

// Remove forgets what is still to come for it, if anything: for a key that is going away.
func (q *Queue[T]) Remove(it *Item[T]) {
	if it.index == 0 {
		return
	}
	i, last := it.index-1, len(q.heap)-1
	it.index = 0
	moved := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i < last {
		q.heap[i] = moved
		moved.index = i + 1
		q.down(i)
		q.up(moved.index - 1)
	}
}

// Next tells when Pop will have something to return. ok is false while nothing is dirty.
func (q *Queue[T]) Next() (at Time, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].due, true
}

func (q *Queue[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if q.heap[parent].due <= q.heap[i].due {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *Queue[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.heap[child+1].due < q.heap[child].due {
			child++
		}
		if q.heap[i].due <= q.heap[child].due {
			return
		}
		q.swap(i, child)
		i = child
	}
}

func (q *Queue[T]) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].index, q.heap[j].index = i+1, j+1
}
