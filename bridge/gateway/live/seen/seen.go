// Package seen records the versions that one agent has seen: URI, text and revision. So a gateway can tell what has
// changed since, and whether the agent's version is old.
//
// A Record belongs to one agent, and ends with it. It is bounded by its Limits: the texts that were given longest ago
// go first, then the URIs. It is plain data: it reads no page and no clock. Only Version and Unsettled are safe for
// concurrent use.
package seen

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
)

// Limits bound a Record.
type Limits struct {
	URIs  int // default 256
	Bytes int // of texts, default 8 MiB
}

const (
	// maxVersions is how many versions of one URI are kept: an agent, or a subagent that shares its connection, may
	// still have an earlier one in its context.
	maxVersions = 4
	// maxIssued is how many of the revisions that the agent was given are known.
	maxIssued = 1024
)

// A Version is the state of a URI that the agent was given.
type Version struct {
	// Revision is the gateway's, as the agent was told it. It grows with each change of any resource.
	Revision int64
	// Current is the last revision that is known to have the same contents.
	Current int64
	// Part is the name of the part that the agent was given; "" for all.
	Part string
	// Text is the whole text as the page wrote it. It is "", and Gone is set, if it is not kept.
	Text string
	Gone bool
	// Hash is that of the contents, text or not.
	Hash [32]byte
	// Epoch and Count are the page's own revision at the time of the read: of the document, and of its changes. Epoch
	// is "" if they are unknown.
	Epoch string
	Count int64
	// Recalled means that the version comes from a snapshot: Epoch and Count may be made up.
	Recalled bool

	given uint64
}

// A Record is all that one agent has seen. Make one with New.
type Record struct {
	limit   Limits
	entries map[string]*entry
	issued  map[int64]bool
	order   []int64 // of issued
	bytes   int
	clock   uint64 // counts the versions that were given
	// version counts the changes of Settled's and Revisions' results. unsettled is set if Settle may change them.
	version   atomic.Uint64
	unsettled atomic.Bool
}

type entry struct {
	versions  []Version // in the order in which they were given
	given     uint64
	mentioned int64
	// unsettled is set if a version was given since Settle. settled is the version before that, if there was one.
	unsettled bool
	settled   *Version
}

// New returns an empty record.
func New(l Limits) *Record {
	if l.URIs <= 0 {
		l.URIs = 256
	}
	if l.Bytes <= 0 {
		l.Bytes = 8 << 20
	}
	r := &Record{limit: l}
	r.Clear()
	return r
}

// Clear forgets all: the agent's model has lost it.
func (r *Record) Clear() {
	r.entries, r.issued, r.order, r.bytes = map[string]*entry{}, map[int64]bool{}, nil, 0
	r.version.Add(1)
}

// Give notes that the agent was given a version of a URI. It returns the URI that this pushes out of the record, or "".
func (r *Record) Give(uri string, v Version) (forgotten string) {
	r.clock++
	v.given, v.Current = r.clock, v.Revision
	if v.Gone {
		v.Text = ""
	}
	e := r.entries[uri]
	if e == nil {
		if len(r.entries) == r.limit.URIs {
			forgotten = r.oldest()
			r.Forget(forgotten)
		}
		e = &entry{}
		r.entries[uri] = e
	}
	e.given = r.clock
	r.unsettle(e, &v)
	for i := len(e.versions) - 1; i >= 0; i-- {
		old := &e.versions[i]
		if old.Revision != v.Revision {
			continue
		}
		if old.Part == "" && old.Hash == v.Hash {
			v.Part = "" // the whole includes its parts
		}
		if old.Part == "" && old.Hash == v.Hash || old.Part == v.Part {
			r.drop(e, i)
		}
	}
	if len(e.versions) == maxVersions {
		r.drop(e, 0)
	}
	e.versions = append(e.versions, v)
	r.bytes += len(v.Text)
	r.Issue(v.Revision)
	r.trim()
	return forgotten
}

// unsettle notes that an agent is being given a version. The same version again changes nothing.
func (r *Record) unsettle(e *entry, v *Version) {
	if n := len(e.versions); n > 0 {
		last := e.versions[n-1]
		if last.Revision == v.Revision && last.Current == v.Current && last.Part == v.Part && last.Hash == v.Hash {
			return
		}
		if !e.unsettled {
			last.Text, last.Gone = "", true
			e.settled = &last
		}
	}
	e.unsettled = true
	r.unsettled.Store(true)
	r.version.Add(1)
}

// Settle notes that the agent has received all that it was given.
func (r *Record) Settle() {
	r.unsettled.Store(false)
	for _, e := range r.entries {
		if e.unsettled = false; e.settled != nil {
			e.settled = nil
			r.version.Add(1)
		}
	}
}

// Settled calls yield for each URI with the version that the agent certainly has: the last one before Settle, or else
// the one since. The latest comes first.
func (r *Record) Settled(yield func(uri string, v Version) bool) {
	order := slices.SortedFunc(maps.Keys(r.entries), func(a, b string) int {
		return cmp.Compare(r.entries[b].given, r.entries[a].given)
	})
	for _, uri := range order {
		e := r.entries[uri]
		v := e.versions[len(e.versions)-1]
		if e.settled != nil {
			v = *e.settled
		}
		if !yield(uri, v) {
			return
		}
	}
}

// Version changes whenever a result of Settled or Revisions changes. It may be called at any time, and so may
// Unsettled, which reports whether Settle may change them.
func (r *Record) Version() uint64 { return r.version.Load() }

func (r *Record) Unsettled() bool { return r.unsettled.Load() }

// Revisions are the issued ones, in that order.
func (r *Record) Revisions() []int64 { return r.order }

func (r *Record) drop(e *entry, i int) {
	r.bytes -= len(e.versions[i].Text)
	e.versions = append(e.versions[:i], e.versions[i+1:]...)
}

// oldest is the URI that was given longest ago.
func (r *Record) oldest() (uri string) {
	for u, e := range r.entries {
		if uri == "" || e.given < r.entries[uri].given {
			uri = u
		}
	}
	return uri
}

// trim drops texts until the rest fits, those that were given longest ago first.
func (r *Record) trim() {
	for r.bytes > r.limit.Bytes {
		var old *Version
		for _, e := range r.entries {
			for i := range e.versions {
				if v := &e.versions[i]; v.Text != "" && (old == nil || v.given < old.given) {
					old = v
				}
			}
		}
		r.bytes -= len(old.Text)
		old.Text, old.Gone = "", true
	}
}

// Issue notes that the agent was given a revision, of any resource.
func (r *Record) Issue(revision int64) {
	if r.issued[revision] {
		return
	}
	if len(r.order) == maxIssued {
		delete(r.issued, r.order[0])
		r.order = r.order[1:]
	}
	r.version.Add(1)
	r.issued[revision] = true
	r.order = append(r.order, revision)
}

// Issued reports whether the agent was given a revision, among the last 1024.
func (r *Record) Issued(revision int64) bool { return r.issued[revision] }

// Last returns the version of a URI that the agent was given last.
func (r *Record) Last(uri string) (v Version, ok bool) {
	if e := r.entries[uri]; e != nil {
		return e.versions[len(e.versions)-1], true
	}
	return v, false
}

// Since returns a version of a URI, or of a part of it, which shows that the agent has seen all changes up to a
// revision. ok is false if it was never given that revision, or if the version is forgotten.
func (r *Record) Since(uri string, revision int64, part string) (v Version, ok bool) {
	e := r.entries[uri]
	if e == nil || !r.issued[revision] {
		return v, false
	}
	for _, old := range e.versions {
		if old.Revision <= revision && (!ok || old.Revision >= v.Revision) && (old.Part == "" || old.Part == part) {
			v, ok = old, true
		}
	}
	return v, ok
}

// At returns the version of a URI that has exactly that revision.
func (r *Record) At(uri string, revision int64) (v Version, ok bool) {
	if e := r.entries[uri]; e != nil {
		for _, old := range e.versions {
			if old.Revision == revision {
				v, ok = old, true
			}
		}
	}
	return v, ok
}

// Renew notes that the agent's last version of a URI is current, although the page's revision is now's. The agent keeps
// its text.
func (r *Record) Renew(uri string, now Version) {
	if e := r.entries[uri]; e != nil {
		v := &e.versions[len(e.versions)-1]
		v.Current, v.Epoch, v.Count, v.Hash, v.Recalled = now.Revision, now.Epoch, now.Count, now.Hash, now.Recalled
		r.version.Add(1)
	}
}

// Mention notes that the agent was told of a change of a URI, without its contents.
func (r *Record) Mention(uri string, revision int64) {
	if e := r.entries[uri]; e != nil {
		e.mentioned = revision
	}
}

// Mentioned reports whether the agent was told of a change since it was given the URI last.
func (r *Record) Mentioned(uri string) bool {
	e := r.entries[uri]
	return e != nil && e.mentioned > e.versions[len(e.versions)-1].Current
}

// Known returns the last revision of a URI that the agent was given or told of.
func (r *Record) Known(uri string) (revision int64, ok bool) {
	if e := r.entries[uri]; e != nil {
		return max(e.versions[len(e.versions)-1].Current, e.mentioned), true
	}
	return 0, false
}

// Forget forgets a URI.
func (r *Record) Forget(uri string) {
	if e := r.entries[uri]; e != nil {
		for _, v := range e.versions {
			r.bytes -= len(v.Text)
		}
		delete(r.entries, uri)
		r.version.Add(1)
	}
}

// URIs calls yield for each URI, in no order.
func (r *Record) URIs(yield func(string) bool) {
	for uri := range r.entries {
		if !yield(uri) {
			return
		}
	}
}

// Len is the number of URIs; Bytes is the length of their texts.
func (r *Record) Len() int { return len(r.entries) }

func (r *Record) Bytes() int { return r.bytes }
