// Package coalesce thins streams of changes: subscribers are notified early, not too often, and
// always after the last change.
//
// Each key (an Item) has a Pace. A touch of an item with credit fires immediately: that is the
// leading edge, for the few changes that one action of a person makes. Each firing costs one
// credit, and each interval gives one back. A touch without credit marks the item dirty, and a
// dirty item fires as soon as it has credit: that is the trailing edge. So a stream fires once per
// interval, the wait is bounded however long the touches go on, and a firing always follows the
// last touch. Waiting items fire in the order in which they fall due, so a key that is touched a
// million times delays no other.
//
// The package keeps no clock and starts no timer: the caller passes the time, and asks Next when to
// call again. It never allocates for a known item.
package coalesce

// A Time is a number of milliseconds on a clock that its owner chooses and that never goes back.
type Time int64

// A Pace limits how often an item fires: once per Interval, or at each touch if Interval is 0 or
// less. In quick succession it fires Burst times; a Burst below 1 counts as 1. A Burst of 1 allows
// no two firings within an interval.
type Pace struct {
	Interval Time
	Burst    int
}

// An Item is one key: it holds a caller's Value and the state of its stream. Its zero state is
// quiet. It belongs to one Queue for as long as it is dirty there.
type Item[T any] struct {
	Value T

	// full is when it will have all its credit again: it lacks one for each interval until then. It
	// is set from the first firing on (fired). A firing moves it on, and a shorter pace back.
	full  Time
	fired bool
	due   Time // while dirty: when it will have credit
	index int  // 1 + position in the heap; 0 while not dirty
}

// Dirty reports whether a firing is still to come.
func (it *Item[T]) Dirty() bool { return it.index > 0 }

// A Queue holds the dirty items of many streams. Its zero value is ready for use.
type Queue[T any] struct {
	heap []*Item[T] // dirty items, soonest due first
}

// Touch notes a change at now, and reports whether the item fires now. Otherwise Pop returns it
// when it has credit. A dirty item never fires here.
//
// The pace may be another one than before. No pace leaves an item without credit for longer than
// its interval: a page that was reloaded without its interval of a day was silent for that day.
func (q *Queue[T]) Touch(now Time, it *Item[T], p Pace) bool {
	burst, interval := Time(max(p.Burst, 1)), max(p.Interval, 0)
	it.full = min(it.full, now+burst*interval)
	due := it.full - (burst-1)*interval
	if it.index == 0 {
		if !it.fired || due <= now {
			it.spend(now, p)
			return true
		}
		q.heap = append(q.heap, it)
		it.index = len(q.heap)
		it.due = due
	}
	it.due = min(it.due, due)
	q.up(it.index - 1)
	return false
}

func (it *Item[T]) spend(now Time, p Pace) {
	if !it.fired || it.full < now {
		it.full = now
	}
	it.full += max(p.Interval, 0)
	it.fired = true
}

// Pop takes out the item that fell due first, if it fires at now. It returns nil when no more is
// due.
func (q *Queue[T]) Pop(now Time, pace func(T) Pace) *Item[T] {
	if len(q.heap) == 0 || q.heap[0].due > now {
		return nil
	}
	it := q.heap[0]
	q.Remove(it)
	it.spend(now, pace(it.Value))
	return it
}

// Remove drops a pending firing of an item: its key is going away.
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

// Next is the time at which Pop will have an item. ok is false while no item is dirty.
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
