//go:build !js

// Package follow knows which of the things that agents have been given are old by now. Revisions count the changes
// of resources that an agent has been given, or waits for. A Memory is what is kept of one agent from one call to
// the next. It says what is news to that agent.
//
// It asks the gateway for what it needs through a Source, and never reads a page itself. It has no lock, no goroutine
// and no timer: all of it, and what it calls, runs under the gateway's lock.
package follow

import (
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Source tells of changes. Its methods are called from within those of Revisions, and may call back at once.
type Source interface {
	// Watch asks to be told of a resource's changes: Revisions.Updated is called for each, until Unwatch. then is called
	// once, at once or later, when none is missed any more, or with why they are not told.
	Watch(uri string, then func(why string))
	Unwatch(uri string)
	// Changed is called after each change that was counted.
	Changed()
	// Unchanged reports whether a resource that is watched has not changed since its page had that revision.
	Unchanged(uri, epoch string, count int64) bool
	// Now is the time.
	Now() time.Time
}

// Revisions count the changes of what agents read by tools, so that wait_for_page_update misses none between a read and
// the next wait, and reminders know what is old. Make them with New.
//
// A revision is the time of the change in microseconds since 1970, or one more than the last: so it grows across
// restarts of the gateway too, and one number stands for all resources. In milliseconds, the number of a gateway before
// could be one of this gateway's, too, and was answered with "unchanged". It stays below 2^53, beyond which JavaScript
// rounds.
type Revisions struct {
	source  Source
	clock   int64
	tracked map[string]*tracked
	// recalled has what agents were given by an earlier process, until it is known whether that has changed since.
	recalled map[string]seen.Version
}

type tracked struct {
	revision int64
	used     time.Time
	asked    bool // it is watched, or about to be
	ready    bool // it is watched, and no change is missed
	then     []func(why string)
	holders  int // agents that have been given it
	// hash is that of what it read as at this revision, if known.
	hash  [32]byte
	known bool
}

const (
	// trackFor is how long a resource is followed after a tool asked for it last, while no agent is known to have it.
	trackFor = 15 * time.Minute
	// followFor is how long it is followed beyond a change, if nobody asks for it: that what agents have is old is
	// known then, and a page that changes all day need not say so all day.
	followFor = time.Minute
)

// New returns revisions of which the last is now.
func New(s Source) *Revisions {
	return &Revisions{source: s, clock: s.Now().UnixMicro(), tracked: map[string]*tracked{},
		recalled: map[string]seen.Version{}}
}

// Clock is the last revision of all.
func (v *Revisions) Clock() int64 { return v.clock }

// Advance makes the next revision. It is no other's: not a resource's, unless it is made for a change of that.
func (v *Revisions) Advance() int64 {
	v.clock = max(v.clock+1, v.source.Now().UnixMicro())
	return v.clock
}

// Revision is that of a tracked resource's last change; 0 for any other.
func (v *Revisions) Revision(uri string) int64 {
	if t := v.tracked[uri]; t != nil {
		return t.revision
	}
	return 0
}

// Found takes what a URI read as when its revision was that before it was asked for, and returns the revision of that:
// a new one where it had read differently.
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

// change counts one.
func (v *Revisions) change(t *tracked) {
	t.revision, t.known = v.Advance(), false
	v.source.Changed()
}

// Len is how many resources are tracked.
func (v *Revisions) Len() int { return len(v.tracked) }

// Clear forgets all, when the source has ended.
func (v *Revisions) Clear() {
	clear(v.tracked)
	clear(v.recalled)
}

// Recalls reports whether a resource that agents were given by an earlier process is to be tracked when a page has it.
func (v *Revisions) Recalls(uri string) bool {
	_, ok := v.recalled[uri]
	return ok
}

// Recalled calls yield for all of these, in no order.
func (v *Revisions) Recalled(yield func(uri string) bool) {
	for uri := range v.recalled {
		if !yield(uri) {
			return
		}
	}
}

// hold counts an agent that has been given a URI.
func (v *Revisions) hold(uri string) {
	if t := v.tracked[uri]; t != nil {
		t.holders++
	}
}

// Hold has a tracked resource followed until release is called.
func (v *Revisions) Hold(uri string) (release func()) {
	if v.tracked[uri] == nil {
		return func() {}
	}
	v.hold(uri)
	return func() { v.letGo(uri) }
}

// letGo is the end of hold. With the last agent the page is left alone.
func (v *Revisions) letGo(uri string) {
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
	delete(v.recalled, uri)
	if t.ready {
		v.source.Unwatch(uri)
	}
}

// Track sees to it that changes of all the uris are counted, then calls then, with what went wrong by URI.
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
			if !v.Recalls(uri) {
				// Whatever an agent saw before is older than that.
				t.revision, t.known = v.Advance(), false
			}
			t.asked = true
			v.source.Watch(uri, func(why string) { v.watched(uri, why) })
		}
	}
	arrived()
}

// expire ends what nobody has asked for any more.
func (v *Revisions) expire(now time.Time) {
	for uri, t := range v.tracked {
		if t.holders > 0 || t.asked && !t.ready || now.Sub(t.used) <= trackFor {
			continue
		}
		v.untrack(uri, t)
	}
}

// Updated counts a change that a page has told.
func (v *Revisions) Updated(uri string) {
	t := v.tracked[uri]
	if t == nil {
		return
	}
	v.change(t)
	if t.ready && v.source.Now().Sub(t.used) > followFor {
		t.asked, t.ready = false, false
		v.source.Unwatch(uri)
	}
}

// watched takes the answer to Source.Watch.
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
	} else if was, ok := v.recalled[uri]; ok {
		delete(v.recalled, uri)
		if !v.source.Unchanged(uri, was.Epoch, was.Count) {
			v.change(t)
		}
	}
	then := t.then
	t.then = nil
	for _, f := range then {
		f(why)
	}
}
