package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A watch is one URI that has a subscription or that the host watches.
type watch struct {
	uri   string
	entry *resource.Entry // the URI's entry now; nil while it has none
	subs  []*sub          // each at its watchIndex
	item  coalesce.Item[*watch]
	index int // its place in Engine.wide, if it is there
}

// A sub is one subscription to one URI: a legacy one, or one of a listen.
type sub struct {
	watch                 *watch
	port                  *port
	listen                *listen // nil for a legacy one
	prev, next            *sub    // among the port's pending updates
	watchIndex, portIndex int32
	waiting               bool
}

func (e *Engine) subscribe(r *request) *wire.Error {
	if !e.subscribes(r.port) {
		return &wire.Error{Code: wire.MethodNotFound, Message: "Method not found: subscriptions are off"}
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
	e.send(r.port, e.closeResult(r, e.result(r)))
	return nil
}

// subscribed adds a legacy subscription, and reports false if there is one already.
func (e *Engine) subscribed(p *port, uri string) bool {
	if p.subscribed[uri] != nil {
		return false
	}
	if p.subscribed == nil {
		p.subscribed = map[string]*sub{}
	}
	p.subscribed[uri] = e.watch(p, nil, uri)
	return true
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
	err := limited("Subscription limit reached", reasonSubscriptions, "maxSubscriptions", e.opt.Limits.Subscriptions)
	err.Data = err.Data[:len(err.Data)-1].Raw(`,"uri":`).Str(uri).Raw(`}`)
	return err
}

// unsubscribeURI also confirms an unsubscribe without a subscription: the agent has the result that it wanted.
func (e *Engine) unsubscribeURI(r *request) *wire.Error {
	if !e.subscribes(r.port) {
		return &wire.Error{Code: wire.MethodNotFound, Message: "Method not found: subscriptions are off"}
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
	e.send(r.port, e.closeResult(r, e.result(r)))
	return nil
}

// watchOf returns the watch of a URI, and makes it if there is none.
func (e *Engine) watchOf(uri string) *watch {
	w := e.watches[uri]
	if w == nil {
		w = &watch{uri: uri}
		w.item.Value = w
		e.watches[uri] = w
		e.bind(w)
		e.queue.ops = append(e.queue.ops, op{kind: opWatched, request: Request{URI: uri}, on: true})
	}
	return w
}

// unwatched removes a watch without subscriptions that the host does not watch.
func (e *Engine) unwatched(w *watch) {
	if len(w.subs) > 0 || restricts && e.hostWatches[w.uri] {
		return
	}
	e.updates.Remove(&w.item)
	e.unbind(w)
	delete(e.watches, w.uri)
	e.queue.ops = append(e.queue.ops, op{kind: opWatched, request: Request{URI: w.uri}})
}

// watch adds a subscription.
func (e *Engine) watch(p *port, l *listen, uri string) *sub {
	w := e.watchOf(uri)
	s := &sub{watch: w, port: p, listen: l, watchIndex: int32(len(w.subs)), portIndex: int32(len(p.subs))}
	w.subs = append(w.subs, s)
	p.subs = append(p.subs, s)
	e.stats.Subscriptions++
	return s
}

// unsubscribe ends a subscription without an answer.
func (e *Engine) unsubscribe(s *sub) {
	if e.asks {
		e.revoke(s.port, s.watch.uri)
	}
	e.forget(s)
}

// forget removes a subscription from all lists.
func (e *Engine) forget(s *sub) {
	w, p := s.watch, s.port
	if s.listen == nil {
		delete(p.subscribed, w.uri)
	}
	p.unwait(s)
	last := w.subs[len(w.subs)-1]
	w.subs[s.watchIndex], last.watchIndex = last, s.watchIndex
	w.subs[len(w.subs)-1] = nil
	w.subs = w.subs[:len(w.subs)-1]
	last = p.subs[len(p.subs)-1]
	p.subs[s.portIndex], last.portIndex = last, s.portIndex
	p.subs[len(p.subs)-1] = nil
	p.subs = p.subs[:len(p.subs)-1]
	e.stats.Subscriptions--
	e.unwatched(w)
}

// bind finds the entry of a watch's URI.
func (e *Engine) bind(w *watch) {
	w.entry = e.registry.Find(w.uri)
	if w.entry == nil || w.entry.Wide {
		w.index = len(e.wide[w.entry])
		e.wide[w.entry] = append(e.wide[w.entry], w)
	}
}

func (e *Engine) unbind(w *watch) {
	if w.entry == nil || w.entry.Wide {
		list := e.wide[w.entry]
		last := list[len(list)-1]
		list[w.index], last.index = last, w.index
		list[len(list)-1] = nil
		if len(list) > 1 {
			e.wide[w.entry] = list[:len(list)-1]
		} else {
			delete(e.wide, w.entry)
		}
	}
	w.entry = nil
}
