//go:build !js

package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/internal/taburi"
	"github.com/pagewire/pagewire/bridge/link"
)

// PageInfo says what page is attached. Who attaches it vouches for it: nothing in it is the page's own word, but for
// Title and Focused.
type PageInfo struct {
	// Tab is the tab that the page is in: any text that stays the same for the tab's life, and is no other tab's.
	Tab string `json:"-"`
	// Given is the id of its tab that the page is told to have from now on; "" leaves it that which it has.
	Given string `json:"-"`
	// Frame is "" for the document of the tab, and for a frame in it letters, digits and dots that are no other frame's
	// of that tab.
	Frame string `json:"frame,omitempty"`
	// Origin is the page's, as self.origin gives it. URIs at other origins are not taken from it.
	Origin string `json:"origin"`
	// URL and Title are for people.
	URL   string `json:"url"`
	Title string `json:"title"`
	// Focused is when the page's window had the focus, in ms since 1970, by the page's own clock; 0 if nobody says.
	Focused int64 `json:"-"`
	// Transport says how the page came: "cdp", "websocket", "extension".
	Transport string `json:"transport"`
}

// A Page is a page that is attached.
type Page struct {
	PageInfo
	g      *Gateway
	link   *linked    // nil for a page of tools alone,
	runner ToolRunner // which this runs
	done   chan struct{}
	worked time.Duration // of Receive's caller

	// Guarded by the gateway's lock.
	tab       *tab   // nil until it has offered something
	order     int    // of arrival
	epoch     string // of the document, as its page layer says; "" if it does not
	absent    bool
	gone      bool
	parked    []parked
	retitled  bool   // it is in catalog.retitled
	where     string // of locate, as meta; "" until it is asked for
	meta      []byte
	offers    map[string]*offer // by the page's own URI
	published []toolOffer
	toolBytes int               // what published is accounted for: toolRoom
	crowded   bool              // its developer has been told that not all of them are listed
	watches   map[string]*watch // by the page's own URI: what is watched there
}

// An offer is a resource of a page.
type offer struct {
	page          *Page
	resource      bridge.Resource // as the page describes it
	base, segment string          // its URI, and the segment of its tab, in whose path it is besides; "" if it is not
	places        []*place        // that it claims
	described     bool            // title and meta are as agents are to see them
	title         string
	meta          []byte
}

// parked is a read that waits for the page's successor.
type parked struct {
	call  *call
	asked bridge.Request
}

// A reply is a page's answer to a question of ours.
type reply struct {
	contents []byte // or a tool's result
	sound    bool   // they have been checked
	revision int64
	failure  bridge.Failure
	detail   string
	gone     bool     // the page went away before it answered
	stale    []string // of unless, as agents know them: what has changed, so that the tool did not run
}

var lost = reply{failure: bridge.ReadFailed, detail: "the page went away before it answered", gone: true}

// ErrDenied is what Attach returns for a page whose origin is not served.
var ErrDenied = errors.New("pages of this origin are not served")

func (g *Gateway) newPage(info PageInfo) *Page {
	return &Page{PageInfo: info, g: g, done: make(chan struct{}), offers: map[string]*offer{},
		watches: map[string]*watch{}}
}

// Attach takes a page on, at the other end of a link: Receive takes its frames, of which the first is its hello, and
// send is called with those for it, in order, one at a time, and without the gateway's lock, and at last with nil, when
// the transport is to be closed; it must not block. The page is shown to agents as soon as it offers something. When
// its transport has ended Lost says so. It fails with ErrDenied or ErrClosed.
func (g *Gateway) Attach(info PageInfo, send func(frame []byte)) (*Page, error) {
	return g.attach(info, func(p *Page) { p.link = newLinked(p, send) })
}

func (g *Gateway) attach(info PageInfo, connect func(*Page)) (*Page, error) {
	if !g.Admits(info.Origin) {
		return nil, fmt.Errorf("%s: %w", info.Origin, ErrDenied)
	}
	info.Title = Shorten(info.Title, maxTitle)
	p := g.newPage(info)
	g.mu.Lock()
	defer g.unlock()
	if g.closed {
		return nil, ErrClosed
	}
	connect(p)
	g.silent[p] = true
	if info.Focused > 0 {
		g.focusAt(p.Tab, info.Focused)
	}
	return p, nil
}

// Receive takes a frame of the page, which must not be changed any more. An error is a *link.Ended: the page has been
// told.
func (p *Page) Receive(frame []byte) error {
	g, l := p.g, p.link
	began := g.opt.wallClock()
	g.tap(Event{Way: FromPage, Page: p.URL, Text: frame})
	f := link.Parse(frame, g.opt.PageLimits)
	f.Check(p.owns)
	parsed := g.opt.wallClock()
	g.mu.Lock()
	defer g.unlock()
	locked := g.opt.wallClock()
	err := l.peer.Apply(g.now(), f)
	l.settle(err)
	p.worked += parsed.Sub(began) + g.opt.wallClock().Sub(locked)
	return err
}

// Worked is how long the gateway has been at work on the page's frames, without what it waited for its lock. It is for
// the goroutine that calls Receive.
func (p *Page) Worked() time.Duration { return p.worked }

// Refuse ends the page's link for what its transport did not take of it, such as a frame that was too long. The page
// and those who wait for it are told why, as they are where Receive finds it.
func (p *Page) Refuse(reason string) {
	g := p.g
	g.mu.Lock()
	defer g.unlock()
	if l := p.link; l != nil {
		l.settle(l.peer.Refuse(reason))
		return
	}
	g.countRefused(reason)
	p.depart(reason, false)
}

// CountRefused counts a page that was let go for what it said before it was one: Snapshot's Ended.
func (g *Gateway) CountRefused(reason string) {
	g.mu.Lock()
	defer g.unlock()
	g.countRefused(reason)
}

// LimitCalls has full asked before each read and tool call of the page: an error is what the agent is told in place of
// an answer, since too much waits for the page's transport already. It is called with the gateway's lock held, and must
// not block.
func (p *Page) LimitCalls(full func() error) {
	p.g.mu.Lock()
	defer p.g.unlock()
	p.link.full = full
}

// maxReasons bounds how many reasons are told apart: some name what the page has said.
const maxReasons = 100

func (g *Gateway) countRefused(reason string) {
	reason = Shorten(reason, maxWords)
	if g.refusals[reason] == 0 && len(g.refusals) >= maxReasons {
		reason = "others"
	}
	g.refusals[reason]++
}

// owns reports whether a URI is at the page's origin, and not under the path that is ours.
func (p *Page) owns(uri string) bool {
	if taburi.Reserved(uri) {
		return false
	}
	if strings.HasPrefix(uri, p.Origin+"/") {
		return true
	}
	return p.g.opt.AnyScheme && !strings.HasPrefix(uri, "http:") && !strings.HasPrefix(uri, "https:")
}

// setTools takes the page's tools, in place of what it had before. An error says which are left out: all others are
// taken.
func (p *Page) setTools(tools []bridge.Tool) error {
	if p.absent {
		return nil
	}
	var refused error
	var offers []toolOffer
	for _, t := range tools {
		if p.g.tools.names.LookLikeOurs(t.Name) {
			p.g.log.Warn("refused a tool whose name looks like one of the gateway's own", "tool", t.Name, "origin",
				p.Origin)
			continue
		}
		o, err := decodeTool(t)
		if err != nil {
			refused = err
			continue
		}
		o.fresh = freshnessOf(o.tool.Meta, p.owns)
		offers = append(offers, o)
	}
	if len(offers) > 0 {
		p.arrive()
	}
	if p.tab != nil {
		p.published = offers
		if err := p.g.fitTools(p); err != nil {
			refused = err
		}
		p.g.retool()
	}
	return refused
}

// Done is closed when the page is no longer attached.
func (p *Page) Done() <-chan struct{} { return p.done }

// Lost says that the page's transport has ended. Its resources wait for the tab's next page, for Options.Grace.
func (p *Page) Lost(reason string) {
	p.g.mu.Lock()
	defer p.g.unlock()
	p.depart(reason, true)
}

// Close gives the page up. Its resources go at once.
func (p *Page) Close(reason string) {
	p.g.mu.Lock()
	defer p.g.unlock()
	p.depart(reason, false)
	p.link.close()
}

// arrive shows a page that offers something for the first time.
func (p *Page) arrive() {
	if p.tab != nil {
		return
	}
	delete(p.g.silent, p)
	p.g.catalog.add(p)
	p.g.log.Info("page attached", "tab", p.tab.number, "origin", p.Origin, "url", p.URL, "transport", p.Transport)
}

// depart takes a page out of the catalog. With mayReturn set its resources stay for a while, in case that the tab comes
// back with them. The lock is held.
func (p *Page) depart(reason string, mayReturn bool) {
	g := p.g
	if p.absent || p.gone {
		if !mayReturn {
			g.drop(p)
		}
		return
	}
	close(p.done)
	if p.tab == nil { // nobody has seen it
		delete(g.silent, p)
		p.absent, p.gone = true, true
		p.link.close()
		return
	}
	g.log.Info("page gone", "tab", p.tab.number, "url", p.URL, "reason", reason)
	stays := mayReturn && !g.closed && !p.tab.closed
	p.absent = true
	before := p.watches
	p.watches = map[string]*watch{}
	for _, w := range before {
		w.settle()
	}
	p.link.close() // reads that wait are parked, or answered
	if !stays {
		g.drop(p)
		return
	}
	for _, o := range p.offers {
		if g.catalog.succeeded(o) { // its successor came before its end was noticed
			g.catalog.cede(o)
		}
	}
	g.refresh()
	g.retool()
	time.AfterFunc(g.opt.Grace, func() {
		g.mu.Lock()
		defer g.unlock()
		g.drop(p)
	})
}

// drop ends a page's part in the catalog.
func (g *Gateway) drop(p *Page) {
	if p.gone || p.tab == nil {
		return
	}
	p.absent, p.gone = true, true
	if p.link != nil {
		p.link.count()
	}
	for _, o := range p.offers {
		g.catalog.release(o)
	}
	p.offers = map[string]*offer{}
	g.catalog.remove(p)
	g.refresh()
	waiting := p.parked
	p.parked = nil
	delete(g.catalog.waiting, p)
	for _, w := range waiting {
		g.miss(w.asked.URI)
		g.complete(w.call, lost)
	}
	g.retool()
	g.settle()
}

// CloseTab says that a tab is no more: its pages go at once.
func (g *Gateway) CloseTab(key string) {
	g.mu.Lock()
	defer g.unlock()
	t := g.catalog.tabs[key]
	if t == nil {
		return
	}
	t.closed = true
	for p := range t.pages {
		p.depart("its tab was closed", false)
	}
}

// Focus says that a tab is the one that the user looks at. It owns the URIs that other tabs have too.
func (g *Gateway) Focus(key string) {
	g.mu.Lock()
	defer g.unlock()
	g.catalog.focusedAt = g.now()
	g.focus(key)
}

// focusAt is Focus for a page that says when that was, in ms since 1970, and does not know whether another tab has had
// the focus since. How long ago it was is counted back on our own clock, which is never set: if wall time was compared,
// a clock that had been ahead for a while would decide until it is as late again.
func (g *Gateway) focusAt(key string, at int64) {
	ago := max(0, g.opt.wallClock().UnixMilli()-at)
	if when := g.now() - bridge.Time(ago); when >= g.catalog.focusedAt {
		g.catalog.focusedAt = when
		g.focus(key)
	}
}

func (g *Gateway) focus(key string) {
	t := g.catalog.tabs[key]
	if t == nil {
		// The page has not come yet: it is focused when it does.
		g.catalog.focusNext = key
		return
	}
	if g.catalog.focus(t) {
		g.reown(t)
	}
}

// Retitle says what a page is called now. Agents learn of it within a few seconds: some pages count in their titles.
func (p *Page) Retitle(title string) {
	p.g.mu.Lock()
	defer p.g.unlock()
	p.retitle(title)
}

const maxTitle = 1 << 10

// Shorten returns a text as far as it has no more than so many bytes.
func Shorten(text string, bytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), bytes)], "")
}

func (p *Page) retitle(title string) {
	g := p.g
	title = Shorten(title, maxTitle)
	if p.Title == title || p.gone {
		return
	}
	p.Title = title
	if p.tab == nil || p.retitled {
		return
	}
	p.retitled = true
	if g.catalog.retitled = append(g.catalog.retitled, p); len(g.catalog.retitled) == 1 {
		time.AfterFunc(retitleDelay, g.tellTitles)
	}
}

// retitleDelay is how long pages' titles are collected before agents are told. All pages are told at once: each would
// else have agents list everything anew.
const retitleDelay = 3 * time.Second

// tellTitles describes the pages anew whose titles have changed. The lock is held for one page at a time.
func (g *Gateway) tellTitles() {
	g.mu.Lock()
	pages := g.catalog.retitled
	g.catalog.retitled = nil
	g.mu.Release()
	for _, p := range pages {
		g.mu.Lock()
		p.retitled = false
		if !p.gone {
			g.redescribe(p)
		}
		g.unlock()
	}
}
