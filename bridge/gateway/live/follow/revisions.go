// Package follow knows which of an agent's versions are old. Revisions count the changes of resources that agents have
// been given or wait for. A Memory is the state of one agent between its calls. It lists the agent's news.
//
// It gets changes from the gateway through a Source, and never reads a page itself. It has no lock, no goroutine and no
// timer: all of it, and its callbacks, run under the gateway's lock.
package follow

import (
	"time"

	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Source reports changes. Methods of Revisions call its methods, which may call back at once.
type Source interface {
	// Watch has Revisions.Updated called for each change of a resource, until Unwatch. It calls then once, at once or
	// later: when no change is missed any more, or with the reason why changes are not reported.
	Watch(uri string, then func(why string))
	Unwatch(uri string)
	// Changed is called after each counted change.
	Changed()
	// State returns the page's own revision of a watched resource: its document, and the document's count at the last
	// change. epoch is "" if the page has not said.
	State(uri string) (epoch string, count int64)
	// Now is the time.
	Now() time.Time
}

// Revisions count the changes of resources that agents read by tools. So wait_for_page_update misses none between a
// read and the next wait, and reminders know which versions are old. Make them with New.
//
// A revision is the time of the change in microseconds since 1970, or one more than the last. So revisions also grow
// across restarts of the gateway, and one revision covers all resources. In milliseconds, a revision of an earlier
// gateway could equal one of this gateway, and was answered with "unchanged". It stays below 2^53, beyond which
// JavaScript rounds.
type Revisions struct {
	source  Source
	clock   int64
	tracked map[string]*tracked
	// recalled has versions that an earlier process gave to agents, until it is known whether they are current.
	recalled map[string]seen.Version
}

type tracked struct {
	revision int64
	used     time.Time
	asked    bool // Source.Watch has been called
	ready    bool // it is watched, and no change is missed
	then     []func(why string)
	holders  int // agents that have been given it, and Hold's callers
	held     int // Hold's callers
	// hash is that of the contents at this revision, if known.
	hash  [32]byte
	known bool
}

const (
	// trackFor is how long a resource is followed after a tool's last request for it, while no agent is known to have
	// it.
	trackFor = 15 * time.Minute
	// followFor is how long a resource is followed after a change without a request. By then agents' versions are known
	// to be old, and a page that changes all day need not report it all day.
	followFor = time.Minute
)

// New returns revisions that begin with the current time.
func New(s Source) *Revisions {
	return &Revisions{source: s, clock: s.Now().UnixMicro(), tracked: map[string]*tracked{},
		recalled: map[string]seen.Version{}}
}

// Clock is the last revision.
func (v *Revisions) Clock() int64 { return v.clock }

// Advance makes the next revision. It is unique: it belongs to a resource only if it is made for its change.
func (v *Revisions) Advance() int64 {
	v.clock = max(v.clock+1, v.source.Now().UnixMicro())
	return v.clock
}

// Revision is that of a tracked resource's last change; 0 for any other resource.
func (v *Revisions) Revision(uri string) int64 {
	if t := v.tracked[uri]; t != nil {
		return t.revision
	}
	return 0
}

// Found notes the contents of a URI whose revision was known before it was read. It returns the revision of these
// contents: a new one if earlier contents at that revision differ.
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

// change counts a change.
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

// Recalls reports whether to track a resource once a page offers it, because an earlier process gave it to agents.
func (v *Revisions) Recalls(uri string) bool {
	_, ok := v.recalled[uri]
	return ok
}

// Recalled calls yield for all such resources, in no order.
func (v *Revisions) Recalled(yield func(uri string) bool) {
	for uri := range v.recalled {
		if !yield(uri) {
			return
		}
	}
}

// retain counts an agent that has been given a URI.
func (v *Revisions) retain(uri string) {
	if t := v.tracked[uri]; t != nil {
		t.holders++
	}
}

// Hold tracks a tracked resource until release is called, also where nobody asks for it.
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

// release undoes retain. After the last agent the page is no longer asked for changes.
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
	delete(v.recalled, uri)
	if t.ready {
		v.source.Unwatch(uri)
	}
}

// Track counts changes of all the uris from now on, then calls then with the failures by URI.
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
				// Versions that agents saw before are older than this.
				t.revision, t.known = v.Advance(), false
			}
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

// recall tracks a URI for one more holder, who knows a version of it from an earlier process. It returns the revision
// that this version has here.
func (v *Revisions) recall(uri string, was *seen.Version) int64 {
	v.clock = max(v.clock, was.Revision, was.Current)
	t := v.tracked[uri]
	if t == nil {
		t = &tracked{}
		v.tracked[uri] = t
	}
	t.holders++
	switch {
	case t.ready && v.unchanged(uri, was):
		return t.revision
	case !t.asked && was.Current >= t.revision:
		t.revision = was.Current
		v.recalled[uri] = *was
	}
	return was.Current
}

// unchanged reports whether a watched resource is as it was in a version.
func (v *Revisions) unchanged(uri string, was *seen.Version) bool {
	epoch, count := v.source.State(uri)
	return epoch != "" && epoch == was.Epoch && count <= was.Count
}

// Updated counts a change that a page has reported.
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
	} else if was, ok := v.recalled[uri]; ok {
		delete(v.recalled, uri)
		if !v.unchanged(uri, &was) {
			v.change(t)
		}
	}
	then := t.then
	t.then = nil
	for _, f := range then {
		f(why)
	}
}
