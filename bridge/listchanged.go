package bridge

import (
	"github.com/pagewire/pagewire/bridge/coalesce"
	"github.com/pagewire/pagewire/bridge/wire"
)

// A listKind is a list whose changes agents may be told of.
type listKind byte

const (
	listResources listKind = iota
	listTools
	listKinds // how many there are
)

// listNames are what the lists are called in the filter of a listen, and in notifications.
var listNames = [listKinds]struct{ flag, changed string }{
	{"resourcesListChanged", wire.ResourcesListChanged},
	{"toolsListChanged", wire.ToolsListChanged},
}

// has reports whether there is such a list.
func (e *Engine) has(kind listKind) bool { return kind == listResources || e.opt.Tools }

// An interest is that of one session, or of one listen, in one list.
type interest struct {
	wanted bool
	due    bool // a notification waits for the port to take it
	seen   int  // the revision that it has been told of, or began with
}

// listChanged announces that something came or went, now or when the interval of that is over.
func (e *Engine) listChanged(kind listKind) {
	e.revision[kind]++
	if e.lists.Touch(e.now, &e.list[kind], coalesce.Pace{Interval: e.opt.ListInterval}) {
		e.announceList(kind)
	}
}

// spare has the ports that see none of what is about to come or go, at some URIs, take the change for one that they were
// told of. "" is what every port sees. listChanged follows.
func (e *Engine) spare(kind listKind, at ...string) {
	if e.restricted == 0 {
		return
	}
	for _, p := range e.order {
		hidden := 0
		for hidden < len(at) && p.hides(at[hidden]) {
			hidden++
		}
		if hidden < len(at) {
			continue
		}
		e.skip(&p.lists[kind], kind)
		for _, l := range p.listens {
			e.skip(&l.lists[kind], kind)
		}
	}
}

// skip passes over the next change, unless one before it is still to be told.
func (e *Engine) skip(i *interest, kind listKind) {
	if i.seen == e.revision[kind] {
		i.seen++
	}
}

// announceList tells every session that wants to know, a legacy one by having been initialized, a listen by its
// filter, and that was there before the change: who came later has listed what is there.
func (e *Engine) announceList(kind listKind) {
	tell := func(p *port, l *listen, i *interest) {
		if !i.wanted || i.seen == e.revision[kind] {
			return
		}
		i.seen = e.revision[kind]
		if i.due = !p.hears(); !i.due {
			e.sendListChanged(p, l, kind)
		}
	}
	if !e.has(kind) {
		return
	}
	for _, p := range e.order {
		tell(p, nil, &p.lists[kind])
		for _, l := range p.listens {
			tell(p, l, &l.lists[kind])
		}
	}
}

// flushLists sends what waited for a port to take it.
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
