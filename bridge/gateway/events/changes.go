package events

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/wire"
)

// MaxURIs bounds the resources of one subscription. It follows the first ones.
const MaxURIs = 1000

// MaxAllURIs bounds the resources of all subscriptions of a gateway, and the resources that one
// agent subscribes to.
const MaxAllURIs = 10_000

// A State identifies the last change of a resource: by its document's name in a cursor, and by the
// page's own count. The zero State is that of a resource without a page.
type State struct {
	Document string
	Count    int64
	At       time.Time // when the gateway learned of it
}

// Changes are the pending events of one subscription to Updated. A resource has one event, no
// matter how often it has changed since its last event. Make Changes with NewChanges, Add the
// resources, and then call Begin.
type Changes struct {
	sub   Subscription
	every time.Duration // the least time between two events of a resource
	sees  func(uri string) bool
	items map[string]*item
	dirty map[*item]bool
	// latest is the count of the last change of each document, and in is the number of its
	// resources.
	latest Documents
	in     map[string]int
	// from is the cursor that the subscription began with. met has the documents of that moment.
	from, met Documents
	// old has the documents that are gone, until their resources are told in their new documents.
	old  Documents
	note noteState
}

type item struct {
	uri   string
	now   State
	moved bool // its document is not that of its last event; only while dirty
	ready bool // its event is released, and only next can delay it
	next  time.Time
}

// noteState decides which notes precede the events.
type noteState struct {
	begun, told, truncated, over, warned bool
}

// before takes the next note that precedes all events.
func (s *noteState) before(cursor func() string) (n Note, ok bool) {
	switch {
	case !s.told:
		n.Kind, n.Occurrence.Cursor, n.Truncated = Active, cursor(), s.truncated
		s.told, s.truncated = true, false
	case s.over && !s.warned:
		s.warned = true
		n.Kind, n.Refused = Failed, &bridge.EventError{Kind: bridge.EventExhausted,
			Message: "not all resources are followed: one subscription has at most " +
				strconv.Itoa(MaxURIs) +
				", and all together " + strconv.Itoa(MaxAllURIs) +
				"; name an origin or a uriPrefix",
			Data: wire.Text(`{"limit":"resources","max":`).Int(MaxURIs).Raw(`}`)}
	default:
		return n, false
	}
	return n, true
}

// NewChanges returns Changes without resources. every applies to a subscription whose arguments
// have no minIntervalMs. An event of a resource that the subscriber does not see (sees) waits until
// it does.
func NewChanges(s Subscription, every time.Duration, sees func(uri string) bool) *Changes {
	if s.MinInterval > 0 {
		every = s.MinInterval
	}
	return &Changes{sub: s, every: every, sees: sees, items: map[string]*item{},
		dirty:  map[*item]bool{},
		latest: Documents{}, in: map[string]int{}, old: Documents{}}
}

// Overflow notes that there are resources beyond MaxURIs.
func (c *Changes) Overflow() { c.note.over = true }

// Add follows a resource. After Begin, the resource is told if its last change is not in the
// cursor.
func (c *Changes) Add(uri string, now State) {
	it := &item{uri: uri}
	if c.note.begun && now.Document != "" {
		// of a page that came after Begin: the order of its resources must not matter
		known := c.from[now.Document]
		if _, met := c.met[now.Document]; met {
			known = c.cursor()[now.Document]
		}
		if it.ready = now.Count > known; it.ready {
			c.dirty[it] = true
		}
	}
	c.items[uri] = it
	c.show(it, now)
}

// Forget undoes Add.
func (c *Changes) Forget(uri string) {
	if it := c.items[uri]; it != nil {
		delete(c.items, uri)
		delete(c.dirty, it)
		c.show(it, State{})
	}
}

// show sets the state of a resource.
func (c *Changes) show(it *item, now State) {
	if was := it.now.Document; was != "" && was != now.Document {
		if c.in[was]--; c.in[was] == 0 {
			delete(c.in, was)
			delete(c.latest, was)
		}
	}
	if now.Document != "" {
		if it.now.Document != now.Document {
			c.in[now.Document]++
		}
		c.latest[now.Document] = max(c.latest[now.Document], now.Count)
	}
	it.now = now
}

// Begin sets the place where the events begin: now for "", otherwise the cursor. Changes older than
// maxAge have no event, unless maxAge is negative.
func (c *Changes) Begin(cursor string, maxAge time.Duration, now time.Time) *bridge.EventError {
	c.met = maps.Clone(c.latest)
	if c.note.begun = true; cursor == "" {
		return nil
	}
	known, refused := ParseDocuments(cursor)
	if refused != nil {
		return refused
	}
	c.from, c.note.truncated = known, c.note.over
	for name, count := range known {
		latest, ok := c.latest[name]
		if !ok {
			c.old[name] = count
		}
		// gone; or another server's count, or a future one
		c.note.truncated = c.note.truncated || !ok || count > latest
	}
	for _, it := range c.items {
		count, ok := known[it.now.Document]
		switch {
		case it.now.Document == "", ok && it.now.Count <= count, !ok && it.now.Count == 0 &&
			len(c.old) == 0:
			continue // the agent knows this state
		case maxAge >= 0 && it.now.At.Before(now.Add(-maxAge)):
			c.note.truncated = true
			continue
		}
		it.ready, it.moved = true, !ok && len(c.old) > 0
		c.dirty[it] = true
	}
	return nil
}

// At returns the Changes for a client with a cursor. It shares only the times of the last events
// with c.
func (c *Changes) At(cursor string, maxAge time.Duration,
	now time.Time) (*Changes, *bridge.EventError) {
	other := NewChanges(c.sub, c.every, c.sees)
	other.note.over = c.note.over
	for uri, it := range c.items {
		same := &item{uri: uri, next: it.next}
		other.items[uri] = same
		other.show(same, it.now)
	}
	return other, other.Begin(cursor, maxAge, now)
}

// Told notes that a result of At has told a resource at a time.
func (c *Changes) Told(uri string, now time.Time) {
	if it := c.items[uri]; it != nil {
		it.next = now.Add(c.every)
	}
}

// Touched notes a new state of a resource, so that no cursor covers it. Its event waits for
// Changed.
func (c *Changes) Touched(uri string, now State) {
	it := c.items[uri]
	if it == nil || now.Document == "" || now.Document == it.now.Document &&
		now.Count <= it.now.Count {
		return
	}
	if now.Document != it.now.Document {
		if it.now.Document != "" {
			c.old[it.now.Document] = it.now.Count
		}
		it.moved = true
	}
	c.show(it, now)
	c.dirty[it] = true
}

// Changed is Touched, and releases the event.
func (c *Changes) Changed(uri string, now State) {
	c.Touched(uri, now)
	if it := c.items[uri]; it != nil && c.dirty[it] {
		it.ready = true
	}
}

// Arrived releases an event for a resource that the subscription named before a page offered it.
func (c *Changes) Arrived(uri string) {
	if it := c.items[uri]; it != nil && c.note.begun && it.now.Document != "" {
		it.moved, it.ready = true, true
		c.dirty[it] = true
	}
}

// Next implements Feed.
func (c *Changes) Next(now time.Time) (n Note, ok bool, at time.Time) {
	if !c.note.begun {
		return n, false, at
	}
	if n, ok = c.note.before(c.Cursor); ok {
		return n, true, at
	}
	least := map[string]*item{} // of each document, since a cursor has one count for it
	for it := range c.dirty {
		l := least[it.now.Document]
		switch {
		case !it.ready || !c.sees(it.uri):
		case it.next.After(now):
			if at.IsZero() || it.next.Before(at) {
				at = it.next
			}
		case l == nil ||
			cmp.Or(cmp.Compare(it.now.Count, l.now.Count), strings.Compare(it.uri, l.uri)) < 0:
			least[it.now.Document] = it
		}
	}
	var first *item
	for _, it := range least {
		if first == nil || it.before(first) < 0 {
			first = it
		}
	}
	if first == nil {
		return n, false, at
	}
	n.Whole = first.moved
	delete(c.dirty, first)
	first.ready, first.moved = false, false
	first.next = now.Add(c.every)
	n.Occurrence = Occurrence{Name: Updated, Time: first.now.At, Subject: first.uri,
		Cursor: c.Cursor(), ID: c.sub.ID(first.now.Count, first.now.Document, first.uri)}
	return n, true, at
}

func (it *item) before(other *item) int {
	if it.moved != other.moved && it.moved {
		return -1
	} else if it.moved != other.moved {
		return 1
	}
	return cmp.Or(it.now.At.Compare(other.now.At), strings.Compare(it.uri, other.uri))
}

// Cursor implements Feed.
func (c *Changes) Cursor() string { return c.cursor().String() }

func (c *Changes) cursor() Documents {
	d := maps.Clone(c.latest)
	moved := false
	for it := range c.dirty {
		moved = moved || it.moved
		if known, ok := d[it.now.Document]; it.moved {
			delete(d, it.now.Document)
		} else if ok {
			d[it.now.Document] = min(known, it.now.Count-1)
		}
	}
	if !moved {
		clear(c.old)
	}
	maps.Copy(d, c.old)
	return d
}

// A Feed has the notes of a subscription. Changes and Visits implement it.
type Feed interface {
	// Next takes the next note. An event of Changes lacks its Data. If ok is false, at is the time
	// of the next note, or zero if none is pending.
	Next(now time.Time) (n Note, ok bool, at time.Time)
	// Cursor is a watermark: all events at or before it have been taken.
	Cursor() string
}

// A Log has the last arrivals and departures of pages, at most maxLogged. Make it with NewLog.
//
// If it is full, the site that has most entries loses its oldest: as a page of 257 frames came, a
// poll of another site lost its own page's arrival.
type Log struct {
	clock   int64 // the time of the last entry
	entries []logged
	// floors has, by site, the time of the last entry that the site has lost, while it has others.
	// floor is that of all sites that have none.
	floors map[string]int64
	floor  int64
}

type logged struct {
	at   int64
	site string
	Visit
}

// A Visit is an entry of a Log: a page that has come or gone.
type Visit struct {
	Name  string // Opened or Closed
	Page  string // only its tab and origin
	Epoch string
	Owner func() bridge.Owner // whose the page is, by the present name of its profile
	Time  time.Time
	Data  []byte
}

// maxLogged bounds the entries of a Log.
const maxLogged = 256

// NewLog returns an empty log that begins now.
func NewLog(now time.Time) *Log {
	return &Log{clock: now.UnixMicro(), floor: now.UnixMicro(), floors: map[string]int64{}}
}

// Add appends an entry.
func (l *Log) Add(v Visit) {
	l.clock = max(l.clock+1, v.Time.UnixMicro())
	if len(l.entries) == maxLogged {
		l.drop()
	}
	l.entries = append(l.entries, logged{l.clock, quota.Site(v.Owner().Origin), v})
}

// drop drops the oldest entry of the sites that have most.
func (l *Log) drop() {
	of, most := map[string]int{}, 0
	for _, e := range l.entries {
		of[e.site]++
		most = max(most, of[e.site])
	}
	i := slices.IndexFunc(l.entries, func(e logged) bool { return of[e.site] == most })
	e := l.entries[i]
	if l.floors[e.site] = e.at; most == 1 {
		delete(l.floors, e.site)
		l.floor = e.at // it was the oldest of all
	}
	l.entries = slices.Delete(l.entries, i, i+1)
}

// lost is the time of the last entry that was dropped and may have been of an origin, or with ""
// of any.
func (l *Log) lost(origin string) int64 {
	if origin != "" {
		return max(l.floor, l.floors[quota.Site(origin)])
	}
	last := l.floor
	for _, at := range l.floors {
		last = max(last, at)
	}
	return last
}

// Left gives the entries of a page that has gone the owner of its last one, which holds nothing of
// the page. An entry may stay for days, and a page holds its transport: 100 KiB of a browser's.
func (l *Log) Left(last Visit) {
	for i := range l.entries {
		if v := &l.entries[i].Visit; v.Page == last.Page && v.Epoch == last.Epoch {
			v.Owner = last.Owner
		}
	}
}

// Visits are the pending events of one subscription to Opened or Closed, of the owners that it
// sees.
type Visits struct {
	sub  Subscription
	log  *Log
	sees func(bridge.Owner) bool
	at   int64
	// told is Log.lost when the subscriber was last told of a gap.
	told int64
	note noteState
}

// NewVisits returns the visits after a cursor; "" is now. It leaves out visits older than maxAge,
// unless maxAge is negative.
func NewVisits(s Subscription, l *Log, sees func(bridge.Owner) bool, cursor string,
	maxAge time.Duration, now time.Time) (
	*Visits, *bridge.EventError) {
	v := &Visits{sub: s, log: l, sees: sees, at: max(l.clock, now.UnixMicro())}
	if cursor == "" {
		return v, nil
	}
	at, refused := ParseTime(cursor)
	if refused != nil {
		return nil, refused
	}
	v.told = l.lost(s.Origin)
	v.note.truncated = at < v.told || at > v.at
	if maxAge >= 0 {
		if oldest := now.Add(-maxAge).UnixMicro(); oldest > at {
			at, v.note.truncated = oldest, true
		}
	}
	v.pass(min(at, v.at))
	return v, nil
}

// pass moves the cursor. If the subscriber knows of a gap behind it, the cursor goes on to the
// gap's end, or to the next event: otherwise each poll was told of the gap again.
func (v *Visits) pass(at int64) {
	if v.at = at; at < v.told {
		v.at = v.told
		if e := v.next(at); e != nil {
			v.at = min(e.at-1, v.told)
		}
	}
}

// next is the first event after a time, or nil.
func (v *Visits) next(at int64) *logged {
	for i := range v.log.entries {
		if e := &v.log.entries[i]; e.at > at && e.Name == v.sub.Name &&
			v.sub.Matches("", e.Owner().Origin) && v.sees(e.Owner()) {
			return e
		}
	}
	return nil
}

// Next implements Feed.
func (v *Visits) Next(time.Time) (n Note, ok bool, at time.Time) {
	if n, ok = v.note.before(v.Cursor); ok {
		return n, true, at
	}
	if lost := v.log.lost(v.sub.Origin); v.at < lost && v.told < lost {
		v.told = lost
		v.pass(v.at)
		n.Kind, n.Truncated, n.Occurrence.Cursor = Active, true, v.Cursor()
		return n, true, at
	}
	e := v.next(v.at)
	if e == nil {
		v.at = max(v.at, v.log.clock)
		return n, false, at
	}
	v.pass(e.at)
	n.Occurrence = Occurrence{Name: e.Name, Time: e.Time, Subject: e.Page, Data: e.Data,
		Cursor: v.Cursor(), ID: v.sub.ID(0, e.Page, e.Epoch)}
	return n, true, at
}

// Cursor implements Feed.
func (v *Visits) Cursor() string { return TimeCursor(v.at) }
