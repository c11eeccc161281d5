package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

func (a *ages) add(c *call) {
	c.ages, c.older = a, a.last
	if a.last != nil {
		a.last.next = c
	} else {
		a.first = c
	}
	a.last = c
}

// remove keeps c.next set: callers may be walking the list.
func (a *ages) remove(c *call) {
	if c.older != nil {
		c.older.next = c.next
	} else {
		a.first = c.next
	}
	if c.next != nil {
		c.next.older = c.older
	} else {
		a.last = c.older
	}
}

// ask makes a call that ends after timeout, and queues its question.
func (e *Engine) ask(kind callKind, list *ages, timeout Time, question op) *call {
	c := e.newCall(kind, list, timeout)
	question.call = c.id
	e.queue.ops = append(e.queue.ops, question)
	return c
}

// newCall makes a call that ends after timeout.
func (e *Engine) newCall(kind callKind, list *ages, timeout Time) *call {
	if e.lastCall++; e.lastCall == 0 {
		e.lastCall++
	}
	c := &call{id: e.lastCall, kind: kind, deadline: e.now + timeout}
	e.calls[c.id] = c
	list.add(c)
	return c
}

// await adds r to the requests that c completes.
func (e *Engine) await(r *request, c *call) *wait {
	w := &wait{port: r.port, call: c, id: append(wire.Value(nil), r.id...), modern: r.modern}
	c.waits = append(c.waits, w)
	r.port.waits = append(r.port.waits, w)
	return w
}

// request is what the answer to w needs of its request.
func (w *wait) request() *request { return &request{port: w.port, id: w.id, modern: w.modern} }

// wait returns the first of the port's waits with an id, or nil.
func (p *port) wait(id wire.Value) *wait {
	for _, w := range p.waits { // few: Limits.Calls, and the waits for consent
		if w.id.Equal(id) {
			return w
		}
	}
	return nil
}

// full returns an error if a port has Limits.Calls waits, not counting its opening streams.
func (e *Engine) full(p *port) *wire.Error {
	waits := len(p.waits)
	if restricts {
		waits -= p.streamsOpening()
	}
	if waits < e.opt.Limits.Calls {
		return nil
	}
	return limited("Too many requests at once", reasonCalls, "maxCalls", e.opt.Limits.Calls)
}

// streamsOpening counts the streams of a port that wait for the host's answer.
func (p *port) streamsOpening() (n int) {
	for _, w := range p.waits {
		if w.call.kind == callStream {
			n++
		}
	}
	return n
}

// finish ends a call and answers its waiting requests with err. A nil err means that they have
// their answers.
func (e *Engine) finish(c *call, err *wire.Error) {
	for _, w := range c.waits {
		w.port.waits = remove(w.port.waits, w)
		if err != nil {
			e.fail(w.port, w.id, err)
		}
	}
	c.waits = nil
	e.endCall(c)
}

// leave removes one request from its call, and ends the call if it was the last one.
func (e *Engine) leave(w *wait) {
	w.port.waits = remove(w.port.waits, w)
	w.call.waits = remove(w.call.waits, w)
	if w.opening != nil {
		e.abandon(w.opening)
	}
	if len(w.call.waits) == 0 {
		e.endCall(w.call)
	}
}

// abandon ends an opening whose listen was cancelled, or whose port has closed.
func (e *Engine) abandon(o *opening) {
	if o.left == 0 {
		return
	}
	o.listen.port.openings--
	o.listen.port.granted -= len(o.uris) - o.left
	o.left = 0
	for _, uri := range o.granted {
		e.revoke(o.listen.port, uri)
	}
}

func (e *Engine) endCall(c *call) {
	delete(e.calls, c.id)
	c.ages.remove(c)
	e.seal(c)
	if !(restricts && c.kind == callAwait) && (!c.fresh || e.endFresh(c)) {
		e.queue.ops = append(e.queue.ops, op{kind: opEnd, call: c.id})
	}
}

// maxFresh is the number of such reads under way at once. There are several, so that a slow one
// does not delay others.
const maxFresh = 4

// beginRead asks the host. Later readers may share the read, unless Options.Several makes them
// fresh.
func (e *Engine) beginRead(c *call, question op) {
	e.joinable[c.uri] = c
	e.queue.ops = append(e.queue.ops, question)
}

// begins counts a fresh read, and reports whether it begins immediately.
func (e *Engine) begins(c *call, question op) bool {
	f := e.fresh[c.uri]
	if f == nil {
		f = &freshReads{}
		e.fresh[c.uri] = f
	}
	if f.running == maxFresh {
		f.next, f.question = c, question
		return false
	}
	f.running++
	return true
}

// endFresh begins the next read after one has ended. It reports false if c had not begun.
func (e *Engine) endFresh(c *call) bool {
	f := e.fresh[c.uri]
	next := f.next
	f.next = nil
	switch {
	case next == c:
		return false
	case next != nil:
		e.beginRead(next, f.question)
	default:
		if f.running--; f.running == 0 {
			delete(e.fresh, c.uri)
		}
	}
	return true
}

// sealReads is Seal for a caller that has the URI's entry, or nil.
func (e *Engine) sealReads(uri string, entry *resource.Entry) {
	if c := e.joinable[uri]; c != nil {
		e.seal(c)
	}
	if entry != nil && entry.Wide {
		for c := e.reads.first; c != nil; c = c.next {
			if c.entry == entry {
				e.seal(c)
			}
		}
	}
}

// seal stops later readers from sharing a call: its resource has changed since the call began, and
// they must see the change.
func (e *Engine) seal(c *call) {
	if e.joinable[c.uri] == c {
		delete(e.joinable, c.uri)
	}
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
