package follow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// News is a URI with its current revision. The agent has an older state of it.
type News struct {
	URI      string
	Revision int64
}

// News lists the URIs that have changed since the agent read them and were not mentioned yet: those
// of an origin come first, and later changes come before earlier ones.
func (m *Memory) News(origin string) (list []News) {
	for uri := range m.URIs {
		if m.Old(uri) && !m.Mentioned(uri) {
			list = append(list, News{uri, m.of.Revision(uri)})
		}
	}
	elsewhere := func(n News) int {
		if weborigin.Of(n.URI) == origin {
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

// A Telling is a text for an agent that has not requested it.
type Telling struct {
	// before the list, and after a list that is too long: %d is the number of the others
	Head, More string
	Chars      int // the maximum length
	List       []News
	Found      map[string]*live.Look // the resources that are shown with contents
	// URIs that had changed since the agent read them, when it called
	Older map[string]bool
}

// beforeThisCall marks a change that came before the call of a page's tool, so that the agent had
// not seen it.
const beforeThisCall = "before this call"

// Tell returns the text of a telling, or "" if nothing has changed. It notes that the agent has
// seen its contents.
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
		} else if text = live.Fitting(live.Change{URI: n.URI, Revision: n.Revision, When: when},
			room-1); text != "" {
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

// MaxFollowed bounds the URIs that hooks report to an agent. The user's choice comes first, then
// the URIs that the agent has read, then the listed ones, of which each site has a share.
const MaxFollowed = 512

// NewsAtPrompt lists the changes that the agent does not know of, or all that pages offer, the
// latest first. It then tracks all URIs that the next prompts report.
func (m *Memory) NewsAtPrompt(chosen, listed []string, all bool) (list []News) {
	uris := m.promptURIs(chosen, listed)
	changed := map[string]bool{}
	var untracked []string
	for _, uri := range uris {
		told, known := m.toldOf(uri)
		changed[uri] = known && m.of.Revision(uri) > told
		if c := m.of.count(uri); c != nil && c.asked {
			c.used = m.of.source.Now()
		} else {
			untracked = append(untracked, uri)
		}
	}
	m.of.Track(untracked, func(string, string) {}) // no hook waits for a page
	for _, uri := range uris {
		if m.of.count(uri) == nil {
			continue // no page offers it
		}
		told, _ := m.toldOf(uri)
		if _, held := m.told[uri]; !held {
			m.of.retain(uri)
		}
		// Track gives a resource that was not tracked a new revision, without a known change.
		revision := m.of.Revision(uri)
		if m.told[uri] = revision; changed[uri] {
			m.told[uri] = told
		}
		if changed[uri] || all {
			list = append(list, News{uri, revision})
		}
	}
	slices.SortFunc(list, later)
	return list
}

// promptURIs lists the URIs that prompts report to the agent. A URI that was in the list stays in
// it while its site has room, also while no page offers it. The others are released.
//
// Why does each site have a share? In alphabetical order a page of aaa.example with 600 resources
// had all places, and the hook told of no change of the page that the user worked with.
func (m *Memory) promptURIs(chosen, listed []string) (uris []string) {
	in := map[string]bool{}
	add := func(list []string) {
		for _, uri := range list {
			if !in[uri] && len(uris) < MaxFollowed {
				in[uri] = true
				uris = append(uris, uri)
			}
		}
	}
	add(chosen)
	add(slices.Collect(m.URIs))
	var held, fresh []string
	for _, uri := range listed {
		if _, told := m.told[uri]; in[uri] {
			continue
		} else if told {
			held = append(held, uri)
		} else {
			fresh = append(fresh, uri)
		}
	}
	add(quota.Shares(append(held, fresh...), MaxFollowed-len(uris), weborigin.Of))
	add(slices.Collect(maps.Keys(m.told)))
	for uri := range m.told {
		if !in[uri] {
			delete(m.told, uri)
			m.of.release(uri)
		}
	}
	return uris
}
