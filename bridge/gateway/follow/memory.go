package follow

import (
	"crypto/rand"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A Memory is the state of an agent between its calls. It tracks the URIs that the agent has seen,
// until End is called.
type Memory struct {
	// Record must only be read. Given, Told, Drop and Empty change it, and keep the tracking of
	// Books in step.
	*seen.Record
	// Tag begins the texts that the agent did not request. A page does not know it, and so cannot
	// imitate them.
	Tag string
	// Refused counts, by origin and tool, the consecutive calls that were refused because the agent
	// did not know the state.
	Refused map[string]int
	// Unread has the URIs that were dropped, and not given to the agent since: at most maxUnread.
	Unread map[string]bool
	// told has, by URI, the last revision that hooks have reported to the agent.
	told map[string]int64
	// conversation is the program's name for the conversation; "" until Begins gets one. Resumed is
	// set until a prompt of a session that comes from an earlier gateway.
	conversation string
	Resumed      bool
	of           *Books
}

// NewMemory returns the memory of an agent that has seen nothing.
func (b *Books) NewMemory(limits seen.Limits) *Memory {
	return &Memory{Record: seen.New(limits), Tag: "[pagewire-" + strings.ToLower(rand.Text()[:6]) +
		"]",
		Refused: map[string]int{}, Unread: map[string]bool{}, told: map[string]int64{}, of: b}
}

// Given notes that the agent is given a part of a URI; a part of "" is all of it. If the URI is no
// longer tracked, because other agents have left or its page cannot be watched, Given keeps its
// revision, so that stale calls are still refused. The agent is then reminded of changes from the
// next request on.
func (m *Memory) Given(l *live.Look, part string) {
	if m.of.count(l.URI) == nil {
		c := m.of.makeCount(l.URI)
		c.revision, c.used = l.Revision, m.of.source.Now()
	}
	_, had := m.Last(l.URI)
	if forgotten := m.Give(l.URI, l.Version(part)); forgotten != "" {
		m.of.release(forgotten)
	}
	if !had {
		m.of.retain(l.URI)
	}
	delete(m.Unread, l.URI)
}

const maxUnread = 256

// Drop notes that the agent was told that a URI cannot be read.
func (m *Memory) Drop(uri string) {
	if _, had := m.Last(uri); had {
		m.Forget(uri)
		m.of.release(uri)
	}
	if len(m.Unread) == maxUnread {
		clear(m.Unread)
	}
	m.Unread[uri] = true
}

// End stops tracking the agent's URIs. The Memory must not be used after it.
func (m *Memory) End() {
	for uri := range m.URIs {
		m.of.release(uri)
	}
	for uri := range m.told {
		m.of.release(uri)
	}
}

// Empty empties the record. Hooks do not report earlier changes to the agent a second time.
func (m *Memory) Empty() {
	for uri := range m.told {
		m.told[uri], _ = m.toldOf(uri)
	}
	for uri := range m.URIs {
		m.of.release(uri)
	}
	m.Clear()
	clear(m.Refused)
	clear(m.Unread)
}

// Begins reports, at a prompt of a conversation, whether nothing is known of it. Then what another
// conversation of the agent has seen does not count for it. forgets says that its model has lost
// its context.
func (m *Memory) Begins(conversation string, forgets bool) bool {
	begins := m.Resumed
	if conversation != "" && conversation != m.conversation {
		if begins = true; m.conversation != "" {
			m.Empty()
		}
		m.conversation = conversation
	}
	m.Resumed = m.Resumed && forgets
	return begins
}

// toldOf returns the last revision of a URI that the agent knows of. ok is false if it knows of
// none.
func (m *Memory) toldOf(uri string) (revision int64, ok bool) {
	told, held := m.told[uri]
	known, read := m.Known(uri)
	return max(told, known), held || read
}

// Told notes that the agent was notified of a change of a URI, without its contents.
func (m *Memory) Told(uri string, revision int64) {
	m.Mention(uri, revision)
	if _, held := m.told[uri]; held {
		m.told[uri] = revision
	}
}

// Old reports whether a URI has changed since the agent saw it.
func (m *Memory) Old(uri string) bool {
	v, ok := m.Last(uri)
	return ok && m.of.Revision(uri) > v.Current
}

// ToldOf reports whether hooks have reported a URI to the agent, or the agent has read it.
func (m *Memory) ToldOf(uri string) bool {
	_, ok := m.toldOf(uri)
	return ok
}
