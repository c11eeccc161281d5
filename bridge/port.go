package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// errPort is the error of methods on a port that is not open.
const errPort = failure("bridge: no such port")

// Open begins a session on a port. It fails above the limit of ports, and for an id that is open.
func (e *Engine) Open(now Time, id PortID) error {
	e.enter(now)
	defer e.drain()
	switch {
	case e.ports[id] != nil:
		return failure("bridge: port is open already")
	case len(e.ports) >= e.opt.Limits.Ports:
		return failure("bridge: too many ports: the limit is " + wire.Itoa(e.opt.Limits.Ports))
	}
	p := &port{id: id, index: len(e.order), writable: true, credit: e.opt.Limits.UpdateRate * 1000,
		counted: e.now}
	e.ports[id] = p
	e.order = append(e.order, p)
	return nil
}

// Restrict limits what a port sees. It must be called before the port's first message, or before
// the host offers a resource or tool that the Sight hides.
func (e *Engine) Restrict(id PortID, s Sight) {
	if p := e.ports[id]; restricts && p != nil && p.sight == nil && s != nil {
		p.sight = s
		e.restricted++
	}
}

// ShowDebugging shows a port the tools with Tool.Debugging. It must be called before the port's
// first message.
func (e *Engine) ShowDebugging(id PortID) {
	if p := e.ports[id]; restricts && p != nil {
		p.debugging = true
	}
}

// ForgoSubscriptions is Options.NoSubscriptions for one port. It must be called before the port's
// first message.
func (e *Engine) ForgoSubscriptions(id PortID) {
	if p := e.ports[id]; restricts && p != nil {
		p.forgoes = true
	}
}

// Receive takes one message from a port. The bytes belong to the caller again when it returns. It
// answers a faulty message to the agent; it fails only if the port is not open.
func (e *Engine) Receive(now Time, id PortID, text []byte) error {
	e.enter(now)
	defer e.drain()
	p := e.ports[id]
	if p == nil {
		return errPort
	}
	if len(text) > e.opt.Limits.MessageBytes {
		e.refuse(p, text)
		return nil
	}
	e.message(p, text)
	return nil
}

// Oversize is Receive for a message that is too large. Of text only the first and the last PeekBytes
// are looked at, which mostly have the id, so the host need not copy the rest. A text that is no
// longer than PeekBytes is only the beginning.
func (e *Engine) Oversize(now Time, id PortID, text []byte) error {
	e.enter(now)
	defer e.drain()
	p := e.ports[id]
	if p == nil {
		return errPort
	}
	e.refuse(p, text)
	return nil
}

func (e *Engine) refuse(p *port, text []byte) {
	id := wire.PeekID(text[:min(len(text), wire.PeekBytes)])
	if len(id) == 0 && len(text) > wire.PeekBytes {
		id = wire.LastID(text)
	}
	e.fail(p, id,
		tooLarge("Message too large", reasonMessageSize, "maxBytes", e.opt.Limits.MessageBytes))
}

// MessageBytes is the limit above which a message is refused unread.
func (e *Engine) MessageBytes() int { return e.opt.Limits.MessageBytes }

// Waits reports whether a request of a port has no answer yet. An acknowledged listen does not
// count: its agent ends it.
func (e *Engine) Waits(id PortID) bool {
	p := e.ports[id]
	return p != nil && len(p.waits) > 0
}

// A host may not know yet what it offers: a browser that it has asked has not answered, or pages
// are still coming back. "Not yet" must not look like "none" to an agent that asks once. So
// requests wait, in order, until the host knows.

// Await makes the requests of agents wait, or with false lets all of them go on. The handshake does
// not wait. Each waits for Options.AwaitTimeout at most: a browser may never answer. Await, too, is
// over after that time, or when a request that came before that has waited so long.
//
// Why do requests wait for the first look at a browser, and where? "Not known yet" looked like
// "none": 10 of 10 first lists were empty with --chrome. The engine holds the requests
// (Engine.Await), because it has their ids, order, cancellation and deadline. The bound of 2 s
// begins with the first request, and a hung tab costs no agent more.
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

// Writable sets whether a port accepts updates. While it does not, the engine keeps at most one
// update of each URI for it, and one list_changed; it still sends answers. A port begins writable.
func (e *Engine) Writable(now Time, id PortID, on bool) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		p.writable = on
		e.flush(p)
	}
	e.drain()
}

// Hold sets whether a port gets only answers and progress now, as over HTTP while an agent has no
// open stream for other messages. Meanwhile the engine keeps updates as with Writable.
func (e *Engine) Hold(now Time, id PortID, on bool) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		p.held = on
		e.flush(p)
	}
	e.drain()
}

// Close ends a session: nothing more is sent to the port, and nothing of it is left when Close
// returns. It ignores a port that is not open.
func (e *Engine) Close(now Time, id PortID) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		e.drop(p)
	}
	e.drain()
}

// Dismiss is Shutdown for one port. It ignores a port that is not open.
func (e *Engine) Dismiss(now Time, id PortID) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		e.dismiss(p)
	}
	e.drain()
}

// Shutdown ends every session in order. Each open request gets an error, and each event stream its
// result. Each listen gets its result and then its cancellation, which satisfies both of the
// specification's pages on it (spec issue 3348). Then the ports are gone.
func (e *Engine) Shutdown(now Time) {
	e.enter(now)
	for _, p := range e.order {
		e.dismiss(p)
	}
	e.drain()
}
