package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/coalesce"
)

// Touch reports that uri reads differently now: a registered URI, or one under a template or a
// resource with parameters. A touch of a template, or of a resource that takes parameters, counts
// for every URI under it. Its cost does not depend on the number of resources, and is next to
// nothing without subscriptions.
func (e *Engine) Touch(now Time, uri string) {
	e.enter(now)
	e.stats.Touches++
	entry := e.registry.Get(uri)
	e.sealReads(uri, entry)
	w := e.watches[uri]
	if w != nil && w.entry != nil {
		e.changed(w)
	}
	if entry != nil && entry.Wide {
		for _, other := range e.wide[entry] {
			if other != w {
				e.changed(other)
			}
		}
	} else if entry == nil && (w == nil || w.entry == nil) && e.registry.Find(uri) == nil {
		e.stats.UnknownTouches++
	}
	e.drain()
}

// Seal stops later readers of a URI from sharing its read under way: the resource may have changed
// since that read began. For a template, or a resource that takes parameters, it does so for every
// URI under it.
func (e *Engine) Seal(uri string) { e.sealReads(uri, e.registry.Get(uri)) }

// Notify sends one port an update of a URI under each of its subscriptions to it, without
// coalescing. Like any update it waits while the port is not writable or has used up its rate.
//
// Pagewire itself does not call it. It is for a SubscriptionHost with a subscription store of its
// own. Touch notifies all subscribers.
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

// Pace is the Pace of the updates of a URI, for a host that follows the URI beside its subscribers.
// ok is false for a URI without a resource.
func (e *Engine) Pace(uri string) (p coalesce.Pace, ok bool) {
	entry := e.registry.Find(uri)
	if entry == nil {
		return p, false
	}
	return e.paceOf(entry), true
}

// IsWatched reports whether a port that sees a URI subscribes to it, or has asked for that in a
// listen that has not begun.
func (e *Engine) IsWatched(uri string) bool {
	if w := e.watches[uri]; w != nil &&
		slices.ContainsFunc(w.subs, func(s *sub) bool { return !s.port.hides(uri) }) {
		return true
	}
	var last *opening // its calls follow each other, at most 1,024
	for c := e.reads.first; c != nil; c = c.next {
		if c.kind != callSubscribe || c.waits[0].opening == last {
			continue
		}
		last = c.waits[0].opening
		if last != nil && slices.Contains(last.uris, uri) && !last.listen.port.hides(uri) {
			return true
		}
	}
	return false
}
