//go:build !js

package socket

import (
	"fmt"
	"sync"
	"time"
)

// An origin is what is known of one: the pages that it has here, and that some were let go.
type origin struct {
	name  string
	pages int // documents that are connected, those of an extension included

	// held while what one of its pages says is looked at: it has one processor, however many pages it has
	turn   sync.Mutex
	credit time.Duration // of work for calls; guarded by turn, as are paid and rests
	paid   time.Time
	rests  time.Time // until then its calls are not heard
	// queue is full while a call of one of its pages waits to be heard, or is heard: others wait in order.
	queue chan struct{}

	letGo int       // pages that were, with no longer pause than letGoTime
	last  time.Time // when
	next  time.Time // when one more page is heard, where that are maxLetGo
}

const (
	// Where maxLetGo pages of an origin were let go for what they said, with pauses below letGoTime, one further page
	// of it is heard every letGoPace. One that would wait for more than maxWait is told to come later. Sixty peers that
	// each begin anew at once would keep two processors busy.
	maxLetGo  = 20
	letGoTime = 10 * time.Second
	letGoPace = time.Second
	maxWait   = 5 * time.Second

	// What pages of an origin call may take maxCredit at once, and from then on a part of the time; an answer to what
	// they were asked does not count. 10,000 resources take 60 ms; 60 pages that touch as often as they may took a
	// whole processor. It pauses for minPause at least: a frame takes 5 us, and to wake up as much.
	maxCredit = 100 * time.Millisecond
	partOf    = 4
	minPause  = 10 * time.Millisecond
)

// newOrigin returns one with all the credit that there is.
func newOrigin(name string) *origin {
	return &origin{name: name, credit: maxCredit, queue: make(chan struct{}, 1)}
}

// await waits until a call of the origin is heard, and reports false if the connection ends before. Else awaited is to
// be called behind it.
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

// spend counts work that is over by now, and returns for how long the origin is not to be heard.
func (o *origin) spend(now time.Time, work time.Duration) (pause time.Duration) {
	o.credit = min(maxCredit, o.credit+now.Sub(o.paid)/partOf) - work
	o.paid = now
	if pause = -o.credit * partOf; pause < minPause {
		return 0
	}
	return pause
}

// hold counts one more page of an origin. The lock is held.
func (h *Handler) hold(name string) *origin {
	h.forget()
	o := h.origins[name]
	if o == nil {
		o = newOrigin(name)
		h.origins[name] = o
	}
	o.pages++
	return o
}

// forget forgets the origins that have no page, and had none let go lately. The lock is held.
func (h *Handler) forget() {
	for name, o := range h.origins {
		if o.pages == 0 && time.Since(o.last) > letGoTime {
			delete(h.origins, name)
		}
	}
}

// countLetGo counts that a page is let go for what it has said. The handler's lock is held.
func (o *origin) countLetGo(now time.Time) {
	if now.Sub(o.last) > letGoTime {
		o.letGo = 0
	}
	o.letGo++
	o.last = now
}

// wait says for how long a page is not heard, or why it is to come later. The handler's lock is held.
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
