//go:build !js

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
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
)

// The catalog is what the pages offer, as one list: the same URI in several tabs belongs to the tab that was focused
// last; the others have it under the path of their tab (package taburi). Such a URI also answers where it is not
// listed, so that an agent which has such a URI can keep it.
//
// Browsers have hundreds of tabs of one application. So a change of a page costs as much as the page offers, and does
// not grow with the tabs that have the same URIs: each place keeps its order, and what is shown of an offer is kept.
type catalog struct {
	pages     map[*Page]bool
	tabs      map[string]*tab // by key
	numbers   map[string]int  // of tabs, by key; kept when the tab is gone (tabnumbers.go)
	lastTab   int
	arrivals  int
	focuses   int
	focusNext string            // a tab that was focused before it had a page
	focusedAt bridge.Time       // when one was, by those who say when
	routes    map[string]*route // by the key in the engine
	places    map[string]*place // the same
	changed   []*place          // that the engine does not show as they are now
	waiting   map[*Page]bool    // that have reads which wait for their successor
	retitled  []*Page           // whose titles are to be told anew
	described int               // how often an offer was described
	// ranks are the places of tabs in the order of focus at an earlier gateway, until they have come: tab.focused.
	ranks     map[string]int
	ordered   bool  // a snapshot has said so
	orderedAt int64 // that one's Focused
	// awaits says that the tabs of ranks are to come back within tabsTimeout.
	awaits bool
	// version counts what all agents' snapshots have: tabs' numbers and order, and tools' names. snapshot is that, as of
	// version made.
	version  atomic.Uint64
	made     uint64
	snapshot []byte
}

// firstFocus is below each focus that is told here, and above all ranks of earlier gateways.
const firstFocus = 1 << 20

type tab struct {
	key    string
	number int
	// focused is the greater the later. Ranks of earlier gateways are below: above 0 where it was focused there, and
	// negative where it only came before those that have come here.
	focused int
	closed  bool
	pages   map[*Page]bool
}

// A route is a URI or template in the engine, and where it leads.
type route struct {
	page    *Page
	segment string // of the page's tab, under whose path the page's own URIs are not
	shown   bridge.Resource
}

// own is the page's own URI for one that the route answers for.
func (r *route) own(uri string) string {
	if own, segment := taburi.Split(uri); segment == r.segment {
		return own
	}
	return uri
}

// A place is a key of the engine with all offers that claim it, of which the first has it: the tab that was focused
// last, then the document before its frames, then the page that came last. Pages that are absent keep their place, lest
// a reload in one of two tabs be two changes of owner.
type place struct {
	key     string
	offers  []*offer
	changed bool // it is in catalog.changed
}

func (c *catalog) init() {
	c.pages = map[*Page]bool{}
	c.tabs = map[string]*tab{}
	c.numbers = map[string]int{}
	c.routes = map[string]*route{}
	c.places = map[string]*place{}
	c.waiting = map[*Page]bool{}
	c.focusedAt = math.MinInt64
	c.ranks = map[string]int{}
	c.focuses = firstFocus
}

func (c *catalog) add(p *Page) {
	c.pages[p] = true
	c.arrivals++
	p.order = c.arrivals
	t := c.tabs[p.Tab]
	if t == nil || t.closed {
		t = &tab{key: p.Tab, pages: map[*Page]bool{}, focused: c.ranks[p.Tab]}
		delete(c.ranks, p.Tab)
		c.version.Add(1)
		t.number = c.numbers[p.Tab]
		if t.number == 0 {
			c.lastTab++
			t.number = c.lastTab
			c.numbers[p.Tab] = t.number
			c.trimNumbers()
		}
		c.tabs[p.Tab] = t
		if c.focusNext == p.Tab {
			c.focusNext = ""
			c.focus(t)
		}
	}
	p.tab = t
	t.pages[p] = true
}

func (c *catalog) remove(p *Page) {
	delete(c.pages, p)
	delete(p.tab.pages, p)
	if len(p.tab.pages) == 0 && c.tabs[p.tab.key] == p.tab {
		delete(c.tabs, p.tab.key)
		c.version.Add(1)
	}
}

// focus reports whether that changes anything.
func (c *catalog) focus(t *tab) bool {
	if t.focused == c.focuses {
		return false
	}
	c.focuses++
	t.focused = c.focuses
	c.version.Add(1)
	return true
}

// before orders the offers that claim a place.
func (o *offer) before(other *offer) int {
	p, q := o.page, other.page
	return cmp.Or(
		cmp.Compare(q.tab.focused, p.tab.focused),
		cmp.Compare(truth(p.Frame != ""), truth(q.Frame != "")),
		cmp.Compare(truth(o.resource.URI != o.base), truth(other.resource.URI != other.base)),
		cmp.Compare(q.order, p.order))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// offer puts a resource of a page into the catalog, in place of the one that the page had under that URI.
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
	g.refresh()
	g.unpark()
}

// withdraw takes it out.
func (g *Gateway) withdraw(o *offer) {
	delete(o.page.offers, o.resource.URI)
	g.catalog.release(o)
	g.refresh()
}

// keys are those of the engine that an offer claims: its URI, and the same under the path of its tab.
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
		c.led(at, at.offers[:min(2, len(at.offers))]...)
	}
}

// insert puts an offer behind those that come before it, or are equal.
func (at *place) insert(o *offer) (i int) {
	i = sort.Search(len(at.offers), func(i int) bool { return at.offers[i].before(o) > 0 })
	at.offers = slices.Insert(at.offers, i, o)
	return i
}

// release ends what an offer claims.
func (c *catalog) release(o *offer) {
	for _, at := range o.places {
		i := slices.Index(at.offers, o)
		at.offers = slices.Delete(at.offers, i, i+1)
		if i == 0 {
			c.led(at, at.offers[:min(1, len(at.offers))]...)
		}
	}
	o.places = nil
}

// led notes that a place has another first offer. What those offers claim besides is listed otherwise: the owner of a
// URI has it unlisted under the path of its tab.
func (c *catalog) led(at *place, of ...*offer) {
	c.note(at)
	for _, o := range of {
		c.redo(o)
	}
}

// redo notes all places that an offer is the first of.
func (c *catalog) redo(o *offer) {
	for _, at := range o.places {
		if at.offers[0] == o {
			c.note(at)
		}
	}
}

func (c *catalog) note(at *place) {
	if !at.changed {
		at.changed = true
		c.changed = append(c.changed, at)
	}
}

// segment tells a page's URIs from those of other tabs, and of the other frames of its own, in the path of its tab.
func (p *Page) segment() string {
	return taburi.Segment(p.tab.number, p.Frame)
}

// refresh brings the engine in line with the places that have changed.
func (g *Gateway) refresh() {
	c := &g.catalog
	changed := c.changed
	c.changed = nil
	for _, at := range changed {
		at.changed = false
		if len(at.offers) == 0 {
			delete(c.places, at.key)
			delete(c.routes, at.key)
			g.engine.Unregister(g.now(), at.key)
		}
	}
	for _, at := range changed {
		if len(at.offers) > 0 {
			g.lead(at.key, c.route(at))
		}
	}
}

// route is where the key of a place leads.
func (c *catalog) route(at *place) *route {
	o := at.offers[0]
	r := &route{page: o.page, segment: o.segment, shown: o.shown(c)}
	r.shown.URI = at.key
	r.shown.Unlisted = at.key != o.base && c.places[o.base].offers[0] == o
	return r
}

// lead makes a key of the engine lead where r says.
func (g *Gateway) lead(key string, r *route) {
	c := &g.catalog
	before := c.routes[key]
	if before == nil {
		if err := g.engine.Register(g.now(), r.shown); err != nil {
			g.log.Warn("a resource could not be offered", "uri", key, "error", err)
			return
		}
		c.routes[key] = r
		g.led(key, r, false)
		return
	}
	if !reflect.DeepEqual(before.shown.Schema, r.shown.Schema) { // what the URI answers for is another matter now
		delete(c.routes, key)
		g.engine.Unregister(g.now(), key)
		g.lead(key, r)
		return
	}
	c.routes[key] = r
	g.engine.Replace(g.now(), r.shown)
	if before.page != r.page {
		g.led(key, r, true)
	}
}

// shown is the resource as agents see it: its title says where it is.
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
	r, p := &o.resource, o.page
	title := r.Title
	if title == "" {
		title = r.Name
	}
	// A long name is in the list once: 16 MiB of an origin's descriptors would be 32 in the list, and in whatever holds
	// it.
	p.locate()
	o.title = Shorten(title, maxTitle) + p.where
	if o.meta = p.meta; len(r.Meta) > 0 {
		o.meta = withMeta(r.Meta, p.tabMeta())
	}
}

// locate sees to it that the page has what stands behind the title of each resource, and its _meta: these are the same
// for all that it offers.
func (p *Page) locate() {
	if p.where != "" {
		return
	}
	host := p.Origin
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		host = u.Host
	}
	p.where = " · " + pageTitle(p) + " (tab " + strconv.Itoa(p.tab.number) + ", " + host + ")"
	p.meta = withMeta(nil, p.tabMeta())
}

func (p *Page) tabMeta() map[string]any {
	return map[string]any{metaTab: p.tab.number, metaKey: p.Tab, metaSegment: p.segment()}
}

// redescribe has all that a page offers described anew.
func (g *Gateway) redescribe(p *Page) {
	p.where = ""
	for _, o := range p.offers {
		o.described = false
		g.catalog.redo(o)
	}
	g.refresh()
}

func pageTitle(p *Page) string {
	title := strings.Join(strings.Fields(p.Title), " ")
	if title == "" {
		title = p.URL
	}
	if runes := []rune(title); len(runes) > 80 {
		title = string(runes[:79]) + "…"
	}
	return title
}

// Keys of _meta, by which a program tells tabs apart.
const (
	metaTab = "pagewire/tab"    // a number
	metaKey = "pagewire/tabKey" // what tells the tab from others for its life
	// N, or N.FRAME, of the URI's form /.pagewire/tab/N/, under which it is listed or would be
	metaSegment = "pagewire/tabSegment"
)

// withMeta is a _meta with more members.
func withMeta(meta []byte, more map[string]any) []byte {
	all := map[string]any{}
	if len(meta) > 0 {
		var members map[string]json.RawMessage
		if json.Unmarshal(meta, &members) == nil {
			for name, value := range members {
				all[name] = value
			}
		}
	}
	maps.Copy(all, more)
	return text(all, true)
}

// succeed lets an offer take over its URI from a page that its tab has left.
func (c *catalog) succeed(o *offer) {
	for p := range o.page.tab.pages {
		if old := p.offers[o.resource.URI]; old != nil && o.succeeds(old) {
			c.cede(old)
		}
	}
}

// succeeds reports whether an offer takes the place of one whose page is absent.
func (o *offer) succeeds(old *offer) bool {
	p, q := old.page, o.page
	return p.absent && !q.absent && old.base == o.base && p.tab == q.tab && (p.Frame == q.Frame || q.Frame == "")
}

// succeeded reports whether the page that takes the place of an absent one has come already.
func (c *catalog) succeeded(old *offer) bool {
	for p := range old.page.tab.pages {
		if o := p.offers[old.resource.URI]; o != nil && o.succeeds(old) {
			return true
		}
	}
	return false
}

// cede takes the offer of a page that is absent out of the catalog, for one that has come in its place.
func (c *catalog) cede(old *offer) {
	delete(old.page.offers, old.resource.URI)
	c.release(old)
}

// park keeps a read for the page that takes the place of an absent one.
func (p *Page) park(c *call, asked bridge.Request) {
	p.parked = append(p.parked, parked{c, asked})
	p.g.catalog.waiting[p] = true
}

// unpark sends on the reads that waited for a page which has come.
func (g *Gateway) unpark() {
	for _, old := range slices.Collect(maps.Keys(g.catalog.waiting)) {
		waiting := old.parked
		old.parked = nil
		delete(g.catalog.waiting, old)
		for _, w := range waiting {
			if g.calls[w.call.id] == nil {
				continue // nobody waits any more
			}
			r := &route{page: old}
			if key, ok := g.engine.Find(w.asked.URI); ok && g.catalog.routes[key] != nil {
				r, w.asked.Key = g.catalog.routes[key], key
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

// reorder puts the offers of a tab where they belong after a change of focus.
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
		c.led(at, now, first)
	}
}

// tab is the number of the tab that a route leads to.
func (r *route) tab() int { return r.page.tab.number }
