package socket

import (
	"fmt"
	"sync"
	"time"
)

// origins are the origins with a page here, or with a recent drop.
type origins struct {
	mu  sync.Mutex // guards all, and of each origin what it says
	all map[string]*origin
}

// enter counts one more page of an origin. pages are those that it has now, pause is how long this
// one must wait, and why the reason to come later.
func (h *origins) enter(name string) (o *origin, pages int, pause time.Duration, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o = h.acquire(name)
	pause, why = o.wait(time.Now())
	return o, o.pages, pause, why
}

// leave counts a page off its origin.
func (h *origins) leave(o *origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.pages--
	h.forget()
}

// dropped counts a page that was dropped for breaking the rules.
func (h *origins) dropped(o *origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(o.last) > letGoTime {
		o.letGo = 0
	}
	o.letGo++
	o.last = time.Now()
}

// An origin is an origin's state: its pages here, and its pages that were dropped.
type origin struct {
	name  string
	pages int // connected documents, including an extension's; guarded by origins.mu

	// held while a frame of one of its pages is processed: so an origin uses one processor at most
	turn   sync.Mutex
	credit time.Duration // of working time for calls; guarded by turn, as are paid and rests
	paid   time.Time
	rests  time.Time // its calls wait until then
	// queue has one place, for a call of one of its pages that waits or is processed. Others wait
	// in order.
	queue chan struct{}

	// guarded by origins.mu
	letGo int       // dropped pages, with pauses below letGoTime
	last  time.Time // of the last drop
	next  time.Time // when the next page may connect, once letGo is maxLetGo
}

const (
	// If maxLetGo pages of an origin were dropped for breaking the rules, with pauses below
	// letGoTime, one further page may connect every letGoPace. A page that would wait longer than
	// maxWait must come later. Without this, sixty peers that reconnect at once would keep two
	// processors busy.
	maxLetGo  = 20
	letGoTime = 10 * time.Second
	letGoPace = time.Second
	maxWait   = 5 * time.Second

	// Calls of an origin's pages may use maxCredit of working time at once, and after that 1/partOf
	// of the time. Answers do not count. 10,000 resources take 60 ms; 60 pages that touch as often
	// as they may took a whole processor. Pauses below minPause are left out: a frame takes 5 us,
	// and waking up as much.
	maxCredit = 100 * time.Millisecond
	partOf    = 4
	minPause  = 10 * time.Millisecond
)

// newOrigin returns an origin with full credit.
func newOrigin(name string) *origin {
	return &origin{name: name, credit: maxCredit, queue: make(chan struct{}, 1)}
}

// await waits until a call of the origin may be processed. It reports false if the connection ends
// before; otherwise the caller must call awaited afterwards.
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
func (h *origins) acquire(name string) *origin {
	h.forget()
	o := h.all[name]
	if o == nil {
		o = newOrigin(name)
		h.all[name] = o
	}
	o.pages++
	return o
}

// forget removes the origins without a page and without a recent drop. The lock is held.
func (h *origins) forget() {
	for name, o := range h.all {
		if o.pages == 0 && time.Since(o.last) > letGoTime {
			delete(h.all, name)
		}
	}
}

// wait returns how long a page must wait, or the reason to come later. The lock of origins is held.
func (o *origin) wait(now time.Time) (pause time.Duration, why string) {
	if o.letGo < maxLetGo || now.Sub(o.last) > letGoTime {
		return 0, ""
	}
	if o.next.Before(now) {
		o.next = now
	}
	if pause = o.next.Sub(now); pause > maxWait {
		return 0, fmt.Sprintf("too many pages of %s were let go; the limit is %d, and from then "+
			"on one a second",
			o.name, maxLetGo)
	}
	o.next = o.next.Add(letGoPace)
	return pause, ""
}
