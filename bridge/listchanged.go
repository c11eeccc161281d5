package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
)

// has reports whether the engine has a list.
func (e *Engine) has(kind listKind) bool { return kind == listResources || e.opt.Tools }

// listChanged announces a change of a list, now or when the interval is over.
func (e *Engine) listChanged(kind listKind) {
	e.revision[kind]++
	if e.lists.Touch(e.now, &e.list[kind], coalesce.Pace{Interval: e.opt.ListInterval}) {
		e.announceList(kind)
	}
}

// markSeenWhereHidden hides the next change of a list from the ports to which all that has changed
// is hidden.
func (e *Engine) markSeenWhereHidden(kind listKind, hidden func(*port) bool) {
	if e.restricted == 0 {
		return
	}
	for _, p := range e.order {
		if !hidden(p) {
			continue
		}
		e.markSeen(&p.lists[kind], kind)
		for _, l := range p.listens {
			e.markSeen(&l.lists[kind], kind)
		}
	}
}

// markSeen skips the announcement of the next change, unless an earlier one is pending.
func (e *Engine) markSeen(i *interest, kind listKind) {
	if i.seen == e.revision[kind] {
		i.seen++
	}
}

// announceList notifies the sessions that asked for changes of the list: legacy ones by initialize,
// listens by their filter. Sessions that began after the change have listed the new state.
func (e *Engine) announceList(kind listKind) {
	announce := func(p *port, l *listen, i *interest) {
		if !i.wanted || i.seen == e.revision[kind] {
			return
		}
		i.seen = e.revision[kind]
		if i.due = !p.acceptsUpdates(); !i.due {
			e.sendListChanged(p, l, kind)
		}
	}
	if !e.has(kind) {
		return
	}
	for _, p := range e.order {
		announce(p, nil, &p.lists[kind])
		for _, l := range p.listens {
			announce(p, l, &l.lists[kind])
		}
	}
}

// flushLists sends a port's pending announcements.
func (e *Engine) flushLists(p *port) {
	send := func(l *listen, lists *[listKinds]interest) {
		for kind := range lists {
			if i := &lists[kind]; i.due {
				i.due = false
				e.sendListChanged(p, l, listKind(kind))
			}
		}
	}
	send(nil, &p.lists)
	for _, l := range p.listens {
		send(l, &l.lists)
	}
}

func (e *Engine) sendListChanged(p *port, l *listen, kind listKind) {
	if l != nil {
		e.send(p, l.begin(e.begin(), listNames[kind].changed).Raw(`}}`))
	} else {
		e.send(p, e.begin().Notification(listNames[kind].changed).Raw(`{}}`))
	}
}
