//go:build !js

package gateway

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
)

// The catalog is what the pages offer, as one list: the same URI in several tabs belongs to the tab that was focused last;
// the others have it under #tab=N. Such a URI also answers where it is not listed, so that who holds one keeps it.
type catalog struct {
	pages     map[*Page]bool
	tabs      map[string]*tab // by key
	numbers   map[string]int  // of tabs, by key; kept when the tab is gone: numbers are never used for another
	lastTab   int
	arrivals  int
	focuses   int
	focusNext string            // a tab that was focused before it had a page
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
	page   *Page
	suffix string // "#tab=N", which the page's own URI has not
	shown  bridge.Resource
}

// own is the page's own URI for one that the route answers for.
func (r *route) own(uri string) string { return strings.TrimSuffix(uri, r.suffix) }

// A place is one URI or template with all that offer it.
type place struct{ keys []string } // of routes

func (c *catalog) init() {
	c.pages = map[*Page]bool{}
	c.tabs = map[string]*tab{}
	c.numbers = map[string]int{}
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
		if c.focusNext == p.Tab {
			c.focusNext = ""
			c.focus(t)
		}
	}
	p.tab = t
}

// learn keeps the number that a hub has given to a tab, in case that we are the hub after it.
func (c *catalog) learn(key string, number int) {
	c.numbers[key] = number
	c.lastTab = max(c.lastTab, number)
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

// holders lists who offers a URI, the owner first: who is there before who is absent, then the tab that was focused last, then the
// document before its frames, then who came last.
func (c *catalog) holders(uri string) []*offer {
	var list []*offer
	for p := range c.pages {
		if o := p.offers[uri]; o != nil {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *offer) int {
		rank := func(o *offer) []int {
			return []int{truth(o.page.absent), -o.page.tab.focused, truth(o.page.Frame != ""), -o.page.order}
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

// offered takes what a page offers now, in place of what it offered before. What agents watch is subscribed to at the page
// before they are told that it is there: no change is lost between the two.
func (g *Gateway) offered(p *Page, offers map[string]*offer, tools []toolOffer) {
	g.mu.Lock()
	if p.gone || p.absent {
		g.unlock()
		return
	}
	pending := 1
	ready := make(chan struct{})
	arrived := func() { // with the lock held
		if pending--; pending == 0 {
			close(ready)
		}
	}
	for uri := range g.interest {
		own, ok := g.catalog.wouldLead(uri, p, offers)
		if ok && p.upstream[own] == nil {
			pending++
			g.follow(p, own, arrived)
		}
	}
	arrived()
	g.unlock()
	<-ready

	g.mu.Lock()
	defer g.unlock()
	if p.gone || p.absent {
		return
	}
	before := p.offers
	p.offers = offers
	for uri := range before {
		if offers[uri] == nil {
			g.place(uri)
		}
	}
	// In the order of their text: a page lists in the order of registration, but two lists of it must not differ for us.
	uris := make([]string, 0, len(offers))
	for uri := range offers {
		uris = append(uris, uri)
	}
	slices.Sort(uris)
	for _, uri := range uris {
		g.place(uri)
		g.replaceAbsent(p, uri)
	}
	p.published = tools
	g.retool()
	g.settle()
}

// wouldLead reports under which own URI a watched one would be the page's, given what it offers.
func (c *catalog) wouldLead(uri string, p *Page, offers map[string]*offer) (own string, ok bool) {
	own = uri
	if !p.Hub {
		if i := strings.LastIndex(uri, tabMark); i >= 0 {
			if uri[i:] != p.suffix() {
				return "", false
			}
			own = uri[:i]
		}
	}
	if offers[own] != nil {
		return own, true
	}
	for key := range offers {
		if i := strings.IndexByte(key, '{'); i >= 0 && strings.HasPrefix(own, key[:i]) {
			return own, true // it may be: the page says so when it is asked
		}
	}
	return "", false
}

const tabMark = "#tab="

// suffix is what tells a page's URIs from those of other tabs, and of the other frames of its own.
func (p *Page) suffix() string {
	s := tabMark + strconv.Itoa(p.tab.number)
	if p.Frame != "" {
		s += "." + p.Frame
	}
	return s
}

// place brings the engine in line with who offers a URI now.
func (g *Gateway) place(uri string) {
	c := &g.catalog
	holders := c.holders(uri)
	// Who is absent and has been followed by another page of its tab counts no more.
	wanted := map[string]*route{}
	var keys []string
	want := func(key string, r *route) {
		if wanted[key] == nil {
			wanted[key] = r
			keys = append(keys, key)
		}
	}
	for i, h := range holders {
		if h.page.Hub {
			want(uri, &route{page: h.page, shown: h.resource})
			if key := h.alias(); key != "" {
				r := h.resource
				r.URI, r.Unlisted = key, true
				want(key, &route{page: h.page, shown: r})
			}
			continue
		}
		shown := h.shown()
		if i == 0 {
			want(uri, &route{page: h.page, shown: shown})
		}
		shown.Unlisted = i == 0 || h.page.absent
		suffix := h.page.suffix()
		shown.URI = uri + suffix
		want(shown.URI, &route{page: h.page, suffix: suffix, shown: shown})
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
		return
	}
	c.routes[key] = r
	if before.shown.Unlisted != r.shown.Unlisted || !sameResource(&before.shown, &r.shown) {
		g.engine.Replace(g.now(), r.shown)
	}
	if before.page != r.page {
		g.moved(key, r)
	}
}

func sameResource(a, b *bridge.Resource) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.MIMEType == b.MIMEType && a.Size == b.Size &&
		bytes.Equal(a.Icons, b.Icons) && bytes.Equal(a.Annotations, b.Annotations) && bytes.Equal(a.Meta, b.Meta)
}

// shown is the resource as agents see it: its title says where it is.
func (o *offer) shown() bridge.Resource {
	r, p := o.resource, o.page
	title := r.Title
	if title == "" {
		title = r.Name
	}
	host := p.Origin
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		host = u.Host
	}
	r.Title = title + " · " + pageTitle(p) + " (tab " + strconv.Itoa(p.tab.number) + ", " + host + ")"
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
	metaTab    = "pagewire/tab"    // a number, the N of #tab=N
	metaKey    = "pagewire/tabKey" // what tells the tab from others for its life
	metaSuffix = "pagewire/suffix" // what the URI has or would have behind it in a list with other tabs
)

func (o *offer) meta() []byte {
	all := map[string]json.RawMessage{}
	if len(o.resource.Meta) > 0 && json.Unmarshal(o.resource.Meta, &all) != nil {
		all = map[string]json.RawMessage{}
	}
	all[metaTab] = json.RawMessage(strconv.Itoa(o.page.tab.number))
	all[metaKey], _ = json.Marshal(o.page.Tab)
	all[metaSuffix], _ = json.Marshal(o.page.suffix())
	return text(all, true)
}

// alias is what a hub's plain URI is called when its tab is named, and "" for one that names it already.
func (o *offer) alias() string {
	var meta struct {
		Tab    int    `json:"pagewire/tab"`
		Key    string `json:"pagewire/tabKey"`
		Suffix string `json:"pagewire/suffix"`
	}
	if json.Unmarshal(o.resource.Meta, &meta) != nil || meta.Suffix == "" {
		return ""
	}
	o.page.g.catalog.learn(meta.Key, meta.Tab)
	if strings.HasSuffix(o.resource.URI, meta.Suffix) {
		return ""
	}
	return o.resource.URI + meta.Suffix
}

// replaceAbsent lets a page take over a URI from those that its tab has left, and answer who waits for them.
func (g *Gateway) replaceAbsent(p *Page, uri string) {
	for old := range g.catalog.pages {
		if !old.absent || old.tab != p.tab || old.Frame != p.Frame && p.Frame != "" {
			continue
		}
		if old.offers[uri] != nil {
			delete(old.offers, uri)
			g.place(uri)
		}
		waiting := old.parked
		old.parked = nil
		for _, w := range waiting {
			switch {
			case g.calls[w.call.id] == nil: // nobody waits any more
			case g.catalog.answers(p, w.uri):
				g.readAt(w.call, p, w.uri)
			default:
				old.parked = append(old.parked, w)
			}
		}
	}
}

// answers reports whether a page offers what an own URI is read from.
func (c *catalog) answers(p *Page, own string) bool {
	_, ok := c.wouldLead(own, p, p.offers)
	return ok
}

// reown brings the engine in line with a change of focus.
func (g *Gateway) reown(t *tab) {
	for p := range g.catalog.pages {
		if p.tab == t {
			for uri := range p.offers {
				if len(g.catalog.holders(uri)) > 1 {
					g.place(uri)
				}
			}
		}
	}
	g.retool()
	g.settle()
}
