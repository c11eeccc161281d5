package socket

import (
	"fmt"
	"sync"
	"time"
)

// An origin is an origin's state: its pages here, and its pages that were dropped.
type origin struct {
	name  string
	pages int // connected documents, including an extension's

	// held while a frame of one of its pages is processed: an origin uses one processor, however many pages it has
	turn   sync.Mutex
	credit time.Duration // of working time for calls; guarded by turn, as are paid and rests
	paid   time.Time
	rests  time.Time // its calls wait until then
	// queue has one place, for a call of one of its pages that waits or is processed. Others wait in order.
	queue chan struct{}

	letGo int       // dropped pages, with no longer pause than letGoTime
	last  time.Time // of the last one
	next  time.Time // when the next page may connect, once letGo is maxLetGo
}

const (
	// If maxLetGo pages of an origin were dropped for breaking the rules, with pauses below letGoTime, one further page
	// may connect every letGoPace. A page that would wait for more than maxWait is told to come later. Otherwise sixty
	// peers that each begin anew at once would keep two processors busy.
	maxLetGo  = 20
	letGoTime = 10 * time.Second
	letGoPace = time.Second
	maxWait   = 5 * time.Second

	// Calls of an origin's pages may use maxCredit of working time at once, and from then on a part of the time.
	// Answers do not count. 10,000 resources take 60 ms; 60 pages that touch as often as they may took a whole
	// processor. A pause has minPause at least: a frame takes 5 us, and waking up as much.
	maxCredit = 100 * time.Millisecond
	partOf    = 4
	minPause  = 10 * time.Millisecond
)

// newOrigin returns an origin with full credit.
func newOrigin(name string) *origin {
	return &origin{name: name, credit: maxCredit, queue: make(chan struct{}, 1)}
}

// await waits until a call of the origin may be processed. It reports false if the connection ends before; otherwise
// the caller must call awaited afterwards.
func (o *origin) await(closed <-chan struct{}) bool {
	select {
	case o.queue <- struct{}{}:
	case <-closed:
		return false
	}
	o.turn.Lock()
	pause := time.Until(o.rests)
	o.turn.Unlock()
	if pause <= 0 {
		return true
	}
	select {
	case <-time.After(pause):
		return true
	case <-closed:
		o.awaited()
		return false
	}
}

func (o *origin) awaited() { <-o.queue }

// spend counts finished work, and returns how long the origin must pause.
func (o *origin) spend(now time.Time, work time.Duration) (pause time.Duration) {
	o.credit = min(maxCredit, o.credit+now.Sub(o.paid)/partOf) - work
	o.paid = now
	if pause = -o.credit * partOf; pause < minPause {
		return 0
	}
	return pause
}

// acquire counts one more page of an origin. The lock is held.
func (h *Handler) acquire(name string) *origin {
	h.forget()
	o := h.origins[name]
	if o == nil {
		o = newOrigin(name)
		h.origins[name] = o
	}
	o.pages++
	return o
}

// forget removes the origins without a page and without a recent drop. The lock is held.
func (h *Handler) forget() {
	for name, o := range h.origins {
		if o.pages == 0 && time.Since(o.last) > letGoTime {
			delete(h.origins, name)
		}
	}
}

// countLetGo counts a page that is dropped for breaking the rules. The handler's lock is held.
func (o *origin) countLetGo(now time.Time) {
	if now.Sub(o.last) > letGoTime {
		o.letGo = 0
	}
	o.letGo++
	o.last = now
}

// wait returns how long a page must wait, or why it must come later. The handler's lock is held.
func (o *origin) wait(now time.Time) (pause time.Duration, why string) {
	if o.letGo < maxLetGo || now.Sub(o.last) > letGoTime {
		return 0, ""
	}
	if o.next.Before(now) {
		o.next = now
	}
	if pause = o.next.Sub(now); pause > maxWait {
		return 0, fmt.Sprintf("too many pages of %s were let go; the limit is %d, and from then on one a second",
			o.name, maxLetGo)
	}
	o.next = o.next.Add(letGoPace)
	return pause, ""
}
