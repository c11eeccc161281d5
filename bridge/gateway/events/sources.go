package events

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway/catalog"
	"github.com/pagewire/pagewire/bridge/gateway/door"
	"github.com/pagewire/pagewire/bridge/gateway/follow"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/internal/taburi"
	"github.com/pagewire/pagewire/bridge/weborigin"
	"github.com/pagewire/pagewire/bridge/wire"
)

const (
	// MaxFollowings bounds all subscriptions of a gateway.
	MaxFollowings = 12_000
	// MaxVisits bounds the pages for which page.opened and page.closed are sent. A site has as many
	// as it leaves to others.
	MaxVisits = 4096
	// beginsWithin is how long a subscription waits for its pages before it begins without those
	// that stand still. They confirm in some milliseconds. While it waited for all, one page in a
	// dialog made polls and streams of all others fail after 30 s, and webhooks lose their changes.
	beginsWithin = 2 * time.Second
	// arrivalTime is how long a new gateway assumes that a page was open before it. It sends no
	// page.opened for these.
	arrivalTime = 5 * time.Second
	// pollLease is how long a subscription is followed after a poll. MaxLeases bounds such
	// subscriptions, of which agents have shares.
	pollLease = 5 * time.Minute
	MaxLeases = 256
	// pollEvents is how many events a poll gives if the client names no number.
	pollEvents = 100
)

// Options are what Sources need of their gateway.
type Options struct {
	// Locked returns a function that calls f with the gateway's lock held. All others here are
	// called with it.
	Locked  func(f func()) func()
	Catalog *catalog.Catalog
	Books   *follow.Books
	// Find returns the catalog's key that answers for a URI.
	Find func(uri string) (key string, ok bool)
	// State is the document and revision of a followed URI, as last reported by its page; zero if
	// unknown.
	State func(uri string) State
	Now   func() time.Time
	Log   *slog.Logger
}

// Sources have all subscriptions of a gateway, and what they follow: resources, and the pages that
// come and go. The gateway's lock guards them, except for those methods of a Following that take
// it. Make them with NewSources.
type Sources struct {
	Options
	// Began is when the gateway began, and ClosedAfter how long a page must be gone before
	// page.closed is sent. BeginsWithin is beginsWithin. Only tests change them.
	Began                     time.Time
	ClosedAfter, BeginsWithin time.Duration
	// all has each Following until it is closed; once closed is set there are none, and no new one.
	all    map[*Following]bool
	closed bool
	// leases has the subscriptions of polls, by agent, its scope, name and arguments. Each is in
	// all, too.
	leases map[string]*Following
	polls  quota.Places
	// told has the arrivals and departures that were told. visits has the pages that are there, or
	// have left less than ClosedAfter ago: at most MaxVisits. crowded is set once there were more.
	told    *Log
	visits  map[visitKey]*visit
	sites   quota.Places // shares of visits
	crowded bool
	gone    int // counts the keys of the catalog that nobody offers any more
}

// A visitKey identifies a page for events. A reloaded page, or a frame of the same origin, has the
// same key.
type visitKey struct{ tab, origin string }

type visit struct {
	pages int
	back  func() bool // stops the timer that sends page.closed
	leave func()      // gives back its place
}

// NewSources returns Sources without subscriptions.
func NewSources(o Options) *Sources {
	return &Sources{Options: o, Began: o.Now(), ClosedAfter: 30 * time.Second,
		BeginsWithin: beginsWithin, all: map[*Following]bool{}, leases: map[string]*Following{},
		told: NewLog(o.Now()), visits: map[visitKey]*visit{}}
}

// A Pass is what this package needs of a door.Pass. It is asked again at the moment of telling.
type Pass interface {
	bridge.Sight
	MayWish(uri string) bool
	String() string
}

// FollowOptions say where a subscription starts, and how it is followed.
type FollowOptions struct {
	// Cursor is the cursor of a delivered event, from any gateway; "" is now. Events older than
	// MaxAge are left out, unless MaxAge is negative.
	Cursor string
	MaxAge time.Duration
	// MinInterval applies if the subscription's arguments have no minIntervalMs.
	MinInterval time.Duration
	// Wake is called when Next may have a note, with the gateway's lock held: it must not block,
	// nor call the gateway. It may be nil.
	Wake func()
}

// A Following is a subscription that is followed, as long as it is in Sources.all. Next, Cursor and
// Close may be called concurrently: they take the gateway's lock.
type Following struct {
	s       *Sources
	sub     Subscription
	opt     FollowOptions
	pass    Pass
	memory  func() *follow.Memory // Call.Memory of a stream; otherwise nil
	feed    Feed
	changes *Changes        // the feed of a subscription to Updated; otherwise nil
	asked   map[string]bool // URIs whose page has been asked
	looked  int             // Sources.gone at the last forgetGone
	// timer begins the subscription, and then calls wake after the least time between two events.
	timer   *time.Timer
	last    time.Time // of the last change
	began   bool
	then    []func()    // called when the subscription begins
	release []func()    // called when it ends
	lease   *time.Timer // for polls: ends the subscription
}

// Follow follows a subscription, for who has a pass. It fails for an invalid cursor, above
// MaxFollowings, and after Close.
func (s *Sources) Follow(sub Subscription, o FollowOptions, p Pass) (
	*Following, *bridge.EventError) {
	if refused := CheckCursor(sub.Name, o.Cursor); refused != nil {
		return nil, refused
	}
	if s.closed || len(s.all) >= MaxFollowings {
		return nil, exhausted(MaxFollowings)
	}
	f := &Following{s: s, sub: sub, opt: o, pass: p, asked: map[string]bool{}}
	s.all[f] = true
	if sub.Name != Updated {
		f.feed, _ = NewVisits(sub, s.told, p.Permits, o.Cursor, o.MaxAge, s.Now())
		f.begin()
		return f, nil
	}
	f.changes = NewChanges(sub, o.MinInterval, p.Sees)
	f.feed = f.changes
	f.timer = time.AfterFunc(s.BeginsWithin, s.Locked(func() {
		f.begin()
		f.wake()
	}))
	f.release = append(f.release, func() { f.timer.Stop() })
	f.followAll()
	return f, nil
}

func exhausted(most int) *bridge.EventError {
	return &bridge.EventError{Kind: bridge.EventExhausted,
		Message: "too many subscriptions: the limit is " + strconv.Itoa(most),
		Data:    wire.Text(`{"limit":"subscriptions","max":`).Int(most).Raw(`}`)}
}

// Len is the number of subscriptions.
func (s *Sources) Len() int { return len(s.all) }

// Close ends all subscriptions.
func (s *Sources) Close() {
	s.closed = true
	for f := range s.all {
		f.close()
	}
}

// Next takes the next note, if there is one (ok). The first note is Active, when the pages are
// followed.
func (f *Following) Next() (n Note, ok bool) {
	f.s.Locked(func() { n, ok = f.next() })()
	return n, ok
}

// Cursor is a watermark: Next has returned all events at or before it. It is "" until the
// subscription has begun.
func (f *Following) Cursor() (at string) {
	f.s.Locked(func() { at = f.At() })()
	return at
}

// Close ends the subscription. Next returns no note afterwards.
func (f *Following) Close() { f.s.Locked(f.close)() }

// At is Cursor, for who holds the lock.
func (f *Following) At() string {
	if !f.began {
		return ""
	}
	return f.feed.Cursor()
}

// Take is Next, for an engine and with the lock held.
func (f *Following) Take() (bridge.EventNote, bool) {
	n, ok := f.next()
	return bridge.EventNote{Members: n.Members(), Gap: n.Kind == Active, Refused: n.Refused}, ok
}

func (f *Following) close() {
	if !f.s.all[f] {
		return
	}
	delete(f.s.all, f)
	for uri := range f.asked {
		f.s.Books.Unfollow(uri, (*follower)(f))
	}
	for _, release := range f.release {
		release()
	}
}

func (f *Following) wake() {
	if f.began && f.s.all[f] && f.opt.Wake != nil {
		f.opt.Wake()
	}
}

func (f *Following) next() (n Note, ok bool) {
	if !f.s.all[f] || !f.began {
		return n, false
	}
	now := f.s.Now()
	n, ok, at := f.feed.Next(now)
	if !ok && !at.IsZero() {
		f.timer.Reset(max(at.Sub(now), time.Millisecond))
	}
	f.s.complement(&n, f.memory)
	return n, ok
}

// complement adds the data of an event about a resource. It notes in an agent's memory that the
// agent is told of the change, so that reminders and hooks do not repeat it.
func (s *Sources) complement(n *Note, memory func() *follow.Memory) {
	if n.Kind != Event || n.Name != Updated {
		return
	}
	uri := n.Subject
	title, tab, origin, revision := "", 0, weborigin.Of(uri), s.Books.Revision(uri)
	if r := s.Catalog.EntryOf(uri); r != nil {
		title, tab, origin = cmp.Or(r.Title, r.Resource.Name), r.Page.InTab.Number, r.Page.Origin
	}
	n.Data = UpdatedData(uri, title, origin, tab, revision)
	if memory != nil && memory() != nil && revision > 0 {
		memory().Told(uri, revision)
	}
}

// followAll follows all resources of a new subscription, and begins it when their pages report
// changes. A page that does so later, after the timer, is met like one that comes later.
func (f *Following) followAll() {
	var all []string
	if f.sub.URI != "" && f.includes(f.sub.URI) {
		all = []string{f.sub.URI}
	} else if f.sub.URI == "" {
		for _, key := range taburi.Sorted(f.s.Catalog.Keys()) {
			if !f.s.Catalog.Entry(key).Resource.Unlisted && f.includes(key) {
				all = append(all, key)
			}
		}
	}
	// Each site has a share: in alphabetical order, a page with 1,001 resources had all places.
	uris := quota.Shares(all, MaxURIs, weborigin.Of)
	if len(uris) < len(all) {
		f.changes.Overflow()
	}
	for _, uri := range uris {
		f.asked[uri] = true
	}
	left := len(uris)
	f.follow(uris, func() {
		if left--; left == 0 {
			f.begin()
		}
		f.wake()
	})
	if left == 0 {
		f.begin()
	}
}

// begin begins the subscription, unless it has begun or ended.
func (f *Following) begin() {
	if f.began || !f.s.all[f] {
		return
	}
	if f.changes != nil {
		f.timer.Stop()
		// Follow has checked the cursor
		_ = f.changes.Begin(f.opt.Cursor, f.opt.MaxAge, f.s.Now())
	}
	f.began = true
	for _, call := range f.then {
		call()
	}
	f.then = nil
	f.wake()
}

func (f *Following) whenBegun(then func()) {
	if f.began {
		then()
		return
	}
	f.then = append(f.then, then)
}

// wants appends a URI if the subscription includes it and does not follow it yet.
func (f *Following) wants(uris []string, uri string) []string {
	if f.asked[uri] || !f.includes(uri) {
		return uris
	}
	if len(f.asked) >= MaxURIs {
		f.forgetGone()
	}
	if len(f.asked) >= MaxURIs {
		f.changes.Overflow()
		return uris
	}
	f.asked[uri] = true
	return append(uris, uri)
}

// includes reports whether the subscription includes a URI.
func (f *Following) includes(uri string) bool {
	template := f.sub.URI == "" && strings.Contains(uri, "{")
	// What pages show is looked at only for who names at least its origin.
	unasked := taburi.Shown(uri) && f.sub.Origin == "" &&
		!strings.HasPrefix(f.sub.URI+f.sub.URIPrefix, weborigin.Of(uri))
	return !template && !unasked && uri != door.FrontURI && f.pass.Sees(uri) &&
		f.sub.Matches(uri, weborigin.Of(uri))
}

// Gone notes that nobody offers a key of the catalog any more.
func (s *Sources) Gone() { s.gone++ }

// MakeRoom forgets the resources that no page offers, and returns how many are followed no more.
func (s *Sources) MakeRoom() int {
	before := s.Books.Counted()
	for f := range s.all {
		f.forgetGone()
	}
	return before - s.Books.Counted()
}

// forgetGone makes room: it forgets the resources that no page offers. Those that come back are new
// ones. Without it, a subscription to all pages of an application was full after a day, and told
// nothing of further ones.
func (f *Following) forgetGone() {
	if f.looked == f.s.gone {
		return // a page that offers too much would look at all of it again, for each
	}
	f.looked = f.s.gone
	for uri := range f.asked {
		if _, offered := f.s.Find(uri); !offered {
			delete(f.asked, uri)
			f.changes.Forget(uri)
			f.s.Books.Unfollow(uri, (*follower)(f))
		}
	}
}

// follow makes the pages of the URIs report changes, and calls then after each that does, or cannot
// be followed. Wished follows URIs without a page later.
func (f *Following) follow(uris []string, then func()) {
	f.s.Books.Track(uris, func(uri, why string) {
		if !f.s.all[f] {
			return
		}
		if f.asked[uri] { // otherwise it has gone meanwhile
			f.add(uri, why)
		}
		then()
	})
}

// add follows a URI whose page reports changes. why is the reason if it cannot be followed, or "".
func (f *Following) add(uri, why string) {
	if why != "" {
		if _, known := f.s.Find(uri); known {
			f.changes.Overflow()
		}
		delete(f.asked, uri)
		return
	}
	f.s.Books.Follow(uri, (*follower)(f))
	// as without a page, if it leads to one that the agent does not see by now
	state := State{}
	if f.pass.Sees(uri) {
		state = f.s.State(uri)
	}
	f.changes.Add(uri, state)
}

// follower is a Following as the books see it. Its methods run with the lock held.
type follower Following

// Touched notes that a page has reported a change of a URI: no cursor from now on covers it.
func (f *follower) Touched(uri string) {
	if f.pass.Sees(uri) {
		f.changes.Touched(uri, f.s.State(uri))
		f.last = f.s.Now()
	}
}

// Changed passes on a change of a URI, at the pace of the books.
func (f *follower) Changed(uri string) {
	if f.pass.Sees(uri) {
		f.changes.Changed(uri, f.s.State(uri))
		(*Following)(f).wake()
	}
}

// Wished follows a resource of subscriptions that want it, and could not have it until now.
func (s *Sources) Wished(key string, r *bridge.Resource) {
	for f := range s.all {
		if f.changes == nil {
			continue
		}
		var uris []string
		if f.sub.URI == "" && !r.Unlisted {
			uris = f.wants(uris, key)
		} else if f.sub.URI != "" && !f.asked[f.sub.URI] {
			if found, ok := s.Find(f.sub.URI); ok && found == key {
				uris = f.wants(uris, f.sub.URI)
			}
		}
		if len(uris) == 0 {
			continue
		}
		f.follow(uris, func() {
			// it waits for this URI, which has changed: it can be read now
			if f.sub.URI == uris[0] {
				f.changes.Arrived(uris[0])
			}
			f.wake()
		})
	}
}

// Came notes that a page has come.
func (s *Sources) Came(p *catalog.Page, epoch string) {
	if p.Shown {
		return // only pages that offer something by themselves are told
	}
	key := visitKey{p.InTab.Key, p.Origin}
	v := s.visits[key]
	if v != nil {
		v.back()
	} else {
		leave, ok := s.sites.Try(quota.Site(p.Origin), quota.Room{Places: MaxVisits})
		if !ok {
			if !s.crowded {
				s.crowded = true
				s.Log.Warn("there are so many pages that page.opened and page.closed are not told "+
					"of further ones; a site has as many as it leaves to others", "limit", MaxVisits,
					"origin", p.Origin)
			}
			return
		}
		v = &visit{back: func() bool { return false }, leave: leave}
		s.visits[key] = v
		if s.Now().Sub(s.Began) >= arrivalTime {
			s.tell(visitOf(Opened, p, epoch, p.Owner))
		}
	}
	v.pages++
}

// Left notes that a page has gone.
func (s *Sources) Left(p *catalog.Page, epoch string) {
	key := visitKey{p.InTab.Key, p.Origin}
	v := s.visits[key]
	if v == nil || p.Shown {
		return
	}
	closed := visitOf(Closed, p, epoch, p.LastOwner())
	s.told.Left(closed)
	if v.pages--; v.pages > 0 || s.closed {
		return
	}
	v.back = time.AfterFunc(s.ClosedAfter, s.Locked(func() {
		if s.visits[key] == v && v.pages == 0 && !s.closed {
			delete(s.visits, key)
			v.leave()
			s.tell(closed)
		}
	})).Stop
}

func visitOf(name string, p *catalog.Page, epoch string, owner func() bridge.Owner) Visit {
	return Visit{Name: name, Page: p.InTab.Key + " " + p.Origin, Epoch: epoch, Owner: owner,
		Data: PageData(p.Origin, p.InTab.Number, p.URL, p.Title)}
}

func (s *Sources) tell(v Visit) {
	v.Time = s.Now()
	s.told.Add(v)
	for f := range s.all {
		if f.changes == nil && f.pass.Permits(v.Owner()) {
			f.last = s.Now()
			f.wake()
		}
	}
}

// Webhooks deliver the events of one principal by webhook.
type Webhooks interface {
	// Subscribe answers events/subscribe, and Unsubscribe events/unsubscribe. result is the JSON
	// text of an object: the members of MCP's result. Each call has its own goroutine, without the
	// gateway's lock. ctx ends when the agent cancels.
	Subscribe(ctx context.Context, r WebhookRequest) (result []byte, refused *bridge.EventError)
	Unsubscribe(ctx context.Context, r WebhookRequest) (result []byte, refused *bridge.EventError)
}

// A WebhookRequest is an agent's request to a Webhooks. Name, arguments and cursor are checked, the
// rest is not.
type WebhookRequest struct {
	Subscription
	Mode, URL, Secret string        // of delivery; "" if absent
	Cursor            string        // "" is null
	MaxAge            time.Duration // -1 if absent
	TTL               time.Duration // -1 if absent, 0 if null, which asks for no expiry
}

// A Call is an agent's request for events. Its functions are called with the gateway's lock held.
type Call struct {
	Pass     Pass
	Party    string                // whose share of MaxLeases it needs
	Webhooks Webhooks              // nil for an agent that can only poll and stream
	Memory   func() *follow.Memory // the agent's, at the moment; nil if it has none
	// Accept is called before Answer with what ends the work on the request, and with its stream,
	// if it asks for one. Wake says that the stream may have a note.
	Accept func(end func(), stream *Following)
	Wake   func()
	Answer func(result []byte, refused *bridge.EventError)
}

// Run answers a request, now or later.
func (s *Sources) Run(c Call, r bridge.EventRequest) {
	if refused := s.run(c, r); refused != nil {
		c.Answer(nil, refused)
	}
}

// run is Run, but for a refusal, which it returns.
func (s *Sources) run(c Call, r bridge.EventRequest) *bridge.EventError {
	if r.Method == wire.EventsList {
		if r.Cursor != "" {
			return invalid("the list has one page, and no cursor")
		}
		c.Answer(wire.Text(`{"events":`).Bytes(List(c.Webhooks != nil)).Raw(`}`), nil)
		return nil
	}
	sub, refused := c.subscription(r)
	if refused != nil {
		return refused
	}
	switch r.Method {
	case wire.EventsPoll:
		return s.poll(c, sub, r)
	case wire.EventsStream:
		f, refused := s.Follow(sub,
			FollowOptions{Cursor: r.Cursor, MaxAge: milliseconds(r.MaxAge), Wake: c.Wake}, c.Pass)
		if refused != nil {
			return refused
		}
		f.memory = c.Memory
		c.Accept(f.close, f)
		f.whenBegun(func() {
			first, _ := f.next()
			c.Answer(append(append([]byte{'{'}, first.Members()...), '}'), nil)
			f.wake()
		})
	default:
		s.askWebhooks(c, sub, r)
	}
	return nil
}

// subscription reads the subscription of a request. It refuses a URI or origin that the agent may
// never see.
func (c *Call) subscription(r bridge.EventRequest) (s Subscription, refused *bridge.EventError) {
	webhook := r.Method == wire.EventsSubscribe || r.Method == wire.EventsUnsubscribe
	if webhook && c.Webhooks == nil {
		return s, &bridge.EventError{Kind: bridge.EventForbidden,
			Message: "webhooks need an agent that a service has authenticated; " +
				"use events/poll or events/stream",
			Data: wire.Text(`{"reason":"no_principal"}`)}
	}
	if s, refused = Parse(r.Name, r.Arguments); refused != nil {
		return s, refused
	}
	if refused = CheckCursor(s.Name, r.Cursor); refused != nil {
		return s, refused
	}
	for _, at := range []string{s.URI, s.Origin} {
		if at != "" && !c.Pass.MayWish(at) {
			return s, &bridge.EventError{Kind: bridge.EventForbidden,
				Message: "this agent does not see " + catalog.Shorten(at, catalog.MaxTitle),
				Data:    wire.Text(`{"reason":"scope"}`)}
		}
	}
	return s, nil
}

// milliseconds is a duration of at most 10,000 hours; -1 if n is negative, which means that there
// is none.
func milliseconds(n bridge.Time) time.Duration {
	if n < 0 {
		return -1
	}
	return min(time.Duration(min(n, 1<<40))*time.Millisecond, 10_000*time.Hour)
}

// poll answers events/poll. The resources stay followed for the next poll.
func (s *Sources) poll(c Call, sub Subscription, r bridge.EventRequest) (
	refused *bridge.EventError) {
	// Of this agent: the pace of one must not hold back another's events.
	key := fmt.Sprintf("%q %s %q %s", c.Party, c.Pass, sub.Name, sub.Arguments)
	f := s.leases[key]
	if f == nil {
		leave, ok := s.polls.Try(c.Party, quota.Room{Places: MaxLeases})
		if !ok {
			refused = exhausted(MaxLeases)
			refused.Message += " for all agents, and one may poll as many as are left to the " +
				"others; those that it does not poll for 5 minutes end"
			return refused
		}
		if f, refused = s.Follow(sub, FollowOptions{MaxAge: -1}, c.Pass); refused != nil {
			leave()
			return refused
		}
		f.lease = time.AfterFunc(pollLease, s.Locked(func() {
			if s.leases[key] == f {
				delete(s.leases, key)
				f.close()
			}
		}))
		f.release = append(f.release, leave, func() { f.lease.Stop() })
		s.leases[key] = f
	}
	f.lease.Reset(pollLease)
	f.whenBegun(func() { c.Answer(f.answerPoll(c.Memory, r), nil) })
	return nil
}

func (f *Following) answerPoll(m func() *follow.Memory, r bridge.EventRequest) []byte {
	now, maxAge := f.s.Now(), milliseconds(r.MaxAge)
	var feed Feed // Call.subscription has checked the cursor
	if f.changes != nil {
		feed, _ = f.changes.At(r.Cursor, maxAge, now)
	} else {
		feed, _ = NewVisits(f.sub, f.s.told, f.pass.Permits, r.Cursor, maxAge, now)
	}
	text := wire.Text(`{"events":[`)
	truncated, more, count, at := false, false, 0, ""
	for {
		at = feed.Cursor() // before the next event, which may be left for the next poll
		n, ok, _ := feed.Next(now)
		if !ok {
			break
		}
		truncated = truncated || n.Truncated
		if n.Kind != Event {
			continue
		}
		if more = count >= cmp.Or(r.Max, pollEvents) && !n.Whole; more {
			break
		}
		count++
		f.s.complement(&n, m)
		text = n.AppendTo(text.Next(), false)
		if f.changes != nil {
			f.changes.Told(n.Subject, now)
		}
	}
	pause := 30_000
	switch ago := now.Sub(f.last); {
	case ago < 10*time.Second:
		pause = 1000
	case ago < time.Minute:
		pause = 5000
	}
	text = text.Raw(`],"cursor":`).Str(at).Raw(`,"truncated":`)
	text = strconv.AppendBool(text, truncated)
	text = strconv.AppendBool(text.Raw(`,"hasMore":`), more)
	return text.Raw(`,"nextPollMs":`).Int(pause).Raw(`}`)
}

// askWebhooks answers events/subscribe and events/unsubscribe.
func (s *Sources) askWebhooks(c Call, sub Subscription, r bridge.EventRequest) {
	q := WebhookRequest{Subscription: sub, Cursor: r.Cursor, MaxAge: milliseconds(r.MaxAge),
		TTL: milliseconds(r.TTL)}
	q.Mode, _ = r.Delivery.Get("mode").Text()
	q.URL, _ = r.Delivery.Get("url").Text()
	q.Secret, _ = r.Delivery.Get("secret").Text()
	ask := c.Webhooks.Subscribe
	if r.Method == wire.EventsUnsubscribe {
		ask = c.Webhooks.Unsubscribe
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.Accept(cancel, nil)
	go func() {
		result, refused := ask(ctx, q)
		s.Locked(func() { c.Answer(result, refused) })()
	}()
}
