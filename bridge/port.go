package bridge

import (
	"github.com/pagewire/pagewire/bridge/wire"
)

// A port is one session: the state of one agent. It ends with the port.
type port struct {
	id       PortID
	index    int    // in Engine.order
	legacy   string // the version negotiated by initialize; "" before that
	writable bool
	held     bool                // it accepts only answers and progress
	lists    [listKinds]interest // legacy: all of them, once it is initialized
	sight    Sight               // nil sees all
	// debugging shows it the tools with Tool.Debugging.
	debugging bool
	forgoes   bool // subscriptions

	subscribed map[string]*sub // legacy: URI -> subscription
	listens    []*listen
	streams    []*stream // of events
	openings   int       // listens that wait for consent
	granted    int       // subscriptions of such listens that have consent
	subs       []*sub    // all subscriptions, legacy and of listens, each at its portIndex
	waits      []*wait

	first, last *sub // pending updates, in the order in which they were due
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

// An Owner is whose a resource or a tool is: that of the pages of an origin, in a profile of a
// browser. The zero Owner is the host.
type Owner struct {
	Origin, Profile string
	// Shown means that the user offers it: it is what a page shows, and not what a page offers.
	// Launched means that Pagewire launched the page's browser. Granted means that the user offers it
	// to all agents, in the browser's extension.
	Shown, Launched, Granted bool
}

// A Sight is what a restricted port sees. What it does not see does not exist for it. The engine's
// methods call it, at the begin of a request and again when something is sent, since the answers
// may change: a URI may lead to another page, and a page to another profile.
type Sight interface {
	// Sees reports whether the port sees the resource or template that has a URI now.
	Sees(uri string) bool
	// Permits reports whether the port sees what is the owner's.
	Permits(Owner) bool
}

// Restrict limits what a port sees. It must be called before the port's first message, or before
// the host offers a resource or tool that the Sight hides.
func (e *Engine) Restrict(id PortID, s Sight) {
	if p := e.ports[id]; restricts && p != nil && p.sight == nil && s != nil {
		p.sight = s
		e.restricted++
	}
}

// ShowDebugging shows a port the tools with Tool.Debugging. It must be called before the port's first message.
func (e *Engine) ShowDebugging(id PortID) {
	if p := e.ports[id]; restricts && p != nil {
		p.debugging = true
	}
}

// ForgoSubscriptions is Options.NoSubscriptions for one port. It must be called before the port's first message.
func (e *Engine) ForgoSubscriptions(id PortID) {
	if p := e.ports[id]; restricts && p != nil {
		p.forgoes = true
	}
}

// subscribes reports whether subscriptions are on for a port.
func (e *Engine) subscribes(p *port) bool { return !e.opt.NoSubscriptions && !(restricts && p.forgoes) }

// hides reports whether a port does not see a URI.
func (p *port) hides(uri string) bool { return restricts && p.sight != nil && !p.sight.Sees(uri) }

// hidesOwner reports whether a port does not see what is an owner's.
func (p *port) hidesOwner(o Owner) bool {
	return restricts && p.sight != nil && o != Owner{} && !p.sight.Permits(o)
}

// Close ends a session: nothing more is sent to the port, and nothing of it is left when Close returns. It ignores a
// port that is not open.
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
	for restricts && len(p.streams) > 0 {
		e.endStream(p.streams[0])
	}
	for len(p.waits) > 0 {
		e.leave(p.waits[len(p.waits)-1])
	}
	if p.throttled {
		e.throttled = remove(e.throttled, p)
	}
	if restricts && p.sight != nil {
		e.restricted--
	}
	last := e.order[len(e.order)-1]
	e.order[p.index], last.index = last, p.index
	e.order[len(e.order)-1] = nil
	e.order = e.order[:len(e.order)-1]
	delete(e.ports, p.id)
}

// Shutdown ends every session in order. Each open request gets an error, and each event stream its result. Each listen
// gets its result and then its cancellation, which satisfies both of the specification's pages on it (spec issue 3348).
// Then the ports are gone.
func (e *Engine) Shutdown(now Time) {
	e.enter(now)
	for _, p := range e.order {
		e.dismiss(p)
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
	if restricts {
		for _, s := range p.streams {
			e.completeStream(s)
		}
	}
	e.queue.ops = append(e.queue.ops, op{kind: opDrop, port: p.id})
}

// Waits reports whether a request of a port has no answer yet. An acknowledged listen does not count: its agent ends
// it.
func (e *Engine) Waits(id PortID) bool {
	p := e.ports[id]
	return p != nil && len(p.waits) > 0
}

// Writable sets whether a port accepts updates. While it does not, the engine keeps at most one update of each URI for
// it, and one list_changed; it still sends answers. A port begins writable.
func (e *Engine) Writable(now Time, id PortID, on bool) {
	e.enter(now)
	if p := e.ports[id]; p != nil {
		p.writable = on
		e.flush(p)
	}
	e.drain()
}

// Hold sets whether a port gets only answers and progress now, as over HTTP while an agent has no open stream for other
// messages. Meanwhile the engine keeps updates as with Writable.
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

// Receive takes one message from a port. The bytes belong to the caller again when it returns. It answers a faulty
// message to the agent; it fails only if the port is not open.
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

// Oversize is Receive for a message that is too large. text is only its beginning, which may have the id, so the host
// need not copy the rest.
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
