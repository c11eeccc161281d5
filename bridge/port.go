package bridge

import (
	"github.com/pagewire/pagewire/bridge/wire"
)

// A port is one session: what one agent has asked for. Everything it holds goes with it.
type port struct {
	id       PortID
	index    int    // in Engine.order
	legacy   string // the version that initialize settled on; "" before that
	writable bool
	held     bool                  // only what belongs to a request reaches it
	lists    [listKinds]interest   // legacy: all of them, once it is initialized
	sees     func(uri string) bool // nil sees all

	subscribed map[string]*sub // legacy: URI -> subscription
	listens    []*listen
	openings   int    // listens that wait for consent
	granted    int    // subscriptions that have it, of such listens
	subs       []*sub // all subscriptions, legacy and of listens; sub.portIndex is the place of each
	waits      []*wait

	first, last *sub // updates that wait, in the order in which they were due
	throttled   bool // in Engine.throttled
	credit      int  // thousandths of an update that may be sent now
	counted     Time // when credit was last brought up to date
}

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
	p := &port{id: id, index: len(e.order), writable: true, credit: e.opt.Limits.UpdateRate * 1000, counted: e.now}
	e.ports[id] = p
	e.order = append(e.order, p)
	return nil
}

// Restrict says of which URIs a port sees what is there, and by Tool.Origin which tools. What it does not see answers as
// what does not exist. sees must say the same of a URI each time, and is called from within the engine's methods. It is
// to be called before the port's first message.
func (e *Engine) Restrict(id PortID, sees func(uri string) bool) {
	if p := e.ports[id]; restricts && p != nil && p.sees == nil && sees != nil {
		p.sees = sees
		e.restricted++
	}
}

// hides reports whether a port does not see a URI.
func (p *port) hides(uri string) bool { return restricts && p.sees != nil && uri != "" && !p.sees(uri) }

// OpenShaken is Open for a port on which another handshake than MCP's settles who speaks, and the host has seen it, as
// the ui/initialize of MCP Apps: requests are answered as in the newest legacy version, from the first on. Such a port
// is not told that the list has changed, since it did not ask for that by initialize.
func (e *Engine) OpenShaken(now Time, id PortID) error {
	err := e.Open(now, id)
	if err == nil {
		e.ports[id].legacy = wire.Legacy
	}
	return err
}

// Close ends a session: the port is gone, nothing more is sent to it, and nothing of it is left when Close returns.
// A port that is not open is left alone.
func (e *Engine) Close(now Time, id PortID) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		e.drop(p)
	}
	e.drain()
}

func (e *Engine) drop(p *port) {
	for len(p.subs) > 0 {
		e.unsubscribe(p.subs[len(p.subs)-1])
	}
	e.stats.Listens -= len(p.listens)
	for len(p.waits) > 0 {
		e.leave(p.waits[len(p.waits)-1])
	}
	if p.throttled {
		e.throttled = remove(e.throttled, p)
	}
	if restricts && p.sees != nil {
		e.restricted--
	}
	last := e.order[len(e.order)-1]
	e.order[p.index], last.index = last, p.index
	e.order[len(e.order)-1] = nil
	e.order = e.order[:len(e.order)-1]
	delete(e.ports, p.id)
}

// Shutdown ends every session in order: each request that still waits gets an error, each listen its result and then
// its cancellation, which is the form that satisfies both of the specification's pages on it (spec issue 3348), and
// then the ports are gone.
func (e *Engine) Shutdown(now Time) {
	e.enter(now)
	for _, p := range e.order {
		e.dismiss(p)
	}
	e.drain()
}

// Dismiss is Shutdown for one port. A port that is not open is left alone.
func (e *Engine) Dismiss(now Time, id PortID) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		e.dismiss(p)
	}
	e.drain()
}

func (e *Engine) dismiss(p *port) {
	for len(p.waits) > 0 {
		w := p.waits[0]
		id := w.id
		for ; w != nil; w = p.wait(id) { // a listen that waits for consent has several
			e.leave(w)
		}
		e.fail(p, id, readError(reasonShutdown, "The server goes away"))
	}
	for len(p.listens) > 0 {
		e.closeListen(p.listens[0])
	}
	e.queue.ops = append(e.queue.ops, op{kind: opDrop, port: p.id})
}

// Waits reports whether a request of a port is still to be answered. An acknowledged listen is none: it ends when its
// agent wants.
func (e *Engine) Waits(id PortID) bool {
	p := e.ports[id]
	return p != nil && len(p.waits) > 0
}

// Writable says whether a port can take more. While it cannot, the engine keeps at most one update of each URI for
// it, and one list_changed; answers are sent nevertheless. A port begins writable.
func (e *Engine) Writable(now Time, id PortID, on bool) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		p.writable = on
		e.flush(p)
	}
	e.drain()
}

// Hold says that only what belongs to a request reaches a port now, as over HTTP while an agent has no stream open for
// the rest. What is kept for it meanwhile is as with Writable; how far a tool has come is told nevertheless.
func (e *Engine) Hold(now Time, id PortID, on bool) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		p.held = on
		e.flush(p)
	}
	e.drain()
}

// acceptsUpdates reports whether a port takes messages that answer no request.
func (p *port) acceptsUpdates() bool { return p.writable && !p.held }

// Receive takes one message from a port. The bytes are the caller's again when it returns. What is wrong with a
// message is answered to the agent; the error tells only of a port that is not open.
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

// Oversize is Receive for a message of which the host has seen that it is too large, so that it need not be copied:
// text is its beginning, where the id is looked for.
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

// MessageBytes is the limit above which a message is refused unread.
func (e *Engine) MessageBytes() int { return e.opt.Limits.MessageBytes }

func (e *Engine) refuse(p *port, text []byte) {
	id := wire.PeekID(text[:min(len(text), 512)])
	e.fail(p, id, tooLarge("Message too large", reasonMessageSize, "maxBytes", e.opt.Limits.MessageBytes))
}

func remove[T comparable](list []T, x T) []T {
	for i := range list {
		if list[i] == x {
			copy(list[i:], list[i+1:])
			var zero T
			list[len(list)-1] = zero
			return list[:len(list)-1]
		}
	}
	return list
}
