package follow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
)

// News is a URI of which the agent has an older state, with its current revision.
type News struct {
	URI      string
	Revision int64
}

// News lists the changes since the agent looked that were not mentioned yet: those of an origin first, then the latest
// first.
func (m *Memory) News(origin string) (list []News) {
	for uri := range m.URIs {
		if m.Old(uri) && !m.Mentioned(uri) {
			list = append(list, News{uri, m.of.Revision(uri)})
		}
	}
	elsewhere := func(n News) int {
		if live.OriginOf(n.URI) == origin {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b News) int {
		return cmp.Or(elsewhere(a)-elsewhere(b), later(a, b))
	})
	return list
}

// later sorts the latest change first.
func later(a, b News) int {
	return cmp.Or(cmp.Compare(b.Revision, a.Revision), strings.Compare(a.URI, b.URI))
}

// A Telling is a text that an agent gets unasked.
type Telling struct {
	Head, More string // before the list, and, with the number of the others, behind a list that is too long
	Chars      int    // the maximum length
	List       []News
	Found      map[string]*live.Look // the resources whose contents are told
	Older      map[string]bool       // URIs of which the agent had an older state when it called
}

// beforeThisCall marks a change before the call of a page's tool: the agent did not know of it.
const beforeThisCall = "before this call"

// Tell makes the text of a telling, "" if it has nothing to tell. The agent has then seen the contents in it.
func (m *Memory) Tell(t Telling) string {
	head := m.Tag + " " + t.Head
	room := t.Chars - len(head) - len(t.More)
	var lines []string
	left := 0
	for _, n := range t.List {
		v, read := m.Last(n.URI)
		v.Gone = v.Gone || !read
		l, when, text := t.Found[n.URI], "", ""
		if t.Older[n.URI] {
			when = beforeThisCall
		}
		if l != nil && live.Same(v, l) {
			m.Renew(n.URI, l.Version(v.Part))
			continue
		}
		if l != nil {
			text = live.ChangeOf(v, l, when, room-1)
		}
		if text != "" {
			m.Given(l, v.Part)
		} else if text = live.Fitting(live.Change{URI: n.URI, Revision: n.Revision, When: when}, room-1); text != "" {
			m.Told(n.URI, n.Revision)
		} else {
			left++
			continue
		}
		room -= len(text) + 1
		lines = append(lines, text)
	}
	if len(lines)+left == 0 {
		return ""
	}
	for _, text := range lines {
		head += "\n" + text
	}
	if left > 0 {
		head += fmt.Sprintf(t.More, left)
	}
	return head
}

// MaxFollowed bounds the URIs of which hooks tell an agent: chosen by the user, then read, then listed.
const MaxFollowed = 512

// NewsAtPrompt lists the changes that the agent was not told of, the latest first. From then on it tracks all URIs of
// which the agent is told: at most MaxFollowed of chosen ones, read ones, and listed ones.
func (m *Memory) NewsAtPrompt(chosen, listed []string) (list []News) {
	uris := m.promptURIs(chosen, listed)
	changed := map[string]bool{}
	var untracked []string
	for _, uri := range uris {
		told, known := m.toldOf(uri)
		changed[uri] = known && m.of.Revision(uri) > told
		if t := m.of.tracked[uri]; t != nil && t.asked {
			t.used = m.of.source.Now()
		} else {
			untracked = append(untracked, uri)
		}
	}
	m.of.Track(untracked, func(map[string]string) {}) // no hook waits for a page
	for _, uri := range uris {
		if m.of.tracked[uri] == nil {
			continue // no page offers it
		}
		told, _ := m.toldOf(uri)
		if _, held := m.told[uri]; !held {
			m.of.retain(uri)
		}
		// A resource that is tracked anew has a new revision, without a known change.
		revision := m.of.Revision(uri)
		if m.told[uri] = revision; changed[uri] {
			m.told[uri] = told
			list = append(list, News{uri, revision})
		}
	}
	slices.SortFunc(list, later)
	return list
}

// promptURIs lists the URIs of which the agent is told at its prompts. A URI in the list stays in it while there is
// room, also while no page offers it. The others are no longer tracked.
func (m *Memory) promptURIs(chosen, all []string) (uris []string) {
	in := map[string]bool{}
	add := func(list []string) {
		for _, uri := range list {
			if !in[uri] && len(uris) < MaxFollowed {
				in[uri] = true
				uris = append(uris, uri)
			}
		}
	}
	var listed, fresh []string
	for _, uri := range all {
		if _, held := m.told[uri]; held {
			listed = append(listed, uri)
		} else {
			fresh = append(fresh, uri)
		}
	}
	add(chosen)
	add(slices.Collect(m.URIs))
	add(listed)
	add(fresh)
	add(slices.Collect(maps.Keys(m.told)))
	for uri := range m.told {
		if !in[uri] {
			delete(m.told, uri)
			m.of.release(uri)
		}
	}
	return uris
}
