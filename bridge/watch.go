package bridge

import "github.com/pagewire/pagewire/bridge/resource"

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

// unwatched removes a watch without subscriptions.
func (e *Engine) unwatched(w *watch) {
	if len(w.subs) > 0 {
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
	s := &sub{watch: w, port: p, listen: l, watchIndex: int32(len(w.subs)),
		portIndex: int32(len(p.subs))}
	w.subs = append(w.subs, s)
	p.subs = append(p.subs, s)
	e.stats.Subscriptions++
	return s
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

// unsubscribe ends a subscription without an answer.
func (e *Engine) unsubscribe(s *sub) {
	if e.asks {
		e.revoke(s.port, s.watch.uri)
	}
	e.forget(s)
}

// revoke tells the host that a subscription with its consent has ended, or has not begun.
func (e *Engine) revoke(p *port, uri string) {
	e.queue.ops = append(e.queue.ops,
		op{kind: opUnsubscribe, port: p.id, request: Request{URI: uri}})
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

// watchesOf returns the watches of the URIs for which an entry answers.
func (e *Engine) watchesOf(entry *resource.Entry) []*watch {
	if w := e.watches[entry.URI]; w != nil && !entry.Wide {
		return []*watch{w}
	}
	return e.wide[entry]
}
