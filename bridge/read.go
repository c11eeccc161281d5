package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

func (e *Engine) read(r *request) *wire.Error {
	if restricts && e.readSkill(r) {
		return nil
	}
	uri, skill, err := e.readURI(r)
	if err != nil {
		return err
	}
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
		if c != nil && c.entry != entry { // it has not begun: it reads the resource that answers now
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

// readURI returns the uri of a read, and whether the agent reads it as a page's skill.
func (e *Engine) readURI(r *request) (uri string, skill bool, err *wire.Error) {
	if restricts {
		uri, _ = r.params.Get("uri").Text()
		if entry := e.pageSkill(r.port, uri); entry != nil {
			return entry.URI, true, nil
		}
	}
	uri, err = e.uri(r)
	return uri, false, err
}

// beginRead asks the host. Later readers may share the read, unless Options.Several makes them fresh.
func (e *Engine) beginRead(c *call, question op) {
	e.joinable[c.uri] = c
	e.queue.ops = append(e.queue.ops, question)
}

// A freshReads has the reads of one URI that join no read that has begun (Options.Several): the number under way, and
// the next one, which begins when one of them ends. All readers that come meanwhile share the next one: many agents
// read at the same moment after a change, and the contents would otherwise be sent once for each.
type freshReads struct {
	running  int
	next     *call
	question op
}

// maxFresh is the number of such reads under way at once. There are several, so that a slow one does not delay others.
const maxFresh = 4

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

// Resolve returns the engine's request to its host for a read of a URI. The error means that no resource answers for
// it, or that it has wrong parameters.
func (e *Engine) Resolve(uri string) (Request, error) {
	entry, params, err := e.registry.Resolve(uri)
	if err != nil {
		return Request{}, err
	}
	return requestOf(uri, entry, params), nil
}

// uri returns the uri of a request's params, if it is valid for its port.
func (e *Engine) uri(r *request) (string, *wire.Error) {
	uri, ok := r.params.Get("uri").Text()
	if !ok {
		return "", invalidParams("uri must be a string")
	}
	if err := e.registry.Check(uri); err != nil {
		return "", refused(r.modern, uri, err)
	}
	if r.port.hides(uri) {
		return "", notFound(r.modern, uri)
	}
	return uri, nil
}

// answerRead sends the contents to one waiting request.
func (e *Engine) answerRead(w *wait, r Result) {
	q := request{port: w.port, id: w.id, modern: w.modern}
	if restricts && w.skill {
		e.answerSkill(w, &q, r.Contents)
		return
	}
	text := e.result(&q).Raw(`"contents":`)
	hole := len(text)
	if w.modern {
		text = text.Raw("," + cacheable)
	}
	e.sendContents(w.port, e.closeResult(&q, text), w.call.id, hole, r.Contents)
}

// Seal stops later readers of a URI from sharing its read under way: the resource may have changed since that read
// began. For a template, or a resource that takes parameters, it does so for every URI under it.
func (e *Engine) Seal(uri string) { e.sealReads(uri, e.registry.Get(uri)) }

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

// seal stops later readers from sharing a call: its resource has changed since the call began, and they must see the
// change.
func (e *Engine) seal(c *call) {
	if e.joinable[c.uri] == c {
		delete(e.joinable, c.uri)
	}
}
