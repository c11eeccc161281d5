package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
)

// PageInfo describes an attached page. The caller vouches for it, except for Title and Focused,
// which the page says.
type PageInfo struct {
	// Tab is the key of the page's tab: any text that is unique and stays the same for the tab's
	// life.
	Tab string `json:"-"`
	// Given is the tab id that the page is to use from now on; "" leaves the page its id.
	Given string `json:"-"`
	// Frame is "" for the tab's document. For a frame it is letters, digits and dots, unique in
	// that tab.
	Frame string `json:"frame,omitempty"`
	// Origin is the page's, as self.origin gives it. The page's URIs at other origins are refused.
	Origin string `json:"origin"`
	// URL and Title are for people.
	URL   string `json:"url"`
	Title string `json:"title"`
	// Focused is when the page's window had the focus, in ms since 1970, by the page's own clock; 0
	// if unknown.
	Focused int64 `json:"-"`
	// Transport is "cdp", "websocket" or "extension".
	Transport string `json:"transport"`
	// Browser is the everyday name of its browser, Profile the user's name for the profile, and
	// Window any text that is the same for all pages of a window. Each is "" if unknown.
	Browser string `json:"browser,omitempty"`
	Profile string `json:"profile,omitempty"`
	Window  string `json:"-"`
	// Target is Tab of the same tab by CDP, if the page's transport knows it.
	Target string `json:"-"`
	// Source identifies the page's browser, for NameProfile.
	Source string `json:"-"`
	// Shown means that the user offers the page: it is a source of what a document shows, in a
	// world of its own where the document's scripts are not. Only such a page has the URIs of
	// ShownPath and PartsPath, and it has no others. It is shown to agents whose user has named its
	// origin, and with Granted to all: the user has allowed that in the browser's extension.
	// Launched means that Pagewire launched its browser.
	Shown    bool `json:"shown,omitempty"`
	Granted  bool `json:"-"`
	Launched bool `json:"-"`
}

// A Life is the state of a page. It begins Silent, and only ever goes on to a later one.
type Life uint8

const (
	// Silent is a page that has offered nothing yet: no agent knows of it.
	Silent Life = iota
	// Here is a page whose document is open. From now on it has a tab.
	Here
	// Reloading is a page whose document has gone. Its offers stay for a while, for the next page
	// of its tab, and its reads wait for that one.
	Reloading
	// Gone is a page that no other succeeds. The catalog has nothing of it any more, once it has
	// been removed.
	Gone
)

// Left reports whether the page's document is not open any more.
func (l Life) Left() bool { return l >= Reloading }

// A Page is a page as the catalog knows it. Only the catalog changes it, but for what PageInfo says
// of its document.
type Page struct {
	PageInfo
	// Attached is what the gateway has attached. The catalog does not look at it.
	Attached any
	// InTab is the page's tab, and Order is greater for a page that came later. Arrive sets them,
	// and mergeTabs may change the tab. It is nil if the page has never been Here.
	InTab *Tab
	Order int
	// Offers are the page's resources, by its own URI. Each is also in the places that it claims.
	// There are none while the page is Silent, nor once it is Gone and removed.
	Offers map[string]*Offer

	catalog *Catalog
	life    Life // only Arrive and Leave change it
	window  int  // the number of its window, or 0 as long as that is not known
	// where and meta are what locate has made of the above, for all offers; "" until needed.
	where string
	meta  []byte
}

// NewPage returns a page that is Silent. Attach shows it to the catalog.
func (c *Catalog) NewPage(info PageInfo, attached any) Page {
	return Page{PageInfo: info, Attached: attached, catalog: c, Offers: map[string]*Offer{}}
}

// Attach notes a page that has offered nothing yet.
func (c *Catalog) Attach(p *Page) { c.attached[p] = true }

// Detach takes out a page that is Silent, because another one has its document.
func (c *Catalog) Detach(p *Page) { delete(c.attached, p) }

// Arrive gives a page that offers something a tab: one that has one of the keys.
func (c *Catalog) Arrive(p *Page, keys []string) {
	p.window = c.windowOf(p)
	p.life = Here
	c.arrivals++
	p.Order = c.arrivals
	c.enterTab(p, keys)
	c.mergeTarget(p)
	c.focusAwaited(p)
}

// Leave ends the life of a page whose document has gone. If it may return, it is Reloading until
// Leave is called again. Its offers stay until Yield or Remove.
func (c *Catalog) Leave(p *Page, mayReturn bool) {
	if p.life == Silent {
		delete(c.attached, p)
	}
	if p.life = Gone; mayReturn {
		p.life = Reloading
	}
}

// Yield lets what has come in place of a page that is Reloading already have its keys.
func (c *Catalog) Yield(p *Page) {
	for _, o := range p.Offers {
		if o.isReplaced() {
			c.retire(o)
		}
	}
	c.updateEntries()
	c.listener.PagesChanged()
}

// Remove takes a page that is Gone out of the catalog.
func (c *Catalog) Remove(p *Page) {
	for _, o := range p.Offers {
		c.removeClaims(o)
	}
	p.Offers = map[string]*Offer{}
	c.invalidateShown(p)
	delete(c.attached, p)
	c.leaveTab(p)
	c.updateEntries()
	c.listener.PagesChanged()
}

// Attached are all pages that are not Gone.
func (c *Catalog) Attached() iter.Seq[*Page] { return maps.Keys(c.attached) }

// Pages yields those that are Here or Reloading.
func (c *Catalog) Pages(yield func(*Page) bool) {
	for p := range c.attached {
		if p.life != Silent && !yield(p) {
			return
		}
	}
}

// Life is the page's state.
func (p *Page) Life() Life { return p.life }

// IsIn reports whether the page's tab has a key.
func (p *Page) IsIn(key string) bool {
	return p.Tab == key || p.InTab != nil && p.InTab == p.catalog.tabs.byKey[key]
}

// Segment is the part of a tab's path that tells the page's URIs from those of other tabs and
// frames.
func (p *Page) Segment() string { return taburi.Segment(p.InTab.Number, p.Frame) }

// Listed yields the listed URIs that lead to the page, and no templates.
func (p *Page) Listed(yield func(uri string) bool) {
	for _, o := range p.Offers {
		for _, at := range o.places {
			e := p.catalog.entries[at.key]
			listed := e != nil && e.Page == p && !e.Resource.Unlisted &&
				!strings.Contains(at.key, "{")
			if listed && !yield(at.key) {
				return
			}
		}
	}
}

// NameProfile gives the profile of a browser a name, or takes it away. source is PageInfo.Source of
// its pages.
func (c *Catalog) NameProfile(source string, name *string, named bool) {
	is := func(other *string) bool { return other == name }
	others := slices.DeleteFunc(c.profiles[source], is)
	if named {
		others = append(others, name)
	}
	if c.profiles[source] = others; len(others) == 0 {
		delete(c.profiles, source)
	}
	for p := range c.Pages {
		if p.Source == source {
			c.reprofile(p)
		}
	}
	c.listener.PagesChanged()
}

// reprofile brings all in line with a page whose profile may have another name now.
func (c *Catalog) reprofile(p *Page) {
	c.Redescribe(p)
	c.listener.OwnerChanged(p)
}

// profileOf is the name that the user has given to a page's profile, or "".
func (c *Catalog) profileOf(info *PageInfo) string {
	if names := c.profiles[info.Source]; len(names) > 0 {
		if given := *names[len(names)-1]; !differ(given, info.Profile) {
			return given
		}
		return "" // two ways of the document vouch for different ones
	}
	return info.Profile
}

// differ reports whether two names are known and not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Differs reports whether two pages are known to be of different profiles.
func (p *Page) Differs(q *Page) bool {
	return differ(p.catalog.profileOf(&p.PageInfo), p.catalog.profileOf(&q.PageInfo))
}

// Owner is whose the page is, for the door.
func (p *Page) Owner() bridge.Owner { return p.catalog.OwnerOf(&p.PageInfo) }

// LastOwner is Owner for those who keep it after the page has gone: it holds nothing of the page.
func (p *Page) LastOwner() func() bridge.Owner {
	info, c := p.PageInfo, p.catalog
	return func() bridge.Owner { return c.OwnerOf(&info) }
}

// URIOf is the agents' URI that leads to the page, for a URI that may lead to another tab.
func (p *Page) URIOf(uri string) string {
	if e := p.catalog.EntryOf(uri); e == nil || e.Page == p {
		return uri
	}
	return taburi.Of(uri, p.Segment())
}

// Names are the agents' URIs for the page's own URI that lead to it, or to a page that is absent.
func (p *Page) Names(own string) []string {
	return slices.DeleteFunc([]string{own, taburi.Of(own, p.Segment())}, func(uri string) bool {
		e := p.catalog.EntryOf(uri)
		return e == nil || e.Page != p && !e.Page.Life().Left()
	})
}

// OwnerOf is whose a page would be.
func (c *Catalog) OwnerOf(info *PageInfo) bridge.Owner {
	return bridge.Owner{
		Origin: info.Origin, Profile: c.profileOf(info), Shown: info.Shown,
		Launched: info.Shown && info.Launched, Granted: info.Shown && info.Granted,
	}
}

// Join notes what another way of a page's document knows about it. The key is of its tab.
func (c *Catalog) Join(p *Page, info *PageInfo) {
	p.Browser, p.Profile = cmp.Or(p.Browser, info.Browser), cmp.Or(p.Profile, info.Profile)
	p.Window, p.Source = cmp.Or(p.Window, info.Window), cmp.Or(p.Source, info.Source)
	if p.life != Here {
		return
	}
	c.mergeTabs(info.Tab, p.InTab)
	c.addKey(p.InTab, info.Tab)
	c.focusAwaited(p)
	p.window = cmp.Or(p.window, c.windowOf(p))
	c.reprofile(p)
	c.listener.PagesChanged()
}

// windowOf is the number of a page's window: that of the window's other pages, or the smallest free
// one; 0 if unknown.
func (c *Catalog) windowOf(p *Page) int {
	if p.Window == "" {
		return 0
	}
	taken := map[int]bool{}
	for other := range c.Pages {
		if other != p && other.Window == p.Window {
			return other.window
		}
		taken[other.window] = true
	}
	for n := 1; ; n++ {
		if !taken[n] {
			return n
		}
	}
}

// Whereabouts is a text for people: the page's tab and, if known, its window, browser and profile.
func (p *Page) Whereabouts() string {
	where := "tab " + strconv.Itoa(p.InTab.Number)
	if p.window > 0 {
		where += " in window " + strconv.Itoa(p.window)
	}
	if p.Browser != "" {
		where += " of " + p.Browser
	}
	if profile := p.catalog.profileOf(&p.PageInfo); profile != "" {
		where += ", profile " + profile
	}
	return where
}

// Locate is the number and the whereabouts of a tab, which may have no page.
func (c *Catalog) Locate(info PageInfo) (number int, whereabouts string) {
	p := c.NewPage(info, nil)
	p.InTab = &Tab{Number: c.numberOf(info.Tab)}
	p.window = c.windowOf(&p)
	return p.InTab.Number, p.Whereabouts()
}
