package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// A host may not know yet what it offers: a browser that it has asked has not answered, or pages are still coming back.
// "Not yet" must not look like "none" to an agent that asks once. So requests wait, in order, until the host knows.

// Await makes the requests of agents wait, or with false lets all of them go on. The handshake does not wait. Each waits
// for Options.AwaitTimeout at most: a browser may never answer. Await, too, is over after that time, or when a request
// that came before that has waited so long.
func (e *Engine) Await(now Time, on bool) {
	e.enter(now)
	defer e.drain()
	e.awaits = on
	e.awaitUntil = e.now + e.opt.AwaitTimeout
	if !on {
		e.proceed(nil)
	}
}

// Awaits reports whether requests wait.
func (e *Engine) Awaits() bool { return e.awaits }

// Proceed lets the requests of one port go on, because its agent does not wait for so long.
func (e *Engine) Proceed(now Time, id PortID) {
	e.enter(now)
	defer e.drain()
	if p := e.ports[id]; restricts && p != nil {
		e.proceed(p)
	}
}

// awaitEnd is the time at which Await is over, at least for the first request.
func (e *Engine) awaitEnd() Time {
	if c := e.awaiting.first; c != nil {
		return c.deadline
	}
	return e.awaitUntil
}

// hold reports whether a request waits for the host. Of one port as many wait as fit into one message of the largest
// size: with more, all of the port go on.
func (e *Engine) hold(r *request, text []byte) bool {
	switch r.method {
	case wire.Initialize, wire.Ping, wire.Discover:
		return false
	}
	bytes := len(text)
	for _, w := range r.port.waits {
		bytes += len(w.call.held)
	}
	if bytes > e.opt.Limits.MessageBytes || e.full(r.port) != nil {
		e.proceed(r.port)
		return false
	}
	c := e.newCall(callAwait, &e.awaiting, e.opt.AwaitTimeout)
	c.held = clone(text)
	e.await(r, c)
	return true
}

// proceed handles the requests that wait, in order: while Await is on, those of one port, or with nil those that have
// waited long enough; then all.
func (e *Engine) proceed(only *port) {
	awaits := e.awaits
	e.awaits = false
	for c := e.awaiting.first; c != nil; c = c.next {
		if w := c.waits[0]; !awaits || w.port == only || c.deadline <= e.now {
			e.leave(w)
			e.message(w.port, c.held)
		}
	}
	e.awaits = awaits
}
