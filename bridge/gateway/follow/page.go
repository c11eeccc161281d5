package follow

import "maps"

// A Page has the subscriptions at one page. However many URIs lead to one of the page's own, and
// however many follow these, the page has one subscription for it.
type Page struct {
	// send tells the page to report changes of its URI, or to stop.
	send func(own string, on bool)
	// subs has the subscriptions, by the page's own URI.
	subs map[string]*subscription
	// waiting has, for each subscription that the page has not confirmed, who waits for that. It is
	// nil if nobody waits, which is nearly always.
	waiting map[*subscription][]func()
	// wide has the last revisions of its resources that answer for more URIs.
	wide map[string]int64
	// again is set while the page is in Books.pages.
	again bool
}

// A subscription is one at a page. It ends with the last watch that leads to it, or with the page.
type subscription struct {
	page *Page // nil once it has ended
	own  string
	// shares counts the watches that lead to it.
	shares int32
	// active is set once the page has answered: it reports all changes from then on.
	active bool
	// revision is the last one that the page has reported, by its own count.
	revision int64
}

// NewPage returns a page without subscriptions. send passes on that the page is to report changes of
// its URI (on), or is to stop.
func NewPage(send func(own string, on bool)) *Page { return &Page{send: send} }

// Watched lists the page's own URIs that have a subscription.
func (p *Page) Watched(yield func(own string) bool) { maps.Keys(p.subs)(yield) }

// join adds a share to the subscription to a page's URI.
func (p *Page) join(own string) *subscription {
	s := p.subs[own]
	if s == nil {
		s = &subscription{page: p, own: own}
		if p.subs == nil {
			p.subs = map[string]*subscription{}
		}
		p.subs[own] = s
		p.send(own, true) // the page answers by a report
	}
	s.shares++
	return s
}

// leave gives up a share.
func (s *subscription) leave() {
	if p := s.page; p != nil {
		if s.shares--; s.shares == 0 {
			delete(p.subs, s.own)
			p.send(s.own, false)
			p.end(s)
		}
	}
}

// when calls a function once the page reports the changes, or the subscription has ended.
func (s *subscription) when(then func()) {
	if s.active || s.page == nil {
		then()
		return
	}
	if s.page.waiting == nil {
		s.page.waiting = map[*subscription][]func(){}
	}
	s.page.waiting[s] = append(s.page.waiting[s], then)
}

func (p *Page) settle(s *subscription) {
	waiting := p.waiting[s]
	if delete(p.waiting, s); len(p.waiting) == 0 {
		p.waiting = nil
	}
	for _, then := range waiting {
		then()
	}
}

func (p *Page) end(s *subscription) {
	s.page = nil
	p.settle(s)
}

// Report takes a page's report of a URI's revision. answers means that it confirms a subscription:
// the caller calls Confirm when no earlier read can be shared any more. Otherwise it is news,
// unless the revision is known. A wide report is of a resource that answers for more URIs.
func (p *Page) Report(own string, revision int64, wide bool) (answers, news bool) {
	if s := p.subs[own]; s != nil {
		if s.active && revision <= s.revision {
			return false, false
		}
		if s.revision = revision; !s.active {
			return true, false
		}
	}
	if wide {
		if p.wide == nil {
			p.wide = map[string]int64{}
		}
		p.wide[own] = revision
	}
	return false, true
}

// Confirm notes that the page reports all changes of a URI from now on.
func (p *Page) Confirm(own string) {
	if s := p.subs[own]; s != nil {
		s.active = true
		p.settle(s)
	}
}

// Forget drops the revision of a resource that the page offers no more.
func (p *Page) Forget(own string) { delete(p.wide, own) }

// Leave ends all subscriptions, since the page has left.
func (p *Page) Leave() {
	subs := p.subs
	p.subs = nil
	for _, s := range subs {
		p.end(s)
	}
}

// Count is the last revision of a URI that the page has reported, also by one of its resource
// template. ok is false if the page does not report all of its changes.
func (p *Page) Count(own, template string) (revision int64, ok bool) {
	s := p.subs[own]
	if s == nil || !s.active {
		return 0, false
	}
	return max(s.revision, p.wide[template]), true
}
