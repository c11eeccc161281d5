package bridge

import "github.com/pagewire/pagewire/bridge/wire"

func (e *Engine) subscribe(r *request) *wire.Error {
	if !e.subscribes(r.port) {
		return noSubscriptions()
	}
	uri, err := e.uri(r)
	if err != nil {
		return err
	}
	if _, _, err := e.registry.Resolve(uri); err != nil {
		return refused(r.modern, uri, err)
	}
	if r.port.subscribed[uri] == nil {
		if r.port.subscriptions() >= e.opt.Limits.Subscriptions {
			return e.tooManySubscriptions(uri)
		}
		if e.asks {
			if err := e.full(r.port); err != nil {
				return err
			}
			e.askToSubscribe(r, nil, uri)
			return nil
		}
		e.subscribed(r.port, uri)
	}
	e.confirm(r)
	return nil
}

// unsubscribeURI also confirms an unsubscribe without a subscription: the agent has the result that
// it wanted.
func (e *Engine) unsubscribeURI(r *request) *wire.Error {
	if !e.subscribes(r.port) {
		return noSubscriptions()
	}
	uri, ok := r.params.Get("uri").Text()
	if !ok {
		return invalidParams("uri must be a string")
	}
	e.cancelPending(r.port, uri)
	if s := r.port.subscribed[uri]; s != nil {
		if e.asks {
			c := e.ask(callUnsubscribe, &e.reads, e.opt.ReadTimeout,
				op{kind: opUnsubscribe, port: r.port.id, request: Request{URI: uri}})
			e.await(r, c)
			e.forget(s)
			return nil
		}
		e.forget(s)
	}
	e.confirm(r)
	return nil
}

// listen opens a stream. Its acknowledgement comes first, with the honored part of the filter: the
// lists that exist, and every URI that has a resource or could have one, even if the port does not
// see it. If the honored part is empty, the listen is acknowledged and completed immediately.
func (e *Engine) listen(r *request) *wire.Error {
	p, filter := r.port, r.params.Get("notifications")
	if filter.Kind() != wire.Object {
		return invalidParams("notifications must be an object")
	}
	for _, flag := range [...]string{listNames[listResources].flag, listNames[listTools].flag,
		"promptsListChanged"} {
		if k := filter.Get(flag).Kind(); k > wire.Null && k != wire.Bool {
			return invalidParams(flag + " must be a boolean")
		}
	}
	list := filter.Get("resourceSubscriptions")
	if k := list.Kind(); k > wire.Null && k != wire.Array {
		return invalidParams("resourceSubscriptions must be an array")
	}
	var uris []string
	named := map[string]bool{}
	var err *wire.Error
	list.Elements(func(v wire.Value) bool {
		uri, ok := v.Text()
		switch {
		case !ok:
			err = invalidParams("resourceSubscriptions must be strings")
		case !e.subscribes(p):
		case named[uri] || !e.registry.Awaits(uri):
		case p.subscriptions()+len(uris) >= e.opt.Limits.Subscriptions:
			err = e.tooManySubscriptions(uri)
		default:
			named[uri] = true
			uris = append(uris, uri)
		}
		return err == nil
	})
	switch {
	case err != nil:
		return err
	case len(p.listens)+p.openings >= e.opt.Limits.Listens:
		return limited("Too many listens", reasonListens, "maxListens", e.opt.Limits.Listens)
	}
	l := &listen{port: p, id: append(wire.Value(nil), r.id...)}
	for kind := range l.lists {
		wanted := e.has(listKind(kind)) && filter.Get(listNames[kind].flag).True()
		l.lists[kind] = interest{wanted: wanted, seen: e.revision[kind]}
	}
	if e.asks && len(uris) > 0 {
		e.askForListen(r, l, uris)
		return nil
	}
	e.acknowledge(l, uris)
	return nil
}

// subscriptions counts the port's subscriptions, and those that wait for consent.
func (p *port) subscriptions() int {
	n := len(p.subs) + p.granted
	for _, w := range p.waits {
		if w.call.kind == callSubscribe {
			n++
		}
	}
	return n
}

func (e *Engine) tooManySubscriptions(uri string) *wire.Error {
	err := limited("Subscription limit reached", reasonSubscriptions, "maxSubscriptions",
		e.opt.Limits.Subscriptions)
	err.Data = err.Data[:len(err.Data)-1].Raw(`,"uri":`).Str(uri).Raw(`}`)
	return err
}
