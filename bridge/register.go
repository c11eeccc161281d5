package bridge

import (
	"slices"

	"github.com/pagewire/pagewire/bridge/wire"
)

// Register offers a resource. It returns a *resource.Error if the resource is wrong, foreign, a
// duplicate or one too many. Existing subscriptions to URIs of the resource get an update.
//
// Why does registering a template not look up all watched URIs? 40 agents that each watched 1,000
// unregistered URIs made 500 templates take 326 seconds. Only the new template can match a URI that
// had no match, so it alone is tried.
func (e *Engine) Register(now Time, r Resource) error {
	e.enter(now)
	defer e.drain()
	entry, err := e.registry.Add(r)
	if err != nil {
		return err
	}
	if !entry.Unlisted {
		e.listDiffers(entry.URI)
	}
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

// Replace changes the description of the resource registered under r.URI, and reports whether there
// is one. Its URI and schema stay, and so do reads and subscriptions; it announces no change of its
// contents. The list changes if it shows the resource differently. before is whose the resource was
// until now: a port that does not see it any more is told of the change, too.
func (e *Engine) Replace(now Time, r Resource, before Owner) bool {
	e.enter(now)
	defer e.drain()
	ok, listed := e.registry.Replace(r)
	if listed {
		e.listDiffers(r.URI, before)
	}
	if ok {
		for _, w := range e.watchesOf(e.registry.Get(r.URI)) {
			if w.item.Dirty() {
				e.changed(w) // a shorter interval counts from now on
			}
		}
	}
	return ok
}

// Unregister withdraws the resource registered under uri, a URI or a template, and reports whether
// there was one. Its reads under way fail as not found. Subscriptions stay: when the URI comes
// back, its subscribers are notified.
func (e *Engine) Unregister(now Time, uri string) bool {
	e.enter(now)
	defer e.drain()
	entry := e.registry.Remove(uri)
	if entry == nil {
		return false
	}
	if !entry.Unlisted {
		e.listDiffers(entry.URI)
	}
	for c := e.reads.first; c != nil; c = c.next { // by age, so the order is deterministic
		if c.entry == entry {
			e.vanish(c)
		}
	}
	for _, w := range slices.Clone(e.watchesOf(entry)) { // since rebinding changes the list
		e.updates.Remove(&w.item) // the change of the list includes it
		e.rebind(w)
	}
	return true
}

// listDiffers announces that the list shows the resource or template that has a URI differently.
// before is whose that was, if it was listed before and may be another's now.
func (e *Engine) listDiffers(uri string, before ...Owner) {
	if restricts {
		e.markSeenWhereHidden(listResources, func(p *port) bool {
			return p.hides(uri) &&
				!slices.ContainsFunc(before, func(o Owner) bool { return !p.hidesOwner(o) })
		})
	}
	e.listChanged(listResources)
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

// Find returns the registered URI or template that answers for uri.
func (e *Engine) Find(uri string) (key string, ok bool) {
	entry := e.registry.Find(uri)
	if entry == nil {
		return "", false
	}
	return entry.URI, true
}

// Resolve returns the engine's request to its host for a read of a URI. The error is what agents
// are told: no resource answers for it, or it has wrong parameters.
func (e *Engine) Resolve(uri string) (Request, error) {
	entry, params, err := e.registry.Resolve(uri)
	if err != nil {
		return Request{}, failure(refused(false, uri, err).Message)
	}
	return requestOf(uri, entry, params), nil
}

// SetTools replaces the tools, and announces the list if it differs. It leaves out tools above
// Limits.Tools, and tools with an empty or doubled name, and then fails. It takes all others: if it
// refused the whole list, removed tools would stay. Above the limit, tools that were listed before
// take precedence.
func (e *Engine) SetTools(now Time, tools []Tool) error {
	e.enter(now)
	defer e.drain()
	var err error
	leftOut := 0
	// Inserted one by one: a page has few, and slices.SortFunc takes 5 KB of wasm.
	var sorted []Tool
	for _, before := range [...]bool{true, false} {
		for _, t := range tools {
			if named(e.tools, t.Name) != before {
				continue
			}
			switch {
			case t.Name == "" || named(sorted, t.Name):
				err = failure("bridge: the name of a tool is empty or doubled: " + t.Name)
			case len(sorted) == e.opt.Limits.Tools:
				leftOut++
			default:
				i := toolAfter(sorted, t.Name)
				sorted = append(sorted, Tool{})
				copy(sorted[i+1:], sorted[i:])
				sorted[i] = t
				if restricts {
					sorted[i].listed = t.owner()
				}
			}
		}
	}
	same := len(sorted) == len(e.tools)
	for i := 0; same && i < len(sorted); i++ {
		same = unchanged(&sorted[i], &e.tools[i])
	}
	if !same {
		if restricts {
			of := append(missing(e.tools, sorted), missing(sorted, e.tools)...)
			e.markSeenWhereHidden(listTools, func(p *port) bool {
				return !slices.ContainsFunc(of,
					func(t *Tool) bool { return !p.hidesToolOf(t, t.listed) })
			})
		}
		e.tools = sorted
		e.listChanged(listTools)
	}
	if leftOut > 0 {
		err = failure("bridge: too many tools: the limit is " + wire.Itoa(e.opt.Limits.Tools) +
			", and " + wire.Itoa(leftOut) + " are left out")
	}
	return err
}

// missing are the tools of list that from, which is ordered by name, does not have unchanged.
func missing(list, from []Tool) (tools []*Tool) {
	for i := range list {
		at := toolAfter(from, list[i].Name)
		if at == 0 || !unchanged(&list[i], &from[at-1]) {
			tools = append(tools, &list[i])
		}
	}
	return tools
}

func unchanged(a, b *Tool) bool {
	return a.Name == b.Name && string(a.JSON) == string(b.JSON) &&
		(!restricts || a.listed == b.listed)
}
