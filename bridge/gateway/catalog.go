package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// The catalog lists the resources that the pages offer. If several tabs have the same URI, the tab that was focused
// last owns it; the others have it under the path of their tab (package taburi). A URI under a tab's path answers even
// if it is not listed, so an agent that has one can keep it.
//
// Browsers have hundreds of tabs of one application. So the cost of a page's change must depend on the page's offers,
// and not on the number of tabs with the same URIs: each place keeps its order, and the shown form of an offer is kept.
type catalog struct {
	pages     map[*Page]bool
	tabs      map[string]*tab // by key
	numbers   map[string]int  // of tabs, by key; at most maxNumbers
	lastTab   int             // the greatest number ever given
	arrivals  int
	focuses   int
	focusNext string            // a tab that was focused before it had a page
	focusedAt bridge.Time       // when a tab was last focused, as far as pages give the time
	entries   map[string]*entry // by the key in the engine
	places    map[string]*place // by the key in the engine
	changed   []*place          // places whose state in the engine is out of date
	waiting   map[*Page]bool    // pages with reads that wait for a successor
	retitled  []*Page           // pages with a new title that agents do not know yet
	described int               // how often an offer was described
	// ranks are the values of tab.focused at an earlier gateway, for tabs that are not back yet, by number.
	ranks     map[int]int
	ordered   bool  // a snapshot has set ranks
	orderedAt int64 // Focused of that snapshot
	// awaits is set while the tabs of ranks may come back, see endLooks.
	awaits bool
	// version counts changes of the snapshot: of tabs' numbers and order, and of tools' names. snapshot is the one at
	// version made.
	version  atomic.Uint64
	made     uint64
	snapshot []byte
}

// firstFocus is below every focus at this gateway, and above all ranks of earlier gateways.
const firstFocus = 1 << 20

type tab struct {
	key    string // of its first document; each way of its documents has one in catalog.tabs
	number int
	// focused is greater for a later focus. Ranks of earlier gateways are below firstFocus: above 0 for a tab that was
	// focused there, negative for one that was only listed there.
	focused int
	pages   map[*Page]bool
}

// An entry is a URI or template in the engine, with the page that it leads to.
type entry struct {
	page    *Page
	segment string // of the page's tab; it is in the path of URIs that only this tab has
	title   string // the page's own
	shown   bridge.Resource
	owner   bridge.Owner // of the page, when the entry was made
}

// own is the page's own form of a URI for which the entry answers.
func (r *entry) own(uri string) string {
	if own, segment := taburi.Split(uri); segment == r.segment {
		return own
	}
	return uri
}

// A place is a key of the engine with all offers that claim it. The first offer owns it. The order is: the tab that was
// focused last; the document before its frames; what is granted; the page that came last. Absent pages keep their position. Otherwise a
// reload in one of two tabs would change the owner twice.
type place struct {
	key     string
	offers  []*offer
	changed bool // it is in catalog.changed
}

func (c *catalog) init() {
	c.pages, c.waiting = map[*Page]bool{}, map[*Page]bool{}
	c.tabs, c.numbers, c.ranks = map[string]*tab{}, map[string]int{}, map[int]int{}
	c.entries, c.places = map[string]*entry{}, map[string]*place{}
	c.focusedAt, c.focuses = math.MinInt64, firstFocus
}

func (c *catalog) add(p *Page) {
	p.window = c.windowOf(p)
	c.pages[p] = true
	c.arrivals++
	p.order = c.arrivals
	t := c.tabs[p.Tab]
	for _, w := range p.ways {
		if other := c.tabs[w.info.Tab]; t == nil && other.onlyShows() {
			t = other // what the document shows came before it
		}
	}
	if t == nil {
		number := c.numberOf(p.Tab)
		for _, known := range c.tabs {
			if known.number == number {
				t = known // an earlier gateway has known it by this key too
			}
		}
		if t == nil {
			t = &tab{key: p.Tab, number: number, pages: map[*Page]bool{}, focused: c.ranks[number]}
			delete(c.ranks, number)
		}
		c.version.Add(1)
		c.tabs[p.Tab] = t
	}
	p.tab = t
	t.pages[p] = true
	for _, w := range p.ways {
		c.alias(t, w.info.Tab)
	}
}

// alias makes a key lead to a tab, unless it leads to another one.
func (c *catalog) alias(t *tab, key string) {
	if c.tabs[key] == nil {
		delete(c.ranks, c.numbers[key])
		c.tabs[key], c.numbers[key] = t, t.number
		c.version.Add(1)
		c.trimNumbers()
	}
}

// isIn reports whether the page's tab has a key.
func (p *Page) isIn(key string) bool {
	return p.Tab == key || p.tab != nil && p.tab == p.g.catalog.tabs[key]
}

// numberOf returns the number of the tab with this key. A tab without a number gets the next one.
func (c *catalog) numberOf(key string) int {
	if c.numbers[key] == 0 {
		c.lastTab++
		c.numbers[key] = c.lastTab
		c.version.Add(1)
		c.trimNumbers()
	}
	return c.numbers[key]
}

// maxNumbers bounds the kept numbers of tabs. A tab that comes back gets its earlier number, and no other tab ever gets
// it. Without the bound, a page that always comes in a new tab would take 150 bytes, a key and a number, each time.
const maxNumbers = 10_000

// trimNumbers limits the numbers to maxNumbers: it forgets the oldest half of those whose tabs are gone.
func (c *catalog) trimNumbers() {
	if len(c.numbers) <= maxNumbers {
		return
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(c.numbers)), func(key string) bool { return c.tabs[key] != nil })
	slices.SortFunc(gone, func(a, b string) int { return cmp.Compare(c.numbers[a], c.numbers[b]) })
	for _, key := range gone[:len(gone)/2] {
		delete(c.numbers, key)
	}
}

func (c *catalog) remove(p *Page) {
	delete(c.pages, p)
	delete(p.tab.pages, p)
	if len(p.tab.pages) == 0 {
		maps.DeleteFunc(c.tabs, func(_ string, t *tab) bool { return t == p.tab })
		c.version.Add(1)
	}
}

// focus makes a tab the one that was focused last, and reports whether that changes anything.
func (c *catalog) focus(t *tab) bool {
	if t.focused == c.focuses {
		return false
	}
	c.focuses++
	t.focused = c.focuses
	c.version.Add(1)
	return true
}

// before compares two offers of a place. It is negative if o comes first.
func (o *offer) before(other *offer) int {
	p, q := o.page, other.page
	return cmp.Or(
		cmp.Compare(q.tab.focused, p.tab.focused),
		cmp.Compare(truth(p.Frame != ""), truth(q.Frame != "")),
		cmp.Compare(truth(o.resource.URI != o.base), truth(other.resource.URI != other.base)),
		cmp.Compare(truth(q.Granted), truth(p.Granted)), // which all agents see
		cmp.Compare(q.order, p.order))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// offer puts a resource of a page into the catalog. It replaces the page's earlier offer of that URI.
func (g *Gateway) offer(o *offer) {
	c, p, uri := &g.catalog, o.page, o.resource.URI
	if before := p.offers[uri]; before != nil {
		c.release(before)
	}
	p.offers[uri] = o
	for _, key := range o.keys() {
		c.claim(key, o)
	}
	c.succeed(o)
	c.relist(p)
	g.refresh()
	g.unpark()
}

// withdraw takes an offer out of the catalog.
func (g *Gateway) withdraw(o *offer) {
	delete(o.page.offers, o.resource.URI)
	delete(o.page.wide, o.resource.URI)
	g.catalog.release(o)
	g.catalog.relist(o.page)
	g.refresh()
	g.withdrawn = append(g.withdrawn, o)
}

// keys are the engine's keys that an offer claims: its URI, and that URI under the path of its tab.
func (o *offer) keys() []string {
	if o.segment == "" {
		return []string{o.base}
	}
	return []string{o.base, taburi.Of(o.base, o.segment)}
}

func (c *catalog) claim(key string, o *offer) {
	at := c.places[key]
	if at == nil {
		at = &place{key: key}
		c.places[key] = at
	}
	o.places = append(o.places, at)
	if at.insert(o) == 0 {
		c.mark(at, at.offers[:min(2, len(at.offers))]...)
	}
}

// insert puts an offer after the offers that come before it or are equal. It returns the offer's index.
func (at *place) insert(o *offer) (i int) {
	i = sort.Search(len(at.offers), func(i int) bool { return at.offers[i].before(o) > 0 })
	at.offers = slices.Insert(at.offers, i, o)
	return i
}

// release gives up all places that an offer claims.
func (c *catalog) release(o *offer) {
	for _, at := range o.places {
		i := slices.Index(at.offers, o)
		at.offers = slices.Delete(at.offers, i, i+1)
		if i == 0 {
			c.mark(at, at.offers[:min(1, len(at.offers))]...)
		}
	}
	o.places = nil
}

// mark marks a place as out of date, and the places that the given offers lead. These depend on its first offer, since
// the owner of a URI has it unlisted under the path of its tab.
func (c *catalog) mark(at *place, of ...*offer) {
	if !at.changed {
		at.changed = true
		c.changed = append(c.changed, at)
	}
	for _, o := range of {
		c.markAll(o)
	}
}

// markAll marks all places where o is the first offer as out of date.
func (c *catalog) markAll(o *offer) {
	for _, at := range o.places {
		if at.offers[0] == o {
			c.mark(at)
		}
	}
}

// segment is the part of a tab's path that tells the page's URIs from those of other tabs and frames.
func (p *Page) segment() string {
	return taburi.Segment(p.tab.number, p.Frame)
}

// refresh brings the engine in line with the places that have changed.
func (g *Gateway) refresh() {
	c := &g.catalog
	changed := c.changed
	c.changed = nil
	inFront := false
	of := func(r *entry) { inFront = inFront || r != nil && r.page.isIn(g.front.info.Tab) }
	for _, at := range changed {
		at.changed = false
		of(c.entries[at.key])
		if len(at.offers) == 0 {
			delete(c.places, at.key)
			g.engine.Unregister(g.now(), at.key) // before the entry goes, in which the door looks up the page
			delete(c.entries, at.key)
		}
	}
	for _, at := range changed {
		if len(at.offers) > 0 {
			r := c.entry(at)
			g.lead(at.key, r)
			of(r)
		}
	}
	if inFront {
		g.touchFront()
	}
}

// entry is the entry of a place's key.
func (c *catalog) entry(at *place) *entry {
	o := at.offers[0]
	shown := o.shown(c)
	r := &entry{page: o.page, segment: o.segment, title: o.words, shown: shown, owner: o.page.Owner()}
	r.shown.URI = at.key
	r.shown.Unlisted = at.key != o.base && c.places[o.base].offers[0] == o || o.standsBack()
	return r
}

// lead sets the entry of an engine's key.
func (g *Gateway) lead(key string, r *entry) {
	c := &g.catalog
	before := c.entries[key]
	if before == nil {
		c.entries[key] = r
		if err := g.engine.Register(g.now(), r.shown); err != nil {
			g.log.Warn("a resource could not be offered", "uri", key, "error", err)
			delete(c.entries, key)
			return
		}
		g.followKey(key, r, false)
		g.eventOffered(key, &r.shown)
		return
	}
	if !reflect.DeepEqual(before.shown.Schema, r.shown.Schema) { // the URI now answers for other URIs
		g.engine.Unregister(g.now(), key)
		delete(c.entries, key)
		g.lead(key, r)
		return
	}
	c.entries[key] = r
	g.engine.Replace(g.now(), r.shown)
	if before.shown.Unlisted {
		g.eventOffered(key, &r.shown)
	}
	if before.page == r.page && before.owner == r.owner {
		return
	}
	g.engine.Seal(key) // a read under way is of the page before, which later readers may not see
	g.eventWished(key, &r.shown)
	if before.page != r.page || g.gains(before.owner, r.owner) {
		g.followKey(key, r, true)
	}
}

// gains reports whether an agent sees what is one owner's, and not what is another's.
func (g *Gateway) gains(before, now bridge.Owner) bool {
	for _, a := range g.agents {
		if a.pass.Permits(now) && !a.pass.Permits(before) {
			return true
		}
	}
	return false
}

// shown is the resource as agents see it: its title names its page.
func (o *offer) shown(c *catalog) bridge.Resource {
	if !o.described {
		o.described = true
		c.described++
		o.describe()
	}
	r := o.resource
	r.Title, r.Meta = o.title, o.meta
	return r
}

func (o *offer) describe() {
	p := o.page
	p.locate()
	// The list has a long name only once. Otherwise 16 MiB of an origin's descriptors would be 32 in it and its copies.
	o.words = o.titled()
	o.title = Shorten(o.words, maxTitle) + p.where
	if saysOffered(o.resource.Name) {
		o.resource.Name = notOffered
	}
	if o.meta = p.meta; len(o.resource.Meta) > 0 {
		o.meta = withMeta(o.resource.Meta, p.tabMeta())
	}
}

// locate makes the text that follows each title of the page's resources, and their _meta. Both are the same for all
// resources of the page.
func (p *Page) locate() {
	if p.where != "" {
		return
	}
	host := p.Origin
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		host = u.Host
	}
	p.where = " - " + pageTitle(p) + " (" + p.whereabouts() + ", " + host + ")"
	p.meta = withMeta(nil, p.tabMeta())
}

func (p *Page) tabMeta() map[string]any {
	return map[string]any{metaTab: p.tab.number, metaKey: p.tab.key, metaSegment: p.segment()}
}

// redescribe updates the title and _meta of all offers of a page.
func (g *Gateway) redescribe(p *Page) {
	p.where = ""
	for _, o := range p.offers {
		o.described = false
		g.catalog.markAll(o)
	}
	g.refresh()
}

func pageTitle(p *Page) string {
	title := cmp.Or(strings.Join(strings.Fields(p.Title), " "), p.URL)
	if saysOffered(title) {
		title = p.Origin
	}
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:77]) + "..."
	}
	return title
}

// Keys of _meta that let a program tell tabs apart.
const (
	metaTab = "pagewire/tab"    // a number
	metaKey = "pagewire/tabKey" // the tab's key, the same for the tab's life
	// N or N.FRAME in the URI's form /.pagewire/tab/N/
	metaSegment = "pagewire/tabSegment"
)

// withMeta adds members to a _meta.
func withMeta(meta []byte, more map[string]any) []byte {
	all := map[string]any{}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(meta, &members) // meta may be empty
	for name, value := range members {
		all[name] = value
	}
	maps.Copy(all, more)
	return text(all)
}

// succeed lets an offer take over its URI from a page that its tab has left.
func (c *catalog) succeed(o *offer) {
	for p := range o.page.tab.pages {
		if old := p.offers[o.resource.URI]; old != nil && o.succeeds(old) {
			c.cede(old)
		}
	}
}

// succeeds reports whether o replaces old, an offer of an absent page.
func (o *offer) succeeds(old *offer) bool {
	p, q := old.page, o.page
	return p.life.left() && !q.life.left() && old.base == o.base && p.tab == q.tab && (p.Frame == q.Frame || q.Frame == "")
}

// succeeded reports whether the offer that replaces old has come already.
func (c *catalog) succeeded(old *offer) bool {
	for p := range old.page.tab.pages {
		if o := p.offers[old.resource.URI]; o != nil && o.succeeds(old) {
			return true
		}
	}
	return false
}

// cede takes an absent page's offer out of the catalog in favour of its successor's.
func (c *catalog) cede(old *offer) {
	delete(old.page.offers, old.resource.URI)
	c.release(old)
	c.relist(old.page)
}

// park keeps a read for the successor of an absent page.
func (p *Page) park(c *call, asked bridge.Request) {
	p.parked = append(p.parked, parked{c, asked})
	p.g.catalog.waiting[p] = true
}

// unpark sends the parked reads whose page has come.
func (g *Gateway) unpark() {
	for _, old := range slices.Collect(maps.Keys(g.catalog.waiting)) {
		waiting := old.parked
		old.parked = nil
		delete(g.catalog.waiting, old)
		for _, w := range waiting {
			if g.calls[w.call.id] == nil {
				continue // the read has ended
			}
			r := g.successor(old, w.asked.URI)
			if r == nil {
				r = &entry{page: old}
			} else {
				w.asked.Key = r.shown.URI
			}
			g.readAt(w.call, r, w.asked)
		}
	}
}

// reown brings the engine in line with a change of focus.
func (g *Gateway) reown(t *tab) {
	c := &g.catalog
	for p := range t.pages {
		for _, o := range p.offers {
			for _, at := range o.places {
				c.reorder(at, t)
			}
		}
	}
	g.refresh()
	g.retool()
	g.settle()
}

// reorder moves the offers of a tab within a place after a change of focus.
func (c *catalog) reorder(at *place, t *tab) {
	first := at.offers[0]
	var moved []*offer
	at.offers = slices.DeleteFunc(at.offers, func(o *offer) bool {
		if o.page.tab == t {
			moved = append(moved, o)
		}
		return o.page.tab == t
	})
	for _, o := range moved {
		at.insert(o)
	}
	if now := at.offers[0]; now != first {
		c.mark(at, now, first)
	}
}

// tab is the number of the tab that an entry leads to.
func (r *entry) tab() int { return r.page.tab.number }
