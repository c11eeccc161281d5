//go:build !js

package gateway

import (
	"maps"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// What an observer may see: a snapshot of what there is, and each message on its way.

// A Way says from where to where a message goes.
type Way string

const (
	FromAgent Way = "agent>"
	ToAgent   Way = ">agent"
	FromPage  Way = "page>"
	ToPage    Way = ">page"
)

// An Event is a message that passes.
type Event struct {
	Time  time.Time
	Way   Way
	Agent int    // of an agent's message
	Page  string // the URL, of a page's message
	Text  []byte // must not be changed
}

// Tap calls f with each message that passes, from then on; nil ends that. f may be called from any goroutine, and with locks held: it
// must not block and must not call the Gateway.
func (g *Gateway) Tap(f func(Event)) {
	if f == nil {
		g.tapped.Store(nil)
		return
	}
	g.tapped.Store(&f)
}

func (g *Gateway) tap(e Event) {
	if f := g.tapped.Load(); f != nil {
		e.Time = time.Now()
		(*f)(e)
	}
}

type counts struct{ reads, toolCalls, updates int }

// A Snapshot is what a gateway holds.
type Snapshot struct {
	Pages     []PageState
	Resources []ResourceState
	Agents    []AgentState
	Tools     []string
	Stats     bridge.Stats
	// Since New: reads and tool calls that agents asked for, changes that pages told.
	Reads, ToolCalls, Updates int
}

// A PageState is an attached page.
type PageState struct {
	PageInfo
	Number    int  // of the tab
	Focused   bool // its tab is the one that was focused last
	Absent    bool // it is being reloaded
	Resources int
	Tools     int
}

// A ResourceState is a resource or template as agents see it.
type ResourceState struct {
	URI, Name, Title, Description, MIMEType string
	Template                                bool
	Tab                                     int
	Origin                                  string
	Watched                                 bool
}

// An AgentState is a connected agent.
type AgentState struct {
	ID   int
	Road string
}

// Snapshot says what there is now, each list in a stable order.
func (g *Gateway) Snapshot() Snapshot {
	g.mu.Lock()
	defer g.unlock()
	s := Snapshot{Stats: g.engine.Stats(), Reads: g.counts.reads, ToolCalls: g.counts.toolCalls, Updates: g.counts.updates}
	for p := range g.catalog.pages {
		s.Pages = append(s.Pages, PageState{
			PageInfo: p.PageInfo, Number: p.tab.number, Absent: p.absent, Resources: len(p.offers), Tools: len(p.published),
			Focused: g.catalog.focuses > 0 && p.tab.focused == g.catalog.focuses,
		})
	}
	slices.SortFunc(s.Pages, func(a, b PageState) int {
		if a.Number != b.Number {
			return a.Number - b.Number
		}
		return truth(a.Frame > b.Frame) - truth(a.Frame < b.Frame)
	})
	for _, key := range slices.Sorted(maps.Keys(g.catalog.routes)) {
		r := g.catalog.routes[key]
		if r.shown.Unlisted {
			continue
		}
		in := g.interest[key]
		s.Resources = append(s.Resources, ResourceState{
			URI: key, Name: r.shown.Name, Title: r.shown.Title, Description: r.shown.Description, MIMEType: r.shown.MIMEType,
			Template: r.shown.URI != "" && slices.Contains([]byte(key), '{'), Tab: r.tab(), Origin: r.page.Origin, Watched: in != nil && in.watched,
		})
	}
	for _, a := range g.agents {
		s.Agents = append(s.Agents, AgentState{int(a.id), a.road})
	}
	slices.SortFunc(s.Agents, func(a, b AgentState) int { return a.ID - b.ID })
	for name := range g.tools.routes {
		s.Tools = append(s.Tools, name)
	}
	slices.Sort(s.Tools)
	return s
}

func (g *Gateway) logOpen(a *Agent) {
	g.log.Info("agent connected", "agent", int(a.id), "road", a.road)
}
