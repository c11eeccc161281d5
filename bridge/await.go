package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// A host may not know yet what it offers: a browser that it has asked has not answered, or pages are still coming back.
// "Not yet" must not look like "none" to an agent that asks once. So requests wait, in order, until the host knows.

// Await makes the requests of agents wait, or with false lets all of them go on. The handshake does not wait. Await is
// over after Options.AwaitTimeout: a browser may never answer. A request that comes before that waits for so long too,
// but when the first one has waited so long, Await is over for all.
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

// awaitEnd is the time at which Await is over.
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

// proceed handles the requests that wait, in order: of one port, or with nil of all.
func (e *Engine) proceed(only *port) {
	awaits := e.awaits
	e.awaits = false
	for c := e.awaiting.first; c != nil; c = c.next {
		if w := c.waits[0]; only == nil || w.port == only {
			e.leave(w)
			e.message(w.port, c.held)
		}
	}
	e.awaits = awaits
}
