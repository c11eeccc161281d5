package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// A queue holds the engine's calls to its Host until drain makes them. So a Host call that enters the engine again
// finds it in a consistent state, and the stack stays flat however often that happens. All messages share one buffer,
// which is reused, so a touch allocates nothing per subscriber.
type queue struct {
	ops      []op
	text     wire.Text
	draining bool

	// drain swaps them with ops and text, so that the two it works through do not grow when the host calls the engine.
	spareOps  []op
	spareText wire.Text
}

type op struct {
	kind     opKind
	on       bool   // opWatched
	port     PortID // opSend, opSubscribe, opUnsubscribe, opDrop
	call     CallID
	from, to int    // opSend: the message is text[from:to]
	hole     int    // opSend: the place of call's contents, if call is not 0
	contents []byte // opSend, and the arguments of opTool
	events   *EventRequest
	request  Request // opRead; opTool uses its Key and Params, and the subscriptions' ops its URI
}

type opKind byte

const (
	opSend opKind = iota
	opRead
	opEnd
	opWatched
	opTool
	opSubscribe
	opUnsubscribe
	opDrop
	opChanged
	opEvents
	opNextEvent
	opHeartbeat
)

// begin returns the buffer for appending a message; send ends that message.
func (e *Engine) begin() wire.Text { return e.queue.text }

// send queues the text appended since begin as a message for p.
func (e *Engine) send(p *port, text wire.Text) { e.push(p, text, op{}) }

// sendContents is send for a message with the contents of a call, at offset hole of text.
func (e *Engine) sendContents(p *port, text wire.Text, call CallID, hole int, contents []byte) {
	e.push(p, text, op{call: call, hole: hole, contents: contents})
}

func (e *Engine) push(p *port, text wire.Text, o op) {
	o.kind, o.port, o.from, o.to = opSend, p.id, len(e.queue.text), len(text)
	e.queue.text = text
	e.queue.ops = append(e.queue.ops, o)
}

// fail queues an error answer.
func (e *Engine) fail(p *port, id wire.Value, err *wire.Error) {
	e.send(p, e.begin().Failure(id, err))
}

// drain hands the queued operations to the host, in order. Every exported method ends with it.
func (e *Engine) drain() {
	q := &e.queue
	if q.draining {
		return // the drain further down the stack continues
	}
	q.draining = true
	for len(q.ops) > 0 {
		ops, text := q.ops, q.text
		q.ops, q.text = q.spareOps, q.spareText
		for i, o := range ops {
			ops[i] = op{}
			e.handOver(&o, text)
		}
		q.spareOps, q.spareText = ops[:0], text[:0]
		// One burst must not hold a megabyte for ever.
		if cap(ops) > 1<<12 {
			q.spareOps = nil
		}
		if cap(text) > 1<<20 {
			q.spareText = nil
		}
	}
	q.draining = false
}

func (e *Engine) handOver(o *op, text wire.Text) {
	if restricts && o.kind == opChanged {
		e.host.(WatchHost).Changed(o.request.URI)
		return
	}
	if restricts && o.kind >= opEvents {
		e.handOverEvents(o)
		return
	}
	switch o.kind {
	case opSend:
		// A closed port gets no more messages, not even queued ones.
		if e.ports[o.port] == nil {
			break
		}
		m := Message{Head: text[o.from:o.to]}
		if o.call != 0 {
			m = Message{Head: text[o.from:o.hole], Call: o.call, Contents: o.contents, Tail: text[o.hole:o.to]}
		}
		e.host.Send(o.port, m)
	case opRead:
		// The read may have ended while it was queued.
		if e.calls[o.call] != nil {
			e.host.Read(o.call, o.request)
		}
	case opEnd:
		e.host.End(o.call)
	case opWatched:
		e.host.Watched(o.request.URI, o.on)
	case opTool:
		if c := e.calls[o.call]; c != nil {
			t := ToolCall{Name: o.request.Key, Arguments: o.contents, Port: c.waits[0].port.id, Meta: o.request.Params}
			e.host.(ToolHost).CallTool(o.call, t)
		}
	case opSubscribe:
		if e.calls[o.call] != nil {
			e.host.(SubscriptionHost).Subscribe(o.call, o.port, o.request.URI)
		}
	case opUnsubscribe:
		e.host.(SubscriptionHost).Unsubscribe(o.call, o.port, o.request.URI)
	case opDrop:
		if p := e.ports[o.port]; p != nil {
			e.drop(p)
		}
	}
}

func (e *Engine) handOverEvents(o *op) {
	s := e.streams[o.call]
	switch {
	case o.kind == opEvents && e.calls[o.call] != nil:
		e.host.(EventHost).Events(o.call, *o.events)
	case o.kind == opNextEvent && s != nil:
		e.nextEvent(s)
	case o.kind == opHeartbeat && s != nil:
		e.heartbeat(s)
	}
}
