package bridge

import "github.com/pagewire/pagewire/bridge/wire"

// initialize negotiates a version: the requested one if it is a legacy version, otherwise the
// newest legacy version. A port may be initialized again. A shared window channel needs that: its
// clients come and go on one port.
func (e *Engine) initialize(r *request) *wire.Error {
	asked, ok := r.params.Get("protocolVersion").Text()
	if !ok {
		return invalidParams("protocolVersion must be a string")
	}
	if !wire.IsLegacy(asked) {
		asked = wire.Legacy
	}
	if r.port.legacy == "" {
		for kind := range r.port.lists {
			r.port.lists[kind] = interest{wanted: true, seen: e.revision[kind]}
		}
	}
	r.port.legacy = asked
	text := e.result(r).Raw(`"protocolVersion":`).Str(asked)
	text = e.declare(text.Raw(`,`), r.port).Raw(`,"serverInfo":`).Bytes(e.serverInfo)
	e.send(r.port, e.closeResult(r, text))
	return nil
}

// declare appends the capabilities that a port's agent is told.
func (e *Engine) declare(text wire.Text, p *port) wire.Text {
	text = text.Raw(`"capabilities":{"resources":{`)
	if e.subscribes(p) {
		text = text.Raw(`"subscribe":true,`)
	}
	return text.Bytes(e.capabilities)
}

func (e *Engine) ping(r *request) *wire.Error {
	e.confirm(r)
	return nil
}

func (e *Engine) discover(r *request) *wire.Error {
	text := e.result(r).Raw(`"supportedVersions":["` + wire.Modern + `"],` + cacheable)
	e.send(r.port, e.closeResult(r, e.declare(text, r.port)))
	return nil
}

// cancelled ends a request that an agent has cancelled: the agent gets no more messages for it. An
// unknown request is ignored, as the specification demands: the answer may have crossed the
// cancellation.
func (e *Engine) cancelled(p *port, params wire.Value) {
	id := params.Get("requestId")
	if l := p.listening(id); l != nil {
		e.unlisten(l)
		return
	}
	if restricts {
		if s := p.streaming(id); s != nil {
			e.endStream(s)
			return
		}
	}
	for w := p.wait(id); w != nil; w = p.wait(id) {
		e.leave(w)
	}
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
