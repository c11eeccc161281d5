package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/pagewire/pagewire/bridge"
)

// A snapshot has what all agents share: the numbers and the order of tabs, and the names of tools. Each agent's process
// keeps one for the next gateway if this one dies. Without it a plain name that an agent has learned could lead to
// another origin's tool there. It has nothing of what the agent has seen. A process keeps it without looking into it, so
// it comes back as untrusted input.

const (
	snapshotVersion = 2
	// MaxSnapshotBytes bounds a snapshot. partBytes bounds each of its lists. Tabs that are gone are left out first.
	MaxSnapshotBytes = 256 << 10
	partBytes        = 72 << 10
	// maxTab bounds the numbers of tabs that a snapshot may have.
	maxTab = 1 << 40
)

// A shared is a decoded snapshot. The members of its lists' entries have short names, for there may be 1,000 entries.
type shared struct {
	Version int          `json:"v"`
	Tabs    []sharedTab  `json:"tabs"`
	Names   []sharedName `json:"names"`
	// Last is the greatest number that a tab was ever given. Focused is the time of the last focus, in ms since 1970; 0
	// if unknown.
	Last    int   `json:"last"`
	Focused int64 `json:"focused,omitempty"`
}

type sharedTab struct {
	Key    string   `json:"k"`
	Also   []string `json:"a,omitempty"` // other keys
	Number int      `json:"n"`
	Rank   int      `json:"r,omitempty"` // tab.focused
}

type sharedName struct {
	Origin string `json:"o"`
	Tool   string `json:"t"`
	Name   string `json:"n"`
}

// Snapshot is the state for the next gateway if this one dies (AgentOptions.Snapshot): at most MaxSnapshotBytes.
// SnapshotVersion changes whenever it does. An agent's process must get it before a message, which may have a new name.
//
// Agents that had sessions must connect before the pages do. A tab that comes before all snapshots that have it may get
// another number. A tab that is in none of them gets a number above all of theirs.
func (a *Agent) Snapshot() []byte {
	defer a.g.lock()()
	return a.g.shared()
}

// SnapshotVersion takes no lock. It is 0 for an agent with which no other gateway goes on.
func (a *Agent) SnapshotVersion() uint64 {
	if !remembers(a.transport) {
		return 0
	}
	return 1 + a.g.catalog.version.Load()
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

// shared makes the snapshot, which is the same for all agents, when it has changed. After Close it stays as it was.
func (g *Gateway) shared() []byte {
	c := &g.catalog
	if version := c.version.Load(); !g.closed && (c.snapshot == nil || c.made != version) {
		focused := int64(0)
		if c.focusedAt != math.MinInt64 {
			ago := time.Duration(g.now()-c.focusedAt) * time.Millisecond
			focused = g.opt.wallClock().Add(-ago).UnixMilli()
		}
		var names []sharedName
		g.tools.names.Given(func(origin, tool, name string) { names = append(names, sharedName{origin, tool, name}) })
		slices.SortFunc(names, func(a, b sharedName) int {
			return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Tool, b.Tool))
		})
		c.snapshot = fmt.Appendf(nil, `{"v":%d,"tabs":%s,"last":%d,"focused":%d,"names":%s}`, snapshotVersion,
			array(c.ranked()), c.lastTab, focused, array(names))
		c.made = version
	}
	return c.snapshot
}

// ranked are all tabs that have a number. First come the tabs that are here or awaited, in the order in which they
// would own a URI that all have, then the tabs that are gone, with the greatest number first.
func (c *catalog) ranked() (tabs []sharedTab) {
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
			tabs = append(tabs, sharedTab{Key: key, Number: number, Rank: rank})
			arrived[number] = truth(awaited && c.awaits)
		}
		if t := c.tabs[key]; t != nil {
			tabs[i].Rank = t.focused
			for p := range t.pages {
				arrived[number] = max(arrived[number], p.order)
			}
		}
	}
	slices.SortFunc(tabs, func(a, b sharedTab) int {
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

// restore applies a snapshot. It fails for a text that is none, and leaves out entries that are invalid. Tabs and names
// that are known here already stay, because snapshots of one gateway do not contradict each other. But the snapshot of
// an idle agent may be older. So the order of tabs is that of the snapshot with the latest focus.
func (g *Gateway) restore(snapshot []byte) error {
	if len(snapshot) > MaxSnapshotBytes {
		return fmt.Errorf("it has %d bytes, and the limit is %d", len(snapshot), MaxSnapshotBytes)
	}
	var s shared
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return err
	}
	if s.Version != snapshotVersion {
		return fmt.Errorf("it is of version %d, and not of %d", s.Version, snapshotVersion)
	}
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
	return nil
}
