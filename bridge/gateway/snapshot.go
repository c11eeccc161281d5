//go:build !js

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

// A snapshot lets the next gateway continue a session if this one dies. It has what the agent has seen, without the
// texts, and the names of tabs and tools that all agents know. A process keeps it without looking into it. It comes
// back as input that may be anything, so it must not have a stale call run: the page's revisions decide only about
// reminders, and a call is decided by the hash of what was read.

const (
	snapshotVersion = 1
	// MaxSnapshotBytes is the maximum length of a snapshot. Each of its three lists (contents, tabs, tools' names) has
	// partBytes. Contents read longest ago and tabs that are gone are left out first.
	MaxSnapshotBytes = 256 << 10
	partBytes        = 72 << 10
	// maxIssued is how many of the last revisions are in it, of 17 bytes each.
	maxIssued = 512
	// maxTab bounds the tabs' numbers that are accepted.
	maxTab = 1 << 40
)

// A session is a snapshot's JSON. The agent's members have short names, because each list may have 1,000 of them.
type session struct {
	Version int          `json:"v"`
	Agent   sessionAgent `json:"agent"`
	Shared  sessionTabs  `json:"shared"`
}

type sessionAgent struct {
	Tag    string        `json:"tag"`
	Issued []int64       `json:"issued"`
	Seen   []sessionSeen `json:"seen"` // the latest comes first
}

type sessionSeen struct {
	URI      string `json:"u"`
	Part     string `json:"p,omitempty"`
	Revision int64  `json:"r"`
	Current  int64  `json:"n"`
	Hash     []byte `json:"h"`
	Epoch    string `json:"e,omitempty"`
	Count    int64  `json:"c,omitempty"`
}

type sessionTabs struct {
	Tabs []sessionTab `json:"tabs"`
	// Last is the greatest number that a tab ever had. Focused is the time of the last focus, in ms since 1970; 0 if
	// unknown.
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
// It describes the session once the last message of Read has reached the agent, and not before. So the goroutine that
// calls Read compares SnapshotVersion with that of the last snapshot it sent. Where it differs, it sends the snapshot
// and then the message. The other end puts a snapshot in force when the message behind it has arrived as a whole, and
// keeps the earlier one until then. A snapshot between two messages, because pages have changed, is in force at once;
// the same goroutine takes it. Contents on their way to the agent do not count as seen where it has seen older ones.
//
// Agents with earlier sessions must connect before the pages do. A tab that comes before all snapshots that know it may
// get another number. A tab that none of them knows gets a number greater than all of theirs.
func (a *Agent) Snapshot() []byte {
	a.g.mu.Lock()
	defer a.g.mu.Release()
	if a.memory == nil {
		return a.last
	}
	return a.snapshot()
}

// snapshot is called with the gateway's lock held.
func (a *Agent) snapshot() []byte {
	if a.memory == nil {
		return nil
	}
	a.settle()
	issued := a.memory.Revisions()
	var list []sessionSeen
	for uri, v := range a.memory.Settled {
		list = append(list, sessionSeen{uri, v.Part, v.Revision, v.Current, v.Hash[:], v.Epoch, v.Count})
	}
	return fmt.Appendf(nil, `{"v":%d,"agent":{"tag":%q,"issued":%s,"seen":%s},"shared":%s}`, snapshotVersion,
		a.memory.Tag, array(issued[max(0, len(issued)-maxIssued):]), array(list), a.g.shared())
}

// SnapshotVersion differs whenever Snapshot gives something else. It takes the lock only if the agent may have received
// new contents since.
func (a *Agent) SnapshotVersion() uint64 {
	if a.record == nil {
		return 0
	}
	if a.record.Unsettled() {
		a.g.mu.Lock()
		a.settle()
		a.g.mu.Release()
	}
	return a.record.Version() + a.g.catalog.version.Load()
}

// settle notes that the agent has received all contents, if it waits for nothing more.
func (a *Agent) settle() {
	if a.record.Unsettled() && !a.g.engine.Waits(a.id) && a.out.Size() == 0 {
		a.record.Settle()
	}
}

// array is a list as JSON text, with as many of its first entries as partBytes have room for. An entry that is too long
// alone is left out.
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

// shared is the part that all agents' snapshots share.
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

// ranked are all tabs with a number. First come the tabs that are here or awaited, in the order in which they own a
// common URI; then those that are gone, the last one first.
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

// tagShape is the form of a reminder's tag.
var tagShape = regexp.MustCompile(`^\[pagewire-[a-z2-7]{6}\]$`)

// restore takes over a snapshot for an agent that has just connected. It leaves out invalid parts, and refuses a text
// that is no snapshot.
func (a *Agent) restore(snapshot []byte) error {
	if len(snapshot) > MaxSnapshotBytes {
		return fmt.Errorf("it has %d bytes, and the limit is %d", len(snapshot), MaxSnapshotBytes)
	}
	var s session
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return err
	}
	if s.Version != snapshotVersion {
		return fmt.Errorf("it is of version %d, and not of %d", s.Version, snapshotVersion)
	}
	a.g.restoreTabs(&s.Shared)
	m := a.memory
	if m == nil {
		return errors.New("the agent has no session that goes on")
	}
	if tagShape.MatchString(s.Agent.Tag) {
		m.Tag = s.Agent.Tag
	}
	// The clock of revisions may have been set back by a day at most.
	latest := a.g.opt.wallClock().Add(24 * time.Hour).UnixMicro()
	for _, revision := range s.Agent.Issued {
		if 0 < revision && revision <= latest {
			m.Issue(revision)
		}
	}
	var found []string
	for _, one := range slices.Backward(s.Agent.Seen) {
		v := seen.Version{Part: one.Part, Epoch: one.Epoch, Count: one.Count,
			Revision: min(max(one.Revision, 1), latest), Current: min(max(one.Current, 1), latest)}
		if one.URI == "" || len(one.Hash) != len(v.Hash) || a.sees != nil && !a.sees(one.URI) {
			continue
		}
		copy(v.Hash[:], one.Hash)
		m.Recall(one.URI, v)
		if p, _ := a.g.lookup(one.URI); p != nil && !p.absent {
			found = append(found, one.URI)
		}
	}
	m.Settle()
	a.g.tools.revisions.Track(found, func(map[string]string) {})
	return nil
}

// restoreTabs takes over a snapshot's tabs and names. Known ones stay: snapshots of one gateway do not contradict each
// other, but an agent without recent messages has an older one. So the snapshot with the latest focus decides the order
// of tabs.
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

// tabsTimeout is how long tabs have to come back after a change of gateway. They take some 100 ms.
const tabsTimeout = time.Second

// AwaitTabs returns when the tabs of the connected agents' snapshots are back, after a second at most. Otherwise agents
// would list resources without them. A tab that does not come by then may have been closed: neither this gateway nor
// the next one waits for it again.
func (g *Gateway) AwaitTabs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tabsTimeout)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		g.mu.Lock()
		awaits := g.catalog.awaits && len(g.catalog.ranks) > 0
		if awaits && ctx.Err() == context.DeadlineExceeded {
			g.catalog.awaits = false
			g.catalog.version.Add(1)
		}
		g.mu.Release()
		if !awaits || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}
