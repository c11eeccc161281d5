package gateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/calls"
	"github.com/pagewire/pagewire/bridge/gateway/gate"
	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/gateway/tools"
	"github.com/pagewire/pagewire/bridge/wire"
)

// agentTools are all tools that agents see: ours, for agents that know only tools, and the pages'.
//
// If several tabs of one origin have a tool, the tab that was focused last has its plain name,
// unless its page stands still and that of another tab does not. The others have it under the name
// with _tabN appended.
type agentTools struct {
	names *tools.Names
	// listing chooses the pages' tools that are listed. routes has all of them, by each of their
	// names.
	listing *tools.Listing
	routes  map[string]toolOffer
	own     *calls.Tools
	// changes limits the rate at which the engine gets the list. told counts the lists; pending is
	// set while one is due.
	changes *rate.Limiter
	told    int
	pending bool
	// unlisted counts the tools that have no place in the list.
	unlisted map[*Page]int
}

type toolOffer struct {
	name  string // the page's own
	tool  *gate.Tool
	page  *Page
	bytes int // of the page's description, at least toolBytes
	shown shownTool
}

// A shownTool is a page's tool as agents see it. It is kept because each change of a tool rebuilds
// the list of all: with 1,000 tools of 4 KB that takes 4 ms, and 35 ms if each is encoded again
// (BenchmarkRetool).
type shownTool struct {
	as, at string // the name and the page's place that it was encoded for
	text   []byte
}

// typed passes a page's tool through the gate. It needs no lock.
func typed(t *bridge.Tool) { t.Typed = gate.NewTool(t.Name, wire.Value(t.JSON)) }

// offerOf makes an offer of a page's tool. Arguments may have each name that agents were told since
// the document came.
func (p *Page) offerOf(t *gate.Tool, bytes int) toolOffer {
	if t.Fresh != nil {
		t.Fresh.URIs = slices.DeleteFunc(t.Fresh.URIs,
			func(uri string) bool { return !p.owns(uri) })
	}
	if t.Names != nil && p.aliases > 0 && p.learned[t.Name] == nil {
		p.learned[t.Name] = gate.Names{}
	}
	t.Names.Adopt(p.learned[t.Name], &p.aliases)
	return toolOffer{name: t.Name, tool: t, page: p, bytes: max(toolBytes, bytes)}
}

// maxAliases bounds the names in Page.learned.
const maxAliases = 1000

const (
	// toolBytes is the least size of a tool in Options.OriginBytes and AllBytes: its names and its
	// decoded form take as much.
	toolBytes = 1 << 10
	// toolsAlways is the room for tools that each page has, even if other pages take all: 64 small
	// tools.
	toolsAlways = 64 * toolBytes
)

// fitTools removes a page's new tools for which other pages' tools leave no room. It returns an
// error if there are any.
func (g *Gateway) fitTools(p *Page) error {
	origin, all, ceded := 0, 0, 0
	for other := range g.pages {
		if other == p {
			continue
		}
		if other.Life().Left() && other.InTab == p.InTab && other.Frame == p.Frame {
			ceded += other.cedeTools(p)
		}
		all += other.toolBytes
		if other.Origin == p.Origin {
			origin += other.toolBytes
		}
	}
	room := max(toolsAlways, ceded, min(g.opt.OriginBytes-origin, g.opt.AllBytes-all))
	p.toolBytes = 0
	before := len(p.published)
	p.published = slices.DeleteFunc(p.published, func(o toolOffer) bool {
		if p.toolBytes+o.bytes > room {
			return true
		}
		p.toolBytes += o.bytes
		return false
	})
	if out := before - len(p.published); out > 0 {
		return fmt.Errorf(
			"%d of %d are left out: the open pages have too long tools; the limit is %d bytes for those "+
				"of %s together, and %d for all", out, before, g.opt.OriginBytes, p.Origin,
			g.opt.AllBytes)
	}
	return nil
}

// cedeTools removes an absent page's tools that its successor has too, and returns their bytes.
func (p *Page) cedeTools(to *Page) (bytes int) {
	theirs := map[string]bool{}
	for _, o := range to.published {
		theirs[o.name] = true
	}
	p.published = slices.DeleteFunc(p.published, func(o toolOffer) bool {
		if theirs[o.name] {
			bytes += o.bytes
		}
		return theirs[o.name]
	})
	p.toolBytes -= bytes
	return bytes
}

func (b *agentTools) init(g *Gateway) {
	var ours []string
	for _, t := range calls.Described {
		ours = append(ours, t.Name, t.Annotations.Title)
	}
	b.names = tools.NewNames(ours...)
	b.listing = tools.NewListing(maxTools - len(calls.Described))
	b.changes = rate.NewLimiter(rate.Every(toolsEvery), toolsBurst)
	b.own = calls.New(calls.Options{Revisions: g.books, Listed: g.listed, Notices: g.noticed,
		Offered:   func(uri string) bool { return g.catalog.EntryOf(uri) != nil },
		Unseen:    func() bool { return len(g.looks) > 0 },
		PageChars: g.opt.PageChars, ReadTimeout: g.opt.ReadTimeout,
		ProgressEvery: g.opt.progressEvery})
}

// retool passes the list of tools to the engine: at once, unless pages change theirs in a loop.
// Then it does so at most once per toolsEvery, because the cost grows with the number of tools.
func (g *Gateway) retool() {
	b := &g.tools
	if b.pending {
		return
	}
	wait := b.changes.Reserve().Delay()
	if wait == 0 {
		g.setTools()
		return
	}
	b.pending = true
	time.AfterFunc(wait, g.locked(func() {
		b.pending = false
		if !g.closed {
			g.setTools()
		}
	}))
}

const (
	toolsEvery = 200 * time.Millisecond
	toolsBurst = 20 // immediate changes, as when a browser with many tabs is attached
)

// maxTools bounds the tools, ours and all pages', that are listed to agents: bridge.Limits'
// default.
const maxTools = 1000

func (g *Gateway) setTools() {
	b := &g.tools
	b.told++
	named := b.names.Version()
	wanted, entries := g.routeTools()
	if b.names.Version() != named {
		g.handedOver.names.Add(1)
	}
	b.names.Sweep()
	var all []bridge.Tool
	for _, t := range calls.Described {
		all = append(all, bridge.Tool{Name: t.Name, JSON: []byte(live.Line(t)), First: true})
	}
	var left []*toolOffer
	for i, chosen := range b.listing.Choose(entries) {
		if o := wanted[i]; chosen {
			all = append(all, bridge.Tool{Name: o.shown.as, JSON: o.shown.text, Owner: o.page.Owner,
				Debugging: o.tool.Hints.Debugging})
		} else {
			left = append(left, o)
		}
	}
	slices.SortFunc(all, func(a, c bridge.Tool) int { return strings.Compare(a.Name, c.Name) })
	if err := g.engine.SetTools(g.now(), all); err != nil {
		g.log.Warn("the pages' tools could not be offered", "error", err)
	}
	g.leaveOut(left)
}

// routeTools rebuilds the names of all tools, and returns the tools that are to be listed if there
// is room.
func (g *Gateway) routeTools() (wanted []*toolOffer, entries []tools.Entry) {
	b := &g.tools
	b.routes = map[string]toolOffer{}
	want := func(o *toolOffer, name, place string, tabbed bool) {
		o.show(name, place)
		wanted = append(wanted, o)
		entries = append(entries, tools.Entry{Name: name, Origin: o.page.Origin, Page: o.page.Order,
			Tabbed: tabbed, Bytes: len(o.shown.text)})
	}
	rank := func(p *Page) []int {
		return []int{truth(p.Life().Left()), truth(p.still), -p.InTab.Rank, truth(p.Frame != ""),
			-p.Order}
	}
	pages := slices.SortedFunc(g.pages,
		func(a, c *Page) int { return slices.Compare(rank(a), rank(c)) })
	for _, p := range pages {
		// Quoted, since a title could name another origin here.
		place := strconv.Quote(p.Caption()) + " at " + p.Origin + ", " + p.Whereabouts()
		for i := range p.published {
			o := &p.published[i]
			name := b.names.Of(p.Origin, o.name)
			tabbed := tools.OfTab(name, p.InTab.Number)
			named := b.routes[name].tool == nil
			if named {
				b.routes[name] = *o
				want(o, name, place, false)
			}
			// The name with its tab works also while the tab has the plain name.
			if b.routes[tabbed].tool == nil {
				b.routes[tabbed] = *o
				if !named {
					want(o, tabbed, place, true)
				}
			}
		}
	}
	return wanted, entries
}

// leaveOut counts the tools without a place in the list, for noticed. It tells each page on its
// console, once in the page's life.
func (g *Gateway) leaveOut(left []*toolOffer) {
	g.tools.unlisted = map[*Page]int{}
	for _, o := range left {
		g.tools.unlisted[o.page]++
		p := o.page
		if p.crowded {
			continue
		}
		p.crowded = true
		g.log.Warn("tools of a page are not listed, for want of places", "origin", p.Origin, "url",
			p.URL, "places", maxTools)
		p.report(fmt.Sprintf(
			"not all tools of this page are listed to agents: the list has %d places for the "+
				"tools of all open pages, and one of more than %d KiB takes several. They can be called all the same. "+
				"Register fewer tools, or close other tabs.", maxTools, tools.PlaceBytes>>10))
	}
}

// show updates o.shown, for the tool's plain name or that of its tab.
func (o *toolOffer) show(name, place string) {
	if o.shown.as == name && o.shown.at == place {
		return
	}
	o.shown = shownTool{as: name, at: place, text: o.tool.Shown(name, place, o.page.Origin)}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// InputSchema returns the JSON Schema of a tool's arguments, by the name that agents know, or nil
// if it does not exist for an agent with these options.
func (g *Gateway) InputSchema(name string, of AgentOptions) []byte {
	defer g.lock()()
	o := g.tools.routes[name]
	if o.tool == nil || g.passOf(of).To(o.page, o.tool.Hints.Debugging) == nil {
		return nil
	}
	return o.tool.Input
}
