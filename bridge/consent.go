package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// askForListen asks the host for consent to each URI of a listen that the port sees.
func (e *Engine) askForListen(r *request, l *listen, uris []string) {
	var asked, hidden []string
	for _, uri := range uris {
		if restricts && r.port.hides(uri) {
			hidden = append(hidden, uri)
		} else {
			asked = append(asked, uri)
		}
	}
	if len(asked) == 0 {
		e.acknowledge(l, uris)
		return
	}
	o := &opening{listen: l, uris: uris, granted: hidden, left: len(asked)}
	r.port.openings++
	r.port.granted += len(hidden)
	for _, uri := range asked {
		e.askToSubscribe(r, o, uri)
	}
}

func (e *Engine) askToSubscribe(r *request, o *opening, uri string) {
	c := e.ask(callSubscribe, &e.reads, e.opt.ReadTimeout,
		op{kind: opSubscribe, port: r.port.id, request: Request{URI: uri}})
	c.uri = uri
	e.await(r, c).opening = o
}

// consent handles the host's answer to a Subscribe or an Unsubscribe.
func (e *Engine) consent(c *call, r Result) {
	w := c.waits[0] // such a call has exactly one
	if r.Failure != "" {
		e.refuseConsent(c, readError(reasonRefused, e.expose("Refused", r)))
		return
	}
	e.finish(c, nil)
	if o := w.opening; o != nil {
		o.granted = append(o.granted, c.uri)
		o.listen.port.granted++
		e.answered(o)
		return
	}
	if c.kind == callSubscribe && !e.subscribed(w.port, c.uri) {
		e.revoke(w.port, c.uri) // the agent has asked twice, and has one subscription
	}
	e.confirm(w.request())
}

// cancelPending ends a port's legacy subscribes to a URI that wait for consent: the agent
// unsubscribes, and its last request counts.
func (e *Engine) cancelPending(p *port, uri string) {
	for i := 0; i < len(p.waits); {
		w := p.waits[i]
		if w.call.kind != callSubscribe || w.opening != nil || w.call.uri != uri {
			i++
			continue
		}
		e.confirm(w.request())
		e.finish(w.call, nil)
	}
}

// refuseConsent handles a refused Subscribe or Unsubscribe: a legacy agent gets err, a listen
// continues without the URI.
func (e *Engine) refuseConsent(c *call, err *wire.Error) {
	o := c.waits[0].opening
	if o == nil {
		e.finish(c, err)
		return
	}
	e.finish(c, nil)
	o.uris = slices.DeleteFunc(o.uris, func(uri string) bool { return uri == c.uri })
	e.answered(o)
}

func (e *Engine) answered(o *opening) {
	if o.left--; o.left == 0 {
		o.listen.port.openings--
		o.listen.port.granted -= len(o.uris)
		e.acknowledge(o.listen, o.uris)
	}
}
