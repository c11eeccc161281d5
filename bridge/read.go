package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A call is one run of a home's read, and those who wait for it.
type call struct {
	id       CallID
	uri      string
	entry    *resource.Entry
	waits    []*wait
	deadline Time
	done     bool
}

// A wait is one request that is answered by a call.
type wait struct {
	port   *port
	call   *call
	id     wire.Value
	modern bool
}

func (p *port) wait(id wire.Value) *wait {
	for _, w := range p.waits { // at most Limits.Reads
		if w.id.Equal(id) {
			return w
		}
	}
	return nil
}

func (e *Engine) read(r *request) *wire.Error {
	uri, err := e.uri(r)
	if err != nil {
		return err
	}
	entry, params, resolveErr := e.registry.Resolve(uri)
	if resolveErr != nil {
		return refused(r.modern, uri, resolveErr)
	}
	if len(r.port.waits) >= e.opt.Limits.Reads {
		return limited("Too many reads at once", reasonReads, "maxReads", e.opt.Limits.Reads)
	}
	c := e.joinable[uri]
	if c == nil || c.entry != entry {
		e.lastCall++
		if e.lastCall == 0 {
			e.lastCall++
		}
		c = &call{id: e.lastCall, uri: uri, entry: entry, deadline: e.now + e.opt.ReadTimeout}
		e.calls[c.id] = c
		e.joinable[uri] = c
		e.deadline = append(e.deadline, c)
		q := Request{Key: entry.URI, URI: uri}
		if entry.Wide {
			q.Params = paramsJSON(params)
		}
		e.queue.ops = append(e.queue.ops, op{kind: opRead, call: c.id, request: q})
	}
	w := &wait{port: r.port, call: c, id: append(wire.Value(nil), r.id...), modern: r.modern}
	c.waits = append(c.waits, w)
	r.port.waits = append(r.port.waits, w)
	return nil
}

// uri returns the uri of a request's params, if it is one that could be here.
func (e *Engine) uri(r *request) (string, *wire.Error) {
	uri, ok := r.params.Get("uri").Text()
	if !ok {
		return "", invalidParams("uri must be a string")
	}
	if err := e.registry.Check(uri); err != nil {
		return "", refused(r.modern, uri, err)
	}
	return uri, nil
}

// Complete answers a Read. An answer to a call that has ended is ignored.
func (e *Engine) Complete(now Time, id CallID, r Result) {
	e.enter(now)
	defer e.drain()
	c := e.calls[id]
	if c == nil {
		return
	}
	if r.Contents != nil {
		r.Size = len(r.Contents)
	}
	switch {
	case r.Failure != "" || r.Size <= 0:
		message := "Read failed"
		if r.Failure == "" {
			r.Failure = ReadFailed
		}
		if e.opt.ExposeErrors && r.Detail != "" {
			message = r.Detail
		}
		e.finishRead(c, readError(string(r.Failure), message))
	case r.Size > e.opt.Limits.ResultBytes:
		e.finishRead(c, limited("Contents too large", reasonResultSize, "maxBytes", e.opt.Limits.ResultBytes))
	default:
		for _, w := range c.waits {
			q := request{port: w.port, id: w.id, modern: w.modern}
			text := e.result(&q).Raw(`"contents":`)
			hole := len(text)
			if w.modern {
				text = text.Raw("," + cacheable)
			}
			e.sendContents(w.port, e.end(&q, text), c.id, hole, r.Contents)
		}
		e.finishRead(c, nil)
	}
}

// finishRead answers those who wait for a call with err, unless that is nil because they have their answers, and
// ends it.
func (e *Engine) finishRead(c *call, err *wire.Error) {
	for _, w := range c.waits {
		w.port.waits = remove(w.port.waits, w)
		if err != nil {
			e.fail(w.port, w.id, err)
		}
	}
	c.waits = nil
	e.endCall(c)
}

// leave takes one reader away from its call, and ends the call if it was the last one.
func (e *Engine) leave(w *wait) {
	w.port.waits = remove(w.port.waits, w)
	w.call.waits = remove(w.call.waits, w)
	if len(w.call.waits) == 0 {
		e.endCall(w.call)
	}
}

func (e *Engine) endCall(c *call) {
	c.done = true
	delete(e.calls, c.id)
	e.seal(c)
	e.queue.ops = append(e.queue.ops, op{kind: opEnd, call: c.id})
}

// seal lets no further reader share a call: its resource has changed since it began, and whoever asks now must see
// the change.
func (e *Engine) seal(c *call) {
	if e.joinable[c.uri] == c {
		delete(e.joinable, c.uri)
	}
}

// expireReads ends the calls that took too long.
func (e *Engine) expireReads() {
	for len(e.deadline) > 0 && (e.deadline[0].done || e.deadline[0].deadline <= e.now) {
		c := e.deadline[0]
		e.deadline[0] = nil
		e.deadline = e.deadline[1:]
		if !c.done {
			e.finishRead(c, limited("Read timed out", reasonTimeout, "timeoutMs", int(e.opt.ReadTimeout)))
		}
	}
}

// nextExpiry is when the oldest call takes too long.
func (e *Engine) nextExpiry() (Time, bool) {
	for len(e.deadline) > 0 && e.deadline[0].done {
		e.deadline[0] = nil
		e.deadline = e.deadline[1:]
	}
	if len(e.deadline) == 0 {
		e.deadline = nil
		return 0, false
	}
	return e.deadline[0].deadline, true
}
