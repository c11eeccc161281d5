package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// A request is an agent's request that is being handled.
type request struct {
	port   *port
	id     wire.Value
	method string
	params wire.Value
	modern bool
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
		if m := e.eventsMethod(name); m.handle != nil {
			return m
		}
		return e.skillsMethod(name)
	}
	return method{}
}

// message handles one message. It answers a request exactly once, now or after the host has answered.
func (e *Engine) message(p *port, text []byte) {
	m, err := wire.Decode(text, e.opt.Limits.Depth)
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
		e.fail(p, m.ID, &wire.Error{Code: wire.InvalidRequest, Message: "Invalid request: the id of a request that " +
			"is not answered yet"})
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

// era decides the era of a request: modern exactly if its _meta claims a version. Each request is judged on its own, so
// both eras may share a port.
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
		case info.Kind() > wire.Null && (info.Get("name").Kind() != wire.String || info.Get("version").Kind() != wire.String):
			return h, invalidParams(wire.MetaClientInfo + " must have a name and a version")
		case !version.Is(wire.Modern):
			data := wire.Text(`{"supported":["` + wire.Modern + `"],"requested":`).Bytes(version).Raw(`}`)
			return h, &wire.Error{Code: wire.UnsupportedVersion, Message: "Unsupported protocol version", Data: data}
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
		return h, &wire.Error{Code: wire.InvalidRequest, Message: "Invalid request: neither initialized nor claiming " +
			"a protocol version"}
	case !h.legacy:
		return h, unknown
	}
	return h, nil
}

// outstanding reports whether a request with an id has no answer yet.
func (p *port) outstanding(id wire.Value) bool {
	return p.wait(id) != nil || p.listening(id) != nil || restricts && p.streaming(id) != nil
}

// result begins the answer to r. The method appends its members, and end completes it.
func (e *Engine) result(r *request) wire.Text {
	text := e.begin().Result(r.id).Raw(`{`)
	if r.modern {
		text = text.Raw(`"resultType":"complete",`)
	}
	return text
}

// cacheable forbids modern clients to cache a result about live state.
const cacheable = `"ttlMs":0,"cacheScope":"private",`

// closeResult completes an answer whose text ends in "{" or in a member.
func (e *Engine) closeResult(r *request, text wire.Text) wire.Text {
	if r.modern {
		if last := text[len(text)-1]; last != '{' && last != ',' {
			text = text.Raw(`,`)
		}
		text = text.Bytes(e.modernMeta)
	}
	return text.Raw(`}}`)
}
