// Package catalog knows which pages are open, in which tabs, and which of them has a URI now. If
// several tabs have the same URI, the tab that was focused last owns it; the others have it under
// the path of their tab (package taburi). A URI under a tab's path leads to its page even if it is
// not listed, so an agent that has one can keep it.
//
// A page makes offers: its resources. An offer claims keys: its URI, and that URI under the path of
// its tab. All offers that claim a key are in the key's place, in order, and the first one owns the
// key. What a key leads to, as agents see it, is its entry. The catalog announces each change of
// entries to its Listener, and the listener alone knows who is to be told.
//
// Browsers have hundreds of tabs of one application. So the cost of a page's change must depend on
// the page's offers, and not on the number of tabs with the same URIs: each place keeps its order,
// and the shown form of an offer is kept.
//
// The package never reads a page and never talks to an agent. It knows no engine, no link and no
// agent, and decides nothing about who may see a page (package door). It has no lock, goroutine or
// clock: a Catalog and all that it gives run under its gateway's lock.
package catalog

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"sort"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// A Listener is told of each change in a catalog, at once and in order. It may ask the catalog, but
// not change it.
type Listener interface {
	// Find is the key that answers for a URI: the URI, or a template or schema that matches it.
	Find(uri string) (key string, ok bool)

	// Added announces the entry of a new key. An error takes it back.
	Added(e *Entry) error
	// Changed announces another entry of a key: of another page or owner, or in other words.
	Changed(before, now *Entry)
	// Removed announces that a key leads nowhere any more. Until it returns, it still does.
	Removed(e *Entry)

	// Withdrawn announces that a page does not make an offer any more.
	Withdrawn(o *Offer)
	// OwnerChanged announces that a page's profile may have another name.
	OwnerChanged(p *Page)
	// PagesChanged announces that pages have come, gone, been renamed or got another order, in ways
	// that no entry shows.
	PagesChanged()
}

// A Catalog is made by New.
type Catalog struct {
	listener Listener

	// attached are the pages that have come, from Attach until they are removed. All but the Silent
	// ones have a tab. arrivals is how many ever had one: Page.Order of the last.
	attached map[*Page]bool
	arrivals int

	tabs numbering

	// entries and places have the same keys, except while updateEntries runs. changed are the
	// places whose entries are out of date: it is empty after each exported method.
	entries map[string]*Entry
	places  map[string]*place
	changed []*place

	described int // how often an offer was described, for tests

	profiles map[string][]*string // names of profiles, by PageInfo.Source; the last one counts
}

// New returns an empty catalog.
func New(l Listener) *Catalog {
	return &Catalog{listener: l,
		attached: map[*Page]bool{},
		tabs: numbering{byKey: map[string]*Tab{}, numbers: map[string]int{}, ranks: map[int]int{},
			focusedAt: math.MinInt64, focuses: firstFocus},
		entries: map[string]*Entry{}, places: map[string]*place{}, profiles: map[string][]*string{},
	}
}

// An Entry is a URI or template as agents see it, and the page that it leads to. It never changes:
// a key gets another one.
type Entry struct {
	Page     *Page
	Resource bridge.Resource // its URI is the key
	Title    string          // the page's own, without whereabouts
	Owner    bridge.Owner    // of the page, when the entry was made
	segment  string          // of the page's tab; it is in the path of URIs that only this tab has
}

// Own is the page's own form of a URI for which the entry answers.
func (e *Entry) Own(uri string) string {
	if own, segment := taburi.Split(uri); segment == e.segment {
		return own
	}
	return uri
}

// An Offer is a resource of a page.
type Offer struct {
	Page     *Page
	Resource bridge.Resource // as the page describes it
	segment  string          // of the tab's path, for its other URI
	places   []*place        // those of the keys that it claims
	// described says that words (its title), title (that with its page's) and meta are up to date.
	described    bool
	words, title string
	meta         []byte
}

// A place is a key with all offers that claim it. The first one owns it. The order is: the tab that
// was focused last; the document before its frames; what is granted; the page that came last. Pages
// that are being reloaded keep their position. Otherwise a reload in one of two tabs would change
// the owner twice.
type place struct {
	key     string
	offers  []*Offer
	changed bool // it is in Catalog.changed
}

// Entry is the entry of a key, or nil.
func (c *Catalog) Entry(key string) *Entry { return c.entries[key] }

// Keys are those of all entries, in no order.
func (c *Catalog) Keys() iter.Seq[string] { return maps.Keys(c.entries) }

// EntryOf is the entry that answers for a URI, or nil.
func (c *Catalog) EntryOf(uri string) *Entry {
	key, _ := c.listener.Find(uri) // no entry has the key ""
	return c.entries[key]
}

// PageOf is the page that has a URI or a template now, or nil.
func (c *Catalog) PageOf(uri string) *Page {
	if e := cmp.Or(c.entries[uri], c.EntryOf(uri)); e != nil {
		return e.Page
	}
	return nil
}

// Offer puts a resource of a page that has arrived into the catalog. It replaces the page's earlier
// offer of that URI.
func (c *Catalog) Offer(p *Page, r bridge.Resource) {
	if before := p.Offers[r.URI]; before != nil {
		c.removeClaims(before)
	}
	o := &Offer{Page: p, Resource: r, segment: p.Segment()}
	p.Offers[r.URI] = o
	c.addClaims(o)
	for old := range p.InTab.pages { // it may take over its URI from a page that its tab has left
		if before := old.Offers[r.URI]; before != nil && o.replaces(before) {
			c.retire(before)
		}
	}
	c.invalidateShown(p)
	c.updateEntries()
}

// Withdraw takes a page's offer of a URI out of the catalog, if there is one.
func (c *Catalog) Withdraw(p *Page, uri string) {
	o := p.Offers[uri]
	if o == nil {
		return
	}
	c.retire(o)
	c.updateEntries()
	c.listener.Withdrawn(o)
}

// retire takes an offer out of the catalog.
func (c *Catalog) retire(o *Offer) {
	delete(o.Page.Offers, o.Resource.URI)
	c.removeClaims(o)
	c.invalidateShown(o.Page)
}

// replaces reports whether o is in the place of old, an offer of a page that its tab has left.
func (o *Offer) replaces(old *Offer) bool {
	p, q := old.Page, o.Page
	return p.life.Left() && !q.life.Left() && p.InTab == q.InTab &&
		(p.Frame == q.Frame || q.Frame == "")
}

// isReplaced reports whether an offer that replaces o has come already.
func (o *Offer) isReplaced() bool {
	for p := range o.Page.InTab.pages {
		if next := p.Offers[o.Resource.URI]; next != nil && next.replaces(o) {
			return true
		}
	}
	return false
}

// compare compares two offers of a place. It is negative if o comes first.
func (o *Offer) compare(other *Offer) int {
	p, q := o.Page, other.Page
	return cmp.Or(
		cmp.Compare(q.InTab.Rank, p.InTab.Rank),
		cmp.Compare(truth(p.Frame != ""), truth(q.Frame != "")),
		cmp.Compare(truth(q.Granted), truth(p.Granted)), // which all agents see
		cmp.Compare(q.Order, p.Order))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addClaims makes an offer claim its keys: its URI, and that URI under the path of its tab.
func (c *Catalog) addClaims(o *Offer) {
	for _, key := range []string{o.Resource.URI, taburi.Of(o.Resource.URI, o.segment)} {
		at := c.places[key]
		if at == nil {
			at = &place{key: key}
			c.places[key] = at
		}
		o.places = append(o.places, at)
		if at.insert(o) == 0 {
			c.invalidate(at, at.offers[:min(2, len(at.offers))]...)
		}
	}
}

// insert puts an offer after the offers that come before it or are equal. It returns the offer's
// index.
func (at *place) insert(o *Offer) (i int) {
	i = sort.Search(len(at.offers), func(i int) bool { return at.offers[i].compare(o) > 0 })
	at.offers = slices.Insert(at.offers, i, o)
	return i
}

// removeClaims gives up all keys that an offer claims.
func (c *Catalog) removeClaims(o *Offer) {
	for _, at := range o.places {
		i := slices.Index(at.offers, o)
		at.offers = slices.Delete(at.offers, i, i+1)
		if i == 0 {
			c.invalidate(at, at.offers[:min(1, len(at.offers))]...)
		}
	}
	o.places = nil
}

// invalidate marks a place as out of date, and the places that the given offers own. These depend
// on its first offer, since the owner of a URI has it unlisted under the path of its tab.
func (c *Catalog) invalidate(at *place, of ...*Offer) {
	if !at.changed {
		at.changed = true
		c.changed = append(c.changed, at)
	}
	for _, o := range of {
		c.invalidateOwned(o)
	}
}

// invalidateOwned marks all places that an offer owns as out of date.
func (c *Catalog) invalidateOwned(o *Offer) {
	for _, at := range o.places {
		if at.offers[0] == o {
			c.invalidate(at)
		}
	}
}

// updateEntries brings the entries in line with the places that have changed, and announces them.
func (c *Catalog) updateEntries() {
	changed := c.changed
	c.changed = nil
	for _, at := range changed {
		at.changed = false
		if len(at.offers) == 0 {
			delete(c.places, at.key)
			c.removeEntry(at.key)
		}
	}
	for _, at := range changed {
		if len(at.offers) > 0 {
			c.setEntry(at.key, c.entryAt(at))
		}
	}
}

// entryAt makes the entry of a place's key.
func (c *Catalog) entryAt(at *place) *Entry {
	o := at.offers[0]
	r, own := o.shown(), o.Resource.URI
	r.URI = at.key
	r.Unlisted = at.key != own && c.places[own].offers[0] == o || o.standsBack()
	return &Entry{Page: o.Page, Resource: r, Title: o.words, Owner: o.Page.Owner(),
		segment: o.segment}
}

func (c *Catalog) setEntry(key string, now *Entry) {
	before := c.entries[key]
	if before != nil && !reflect.DeepEqual(before.Resource.Schema, now.Resource.Schema) {
		c.removeEntry(key) // the URI now answers for other URIs
		before = nil
	}
	c.entries[key] = now
	if before != nil {
		c.listener.Changed(before, now)
	} else if c.listener.Added(now) != nil {
		delete(c.entries, key)
	}
}

func (c *Catalog) removeEntry(key string) {
	if e := c.entries[key]; e != nil {
		c.listener.Removed(e)
		delete(c.entries, key)
	}
}

// Described is how often an offer was described.
func (c *Catalog) Described() int { return c.described }
