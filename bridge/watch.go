package bridge

import "slices"

// Watch makes the engine call WatchHost.Changed for each change of a URI, at the pace of subscribers' updates, until
// Unwatch. It fails for a URI without a resource, and above Limits.Subscriptions. A second Watch of a URI does nothing.
func (e *Engine) Watch(now Time, uri string) error {
	e.enter(now)
	defer e.drain()
	if e.hostWatches[uri] {
		return nil
	}
	if _, _, err := e.registry.Resolve(uri); err != nil {
		return failure(refused(false, uri, err).Message)
	}
	if len(e.hostWatches) >= e.opt.Limits.Subscriptions {
		return failure(e.tooManySubscriptions(uri).Message)
	}
	if e.hostWatches == nil {
		e.hostWatches = map[string]bool{}
	}
	e.hostWatches[uri] = true
	e.watchOf(uri)
	return nil
}

// Unwatch ends Watch. It ignores a URI that is not watched.
func (e *Engine) Unwatch(now Time, uri string) {
	e.enter(now)
	defer e.drain()
	if e.hostWatches[uri] {
		delete(e.hostWatches, uri)
		e.unwatched(e.watches[uri])
	}
}

// IsWatched reports whether a port that sees a URI subscribes to it, or the host watches it.
func (e *Engine) IsWatched(uri string) bool {
	w := e.watches[uri]
	return w != nil && (e.hostWatches[uri] ||
		slices.ContainsFunc(w.subs, func(s *sub) bool { return !s.port.hides(uri) }))
}
