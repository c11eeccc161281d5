package gateway

import (
	"slices"
	"strings"
	"sync"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/live"
)

const (
	// maxFrontURIs bounds the resources that its contents name, as in a tool's list.
	maxFrontURIs = 200
	// maxFrontURL bounds the URL in its contents, in bytes.
	maxFrontURL = 8 << 10
)

// frontResource is for agents with AgentOptions.Front. Each reads only what it sees. It has at most
// two updates a second, because some pages count in their titles.
var frontResource = bridge.Resource{
	URI: door.FrontURI, Name: "front", Title: "The tab in front of the user",
	MIMEType: "application/json", Size: -1,
	Description: "Which tab the user looks at: its title, URL, live resources and selection. Of a site that you do not " +
		"see it has the origin alone. null is a page without an origin, or an unknown one",
	PerPort: true, MinInterval: 500,
}

// A front is the known state of the tab in front.
type front struct {
	offered bool     // an agent has connected that sees it
	info    PageInfo // of the tab's own document; Origin is "" if it has none, or is unknown
	page    *Page    // the page that has reported its focus; nil if a browser has reported the tab
	told    int      // browsers that report their tabs
	// rerouted says that an entry of the tab has changed, and that this is to be told.
	rerouted bool
}

// noteRoute notes that an entry has come, changed or gone.
func (f *front) noteRoute(e *catalog.Entry) {
	f.rerouted = f.rerouted || e.Page.IsIn(f.info.Tab)
}

// TellsFront says that a browser reports its tab in front by Front, until end is called. Meanwhile
// a page's own word does not count, since any page can claim to have the focus.
func (g *Gateway) TellsFront() (end func()) {
	defer g.lock()()
	if g.front.told++; g.front.page != nil {
		g.setFront(PageInfo{}, nil)
	}
	return sync.OnceFunc(g.locked(func() { g.front.told-- }))
}

// Front reports the tab in front and its own document. came means that the tab has come to the
// front now. Otherwise the report counts only if the tab with the key before is in front; "" means
// that no tab is. info.Origin is "" for a document without an origin, and info.URL is "" for a site
// that the user has not allowed.
func (g *Gateway) Front(info PageInfo, came bool, before string) {
	defer g.lock()()
	if came || before == g.front.info.Tab {
		g.setFront(info, nil)
	}
}

// Behind reports that a tab is no longer in front. The caller reports the tab that is in front now
// by Front.
func (g *Gateway) Behind(key string) {
	defer g.lock()()
	g.behind(key)
}

func (g *Gateway) behind(key string) {
	if g.front.info.Tab == key {
		g.setFront(PageInfo{}, nil)
	}
}

func (g *Gateway) setFront(info PageInfo, by *Page) {
	info = bounded(info)
	info.URL, info.Focused = Shorten(info.URL, maxFrontURL), 0
	g.front.page = by
	if info != g.front.info {
		g.front.info = info
		g.touchFront()
	}
}

func (g *Gateway) touchFront() {
	if g.front.offered {
		g.touch(door.FrontURI)
	}
}

// frontBy notes that a page has the focus, unless a browser reports tabs. For a frame, the tab's
// document counts.
func (g *Gateway) frontBy(p *Page) {
	switch {
	case g.front.told > 0 || p.Transport == "cdp" || p.Transport == "extension":
		return
	case p.Frame == "":
		g.setFront(p.PageInfo, p)
		return
	}
	for own := range g.pages {
		if own.IsIn(p.Tab) && own.Frame == "" && !own.Life().Left() {
			g.setFront(own.PageInfo, own)
			return
		}
	}
	g.setFront(PageInfo{Tab: p.Tab}, nil)
}

// frontLeft notes that a page has gone for good. The document that its tab shows then is unknown.
func (g *Gateway) frontLeft(p *Page) {
	if g.front.page == p {
		g.setFront(PageInfo{}, nil)
	}
}

// offerFront offers the tab in front when the first agent connects that sees it. Until then agents
// without a Scope are not restricted, because a restricted agent costs time at each change of the
// list.
func (g *Gateway) offerFront(a *Agent) {
	if g.front.offered || !a.pass.Sees(door.FrontURI) {
		return
	}
	g.front.offered = true
	for _, other := range g.agents {
		g.restrict(other)
	}
	if err := g.engine.Register(g.now(), frontResource); err != nil {
		g.log.Warn("the tab in front cannot be offered", "error", err)
	}
}

func (g *Gateway) restrict(a *Agent) {
	if a.pass.Restricts(g.front.offered, g.shows.offered) || a.pass.HidesTools() != "" {
		g.engine.Restrict(a.id, a.pass)
	}
}

// frontFor are the contents of door.FrontURI for an agent.
func (g *Gateway) frontFor(a *Agent) []byte {
	info := g.front.info
	var shown struct {
		Tab       int      `json:"tab,omitempty"`
		Where     string   `json:"where,omitempty"`
		Title     string   `json:"title,omitempty"`
		URL       string   `json:"url,omitempty"`
		Origin    *string  `json:"origin"`
		Resources []string `json:"resources,omitzero"`
		More      int      `json:"more,omitempty"` // resources that are not named
		Selection string   `json:"selection,omitempty"`
	}
	if info.Origin != "" {
		shown.Origin = &info.Origin
	}
	permitted := info.URL != "" && a.pass.Permits(g.catalog.OwnerOf(&info))
	for p := range g.catalog.PagesIn(info.Tab) { // they may tell another profile than the browser
		permitted = permitted && (p.Shown || p.Origin != info.Origin || a.pass.Permits(p.Owner()))
	}
	if permitted {
		shown.Tab, shown.Where = g.catalog.Locate(info)
		shown.Title, shown.URL, shown.Resources = info.Title, info.URL, []string{}
		for p := range g.catalog.PagesIn(info.Tab) {
			uris := listedURIs(p, a.pass)
			shown.Resources = append(shown.Resources, uris...)
			for _, uri := range uris {
				if p.Frame == "" && strings.HasSuffix(uri, "/selection") {
					shown.Selection = uri
				}
			}
		}
		slices.Sort(shown.Resources)
		shown.More = max(0, len(shown.Resources)-maxFrontURIs)
		shown.Resources = shown.Resources[:len(shown.Resources)-shown.More]
	}
	return []byte(live.Line([]any{map[string]any{"uri": door.FrontURI,
		"mimeType": frontResource.MIMEType, "text": live.Line(shown)}}))
}

// listedURIs returns the listed URIs of a page's resources that an agent sees, sorted.
func listedURIs(p *catalog.Page, pass *pass) []string {
	hidden := func(uri string) bool { return !pass.Sees(uri) }
	uris := slices.DeleteFunc(slices.Collect(p.Listed), hidden)
	slices.Sort(uris)
	return uris
}

// lookAtFront is look for door.FrontURI. It does not compare contents at one revision, because they
// differ among agents.
func (g *Gateway) lookAtFront(a *Agent) *live.Look {
	g.books.Track([]string{door.FrontURI}, func(string, string) {})
	l := live.DecodeContents(door.FrontURI, g.frontFor(a))
	l.URI, l.Revision = door.FrontURI, g.books.Revision(door.FrontURI)
	return l
}
