// Package follow knows which of an agent's versions are old. Revisions count the changes of resources that agents were
// given or wait for. A Memory is the state of one agent between its calls, and lists the agent's news.
//
// The package gets changes from the gateway through a Source, and never reads a page itself. It has no lock, no
// goroutine and no timer: all of it, and its callbacks, run under the gateway's lock.
package follow

import (
	"time"
)

// A Source reports changes. Revisions call its methods, which may call back before they return.
type Source interface {
	// Watch makes the source call Revisions.Updated for each change of a resource, until Unwatch. It calls then once,
	// now or later: with "" when no change is missed any more, or with the reason why changes are not reported.
	Watch(uri string, then func(why string))
	Unwatch(uri string)
	// Changed is called after each counted change.
	Changed()
	Now() time.Time
}

// Revisions count the changes of resources that agents read by tools. So wait_for_page_update misses no change between
// a read and the next wait, and reminders know which versions are old. Make them with New.
//
// A revision is the time of the change in microseconds since 1970, or one more than the last. So revisions also grow
// across restarts of the gateway, and one revision covers all resources. In milliseconds, a revision of an earlier
// gateway could equal one of this gateway, and was answered with "unchanged". Revisions stay below 2^53, above which
// JavaScript rounds.
type Revisions struct {
	source  Source
	clock   int64
	tracked map[string]*tracked
}

type tracked struct {
	revision int64
	used     time.Time
	asked    bool // Source.Watch has been called
	ready    bool // the page reports every change
	then     []func(why string)
	holders  int // agents that were given it, and Hold's callers
	held     int // Hold's callers
	// hash is the hash of the contents at this revision, if known is set.
	hash  [32]byte
	known bool
}

const (
	// trackFor is how long a resource is tracked after a tool's last request for it, if no agent holds it.
	trackFor = 15 * time.Minute
	// followFor is how long after the last request the next change ends the watch. Agents' versions are known to be old
	// then, so a page that changes all day need not report it all day.
	followFor = time.Minute
)

// New returns Revisions that begin at the current time.
func New(s Source) *Revisions {
	return &Revisions{source: s, clock: s.Now().UnixMicro(), tracked: map[string]*tracked{}}
}

// Clock returns the last revision.
func (v *Revisions) Clock() int64 { return v.clock }

// Advance returns a new revision, greater than all before. It belongs to no resource unless the caller gives it one.
func (v *Revisions) Advance() int64 {
	v.clock = max(v.clock+1, v.source.Now().UnixMicro())
	return v.clock
}

// Revision returns the revision of a tracked resource's last change, and 0 for any other resource.
func (v *Revisions) Revision(uri string) int64 {
	if t := v.tracked[uri]; t != nil {
		return t.revision
	}
	return 0
}

// Found notes the hash of contents that were read, and revision, the URI's revision before the read. It returns the
// revision of these contents: a new one if earlier contents at that revision differ.
func (v *Revisions) Found(uri string, revision int64, hash [32]byte) int64 {
	t := v.tracked[uri]
	if t == nil || t.revision != revision {
		return revision
	}
	if t.known && t.hash != hash {
		v.change(t)
	}
	t.hash, t.known = hash, true
	return t.revision
}

func (v *Revisions) change(t *tracked) {
	t.revision, t.known = v.Advance(), false
	v.source.Changed()
}

// Len returns the number of tracked resources.
func (v *Revisions) Len() int { return len(v.tracked) }

// Clear forgets all resources. It is for the end of the source.
func (v *Revisions) Clear() { clear(v.tracked) }

// retain counts one more holder of a URI.
func (v *Revisions) retain(uri string) {
	if t := v.tracked[uri]; t != nil {
		t.holders++
	}
}

// Hold keeps a tracked resource tracked until release is called, even without requests for it.
func (v *Revisions) Hold(uri string) (release func()) {
	t := v.tracked[uri]
	if t == nil {
		return func() {}
	}
	t.held++
	v.retain(uri)
	return func() {
		t.held--
		v.release(uri)
	}
}

// release undoes retain. After the last holder has gone, the page is no longer watched.
func (v *Revisions) release(uri string) {
	t := v.tracked[uri]
	if t == nil {
		return
	}
	if t.holders--; t.holders > 0 || len(t.then) > 0 {
		return
	}
	v.untrack(uri, t)
}

func (v *Revisions) untrack(uri string, t *tracked) {
	delete(v.tracked, uri)
	if t.ready {
		v.source.Unwatch(uri)
	}
}

// Track counts changes of the uris from now on. Once each is watched or has failed, it calls then with the failures.
func (v *Revisions) Track(uris []string, then func(failed map[string]string)) {
	failed := map[string]string{}
	now := v.source.Now()
	v.expire(now)
	pending := 1
	arrived := func() {
		if pending--; pending == 0 {
			then(failed)
		}
	}
	for _, uri := range uris {
		t := v.tracked[uri]
		if t == nil {
			t = &tracked{}
			v.tracked[uri] = t
		}
		if t.used = now; t.ready {
			continue
		}
		pending++
		t.then = append(t.then, func(why string) {
			if why != "" {
				failed[uri] = why
			}
			arrived()
		})
		if !t.asked {
			// Versions that agents saw earlier get old.
			t.revision, t.known = v.Advance(), false
			t.asked = true
			v.source.Watch(uri, func(why string) { v.watched(uri, why) })
		}
	}
	arrived()
}

// expire stops tracking resources without recent requests.
func (v *Revisions) expire(now time.Time) {
	for uri, t := range v.tracked {
		if t.holders > 0 || t.asked && !t.ready || now.Sub(t.used) <= trackFor {
			continue
		}
		v.untrack(uri, t)
	}
}

// Updated counts a change that a page has reported. It ends the watch followFor after the last request.
func (v *Revisions) Updated(uri string) {
	t := v.tracked[uri]
	if t == nil {
		return
	}
	v.change(t)
	if t.ready && t.held == 0 && v.source.Now().Sub(t.used) > followFor {
		t.asked, t.ready = false, false
		v.source.Unwatch(uri)
	}
}

// watched handles the answer to Source.Watch.
func (v *Revisions) watched(uri, why string) {
	t := v.tracked[uri]
	if t == nil || !t.asked || t.ready {
		return
	}
	if t.ready = why == ""; !t.ready {
		t.asked = false
		if t.holders == 0 {
			delete(v.tracked, uri)
		}
	}
	then := t.then
	t.then = nil
	for _, f := range then {
		f(why)
	}
}
