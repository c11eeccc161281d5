// Package driver runs a sans-I/O engine natively: one lock, one clock, one timer. In a page
// JavaScript does that (js/core/edge.ts).
//
// The holder of the lock may call the engine, which calls its host in turn. The host must not write
// to a socket or lock another driver while the lock is held: the function given to New does that
// later.
//
// The driver itself calls the engine only at its deadlines. It never blocks, except for the lock,
// and never looks at what the engine says.
package driver

import (
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// An Engine is a *bridge.Engine. It needs Tick at the time that Deadline returns, and is not safe
// for concurrent use.
type Engine interface {
	Tick(now bridge.Time)
	Deadline() (at bridge.Time, ok bool)
}

// A Driver is an engine's lock, clock and timer.
type Driver struct {
	engine Engine
	start  time.Time     // of the clock
	leave  func() func() // of New; may be nil

	mu sync.Mutex // guards the engine, and all below
	// timer fires at armed: at the engine's deadline or before, whenever the lock is free; 0 if it
	// does not fire.
	timer *time.Timer
	armed bridge.Time
	ended bool // the timer fires no more
}

// New returns a driver for an engine. Unlock calls leave, which may be nil, before it releases the
// lock; after that it calls the function that leave returned.
func New(engine Engine, leave func() (then func())) *Driver {
	d := &Driver{engine: engine, start: time.Now(), leave: leave}
	d.timer = time.AfterFunc(time.Hour, d.tick)
	d.timer.Stop()
	return d
}

// Now is the engine's clock: milliseconds since New, of the monotonic clock.
func (d *Driver) Now() bridge.Time { return bridge.Time(time.Since(d.start).Milliseconds()) }

// Until is the time until the engine's clock reaches at; not below 0.
func (d *Driver) Until(at bridge.Time) time.Duration {
	return max(time.Until(d.start.Add(time.Duration(at)*time.Millisecond)), 0)
}

// Lock takes the lock.
func (d *Driver) Lock() { d.mu.Lock() }

// Unlock releases the lock, and sets the timer to the engine's deadline.
func (d *Driver) Unlock() {
	var then func()
	if d.leave != nil {
		then = d.leave()
	}
	if at, ok := d.engine.Deadline(); ok && !d.ended && (d.armed == 0 || at < d.armed) {
		d.armed = max(at, 1)
		d.timer.Reset(d.Until(at))
	}
	d.mu.Unlock()
	if then != nil {
		then()
	}
}

// Release is Unlock for callers that have not called the engine.
func (d *Driver) Release() { d.mu.Unlock() }

func (d *Driver) tick() {
	d.Lock()
	defer d.Unlock()
	d.armed = 0
	if !d.ended {
		d.engine.Tick(d.Now())
	}
}

// End stops the timer: from then on the driver never calls the engine. The caller holds the lock.
func (d *Driver) End() {
	d.ended = true
	d.timer.Stop()
}
