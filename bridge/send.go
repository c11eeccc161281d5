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

// begin returns the buffer for appending a message; send ends that message.
func (e *Engine) begin() wire.Text { return e.queue.text }

// send queues the text appended since begin as a message for p.
func (e *Engine) send(p *port, text wire.Text) { e.push(p, text, op{}) }

// sendContents is send for a message with the contents of a call, at offset hole of text.
func (e *Engine) sendContents(p *port, text wire.Text, call CallID, hole int, contents []byte) {
	e.push(p, text, op{call: call, hole: hole, contents: contents})
}

func (e *Engine) push(p *port, text wire.Text, o op) {
	o.kind, o.port, o.from, o.to = opSend, p.id, len(e.queue.text), len(text)
	e.queue.text = text
	e.queue.ops = append(e.queue.ops, o)
}

// fail queues an error answer.
func (e *Engine) fail(p *port, id wire.Value, err *wire.Error) {
	e.send(p, e.begin().Failure(id, err))
}

// result begins the answer to r. The method appends its members, and end completes it.
func (e *Engine) result(r *request) wire.Text {
	text := e.begin().Result(r.id).Raw(`{`)
	if r.modern {
		text = text.Raw(`"resultType":"complete",`)
	}
	return text
}

// confirm sends the answer that has no members.
func (e *Engine) confirm(r *request) { e.send(r.port, e.closeResult(r, e.result(r))) }

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

// sendFor completes an answer that modern clients may cache.
func (e *Engine) sendFor(r *request, text wire.Text, cache string) {
	if r.modern {
		text = text.Raw(`,`).Raw(cache)
	}
	e.send(r.port, e.closeResult(r, text))
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

// expose is the message of a failure: the host's Detail only with Options.ExposeErrors.
func (e *Engine) expose(message string, r Result) string {
	if e.opt.ExposeErrors && r.Detail != "" {
		return r.Detail
	}
	return message
}
