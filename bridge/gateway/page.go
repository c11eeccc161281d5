package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/link"
)

// PageInfo describes an attached page. The caller vouches for it, except for Title and Focused, which the page says.
type PageInfo struct {
	// Tab is the key of the page's tab: any text that is unique and stays the same for the tab's life.
	Tab string `json:"-"`
	// Given is the tab id that the page is to use from now on; "" leaves the page its id.
	Given string `json:"-"`
	// Frame is "" for the tab's document. For a frame it is letters, digits and dots, unique in that tab.
	Frame string `json:"frame,omitempty"`
	// Origin is the page's, as self.origin gives it. The page's URIs at other origins are refused.
	Origin string `json:"origin"`
	// URL and Title are for people.
	URL   string `json:"url"`
	Title string `json:"title"`
	// Focused is when the page's window had the focus, in ms since 1970, by the page's own clock; 0 if unknown.
	Focused int64 `json:"-"`
	// Transport is "cdp", "websocket" or "extension".
	Transport string `json:"transport"`
	// Browser is the everyday name of its browser, Profile the user's name for the profile, and Window any text that is
	// the same for all pages of a window. Each is "" if unknown.
	Browser string `json:"browser,omitempty"`
	Profile string `json:"profile,omitempty"`
	Window  string `json:"-"`
	// Target is Tab of the same tab by CDP, if the page's transport knows it.
	Target string `json:"-"`
	// Source identifies the page's browser, for NameProfile.
	Source string `json:"-"`
	// Shown means that the user offers the page: it is a source of what a document shows, in a world
	// of its own where the document's scripts are not. Only such a page has the URIs of ShownPath and
	// PartsPath, and it has no others. It is shown to agents whose user has named its origin, and with
	// Granted to all: the user has allowed that in the browser's extension. Launched means that
	// Pagewire launched its browser.
	Shown    bool `json:"shown,omitempty"`
	Granted  bool `json:"-"`
	Launched bool `json:"-"`
}

// A Page is an attached page.
type Page struct {
	PageInfo
	g      *Gateway
	own    *linked    // of the transport that has called Attach; without a peer if runner is set
	shared Sharer     // nil if only this gateway uses the page
	runner ToolRunner // runs the tools of a page that has only tools
	done   chan struct{}
	ctx    context.Context // ends when the page is gone, with the work on what it gave
	cancel context.CancelFunc
	worked atomic.Int64 // take's working time, in ns

	// Guarded by the gateway's lock. Another page may have the document: own.p. Then all below is unused.
	link      *linked   // the way in use; nil if runner is set
	ways      []*linked // of the document (ways.go); the last one stays when the page has gone
	tab       *tab      // nil if the page has never been here
	order     int       // of arrival
	window    int       // its number; 0 if it is not known
	epoch     string    // of the document, from its page layer; "" if unknown
	life      life
	still     bool // it does not start a call: a page that reacts has its tools' plain names
	parked    []parked
	retitled  bool   // it is in catalog.retitled
	where     string // set by locate, as meta is; "" until needed
	meta      []byte
	offers    map[string]*offer // by the page's own URI
	published []toolOffer
	learned   map[string]gate.Names // names of arguments that its tools have had for agents, by tool
	aliases   int                   // names that learned has room for
	// left says, by callKey, when nobody waited any more for a call that may have begun.
	left      map[[32]byte]time.Time
	settled   bool              // it has listed its tools
	toolBytes int               // what fitTools counts for published
	said      []string          // what runner has reported
	crowded   bool              // its console says that some of its tools are not listed
	watches   map[string]*watch // the subscriptions at the page, by its own URI
	wide      map[string]int64  // the revisions of its resources that answer for more URIs
	document  string            // its name in cursors of events; "" until it is needed
}

// A life is the state of a page. It begins silent, and only ever goes on to a later one.
type life uint8

const (
	// Silent is a page that has offered nothing yet: no agent knows of it.
	Silent life = iota
	// Here is a page whose document is open. From now on the catalog has it, with its tab.
	Here
	// Reloading is a page whose document has gone. Its offers stay for Options.Grace, for the next
	// page of its tab, and its reads wait for that one.
	Reloading
	// Gone is a page of which the catalog has nothing any more, and which no other succeeds.
	Gone
)

// left reports whether the page's document is not open any more.
func (l life) left() bool { return l >= Reloading }

// A Sharer stands between the transport of a page and the gateway, so that the page has other cores too.
type Sharer interface {
	// Receive takes a frame of the page. An error is a *link.Ended, and the page has been told.
	Receive(frame []byte) error
	// Send takes a frame of the gateway, and at last nil.
	Send(frame []byte)
}

// An offer is a resource of a page.
type offer struct {
	page          *Page
	resource      bridge.Resource // as the page describes it
	base, segment string          // its URI, and the segment of the tab's path for its other URI; "" for none
	places        []*place        // the places that it claims
	described     bool            // title and meta, which agents see, are up to date
	words, title  string          // its title, and that with its page's
	meta          []byte
}

// parked is a read that waits for the page's successor.
type parked struct {
	call  *call
	asked bridge.Request
}

// A reply is a page's answer.
type reply struct {
	contents []byte       // that the gate has passed
	parts    []gate.Part  // of contents of a read
	meta     []byte       // the members of a tool's result's _meta
	result   *gate.Result // of a tool, from the page
	revision int64
	failure  bridge.Failure
	detail   string
	gone     bool     // the page went away before it answered
	stale    []string // the agents' URIs that have changed, so that the tool did not run
}

var lost = reply{failure: bridge.ReadFailed, detail: "the page went away before it answered", gone: true}

// ErrDenied is the error of Attach for a page whose origin is not served.
var ErrDenied = errors.New("pages of this origin are not served")

func (g *Gateway) newPage(info PageInfo) *Page {
	p := &Page{PageInfo: info, g: g, done: make(chan struct{}), offers: map[string]*offer{},
		watches: map[string]*watch{}, learned: map[string]gate.Names{}, aliases: maxAliases,
		left: map[[32]byte]time.Time{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.own = &linked{of: p, p: p, info: info, closed: true}
	p.ways = []*linked{p.own}
	return p
}

// Attach takes on a page at the other end of a link. Receive takes the page's frames, beginning with its hello. send is
// called with frames for the page, in order, one at a time, without the gateway's lock; it must not block. At last send
// is called with nil, to close the transport. The caller reports the end of the transport with Lost. The page is shown
// to agents once it offers something. Attach fails with ErrDenied or ErrClosed.
func (g *Gateway) Attach(info PageInfo, send func(frame []byte)) (*Page, error) {
	return g.attach(info, func(p *Page) {
		p.own = newLinked(p, send)
		p.link, p.ways = p.own, []*linked{p.own}
		if g.showing(p); g.opt.Share == nil {
			return
		}
		if p.shared = g.opt.Share(p.PageInfo, p.apply, send); p.shared != nil {
			p.own.send = p.shared.Send
		}
	})
}

// withoutQuery cuts an URL before its query and fragment, which may let their reader in.
func withoutQuery(url string) string { return url[:strings.IndexAny(url+"?", "?#")] }

func (info PageInfo) bounded() PageInfo {
	info.Title = Shorten(info.Title, maxTitle)
	if info.Shown { // lists and the log have its URL
		info.URL = withoutQuery(info.URL)
	}
	info.Profile = Shorten(strings.Join(strings.Fields(info.Profile), " "), MaxProfile)
	return info
}

func (g *Gateway) attach(info PageInfo, connect func(*Page)) (*Page, error) {
	if !g.Admits(info.Origin) {
		return nil, fmt.Errorf("%s: %w", info.Origin, ErrDenied)
	}
	p := g.newPage(info.bounded())
	defer g.lock()()
	if g.closed {
		return nil, ErrClosed
	}
	connect(p)
	g.silent[p] = true
	if info.Focused > 0 {
		g.focusAt(p, info.Focused)
	}
	return p, nil
}

// Receive takes a frame of the page. The frame must not be changed afterwards. An error is a *link.Ended. Then the
// page has been told the reason.
func (p *Page) Receive(frame []byte) error {
	if p.shared == nil {
		return p.apply(frame)
	}
	err := p.shared.Receive(frame)
	if err != nil {
		p.Refuse(err.Error())
	}
	return err
}

func (p *Page) apply(frame []byte) error {
	g, l := p.g, p.own
	began := g.opt.wallClock()
	g.tap(Event{Way: FromPage, Page: p.URL, Text: frame})
	f := link.Parse(frame, g.opt.PageLimits)
	f.Check(p.check)
	f.EachTool(typed)
	parsed := g.opt.wallClock()
	defer g.lock()()
	locked := g.opt.wallClock()
	err := l.peer.Apply(g.now(), f)
	l.settle(err)
	if l.peer.Heard() == 2 && !l.closed {
		l.settled()
	}
	p.worked.Add(int64(parsed.Sub(began) + g.opt.wallClock().Sub(locked)))
	return err
}

// check is the gate for the page's answers. A read's answer is an array.
func (p *Page) check(a link.Answer) (link.Answer, error) {
	if text := bytes.TrimLeft(a.Contents, " \t\r\n"); len(text) > 0 && text[0] == '{' {
		result, err := gate.ToolResult(text, p.owns)
		a.Checked = result
		return a, err
	}
	c, err := gate.ReadContents(a.Contents, p.owns)
	if a.Checked = c; c.Why != "" {
		a.Failure, a.Detail = bridge.InvalidContents, c.Why
	} else {
		a.Contents = c.JSON
	}
	return a, err
}

// Worked is the working time on the page's frames, without the wait for the lock.
func (p *Page) Worked() time.Duration { return time.Duration(p.worked.Load()) }

// Refuse ends the page's link for a frame that its transport did not accept, such as one that is too long. The page and
// its waiting readers get the reason, as for a fault that Receive finds.
func (p *Page) Refuse(reason string) {
	defer p.g.lock()()
	if l := p.own; p.runner == nil {
		l.settle(l.peer.Refuse(reason))
		return
	}
	p.g.countRefused(reason)
	p.depart(reason, false)
}

// CountRefused counts a page that was refused before it was attached, in Snapshot's Ended.
func (g *Gateway) CountRefused(reason string) {
	defer g.lock()()
	g.countRefused(reason)
}

// LimitCalls sets a function that is called before each read and tool call of the page. full returns the agent's error
// if too much waits for the page's transport. It is called with the gateway's lock held, and must not block.
func (p *Page) LimitCalls(full func() error) {
	defer p.g.lock()()
	p.own.full = full
}

// maxReasons bounds the different reasons, because some of them quote the page.
const maxReasons = 100

func (g *Gateway) countRefused(reason string) {
	reason = Shorten(reason, maxWords)
	if g.refusals[reason] == 0 && len(g.refusals) >= maxReasons {
		reason = "others"
	}
	g.refusals[reason]++
}

// owns reports whether a URI is at the page's origin, and outside the gateway's path. Of a source
// of what a document shows it reports whether the URI is of that.
func (p *Page) owns(uri string) bool {
	if p.Shown {
		return p.ownsShown(uri)
	}
	return !taburi.Reserved(uri) && (strings.HasPrefix(uri, p.Origin+"/") ||
		p.g.opt.AnyScheme && !strings.HasPrefix(uri, "http:") && !strings.HasPrefix(uri, "https:"))
}

// setTools replaces the page's tools. An error says what was left out. The rest is taken.
func (p *Page) setTools(tools []bridge.Tool) error {
	if p.life.left() {
		return nil
	}
	p.settled = true
	var refused error
	var offers []toolOffer
	for _, t := range tools {
		if p.g.tools.names.LookLikeOurs(t.Name) {
			p.g.log.Warn("refused a tool whose name looks like one of the gateway's own", "tool", t.Name, "origin", p.Origin)
			continue
		}
		tool := t.Typed.(*gate.Tool)
		p.report(tool.Told())
		if tool.Left() {
			continue
		}
		offers = append(offers, p.offerOf(tool, len(t.JSON)))
	}
	if len(offers) > 0 {
		p.arrive()
	}
	if p.life == Here && len(offers)+len(p.published) > 0 {
		p.published = offers
		refused = cmp.Or(p.g.fitTools(p), refused)
		p.g.retool()
	}
	return refused
}

// Done is closed when the page is no longer attached.
func (p *Page) Done() <-chan struct{} { return p.done }

// Lost reports that the page's transport has ended. Its resources stay for Options.Grace, for the tab's next page.
func (p *Page) Lost(reason string) {
	defer p.g.lock()()
	p.leave(reason, true)
}

// Close removes the page and its resources at once, unless its document has another way.
func (p *Page) Close(reason string) {
	defer p.g.lock()()
	p.leave(reason, false)
	p.own.close()
}

// arrive adds a page to the catalog when it offers something for the first time.
func (p *Page) arrive() {
	if p.life != Silent {
		return
	}
	p.life = Here
	delete(p.g.silent, p)
	p.g.catalog.add(p)
	p.g.unite(p)
	p.g.focusNow(p)
	p.g.visited(p)
	p.g.log.Info(kinds[p.Shown]+" attached", "tab", p.tab.number, "origin", p.Origin, "url", p.URL, "transport", p.Transport)
}

// depart ends a page, and all ways of its document. With mayReturn its resources stay for a while, in case the tab comes
// back with them. The lock is held.
func (p *Page) depart(reason string, mayReturn bool) {
	g := p.g
	switch p.life {
	case Reloading:
		if !mayReturn {
			g.drop(p)
		}
		return
	case Gone:
		return
	case Silent: // no agent has seen it
		p.life = Gone
		delete(g.silent, p)
		g.frontLeft(p)
		p.end()
		p.cancel()
		return
	}
	g.log.Info(kinds[p.Shown]+" gone", "tab", p.tab.number, "url", p.URL, "reason", reason)
	if p.life = Gone; mayReturn && !g.closed {
		p.life = Reloading
	}
	watches := p.watches
	p.watches = map[string]*watch{}
	for _, w := range watches {
		w.settle()
	}
	p.end() // its waiting reads are parked or answered
	if p.life == Gone {
		g.remove(p)
		return
	}
	for _, o := range p.offers {
		if g.catalog.succeeded(o) { // its successor came before its end was noticed
			g.catalog.cede(o)
		}
	}
	g.refresh()
	g.retool()
	time.AfterFunc(g.opt.Grace, g.locked(func() { g.drop(p) }))
}

// drop ends the time for which a page that is being reloaded stays.
func (g *Gateway) drop(p *Page) {
	if p.life == Reloading {
		p.life = Gone
		g.remove(p)
	}
}

// remove takes a page that is gone out of the catalog.
func (g *Gateway) remove(p *Page) {
	p.cancel()
	g.left(p)
	g.frontLeft(p)
	if p.link != nil {
		p.link.count()
	}
	for _, o := range p.offers {
		g.catalog.release(o)
	}
	p.offers, p.published = map[string]*offer{}, nil
	g.catalog.relist(p)
	g.catalog.remove(p)
	g.refresh()
	waiting := p.parked
	p.parked = nil
	delete(g.catalog.waiting, p)
	for _, w := range waiting {
		g.addMissed(w.asked.URI)
		g.complete(w.call, lost)
	}
	g.retool()
	g.settle()
	if p.Shown {
		g.revoke()
	}
}

// CloseTab removes the pages of a closed tab at once.
func (g *Gateway) CloseTab(key string) {
	defer g.lock()()
	g.behind(key)
	delete(g.shows.tabs, key)
	for w := range maps.Clone(g.continued) {
		if w.o.page.isIn(key) {
			g.complete(w.c.call, lost)
		}
	}
	if t := g.catalog.tabs[key]; t != nil {
		for p := range t.pages {
			p.depart("its tab was closed", false)
		}
	}
}

// Focus reports that the user looks at a tab. The tab then owns the URIs that other tabs have too.
func (g *Gateway) Focus(key string) {
	defer g.lock()()
	g.catalog.focusedAt = g.now()
	g.focus(key)
}

// focusAt is Focus for a page that gives the time, in ms since 1970, and does not know about other tabs' focus since.
// Times are compared by our monotonic clock. Otherwise a tab focused while the wall clock was ahead would stay the last
// one until the time has caught up.
func (g *Gateway) focusAt(p *Page, at int64) {
	ago := max(0, g.opt.wallClock().UnixMilli()-at)
	if when := g.now() - bridge.Time(ago); when >= g.catalog.focusedAt {
		g.catalog.focusedAt = when
		g.focus(p.Tab)
		g.frontBy(p)
	}
}

func (g *Gateway) focus(key string) {
	if t := g.catalog.tabs[key]; t == nil {
		g.catalog.focusNext = key // the page has not come yet
	} else if g.catalog.focus(t) {
		g.reown(t)
	}
}

// focusNow focuses a page's tab if that came to the front before one of its keys was known.
func (g *Gateway) focusNow(p *Page) {
	if next := g.catalog.focusNext; next != "" && p.isIn(next) {
		g.catalog.focusNext = ""
		g.focus(next)
	}
}

// Retitle sets a page's title. Agents get it within a few seconds, not at once: some pages count in their titles.
func (p *Page) Retitle(title string) {
	defer p.g.lock()()
	if d := p.own.p; d.link == nil || d.link == p.own {
		d.retitle(title)
	}
}

const maxTitle = 1 << 10

// MaxProfile bounds the name of a profile, in bytes.
const MaxProfile = 64

// Shorten cuts a text to at most so many bytes, between characters.
func Shorten(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}

func (p *Page) retitle(title string) {
	g := p.g
	title = Shorten(title, maxTitle)
	if p.Title == title || p.life == Gone {
		return
	}
	p.Title = title
	if now := g.front.info; p.Frame == "" && p.isIn(now.Tab) && p.Origin == now.Origin {
		now.Title = title
		g.setFront(now, g.front.page)
	}
	if p.life == Silent || p.retitled {
		return
	}
	p.retitled = true
	if g.catalog.retitled = append(g.catalog.retitled, p); len(g.catalog.retitled) == 1 {
		time.AfterFunc(retitleDelay, g.announceTitles)
	}
}

// retitleDelay is how long new titles are collected for one announcement, because each announcement makes agents list
// everything again.
const retitleDelay = 3 * time.Second

// announceTitles redescribes the pages with new titles. It holds the lock for one page at a time.
func (g *Gateway) announceTitles() {
	var pages []*Page
	g.locked(func() { pages, g.catalog.retitled = g.catalog.retitled, nil })()
	for _, p := range pages {
		g.locked(func() {
			p.retitled = false
			if p.life != Gone {
				g.redescribe(p)
			}
		})()
	}
}
