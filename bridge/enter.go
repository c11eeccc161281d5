package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/wire"
)

// enter begins every method that gets the time. It does the work that is due. So a late timer (in a
// hidden tab, timers fire once a second) does not delay work if a call comes earlier.
func (e *Engine) enter(now Time) {
	e.now = max(e.now, now)
	if at, ok := e.Deadline(); ok && at <= e.now {
		e.due()
	}
}

// Tick does the work that is due. Call it at Deadline; an early or late call does no harm.
func (e *Engine) Tick(now Time) {
	e.enter(now)
	e.drain()
}

func (e *Engine) due() {
	for {
		w := e.updates.Pop(e.now, e.pace)
		if w == nil {
			break
		}
		e.announce(w.Value)
	}
	for {
		list := e.lists.Pop(e.now,
			func(listKind) coalesce.Pace { return coalesce.Pace{Interval: e.opt.ListInterval} })
		if list == nil {
			break
		}
		e.announceList(list.Value)
	}
	waiting := e.throttled
	e.throttled = e.throttled[:0]
	for _, p := range waiting {
		p.throttled = false
		e.flush(p)
	}
	if restricts {
		e.heartbeats()
		if e.awaits && e.awaitEnd() <= e.now {
			e.awaits = e.now < e.awaitUntil
			e.proceed(nil)
		}
	}
	e.expire(&e.reads, e.opt.ReadTimeout)
	e.expire(&e.toolCalls, e.opt.ToolTimeout)
}

// expire ends the calls that have timed out.
func (e *Engine) expire(list *ages, timeout Time) {
	for c := list.first; c != nil && c.deadline <= e.now; c = list.first {
		err := limited("The page took too long", reasonTimeout, "timeoutMs", int(timeout))
		if c.kind == callSubscribe {
			e.refuseConsent(c, err)
		} else {
			e.finish(c, err)
		}
	}
}

// Deadline returns the time at which Tick is next needed. ok is false if nothing is scheduled.
func (e *Engine) Deadline() (at Time, ok bool) {
	soonest := func(t Time, found bool) {
		if found && (!ok || t < at) {
			at, ok = t, true
		}
	}
	soonest(e.updates.Next())
	soonest(e.lists.Next())
	for _, p := range e.throttled {
		soonest(p.ready(e.opt.Limits.UpdateRate), true)
	}
	if restricts && len(e.beats) > 0 {
		soonest(e.beats[0].beat, true)
	}
	if restricts && e.awaits {
		soonest(e.awaitEnd(), true)
	}
	for _, list := range [...]*ages{&e.reads, &e.toolCalls} {
		if c := list.first; c != nil {
			soonest(c.deadline, true)
		}
	}
	return at, ok
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
			m = Message{Head: text[o.from:o.hole], Call: o.call, Contents: o.contents,
				Tail: text[o.hole:o.to]}
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
			t := ToolCall{Name: o.request.Key, Arguments: o.contents, Port: c.waits[0].port.id,
				Meta: o.request.Params}
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
