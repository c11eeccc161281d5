package tools

import (
	"cmp"
	"slices"

	"github.com/pagewire/pagewire/bridge/internal/quota"
)

// A Listing chooses the tools of pages for a list with too few places. Its owner guards it.
//
// Each site has the same share. A site divides its share between its origins, and an origin between
// its pages. Unused places go to the others. While a site, origin or page has no more tools than
// its share, all of them stay listed. Of an origin's tools, plain names come before names with a
// tab. Called tools come before listed tools, and these before new ones. So tabs that come and go
// change the list as little as possible.
//
// Why does each site have a share of the list of tools? At 1,000 names the list froze for all
// agents: the 19th tab of an application with 50 tools did it.
//
//   - By origin alone, one page could take any part, with frames of many subdomains. So the last two
//     labels of the host share first; a list of public suffixes would cost 100 KB.
//   - Number and bytes are one budget, of places for 8 KiB: two would need an order in which they are
//     spent.
//   - A tab's own names have no share by tab: each new tab would take one tool from each of the
//     others.
//   - A name that its page no longer has is kept until there are 10,000 such names; then the origin
//     with the most loses its oldest. By age alone, a page could make the gateway forget a closed
//     bank's pay, and take the name.
type Listing struct {
	places int
	before map[string]standing // of the tools at the last Choose, and of tools called since
}

// standing is a tool's state before Choose. Tools keep their places in this order.
type standing int

const (
	unlisted standing = iota
	listed
	called
)

// NewListing returns an empty Listing.
func NewListing(places int) *Listing {
	return &Listing{places: places,
		before: map[string]standing{}}
}

// An Entry is a tool that a page offers for the list.
type Entry struct {
	Name   string // as agents know it
	Origin string
	Page   int  // distinguishes the pages of an origin
	Tabbed bool // Name has a tab, because another tab has the plain name
	Bytes  int  // of its description
}

// PlaceBytes is the longest description that takes one place. A longer one takes several. 1,000
// places are 8 MiB at most.
const PlaceBytes = 8 << 10

func (e *Entry) places() int { return 1 + max(0, e.Bytes-1)/PlaceBytes }

// Called notes that an agent has called a tool.
func (l *Listing) Called(name string) { l.before[name] = called }

// Choose reports for each entry whether it is listed. It forgets all other tools.
func (l *Listing) Choose(entries []Entry) []bool {
	chosen := make([]bool, len(entries))
	left := l.places
	for _, i := range l.ranked(entries) {
		if n := entries[i].places(); n <= left {
			left -= n
			chosen[i] = true
		}
	}
	now := make(map[string]standing, len(entries))
	for i, e := range entries {
		switch {
		case l.before[e.Name] == called:
			now[e.Name] = called
		case chosen[i]:
			now[e.Name] = listed
		}
	}
	l.before = now
	return chosen
}

// ranked returns the indices of entries, in the order in which they get places.
func (l *Listing) ranked(entries []Entry) []int {
	order := make([]int, len(entries))
	standings := make([]standing, len(entries))
	all := 0
	for i, e := range entries {
		order[i], standings[i] = i, l.before[e.Name]
		all += e.places()
	}
	if all <= l.places {
		return order
	}
	slices.SortStableFunc(order,
		func(a, b int) int { return cmp.Compare(standings[b], standings[a]) })
	cost := func(i int) int { return entries[i].places() }
	origin := func(i int) string { return entries[i].Origin }
	var ordered []int
	for _, of := range quota.Grouped(order, origin) {
		var plain, tabbed []int
		for _, i := range of {
			if entries[i].Tabbed {
				tabbed = append(tabbed, i)
			} else {
				plain = append(plain, i)
			}
		}
		pages := quota.Grouped(plain, func(i int) int { return entries[i].Page })
		ordered = append(append(ordered, quota.Fair(pages, cost)...), tabbed...)
	}
	return quota.BySite(ordered, origin, cost)
}
