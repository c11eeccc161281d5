package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// MCP Events (SEP-3415) in the engine: five methods, six notifications, and streams. The host has
// the catalogue. A page's core has no events: see restrict.go.

// DeclaresEvents reports whether the params of a modern request declare the extension.
func DeclaresEvents(params JSON) bool {
	capabilities := params.Get("_meta").Get(wire.MetaCapabilities)
	return len(capabilities.Get("extensions").Get(wire.EventsExtension)) > 0
}

// events asks the host. A stream does not count against Limits.Calls, so it never keeps an agent
// from reading.
func (e *Engine) events(r *request) *wire.Error {
	q, bad := eventRequest(r)
	if bad != "" {
		return invalidParams(bad)
	}
	final := r.modern && DeclaresEvents(r.params) // a legacy request cannot declare extensions
	kind := callEvents
	if r.method == wire.EventsStream {
		kind = callStream
		if len(r.port.streams)+r.port.streamsOpening() >= e.opt.Limits.Streams {
			data := wire.Text(`{"limit":"subscriptions","max":`).Int(e.opt.Limits.Streams).Raw(`}`)
			return (&EventError{EventExhausted, "too many streams: a session may have " +
				wire.Itoa(e.opt.Limits.Streams), data}).wire(final)
		}
	} else if err := e.full(r.port); err != nil {
		return err
	}
	c := e.newCall(kind, &e.reads, e.opt.ReadTimeout)
	e.queue.ops = append(e.queue.ops, op{kind: opEvents, call: c.id, events: &q})
	e.await(r, c).final = final
	return nil
}

// eventRequest decodes the members of a request. A method may lack some of them.
func eventRequest(r *request) (q EventRequest, bad string) {
	q = EventRequest{Method: r.method, Port: r.port.id, MaxAge: -1, TTL: -1}
	q.Arguments = []byte("{}")
	p := r.params
	if cursor := p.Get("cursor"); cursor.Kind() == wire.String {
		if q.Cursor, _ = cursor.Text(); q.Cursor == "" {
			return q, "cursor is not one of this server's"
		}
	} else if len(cursor) > 0 && cursor.Kind() != wire.Null {
		return q, "cursor must be a string or null"
	}
	if q.Method == wire.EventsList {
		return q, ""
	}
	var ok bool
	if q.Name, ok = p.Get("name").Text(); !ok {
		return q, "name must be a string"
	}
	if v := p.Get("arguments"); v.Kind() == wire.Object {
		q.Arguments = clone(v)
	} else if v.Kind() > wire.Null {
		return q, "arguments must be an object"
	}
	if v := p.Get("delivery"); v.Kind() > wire.Null && v.Kind() != wire.Object {
		return q, "delivery must be an object"
	} else if v.Kind() == wire.Object {
		q.Delivery = clone(v)
	}
	count := func(name string, least int64, to func(int64)) {
		if v := p.Get(name); v.Kind() > wire.Null && bad == "" {
			n, ok := v.Int()
			if !ok || n < least {
				bad = name + " must be an integer of " + wire.Itoa(int(least)) + " or more"
			}
			to(n)
		}
	}
	count("maxAgeMs", 0, func(n int64) { q.MaxAge = Time(n) })
	count("maxEvents", 1, func(n int64) { q.Max = int(min(n, 1<<30)) })
	if p.Get("ttlMs").Kind() == wire.Null {
		q.TTL = 0
	} else {
		count("ttlMs", 1, func(n int64) { q.TTL = Time(n) })
	}
	return q, bad
}

// answerEvents answers a request of the events' methods, or begins its stream.
func (e *Engine) answerEvents(c *call, r Result) {
	w := c.waits[0] // such a call has exactly one
	members := JSON(r.Contents)
	switch {
	case r.Refused != nil:
		e.finish(c, r.Refused.wire(w.final))
	case r.Failure != "":
		e.finish(c, readError(string(r.Failure), e.expose("Failed", r)))
	case members.Kind() != wire.Object:
		e.finish(c, readError(string(InvalidContents), "Failed"))
	case c.kind == callStream:
		e.openStream(c, members)
	default:
		q := w.request()
		e.send(w.port, e.closeResult(q, e.result(q).Bytes(members[1:len(members)-1])))
		e.finish(c, nil)
	}
}

func (p *port) streaming(id wire.Value) *stream {
	for _, s := range p.streams { // at most Limits.Streams
		if s.id.Equal(id) {
			return s
		}
	}
	return nil
}

// openStream begins the stream of a call. The host keeps the call until the stream ends.
func (e *Engine) openStream(c *call, members JSON) {
	w := c.waits[0]
	s := &stream{port: w.port, id: w.id, call: c.id, modern: w.modern, final: w.final,
		beat: e.now + e.opt.HeartbeatInterval}
	w.port.waits = remove(w.port.waits, w)
	c.waits = nil
	delete(e.calls, c.id)
	c.ages.remove(c)
	if e.streams == nil {
		e.streams = map[CallID]*stream{}
	}
	e.streams[s.call] = s
	s.port.streams = append(s.port.streams, s)
	e.beats = append(e.beats, s)
	e.stats.Streams++
	e.note(s, wire.EventsActive, members[1:len(members)-1])
}

// note sends a notification on a stream.
func (e *Engine) note(s *stream, method string, members []byte) {
	text := e.begin().Notification(method).Raw(`{`).Bytes(members).Next()
	e.send(s.port, subscriptionMeta(text, s.id).Raw(`}}`))
}

// errorMembers are the members of a notification that carries an error.
func (s *stream) errorMembers(x *EventError) wire.Text {
	return wire.Text(nil).Error(x.wire(s.final))
}

// pull queues the sending of a stream's next event, if the host has one.
func (e *Engine) pull(s *stream) {
	if s.waiting && !s.asked {
		s.asked = true
		e.queue.ops = append(e.queue.ops, op{kind: opNextEvent, call: s.call})
	}
}

// nextEvent sends one event of a stream and queues the next one, because the port may be full by
// then. Each event counts as an update against the port's rate.
func (e *Engine) nextEvent(s *stream) {
	s.asked = false
	p := s.port
	if !p.writable {
		return // flush comes back to it
	}
	if !e.spend(p) {
		if !p.throttled {
			p.throttled = true
			e.throttled = append(e.throttled, p)
		}
		return
	}
	s.waiting = false
	n, ok := e.host.(EventHost).NextEvent(s.call)
	if e.streams[s.call] != s {
		return
	}
	if !ok {
		p.credit += 1000
		return
	}
	switch {
	case n.Refused != nil:
		e.note(s, wire.EventsError, s.errorMembers(n.Refused))
	case n.Gap:
		e.note(s, wire.EventsActive, n.Members)
	default:
		e.note(s, wire.EventsEvent, n.Members)
		e.stats.Events++
	}
	s.waiting = true
	e.pull(s)
}

// heartbeats queues the heartbeats that are due. All streams have one interval, so the first in the
// list is due first.
func (e *Engine) heartbeats() {
	for len(e.beats) > 0 && e.beats[0].beat <= e.now {
		s := e.beats[0]
		e.beats = append(e.beats[1:], s)
		s.beat = e.now + e.opt.HeartbeatInterval
		if s.port.writable {
			e.queue.ops = append(e.queue.ops, op{kind: opHeartbeat, call: s.call})
		}
	}
}

func (e *Engine) heartbeat(s *stream) {
	cursor := wire.Text(`"cursor":`)
	if at := e.host.(EventHost).EventCursor(s.call); at != "" {
		cursor = cursor.Str(at)
	} else {
		cursor = cursor.Raw(`null`)
	}
	e.note(s, wire.EventsHeartbeat, cursor)
}

// completeStream sends the result of a stream.
func (e *Engine) completeStream(s *stream) {
	text := e.begin().Result(s.id).Raw(`{`)
	if s.modern {
		text = text.Raw(`"resultType":"complete",`)
	}
	e.send(s.port, subscriptionMeta(text, s.id).Raw(`}}`))
}

// endStream removes a stream without a message.
func (e *Engine) endStream(s *stream) {
	delete(e.streams, s.call)
	s.port.streams = remove(s.port.streams, s)
	e.beats = remove(e.beats, s)
	e.stats.Streams--
	e.queue.ops = append(e.queue.ops, op{kind: opEnd, call: s.call})
}
