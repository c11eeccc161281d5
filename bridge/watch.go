package bridge

// Watch has WatchHost.Changed called for each change of a URI, paced as subscribers' updates are, until Unwatch. It
// fails for a URI that nothing answers for, and above Limits.Subscriptions. Watching a URI twice is watching it once.
func (e *Engine) Watch(now Time, uri string) error {
	e.enter(now)
	defer e.drain()
	if w := e.watches[uri]; w != nil && w.host {
		return nil
	}
	if _, _, err := e.registry.Resolve(uri); err != nil {
		return failure(refused(false, uri, err).Message)
	}
	if e.hostWatches >= e.opt.Limits.Subscriptions {
		return failure(e.tooManySubscriptions(uri).Message)
	}
	e.watchOf(uri).host = true
	e.hostWatches++
	return nil
}

// Unwatch ends Watch. A URI that is not watched is left alone.
func (e *Engine) Unwatch(now Time, uri string) {
	e.enter(now)
	defer e.drain()
	if w := e.watches[uri]; w != nil && w.host {
		w.host = false
		e.hostWatches--
		e.unwatched(w)
	}
}
