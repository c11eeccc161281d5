package bridge

import (
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

func (e *Engine) read(r *request) *wire.Error {
	uri, err := e.uri(r)
	if err != nil {
		return err
	}
	entry, params, resolveErr := e.registry.Resolve(uri)
	if resolveErr != nil && !(e.opt.Relay && entry == nil) {
		return refused(r.modern, uri, resolveErr)
	}
	if err := e.full(r.port); err != nil {
		return err
	}
	c := e.joinable[uri]
	if c == nil || c.entry != entry {
		c = e.ask(callRead, &e.reads, e.opt.ReadTimeout, op{kind: opRead, request: requestOf(uri, entry, params)})
		c.uri, c.entry = uri, entry
		e.joinable[uri] = c
	}
	e.await(r, c)
	return nil
}

func requestOf(uri string, entry *resource.Entry, params []resource.Param) Request {
	q := Request{Key: uri, URI: uri}
	if entry != nil {
		q.Key = entry.URI
		if entry.Wide {
			q.Params = paramsJSON(params)
		}
	}
	return q
}

// Resolve returns what the engine would ask its home to read for a URI. The error says that nothing answers for it, or
// that its parameters are not what the resource takes.
func (e *Engine) Resolve(uri string) (Request, error) {
	entry, params, err := e.registry.Resolve(uri)
	if err != nil {
		return Request{}, err
	}
	return requestOf(uri, entry, params), nil
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

// answerRead sends the contents to one who waits for them.
func (e *Engine) answerRead(w *wait, r Result) {
	q := request{port: w.port, id: w.id, modern: w.modern}
	text := e.result(&q).Raw(`"contents":`)
	hole := len(text)
	if w.modern {
		text = text.Raw("," + cacheable)
	}
	e.sendContents(w.port, e.end(&q, text), w.call.id, hole, r.Contents)
}

// seal lets no further reader share a call: its resource has changed since it began, and whoever asks now must see
// the change.
func (e *Engine) seal(c *call) {
	if e.joinable[c.uri] == c {
		delete(e.joinable, c.uri)
	}
}
