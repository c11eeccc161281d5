// Package seen records the versions that one agent has seen: URI, text and revision. So a gateway
// can show the changes since then, and knows whether the agent's version is old.
//
// A Record belongs to one agent, and ends with it. Its Limits bound it: the texts that were given
// longest ago go first, then the URIs. It reads no page and no clock. It is not safe for concurrent
// use.
package seen

// Limits bound a Record.
type Limits struct {
	URIs  int // default 256
	Bytes int // of texts, default 8 MiB
}

const (
	// maxVersions bounds the versions of one URI. Several are kept because an agent, or a subagent
	// that shares its connection, may still have an earlier one in its context.
	maxVersions = 4
	// maxIssued bounds the revisions that the agent was given and can name.
	maxIssued = 1024
)

// A Version is a state of a URI that the agent was given.
type Version struct {
	// Revision is the gateway's, as the agent got it. It grows with each change of any resource.
	Revision int64
	// Current is the last revision that is known to have the same contents.
	Current int64
	// Part is the name of the part that the agent was given; "" for all.
	Part string
	// Text is the whole text as the page wrote it. If it is not kept, it is "" and Gone is set.
	Text string
	Gone bool
	// Hash is the hash of the contents, also of images.
	Hash [32]byte
	// Epoch and Count are the page's own revision at the read: its document, and the document's
	// count of changes. Epoch is "" if they are unknown.
	Epoch string
	Count int64

	given uint64
}

// A Record holds the versions that one agent has seen. Make one with New.
type Record struct {
	limit   Limits
	entries map[string]*entry
	issued  map[int64]bool
	order   []int64 // the keys of issued, the oldest first
	bytes   int
	clock   uint64 // the number of calls of Give
}

type entry struct {
	versions  []Version // in the order in which they were given
	given     uint64
	mentioned int64
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

// Clear empties the record, since the agent's model has lost its context.
func (r *Record) Clear() {
	r.entries, r.issued, r.order, r.bytes = map[string]*entry{}, map[int64]bool{}, nil, 0
}

// Give notes that the agent was given a version of a URI. It returns the URI that it drops to make
// room, or "".
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

func (r *Record) drop(e *entry, i int) {
	r.bytes -= len(e.versions[i].Text)
	e.versions = append(e.versions[:i], e.versions[i+1:]...)
}

// oldest returns the URI that was given longest ago.
func (r *Record) oldest() (uri string) {
	for u, e := range r.entries {
		if uri == "" || e.given < r.entries[uri].given {
			uri = u
		}
	}
	return uri
}

// trim drops the texts that were given longest ago until the rest fits.
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

// Since returns the latest version of a URI, whole or with that part, that is not newer than a
// revision. ok is false if the agent was not given that revision, or if the version is forgotten.
func (r *Record) Since(uri string, revision int64, part string) (v Version, ok bool) {
	e := r.entries[uri]
	if e == nil || !r.issued[revision] {
		return v, false
	}
	for _, old := range e.versions {
		if old.Revision <= revision && (!ok || old.Revision >= v.Revision) &&
			(old.Part == "" || old.Part == part) {
			v, ok = old, true
		}
	}
	return v, ok
}

// At returns the version of a URI with exactly that revision.
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

// Renew notes that the agent's last version of a URI, with its text, is still current at now's
// revision.
func (r *Record) Renew(uri string, now Version) {
	if e := r.entries[uri]; e != nil {
		v := &e.versions[len(e.versions)-1]
		v.Current, v.Epoch, v.Count, v.Hash = now.Revision, now.Epoch, now.Count, now.Hash
	}
}

// Mention notes that the agent was notified of a change of a URI, without its contents.
func (r *Record) Mention(uri string, revision int64) {
	if e := r.entries[uri]; e != nil {
		e.mentioned = revision
	}
}

// Mentioned reports whether the agent was notified of a change since its last version of the URI.
func (r *Record) Mentioned(uri string) bool {
	e := r.entries[uri]
	return e != nil && e.mentioned > e.versions[len(e.versions)-1].Current
}

// Known returns the last revision of a URI that the agent was given or notified of.
func (r *Record) Known(uri string) (revision int64, ok bool) {
	if e := r.entries[uri]; e != nil {
		return max(e.versions[len(e.versions)-1].Current, e.mentioned), true
	}
	return 0, false
}

// Forget removes a URI and its versions.
func (r *Record) Forget(uri string) {
	if e := r.entries[uri]; e != nil {
		for _, v := range e.versions {
			r.bytes -= len(v.Text)
		}
		delete(r.entries, uri)
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

// Len returns the number of URIs.
func (r *Record) Len() int { return len(r.entries) }

// Bytes returns the length of all texts.
func (r *Record) Bytes() int { return r.bytes }
