package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// When do readers share a run? Ten agents that are told of a change read at once, and the page's
// callback runs once. A run that began before a change must not answer a later request, so a touch
// closes it to later readers. A read joins another only while its URI is watched, because only then
// are changes announced: random histories found a last watcher that left, a change, and a new
// reader that joined the old read and showed an old state for good.
func (e *Engine) read(r *request) *wire.Error {
	if uri, _ := r.params.Get("uri").Text(); restricts && ofSkill(uri) {
		if known, err := e.readSkill(r, uri); known {
			return err
		}
	}
	uri, err := e.uri(r)
	if err != nil {
		return err
	}
	return e.readAs(r, uri, false)
}

// readSkill reads a skill. It returns false if no skill has the URI.
func (e *Engine) readSkill(r *request, uri string) (known bool, err *wire.Error) {
	own, page := e.findSkill(r.port, uri)
	switch {
	case own != nil:
		e.sendFor(r, e.result(r).Raw(`"contents":`).Raw(own.Contents), cacheable)
	case page != nil:
		err = e.readAs(r, page.URI, true)
	default:
		return false, nil
	}
	return true, err
}

// readAs reads a resource: with skill, for an answer that is a skill.
func (e *Engine) readAs(r *request, uri string, skill bool) *wire.Error {
	entry, params, resolveErr := e.registry.Resolve(uri)
	if resolveErr != nil && !(e.opt.Several && entry == nil) {
		return refused(r.modern, uri, resolveErr)
	}
	if err := e.full(r.port); err != nil {
		return err
	}
	perPort := restricts && entry != nil && entry.PerPort
	fresh := e.opt.Several && r.modern && !perPort
	c := e.joinable[uri]
	if fresh {
		if c = nil; e.fresh[uri] != nil {
			c = e.fresh[uri].next
		}
		if c != nil && c.entry != entry {
			// It has not begun: it reads the resource that answers now.
			c.entry, e.fresh[uri].question.request = entry, requestOf(uri, entry, params)
		}
	}
	if c == nil || c.entry != entry || perPort {
		c = e.newCall(callRead, &e.reads, e.opt.ReadTimeout)
		c.uri, c.entry, c.fresh = uri, entry, fresh
		question := op{kind: opRead, call: c.id, request: requestOf(uri, entry, params)}
		if perPort {
			question.request.Port = r.port.id
		}
		if !fresh || e.begins(c, question) {
			e.beginRead(c, question)
		}
	}
	e.await(r, c).skill = skill
	return nil
}

func requestOf(uri string, entry *resource.Entry, params []resource.Param) Request {
	q := Request{Key: uri, URI: uri}
	if entry != nil && entry.URI != uri { // if they are the same, a host has to copy only one text
		q.Key = entry.URI
	}
	if entry != nil && entry.Wide {
		q.Params = paramsJSON(params)
	}
	return q
}

// answerRead sends the contents to one waiting request.
func (e *Engine) answerRead(w *wait, r Result) {
	q := w.request()
	if restricts && w.skill {
		e.answerSkill(w, q, r.Contents)
		return
	}
	text := e.result(q).Raw(`"contents":`)
	hole := len(text)
	if w.modern {
		text = text.Raw("," + cacheable)
	}
	e.sendContents(w.port, e.closeResult(q, text), w.call.id, hole, r.Contents)
}

// vanish ends a read whose resource has gone.
func (e *Engine) vanish(c *call) {
	for len(c.waits) > 0 {
		w := c.waits[0]
		e.fail(w.port, w.id, notFound(w.modern, c.uri))
		e.leave(w)
	}
}
