//go:build !js

package follow

import (
	"crypto/rand"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Memory is what is kept of an agent from one of its calls to the next. End it, for what it has seen is followed
// until then.
type Memory struct {
	// Record is for reading: what changes it here, Given, Told, Drop and Empty, also holds what is followed.
	*seen.Record
	// Tag begins what we say of our own accord: a page cannot know it, and so not say it.
	Tag string
	// Refused counts the calls of a tool that were refused in a row, since what the agent has seen was old.
	Refused map[string]int
	// told has, by URI, the revision up to which it was told by hooks.
	told map[string]int64
	of   *Revisions
}

// NewMemory returns an agent's, which has seen nothing.
func (v *Revisions) NewMemory(limits seen.Limits) *Memory {
	return &Memory{Record: seen.New(limits), Tag: "[pagewire-" + strings.ToLower(rand.Text()[:6]) + "]",
		Refused: map[string]int{}, told: map[string]int64{}, of: v}
}

// Given notes that the agent is given a part of a URI, or with "" all of it. The URI may be tracked no more, since other
// agents have left meanwhile or its page cannot be watched: the agent has seen it all the same, and its stale calls are
// refused. It is reminded of changes from the next request on.
func (m *Memory) Given(l *live.Look, part string) {
	if m.of.tracked[l.URI] == nil {
		m.of.tracked[l.URI] = &tracked{revision: l.Revision, used: m.of.source.Now()}
	}
	_, had := m.Last(l.URI)
	if forgotten := m.Give(l.URI, l.Version(part)); forgotten != "" {
		m.of.letGo(forgotten)
	}
	if !had {
		m.of.hold(l.URI)
	}
}

// Recall takes what the agent was given of a URI by an earlier process, without its text. It is not trusted: whether the
// agent has what a page shows is decided by the hash alone, and by the page's revision no more than whether it is
// reminded.
func (m *Memory) Recall(uri string, was seen.Version) {
	if _, had := m.Last(uri); had {
		return
	}
	v := m.of
	v.clock = max(v.clock, was.Revision, was.Current)
	t := v.tracked[uri]
	if t == nil {
		t = &tracked{}
		v.tracked[uri] = t
	}
	t.holders++
	was.Recalled, was.Gone = true, true
	now := was
	now.Revision = was.Current
	switch {
	case t.ready && v.source.Unchanged(uri, was.Epoch, was.Count):
		now.Revision = t.revision
	case !t.asked && was.Current > t.revision:
		t.revision = was.Current
		v.recalled[uri] = was
	}
	if forgotten := m.Give(uri, was); forgotten != "" {
		v.letGo(forgotten)
	}
	m.Renew(uri, now)
}

// Drop ends what is kept of one URI.
func (m *Memory) Drop(uri string) {
	m.Forget(uri)
	m.of.letGo(uri)
}

// End lets go of all that the agent has seen and was told of. The Memory is of no use then.
func (m *Memory) End() {
	for uri := range m.URIs {
		m.of.letGo(uri)
	}
	for uri := range m.told {
		m.of.letGo(uri)
	}
}

// Empty empties the record of what the agent has seen. What it was told before is told no second time for that.
func (m *Memory) Empty() {
	for uri := range m.told {
		m.told[uri], _ = m.toldOf(uri)
	}
	for uri := range m.URIs {
		m.of.letGo(uri)
	}
	m.Clear()
	clear(m.Refused)
}

// toldOf is the revision of the last change of a URI that the agent knows of; false if it was never told of the URI.
func (m *Memory) toldOf(uri string) (revision int64, ok bool) {
	told, held := m.told[uri]
	known, read := m.Known(uri)
	return max(told, known), held || read
}

// Told notes that the agent was told that a URI has changed, without what it is now.
func (m *Memory) Told(uri string, revision int64) {
	m.Mention(uri, revision)
	if _, held := m.told[uri]; held {
		m.told[uri] = revision
	}
}

// Old reports whether what the agent has seen of a URI has changed since.
func (m *Memory) Old(uri string) bool {
	v, ok := m.Last(uri)
	return ok && m.of.Revision(uri) > v.Current
}

// ToldOf reports whether the agent was ever told of a URI, or has read it.
func (m *Memory) ToldOf(uri string) bool {
	_, ok := m.toldOf(uri)
	return ok
}
