package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
)

// firstFocus is below every focus at this gateway, and above all ranks of earlier gateways.
const firstFocus = 1 << 20

// A Tab is a tab of a browser. Only the catalog changes its fields.
type Tab struct {
	// Key is that of its first document, and Number is how agents tell it from others. Both stay
	// the same for the tab's life, and no other tab ever gets the number. Each way of its documents
	// has a key in numbering.byKey.
	Key    string
	Number int
	// Rank is greater for a tab that was focused later. Ranks of earlier gateways are below
	// firstFocus: above 0 for a tab that was focused there, negative for one that was only listed.
	Rank  int
	pages map[*Page]bool // that are Here or Reloading; never empty
}

// numbering has the tabs, their numbers and their order.
type numbering struct {
	byKey map[string]*Tab // tabs with pages: each by all its keys
	// numbers are given for good, by key: to the tabs in byKey, to those that an earlier gateway
	// had, and to those that are gone. There are at most maxNumbers. last is the greatest one ever
	// given.
	numbers map[string]int
	last    int

	// focuses is Tab.Rank of the tab that was focused last, and focusedAt when that was, as far as
	// pages give the time. focusNext is the key of a tab that was focused before it had a page; ""
	// for none.
	focuses   int
	focusedAt bridge.Time
	focusNext string

	// ranks are the values of Tab.Rank at an earlier gateway, for tabs that are not back yet, by
	// number. ordered says that Restore has set them, from a gateway whose last focus was at
	// orderedAt. awaited is set while they may come back.
	ranks     map[int]int
	ordered   bool
	orderedAt int64
	awaited   bool

	version atomic.Uint64 // counts changes of Numbers; read without the lock
}

// Tab is the tab with a key, or nil if it has no page.
func (c *Catalog) Tab(key string) *Tab { return c.tabs.byKey[key] }

// PagesIn are the pages of the tab with a key.
func (c *Catalog) PagesIn(key string) iter.Seq[*Page] {
	if t := c.tabs.byKey[key]; t != nil {
		return maps.Keys(t.pages)
	}
	return func(func(*Page) bool) {}
}

// enterTab puts a page into the tab that has one of its keys, or a new one.
func (c *Catalog) enterTab(p *Page, keys []string) {
	n := &c.tabs
	t := n.byKey[p.Tab]
	for _, key := range keys {
		if other := n.byKey[key]; t == nil && other.onlyShows() {
			t = other // what the document shows came before it
		}
	}
	if t == nil {
		number := c.numberOf(p.Tab)
		for _, known := range n.byKey {
			if known.Number == number {
				t = known // an earlier gateway has known it by this key too
			}
		}
		if t == nil {
			t = &Tab{Key: p.Tab, Number: number, pages: map[*Page]bool{}, Rank: n.ranks[number]}
			delete(n.ranks, number)
		}
		n.version.Add(1)
		n.byKey[p.Tab] = t
	}
	p.InTab = t
	t.pages[p] = true
	for _, key := range keys {
		c.addKey(t, key)
	}
}

// leaveTab takes a page out of its tab. A tab without pages is forgotten, but for its number.
func (c *Catalog) leaveTab(p *Page) {
	delete(p.InTab.pages, p)
	if len(p.InTab.pages) == 0 {
		c.forget(p.InTab)
		c.tabs.version.Add(1)
	}
}

func (c *Catalog) forget(t *Tab) {
	maps.DeleteFunc(c.tabs.byKey, func(_ string, other *Tab) bool { return other == t })
}

// addKey makes a key lead to a tab, unless it leads to another one.
func (c *Catalog) addKey(t *Tab, key string) {
	if n := &c.tabs; n.byKey[key] == nil {
		delete(n.ranks, n.numbers[key])
		n.byKey[key], n.numbers[key] = t, t.Number
		n.version.Add(1)
		n.trim()
	}
}

// numberOf returns the number of the tab with this key. A tab without a number gets the next one.
func (c *Catalog) numberOf(key string) int {
	n := &c.tabs
	if n.numbers[key] == 0 {
		n.last++
		n.numbers[key] = n.last
		n.version.Add(1)
		n.trim()
	}
	return n.numbers[key]
}

// maxNumbers bounds the kept numbers of tabs. A tab that comes back gets its earlier number, and no
// other tab ever gets it. Without the bound, a page that always comes in a new tab would take 150
// bytes, a key and a number, each time.
const maxNumbers = 10_000

// trim limits the numbers to maxNumbers: it forgets the oldest half of those whose tabs are gone.
func (n *numbering) trim() {
	if len(n.numbers) <= maxNumbers {
		return
	}
	here := func(key string) bool { return n.byKey[key] != nil }
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(n.numbers)), here)
	slices.SortFunc(gone, func(a, b string) int { return cmp.Compare(n.numbers[a], n.numbers[b]) })
	for _, key := range gone[:len(gone)/2] {
		delete(n.numbers, key)
	}
}

// onlyShows reports whether a tab has only sources of what its documents show, which may have come
// before its page did in another way.
func (t *Tab) onlyShows() bool {
	if t == nil {
		return false
	}
	for p := range t.pages {
		if !p.Shown {
			return false
		}
	}
	return true
}

// mergeTabs brings what a document shows into the tab of its page, when it is known that both are
// in one: a page may have connected by itself first.
func (c *Catalog) mergeTabs(key string, t *Tab) {
	from := c.tabs.byKey[key]
	if from == t || !from.onlyShows() {
		return
	}
	c.forget(from)
	for p := range from.pages {
		p.InTab, t.pages[p] = t, true
		for _, o := range p.Offers {
			c.removeClaims(o)
			o.segment = p.Segment()
			c.addClaims(o)
		}
		c.Redescribe(p)
	}
	if from.Rank == c.tabs.focuses {
		c.focus(t)
	}
}

// mergeTarget brings what the extension shows of a tab, and what CDP knows of that, into one tab.
func (c *Catalog) mergeTarget(p *Page) {
	key := p.Target
	if key == "" || p.life != Here {
		return
	}
	if other := c.tabs.byKey[key]; other != nil {
		for q := range other.pages {
			if p.Differs(q) {
				return // it is not a tab of that browser
			}
		}
		c.mergeTabs(p.Tab, other)
		c.mergeTabs(key, p.InTab)
	}
	c.addKey(p.InTab, p.Tab)
	c.addKey(p.InTab, key)
	c.focusAwaited(p)
}

// SetTarget notes PageInfo.Target of a page.
func (c *Catalog) SetTarget(p *Page, target string) {
	p.Target = target
	c.mergeTarget(p)
}

// Focus notes that the user has looked at a tab at a time, and reports whether no later time is
// known. The tab then owns the URIs that other tabs have too.
func (c *Catalog) Focus(key string, at bridge.Time) bool {
	if at < c.tabs.focusedAt {
		return false
	}
	c.tabs.focusedAt = at
	c.focusKey(key)
	return true
}

func (c *Catalog) focusKey(key string) {
	if t := c.tabs.byKey[key]; t != nil {
		c.focus(t)
	} else {
		c.tabs.focusNext = key // its page has not come yet
	}
}

// focusAwaited focuses a page's tab if that came to the front before one of its keys was known.
func (c *Catalog) focusAwaited(p *Page) {
	if next := c.tabs.focusNext; next != "" && p.IsIn(next) {
		c.tabs.focusNext = ""
		c.focusKey(next)
	}
}

// FocusAwaited is the key of a tab that was focused before it had a page, or "".
func (c *Catalog) FocusAwaited() string { return c.tabs.focusNext }

// LastFocused reports whether a tab was focused last.
func (c *Catalog) LastFocused(t *Tab) bool { return t.Rank == c.tabs.focuses }

// focus makes a tab the one that was focused last.
func (c *Catalog) focus(t *Tab) {
	if n := &c.tabs; t.Rank != n.focuses {
		n.focuses++
		t.Rank = n.focuses
		n.version.Add(1)
		c.reorderTab(t)
	}
}

// reorderTab brings the places in line with a change of Tab.Rank.
func (c *Catalog) reorderTab(t *Tab) {
	for p := range t.pages {
		for _, o := range p.Offers {
			for _, at := range o.places {
				c.reorderPlace(at, t)
			}
		}
	}
	c.updateEntries()
	c.listener.PagesChanged()
}

// reorderPlace moves the offers of a tab within a place.
func (c *Catalog) reorderPlace(at *place, t *Tab) {
	first := at.offers[0]
	var moved []*Offer
	at.offers = slices.DeleteFunc(at.offers, func(o *Offer) bool {
		if o.Page.InTab == t {
			moved = append(moved, o)
		}
		return o.Page.InTab == t
	})
	for _, o := range moved {
		at.insert(o)
	}
	if now := at.offers[0]; now != first {
		c.invalidate(at, now, first)
	}
}
