// Package follow has one set of books: which URIs somebody follows, at which page, and whether they
// have changed. There is one watch for each URI, for agents' subscriptions and listens, for what
// agents were given, for events and for the inspector. A Memory is the state of one agent between
// its calls, and lists the agent's news.
//
// A page counts its changes by itself, within one document. The books map that to one clock of
// integers, which grow over all pages (Books.Advance).
//
// The package gets reports from the gateway, asks it through a Source where URIs lead, and never
// reads a page. It has no lock, no goroutine and no timer: all of it, and its callbacks, run under
// the gateway's lock.
package follow

import (
	"maps"
	"time"

	"github.com/pagewire/pagewire/bridge/coalesce"
)

// A Source knows pages. Books call its methods, which may call back before they return.
type Source interface {
	// Lead returns the page to which an agents' URI leads, and the page's own URI. It returns nil
	// if no page reports its changes now. key names the entry of the catalog that answers for the
	// URI, or is "".
	Lead(uri string) (p *Page, own, key string)
	// Sees reports whether an agent that subscribes to a URI sees it, or one whose listen has not
	// begun, since the page of another of its URIs has not answered.
	Sees(uri string) bool
	// Refuses returns the reason why a URI cannot be followed, or "". counted is the number of URIs
	// whose changes are counted.
	Refuses(uri string, counted int) (why string)
	// Pace limits the changes of a URI that are counted. ok is false if no page offers it.
	Pace(uri string) (p coalesce.Pace, ok bool)
	// Moved is called when a URI leads to another page, after that has confirmed the subscription.
	Moved(uri string)
	// Changed is called after each counted change.
	Changed()
	Now() time.Time
	Time() coalesce.Time
}

// A Follower is told of the changes of URIs.
type Follower interface {
	// Touched is called at each report of a page.
	Touched(uri string)
	// Changed is called at each counted change, when the URI's page reports them all.
	Changed(uri string)
}

// Books know of each URI that somebody follows whether it has changed. Make them with New.
type Books struct {
	source Source
	// clock is the last revision: none is greater.
	clock int64
	// watches has all URIs, as agents know them, that are followed or were given to an agent.
	watches map[string]*watch
	// due has the counted URIs with a change that their pace delays.
	due coalesce.Queue[*count]
	// counted is the number of counts that are asked, and expired the time of the last expire.
	counted int
	expired time.Time
	// again, pages and moved are what Sweep looks at: URIs that may not need their subscription or
	// may lead elsewhere, pages all of whose URIs are so, and URIs that lead to another page.
	again []string
	pages []*Page
	moved map[string]bool
}

// A watch is a URI as agents know it. It stays while it is wanted or has a count.
type watch struct {
	// at is the watch's share of a subscription at the page to which the URI leads. It is nil
	// without one. Only move changes it.
	at *subscription
	// count is nil unless somebody needs to know whether the URI has changed: revisions.go.
	count *count
	// updates counts the page's reports since the watch began.
	updates uint32
	// asking is the number of agents' subscriptions that wait for the page's consent; an engine
	// asks at most bridge.Limits.Calls things at once. agents is set while there are others.
	asking uint16
	agents bool
}

// New returns Books whose revisions begin at the current time.
func New(s Source) *Books {
	return &Books{source: s, clock: s.Now().UnixMicro(), watches: map[string]*watch{},
		moved: map[string]bool{}}
}

func (b *Books) watch(uri string) *watch {
	w := b.watches[uri]
	if w == nil {
		w = &watch{}
		b.watches[uri] = w
	}
	return w
}

// wanted reports whether the watch needs its page's reports.
func (w *watch) wanted() bool { return w.agents || w.asking > 0 || w.isCounted() }

func (w *watch) isCounted() bool { return w.count != nil && w.count.asked }

// Subscribed notes that agents subscribe to a URI, or no longer do.
func (b *Books) Subscribed(uri string, on bool) {
	w := b.watch(uri)
	if w.agents = on; on {
		b.attach(uri, w, func() {})
	} else {
		b.check(uri)
	}
}

// Ask calls then once the page reports a URI's changes, for a subscription. The caller calls end,
// and calls Check when the subscription ends, or does not begin.
func (b *Books) Ask(uri string, then func()) (end func()) {
	w := b.watch(uri)
	w.asking++
	b.attach(uri, w, then)
	return func() {
		w.asking--
		b.check(uri)
	}
}

// attach makes the page to which a URI leads report its changes. It calls then when the page does,
// or has gone; at once if there is no page. A page is asked only for who sees it.
func (b *Books) attach(uri string, w *watch, then func()) {
	if p, own := b.lead(uri, w); p != nil {
		w.move(p, own)
		w.at.when(then)
	} else {
		then()
	}
}

func (b *Books) lead(uri string, w *watch) (p *Page, own string) {
	p, own, key := b.source.Lead(uri)
	if w.count != nil {
		w.count.key = key
	}
	if p != nil && w.asking == 0 && !w.isCounted() && !b.source.Sees(uri) {
		return nil, ""
	}
	return p, own
}

// move makes a watch lead to a page's URI, or with nil to none.
func (w *watch) move(p *Page, own string) {
	before := w.at
	if before != nil && before.page == p && before.own == own && p != nil {
		return
	}
	if w.at = nil; p != nil {
		w.at = p.join(own)
	}
	if before != nil {
		before.leave()
	}
}

// check makes Sweep look whether a URI needs its subscription. It is not ended here: its page may
// offer it again at once, and the engine ends the question before the subscription begins.
func (b *Books) check(uri string) { b.again = append(b.again, uri) }

// Check is for a change of what pages offer: Sweep looks at a URI, if it is followed.
func (b *Books) Check(uri string) {
	if b.watches[uri] != nil {
		b.check(uri)
	}
}

// CheckPage is Check for all URIs that lead to a page.
func (b *Books) CheckPage(p *Page) {
	if !p.again {
		p.again = true
		b.pages = append(b.pages, p)
	}
}

// CheckAll is Check for all URIs.
func (b *Books) CheckAll() {
	for uri := range b.watches {
		b.check(uri)
	}
}

// at lists the URIs whose page has a subscription for them. It looks at all watches.
func (b *Books) at(p *Page) (uris []string) {
	for uri, w := range b.watches {
		if w.at != nil && w.at.page == p {
			uris = append(uris, uri)
		}
	}
	return uris
}

// Led notes that another entry of the catalog answers for a URI now: of a resource that came with
// it, or with moved of another page than before. repeat announces a change again, if the page has
// had one.
func (b *Books) Led(uri string, moved, repeat bool) {
	w := b.watches[uri]
	if w == nil {
		return
	}
	if p, own := b.lead(uri, w); p != nil {
		w.move(p, own)
		s := w.at
		s.when(func() {
			if moved || repeat && s.page != nil && s.revision > 0 {
				b.moved[uri] = true
			}
		})
	}
	if !moved {
		b.pass(uri, w)
	}
}

// Sweep brings the subscriptions at the pages in line with who follows what. The gateway calls it
// before it releases its lock.
func (b *Books) Sweep() {
	for uri := range b.moved {
		b.source.Moved(uri)
		if w := b.watches[uri]; w != nil {
			b.pass(uri, w)
		}
	}
	clear(b.moved)
	for _, p := range b.pages {
		p.again = false
		b.again = append(b.again, b.at(p)...)
	}
	b.pages = nil
	for len(b.again) > 0 {
		uri := b.again[0]
		b.again = b.again[1:]
		if w := b.watches[uri]; w != nil {
			b.review(uri, w)
		}
	}
	b.again = nil
}

// review ends what nobody wants, and follows a URI to where it leads.
func (b *Books) review(uri string, w *watch) {
	if !w.wanted() && !b.source.Sees(uri) {
		w.move(nil, "")
		if w.count == nil {
			delete(b.watches, uri)
		}
		return
	}
	before := ""
	if w.count != nil {
		before = w.count.key
	}
	w.move(b.lead(uri, w))
	if w.count != nil && w.count.key != before && w.count.key != "" {
		b.pass(uri, w) // another entry answers, which was there already
	}
}

// Reported takes a page's report that a URI reads differently. It tells all who follow the URI, but
// for agents' subscriptions, which the engine tells.
func (b *Books) Reported(uri string) {
	if w := b.watches[uri]; w != nil {
		w.updates++ // the inspector
		b.touched(uri, w)
	}
}

// Implied is Reported for a URI under a template that was reported.
func (b *Books) Implied(uri string) {
	if w := b.watches[uri]; w != nil {
		b.touched(uri, w)
	}
}

func (b *Books) touched(uri string, w *watch) {
	if w.count != nil {
		for f := range w.count.followers { // events: no cursor from now on covers it
			f.Touched(uri)
		}
	}
	b.pass(uri, w)
}

// pass counts a change, now or when its pace allows it.
func (b *Books) pass(uri string, w *watch) {
	if !w.isCounted() {
		return
	}
	pace, ok := b.source.Pace(uri)
	if ok && b.due.Touch(b.source.Time(), &w.count.item, pace) {
		b.Updated(uri)
	}
}

// Paced notes that a URI may have another pace: a change that waits may be due earlier.
func (b *Books) Paced(uri string) {
	if w := b.watches[uri]; w != nil && w.count != nil && w.count.item.Dirty() {
		b.pass(uri, w)
	}
}

// Tick counts the changes that are due.
func (b *Books) Tick() {
	for _, ok := b.due.Next(); ok; _, ok = b.due.Next() {
		it := b.due.Pop(b.source.Time(), func(c *count) coalesce.Pace {
			pace, _ := b.source.Pace(c.uri)
			return pace
		})
		if it == nil {
			return
		}
		if _, offered := b.source.Pace(it.Value.uri); offered { // otherwise there is no change
			b.Updated(it.Value.uri)
		}
	}
}

// Deadline is when Tick has something to do. ok is false if nothing is due.
func (b *Books) Deadline() (at coalesce.Time, ok bool) { return b.due.Next() }

// Updated counts a change of a URI, and tells who follows the counted changes.
func (b *Books) Updated(uri string) {
	w := b.watches[uri]
	if w == nil || w.count == nil {
		return
	}
	c := w.count
	b.change(c) // agents' records: reminders and hooks; calls that wait; what a person views
	if len(c.followers) > 0 {
		b.Tell(uri)
	}
	if c.ready && c.held+len(c.followers) == 0 && b.source.Now().Sub(c.used) > followFor {
		b.stop(c)
	}
}

// Tell tells the followers of a URI of its change. It waits for the page: after a reload the page
// may not have reported its revision yet.
func (b *Books) Tell(uri string) {
	w := b.watches[uri]
	if w == nil || w.count == nil || len(w.count.followers) == 0 {
		return
	}
	c := w.count
	b.attach(uri, w, func() {
		for f := range c.followers {
			f.Changed(uri)
		}
	})
}

// All lists the URIs that somebody follows, or that an agent was given.
func (b *Books) All(yield func(uri string) bool) { maps.Keys(b.watches)(yield) }

// URIs lists the watched URIs, with the page's reports of each. It leaves out those that only wait
// for consent.
func (b *Books) URIs(yield func(uri string, updates int) bool) {
	for uri, w := range b.watches {
		if (w.agents || w.isCounted()) && !yield(uri, int(w.updates)) {
			return
		}
	}
}

// Follows reports whether All has a URI.
func (b *Books) Follows(uri string) bool { return b.watches[uri] != nil }

// Clear forgets everything. It is for the end of the source.
func (b *Books) Clear() {
	clear(b.watches)
	b.due, b.counted = coalesce.Queue[*count]{}, 0
}
