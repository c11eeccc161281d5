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
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/link"
)

// PageInfo describes an attached page. The caller vouches for it, except for Title and Focused,
// which the page says.
type PageInfo = catalog.PageInfo

// A Page is an attached page. The methods that it has of the catalog's need the gateway's lock.
type Page struct {
	catalog.Page
	g      *Gateway
	own    *linked    // of the transport that has called Attach; without a peer if runner is set
	shared Sharer     // nil if only this gateway uses the page
	runner ToolRunner // runs the tools of a page that has only tools
	done   chan struct{}
	ctx    context.Context // ends when the page is gone, with the work on what it gave
	cancel context.CancelFunc
	worked atomic.Int64 // take's working time, in ns

	// Guarded by the gateway's lock. Another page may have the document: own.p. Then all below is
	// unused.
	link      *linked   // the way in use; nil if runner is set
	ways      []*linked // of the document (ways.go); the last one stays when the page has gone
	epoch     string    // of the document, from its page layer; "" if unknown
	still     bool      // it does not start a call: a page that reacts has its tools' plain names
	published []toolOffer
	// names of arguments that its tools have had for agents, by tool
	learned map[string]gate.Names
	aliases int // names that learned has room for
	// left says, by callKey, when nobody waited any more for a call that may have begun.
	left      map[[32]byte]time.Time
	settled   bool         // it has listed its tools
	toolBytes int          // what fitTools counts for published
	said      []string     // what runner has reported
	crowded   bool         // its console says that some of its tools are not listed
	follows   *follow.Page // the subscriptions at the page
	document  string       // its name in cursors of events; "" until it is needed
}

type (
	pass  = door.Pass[*Page]
	route = door.Route[*Page]
)

// A Sharer stands between the transport of a page and the gateway, so that the page has other cores
// too.
type Sharer interface {
	// Receive takes a frame of the page. An error is a *link.Ended, and the page has been told.
	Receive(frame []byte) error
	// Send takes a frame of the gateway, and at last nil.
	Send(frame []byte)
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

var lost = reply{failure: bridge.ReadFailed, detail: "the page went away before it answered",
	gone: true}

// ErrDenied is the error of Attach for a page whose origin is not served.
var ErrDenied = errors.New("pages of this origin are not served")

func (g *Gateway) newPage(info PageInfo) *Page {
	p := &Page{g: g, done: make(chan struct{}),
		learned: map[string]gate.Names{}, aliases: maxAliases, left: map[[32]byte]time.Time{}}
	p.Page = g.catalog.NewPage(info, p)
	p.follows = follow.NewPage(func(own string, on bool) { p.link.watched(own, on) })
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.own = &linked{of: p, p: p, info: info, closed: true}
	p.ways = []*linked{p.own}
	return p
}

// Attach takes on a page at the other end of a link. Receive takes the page's frames, beginning
// with its hello. send is called with frames for the page, in order, one at a time, without the
// gateway's lock; it must not block. At last send is called with nil, to close the transport. The
// caller reports the end of the transport with Lost. The page is shown to agents once it offers
// something. Attach fails with ErrDenied or ErrClosed.
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

func bounded(info PageInfo) PageInfo {
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
	p := g.newPage(bounded(info))
	defer g.lock()()
	if g.closed {
		return nil, ErrClosed
	}
	connect(p)
	g.catalog.Attach(&p.Page)
	if info.Focused > 0 {
		g.focusAt(p, info.Focused)
	}
	return p, nil
}

// Receive takes a frame of the page. The frame must not be changed afterwards. An error is a
// *link.Ended. Then the page has been told the reason.
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

// Refuse ends the page's link for a frame that its transport did not accept, such as one that is
// too long. The page and its waiting readers get the reason, as for a fault that Receive finds.
func (p *Page) Refuse(reason string) {
	defer p.g.lock()()
	if l := p.own; p.runner == nil {
		l.settle(l.peer.Refuse(reason))
		return
	}
	p.g.countRefused(reason)
	p.depart(reason, 0)
}

// CountRefused counts a page that was refused before it was attached, in Snapshot's Ended.
func (g *Gateway) CountRefused(reason string) {
	defer g.lock()()
	g.countRefused(reason)
}

// LimitCalls sets a function that is called before each read and tool call of the page. full
// returns the agent's error if too much waits for the page's transport. It is called with the
// gateway's lock held, and must not block.
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
	if p.Life().Left() {
		return nil
	}
	p.settled = true
	var refused error
	var offers []toolOffer
	for _, t := range tools {
		if p.g.tools.names.LookLikeOurs(t.Name) {
			p.g.log.Warn("refused a tool whose name looks like one of the gateway's own", "tool",
				t.Name, "origin", p.Origin)
			continue
		}
		tool := t.Typed.(*gate.Tool)
		if p.g.tools.names.TitleLooksLikeOurs(tool.Title) { // clients show it in place of the name
			tool.Title = ""
			p.report("the tool " + Shorten(t.Name, 200) + " has no title for agents: it looks like " +
				"one of the gateway's own")
		}
		p.report(tool.Told())
		if tool.Left() {
			continue
		}
		offers = append(offers, p.offerOf(tool, len(t.JSON)))
	}
	if len(offers) > 0 {
		p.arrive()
	}
	if p.Life() == catalog.Here && len(offers)+len(p.published) > 0 {
		p.published = offers
		refused = cmp.Or(p.g.fitTools(p), refused)
		p.g.retool()
	}
	return refused
}

// Done is closed when the page is no longer attached.
func (p *Page) Done() <-chan struct{} { return p.done }

// Lost reports that the page's transport has ended. Its resources stay for Options.Grace, for the
// tab's next page.
func (p *Page) Lost(reason string) {
	defer p.g.lock()()
	p.leave(reason, 1)
}

// Away is Lost for a page whose document is still there, as far as anybody knows: what brought it
// has ended, such as the worker of the browser's extension. A busy browser takes seconds to start
// that again, so the page's resources stay for awayGraces times Options.Grace.
func (p *Page) Away(reason string) {
	defer p.g.lock()()
	p.leave(reason, awayGraces)
}

const awayGraces = 5

// Close removes the page and its resources at once, unless its document has another way.
func (p *Page) Close(reason string) {
	defer p.g.lock()()
	p.leave(reason, 0)
	p.own.close()
}

// arrive adds a page to the catalog when it offers something for the first time.
func (p *Page) arrive() {
	if p.Life() != catalog.Silent {
		return
	}
	var keys []string
	for _, w := range p.ways {
		keys = append(keys, w.info.Tab)
	}
	p.g.catalog.Arrive(&p.Page, keys)
	p.g.events.Came(&p.Page, p.epoch)
	p.g.log.Info(kinds[p.Shown]+" attached", "tab", p.InTab.Number, "origin", p.Origin,
		"url", p.URL, "transport", p.Transport)
}

// depart ends a page, and all ways of its document. Its resources stay for a number of graces, in
// case the tab comes back with them. The lock is held.
func (p *Page) depart(reason string, graces int) {
	g := p.g
	switch p.Life() {
	case catalog.Reloading:
		if graces == 0 {
			g.expire(p)
		}
		return
	case catalog.Gone:
		return
	case catalog.Silent: // no agent has seen it
		g.catalog.Leave(&p.Page, false)
		g.frontLeft(p)
		p.end()
		p.cancel()
		return
	}
	g.log.Info(kinds[p.Shown]+" gone", "tab", p.InTab.Number, "url", p.URL, "reason", reason)
	stays := graces > 0 && !g.closed
	g.catalog.Leave(&p.Page, stays)
	p.follows.Leave()
	p.end() // its waiting reads are parked or answered
	if !stays {
		g.remove(p)
		return
	}
	g.catalog.Yield(&p.Page) // its successor may have come before its end was noticed
	time.AfterFunc(time.Duration(graces)*g.opt.Grace, g.locked(func() { g.expire(p) }))
}

// expire ends the time for which a page that is being reloaded stays.
func (g *Gateway) expire(p *Page) {
	if p.Life() == catalog.Reloading {
		g.catalog.Leave(&p.Page, false)
		g.remove(p)
	}
}

// remove takes a page that is gone out of the catalog.
func (g *Gateway) remove(p *Page) {
	p.cancel()
	g.events.Left(&p.Page, p.epoch)
	g.frontLeft(p)
	if p.link != nil {
		p.link.count()
	}
	p.published = nil
	g.catalog.Remove(&p.Page)
	g.endReads(p)
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
		if w.o.page.IsIn(key) {
			g.complete(w.c.call, lost)
		}
	}
	for p := range g.catalog.PagesIn(key) {
		pageOf(p).depart("its tab was closed", 0)
	}
}

// Focus reports that the user looks at a tab. The tab then owns the URIs that other tabs have too.
func (g *Gateway) Focus(key string) {
	defer g.lock()()
	g.catalog.Focus(key, g.now())
}

// focusAt is Focus for a page that gives the time, in ms since 1970, and does not know about other
// tabs' focus since. Times are compared by our monotonic clock. Otherwise a tab focused while the
// wall clock was ahead would stay the last one until the time has caught up.
func (g *Gateway) focusAt(p *Page, at int64) {
	ago := max(0, g.opt.wallClock().UnixMilli()-at)
	if g.catalog.Focus(p.Tab, g.now()-bridge.Time(ago)) {
		g.frontBy(p)
	}
}

// Retitle sets a page's title. Agents get it within a few seconds, not at once: some pages count in
// their titles.
func (p *Page) Retitle(title string) {
	defer p.g.lock()()
	if d := p.own.p; d.link == nil || d.link == p.own {
		d.retitle(title)
	}
}

const maxTitle = catalog.MaxTitle

// MaxProfile bounds the name of a profile, in bytes.
const MaxProfile = 64

// Shorten cuts a text to at most so many bytes, between characters.
func Shorten(text string, bytes int) string {
	return catalog.Shorten(text, bytes)
}

func (p *Page) retitle(title string) {
	g := p.g
	title = Shorten(title, maxTitle)
	if p.Title == title || p.Life() == catalog.Gone {
		return
	}
	p.Title = title
	if now := g.front.info; p.Frame == "" && p.IsIn(now.Tab) && p.Origin == now.Origin {
		now.Title = title
		g.setFront(now, g.front.page)
	}
	if p.Life() == catalog.Silent {
		return
	}
	if g.retitled[p] = true; len(g.retitled) == 1 {
		time.AfterFunc(retitleDelay, g.announceTitles)
	}
}

// retitleDelay is how long new titles are collected for one announcement, because each announcement
// makes agents list everything again.
const retitleDelay = 3 * time.Second

// announceTitles redescribes the pages with new titles. It holds the lock for one page at a time.
func (g *Gateway) announceTitles() {
	var pages map[*Page]bool
	g.locked(func() { pages, g.retitled = g.retitled, map[*Page]bool{} })()
	for p := range pages {
		g.locked(func() {
			if p.Life() != catalog.Gone {
				g.catalog.Redescribe(&p.Page)
			}
		})()
	}
}
