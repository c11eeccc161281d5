package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/resource"
	"github.com/pagewire/pagewire/bridge/wire"
)

// changed announces a change of a watched URI, now or when the interval is over.
func (e *Engine) changed(w *watch) {
	if e.updates.Touch(e.now, &w.item, e.pace(w)) {
		e.announce(w)
	}
}

// pace is the Pace of w. Its entry is not nil: a URI without a resource does not change, and
// Unregister drops the updates that are due.
func (e *Engine) pace(w *watch) coalesce.Pace { return e.paceOf(w.entry) }

// paceOf is the Pace of an entry. A page's own interval allows no burst.
func (e *Engine) paceOf(entry *resource.Entry) coalesce.Pace {
	if entry.Coalesced {
		return coalesce.Pace{}
	}
	if least := Time(entry.MinInterval); least > 0 {
		return coalesce.Pace{Interval: max(e.opt.UpdateInterval, least), Burst: 1}
	}
	return coalesce.Pace{Interval: e.opt.UpdateInterval, Burst: e.opt.UpdateBurst}
}

// announce notifies every subscriber of w, each under its own id.
func (e *Engine) announce(w *watch) {
	for _, s := range w.subs {
		e.notify(s)
	}
}

// notify sends one subscriber an update as soon as its port accepts it, unless one is pending
// already.
func (e *Engine) notify(s *sub) {
	if p := s.port; s.waiting {
		return
	} else if p.first == nil && p.acceptsUpdates() && e.spend(p) {
		e.update(s)
	} else {
		p.enqueue(s)
		e.throttle(p)
	}
}

// update sends one subscriber its notification.
func (e *Engine) update(s *sub) {
	if s.port.hides(s.watch.uri) { // hidden after it subscribed
		return
	}
	text := e.begin()
	if s.listen != nil {
		text = s.listen.begin(text, wire.ResourceUpdated).Raw(`,`)
	} else {
		text = text.Notification(wire.ResourceUpdated).Raw(`{`)
	}
	e.send(s.port, text.Raw(`"uri":`).Str(s.watch.uri).Raw(`}}`))
	e.stats.Updates++
}

// flush sends the pending updates that a port accepts, in the order in which they fell due. There
// is one for each URI, so a URI that changes all the time gets no more of the port than one that
// changes rarely.
func (e *Engine) flush(p *port) {
	if restricts {
		for _, s := range p.streams { // events belong to an answer, so a held port gets them too
			e.pull(s)
		}
	}
	if !p.acceptsUpdates() {
		return
	}
	e.flushLists(p)
	for p.first != nil && e.spend(p) {
		s := p.first
		p.unwait(s)
		e.update(s)
	}
	e.throttle(p)
}
