package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A snapshot is what the next gateway has to know of a session if this one dies: what the agent has seen, without the
// texts, and what all agents know of tabs and tools by name. It is kept by a process that does not look into it, and
// comes back as input that may be anything. So nothing in it is believed that could have a stale call run: by the page's
// revisions alone it is decided whether to remind the agent, and calls go by the hash of what was read.

const (
	snapshotVersion = 1
	// MaxSnapshotBytes is how long a snapshot may be. Each of its three lists, of what was read, of tabs and of tools'
	// names, has partBytes: what was read longest ago, and what is of tabs that are gone, is left out first.
	MaxSnapshotBytes = 256 << 10
	partBytes        = 72 << 10
	// maxIssued is how many revisions are in it, the last ones, of 17 bytes each.
	maxIssued = 512
	// maxTab bounds the numbers of tabs that are believed.
	maxTab = 1 << 40
)

// A session is what a snapshot has. Of the members of an agent, the names are short: there may be 1,000 of each.
type session struct {
	Version int          `json:"v"`
	Agent   sessionAgent `json:"agent"`
	Shared  sessionTabs  `json:"shared"`
}

type sessionAgent struct {
	Tag    string        `json:"tag"`
	Issued []int64       `json:"issued"`
	Seen   []sessionSeen `json:"seen"` // what was given last comes first
	// Told are URIs without contents: a revision of which hooks have told the agent. Only a conversation's record has it.
	Told []sessionSeen `json:"told,omitempty"`
}

type sessionSeen struct {
	URI      string `json:"u"`
	Part     string `json:"p,omitempty"`
	Revision int64  `json:"r"`
	Current  int64  `json:"n"`
	Hash     []byte `json:"h,omitempty"`
	Epoch    string `json:"e,omitempty"`
	Count    int64  `json:"c,omitempty"`
}

type sessionTabs struct {
	Tabs []sessionTab `json:"tabs"`
	// Last is the greatest number that a tab was ever given, Focused when a tab was focused last, in ms since 1970; 0 if
	// nobody said.
	Last    int           `json:"last"`
	Focused int64         `json:"focused,omitempty"`
	Names   []sessionName `json:"names"`
}

type sessionTab struct {
	Key    string `json:"k"`
	Number int    `json:"n"`
	Rank   int    `json:"r,omitempty"` // tab.focused
}

type sessionName struct {
	Origin string `json:"o"`
	Tool   string `json:"t"`
	Name   string `json:"n"`
}

// Snapshot is what the next gateway has to know of the agent's session if this one dies: AgentOptions.Snapshot. It is at
// most MaxSnapshotBytes, and nil for an agent that is not the same one at its next call. That of an agent that has gone
// stays as it was then.
//
// It describes the session as it is when the message that Read returned last has reached the agent, and not before. So
// the goroutine that calls Read compares SnapshotVersion with that of the last snapshot it sent, and where it differs
// sends the snapshot and then the message. The other end puts it in force when the message behind it is there as a
// whole. A snapshot between two messages, because pages have changed, is in force at once; that goroutine takes it too.
// What the agent waits for, or has not read, is not taken for seen where it has seen something older of it.
//
// Agents that had sessions are to connect before the pages do: a tab that comes before all snapshots that know it may
// get another number, and a tab that none of them knows gets one that is greater than all theirs.
func (a *Agent) Snapshot() []byte {
	defer a.g.lock()()
	return a.snapshot()
}

// snapshot is called with the gateway's lock held.
func (a *Agent) snapshot() []byte {
	if a.memory == nil {
		return a.last
	}
	return fmt.Appendf(nil, `{"v":%d,"agent":%s,"shared":%s}`, snapshotVersion, a.agentPart(nil), a.g.shared())
}

func (a *Agent) agentPart(told []sessionSeen) []byte {
	if a.record != nil {
		a.settle()
	} else {
		a.memory.Settle() // a conversation alone: nothing is on its way to it
	}
	issued := a.memory.Revisions()
	var list []sessionSeen
	for uri, v := range a.memory.Settled {
		list = append(list, sessionSeen{uri, v.Part, v.Revision, v.Current, v.Hash[:], v.Epoch, v.Count})
	}
	return fmt.Appendf(nil, `{"tag":%q,"issued":%s,"seen":%s,"told":%s}`, a.memory.Tag,
		array(issued[max(0, len(issued)-maxIssued):]), array(list), array(told))
}

// SnapshotVersion is another number whenever Snapshot gives something else. It takes no lock, unless what the agent was
// given last may have reached it since.
func (a *Agent) SnapshotVersion() uint64 {
	if a.record == nil {
		return 0
	}
	if a.record.Unsettled() {
		a.g.locked(a.settle)()
	}
	return a.record.Version() + a.g.catalog.version.Load()
}

// settle notes that the agent has all that it was given, if it waits for nothing more.
func (a *Agent) settle() {
	if a.record.Unsettled() && a.settled() {
		a.record.Settle()
	}
}

// array is a list as JSON text, with as many of its entries, from the beginning, as partBytes have room for. One that is
// too long alone is left out.
func array[T any](list []T) []byte {
	all := []byte("[")
	for _, one := range list {
		entry, err := json.Marshal(one)
		if err != nil || len(all)+len(entry)+len(",]") > partBytes {
			continue
		}
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, entry...)
	}
	return append(all, ']')
}

// shared is what the snapshots of all agents have.
func (g *Gateway) shared() []byte {
	c := &g.catalog
	if version := c.version.Load(); c.snapshot == nil || c.made != version {
		focused := int64(0)
		if c.focusedAt != math.MinInt64 {
			ago := time.Duration(g.now()-c.focusedAt) * time.Millisecond
			focused = g.opt.wallClock().Add(-ago).UnixMilli()
		}
		var names []sessionName
		g.tools.names.Given(func(origin, tool, name string) { names = append(names, sessionName{origin, tool, name}) })
		slices.SortFunc(names, func(a, b sessionName) int {
			return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Tool, b.Tool))
		})
		c.snapshot = fmt.Appendf(nil, `{"tabs":%s,"last":%d,"focused":%d,"names":%s}`, array(c.ranked()), c.lastTab,
			focused, array(names))
		c.made = version
	}
	return c.snapshot
}

// ranked are all tabs that have a number: those that are here, or are awaited, in the order in which they own a URI that
// all have, then those that are gone, the last one first.
func (c *catalog) ranked() (tabs []sessionTab) {
	arrived := map[string]int{}
	for key, number := range c.numbers {
		rank, awaited := c.ranks[key]
		if t := c.tabs[key]; t != nil {
			rank = t.focused
			for p := range t.pages {
				arrived[key] = max(arrived[key], p.order)
			}
		}
		tabs = append(tabs, sessionTab{key, number, rank})
		if awaited && c.awaits {
			arrived[key] = max(arrived[key], 1)
		}
	}
	slices.SortFunc(tabs, func(a, b sessionTab) int {
		return cmp.Or(-cmp.Compare(truth(arrived[a.Key] > 0), truth(arrived[b.Key] > 0)),
			-cmp.Compare(a.Rank, b.Rank), -cmp.Compare(arrived[a.Key], arrived[b.Key]), -cmp.Compare(a.Number, b.Number))
	})
	focused := 0
	for _, t := range tabs {
		focused += truth(t.Rank > 0)
	}
	for i := range tabs {
		switch t := &tabs[i]; {
		case arrived[t.Key] == 0:
			t.Rank = 0
		case t.Rank > 0:
			t.Rank = focused - i
		default:
			t.Rank = focused - i - 1
		}
	}
	return tabs
}

// tagShape is what a reminder's tag is like.
var tagShape = regexp.MustCompile(`^\[pagewire-[a-z2-7]{6}\]$`)

// restore takes over a snapshot for an agent that has just connected. What makes no sense is left out, and a text that
// is no snapshot as a whole.
func (a *Agent) restore(snapshot []byte) error {
	var s session
	if err := s.decode(snapshot); err != nil {
		return err
	}
	a.g.restoreTabs(&s.Shared)
	if a.memory == nil {
		return errors.New("the agent has no session that goes on")
	}
	a.recall(&s.Agent)
	return nil
}

func (s *session) decode(text []byte) error {
	if len(text) > MaxSnapshotBytes {
		return fmt.Errorf("it has %d bytes, and the limit is %d", len(text), MaxSnapshotBytes)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	if s.Version != snapshotVersion {
		return fmt.Errorf("it is of version %d, and not of %d", s.Version, snapshotVersion)
	}
	return nil
}

// recall gives an agent what it has seen before.
func (a *Agent) recall(s *sessionAgent) {
	m := a.memory
	if tagShape.MatchString(s.Tag) {
		m.Tag = s.Tag
	}
	// The clock that revisions are times of may have been set back by a day at most.
	latest := a.g.opt.wallClock().Add(24 * time.Hour).UnixMicro()
	for _, revision := range s.Issued {
		if 0 < revision && revision <= latest {
			m.Issue(revision)
		}
	}
	var found []string
	slices.Reverse(s.Seen)
	for i, one := range slices.Concat(s.Seen, s.Told) {
		v := seen.Version{Part: one.Part, Epoch: one.Epoch, Count: one.Count,
			Revision: min(max(one.Revision, 1), latest), Current: min(max(one.Current, 1), latest)}
		switch told := i >= len(s.Seen); {
		case one.URI == "" || a.sees != nil && !a.sees(one.URI) || !told && len(one.Hash) != len(v.Hash):
			continue
		case told:
			m.RecallTold(one.URI, v)
		default:
			copy(v.Hash[:], one.Hash)
			m.Recall(one.URI, v)
		}
		if p, _ := a.g.lookup(one.URI); p != nil && !p.absent {
			found = append(found, one.URI)
		}
	}
	m.Settle()
	a.g.tools.revisions.Track(found, func(map[string]string) {})
}

// restoreTabs takes over what a snapshot has of tabs and names. What is known here already stays: of snapshots of one
// gateway none contradicts another, but an agent that has heard nothing since has an older one. So the order of tabs is
// that of the snapshot with the latest focus.
func (g *Gateway) restoreTabs(s *sessionTabs) {
	c := &g.catalog
	taken := map[int]bool{}
	for _, number := range c.numbers {
		taken[number] = true
	}
	orders := !c.ordered || s.Focused > c.orderedAt
	var came []*tab
	for _, t := range s.Tabs {
		if t.Key == "" || t.Number <= 0 || t.Number > maxTab || len(c.numbers) >= maxNumbers {
			continue
		}
		if c.numbers[t.Key] == 0 && !taken[t.Number] {
			c.numbers[t.Key], taken[t.Number] = t.Number, true
			c.lastTab = max(c.lastTab, t.Number)
		}
		if !orders || t.Rank == 0 || t.Rank >= firstFocus || t.Rank <= -firstFocus || c.numbers[t.Key] == 0 {
			continue
		}
		c.ordered, c.orderedAt, c.awaits = true, s.Focused, true
		if here := c.tabs[t.Key]; here == nil {
			c.ranks[t.Key] = t.Rank
		} else if here.focused < firstFocus {
			here.focused = t.Rank
			came = append(came, here)
		}
	}
	if 0 < s.Last && s.Last <= maxTab {
		c.lastTab = max(c.lastTab, s.Last)
	}
	if s.Focused > 0 {
		ago := max(0, g.opt.wallClock().UnixMilli()-s.Focused)
		c.focusedAt = max(c.focusedAt, g.now()-bridge.Time(ago))
	}
	for _, n := range s.Names {
		g.tools.names.Recall(n.Origin, n.Tool, n.Name)
	}
	c.version.Add(1)
	for _, t := range came {
		g.reown(t)
	}
}

// tabsTimeout is how long tabs have to come back to a gateway that takes another's place. They take some 100 ms.
const tabsTimeout = time.Second

// AwaitTabs returns when the tabs are back that the snapshots of connected agents have, within a second: till then they
// would be shown a list without them. One that has not come by then may have been closed: nobody waits for it again, here
// or at the next gateway.
func (g *Gateway) AwaitTabs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tabsTimeout)
	defer cancel()
	g.await(ctx, func() bool {
		awaits := g.catalog.awaits && len(g.catalog.ranks) > 0
		if awaits && ctx.Err() == context.DeadlineExceeded {
			g.catalog.awaits = false
			g.catalog.version.Add(1)
		}
		return !awaits
	})
}

// await returns when a condition holds, or ctx has ended. It calls met with the lock held, also at the end.
func (g *Gateway) await(ctx context.Context, met func() bool) {
	for {
		over := false
		if g.locked(func() { over = met() || ctx.Err() != nil })(); over {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}
