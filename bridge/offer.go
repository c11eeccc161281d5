package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/resource"
)

// Register offers a resource. It returns a *resource.Error if the resource is wrong, foreign, a duplicate or one too
// many. Existing subscriptions to URIs of the resource get an update.
func (e *Engine) Register(now Time, r Resource) error {
	e.enter(now)
	defer e.drain()
	entry, err := e.registry.Add(r)
	if err != nil {
		return err
	}
	e.offered(entry)
	if entry.Wide {
		var found []*watch // collected first, since rebinding changes the list
		for _, w := range e.wide[nil] {
			if entry.Answers(w.uri) {
				found = append(found, w)
			}
		}
		for _, w := range found {
			e.rebind(w)
		}
	}
	if entry.Schema != nil && !entry.Template() { // it takes precedence over the templates
		for _, p := range e.order {
			for _, s := range p.subs {
				if w := s.watch; w.entry != nil && w.entry.Template() && entry.Answers(w.uri) {
					e.rebind(w)
				}
			}
		}
	}
	if w := e.watches[entry.URI]; w != nil && w.entry != entry {
		e.rebind(w)
	}
	return nil
}

// offered announces a resource that has come or gone, if the list shows it.
func (e *Engine) offered(entry *resource.Entry) {
	if !entry.Unlisted {
		if restricts {
			e.markSeenWhereHidden(listResources, func(p *port) bool { return p.hides(entry.URI) })
		}
		e.listChanged(listResources)
	}
}

// Replace changes the description of the resource registered under r.URI, and reports whether there is one. Its URI and
// schema stay, and so do reads and subscriptions; it announces no change of its contents. The list changes if it shows
// the resource differently.
func (e *Engine) Replace(now Time, r Resource) bool {
	e.enter(now)
	defer e.drain()
	ok, listed := e.registry.Replace(r)
	if listed {
		if restricts {
			e.markSeenWhereHidden(listResources, func(p *port) bool { return p.hides(r.URI) })
		}
		e.listChanged(listResources)
	}
	return ok
}

// Find returns the registered URI or template that answers for uri.
func (e *Engine) Find(uri string) (key string, ok bool) {
	entry := e.registry.Find(uri)
	if entry == nil {
		return "", false
	}
	return entry.URI, true
}

// rebind looks up the entry of a watched URI again, and announces a change if it is another entry.
func (e *Engine) rebind(w *watch) {
	before := w.entry
	e.unbind(w)
	e.bind(w)
	if w.entry == nil {
		e.updates.Remove(&w.item) // without a resource there is no change
	} else if w.entry != before {
		e.changed(w)
	}
}

// Unregister withdraws the resource registered under uri, a URI or a template, and reports whether there was one. Its
// reads under way fail as not found. Subscriptions stay: when the URI comes back, its subscribers are notified.
func (e *Engine) Unregister(now Time, uri string) bool {
	e.enter(now)
	defer e.drain()
	entry := e.registry.Remove(uri)
	if entry == nil {
		return false
	}
	e.offered(entry)
	for c := e.reads.first; c != nil; c = c.next { // by age, so the order is deterministic
		if c.entry == entry {
			e.vanish(c)
		}
	}
	orphans := slices.Clone(e.wide[entry])
	if w := e.watches[uri]; w != nil && !entry.Wide {
		orphans = append(orphans, w)
	}
	for _, w := range orphans {
		e.updates.Remove(&w.item) // the change of the list includes it
		e.rebind(w)
	}
	return true
}

// vanish ends a read whose resource has gone.
func (e *Engine) vanish(c *call) {
	for len(c.waits) > 0 {
		w := c.waits[0]
		e.fail(w.port, w.id, notFound(w.modern, c.uri))
		e.leave(w)
	}
}

// Touch reports that uri reads differently now: a registered URI, or one under a template or a resource with
// parameters. A touch of a template, or of a resource that takes parameters, counts for every URI under it. Its cost
// does not depend on the number of resources, and is next to nothing without subscriptions.
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
