//go:build !js

// Package home runs an engine natively: one lock, one clock, one timer. In a page JavaScript does that
// (js/core/edge.ts).
//
// Whoever holds the lock may call the engine, and the engine calls its host from within. The host must not write to
// a socket or call another home while the lock is held: it hands that to the functions that New is given.
//
// It calls the engine by itself only when the engine's own time has come. It blocks only for the lock, and never
// knows what the engine serves, or to whom.
package home

import (
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// An Engine is what a Home runs: a *bridge.Engine. It wants Tick at the time that Deadline says, and is not safe for
// concurrent use.
type Engine interface {
	Tick(now bridge.Time)
	Deadline() (at bridge.Time, ok bool)
}

// A Home is an engine's lock, clock and timer. Make one with New.
type Home struct {
	engine Engine
	mu     sync.Mutex
	start  time.Time
	timer  *time.Timer
	armed  bridge.Time // when timer fires; 0 if it does not
	ended  bool
	leave  func() func()
}

// New returns a home for an engine. leave, which may be nil, is called with the lock held, whenever it is about to be
// released by Unlock; what it returns is called when it has been, on the same goroutine.
func New(engine Engine, leave func() (then func())) *Home {
	h := &Home{engine: engine, start: time.Now(), leave: leave}
	h.timer = time.AfterFunc(time.Hour, h.tick)
	h.timer.Stop()
	return h
}

// Now is the engine's clock: milliseconds since New, of the monotonic clock.
func (h *Home) Now() bridge.Time { return bridge.Time(time.Since(h.start).Milliseconds()) }

// Until is how long it takes until the engine's clock says at; not below 0.
func (h *Home) Until(at bridge.Time) time.Duration {
	return max(time.Until(h.start.Add(time.Duration(at)*time.Millisecond)), 0)
}

// Lock takes the lock.
func (h *Home) Lock() { h.mu.Lock() }

// Unlock releases the lock, and sees to it that the engine is called when it wants to be.
func (h *Home) Unlock() {
	var then func()
	if h.leave != nil {
		then = h.leave()
	}
	if at, ok := h.engine.Deadline(); ok && !h.ended && (h.armed == 0 || at < h.armed) {
		h.armed = max(at, 1)
		h.timer.Reset(h.Until(at))
	}
	h.mu.Unlock()
	if then != nil {
		then()
	}
}

// Release is Unlock for who has not called the engine.
func (h *Home) Release() { h.mu.Unlock() }

func (h *Home) tick() {
	h.Lock()
	defer h.Unlock()
	h.armed = 0
	if !h.ended {
		h.engine.Tick(h.Now())
	}
}

// End stops the timer: the engine is not called by it any more. The lock is held.
func (h *Home) End() {
	h.ended = true
	h.timer.Stop()
}
