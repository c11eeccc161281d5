package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// message handles one message. It answers a request exactly once, now or after the host has
// answered.
func (e *Engine) message(p *port, text []byte) {
	m, err := wire.Decode(text, e.opt.Limits.Depth)
	if err != nil && err.Code == wire.ParseError && len(m.ID) == 0 { // it may be behind the params
		if m.ID = wire.LastID(text); restricts && len(m.ID) == 0 {
			deep, _ := wire.Decode(text, maxDepth)
			m.ID = deep.ID
		}
	}
	switch {
	case err != nil && (len(m.ID) > 0 || err.Code != wire.InvalidParams):
		e.fail(p, m.ID, err)
		return
	case err != nil: // a notification with bad params
		return
	case !m.Request():
		if m.Method == wire.Cancelled {
			e.cancelled(p, m.Params)
		}
		return // the engine sends no requests, and needs no other notifications
	}
	r := request{port: p, id: m.ID, method: m.Method, params: m.Params}
	if len(m.ID) > e.opt.Limits.IDBytes { // before the id is kept and repeated with every update
		e.fail(p, m.ID, tooLarge("Id too long", reasonIDSize, "maxIdBytes", e.opt.Limits.IDBytes))
		return
	}
	if p.outstanding(m.ID) {
		e.fail(p, m.ID, &wire.Error{Code: wire.InvalidRequest,
			Message: "Invalid request: the id of a request that is not answered yet"})
		return
	}
	h, err := e.era(&r, m.Method)
	if err == nil && !(restricts && e.awaits && e.hold(&r, text)) {
		err = h.handle(e, &r)
	}
	if err != nil {
		e.fail(p, r.id, err)
	}
}

// method is a row of the table of methods: its handler, and the eras in which it exists.
type method struct {
	handle         func(*Engine, *request) *wire.Error
	legacy, modern bool
}

func (e *Engine) lookup(name string) method {
	switch name {
	case wire.ResourcesRead:
		return method{(*Engine).read, true, true}
	case wire.ResourcesList:
		return method{(*Engine).listResources, true, true}
	case wire.TemplatesList:
		return method{(*Engine).listTemplates, true, true}
	case wire.ResourcesSubscribe:
		return method{(*Engine).subscribe, true, false}
	case wire.ResourcesUnsubscribe:
		return method{(*Engine).unsubscribeURI, true, false}
	case wire.ToolsList:
		return method{(*Engine).listTools, e.opt.Tools, e.opt.Tools}
	case wire.ToolsCall:
		return method{(*Engine).callTool, e.opt.Tools, e.opt.Tools}
	case wire.Listen:
		return method{(*Engine).listen, false, true}
	case wire.Discover:
		return method{(*Engine).discover, false, true}
	case wire.Initialize:
		return method{(*Engine).initialize, true, false}
	case wire.Ping:
		return method{(*Engine).ping, true, false}
	}
	if restricts {
		skills := len(e.opt.Skills) > 0
		switch name {
		case wire.EventsList, wire.EventsPoll, wire.EventsStream, wire.EventsSubscribe,
			wire.EventsUnsubscribe:
			return method{(*Engine).events, e.opt.Events, e.opt.Events}
		case wire.SkillsList:
			return method{(*Engine).listSkills, skills, skills}
		case wire.SkillsGet:
			return method{(*Engine).getSkill, skills, skills}
		}
	}
	return method{}
}

// era decides the era of a request: modern exactly if its _meta claims a version. Each request is
// judged on its own, so both eras may share a port.
func (e *Engine) era(r *request, name string) (method, *wire.Error) {
	h := e.lookup(name)
	unknown := &wire.Error{Code: wire.MethodNotFound, Message: "Method not found"}
	meta := r.params.Get("_meta")
	version := meta.Get(wire.MetaVersion)
	if len(version) > 0 {
		r.modern = true
		info := meta.Get(wire.MetaClientInfo)
		switch {
		case version.Kind() != wire.String:
			return h, invalidParams(wire.MetaVersion + " must be a string")
		case meta.Get(wire.MetaCapabilities).Kind() != wire.Object:
			return h, invalidParams(wire.MetaCapabilities + " must be an object")
		case info.Kind() > wire.Null &&
			(info.Get("name").Kind() != wire.String || info.Get("version").Kind() != wire.String):
			return h, invalidParams(wire.MetaClientInfo + " must have a name and a version")
		case !version.Is(wire.Modern):
			data := wire.Text(`{"supported":["` + wire.Modern + `"],"requested":`).Bytes(version)
			return h, &wire.Error{Code: wire.UnsupportedVersion,
				Message: "Unsupported protocol version", Data: data.Raw(`}`)}
		case !h.modern:
			return h, unknown
		}
		return h, nil
	}
	switch {
	case name == wire.Initialize || name == wire.Ping:
		return h, nil
	case name == wire.Discover || name == wire.Listen:
		return h, invalidParams("_meta must have " + wire.MetaVersion)
	case r.port.legacy == "":
		return h, &wire.Error{Code: wire.InvalidRequest,
			Message: "Invalid request: neither initialized nor claiming a protocol version"}
	case !h.legacy:
		return h, unknown
	}
	return h, nil
}

// outstanding reports whether a request with an id has no answer yet.
func (p *port) outstanding(id wire.Value) bool {
	return p.wait(id) != nil || p.listening(id) != nil || restricts && p.streaming(id) != nil
}

// hold reports whether a request waits for the host. Of one port as many wait as fit into one
// message of the largest size: with more, all of the port go on.
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

// proceed handles the requests that wait, in order: while Await is on, those of one port, or with
// nil those that have waited long enough; then all.
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

// awaitEnd is the time at which Await is over, at least for the first request. That time is now if
// the last request that had kept Await past awaitUntil has left.
func (e *Engine) awaitEnd() Time {
	if c := e.awaiting.first; c != nil {
		return c.deadline
	}
	return max(e.awaitUntil, e.now)
}
