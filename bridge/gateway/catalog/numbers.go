package catalog

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/pagewire/pagewire/bridge"
)

// maxTab bounds the numbers of tabs that an earlier gateway may give.
const maxTab = 1 << 40

// A TabNumber is what the next gateway is told of a tab. Its members have short names, for there
// may be 1,000.
type TabNumber struct {
	Key    string   `json:"k"`
	Also   []string `json:"a,omitempty"` // other keys
	Number int      `json:"n"`
	Rank   int      `json:"r,omitempty"` // Tab.focused
}

// Version changes with TabNumbers. It needs no lock.
func (c *Catalog) Version() uint64 { return c.tabs.version.Load() }

// LastFocus is when a tab was focused last, if that is known.
func (c *Catalog) LastFocus() (at bridge.Time, known bool) {
	return c.tabs.focusedAt, c.tabs.focusedAt != math.MinInt64
}

// TabNumbers are all tabs that have a number. First come the tabs that are here or awaited, in the
// order in which they would own a URI that all have, then the tabs that are gone, with the greatest
// number first. last is the greatest number that a tab was ever given.
func (c *Catalog) TabNumbers() (tabs []TabNumber, last int) {
	n := &c.tabs
	arrived := map[int]int{} // by number
	of := map[int]int{}      // number to index in tabs
	for _, key := range slices.Sorted(maps.Keys(n.numbers)) {
		number := n.numbers[key]
		i, known := of[number]
		if known {
			tabs[i].Also = append(tabs[i].Also, key)
		} else {
			i = len(tabs)
			of[number] = i
			rank, awaited := n.ranks[number]
			tabs = append(tabs, TabNumber{Key: key, Number: number, Rank: rank})
			arrived[number] = truth(awaited && n.awaited)
		}
		if t := n.byKey[key]; t != nil {
			tabs[i].Rank = t.Rank
			for p := range t.pages {
				arrived[number] = max(arrived[number], p.Order)
			}
		}
	}
	slices.SortFunc(tabs, func(a, b TabNumber) int {
		return cmp.Or(-cmp.Compare(truth(arrived[a.Number] > 0), truth(arrived[b.Number] > 0)),
			-cmp.Compare(a.Rank, b.Rank), -cmp.Compare(arrived[a.Number], arrived[b.Number]),
			-cmp.Compare(a.Number, b.Number))
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
	return tabs, n.last
}

// Restore gives tabs the numbers and the order that they had at an earlier gateway, and leaves out
// what is invalid. Tabs that are known here already keep their numbers, because the states of one
// gateway do not contradict each other. But the state of an idle agent may be older. So the order
// of tabs is that of the state with the latest focus: focused, in ms since 1970, which is 0 if it
// is unknown, and at by our clock.
func (c *Catalog) Restore(tabs []TabNumber, last int, focused int64, at bridge.Time) {
	n := &c.tabs
	taken := map[int]bool{}
	for _, number := range n.numbers {
		taken[number] = true
	}
	orders := !n.ordered || focused > n.orderedAt
	var came []*Tab
	for _, t := range tabs {
		if t.Key == "" || t.Number <= 0 || t.Number > maxTab || len(n.numbers) >= maxNumbers {
			continue
		}
		keys := append([]string{t.Key}, t.Also...)
		is := func(key string) bool { return n.numbers[key] == t.Number }
		mine := !taken[t.Number] || slices.ContainsFunc(keys, is)
		for _, key := range keys {
			if mine && n.numbers[key] == 0 && len(n.numbers) < maxNumbers {
				n.numbers[key], taken[t.Number] = t.Number, true
				n.last = max(n.last, t.Number)
			}
		}
		ranked := t.Rank != 0 && t.Rank < firstFocus && t.Rank > -firstFocus
		if !orders || !ranked || n.numbers[t.Key] == 0 {
			continue
		}
		n.ordered, n.orderedAt, n.awaited = true, focused, true
		if here := n.byKey[t.Key]; here == nil {
			n.ranks[n.numbers[t.Key]] = t.Rank
		} else if here.Rank < firstFocus {
			here.Rank = t.Rank
			came = append(came, here)
		}
	}
	if 0 < last && last <= maxTab {
		n.last = max(n.last, last)
	}
	if focused > 0 {
		n.focusedAt = max(n.focusedAt, at)
	}
	n.version.Add(1)
	for _, t := range came {
		c.reorderTab(t)
	}
}

// Awaited is the number of tabs of an earlier gateway that are not back yet. awaits reports whether
// any may come back, or their pages may have more to offer.
func (c *Catalog) Awaited() (tabs int, awaits bool) { return len(c.tabs.ranks), c.tabs.awaited }

// StopAwaiting says that no tab of an earlier gateway comes back any more.
func (c *Catalog) StopAwaiting() {
	if c.tabs.awaited {
		c.tabs.awaited = false
		c.tabs.version.Add(1)
	}
}
