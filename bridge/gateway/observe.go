package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// An observer sees snapshots of the gateway's state, and each message that passes.

// A Way is a direction of messages.
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
	Agent int    // if the message is an agent's
	Page  string // the URL, if the message is a page's
	Text  []byte // must not be changed
}

// Tap calls f with each message from now on, until Tap(nil). f may be called from any goroutine and
// with locks held: it must not block and must not call the Gateway.
func (g *Gateway) Tap(f func(Event)) { g.tapped.Store(&f) }

func (g *Gateway) tap(e Event) {
	p := &g.passed[slices.Index(ways[:], e.Way)]
	p.messages.Add(1)
	p.bytes.Add(int64(len(e.Text)))
	if f := g.tapped.Load(); f != nil && *f != nil {
		e.Time = time.Now()
		(*f)(e)
	}
}

// ways are all directions, in the order of a round trip.
var ways = [4]Way{FromAgent, ToPage, FromPage, ToAgent}

// passed counts the messages of one way.
type passed struct{ messages, bytes atomic.Int64 }

type counts struct {
	reads, toolCalls, updates int
	latency                   Latency
}

// latencyBounds are the upper bounds of a Latency's buckets in seconds: a page in the same browser
// answers within one or two milliseconds, and ReadTimeout is 30 s.
var latencyBounds = [...]float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
	30}

// A Latency is a histogram of reads, from the agent's request to its answer or its end.
type Latency struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds"` // total
	buckets [len(latencyBounds)]uint64
}

func (l *Latency) observe(d time.Duration) {
	l.Count++
	l.Seconds += d.Seconds()
	if i := slices.IndexFunc(latencyBounds[:],
		func(bound float64) bool { return d.Seconds() <= bound }); i >= 0 {
		l.buckets[i]++
	}
}

// Buckets are the cumulative counts of reads by upper bound in seconds.
func (l Latency) Buckets() map[float64]uint64 {
	all, sum := map[float64]uint64{}, uint64(0)
	for i, n := range l.buckets {
		sum += n
		all[latencyBounds[i]] = sum
	}
	return all
}

// A Snapshot is the state of a gateway. Its JSON is the inspector's feed. Long texts of pages are
// cut.
type Snapshot struct {
	Pages     []PageState     `json:"pages"`
	Resources []ResourceState `json:"resources"`
	Agents    []AgentState    `json:"agents"`
	// one for each name by which agents can call a page's tool
	Tools   []ToolState  `json:"tools"`
	Watched []WatchState `json:"watched"`
	Closed  bool         `json:"-"` // Close has been called
	Counts  `json:"stats"`
}

// Counts are the numbers of a Snapshot.
type Counts struct {
	Stats    bridge.Stats `json:"engine"`
	Unlisted int          `json:"unlisted"` // pages' tools for which the list has no place
	// Since New: reads and tool calls by agents, and changes that pages reported.
	Reads     int           `json:"reads"`
	ToolCalls int           `json:"toolCalls"`
	Updates   int           `json:"updates"`
	Latency   Latency       `json:"latency"`
	Passed    []PassedState `json:"passed"`
	// Ended counts ended links with pages, by reason. Descriptors are the bytes of all pages'
	// descriptors.
	Ended       map[string]int `json:"ended"`
	Descriptors int            `json:"descriptors"`
}

// A PassedState counts the messages of one way since New.
type PassedState struct {
	Way      Way   `json:"way"`
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

// A WatchState is a URI that agents watch, whether or not a page offers it now.
type WatchState struct {
	URI     string `json:"uri"`
	Updates int    `json:"updates"` // changes that pages have reported since the watch began
}

// A PageState is an attached page.
type PageState struct {
	PageInfo
	// PageInfo.Tab, by which the extension knows its tabs
	Key       string `json:"key"`
	Number    int    `json:"tab"`               // the tab's number
	Focused   bool   `json:"focused,omitempty"` // its tab was focused last
	Absent    bool   `json:"absent,omitempty"`  // it is being reloaded
	Resources int    `json:"resources"`
	Tools     int    `json:"tools"`
	// Reports are the last sentences on the page's console: what is served otherwise, or not at
	// all.
	Reports []string `json:"reports,omitempty"`
}

// maxShown bounds PageState.Reports.
const maxShown = 20

func (p *Page) reports() (last []string) {
	all := p.said
	if p.link != nil {
		all = p.link.peer.Reports()
	}
	for _, sentence := range all[max(0, len(all)-maxShown):] {
		last = append(last, Shorten(sentence, maxWords))
	}
	return last
}

// A ResourceState is a resource or template as agents see it.
type ResourceState struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Template    bool   `json:"template,omitempty"`
	Tab         int    `json:"tab"`
	Origin      string `json:"origin"`
}

// A ToolState is a page's tool under one of the names that agents can call.
type ToolState struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Tab         int    `json:"tab"`
}

// An AgentState is a connected agent, with the number of pages that it may see.
type AgentState struct {
	ID        int    `json:"id"`
	Transport string `json:"transport"`
	Name      string `json:"name"` // as the agent names itself
	Pages     int    `json:"pages"`
}

// maxWords bounds a title and similar texts, in bytes.
const maxWords = 300

// Agents is the number of open sessions of agents.
func (g *Gateway) Agents() int {
	defer g.lock()()
	return len(g.agents)
}

// Snapshot returns the current state, each list in a stable order.
func (g *Gateway) Snapshot() Snapshot {
	defer g.lock()()
	s := Snapshot{Pages: []PageState{}, Resources: []ResourceState{}, Agents: []AgentState{},
		Tools:   []ToolState{},
		Watched: []WatchState{}, Closed: g.closed,
		Counts: Counts{Stats: g.engine.Stats(), Reads: g.counts.reads,
			ToolCalls: g.counts.toolCalls, Updates: g.counts.updates, Latency: g.counts.latency,
			Ended: maps.Clone(g.refusals), Descriptors: g.heldAll.bytes}}
	for i, way := range ways {
		s.Passed = append(s.Passed,
			PassedState{way, g.passed[i].messages.Load(), g.passed[i].bytes.Load()})
	}
	for uri, updates := range g.books.URIs {
		s.Watched = append(s.Watched, WatchState{uri, updates})
	}
	slices.SortFunc(s.Watched, func(a, b WatchState) int { return strings.Compare(a.URI, b.URI) })
	s.Stats.Watched = len(s.Watched)
	for p := range g.pages {
		info, key := p.PageInfo, p.Tab
		if w := p.wayBy("extension"); w != nil {
			key = w.info.Tab
		}
		info.URL, info.Title = Shorten(info.URL, maxWords), Shorten(info.Title, maxWords)
		s.Pages = append(s.Pages, PageState{PageInfo: info, Key: Shorten(key, maxWords),
			Number: p.InTab.Number, Absent: p.Life().Left(), Resources: len(p.Offers),
			Tools:   len(p.published),
			Focused: g.catalog.LastFocused(p.InTab), Reports: p.reports()})
	}
	slices.SortFunc(s.Pages, func(a, b PageState) int {
		return cmp.Or(a.Number-b.Number, strings.Compare(a.Frame, b.Frame))
	})
	for _, key := range slices.Sorted(g.catalog.Keys()) {
		r := g.catalog.Entry(key)
		if r.Resource.Unlisted {
			continue
		}
		s.Resources = append(s.Resources, ResourceState{
			URI: key, Name: Shorten(r.Resource.Name, maxWords),
			Title:       Shorten(r.Resource.Title, maxWords),
			Description: Shorten(r.Resource.Description, maxWords),
			MIMEType:    Shorten(r.Resource.MIMEType, maxWords),
			Template:    strings.Contains(key, "{"), Tab: r.Page.InTab.Number,
			Origin: r.Page.Origin,
		})
	}
	for _, a := range g.agents {
		seen := 0
		for p := range g.pages {
			if a.pass.Permits(p.Owner()) {
				seen++
			}
		}
		s.Agents = append(s.Agents, AgentState{int(a.id), a.transport, a.name, seen})
	}
	slices.SortFunc(s.Agents, func(a, b AgentState) int { return a.ID - b.ID })
	for _, name := range slices.Sorted(maps.Keys(g.tools.routes)) {
		o := g.tools.routes[name]
		s.Tools = append(s.Tools,
			ToolState{name, Shorten(o.tool.Description, maxWords), o.page.InTab.Number})
	}
	for _, n := range g.tools.unlisted {
		s.Unlisted += n
	}
	return s
}

// agentName is the name and title in clientInfo: that of initialize, or of the _meta of any request
// of the modern era. The name has at most 100 characters.
func agentName(message []byte) (name, title string) {
	// Most messages have no name and are not parsed twice. A large one is not parsed for a name
	// while the lock is held.
	if len(message) > 64<<10 || !bytes.Contains(message, []byte("lientInfo")) {
		return "", ""
	}
	type info struct{ Name, Title string }
	var m struct {
		Params struct {
			ClientInfo info
			Meta       struct {
				ClientInfo info `json:"io.modelcontextprotocol/clientInfo"`
			} `json:"_meta"`
		}
	}
	if json.Unmarshal(message, &m) != nil {
		return "", ""
	}
	who := cmp.Or(m.Params.ClientInfo, m.Params.Meta.ClientInfo)
	runes := []rune(who.Name)
	return string(runes[:min(len(runes), 100)]), who.Title
}
