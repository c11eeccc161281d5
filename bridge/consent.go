package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// An opening is a listen whose URIs wait for the consent of a SubscriptionHost. After the last answer it is
// acknowledged with the URIs that were not refused.
type opening struct {
	listen  *listen
	uris    []string // the URIs that were not refused
	granted []string // the URIs that the host has consented to
	left    int      // missing answers
}

// askForListen asks the host for consent to each URI of a listen that the port sees.
func (e *Engine) askForListen(r *request, l *listen, uris []string) {
	asked := slices.Clone(uris)
	if restricts {
		asked = slices.DeleteFunc(asked, r.port.hides)
		if len(asked) == 0 {
			e.acknowledge(l, uris)
			return
		}
	}
	o := &opening{listen: l, uris: uris, left: len(asked)}
	r.port.openings++
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
	e.confirm(w)
}

// confirm answers a subscribe or unsubscribe that the host has consented to.
func (e *Engine) confirm(w *wait) {
	q := request{port: w.port, id: w.id, modern: w.modern}
	e.send(w.port, e.closeResult(&q, e.result(&q)))
}

// cancelPending ends a port's legacy subscribes to a URI that wait for consent: the agent unsubscribes, and its last
// request counts.
func (e *Engine) cancelPending(p *port, uri string) {
	for i := 0; i < len(p.waits); {
		w := p.waits[i]
		if w.call.kind != callSubscribe || w.opening != nil || w.call.uri != uri {
			i++
			continue
		}
		e.confirm(w)
		e.finish(w.call, nil)
	}
}

// refuseConsent handles a refused Subscribe or Unsubscribe: a legacy agent gets err, a listen continues without the
// URI.
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
		o.listen.port.granted -= len(o.granted)
		e.acknowledge(o.listen, o.uris)
	}
}

// abandon ends an opening whose listen was cancelled, or whose port has closed.
func (e *Engine) abandon(o *opening) {
	if o.left == 0 {
		return
	}
	o.left = 0
	o.listen.port.openings--
	o.listen.port.granted -= len(o.granted)
	for _, uri := range o.granted {
		e.revoke(o.listen.port, uri)
	}
}

// revoke tells the host that a subscription with its consent has ended, or has not begun.
func (e *Engine) revoke(p *port, uri string) {
	e.queue.ops = append(e.queue.ops, op{kind: opUnsubscribe, port: p.id, request: Request{URI: uri}})
}

// Notify sends one port an update of a URI under each of its subscriptions to it, without coalescing. Like any update
// it waits while the port is not writable or has used up its rate.
//
// Pagewire itself does not call it. It is for a SubscriptionHost with a subscription store of its own. Touch notifies
// all subscribers.
func (e *Engine) Notify(now Time, id PortID, uri string) {
	e.enter(now)
	if w := e.watches[uri]; w != nil {
		for _, s := range w.subs {
			if s.port.id == id {
				e.notify(s)
			}
		}
	}
	e.drain()
}
