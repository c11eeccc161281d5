package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/live/seen"
)

// A snapshot has the state of a session for the next gateway if this one dies: the versions that the agent has seen,
// without the texts, and the numbers of tabs and names of tools that all agents know. A process keeps it without
// looking into it, so it comes back as untrusted input. Nothing in it can make a stale call run: the page's revisions
// decide only whether the agent is reminded, and the hash of the contents that were read decides whether a call runs.

const (
	snapshotVersion = 1
	// MaxSnapshotBytes bounds a snapshot. partBytes bounds each of its lists of read resources, tabs and tools' names.
	// The resources read longest ago, and the tabs that are gone, are left out first.
	MaxSnapshotBytes = 256 << 10
	partBytes        = 72 << 10
	// maxIssued bounds the revisions in a snapshot: it has the last ones, of 17 bytes each.
	maxIssued = 512
	// maxTab bounds the numbers of tabs that a snapshot may have.
	maxTab = 1 << 40
)

// A session is a decoded snapshot. The members of its lists' entries have short names, for there may be 1,000 entries.
type session struct {
	Version int          `json:"v"`
	Agent   sessionAgent `json:"agent"`
	Shared  sessionTabs  `json:"shared"`
}

type sessionAgent struct {
	Tag    string        `json:"tag"`
	Issued []int64       `json:"issued"`
	Seen   []sessionSeen `json:"seen"` // last given first
	// Told has, without contents, the revisions that hooks have told the agent. Only a conversation's record has it.
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
	// Last is the greatest number that a tab was ever given. Focused is the time of the last focus, in ms since 1970; 0
	// if unknown.
	Last    int           `json:"last"`
	Focused int64         `json:"focused,omitempty"`
	Names   []sessionName `json:"names"`
}

type sessionTab struct {
	Key    string   `json:"k"`
	Also   []string `json:"a,omitempty"` // other keys
	Number int      `json:"n"`
	Rank   int      `json:"r,omitempty"` // tab.focused
}

type sessionName struct {
	Origin string `json:"o"`
	Tool   string `json:"t"`
	Name   string `json:"n"`
}

// Snapshot is the state of the agent's session for the next gateway if this one dies (AgentOptions.Snapshot). It is at
// most MaxSnapshotBytes, and nil for an agent without a memory. After the session it stays as it was at the end.
//
// It is right only once the message that Read returned last has reached the agent. So the goroutine that calls Read
// compares SnapshotVersion with the version of the last snapshot that it sent. If they differ, it sends the snapshot
// and then the message. The other end puts the snapshot in force when it has the whole message. A snapshot between two
// messages, made because pages have changed, is in force at once; the same goroutine takes it. If the agent still waits
// for contents, or has not read them, the snapshot has the older version that it has seen, if any.
//
// Agents that had sessions must connect before the pages do. A tab that comes before all snapshots that have it may get
// another number. A tab that is in none of them gets a number above all of theirs.
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
		a.memory.Settle() // a conversation without a session: no message is on its way
	}
	issued := a.memory.Revisions()
	var list []sessionSeen
	for uri, v := range a.memory.Settled {
		list = append(list, sessionSeen{uri, v.Part, v.Revision, v.Current, v.Hash[:], v.Epoch, v.Count})
	}
	return fmt.Appendf(nil, `{"tag":%q,"issued":%s,"seen":%s,"told":%s}`, a.memory.Tag,
		array(issued[max(0, len(issued)-maxIssued):]), array(list), array(told))
}

// SnapshotVersion is a number that changes whenever Snapshot's result does. It takes the lock only if the contents
// given last may have reached the agent since.
func (a *Agent) SnapshotVersion() uint64 {
	if a.record == nil {
		return 0
	}
	if a.record.Unsettled() {
		a.g.locked(a.settle)()
	}
	return a.record.Version() + a.g.catalog.version.Load()
}

// settle records that the agent has received all contents given to it, if it waits for no more messages.
func (a *Agent) settle() {
	if a.record.Unsettled() && a.settled() {
		a.record.Settle()
	}
}

// array encodes a list as JSON text of at most partBytes. An entry is left out if there is no room for it after the
// entries before it.
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

// shared is the part that the snapshots of all agents have in common.
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

// ranked are all tabs that have a number. First come the tabs that are here or awaited, in the order in which they
// would own a URI that all have, then the tabs that are gone, with the greatest number first.
func (c *catalog) ranked() (tabs []sessionTab) {
	arrived := map[int]int{} // by number
	of := map[int]int{}      // number to index in tabs
	for _, key := range slices.Sorted(maps.Keys(c.numbers)) {
		number := c.numbers[key]
		i, known := of[number]
		if known {
			tabs[i].Also = append(tabs[i].Also, key)
		} else {
			i = len(tabs)
			of[number] = i
			rank, awaited := c.ranks[number]
			tabs = append(tabs, sessionTab{Key: key, Number: number, Rank: rank})
			arrived[number] = truth(awaited && c.awaits)
		}
		if t := c.tabs[key]; t != nil {
			tabs[i].Rank = t.focused
			for p := range t.pages {
				arrived[number] = max(arrived[number], p.order)
			}
		}
	}
	slices.SortFunc(tabs, func(a, b sessionTab) int {
		return cmp.Or(-cmp.Compare(truth(arrived[a.Number] > 0), truth(arrived[b.Number] > 0)),
			-cmp.Compare(a.Rank, b.Rank), -cmp.Compare(arrived[a.Number], arrived[b.Number]), -cmp.Compare(a.Number, b.Number))
	})
	focused := 0
	for _, t := range tabs {
		focused += truth(t.Rank > 0)
	}
	for i := range tabs {
		switch t := &tabs[i]; {
		case arrived[t.Number] == 0:
			t.Rank = 0
		case t.Rank > 0:
			t.Rank = focused - i
		default:
			t.Rank = focused - i - 1
		}
	}
	return tabs
}

// tagShape matches a reminder's tag.
var tagShape = regexp.MustCompile(`^\[pagewire-[a-z2-7]{6}\]$`)

// restore applies a snapshot to an agent that has just connected. Invalid entries are left out. It fails for a text
// that is not a snapshot, and for an agent without a memory, which gets only the tabs and names.
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

// recall adds a snapshot's versions to an agent's memory.
func (a *Agent) recall(s *sessionAgent) {
	m := a.memory
	if tagShape.MatchString(s.Tag) {
		m.Tag = s.Tag
	}
	// Revisions are times of the clock, which may have been set back by a day at most.
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
		case one.URI == "" || !a.pass.Sees(one.URI) || !told && len(one.Hash) != len(v.Hash):
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

// restoreTabs applies a snapshot's tabs and names. Those that are known here already stay, because snapshots of one
// gateway do not contradict each other. But the snapshot of an idle agent may be older. So the order of tabs is that
// of the snapshot with the latest focus.
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
		keys := append([]string{t.Key}, t.Also...)
		is := func(key string) bool { return c.numbers[key] == t.Number }
		mine := !taken[t.Number] || slices.ContainsFunc(keys, is)
		for _, key := range keys {
			if mine && c.numbers[key] == 0 && len(c.numbers) < maxNumbers {
				c.numbers[key], taken[t.Number] = t.Number, true
				c.lastTab = max(c.lastTab, t.Number)
			}
		}
		if !orders || t.Rank == 0 || t.Rank >= firstFocus || t.Rank <= -firstFocus || c.numbers[t.Key] == 0 {
			continue
		}
		c.ordered, c.orderedAt, c.awaits = true, s.Focused, true
		if here := c.tabs[t.Key]; here == nil {
			c.ranks[c.numbers[t.Key]] = t.Rank
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
	if len(c.ranks) > 0 && c.awaits {
		g.engine.Await(g.now(), true)
	}
	for _, t := range came {
		g.reown(t)
	}
}

// await returns when met does, or ctx has ended. It calls met with the lock held, also after ctx has ended.
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
