//go:build !js

package gateway

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
)

// The catalog is what the pages offer, as one list: the same URI in several tabs belongs to the tab that was focused
// last; the others have it under the path of their tab (package taburi). Such a URI also answers where it is not
// listed, so that who holds one keeps it.
type catalog struct {
	pages     map[*Page]bool
	tabs      map[string]*tab // by key
	numbers   map[string]int  // of tabs, by key; kept when the tab is gone: numbers are never used for another
	owners    map[string]bool // the tabs of the hub before us: whether they owned all their URIs
	lastTab   int
	arrivals  int
	focuses   int
	focusNext string            // a tab that was focused before it had a page
	focusedAt int64             // when one was, by those who say when
	told      bool              // which tab is focused, by who knows
	routes    map[string]*route // by the key in the engine
	places    map[string]*place // by the pages' own URI
}

type tab struct {
	key     string
	number  int
	focused int // the later the greater
	closed  bool
	stale   bool // its title is to be told anew
}

// A route is a URI or template in the engine, and where it leads.
type route struct {
	page *Page
	// of the page's tab, under whose path the page's own URIs are not; "" for a hub's, which are taken as they are
	segment string
	shown   bridge.Resource
}

// own is the page's own URI for one that the route answers for.
func (r *route) own(uri string) string {
	if own, segment := taburi.Split(uri); segment == r.segment {
		return own
	}
	return uri
}

// A place is one URI or template with all that offer it.
type place struct{ keys []string } // of routes

func (c *catalog) init() {
	c.pages = map[*Page]bool{}
	c.tabs = map[string]*tab{}
	c.numbers = map[string]int{}
	c.owners = map[string]bool{}
	c.routes = map[string]*route{}
	c.places = map[string]*place{}
}

func (c *catalog) add(p *Page) {
	c.pages[p] = true
	c.arrivals++
	p.order = c.arrivals
	t := c.tabs[p.Tab]
	if t == nil || t.closed {
		t = &tab{key: p.Tab}
		if !p.Hub {
			t.number = c.numbers[p.Tab]
			if t.number == 0 {
				c.lastTab++
				t.number = c.lastTab
				c.numbers[p.Tab] = t.number
			}
		}
		c.tabs[p.Tab] = t
		if c.focusNext == p.Tab || c.owners[p.Tab] && !c.told {
			c.focusNext = ""
			c.focus(t)
		}
	}
	p.tab = t
}

// learn keeps the number that a hub has given to a tab, and whether that owns all its URIs, in case that we are the hub
// after it.
func (c *catalog) learn(key string, number int, owner bool) {
	c.numbers[key] = number
	c.lastTab = max(c.lastTab, number)
	if known, ok := c.owners[key]; ok {
		owner = owner && known
	}
	c.owners[key] = owner
}

func (c *catalog) remove(p *Page) {
	delete(c.pages, p)
	for other := range c.pages {
		if other.tab == p.tab {
			return
		}
	}
	if c.tabs[p.tab.key] == p.tab {
		delete(c.tabs, p.tab.key)
	}
}

// focus reports whether that changes anything.
func (c *catalog) focus(t *tab) bool {
	if t.focused == c.focuses && t.focused > 0 {
		return false
	}
	c.focuses++
	t.focused = c.focuses
	return true
}

// holders lists who offers a URI, the owner first: the tab that was focused last, then the document before its frames,
// then who came last. Who is absent keeps its place, lest a reload in one of two tabs be two changes of owner; so does
// a hub that is gone, until its tabs have come. A hub is in the list once for each of its tabs that has the URI.
func (c *catalog) holders(uri string) []*offer {
	var list []*offer
	for p := range c.pages {
		list = append(list, p.bases[uri]...)
	}
	slices.SortFunc(list, func(a, b *offer) int {
		rank := func(o *offer) []int {
			return []int{truth(!o.page.Hub), -o.page.tab.focused, truth(o.page.Frame != ""),
				truth(o.resource.URI != uri), -o.page.order}
		}
		return slices.Compare(rank(a), rank(b))
	})
	return list
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// offer puts a resource of a page into the catalog, in place of the one that the page had under that URI.
func (g *Gateway) offer(o *offer) {
	p, uri := o.page, o.resource.URI
	if before := p.offers[uri]; before != nil {
		p.bases[before.base] = slices.DeleteFunc(p.bases[before.base], func(b *offer) bool { return b == before })
	}
	p.offers[uri] = o
	p.bases[o.base] = append(p.bases[o.base], o)
	g.succeed(p, o.base)
	g.place(o.base)
	g.unpark()
}

// withdraw takes it out.
func (g *Gateway) withdraw(o *offer) {
	p := o.page
	delete(p.offers, o.resource.URI)
	p.bases[o.base] = slices.DeleteFunc(p.bases[o.base], func(b *offer) bool { return b == o })
	if len(p.bases[o.base]) == 0 {
		delete(p.bases, o.base)
	}
	g.place(o.base)
}

// segment tells a page's URIs from those of other tabs, and of the other frames of its own, in the path of its tab.
func (p *Page) segment() string {
	return taburi.Segment(p.tab.number, p.Frame)
}

// place brings the engine in line with who offers a URI now.
func (g *Gateway) place(uri string) {
	c := &g.catalog
	holders := c.holders(uri)
	wanted := map[string]*route{}
	var keys []string
	want := func(key string, r *route) {
		if wanted[key] == nil {
			wanted[key] = r
			keys = append(keys, key)
		}
	}
	for i, h := range holders {
		r := route{page: h.page, shown: h.shown()}
		if !h.page.Hub {
			r.segment = h.segment
		}
		if i == 0 {
			plain := r
			plain.shown.URI = uri
			want(uri, &plain)
		}
		if h.segment != "" {
			r.shown.URI = taburi.Of(uri, h.segment)
			r.shown.Unlisted = i == 0
			want(r.shown.URI, &r)
		}
	}
	old := c.places[uri]
	if old != nil {
		for _, key := range old.keys {
			if wanted[key] == nil {
				delete(c.routes, key)
				g.engine.Unregister(g.now(), key)
			}
		}
	}
	if len(keys) == 0 {
		delete(c.places, uri)
		return
	}
	c.places[uri] = &place{keys}
	for _, key := range keys {
		g.lead(key, wanted[key])
	}
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

// shown is the resource as agents see it: its title says where it is. A hub has seen to that.
func (o *offer) shown() bridge.Resource {
	r, p := o.resource, o.page
	if p.Hub {
		if p.absent {
			r.Meta = withMeta(r.Meta, map[string]any{metaAbsent: true})
		}
		return r
	}
	title := r.Title
	if title == "" {
		title = r.Name
	}
	host := p.Origin
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		host = u.Host
	}
	// A long name is in the list once: 16 MiB of an origin's descriptors would be 32 in the list, and in whatever holds
	// it.
	r.Title = shorten(title) + " · " + pageTitle(p) + " (tab " + strconv.Itoa(p.tab.number) + ", " + host + ")"
	r.Meta = o.meta()
	return r
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

// Keys of _meta, by which a program tells tabs apart, and one gateway learns of another how it numbers them.
const (
	metaTab = "pagewire/tab"    // a number
	metaKey = "pagewire/tabKey" // what tells the tab from others for its life
	// N, or N.FRAME, of the URI's form /.pagewire/tab/N/, under which it is listed or would be
	metaSegment = "pagewire/tabSegment"
	// metaAbsent is true for what a gateway has from a hub that is gone, until its tabs have come. Another gateway does
	// not take that: it has it from the same dead hub, and the tab's coming is to be news there once, too.
	metaAbsent = "pagewire/absent"
)

func (o *offer) meta() []byte {
	return withMeta(o.resource.Meta, map[string]any{metaTab: o.page.tab.number, metaKey: o.page.Tab,
		metaSegment: o.page.segment()})
}

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

// find says what an offer is called in a list with other tabs. A hub has decided that already, and says so in its
// _meta; its numbers are kept, in case that we are the hub after it.
func (o *offer) find() {
	o.base = o.resource.URI
	if !o.page.Hub {
		o.segment = o.page.segment()
		return
	}
	var meta struct {
		Tab     int    `json:"pagewire/tab"`
		Key     string `json:"pagewire/tabKey"`
		Segment string `json:"pagewire/tabSegment"`
	}
	if json.Unmarshal(o.resource.Meta, &meta) != nil || meta.Segment == "" {
		return
	}
	o.segment = meta.Segment
	if own, segment := taburi.Split(o.base); segment == o.segment {
		o.base = own
	}
	o.page.g.catalog.learn(meta.Key, meta.Tab, o.base == o.resource.URI)
}

// succeed lets a page take over a URI from one that its tab has left, or from a hub that is gone.
func (g *Gateway) succeed(p *Page, uri string) {
	for old := range g.catalog.pages {
		if old.absent {
			old.cede(p, uri)
		}
	}
}

// cede gives a URI of a page that is absent to one that has come in its place.
func (p *Page) cede(to *Page, uri string) {
	if !p.Hub && (p.tab != to.tab || p.Frame != to.Frame && to.Frame != "") {
		return
	}
	p.bases[uri] = slices.DeleteFunc(p.bases[uri], func(o *offer) bool {
		if p.Hub && !slices.ContainsFunc(to.bases[uri], func(n *offer) bool { return n.segment == o.segment }) {
			return false // another tab's, which has not come
		}
		delete(p.offers, o.resource.URI)
		return true
	})
}

// unpark sends on the reads that waited for a page which has come.
func (g *Gateway) unpark() {
	for old := range g.catalog.pages {
		waiting := old.parked
		if len(waiting) == 0 {
			continue
		}
		old.parked = nil
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
	for p := range g.catalog.pages {
		if p.tab == t {
			for uri := range p.bases {
				if len(g.catalog.holders(uri)) > 1 {
					g.place(uri)
				}
			}
		}
	}
	g.retool()
	g.settle()
}

// tab is the number of the tab that a route leads to.
func (r *route) tab() int {
	if !r.page.Hub {
		return r.page.tab.number
	}
	var meta struct {
		Tab int `json:"pagewire/tab"`
	}
	_ = json.Unmarshal(r.shown.Meta, &meta)
	return meta.Tab
}
