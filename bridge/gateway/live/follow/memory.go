package follow

import (
	"crypto/rand"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Memory is the state of an agent between its calls. The owner must call End: until then the Memory follows what the
// agent has seen.
type Memory struct {
	// Record is only for reading. Given, Told, Drop and Empty change it, and also follow the URIs in it.
	*seen.Record
	// Tag begins the texts that the agent did not ask for. A page does not know it, and so cannot imitate them.
	Tag string
	// Refused counts a tool's calls in a row that were refused for old state.
	Refused map[string]int
	// told has, by URI, the last revision that hooks have told the agent.
	told map[string]int64
	of   *Revisions
}

// NewMemory returns the memory of an agent that has seen nothing.
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
		m.of.release(forgotten)
	}
	if !had {
		m.of.retain(l.URI)
	}
}

// Recall notes what an earlier process gave the agent of a URI, without its text. The page's revision in it is not
// trusted: it decides only about reminders. Whether the agent's version is current is decided by the hash alone.
func (m *Memory) Recall(uri string, was seen.Version) {
	if _, had := m.Last(uri); had {
		return
	}
	was.Recalled, was.Gone = true, true
	now := was
	now.Revision = m.of.recall(uri, &was)
	if forgotten := m.Give(uri, was); forgotten != "" {
		m.of.release(forgotten)
	}
	m.Renew(uri, now)
}

// RecallTold notes of what state of a URI an earlier process has told the agent, at the revision was.Current. Call it
// after Recall.
func (m *Memory) RecallTold(uri string, was seen.Version) {
	if _, held := m.told[uri]; !held && len(m.told) < MaxFollowed {
		m.told[uri] = m.of.recall(uri, &was)
	}
}

// AllTold calls yield for each URI of which hooks tell the agent, with what RecallTold takes. It leaves out a URI whose
// page does not say what it is like.
func (m *Memory) AllTold(yield func(uri string, was seen.Version) bool) {
	for uri := range m.told {
		was, pending := m.of.recalled[uri]
		if !pending {
			was = seen.Version{}
			was.Epoch, was.Count = m.of.source.State(uri)
		}
		told, _ := m.toldOf(uri)
		if was.Current = told; m.of.Revision(uri) > told {
			was.Epoch = "" // it has changed, and the agent is still to be told
		} else if was.Epoch == "" {
			continue
		}
		if !yield(uri, was) {
			return
		}
	}
}

// Awaits reports whether pages have not yet said if what Recall and RecallTold noted is current.
func (m *Memory) Awaits() bool {
	for uri := range m.of.recalled {
		if m.ToldOf(uri) {
			return true
		}
	}
	return false
}

// Drop forgets one URI.
func (m *Memory) Drop(uri string) {
	m.Forget(uri)
	m.of.release(uri)
}

// End forgets all that the agent has seen and was told of. The Memory cannot be used after it.
func (m *Memory) End() {
	for uri := range m.URIs {
		m.of.release(uri)
	}
	for uri := range m.told {
		m.of.release(uri)
	}
}

// Empty empties the record of what the agent has seen. The agent is not told a second time of earlier changes.
func (m *Memory) Empty() {
	for uri := range m.told {
		m.told[uri], _ = m.toldOf(uri)
	}
	for uri := range m.URIs {
		m.of.release(uri)
	}
	m.Clear()
	clear(m.Refused)
}

// toldOf is the last revision of a URI that the agent knows of; false if it was never told of the URI.
func (m *Memory) toldOf(uri string) (revision int64, ok bool) {
	told, held := m.told[uri]
	known, read := m.Known(uri)
	return max(told, known), held || read
}

// Told notes that the agent was told of a change of a URI, without its contents.
func (m *Memory) Told(uri string, revision int64) {
	m.Mention(uri, revision)
	if _, held := m.told[uri]; held {
		m.told[uri] = revision
	}
}

// Old reports whether a URI has changed since the agent has seen it.
func (m *Memory) Old(uri string) bool {
	v, ok := m.Last(uri)
	return ok && m.of.Revision(uri) > v.Current
}

// ToldOf reports whether the agent was ever told of a URI, or has read it.
func (m *Memory) ToldOf(uri string) bool {
	_, ok := m.toldOf(uri)
	return ok
}
